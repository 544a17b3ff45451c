/* The joiner of domus_main() says why a cluster cannot be opened. Errors in the section are held by
 * member_test.c. */
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/system.h>

#include <errno.h>

START_TEST(error_without_a_key_is_that_of_the_cluster)
{
    domus_system *system;
    domus_cluster *cluster, *other;
    domus_config config;
    char error[200] = "";

    domus_config_init(&config);
    const domus_cluster_setup setup = {.config = &config, .program = "two of them"};
    config.system.threads = 1;
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    ck_assert_int_eq(domus_cluster_front.open(system, &setup, error, sizeof error, &cluster), 0);
    ck_assert_int_eq(domus_cluster_front.open(system, &setup, error, sizeof error, &other),
                     -EEXIST);
    ck_assert_str_eq(error, "cluster: File exists");
    ck_assert_int_eq(domus_cluster_front.open(system, &setup, NULL, 0, &other), -EEXIST);
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_cluster_front.close(cluster);
    domus_system_free(system);
}
END_TEST

DOMT_MAIN("joiner", 20, error_without_a_key_is_that_of_the_cluster)
