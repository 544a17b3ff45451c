/* runtime/system/stall.c: a handler that is stuck is reported once, while it is stuck, with all
 * parts of a report. runtime/system/stall_history.c, runtime/control/stalls.c: the last stalls of a
 * system can be read, with what is known of each, while it goes on and when it is over. */
#include "runtime/system/stall.h"
#include "tests/runtime/stalls.h"

#include <domus/stall.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL 50

/* The order by which a test lets an actor stay in its handler. */
typedef struct stay {
    void (*how)(uint64_t ns, const char *part);
    uint64_t ns;
    const char *until; /* text of a log line; the actor stays until a line with it was logged */
} stay;

static const domus_type stay_type = {.name = "stay", .size = sizeof(stay)};
static const domus_type other_type = {.name = "other"};
static _Atomic uint64_t stayed_ns; /* for how long the last actor has stayed in its handler */

static void stay_as_ordered(const stay *order)
{
    uint64_t began_ns = domt_now_ns();
    order->how(order->ns, order->until);
    atomic_store(&stayed_ns, domt_now_ns() - began_ns);
}

static int stay_and_check_errno(domus_stack *stack, void *self, const void *payload)
{
    const stay *order = payload;
    errno = 77;
    stay_as_ordered(order);
    /* errno must not change; the watch's signal interrupts only a sleep, with EINTR */
    return errno == 77 || order->how != domt_stay_busy ? 0 : -EPROTO;
}

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_on rows[] = {
    {&stay_type, stay_and_check_errno, 0}, {&other_type, ignore_message, 0}, {0}};
static const domus_behaviour stuck = {.name = "stuck", .on = rows};
static const domus_behaviour beside = {.name = "beside", .on = rows};

static const char in_stuck[] = "in stuck, handling stay";

static domus_config config_with_stall_threshold(uint64_t threshold_ms)
{
    domus_config config = domt_config_of_threads(2);
    config.stall.threshold_ns = threshold_ms * DOMT_MS;
    config.stall.signal = SIGNAL;
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    return config;
}

/* Let an actor stall for at least 60 ms, and check that the stall was reported with its place, and
 * is over. */
static void check_one_stall_is_reported(domus_system *system, domus_address address, stay order)
{
    uint64_t before = domt_profile_of_all_threads(system).notices;
    domt_send_notice(system, address, &stay_type, &order);
    DOMT_WAIT_FOR(30, domt_profile_of_all_threads(system).notices > before);
    DOMT_WAIT_FOR(30,
                  domt_profile_of_all_threads(system).stalls == domt_count_ended_stalls(system));
}

static void expect_stall_is_told_once(void (*how)(uint64_t ns, const char *part))
{
    domus_config config = config_with_stall_threshold(25);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 1, &stuck, NULL);

    check_one_stall_is_reported(system, address, (stay){how, 60 * DOMT_MS, in_stuck});
    domt_pause_ns(100 * DOMT_MS);
    ck_assert_uint_eq(domt_count_log_lines(in_stuck, NULL), 1);
    ck_assert_uint_eq(domt_count_log_lines(in_stuck, "thread 1 is stuck for "), 1);
    ck_assert_uint_eq(domt_count_log_lines(in_stuck, "no backtrace"), 0);
    ck_assert_uint_eq(domt_count_log_lines(in_stuck, "; 0 actors wait behind it"), 1);
    ck_assert(domt_backtrace_shows_stay());
    domus_profile profile = domt_profile_of_thread(system, 1);
    ck_assert_uint_ge(profile.stalled_ns, atomic_load(&stayed_ns));
    /* no handler has failed, so the watch has restored errno */
    ck_assert_uint_eq(profile.failures, 0);
    domt_end_system(system);
}

DOMT_TEST(handler_that_burns_is_reported_once_with_name_type_and_place)
{
    expect_stall_is_told_once(domt_stay_busy);
}

DOMT_TEST(handler_that_sleeps_is_reported_once_with_name_type_and_place)
{
    expect_stall_is_told_once(domt_stay_asleep);
}

/* --- who waits -------------------------------------------------------------------------------- */

#define NEIGHBOURS 7
#define ARRIVE     3 /* number of messages to these neighbours that come from outside */

static domus_address neighbours[NEIGHBOURS];
static atomic_bool is_in;

static int stay_among_crowd(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&is_in, true);
    stay_as_ordered(payload);
    return 0;
}

static const domus_behaviour crowded = {
    .name = "crowded", .on = (const domus_on[]){{&stay_type, stay_among_crowd, 0}, {0}}};

