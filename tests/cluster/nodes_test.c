/* Nodes of a cluster: messages and names reach over them, and the joiner reports why a cluster
 * cannot be opened. */
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <domus/cluster.h>
#include <domus/figures.h>
#include <domus/system.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* domus/cluster.h: actors of two nodes send messages to each other by the same functions as within
 * one node. */

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * DOMT_SECOND + (uint64_t)now.tv_nsec;
}

static void wait_until_count_reaches(_Atomic uint64_t *count, uint64_t least)
{
    /* wait for at most 40 s, because the machine may be busy */
    for (int i = 0; i < 8000 && atomic_load(count) < least; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert_uint_ge(atomic_load(count), least);
}

DOMT_TEST(asks_are_answered_by_the_other_node)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        domt_pair_open_nodes(threads, NULL);
        domus_address worker = domt_spawn_worker_on_b();
        for (uint64_t i = 0; i < 100; i++) {
            uint64_t value;
            ck_assert_int_eq(
                domt_ask_from_node_a(worker, &domt_twice_type, i, 5 * DOMT_SECOND, &value), 0);
            ck_assert_uint_eq(value, 2 * i);
        }
        ck_assert_uint_ge(domt_read_info_of_b().sent, 101);
        ck_assert_uint_ge(domt_read_info_of_b().received, 101);
        domt_pair_close_nodes();
    }
}

/* Ask a worker without an outsider, so that the asker has no address. */
DOMT_TEST(a_foreign_thread_is_answered)
{
    domt_number number = {.value = 21}, answer = {.value = 0};
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outside_ask(domt_systems[0], worker, &domt_twice_type, &number,
                                       5 * DOMT_SECOND, &reply),
                     0);
    ck_assert_uint_eq(answer.value, 42);
    domt_pair_close_nodes();
}

DOMT_TEST(notices_to_another_node_come_in_order)
{
    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    for (uint64_t i = 0; i < 20000; i++) {
        const domt_number number = {.value = i};
        int error;
        while ((error = domus_outsider_notice(domt_user, worker, &domt_tell_type, &number)) ==
               -ENOBUFS)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ck_assert_int_eq(error, 0);
    }
    wait_until_count_reaches(&domt_told, 20000);
    ck_assert_uint_eq(atomic_load(&domt_disorder), 0);
    domt_pair_close_nodes();
}

DOMT_TEST(senders_are_answered_and_passed_on_to)
{
    uint64_t value;
    domus_outside_message message;

    domt_pair_open_nodes(2, NULL);
    domus_address first = domt_spawn_worker_on_b(), second = domt_spawn_worker_on_b();
    ck_assert_int_eq(domt_ask_from_node_a_about(first, &domt_pass_type, second, &value), 0);
    ck_assert_uint_eq(value, 42);
    const domt_number number = {.value = 7};
    ck_assert_int_eq(domus_outsider_notice(domt_user, first, &domt_back_type, &number), 0);
    ck_assert_int_eq(domus_outside_receive(domt_user, NULL, 5 * DOMT_SECOND, &message), 0);
    ck_assert_ptr_eq(message.type, &domt_number_type);
    ck_assert_uint_eq(((const domt_number *)message.payload)->value, 7);
    ck_assert(domus_address_equals(message.sender, first));
    ck_assert(domus_address_equals(((const domt_number *)message.payload)->about, first));
    domt_pair_close_nodes();
}

DOMT_TEST(an_ask_to_another_node_fails_within_its_time)
{
    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    uint64_t begin_ns = monotonic_ns();
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_hold_type, 0, 100 * DOMT_MS, NULL),
                     -ETIMEDOUT);
    ck_assert_uint_lt(monotonic_ns() - begin_ns, 5 * DOMT_SECOND);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_secret_type, 0, DOMT_SECOND, NULL),
                     -ENOENT);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_number_type, 0, DOMT_SECOND, NULL),
                     -EOPNOTSUPP);
    domt_pair_close_nodes();
}

static domus_down heard;

static void expect_down_of_actor(domus_address who, int reason)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(domt_user, NULL, 5 * DOMT_SECOND, &message), 0);
    ck_assert_ptr_eq(message.type, &domus_down_type);
    heard = *(const domus_down *)message.payload;
    ck_assert(domus_address_equals(heard.who, who));
    ck_assert_int_eq(heard.reason, reason);
}

