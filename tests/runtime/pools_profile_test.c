/* The profile of runners: runtime/pools/span.c, and their columns of the table. */
#include "tests/runtime/pooled.h"

#include <domus/profile.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUNNERS 2u

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static _Atomic uint32_t handled;

/* It computes for so many nanoseconds. */
static int on_work(domus_stack *stack, void *self, const void *ns)
{
    uint64_t until_ns = domt_now_ns() + *(const uint64_t *)ns;

    while (domt_now_ns() < until_ns)
        ;
    atomic_fetch_add(&handled, 1);
    return 0;
}

static const domus_behaviour working = {.name = "working",
                                        .on = (const domus_on[]){{&work_type, on_work, 0}, {0}}};

static void begin(const char *policy, domus_profile_level level)
{
    const domus_pool_config work = {.name = "work", .runners = RUNNERS, .policy = policy};
    domus_config config = domt_config(1);

    config.pools = &work;
    config.pool_count = 1;
    config.profile.level = level;
    atomic_store(&handled, 0);
    domt_pooled.system = domt_start(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
}

static domus_runner_profile sum_of_runners(void)
{
    domus_runner_profile sum = {0}, one;

    for (uint32_t i = 0; i < RUNNERS; i++) {
        ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &one, NULL), 0);
        ck_assert_uint_eq(one.wall_ns, one.run_ns + one.search_ns + one.park_ns);
        ck_assert_uint_eq(one.begun, 1);
        sum.wall_ns += one.wall_ns;
        sum.run_ns += one.run_ns;
        sum.search_ns += one.search_ns;
        sum.park_ns += one.park_ns;
        sum.turns += one.turns;
        sum.messages += one.messages;
        sum.parks += one.parks;
        sum.steals += one.steals;
        sum.stolen += one.stolen;
        sum.global_takes += one.global_takes;
    }
    return sum;
}

static void send(domus_address address, uint32_t count, uint64_t ns)
{
    uint32_t before = atomic_load(&handled);

    for (uint32_t i = 0; i < count; i++)
        domt_notice(domt_pooled.system, address, &work_type, &ns);
    DOMT_WAIT_FOR(20, atomic_load(&handled) == before + count);
}

static void run_runners_tell_what_they_did(const char *policy)
{
    begin(policy, DOMUS_PROFILE_COUNTERS);
    uint64_t since_ns = domt_now_ns();
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &working, NULL);
    send(address, 100, 0);
    send(address, 4, 20 * DOMT_MS);
    domt_pause_ns(200 * DOMT_MS);
    uint64_t over_ns = domt_now_ns() - since_ns;
    domus_runner_profile sum = sum_of_runners();
    ck_assert_uint_eq(sum.messages, 104);
    ck_assert_uint_ge(sum.turns, 2);
    ck_assert_uint_le(sum.turns, 106);
    ck_assert_uint_gt(sum.parks, 0);
    ck_assert_uint_eq(sum.steals, sum.stolen);
    ck_assert_uint_ge(sum.run_ns, 80 * DOMT_MS);
    ck_assert_uint_ge(sum.wall_ns + 100 * DOMT_MS, RUNNERS * over_ns); /* they begin later */
    /* While they had nothing to do they slept, and one of them while the other worked. */
    ck_assert_uint_ge(sum.park_ns + sum.search_ns, 200 * DOMT_MS);
    ck_assert_uint_gt(sum.search_ns, 0);
    ck_assert_uint_gt(sum.park_ns, sum.search_ns);
    domus_runner_profile one;
    ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, RUNNERS, &one, NULL), -EINVAL);
    domt_end(domt_pooled.system);
}

DOMT_TEST(runners_tell_what_they_did)
{
    for (uint32_t i = 0; i < DOMT_POOLED_POLICIES; i++)
        run_runners_tell_what_they_did(domt_pooled_policies[i]);
}

DOMT_TEST(level_off_measures_no_time)
{
    domus_profile counters;
    domus_runner_profile one;
    uint64_t notices = 0;

    begin("deques", DOMUS_PROFILE_OFF);
    send(domt_pooled_spawn(domt_pooled.pool, &working, NULL), 50, 0);
    for (uint32_t i = 0; i < RUNNERS; i++) {
        ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &one, &counters), 0);
        ck_assert_uint_eq(one.wall_ns + one.run_ns + one.search_ns + one.park_ns, 0);
        notices += counters.notices;
    }
    ck_assert_uint_eq(notices, 50);
    domt_end(domt_pooled.system);
}

/* Snapshots of runners that begin and end waits all the time. */
DOMT_TEST(times_never_go_back)
{
    domus_runner_profile before[RUNNERS] = {0};

    begin("sharing", DOMUS_PROFILE_COUNTERS);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &working, NULL);
    const uint64_t none = 0;
    uint64_t until_ns = domt_now_ns() + DOMT_SCALE(300, 100) * DOMT_MS;
    while (domt_now_ns() < until_ns) {
        (void)domus_outside_notice(domt_pooled.system, address, &work_type, &none);
        for (uint32_t i = 0; i < RUNNERS; i++) {
            domus_runner_profile now;
            ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &now, NULL), 0);
            ck_assert_uint_eq(now.wall_ns, now.run_ns + now.search_ns + now.park_ns);
            ck_assert_uint_ge(now.wall_ns, before[i].wall_ns);
            ck_assert_uint_ge(now.run_ns, before[i].run_ns);
            ck_assert_uint_ge(now.search_ns, before[i].search_ns);
            ck_assert_uint_ge(now.turns, before[i].turns);
            before[i] = now;
        }
    }
    domt_end(domt_pooled.system);
}

DOMT_TEST(table_has_the_runners)
{
    static const char *const texts[] = {
        "\npool work (rings)     ", "\nrun    ",     "\nsearch ", "\npark   ",
        "\nturns                 ", "\nmessages   ", "\nparks  ", "\nnotices ",
    };

    begin("rings", DOMUS_PROFILE_COUNTERS);
    send(domt_pooled_spawn(domt_pooled.pool, &working, NULL), 50, 0);
    size_t size = domus_system_profile_table(domt_pooled.system, NULL, 0) + 1000;
    char *table = malloc(size);
    ck_assert_ptr_nonnull(table);
    (void)domus_system_profile_table(domt_pooled.system, table, size);
    const char *at = strstr(table, texts[0]);
    ck_assert_ptr_nonnull(at);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(strstr(at, texts[i]) != NULL, "no%s in\n%s", texts[i], at);
    ck_assert_ptr_null(strstr(at, "\nsteals ")); /* there were none */
    free(table);
    domt_end(domt_pooled.system);
}

DOMT_SUITE(60)