/* Make the crowded actor ready, and then some of its neighbours, which wait behind it. */
static int make_crowd_ready(domus_stack *stack, void *self, const void *payload)
{
    const domus_address *first = self;
    const stay order = {domt_stay_asleep, 0, "in crowded, handling stay"};
    ck_assert_int_eq(domus_notice(stack, *first, &stay_type, &order), 0);
    for (int i = 0; i < NEIGHBOURS - ARRIVE; i++)
        ck_assert_int_eq(domus_notice(stack, neighbours[i], &other_type, NULL), 0);
    return 0;
}

static const domus_behaviour director = {
    .name = "director",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&other_type, make_crowd_ready, 0}, {0}}};

static void check_counts_of_stalls(uint32_t ratio, uint32_t signal, const char *said)
{
    domus_config config = config_with_stall_threshold(500);
    config.scheduler.io_ratio = ratio;
    config.stall.signal = signal;
    config.scheduler.steal.enabled = false;
    domus_system *system = domt_start_logging_system(&config);
    domus_address first = domt_spawn(system, 0, &crowded, NULL);
    domus_address address = domt_spawn(system, 0, &director, &first);

    for (int i = 0; i < NEIGHBOURS; i++)
        neighbours[i] = domt_spawn(system, 0, &beside, NULL);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).spawns == NEIGHBOURS + 2);
    atomic_store(&is_in, false);
    domt_send_notice(system, address, &other_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&is_in));
    for (int i = NEIGHBOURS - ARRIVE; i < NEIGHBOURS; i++)
        domt_send_notice(system, neighbours[i], &other_type, NULL);
    DOMT_WAIT_FOR(30, domt_count_log_lines("in crowded, handling stay", NULL) == 1);
    ck_assert_msg(domt_count_log_lines("in crowded, handling stay", said) == 1, "%s",
                  domt_first_log_line("in crowded"));
    domt_end_system(system);
}

DOMT_TEST(actors_that_wait_behind_a_stall_are_counted)
{
    check_counts_of_stalls(50, SIGNAL, "; 7 actors wait behind it");
    check_counts_of_stalls(100, SIGNAL, "; 7 actors wait behind it");
    check_counts_of_stalls(50, 0, "; about 3 actors wait behind it");
}

/* --- how often -------------------------------------------------------------------------------- */

DOMT_TEST(two_stalls_count_apart_with_their_lengths)
{
    domus_config config = config_with_stall_threshold(25);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    uint64_t sum_ns = 0;

    for (int i = 0; i < 2; i++) {
        check_one_stall_is_reported(system, address,
                                    (stay){domt_stay_asleep, 150 * DOMT_MS, in_stuck});
        sum_ns += atomic_load(&stayed_ns);
        ck_assert_uint_eq(domt_count_log_lines(in_stuck, NULL), (uint32_t)i + 1);
        domt_pause_ns(20 * DOMT_MS);
    }
    domus_profile profile = domt_profile_of_thread(system, 0);
    uint64_t long_ones = 0;
    for (int i = 7; i < DOMUS_STALL_LENGTHS; i++) /* sum up the stalls that took 128 ms or more */
        long_ones += profile.stall_lengths[i];
    ck_assert_uint_eq(long_ones, 2);
    ck_assert_uint_ge(profile.stalled_ns, sum_ns);
    if (profile.stalls ==
        2) /* if there were only the two stalls of this test, their sum has an upper bound, too */
        ck_assert_uint_le(profile.stalled_ns, sum_ns + sum_ns / 2);
    char table[16384];
    ck_assert_uint_lt(domus_system_profile_table(system, table, sizeof table), sizeof table);
    ck_assert_ptr_nonnull(strstr(table, "stalls of 128 ms"));
    domt_end_system(system);
}

/* Each handler goes on as soon as its stall was reported. Within one second only a few of the
 * reports have a backtrace. */
DOMT_TEST(backtraces_are_bounded_and_reports_are_not)
{
    domus_config config = config_with_stall_threshold(3);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    uint64_t began_ns = domt_now_ns();

    for (uint32_t i = 0; i < 12; i++) {
        domt_send_notice(system, address, &stay_type, &(stay){domt_stay_asleep, 0, NULL});
        domt_send_notice(system, address, &stay_type,
                         &(stay){domt_stay_asleep, 30 * DOMT_MS, NULL});
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).notices == 2 * i + 2);
    }
    /* wait, because the monitor may report late */
    DOMT_WAIT_FOR(10, domt_count_log_lines(in_stuck, NULL) >= 8);
    uint64_t seconds = (domt_now_ns() - began_ns) / (1000 * DOMT_MS) + 2;
    ck_assert_uint_le(domt_count_log_lines("#0 ", NULL), seconds * DOMI_STALL_TRACES_MAX);
    ck_assert_uint_ge(domt_count_log_lines("#0 ", NULL), 1);
    if (seconds == 2 && domt_count_log_lines(in_stuck, NULL) > 2 * DOMI_STALL_TRACES_MAX)
        ck_assert_uint_ge(domt_count_log_lines("too many in this second", NULL), 1);
    domt_end_system(system);
}

