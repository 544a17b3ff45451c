/* runtime/system/pressure.c: while memory is short a system refuses, pauses and reports it, and
 * afterwards goes on by itself; the cgroup is made of files of the test.
 * runtime/system/pressure_report.c: the begin and the end of resets are each logged once, and the
 * line of an end has the figures since the end before. runtime/loop/trim.c: a thread that is never
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

DOMT_TEST(memory_level_ends_below_where_it_begins)
{
    static const struct {
        uint64_t used;
        uint32_t level;
    } steps[] = {
        {0, 0},   {799, 0}, {800, 1}, {799, 1}, {760, 1}, {759, 0},  {799, 0},  {899, 1},
        {900, 2}, {899, 2}, {855, 2}, {854, 1}, {899, 1}, {1000, 2}, {5000, 2}, {854, 1},
        {900, 2}, {760, 1}, {900, 2}, {759, 0}, {900, 2}, {0, 0},
    };
    const domi_marks marks = domi_memory_marks_of_limit(1000, 80, 90);
    uint32_t level = DOMUS_MEMORY_NORMAL;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        level = domi_memory_level_that_follows(level, steps[i].used, marks);
        ck_assert_msg(level == steps[i].level, "step %u: %u", (unsigned)i, level);
    }
}

/* --- a system --------------------------------------------------------------------------------- */

static domus_system *system_;

static void start_pressed_system_that_may_echo(bool enabled, bool listens)
{
    system_ = domt_pressed_start_logged(enabled);
    if (listens)
        domt_pressed_serve_echo();
}

static void start_pressed_system(bool enabled)
{
    start_pressed_system_that_may_echo(enabled, true);
}

static void end_pressed_system(void)
{
    domt_pressed_end();
}

static _Atomic uint64_t handled;
static _Atomic int heard_error;
static const domus_type note = {.name = "note"};
static const domus_type ask_it = {.name = "ask it"};
static domus_address counter;
static unsigned releases;

static int count_handled_notice(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return 0;
}

static int record_error_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&heard_error, answer->error);
    return 0;
}

/* Send an ask every 2 ms, from the handler of a timer's event, because events are handled at each
 * level of memory. */
static int ask_counter_at_each_tick(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_after(stack, 2 * DOMT_MS, &ask_it, NULL, NULL), 0);
    return domus_ask(stack, counter, &note, NULL, record_error_of_ask);
}

static int begin_ticking_in_mount(domus_stack *stack, void *self)
{
    return domus_after(stack, DOMT_MS, &ask_it, NULL, NULL);
}

static const domus_behaviour counting = {
    .name = "counting", .on = (const domus_on[]){{&note, count_handled_notice, 0}, {0}}};
static const domus_behaviour asking = {
    .name = "asking",
    .on = (const domus_on[]){{&ask_it, ask_counter_at_each_tick, 0}, {0}},
    .on_mount = begin_ticking_in_mount};

/* Set the used memory, and send notices until the system has this level: a thread that sleeps does
 * not look at memory as long as it is not short. */
static void use_memory_until_level(uint64_t percent, domus_memory_level level)
{
    domt_pressed_set_used_percent(percent);
    DOMT_WAIT_FOR(20, ((void)domus_outside_notice(system_, counter, &note, NULL),
                       domt_pressed_read_memory().level == level));
}

static void count_released_message(void *payload)
{
    releases++;
}

static const domus_type owned = {.name = "owned", .size = 8, .release = count_released_message};

DOMT_TEST(outside_senders_are_refused_while_memory_is_short)
{
    domus_group group;

    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domus_address asker = domt_spawn(system_, 1, &asking, NULL);
    ck_assert_int_eq(domus_outside_group_open(system_, "all", &group), 0);
    use_memory_until_level(85, DOMUS_MEMORY_HIGH);
    domus_profile before, after;
    ck_assert_int_eq(domus_outside_profile(system_, &before), 0);
    ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), -EBUSY);
    ck_assert_int_eq(domus_outside_ask(system_, counter, &owned, "payload", 0, NULL), -EBUSY);
    /* the payload of a refused ask was released, as after any other error */
    ck_assert_uint_eq(releases, 1);
    ck_assert_int_eq(domus_outside_publish(system_, group, &owned, "payload"), -EBUSY);
    ck_assert_uint_eq(releases, 2);
    ck_assert_int_eq(domus_outside_profile(system_, &after), 0);
    ck_assert_uint_eq(after.busy - before.busy, 3);
    ck_assert_uint_eq(after.refusals, 0);
    /* Events and messages between actors are not refused. */
    uint64_t told = atomic_load(&handled);
    DOMT_WAIT_FOR(10, atomic_load(&handled) > told + 3);
    ck_assert_int_eq(domus_outside_stop(system_, asker), 0);
    ck_assert_int_eq(domus_outside_stop_after_mail(system_, counter), 0);
    counter = domt_spawn(system_, 0, &counting, NULL);
    ck_assert_uint_ge(domt_profile_of_all_threads(system_).pressed, 1);
    domt_pressed_set_used_percent(70); /* the threads may be asleep when the used memory falls */
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().level == DOMUS_MEMORY_NORMAL);
    ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), 0);
    ck_assert_uint_eq(domt_pressed_read_memory().highs, 1);
    ck_assert_uint_eq(domt_pressed_read_memory().criticals, 0);
    end_pressed_system();
}

