/* runtime/system/pressure.c: while memory is short a system refuses, pauses and reports it, and
 * goes on by itself afterwards. The cgroup is made of files of the test.
 * runtime/system/pressure_report.c: the begin and the end of resets are logged once each, and the
 * line of an end has the figures since the last one. runtime/loop/trim.c: a thread that is never
 * idle gives memory back all the same. */
#include "runtime/system/budget.h"
#include "runtime/system/logs.h"
#include "runtime/system/pressure.h"
#include "runtime/system/system.h"
#include "tests/runtime/pressed.h"
#include "tests/runtime/running.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB UINT64_C(1048576)

/* --- the rule --------------------------------------------------------------------------------- */

DOMT_TEST(a_level_ends_below_where_it_begins)
{
    static const struct {
        uint64_t used;
        uint32_t level;
    } steps[] = {
        {0, 0},   {799, 0}, {800, 1}, {799, 1}, {760, 1}, {759, 0},  {799, 0},  {899, 1},
        {900, 2}, {899, 2}, {855, 2}, {854, 1}, {899, 1}, {1000, 2}, {5000, 2}, {854, 1},
        {900, 2}, {760, 1}, {900, 2}, {759, 0}, {900, 2}, {0, 0},
    };
    const domi_marks marks = domi_marks_of(1000, 80, 90);
    uint32_t level = DOMUS_MEMORY_NORMAL;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        level = domi_level_after(level, steps[i].used, marks);
        ck_assert_msg(level == steps[i].level, "step %u: %u", (unsigned)i, level);
    }
}

/* --- a system --------------------------------------------------------------------------------- */

static domus_system *system_;

static void begin_with(bool enabled, bool listens)
{
    system_ = domt_pressed_start_logged(enabled);
    if (listens)
        domt_pressed_serve();
}

static void start_test(bool enabled)
{
    begin_with(enabled, true);
}

static void end_test(void)
{
    domt_pressed_end();
}

static _Atomic uint64_t handled;
static _Atomic int heard_error;
static const domus_type note = {.name = "note"};
static const domus_type ask_it = {.name = "ask it"};
static domus_address counter;
static unsigned releases;

static int count_one(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return 0;
}

static int record_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&heard_error, answer->error);
    return 0;
}

/* Send an ask every 2 ms, from the handler of an event, because events pass at each level. */
static int ask_counter(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_after(stack, 2 * DOMT_MS, &ask_it, NULL, NULL), 0);
    return domus_ask(stack, counter, &note, NULL, record_error);
}

static int begin_asking(domus_stack *stack, void *self)
{
    return domus_after(stack, DOMT_MS, &ask_it, NULL, NULL);
}

static const domus_behaviour counting = {.name = "counting",
                                         .on = (const domus_on[]){{&note, count_one, 0}, {0}}};
static const domus_behaviour asking = {.name = "asking",
                                       .on = (const domus_on[]){{&ask_it, ask_counter, 0}, {0}},
                                       .on_mount = begin_asking};

/* The notices keep the thread awake: one that sleeps does not look at memory as long as it is not
 * short. */
static void reach_level(uint64_t percent, domus_memory_level level)
{
    domt_pressed_use(percent);
    DOMT_WAIT_FOR(20, ((void)domus_outside_notice(system_, counter, &note, NULL),
                       domt_pressed_memory().level == level));
}

static void release(void *payload)
{
    releases++;
}

static const domus_type owned = {.name = "owned", .size = 8, .release = release};

DOMT_TEST(outside_senders_are_refused_while_memory_is_short)
{
    domus_group group;

    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domus_address asker = domt_spawn(system_, 1, &asking, NULL);
    ck_assert_int_eq(domus_outside_group_open(system_, "all", &group), 0);
    reach_level(85, DOMUS_MEMORY_HIGH);
    domus_profile before, after;
    ck_assert_int_eq(domus_outside_profile(system_, &before), 0);
    ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), -EBUSY);
    ck_assert_int_eq(domus_outside_ask(system_, counter, &owned, "payload", 0, NULL), -EBUSY);
    ck_assert_uint_eq(releases, 1); /* released, as with any other error */
    ck_assert_int_eq(domus_outside_publish(system_, group, &owned, "payload"), -EBUSY);
    ck_assert_uint_eq(releases, 2);
    ck_assert_int_eq(domus_outside_profile(system_, &after), 0);
    ck_assert_uint_eq(after.busy - before.busy, 3);
    ck_assert_uint_eq(after.refusals, 0);
    /* Events are not refused, nor are messages between actors. */
    uint64_t told = atomic_load(&handled);
    DOMT_WAIT_FOR(10, atomic_load(&handled) > told + 3);
    ck_assert_int_eq(domus_outside_stop(system_, asker), 0);
    ck_assert_int_eq(domus_outside_stop_after_mail(system_, counter), 0);
    counter = domt_spawn(system_, 0, &counting, NULL);
    ck_assert_uint_ge(domt_profile_all(system_).pressed, 1);
    domt_pressed_use(70); /* each thread may be asleep */
    DOMT_WAIT_FOR(10, domt_pressed_memory().level == DOMUS_MEMORY_NORMAL);
    ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), 0);
    ck_assert_uint_eq(domt_pressed_memory().highs, 1);
    ck_assert_uint_eq(domt_pressed_memory().criticals, 0);
    end_test();
}