DOMT_TEST(short_runs_and_threads_at_rest_are_no_stalls)
{
    domus_config config = config_with_stall_threshold(300);
    /* the threads spin for long, because a search for work is no stall */
    config.scheduler.idle.spin_ns = 400 * DOMT_MS;
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);

    for (uint64_t i = 1; i <= 200; i++)
        domt_send_notice(system, address, &stay_type, &(stay){domt_stay_asleep, 2 * DOMT_MS, NULL});
    DOMT_WAIT_FOR(30, domt_profile_of_thread(system, 0).notices == 200);
    domt_pause_ns(1500 * DOMT_MS);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).stalls, 0);
    ck_assert_uint_eq(domt_count_log_lines("stuck", NULL), 0);
    domt_end_system(system);
}

/* --- stalls that are kept --------------------------------------------------------------------- */

static const domus_type long_stay_type = {.name = "stay"};
static atomic_bool stays;
static domus_stall stalls[DOMUS_STALLS_KEPT];

static uint32_t read_kept_stalls(domus_system *system)
{
    uint32_t count = 0;
    ck_assert_int_eq(domus_stalls_read(system, stalls, DOMUS_STALLS_KEPT, &count), 0);
    return count;
}

static int burn_cpu_while_it_stays(domus_stack *stack, void *self, const void *payload)
{
    while (atomic_load(&stays))
        domt_stay_busy(DOMT_MS, NULL);
    return 0;
}

static const domus_behaviour held = {
    .name = "stuck", .on = (const domus_on[]){{&long_stay_type, burn_cpu_while_it_stays, 0}, {0}}};

static bool is_function_in_backtrace_of_stall(const domus_stall *stall, const char *function)
{
    for (uint32_t i = 0; i < stall->frame_count; i++)
        if (strcmp(stall->frames[i], function) == 0)
            return true;
    return false;
}

static uint64_t time_of_day_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

DOMT_TEST(a_stall_is_seen_while_it_lasts_and_afterwards)
{
    domus_config config = domt_config_of_threads(2);

    config.stall.threshold_ns = 10 * DOMT_MS;
    config.stall.signal = SIGNAL;
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 1, &held, NULL);
    ck_assert_uint_eq(read_kept_stalls(system), 0);

    uint64_t before_ns = domt_now_ns(), before_utc_ns = time_of_day_ns();
    atomic_store(&stays, true);
    domt_send_notice(system, address, &long_stay_type, NULL);
    DOMT_WAIT_FOR(20, read_kept_stalls(system) == 1);
    ck_assert(!stalls[0].is_over);
    ck_assert_uint_ge(stalls[0].length_ns, 10 * DOMT_MS);
    uint64_t length_ns = stalls[0].length_ns;
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(read_kept_stalls(system), 1);
    ck_assert_uint_ge(stalls[0].length_ns, length_ns + 5 * DOMT_MS);
    ck_assert_str_eq(stalls[0].behaviour, "stuck");
    ck_assert_str_eq(stalls[0].type, "stay");
    ck_assert_str_eq(stalls[0].pool, "");
    ck_assert_uint_eq(stalls[0].index, 1);
    ck_assert(
        /* this function is not static, because dladdr() finds no static names */
        is_function_in_backtrace_of_stall(&stalls[0], "burn_cpu_while_it_stays"));

    atomic_store(&stays, false);
    DOMT_WAIT_FOR(20, read_kept_stalls(system) == 1 && stalls[0].is_over);
    length_ns = stalls[0].length_ns;
    ck_assert_uint_le(length_ns, domt_now_ns() - before_ns + 50 * DOMT_MS);
    /* A look of the stall watch records the begin of the stall, on both clocks. */
    ck_assert_uint_ge(stalls[0].began_ns, before_ns - 50 * DOMT_MS);
    ck_assert_uint_le(stalls[0].began_ns, domt_now_ns());
    int64_t apart = (int64_t)(stalls[0].began_ns - before_ns) -
                    (int64_t)(stalls[0].began_utc_ns - before_utc_ns);
    ck_assert_int_lt(apart < 0 ? -apart : apart, (int64_t)(50 * DOMT_MS));
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(read_kept_stalls(system), 1);
    ck_assert_uint_eq(stalls[0].length_ns, length_ns);
    domt_end_system(system);
}

