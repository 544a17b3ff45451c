/* The n-th allocation fails, for each n until no allocation is left to fail: the load answers
 * -ENOMEM, leaks nothing, and loses nothing that it had read before. (The address sanitizer finds
 * leaks.) */
#include "config/memory.h"
#include "tests/config/reading.h"
#include "tests/support/suite.h"

#include <errno.h>

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

static domus_yaml *held_reader(void)
{
    domus_yaml *yaml = domt_reader();

    ck_assert_int_eq(domt_load(yaml, "system: {cpus: '1'}\nscheduler: {ioRatio: 10}\n"
                                     "listeners: [{name: a, address: '127.0.0.1:1'}]\n"),
                     0);
    return yaml;
}

static void assert_held(const domus_yaml *yaml)
{
    const domus_config *config = domus_yaml_config(yaml);

    ck_assert_str_eq(config->system.cpus, "1");
    ck_assert_uint_eq(config->scheduler.io_ratio, 10);
    ck_assert_uint_eq(config->scheduler.steal.floor, 32);
    ck_assert_uint_eq(config->listener_count, 1);
    ck_assert_str_eq(config->listeners[0].name, "a");
}

static int load_right(domus_yaml *yaml)
{
    return domt_load(yaml, right);
}

static int load_wrong(domus_yaml *yaml)
{
    return domt_load(yaml, wrong);
}

static int set_right(domus_yaml *yaml)
{
    return domus_yaml_set(yaml, "scheduler.steal.floor=3");
}

static int set_listener(domus_yaml *yaml)
{
    return domus_yaml_set(yaml, "listeners.a.address=127.0.0.1:9");
}

static int set_wrong(domus_yaml *yaml)
{
    return domus_yaml_set(yaml, "scheduler.steal.flor=3");
}

/* Let each allocation of `act` fail in turn. Returns how many allocations `act` makes. */
static uint32_t sweep_allocations(int (*act)(domus_yaml *yaml), int wanted)
{
    for (uint32_t n = 1; n <= ROUNDS_MAX; n++) {
        domus_yaml *yaml = held_reader();
        domi_yaml_memory_countdown = n;
        int result = act(yaml);
        bool failed = domi_yaml_memory_countdown == 0;

        domi_yaml_memory_countdown = 0;
        ck_assert_int_eq(result, failed ? -ENOMEM : wanted);
        if (failed)
            assert_held(yaml);
        domus_yaml_free(yaml);
        if (!failed)
            return n - 1;
    }
    ck_abort_msg("it never passed");
}

DOMT_TEST(reader_survives_each_failed_allocation_of_its_birth)
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
    domt_is_default(domus_yaml_config(yaml));
    domus_yaml_free(yaml);
}

DOMT_TEST(load_survives_each_failed_allocation)
{
    ck_assert_uint_ge(sweep_allocations(load_right, 0), 10);
}

DOMT_TEST(failing_load_survives_each_failed_allocation)
{
    ck_assert_uint_ge(sweep_allocations(load_wrong, -EINVAL), 10);
}

DOMT_TEST(set_survives_each_failed_allocation)
{
    ck_assert_uint_ge(sweep_allocations(set_right, 0), 5);
    ck_assert_uint_ge(sweep_allocations(set_listener, 0), 5);
    ck_assert_uint_ge(sweep_allocations(set_wrong, -EINVAL), 3);
}

DOMT_SUITE(30)
