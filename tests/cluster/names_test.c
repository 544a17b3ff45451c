/* domus_cluster_register() and its relatives: a name is unique over all nodes, and is free again
 * when its actor or node has ended. */
#include "tests/cluster/pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static domus_outsider *users[2];
static char directory[64], config[200];

static void open_pair_and_second_user(void)
{
    static const domus_cluster_options options = {
        .heartbeat_ns = 50 * DOMT_MS, .down_after_ns = 400 * DOMT_MS, .lease_ns = 1000 * DOMT_MS};

    snprintf(directory, sizeof directory, "/tmp/domus-names-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(config, sizeof config, "jetstream { store_dir: \"%s\" }", directory);
    domt_pair_config = config;
    domt_pair_open_nodes(2, &options);
    users[0] = domt_user;
    ck_assert_int_eq(domus_outside_attach(domt_systems[1], NULL, &users[1]), 0);
}

static void close_pair_and_remove_files(void)
{
    char command[100];

    if (users[1] != NULL)
        (void)domus_outside_detach(users[1]);
    domt_pair_close_nodes();
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* --- one operation of one user ---------------------------------------------------------------- */

enum verb { REGISTERS, UNREGISTERS, FINDS };

typedef struct doing {
    enum verb verb;
    domus_cluster *cluster;
    const char *name;
} doing;

static int result;
static domus_address found;

static int store_result_of_name_operation(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    result = answer->error;
    if (answer->type == &domus_cluster_found_type)
        found = ((const domus_cluster_found *)answer->payload)->address;
    return 0;
}

static int start_name_operation(domus_stack *stack, void *doing_)
{
    const doing *what = doing_;

    switch (what->verb) {
    case REGISTERS:
        return domus_cluster_register(stack, what->cluster, what->name, 2 * DOMT_SECOND,
                                      store_result_of_name_operation);
    case UNREGISTERS:
        return domus_cluster_unregister(stack, what->cluster, what->name, 2 * DOMT_SECOND,
                                        store_result_of_name_operation);
    default:
        return domus_cluster_find(stack, what->cluster, what->name, 2 * DOMT_SECOND,
                                  store_result_of_name_operation);
    }
}

/* Start an operation of a user, and return the error of its answer. */
static int result_of_name_operation(uint32_t user, enum verb verb, const char *name)
{
    doing what = {verb, domt_clusters[user], name};
    domus_outside_message message;

    result = 1;
    int begun = domus_outsider_act(users[user], start_name_operation, &what);
    if (begun < 0)
        return begun;
    for (int i = 0; i < 1000 && result == 1; i++)
        (void)domus_outside_receive(users[user], NULL, 5 * DOMT_MS, &message);
    return result;
}

/* Repeat an operation until it ends with this error: a node has no lease at first. */
static void repeat_name_operation_until(uint32_t user, enum verb verb, const char *name, int error)
{
    int last = 1;

    for (int i = 0; i < 400 && (last = result_of_name_operation(user, verb, name)) != error; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    ck_assert_int_eq(last, error);
}

DOMT_TEST(a_name_is_unique_over_nodes)
{
    open_pair_and_second_user();
    repeat_name_operation_until(0, REGISTERS, "printer", 0);
    ck_assert_int_eq(result_of_name_operation(0, REGISTERS, "printer"), -EALREADY);
    repeat_name_operation_until(1, REGISTERS, "printer", -EEXIST);
    ck_assert_int_eq(result_of_name_operation(1, FINDS, "printer"), 0);
    ck_assert(domus_address_is_remote(found));
    ck_assert_int_eq(result_of_name_operation(0, FINDS, "printer"), 0);
    ck_assert(domus_address_equals(found, domus_outsider_address(users[0])));
    ck_assert_int_eq(result_of_name_operation(1, FINDS, "scanner"), -ENOENT);
    ck_assert_int_eq(result_of_name_operation(1, UNREGISTERS, "printer"), -ENOENT);
    ck_assert_int_eq(result_of_name_operation(0, UNREGISTERS, "printer"), 0);
    ck_assert_int_eq(result_of_name_operation(1, FINDS, "printer"), -ENOENT);
    ck_assert_int_eq(result_of_name_operation(1, REGISTERS, "printer"), 0);
    repeat_name_operation_until(0, REGISTERS, "printer", -EEXIST);
    ck_assert_int_eq(result_of_name_operation(0, REGISTERS, "a name"), -EINVAL);
    ck_assert_int_eq(result_of_name_operation(0, REGISTERS, ""), -EINVAL);
    close_pair_and_remove_files();
}

DOMT_TEST(names_of_a_node_that_has_ended_are_free_when_its_lease_is_over)
{
    open_pair_and_second_user();
    repeat_name_operation_until(1, REGISTERS, "printer", 0);
    ck_assert_int_eq(result_of_name_operation(0, REGISTERS, "printer"), -EEXIST);
    /* the user's actor ends here, so the name that it has is free at once */
    (void)domus_outside_detach(users[1]);
    users[1] = NULL;
    repeat_name_operation_until(0, REGISTERS, "printer", 0);
    ck_assert_int_eq(result_of_name_operation(0, UNREGISTERS, "printer"), 0);
    ck_assert_int_eq(domus_outside_attach(domt_systems[1], NULL, &users[1]), 0);
    ck_assert_int_eq(result_of_name_operation(1, REGISTERS, "printer"), 0);
    domus_outsider *left = users[1];
    users[1] = NULL;
    domt_pair_end_node_b(false);
    (void)left; /* the detached outsider was freed together with its system */
    repeat_name_operation_until(0, REGISTERS, "printer", 0);
    close_pair_and_remove_files();
}

DOMT_SUITE(60)