/* --- the ring --------------------------------------------------------------------------------- */

static domus_system *make_system_not_started(void)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    return system;
}

static uint64_t add_stall_to_history(domus_system *system, uint32_t index)
{
    domi_stall_record record = {.began_ns = domi_clock_now(&system->clock), .index = index};
    return domi_stall_history_add_stall(&system->stall_history, &system->clock, &record);
}

DOMT_TEST(last_stalls_are_kept_oldest_first)
{
    domus_system *system = make_system_not_started();
    uint32_t count = 0;

    for (uint32_t i = 1; i <= DOMUS_STALLS_KEPT + 4; i++) {
        ck_assert_uint_eq(add_stall_to_history(system, i), i);
        ck_assert_uint_eq(read_kept_stalls(system), i < DOMUS_STALLS_KEPT ? i : DOMUS_STALLS_KEPT);
        ck_assert_uint_eq(stalls[0].index, i < DOMUS_STALLS_KEPT ? 1 : i - DOMUS_STALLS_KEPT + 1);
    }
    for (uint32_t i = 0; i < DOMUS_STALLS_KEPT; i++)
        ck_assert_uint_eq(stalls[i].index, i + 5);
    ck_assert_int_eq(domus_stalls_read(system, stalls, 2, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(stalls[0].index, DOMUS_STALLS_KEPT + 3);
    ck_assert_int_eq(domus_stalls_read(system, NULL, 0, &count), 0);
    ck_assert_uint_eq(count, 0);
    domus_system_free(system);
}

/* The end of a stall must not be written to a newer stall that has taken its place in the list. */
DOMT_TEST(end_of_a_stall_is_not_recorded_for_a_newer_one)
{
    domus_system *system = make_system_not_started();
    uint64_t first = add_stall_to_history(system, 1);

    domi_stall_history_end_stall(&system->stall_history, 0, 7);
    ck_assert_uint_eq(read_kept_stalls(system), 1);
    ck_assert(!stalls[0].is_over);
    domi_stall_history_end_stall(&system->stall_history, first, 7);
    ck_assert_uint_eq(read_kept_stalls(system), 1);
    ck_assert(stalls[0].is_over);
    ck_assert_uint_eq(stalls[0].length_ns, 7);
    for (uint32_t i = 0; i < DOMUS_STALLS_KEPT; i++)
        (void)add_stall_to_history(system, i);
    domi_stall_history_end_stall(&system->stall_history, first, 7);
    ck_assert_uint_eq(read_kept_stalls(system), DOMUS_STALLS_KEPT);
    for (uint32_t i = 0; i < DOMUS_STALLS_KEPT; i++)
        ck_assert(!stalls[i].is_over);
    domus_system_free(system);
}

DOMT_TEST(long_names_and_deep_stacks_are_cut)
{
    static domi_backtrace trace = {.first = 3};
    domus_system *system = make_system_not_started();
    domi_stall_record record = {.index = 1};
    char name[200];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    trace.count = DOMI_BACKTRACE_FRAMES_MAX + DOMI_BACKTRACE_OWN_MAX;
    for (uint32_t i = 0; i < trace.count; i++)
        trace.frames[i] = (void *)(uintptr_t)(i + 1);
    domi_stall_record_set_name(record.behaviour, name);
    domi_stall_record_set_frames(&record, &trace);
    ck_assert_ptr_eq(record.frames[0], (void *)(uintptr_t)4);
    (void)domi_stall_history_add_stall(&system->stall_history, &system->clock, &record);
    ck_assert_uint_eq(read_kept_stalls(system), 1);
    ck_assert_uint_eq(strlen(stalls[0].behaviour), DOMUS_STALL_NAME_SIZE - 1);
    ck_assert_uint_eq(stalls[0].frame_count, DOMUS_STALL_FRAMES_MAX);
    ck_assert_str_eq(stalls[0].frames[0], "code without a module");
    trace.count = 2; /* the backtrace has fewer frames than belong to the handler */
    domi_stall_record_set_frames(&record, &trace);
    ck_assert_uint_eq(record.count, 0);
    domus_system_free(system);
}

DOMT_TEST(forked_child_reads_no_stalls)
{
    domus_system *system = make_system_not_started();
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        uint32_t count;
        _exit(domus_stalls_read(system, stalls, 1, &count) == -ECHILD ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    domus_system_free(system);
}

DOMT_SUITE(120)