/* An acceptor that has paused looks every 10 ms; without an acceptor no thread has a timer. */
DOMT_TEST(thread_that_sleeps_while_memory_is_short_sees_its_end)
{
    begin_with(true, false);
    counter = domt_spawn(system_, 0, &counting, NULL);
    reach_level(85, DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10, domt_profile_all(system_).pressed == 2);
    uint64_t looks =
        /* a look every 5 ms, not one each second by the cap of a sleep */
        domt_pressed_memory().looks;
    DOMT_WAIT_FOR(10, domt_pressed_memory().looks > looks + 40);
    domt_pressed_use(10);
    DOMT_WAIT_FOR(10, domt_pressed_memory().level == DOMUS_MEMORY_NORMAL);
    end_test();
}

DOMT_TEST(actors_are_refused_while_memory_is_critical)
{
    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    (void)domt_spawn(system_, 1, &asking, NULL);
    reach_level(85, DOMUS_MEMORY_HIGH);
    ck_assert_int_ne(atomic_load(&heard_error), -EBUSY);
    DOMT_WAIT_FOR(10, domt_pressed_lines("memory is short: nothing is let in from outside") == 1);
    reach_level(92, DOMUS_MEMORY_CRITICAL);
    DOMT_WAIT_FOR(10, atomic_load(&heard_error) == -EBUSY);
    ck_assert_uint_ge(domt_profile(system_, 1).busy, 1);
    /* the line is logged at the next tick */
    DOMT_WAIT_FOR(10, domt_pressed_lines("memory is critical") == 1);
    reach_level(10, DOMUS_MEMORY_NORMAL);
    DOMT_WAIT_FOR(10, atomic_load(&heard_error) != -EBUSY);
    ck_assert_uint_eq(domt_pressed_memory().highs, 1);
    ck_assert_uint_eq(domt_pressed_memory().criticals, 1);
    ck_assert_uint_eq(domt_pressed_memory().fulls, 0);
    DOMT_WAIT_FOR(10, domt_pressed_lines("no longer short") == 1);
    ck_assert_uint_eq(domt_pressed_lines("memory is short: nothing"), 1);
    ck_assert_uint_eq(domt_pressed_lines("memory is critical"), 1);
    end_test();
}

DOMT_TEST(verbs_that_take_memory_fail_when_there_is_hardly_any)
{
    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_spawn_large(1);
    DOMT_WAIT_FOR(10, domt_profile(system_, 1).stops > 3);
    ck_assert_int_eq(domt_pressed_spawn_error(), 0);
    domt_pressed_use(96);
    DOMT_WAIT_FOR(20, domt_pressed_spawn_error() == -ENOMEM);
    ck_assert_uint_eq(domt_pressed_memory().fulls, 1);
    domt_pressed_use(10);
    DOMT_WAIT_FOR(20, domt_pressed_spawn_error() == 0);
    end_test();
}

/* Report `by` more bytes in free slots of thread 1 than there are. (Spare bytes of messages are
 * compared with the slabs at each step of a trim, so those cannot be changed.) */
static void pretend_free_slots(uint64_t by)
{
    domi_slots *slots = &system_->threads[1].manager.births.slots;
    domi_spinlock_lock(&slots->lock);
    domi_counter_add(&slots->free_bytes, by);
    domi_spinlock_unlock(&slots->lock);
}

DOMT_TEST(free_bytes_of_slabs_do_not_count_as_used)
{
    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    pretend_free_slots(200 * MIB);
    domt_pressed_use(95); /* of 1000 MiB; without the slots 75 % are used */
    uint64_t looks = domt_pressed_memory().looks;
    DOMT_WAIT_FOR(10, ((void)domus_outside_notice(system_, counter, &note, NULL),
                       domt_pressed_memory().looks > looks + 3));
    ck_assert_int_eq(domt_pressed_memory().level, DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domt_pressed_memory().fulls, 1); /* for `full` the free bytes count as used */
    pretend_free_slots(0 - 200 * MIB);
    reach_level(85, DOMUS_MEMORY_HIGH);
    end_test();
}