/* Without an acceptor, which would look every 10 ms while it pauses, no thread has a timer that
 * wakes it. */
DOMT_TEST(thread_that_sleeps_while_memory_is_short_sees_its_end)
{
    start_pressed_system_that_may_echo(true, false);
    counter = domt_spawn(system_, 0, &counting, NULL);
    use_memory_until_level(85, DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system_).pressed == 2);
    uint64_t looks =
        /* the sleeping threads look at memory every 5 ms, and not only each second by the cap of a
         * sleep */
        domt_pressed_read_memory().looks;
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().looks > looks + 40);
    domt_pressed_set_used_percent(10);
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().level == DOMUS_MEMORY_NORMAL);
    end_pressed_system();
}

DOMT_TEST(actors_are_refused_while_memory_is_critical)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    (void)domt_spawn(system_, 1, &asking, NULL);
    use_memory_until_level(85, DOMUS_MEMORY_HIGH);
    ck_assert_int_ne(atomic_load(&heard_error), -EBUSY);
    DOMT_WAIT_FOR(10,
                  domt_pressed_count_lines("memory is short: nothing is let in from outside") == 1);
    use_memory_until_level(92, DOMUS_MEMORY_CRITICAL);
    DOMT_WAIT_FOR(10, atomic_load(&heard_error) == -EBUSY);
    ck_assert_uint_ge(domt_profile_of_thread(system_, 1).busy, 1);
    /* the line about critical memory is logged at the next tick */
    DOMT_WAIT_FOR(10, domt_pressed_count_lines("memory is critical") == 1);
    use_memory_until_level(10, DOMUS_MEMORY_NORMAL);
    DOMT_WAIT_FOR(10, atomic_load(&heard_error) != -EBUSY);
    ck_assert_uint_eq(domt_pressed_read_memory().highs, 1);
    ck_assert_uint_eq(domt_pressed_read_memory().criticals, 1);
    ck_assert_uint_eq(domt_pressed_read_memory().fulls, 0);
    DOMT_WAIT_FOR(10, domt_pressed_count_lines("no longer short") == 1);
    ck_assert_uint_eq(domt_pressed_count_lines("memory is short: nothing"), 1);
    ck_assert_uint_eq(domt_pressed_count_lines("memory is critical"), 1);
    end_pressed_system();
}

DOMT_TEST(spawns_fail_with_enomem_while_memory_is_full)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_begin_large_spawns(1);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system_, 1).stops > 3);
    ck_assert_int_eq(domt_pressed_error_of_spawns(), 0);
    domt_pressed_set_used_percent(96);
    DOMT_WAIT_FOR(20, domt_pressed_error_of_spawns() == -ENOMEM);
    ck_assert_uint_eq(domt_pressed_read_memory().fulls, 1);
    domt_pressed_set_used_percent(10);
    DOMT_WAIT_FOR(20, domt_pressed_error_of_spawns() == 0);
    end_pressed_system();
}

/* Pretend that thread 1 has `by` more bytes in free slots than it has. (The spare bytes of messages
 * could not be changed like this, because a trim compares them with the slabs.) */
static void pretend_more_bytes_in_free_slots(uint64_t by)
{
    domi_slots *slots = &system_->threads[1].manager.births.slots;
    domi_spinlock_lock(&slots->lock);
    domi_counter_add(&slots->free_bytes, by);
    domi_spinlock_unlock(&slots->lock);
}

