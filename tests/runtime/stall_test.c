/* runtime/system/stall.c: a handler that is stuck is reported once, while it is stuck, with
 * everything that a report holds. */
#include "runtime/system/stall.h"
#include "tests/runtime/stalls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SIGNAL 50

/* An order to an actor to stay in its handler. */
typedef struct stay {
    void (*how)(uint64_t ns, const char *part);
    uint64_t ns;
    const char *until; /* a line with this has come */
} stay;

static const domus_type stay_type = {.name = "stay", .size = sizeof(stay)};
static const domus_type other_type = {.name = "other"};
static _Atomic uint64_t stayed_ns; /* by the last one */

static void do_stay(const stay *order)
{
    uint64_t began_ns = domt_now_ns();

    order->how(order->ns, order->until);
    atomic_store(&stayed_ns, domt_now_ns() - began_ns);
}

static int on_stay(domus_stack *stack, void *self, const void *payload)
{
    const stay *order = payload;

    errno = 77;
    do_stay(order);
    return errno == 77 || order->how != domt_burn ? 0 : -EPROTO; /* who sleeps sees EINTR */
}

static int on_other(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_on rows[] = {
    {&stay_type, on_stay, 0}, {&other_type, on_other, 0}, {NULL, NULL, 0}};
static const domus_behaviour stuck = {.name = "stuck", .on = rows};
static const domus_behaviour beside = {.name = "beside", .on = rows};

static const char in_stuck[] = "in stuck, handling stay";

static domus_config config_of(uint64_t threshold_ms)
{
    domus_config config = domt_config(2);

    config.stall.threshold_ns = threshold_ms * DOMT_MS;
    config.stall.signal = SIGNAL;
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    return config;
}

/* A stall of at least 60 ms that is said with its place; it is over. */
static void one_stall(domus_system *system, domus_address address, stay order)
{
    uint64_t before = domt_profile_all(system).notices;

    domt_notice(system, address, &stay_type, &order);
    DOMT_WAIT_FOR(30, domt_profile_all(system).notices > before);
    DOMT_WAIT_FOR(30, domt_profile_all(system).stalls == domt_stalls_over(system));
}

static void is_told_once(void (*how)(uint64_t ns, const char *part))
{
    domus_config config = config_of(25);
    domus_system *system = domt_start_logging(&config);
    domus_address address = domt_spawn(system, 1, &stuck, NULL);

    one_stall(system, address, (stay){how, 60 * DOMT_MS, in_stuck});
    domt_pause_ns(100 * DOMT_MS);
    ck_assert_uint_eq(domt_lines(in_stuck, NULL), 1);
    ck_assert_uint_eq(domt_lines(in_stuck, "thread 1 is stuck for "), 1);
    ck_assert_uint_eq(domt_lines(in_stuck, "no backtrace"), 0);
    ck_assert_uint_eq(domt_lines(in_stuck, "; 0 actors wait behind it"), 1);
    ck_assert(domt_trace_shows_it());
    domus_profile profile = domt_profile(system, 1);
    ck_assert_uint_ge(profile.stalled_ns, atomic_load(&stayed_ns));
    ck_assert_uint_eq(profile.failures, 0); /* errno was kept */
    domt_end(system);
}

DOMT_TEST(handler_that_burns_is_reported_once_with_name_type_and_place)
{
    is_told_once(domt_burn);
}

DOMT_TEST(handler_that_sleeps_is_reported_once_with_name_type_and_place)
{
    is_told_once(domt_doze);
}

/* --- who waits -------------------------------------------------------------------------------- */

#define NEIGHBOURS 7
#define ARRIVE     3 /* of them by mail from outside */

static domus_address neighbours[NEIGHBOURS];
static atomic_bool is_in;

static int on_crowd(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&is_in, true);
    do_stay(payload);
    return 0;
}

static const domus_behaviour crowded = {
    .name = "crowded",
    .on = (const domus_on[]){{&stay_type, on_crowd, 0}, {NULL, NULL, 0}},
};

/* Makes the crowded one ready, then those who wait behind it. */
static int on_direct(domus_stack *stack, void *self, const void *payload)
{
    const domus_address *first = self;
    const stay order = {domt_doze, 0, "in crowded, handling stay"};

    ck_assert_int_eq(domus_notice(stack, *first, &stay_type, &order), 0);
    for (int i = 0; i < NEIGHBOURS - ARRIVE; i++)
        ck_assert_int_eq(domus_notice(stack, neighbours[i], &other_type, NULL), 0);
    return 0;
}

static const domus_behaviour director = {
    .name = "director",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&other_type, on_direct, 0}, {NULL, NULL, 0}},
};