/* --- the end ---------------------------------------------------------------------------------- */

DOMT_TEST(a_system_that_is_short_of_memory_drains)
{
    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    int fd = domt_pressed_connect();
    domt_pressed_say(fd);
    ck_assert(domt_pressed_hears(fd, 10000));
    reach_level(85, DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10, (domt_pressed_say(fd), domt_profile_all(system_).pressed != 0));
    while (domt_pressed_hears(fd, 50))
        continue;
    domt_pressed_say(fd);
    end_test(); /* the end answers first what had come */
    ck_assert(domt_pressed_hears(fd, 0));
    close(fd);
}

DOMT_TEST(memory_is_not_measured_if_the_configuration_says_so)
{
    start_test(false);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_use(99);
    for (int i = 0; i < 20; i++) {
        domt_notice(system_, counter, &note, NULL);
        domt_pause_ns(DOMT_MS);
    }
    ck_assert_uint_eq(domt_pressed_memory().looks, 0);
    ck_assert_uint_eq(domt_pressed_memory().limit_bytes, 0);
    ck_assert_int_eq(domt_pressed_memory().level, DOMUS_MEMORY_NORMAL);
    end_test();
}

static _Atomic int detached_error;

static int try_it(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&detached_error, domus_notice(stack, counter, &note, NULL));
    return domus_after(stack, 2 * DOMT_MS, &ask_it, NULL, NULL);
}

static const domus_behaviour trying = {.name = "trying",
                                       .on = (const domus_on[]){{&ask_it, try_it, 0}, {0}},
                                       .on_mount = begin_asking};

DOMT_TEST(detached_actors_are_refused_while_memory_is_critical)
{
    const domus_spawn_options options = {.detached = true};
    domus_address address;

    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &trying, NULL, &options, &address), 0);
    DOMT_WAIT_FOR(10, atomic_load(&handled) > 3);
    reach_level(92, DOMUS_MEMORY_CRITICAL);
    DOMT_WAIT_FOR(5, atomic_load(&detached_error) == -EBUSY);
    reach_level(10, DOMUS_MEMORY_NORMAL);
    DOMT_WAIT_FOR(5, atomic_load(&detached_error) == 0);
    end_test();
}

/* The process was moved to a larger cgroup, and its old one is gone. */
DOMT_TEST(a_cgroup_that_tells_no_more_keeps_nobody_shut)
{
    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    reach_level(97, DOMUS_MEMORY_CRITICAL);
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.max", "");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.current", "");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.stat", "");
    DOMT_WAIT_FOR(5, domt_pressed_memory().level == DOMUS_MEMORY_NORMAL);
    ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), 0);
    end_test();
}

DOMT_TEST(a_system_that_is_full_ends)
{
    const domus_spawn_options options = {.detached = true};
    domus_address address;

    start_test(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_spawn_large(1);
    (void)domt_spawn(system_, 1, &asking, NULL);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &trying, NULL, &options, &address), 0);
    int fd = domt_pressed_connect();
    domt_pressed_say(fd);
    ck_assert(domt_pressed_hears(fd, 10000));
    DOMT_WAIT_FOR(10, atomic_load(&handled) > 3); /* the actors ask, and are mounted */
    domt_pressed_use(99);
    DOMT_WAIT_FOR(20, domt_pressed_spawn_error() == -ENOMEM);
    domt_pressed_say(fd);
    end_test();
    ck_assert(domt_pressed_hears(fd, 0));
    close(fd);
}

/* --- reports ---------------------------------------------------------------------------------- */

#define SECOND (1000 * DOMT_MS)

static char lines[8][DOMUS_LOG_TEXT_MAX + 1];
static uint32_t count;

static void record_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    ck_assert_uint_lt(count, 8);
    (void)snprintf(lines[count++], sizeof lines[0], "%s", text);
}

static void add_shed(uint64_t connections, uint64_t bytes)
{
    domi_counter_add(&system_->pressure.shared.shed, connections);
    domi_counter_add(&system_->pressure.shared.shed_bytes, bytes);
}

static void report_shed(uint64_t now_ns)
{
    domi_pressure_record_shed(&system_->pressure, now_ns);
    domi_pressure_report(system_, 0);
}