DOMT_TEST(free_bytes_of_slabs_do_not_count_as_used)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    pretend_more_bytes_in_free_slots(200 * MIB);
    domt_pressed_set_used_percent(
        95); /* 95 % of the 1000 MiB are used, but only 75 % without the free slots */
    uint64_t looks = domt_pressed_read_memory().looks;
    DOMT_WAIT_FOR(10, ((void)domus_outside_notice(system_, counter, &note, NULL),
                       domt_pressed_read_memory().looks > looks + 3));
    ck_assert_int_eq(domt_pressed_read_memory().level, DOMUS_MEMORY_NORMAL);
    /* the level `full` also counts free bytes as used */
    ck_assert_uint_eq(domt_pressed_read_memory().fulls, 1);
    pretend_more_bytes_in_free_slots(0 - 200 * MIB);
    use_memory_until_level(85, DOMUS_MEMORY_HIGH);
    end_pressed_system();
}

/* --- the end ---------------------------------------------------------------------------------- */

DOMT_TEST(a_system_that_is_short_of_memory_drains)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    int fd = domt_pressed_connect();
    domt_pressed_send_byte(fd);
    ck_assert(domt_pressed_is_byte_echoed(fd, 10000));
    use_memory_until_level(85, DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10,
                  (domt_pressed_send_byte(fd), domt_profile_of_all_threads(system_).pressed != 0));
    while (domt_pressed_is_byte_echoed(fd, 50))
        continue;
    domt_pressed_send_byte(fd);
    end_pressed_system(); /* the end of the test answers first what had come before */
    ck_assert(domt_pressed_is_byte_echoed(fd, 0));
    close(fd);
}

DOMT_TEST(memory_is_not_measured_if_the_configuration_says_so)
{
    start_pressed_system(false);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_set_used_percent(99);
    for (int i = 0; i < 20; i++) {
        domt_send_notice(system_, counter, &note, NULL);
        domt_pause_ns(DOMT_MS);
    }
    ck_assert_uint_eq(domt_pressed_read_memory().looks, 0);
    ck_assert_uint_eq(domt_pressed_read_memory().limit_bytes, 0);
    ck_assert_int_eq(domt_pressed_read_memory().level, DOMUS_MEMORY_NORMAL);
    end_pressed_system();
}

static _Atomic int detached_error;

static int notify_counter_at_each_tick(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&detached_error, domus_notice(stack, counter, &note, NULL));
    return domus_after(stack, 2 * DOMT_MS, &ask_it, NULL, NULL);
}

static const domus_behaviour trying = {
    .name = "trying",
    .on = (const domus_on[]){{&ask_it, notify_counter_at_each_tick, 0}, {0}},
    .on_mount = begin_ticking_in_mount};

DOMT_TEST(detached_actors_are_refused_while_memory_is_critical)
{
    const domus_spawn_options options = {.detached = true};
    domus_address address;

    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &trying, NULL, &options, &address), 0);
    DOMT_WAIT_FOR(10, atomic_load(&handled) > 3);
    use_memory_until_level(92, DOMUS_MEMORY_CRITICAL);
    DOMT_WAIT_FOR(5, atomic_load(&detached_error) == -EBUSY);
    use_memory_until_level(10, DOMUS_MEMORY_NORMAL);
    DOMT_WAIT_FOR(5, atomic_load(&detached_error) == 0);
    end_pressed_system();
}

/* The process was moved to a larger cgroup, and the old one does not exist any more. */
DOMT_TEST(vanished_cgroup_ends_short_memory)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    use_memory_until_level(97, DOMUS_MEMORY_CRITICAL);
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.max", "");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.current", "");
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.stat", "");
    DOMT_WAIT_FOR(5, domt_pressed_read_memory().level == DOMUS_MEMORY_NORMAL);
    ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), 0);
    end_pressed_system();
}

DOMT_TEST(system_with_full_memory_stops)
{
    const domus_spawn_options options = {.detached = true};
    domus_address address;

    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_begin_large_spawns(1);
    (void)domt_spawn(system_, 1, &asking, NULL);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &trying, NULL, &options, &address), 0);
    int fd = domt_pressed_connect();
    domt_pressed_send_byte(fd);
    ck_assert(domt_pressed_is_byte_echoed(fd, 10000));
    DOMT_WAIT_FOR(10, atomic_load(&handled) > 3); /* wait until the actors are mounted and ask */
    domt_pressed_set_used_percent(99);
    DOMT_WAIT_FOR(20, domt_pressed_error_of_spawns() == -ENOMEM);
    domt_pressed_send_byte(fd);
    end_pressed_system();
    ck_assert(domt_pressed_is_byte_echoed(fd, 0));
    close(fd);
}

/* --- reports ---------------------------------------------------------------------------------- */

#define SECOND (1000 * DOMT_MS)

