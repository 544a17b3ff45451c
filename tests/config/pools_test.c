/* Documents of YAML with pools: which field each key sets, and which errors are reported; and
 * documents that are read without memory. */
#include "config/memory.h"
#include "tests/config/reading.h"
#include "tests/support/suite.h"

#include <errno.h>

/* The list `pools` of a document: which field of the configuration each key sets, and which errors
 * are reported. */

DOMT_TEST(pools_of_document_are_read)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(
        domt_load_text_as_file(yaml, "pools:\n"
                                     "- name: work\n"
                                     "- {name: quick, runners: 2, policy: rings, throughput: 8,\n"
                                     "   spares: 0, lifeBeat: 20ms,\n"
                                     "   stealing: {aggressiveAttempts: 1,\n"
                                     "     aggressiveStealEvery: 2, moderateAttempts: 3,\n"
                                     "     moderateStealEvery: 4, moderateSleep: 5us,\n"
                                     "     relaxedStealEvery: 6, relaxedSleep: 7us}}\n"),
        0);
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);
    const domus_config *config = domus_yaml_config(yaml);
    ck_assert_uint_eq(config->pool_count, 2);
    ck_assert_str_eq(config->pools[0].name, "work");
    ck_assert_str_eq(config->pools[0].policy, "deques");
    ck_assert_uint_eq(config->pools[0].runners, 0);
    ck_assert_uint_eq(config->pools[0].throughput, 64);
    ck_assert_uint_eq(config->pools[0].spares, 8);
    ck_assert_uint_eq(config->pools[0].life_beat_ns, 5000000);
    ck_assert_str_eq(config->pools[1].name, "quick");
    ck_assert_str_eq(config->pools[1].policy, "rings");
    ck_assert_uint_eq(config->pools[1].runners, 2);
    ck_assert_uint_eq(config->pools[1].throughput, 8);
    ck_assert_uint_eq(config->pools[1].spares, 0);
    ck_assert_uint_eq(config->pools[1].life_beat_ns, 20000000);
    const domus_pool_stealing *stealing = &config->pools[1].stealing;
    ck_assert_uint_eq(stealing->aggressive_attempts, 1);
    ck_assert_uint_eq(stealing->aggressive_steal_every, 2);
    ck_assert_uint_eq(stealing->moderate_attempts, 3);
    ck_assert_uint_eq(stealing->moderate_steal_every, 4);
    ck_assert_uint_eq(stealing->moderate_sleep_ns, 5000);
    ck_assert_uint_eq(stealing->relaxed_steal_every, 6);
    ck_assert_uint_eq(stealing->relaxed_sleep_ns, 7000);
    stealing = &config->pools[0].stealing;
    ck_assert_uint_eq(stealing->aggressive_attempts, 100);
    ck_assert_uint_eq(stealing->relaxed_sleep_ns, 10000000);
    domus_yaml_free(yaml);
}

DOMT_TEST(later_list_of_pools_replaces_earlier_one)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domt_load_text_as_file(yaml, "pools: [{name: a}, {name: b}]\n"), 0);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "pools: [{name: c, runners: auto}]\n"), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);
    ck_assert_uint_eq(domus_yaml_config(yaml)->pool_count, 1);
    ck_assert_str_eq(domus_yaml_config(yaml)->pools[0].name, "c");
    domus_yaml_free(yaml);
}

DOMT_TEST(assignment_changes_only_the_named_pool)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domt_load_text_as_file(yaml, "listeners: [{name: b, address: '[::]:0'}]\n"
                                                  "pools: [{name: a}, {name: b, runners: 3}]\n"),
                     0);
    ck_assert_int_eq(domus_yaml_set(yaml, "pools.b.policy=sharing"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "pools.a.runners=7"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "listeners.b.backlog=5"), 0);
    ck_assert_int_lt(domus_yaml_set(yaml, "pools.c.runners=7"), 0);
    ck_assert_int_lt(domus_yaml_set(yaml, "pools.a=1"), 0);
    ck_assert_int_lt(domus_yaml_set(yaml, "pools.a.runner=7"), 0);
    const domus_config *config = domus_yaml_config(yaml);
    ck_assert_uint_eq(config->pool_count, 2);
    ck_assert_str_eq(config->pools[1].policy, "sharing");
    ck_assert_uint_eq(config->pools[1].runners, 3);
    ck_assert_uint_eq(config->pools[0].runners, 7);
    ck_assert_uint_eq(config->listeners[0].backlog, 5);
    ck_assert_str_eq(domus_yaml_errors(yaml),
                     "--set: pools.c.runners: there is no pool of that name\n"
                     "--set: pools.a: expected pools.NAME.KEY\n"
                     "--set: pools.a.runner: unknown key (did you mean 'runners'?)\n");
    domus_yaml_free(yaml);
}

DOMT_TEST(wrong_pools_are_reported_with_their_places)
{
    domt_expect_errors_of_text("pools:\n- {}\n", "2:3: pools[0]: name is missing\n");
    domt_expect_errors_of_text(
        "pools:\n- name: a b\n",
        "2:9: pools[0].name: must be letters, digits, '-' and '_', is 'a b'\n");
    domt_expect_errors_of_text(
        "pools:\n- name: a\n  runners: 65\n  spares: 65\n  lifeBeat: 5us\n  throughput: 70000\n",
        "3:12: pools[0].runners: must be auto or 1..64, is 65\n"
        "4:11: pools[0].spares: must be 0..64, is 65\n"
        "5:13: pools[0].lifeBeat: must be 0 or 1ms..1h, is 5us\n"
        "6:15: pools[0].throughput: must be 0 or 1..65535, is 70000\n");
    domt_expect_errors_of_text("pools: {name: a}\n",
                               "1:8: pools: expected a list, found a mapping\n");
    domt_expect_errors_of_text("pools:\n- name: a\n  runers: 2\n",
                               "3:3: pools[0].runers: unknown key (did you mean 'runners'?)\n");
}

