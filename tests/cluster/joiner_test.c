/* The joiner of domus_main() (domus/front.h) reports why a cluster cannot be opened. member_test.c
 * tests errors in the configuration's section. */
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/figures.h>
#include <domus/system.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

DOMT_TEST(error_without_a_key_is_that_of_the_cluster)
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

static int read_no_figures(void *context, uint32_t from, domus_figures_shot *to,
                           uint64_t *ret_total)
{
    *ret_total = 0;
    return 0;
}

/* All places for tables of figures are taken, so the cluster has no table, and does not learn that
 * its system is freed. */
DOMT_TEST(cluster_without_tables_is_closed_behind_its_system)
{
    static const domus_figure_column column = {.name = "one", .title = "one"};
    static char names[DOMUS_FIGURES_TABLES_MAX][8];
    static domus_figures_table tables[DOMUS_FIGURES_TABLES_MAX];
    domus_system *system;
    domus_cluster *cluster;
    domus_config config;

    domus_config_init(&config);
    config.system.threads = 1;
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    for (unsigned i = 0; i < DOMUS_FIGURES_TABLES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "t%u", i);
        tables[i] = (domus_figures_table){.set = "full",
                                          .name = names[i],
                                          .title = "full",
                                          .columns = &column,
                                          .columns_count = 1,
                                          .read = read_no_figures};
        ck_assert_int_eq(domus_figures_add(system, &tables[i], NULL), 0);
    }
    ck_assert_int_eq(domus_system_start(system), 0);
    const domus_cluster_setup setup = {.config = &config, .program = "full"};
    ck_assert_int_eq(domus_cluster_front.open(system, &setup, NULL, 0, &cluster), 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_system_free(system);
    domus_cluster_front.close(cluster);
}

/* Gateways would refuse these options only after the start, each on its own thread, so the joiner
 * refuses them before. */
DOMT_TEST(numbers_are_checked_before_anything_is_opened)
{
    domus_cluster_options options = {.name = "numbers", .addresses_max = 255};
    char error[100] = "";

    ck_assert_int_eq(domus_cluster_check(&options, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "addressesMax: not in 256..16777216");
    options.addresses_max = 16777217;
    ck_assert_int_eq(domus_cluster_check(&options, error, sizeof error), -EINVAL);
    options.addresses_max = 256;
    ck_assert_int_eq(domus_cluster_check(&options, error, sizeof error), 0);
    options.addresses_max = 16777216;
    ck_assert_int_eq(domus_cluster_check(&options, error, sizeof error), 0);
}

DOMT_TEST(pipe_is_no_file_of_a_secret)
{
    char path[64], error[200] = "", expected[200];
    domus_config config;

    domus_config_init(&config);
    snprintf(path, sizeof path, "/tmp/domus-joiner-%d", (int)getpid());
    snprintf(expected, sizeof expected, "cluster.tokenFile: %s: it is empty", path);
    config.cluster.token_file = path;
    const domus_cluster_setup setup = {.config = &config, .program = "pipe"};
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int result = domus_cluster_front.check(&setup, error, sizeof error);
    unlink(path);
    ck_assert_int_eq(result, -EINVAL);
    ck_assert_str_eq(error, expected);
}

DOMT_SUITE(20)