static void counts(uint32_t ratio, uint32_t signal, const char *said)
{
    domus_config config = config_of(500);
    config.scheduler.io_ratio = ratio;
    config.stall.signal = signal;
    config.scheduler.steal.enabled = false;
    domus_system *system = domt_start_logging(&config);
    domus_address first = domt_spawn(system, 0, &crowded, NULL);
    domus_address address = domt_spawn(system, 0, &director, &first);

    for (int i = 0; i < NEIGHBOURS; i++)
        neighbours[i] = domt_spawn(system, 0, &beside, NULL);
    DOMT_WAIT_FOR(10, domt_profile(system, 0).spawns == NEIGHBOURS + 2);
    atomic_store(&is_in, false);
    domt_notice(system, address, &other_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&is_in));
    for (int i = NEIGHBOURS - ARRIVE; i < NEIGHBOURS; i++)
        domt_notice(system, neighbours[i], &other_type, NULL);
    DOMT_WAIT_FOR(30, domt_lines("in crowded, handling stay", NULL) == 1);
    ck_assert_msg(domt_lines("in crowded, handling stay", said) == 1, "%s",
                  domt_line("in crowded"));
    domt_end(system);
}

DOMT_TEST(who_waits_behind_it_is_counted)
{
    counts(50, SIGNAL, "; 7 actors wait behind it");
    counts(100, SIGNAL, "; 7 actors wait behind it");
    counts(50, 0, "; about 3 actors wait behind it");
}

/* --- how often -------------------------------------------------------------------------------- */

DOMT_TEST(two_stalls_are_two_and_each_has_its_length)
{
    domus_config config = config_of(25);
    domus_system *system = domt_start_logging(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    uint64_t sum_ns = 0;

    for (int i = 0; i < 2; i++) {
        one_stall(system, address, (stay){domt_doze, 150 * DOMT_MS, in_stuck});
        sum_ns += atomic_load(&stayed_ns);
        ck_assert_uint_eq(domt_lines(in_stuck, NULL), (uint32_t)i + 1);
        domt_pause_ns(20 * DOMT_MS);
    }
    domus_profile profile = domt_profile(system, 0);
    uint64_t long_ones = 0;
    for (int i = 7; i < DOMUS_STALL_LENGTHS; i++) /* 128 ms or more */
        long_ones += profile.stall_lengths[i];
    ck_assert_uint_eq(long_ones, 2);
    ck_assert_uint_ge(profile.stalled_ns, sum_ns);
    if (profile.stalls ==
        2) /* nothing but ours: no longer than it was, within an eighth and a tick */
        ck_assert_uint_le(profile.stalled_ns, sum_ns + sum_ns / 2);
    char table[16384];
    ck_assert_uint_lt(domus_system_profile_table(system, table, sizeof table), sizeof table);
    ck_assert_ptr_nonnull(strstr(table, "stalls of 128 ms"));
    domt_end(system);
}

/* Each goes on as soon as it was said; in one second few are asked where they are. */
DOMT_TEST(backtraces_are_bounded_and_reports_are_not)
{
    domus_config config = config_of(3);
    domus_system *system = domt_start_logging(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    uint64_t began_ns = domt_now_ns();

    for (uint32_t i = 0; i < 12; i++) {
        domt_notice(system, address, &stay_type, &(stay){domt_doze, 0, NULL});
        domt_notice(system, address, &stay_type, &(stay){domt_doze, 30 * DOMT_MS, NULL});
        DOMT_WAIT_FOR(10, domt_profile(system, 0).notices == 2 * i + 2);
    }
    DOMT_WAIT_FOR(10, domt_lines(in_stuck, NULL) >= 8); /* a monitor may be late */
    uint64_t seconds = (domt_now_ns() - began_ns) / (1000 * DOMT_MS) + 2;
    ck_assert_uint_le(domt_lines("#0 ", NULL), seconds * DOMI_STALL_TRACES_MAX);
    ck_assert_uint_ge(domt_lines("#0 ", NULL), 1);
    if (seconds == 2 && domt_lines(in_stuck, NULL) > 2 * DOMI_STALL_TRACES_MAX)
        ck_assert_uint_ge(domt_lines("too many in this second", NULL), 1);
    domt_end(system);
}

DOMT_TEST(short_runs_and_threads_at_rest_are_no_stalls)
{
    domus_config config = config_of(300);
    config.scheduler.idle.spin_ns = 400 * DOMT_MS; /* looking for work is none either */
    domus_system *system = domt_start_logging(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);

    for (uint64_t i = 1; i <= 200; i++)
        domt_notice(system, address, &stay_type, &(stay){domt_doze, 2 * DOMT_MS, NULL});
    DOMT_WAIT_FOR(30, domt_profile(system, 0).notices == 200);
    domt_pause_ns(1500 * DOMT_MS);
    ck_assert_uint_eq(domt_profile_all(system).stalls, 0);
    ck_assert_uint_eq(domt_lines("stuck", NULL), 0);
    domt_end(system);
}

DOMT_SUITE(120)