/* Errors that are found only when all sources of the configuration have been read. */
DOMT_TEST(conflicting_pools_are_reported_with_their_places)
{
    static const char text[] = "pools:\n- name: a\n  policy: best\n- name: a\n";
    domus_yaml *yaml = domt_make_yaml_reader();
    char name[32];

    ck_assert_int_eq(domt_load_bytes_as_file(yaml, text, strlen(text), name), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), -EINVAL);
    char *errors = domt_copy_errors_of_reader(yaml, name);
    ck_assert_str_eq(
        errors, "3:11: pools[0].policy: must be deques, rings, stealing or sharing, is 'best'\n"
                "4:9: pools[1].name: must be unique, 'a' is taken by pools[0]\n");
    free(errors);
    domus_yaml_free(yaml);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* The n-th allocation fails, for each n until no allocation is left to fail: the load answers
 * -ENOMEM, leaks nothing, and loses nothing that it had read before. (The address sanitizer finds
 * leaks.) */

#define ROUNDS_MAX 1000

static const char right[] = "system: {cpus: '2'}\n"
                            "scheduler: {ioRatio: 20, steal: {floor: 3}}\n"
                            "cluster: {servers: [nats-0.messaging.cluster.example:4222,\n"
                            "  nats-1.messaging.cluster.example:4222]}\n"
                            "listeners:\n"
                            "- {name: b, address: '127.0.0.1:2'}\n"
                            "- {name: c, address: '127.0.0.1:3'}\n";
static const char wrong[] = "system: {cpu: '2'}\n"
                            "scheduler: {ioRatio: 0, steal: 7, steal: 8}\n"
                            "listeners: [{}, 5]\n"
                            "more: [\n";

static domus_yaml *make_reader_that_holds_values(void)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domt_load_text_as_file(yaml,
                                            "system: {cpus: '1'}\nscheduler: {ioRatio: 10}\n"
                                            "listeners: [{name: a, address: '127.0.0.1:1'}]\n"),
                     0);
    return yaml;
}

static void assert_reader_still_holds_values(const domus_yaml *yaml)
{
    const domus_config *config = domus_yaml_config(yaml);

    ck_assert_str_eq(config->system.cpus, "1");
    ck_assert_uint_eq(config->scheduler.io_ratio, 10);
    ck_assert_uint_eq(config->scheduler.steal.floor, 32);
    ck_assert_uint_eq(config->listener_count, 1);
    ck_assert_str_eq(config->listeners[0].name, "a");
}

static int load_right_document(domus_yaml *yaml)
{
    return domt_load_text_as_file(yaml, right);
}

static int load_wrong_document(domus_yaml *yaml)
{
    return domt_load_text_as_file(yaml, wrong);
}

static int assign_right_value(domus_yaml *yaml)
{
    return domus_yaml_set(yaml, "scheduler.steal.floor=3");
}

static int assign_key_of_listener(domus_yaml *yaml)
{
    return domus_yaml_set(yaml, "listeners.a.address=127.0.0.1:9");
}

static int assign_to_unknown_key(domus_yaml *yaml)
{
    return domus_yaml_set(yaml, "scheduler.steal.flor=3");
}

/* Let each allocation of `act` fail in turn, and check that `act` then returns -ENOMEM. Returns how
 * many allocations it makes. */
static uint32_t fail_each_allocation_of_act(int (*act)(domus_yaml *yaml), int wanted)
{
    for (uint32_t n = 1; n <= ROUNDS_MAX; n++) {
        domus_yaml *yaml = make_reader_that_holds_values();
        domi_yaml_memory_countdown = n;
        int result = act(yaml);
        bool failed = domi_yaml_memory_countdown == 0;

        domi_yaml_memory_countdown = 0;
        ck_assert_int_eq(result, failed ? -ENOMEM : wanted);
        if (failed)
            assert_reader_still_holds_values(yaml);
        domus_yaml_free(yaml);
        if (!failed)
            return n - 1;
    }
    ck_abort_msg("it never passed");
}

DOMT_TEST(making_a_reader_survives_failed_allocations)
{
    domus_yaml *yaml = NULL;
    uint32_t n = 1;

    for (; n <= ROUNDS_MAX && yaml == NULL; n++) {
        domi_yaml_memory_countdown = n;
        int result = domus_yaml_new(&yaml);
        ck_assert_int_eq(result, yaml == NULL ? -ENOMEM : 0);
    }
    domi_yaml_memory_countdown = 0;
    ck_assert_uint_ge(n, 4);
    domt_assert_config_is_default(domus_yaml_config(yaml));
    domus_yaml_free(yaml);
}

DOMT_TEST(loading_survives_each_failed_allocation)
{
    ck_assert_uint_ge(fail_each_allocation_of_act(load_right_document, 0), 10);
}

DOMT_TEST(loading_wrong_document_survives_failed_allocations)
{
    ck_assert_uint_ge(fail_each_allocation_of_act(load_wrong_document, -EINVAL), 10);
}

DOMT_TEST(assigning_survives_each_failed_allocation)
{
    ck_assert_uint_ge(fail_each_allocation_of_act(assign_right_value, 0), 5);
    ck_assert_uint_ge(fail_each_allocation_of_act(assign_key_of_listener, 0), 5);
    ck_assert_uint_ge(fail_each_allocation_of_act(assign_to_unknown_key, -EINVAL), 3);
}

DOMT_SUITE(60)