DOMT_TEST(watchers_hear_of_ends_on_another_node)
{
    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b(), other = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    const domt_number none = {.value = 0};
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    ck_assert_int_eq(domus_outsider_notice(domt_user, worker, &domt_end_type, &none), 0);
    expect_down_of_actor(worker, 0);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), -ESTALE);
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    expect_down_of_actor(worker, -ESTALE);
    ck_assert_int_eq(domus_outsider_watch(domt_user, other, NULL), 0);
    ck_assert_int_eq(domus_outside_stop(domt_systems[0], other), 0);
    expect_down_of_actor(other, 0);
    domt_pair_close_nodes();
}

DOMT_TEST(a_node_that_is_silent_is_down)
{
    domt_pair_open_nodes(1, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    domt_pair_end_node_b(false);
    uint64_t begin_ns = monotonic_ns();
    expect_down_of_actor(worker, -EHOSTDOWN);
    ck_assert_uint_lt(monotonic_ns() - begin_ns, 2 * DOMT_SECOND);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL),
                     -EHOSTDOWN);
    domt_pair_open_node_b();
    for (int i = 0; i < 1000; i++) { /* repeats until the earlier start of node b has ended */
        if (domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL) == -ESTALE)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), -ESTALE);
    domt_pair_wait_for_state_of_b(DOMUS_NODE_UP);
    ck_assert_int_eq(
        domt_ask_from_node_a(domt_spawn_worker_on_b(), &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    domt_pair_close_nodes();
}

DOMT_TEST(a_node_that_leaves_has_ended_at_once)
{
    static const domus_cluster_options slow = {.heartbeat_ns = 2000 * DOMT_MS,
                                               .down_after_ns = 20000 * DOMT_MS};

    domt_pair_open_nodes(2, &slow);
    domus_address worker = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    domt_pair_end_node_b(true);
    expect_down_of_actor(worker, -EHOSTDOWN);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), -ESTALE);
    domt_pair_close_nodes();
}

/* --- names ------------------------------------------------------------------------------------ */

/* domus_cluster_register() and its relatives: a name is unique over all nodes, and is free again
 * when its actor or node has ended. */

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

/* --- joiner ----------------------------------------------------------------------------------- */

/* The joiner of domus_main() (domus/front.h) reports why a cluster cannot be opened. member_test.c
 * tests errors in the configuration's section. */

DOMT_TEST(error_without_a_key_is_that_of_the_cluster)
{
    domus_system *system;
    domus_cluster *cluster, *other;
    domus_config program;
    char error[200] = "";

    domus_config_init(&program);
    const domus_cluster_setup setup = {.config = &program, .program = "two of them"};
    program.system.threads = 1;
    ck_assert_int_eq(domus_system_new(&program, error, sizeof error, &system), 0);
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
    domus_config program;

    domus_config_init(&program);
    program.system.threads = 1;
    ck_assert_int_eq(domus_system_new(&program, NULL, 0, &system), 0);
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
    const domus_cluster_setup setup = {.config = &program, .program = "full"};
    ck_assert_int_eq(domus_cluster_front.open(system, &setup, NULL, 0, &cluster), 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_system_free(system);
    domus_cluster_front.close(cluster);
}

/* Gateways would refuse these options only after the start, each on its own thread, so the joiner
 * refuses them before. */
DOMT_TEST(options_of_a_cluster_are_checked_before_it_is_opened)
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
    domus_config program;

    domus_config_init(&program);
    snprintf(path, sizeof path, "/tmp/domus-joiner-%d", (int)getpid());
    snprintf(expected, sizeof expected, "cluster.tokenFile: %s: it is empty", path);
    program.cluster.token_file = path;
    const domus_cluster_setup setup = {.config = &program, .program = "pipe"};
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int checked = domus_cluster_front.check(&setup, error, sizeof error);
    unlink(path);
    ck_assert_int_eq(checked, -EINVAL);
    ck_assert_str_eq(error, expected);
}

DOMT_SUITE(60)