DOMT_TEST(each_end_of_resets_has_its_own_figures)
{
    const domus_hooks hooks = {.log = record_line};
    const domus_config config = domt_config(1);
    char error[256];

    ck_assert_int_eq(domus_system_new_with(&config, &hooks, error, sizeof error, &system_), 0);
    count = 0;
    report_shed(0);
    ck_assert_uint_eq(count, 0);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t at_ns = round * 10 * SECOND + SECOND;
        add_shed(3 - round, UINT64_C(4096) << round);
        report_shed(at_ns);
        report_shed(at_ns + 1);
        ck_assert_uint_eq(count, round * 2 + 1);
        ck_assert(strstr(lines[round * 2], "connections are reset for want of memory") != NULL);
        report_shed(at_ns + SECOND - 1);
        ck_assert_uint_eq(count, round * 2 + 1);
        report_shed(at_ns + SECOND);
        report_shed(at_ns + 2 * SECOND);
        ck_assert_uint_eq(count, round * 2 + 2);
    }
    ck_assert_str_eq(lines[1], "3 connections were reset for want of memory; they held 4 KiB");
    ck_assert_str_eq(lines[3], "2 connections were reset for want of memory; they held 8 KiB");
    domus_system_free(system_);
}

/* --- trims ------------------------------------------------------------------------------------ */

static const domus_type beat_it = {.name = "beat it"};

#define FLOOD 600000u /* messages to ten actors: each has room for a tenth of them */

static int notice_oneself(domus_stack *stack, void *self, const void *payload)
{
    return domus_notice(stack, domus_self(stack), &beat_it, NULL);
}

static domus_address counters[10];

static int flood_once(domus_stack *stack, void *self)
{
    for (uint32_t i = 0; i < FLOOD; i++)
        ck_assert_int_eq(domus_notice(stack, counters[i % 10], &note, NULL), 0);
    return domus_after(stack, DOMT_MS, &beat_it, NULL, NULL);
}

static const domus_behaviour beating = {.name = "beating",
                                        .on =
                                            (const domus_on[]){{&beat_it, notice_oneself, 0}, {0}},
                                        .on_mount = flood_once};

DOMT_TEST(a_busy_thread_gives_back_the_memory_of_a_flood)
{
    system_ = domt_pressed_start(true, NULL);
    for (uint32_t i = 0; i < 10; i++)
        counters[i] = domt_spawn(system_, 0, &counting, NULL);
    (void)domt_spawn(system_, 0, &beating, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&handled) >= FLOOD);
    domt_pressed_use(85);
    DOMT_WAIT_FOR(10, domt_pressed_memory().level == DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10, domt_profile(system_, 0).trimmed_bytes > FLOOD * 32);
    domt_pressed_end();
}

static domus_address target;
static _Atomic int large_error;
static _Atomic bool has_filled;
static const domus_type small_one = {.name = "small one", .size = 8};
static const domus_type large_one = {.name = "large one", .size = 200};

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_behaviour taking = {
    .name = "taking",
    .on =
        (const domus_on[]){{&small_one, ignore_message, 0}, {&large_one, ignore_message, 0}, {0}}};

static int go_on(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[200];

    int result = domus_notice(stack, domus_self(stack), &note, NULL);
    if (!atomic_load(&has_filled)) {
        while (domus_notice(stack, target, &small_one, bytes) == 0)
            continue;
        atomic_store(&has_filled, true);
    }
    atomic_store(&large_error, domus_notice(stack, target, &large_one, bytes));
    return result == 0 ? 0 : domus_after(stack, DOMT_MS, &note, NULL, NULL);
}

static const domus_behaviour busy_one = {.name = "busy one",
                                         .on = (const domus_on[]){{&note, go_on, 0}, {0}}};

/* All messages that filled the thread's memory are handled, but the thread is never idle. */
DOMT_TEST(a_busy_thread_at_its_bound_gives_back_what_it_does_not_use)
{
    domus_config config = domt_config(1);

    config.memory.thread_max_bytes = (1024 * 1024);
    system_ = domt_start(&config);
    target = domt_spawn(system_, 0, &taking, NULL);
    domus_address one = domt_spawn(system_, 0, &busy_one, NULL);
    domt_notice(system_, one, &note, NULL);
    DOMT_WAIT_FOR(5, atomic_load(&has_filled));
    DOMT_WAIT_FOR(8, atomic_load(&large_error) == 0);
    ck_assert_int_eq(domus_outside_stop(system_, one), 0);
    domt_end(system_);
}

DOMT_SUITE(60)