static char lines[8][DOMUS_LOG_TEXT_MAX + 1];
static uint32_t count;

static void record_log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    ck_assert_uint_lt(count, 8);
    (void)snprintf(lines[count++], sizeof lines[0], "%s", text);
}

static void add_shed_connections(uint64_t connections, uint64_t bytes)
{
    domi_counter_add(&system_->pressure.shared.shed, connections);
    domi_counter_add(&system_->pressure.shared.shed_bytes, bytes);
}

static void report_shed_connections(uint64_t now_ns)
{
    domi_pressure_record_whether_shedding(&system_->pressure, now_ns);
    domi_pressure_report_in_log(system_, 0);
}

DOMT_TEST(reports_of_shed_connections_have_own_figures)
{
    const domus_hooks hooks = {.log = record_log_line};
    const domus_config config = domt_config_of_threads(1);
    char error[256];

    ck_assert_int_eq(domus_system_new_with(&config, &hooks, error, sizeof error, &system_), 0);
    count = 0;
    report_shed_connections(0);
    ck_assert_uint_eq(count, 0);
    for (uint64_t round = 0; round < 2; round++) {
        uint64_t at_ns = round * 10 * SECOND + SECOND;
        add_shed_connections(3 - round, UINT64_C(4096) << round);
        report_shed_connections(at_ns);
        report_shed_connections(at_ns + 1);
        ck_assert_uint_eq(count, round * 2 + 1);
        ck_assert(strstr(lines[round * 2], "connections are reset for want of memory") != NULL);
        report_shed_connections(at_ns + SECOND - 1);
        ck_assert_uint_eq(count, round * 2 + 1);
        report_shed_connections(at_ns + SECOND);
        report_shed_connections(at_ns + 2 * SECOND);
        ck_assert_uint_eq(count, round * 2 + 2);
    }
    ck_assert_str_eq(lines[1], "3 connections were reset for want of memory; they held 4 KiB");
    ck_assert_str_eq(lines[3], "2 connections were reset for want of memory; they held 8 KiB");
    domus_system_free(system_);
}

/* --- trims ------------------------------------------------------------------------------------ */

static const domus_type beat_it = {.name = "beat it"};

/* number of messages to ten actors, each of whose mailboxes has room for a tenth of them */
#define FLOOD 600000u

static int notify_own_actor(domus_stack *stack, void *self, const void *payload)
{
    return domus_notice(stack, domus_self(stack), &beat_it, NULL);
}

static domus_address counters[10];

static int flood_counters_at_tick(domus_stack *stack, void *self)
{
    for (uint32_t i = 0; i < FLOOD; i++)
        ck_assert_int_eq(domus_notice(stack, counters[i % 10], &note, NULL), 0);
    return domus_after(stack, DOMT_MS, &beat_it, NULL, NULL);
}

static const domus_behaviour beating = {
    .name = "beating",
    .on = (const domus_on[]){{&beat_it, notify_own_actor, 0}, {0}},
    .on_mount = flood_counters_at_tick};

DOMT_TEST(a_busy_thread_gives_back_the_memory_of_a_flood)
{
    system_ = domt_pressed_start(true, NULL);
    for (uint32_t i = 0; i < 10; i++)
        counters[i] = domt_spawn(system_, 0, &counting, NULL);
    (void)domt_spawn(system_, 0, &beating, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&handled) >= FLOOD);
    domt_pressed_set_used_percent(85);
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().level == DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system_, 0).trimmed_bytes > FLOOD * 32);
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

static int fill_mailbox_of_target(domus_stack *stack, void *self, const void *payload)
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

static const domus_behaviour busy_one = {
    .name = "busy one", .on = (const domus_on[]){{&note, fill_mailbox_of_target, 0}, {0}}};

/* All messages that filled the thread's memory are handled, but the thread is never idle. */
DOMT_TEST(a_busy_thread_at_its_bound_gives_back_what_it_does_not_use)
{
    domus_config config = domt_config_of_threads(1);

    config.memory.thread_max_bytes = (1024 * 1024);
    system_ = domt_start_system(&config);
    target = domt_spawn(system_, 0, &taking, NULL);
    domus_address one = domt_spawn(system_, 0, &busy_one, NULL);
    domt_send_notice(system_, one, &note, NULL);
    DOMT_WAIT_FOR(5, atomic_load(&has_filled));
    DOMT_WAIT_FOR(8, atomic_load(&large_error) == 0);
    ck_assert_int_eq(domus_outside_stop(system_, one), 0);
    domt_end_system(system_);
}

DOMT_SUITE(60)
