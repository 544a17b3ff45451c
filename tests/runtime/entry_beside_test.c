/* house/family/process.c, runtime/control/stop.c: events of processes that meet other events, such
 * as messages while much work has ended, or a stop of the system while processes begin. */
#include "tests/runtime/outsiders.h"

#include <errno.h>
#include <pthread.h>

static domus_system *system_;
static _Atomic uint32_t cancels, closes, works, seen;
static _Atomic bool hold;

/* Start a system that has one entry point. */
static void start_system_with_entry(const domus_entry *entry, const domus_config *config)
{
    char text[256];

    ck_assert_int_eq(domus_system_new(config, text, sizeof text, &system_), 0);
    ck_assert_int_eq(domus_entry_add(system_, entry), 0);
    ck_assert_int_eq(domus_system_start(system_), 0);
}

/* --- work that ends beside messages ----------------------------------------------------------- */

static _Atomic uint32_t crowd_messages, crowd_works;

static int count_work(void *nothing)
{
    return (int)atomic_fetch_add(&works, 1);
}

/* A step that, at its first call, begins as much work as it may, and returns only when all of it
 * has ended and messages wait. */
static int begin_as_much_work_as_allowed(domus_stack *stack, void *self,
                                         const domus_process_event *events, uint32_t count,
                                         domus_process_output *out)
{
    ck_assert_uint_le(count, DOMUS_PROCESS_EVENTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (events[i].type == DOMUS_PROCESS_CANCEL)
            return domus_process_done(out, NULL, NULL);
        bool is_work = events[i].type == DOMUS_PROCESS_COMPLETE;
        atomic_fetch_add(is_work ? &crowd_works : &crowd_messages, 1);
    }
    if (count != 0)
        return 0;
    for (uint32_t i = 0; i < DOMUS_PROCESS_WORKS_MAX; i++)
        ck_assert_int_eq(domus_process_work(out, count_work, NULL, i), 0);
    atomic_store(&hold, true);
    while (atomic_load(&hold) || atomic_load(&works) != DOMUS_PROCESS_WORKS_MAX)
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_process crowd = {.name = "crowd", .step = begin_as_much_work_as_allowed};

/* More work has ended than one step is shown, and a message must not wait until all of it was
 * shown. */
DOMT_TEST(messages_reach_a_process_beside_much_ended_work)
{
    const domus_config config = domt_config_of_threads(1);
    const domus_entry entry = {.name = "crowd", .process = &crowd};
    domus_address address;

    start_system_with_entry(&entry, &config);
    ck_assert_int_eq(domus_outside_process_spawn(system_, "crowd", NULL, NULL, NULL, &address), 0);
    DOMT_WAIT_FOR(10, atomic_load(&hold));
    for (uint32_t i = 0; i < 100; i++)
        domt_send_notice(system_, address, &domt_number_type, &i);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(10, atomic_load(&crowd_messages) == 100 &&
                          atomic_load(&crowd_works) == DOMUS_PROCESS_WORKS_MAX);
    domt_end_system(system_);
}

/* --- a process that waits for its last event -------------------------------------------------- */

static int end_process_when_cancelled(domus_stack *stack, void *self,
                                      const domus_process_event *events, uint32_t count,
                                      domus_process_output *out)
{
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(events[i].type, DOMUS_PROCESS_CANCEL);
        atomic_fetch_add(&cancels, 1);
        ck_assert_int_eq(domus_process_done(out, NULL, NULL), 0);
    }
    return 0;
}

static void count_close_of_process(domus_stack *stack, void *self)
{
    atomic_fetch_add(&closes, 1);
}

static const domus_process waiting = {
    .name = "waiting", .step = end_process_when_cancelled, .close = count_close_of_process};

/* --- a stop beside a process that begins ------------------------------------------------------ */

/* Begin a process, which takes 100 ms, so that a stop of the system comes meanwhile. */
static int init_process_slowly(domus_stack *stack, void *self, const char *method,
                               const domus_type *type, const void *input)
{
    atomic_fetch_add(&seen, 1);
    domt_pause_ns(100 * DOMT_MS);
    return 0;
}

/* Spawn `count` processes that begin slowly, detached or in a pool of one runner, and stop the
 * system while the first one begins. Each process that has begun gets its last event. */
static void stop_while_processes_begin(bool detached, uint32_t count)
{
    const domus_pool_config pools[] = {{.name = "work", .runners = 1}};
    domus_process slow = waiting;
    const domus_entry entry = {.name = "slow", .process = &slow};
    domus_config config = domt_config_of_threads(2);
    domus_address address;

    slow.init = init_process_slowly;
    config.pools = pools;
    config.pool_count = 1;
    start_system_with_entry(&entry, &config);
    const domus_spawn_options spawn_options = {
        .detached = detached, .pool = detached ? NULL : domus_outside_pool_find(system_, "work")};
    const domus_entry_options options = {.spawn = &spawn_options};
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(
            domus_outside_process_spawn(system_, "slow", NULL, NULL, &options, &address), 0);
    DOMT_WAIT_FOR(10, atomic_load(&seen) != 0);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_ne(atomic_load(&closes), 0);
    ck_assert_uint_eq(atomic_load(&cancels), atomic_load(&closes));
    ck_assert_str_eq(domus_system_left(system_), "");
    domus_system_free(system_);
}

DOMT_TEST(process_that_begins_in_a_pool_beside_a_stop_is_told)
{
    stop_while_processes_begin(false, 1);
    atomic_store(&seen, 0);
    stop_while_processes_begin(false, 20);
}

DOMT_TEST(process_that_begins_detached_beside_a_stop_is_told)
{
    stop_while_processes_begin(true, 1);
    atomic_store(&seen, 0);
    stop_while_processes_begin(true, 20);
}

static void *spawn_processes_until_shutdown(void *nothing)
{
    domus_address address;
    int result;

    do {
        result = domus_outside_process_spawn(system_, "wait", NULL, NULL, NULL, &address);
        atomic_fetch_add(&seen, 1);
    } while (result == 0);
    ck_assert_int_eq(result, -ESHUTDOWN);
    return NULL;
}

DOMT_TEST(processes_are_spawned_beside_a_stop)
{
    const domus_config config = domt_config_of_threads(2);
    const domus_entry entry = {.name = "wait", .process = &waiting};
    pthread_t thread;

    start_system_with_entry(&entry, &config);
    ck_assert_int_eq(pthread_create(&thread, NULL, spawn_processes_until_shutdown, NULL), 0);
    DOMT_WAIT_FOR(10, atomic_load(&seen) > 10);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(atomic_load(&cancels), atomic_load(&closes));
    domus_system_free(system_);
}
/* --- a process between the last events and the stop of actors ----------------------------------
 */

static domus_address occupier;
static _Atomic bool is_spawned;

/* A process that begins slowly, and joins the list of processes only then. */
static domus_process late_process;

/* On the thread of the occupier: spawn a process there, and hold the thread for so long that the
 * system has closed spawning before the process is mounted. */
static int spawn_process_and_occupy_thread(domus_stack *stack, void *self, const void *payload)
{
    domus_address address;

    ck_assert_int_eq(domus_process_spawn(stack, &late_process, NULL, NULL, NULL, NULL, &address),
                     0);
    atomic_store(&is_spawned, true);
    domt_pause_ns(100 * DOMT_MS);
    return 0;
}

static const domus_behaviour occupying = {
    .name = "occupier",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){{&domt_number_type, spawn_process_and_occupy_thread, 0}, {0}}};

/* At the last event of this process, let the occupier spawn another one. */
static int let_occupier_spawn_and_end(domus_stack *stack, void *self,
                                      const domus_process_event *events, uint32_t count,
                                      domus_process_output *out)
{
    static const uint32_t nothing;

    if (count == 0)
        return 0;
    ck_assert_int_eq(domus_notice(stack, occupier, &domt_number_type, &nothing), 0);
    while (!atomic_load(&is_spawned))
        domt_pause_ns(DOMT_MS);
    return end_process_when_cancelled(stack, self, events, count, out);
}

DOMT_TEST(process_that_comes_behind_the_last_events_is_not_begun)
{
    const domus_process first = {
        .name = "first", .step = let_occupier_spawn_and_end, .close = count_close_of_process};
    const domus_entry entry = {.name = "first", .process = &first};
    const domus_config config = domt_config_of_threads(2);
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 0};
    const domus_entry_options options = {.spawn = &there};
    domus_address address;

    late_process = waiting;
    late_process.init = init_process_slowly;
    start_system_with_entry(&entry, &config);
    occupier = domt_spawn(system_, 1, &occupying, NULL);
    ck_assert_int_eq(domus_outside_process_spawn(system_, "first", NULL, NULL, &options, &address),
                     0);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_eq(atomic_load(&seen), 0);
    ck_assert_uint_eq(atomic_load(&cancels), 1);
    ck_assert_uint_eq(atomic_load(&closes), 1);
    domus_system_free(system_);
}

/* The process was spawned before the stop, and is mounted only behind it, because its thread was
 * occupied. */
DOMT_TEST(process_that_waits_to_be_mounted_at_a_stop_is_told)
{
    static const uint32_t nothing;
    const domus_config config = domt_config_of_threads(2);
    const domus_entry entry = {.name = "wait", .process = &waiting};

    late_process = waiting;
    start_system_with_entry(&entry, &config);
    occupier = domt_spawn(system_, 1, &occupying, NULL);
    domt_send_notice(system_, occupier, &domt_number_type, &nothing);
    DOMT_WAIT_FOR(10, atomic_load(&is_spawned));
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_eq(atomic_load(&cancels), 1);
    ck_assert_uint_eq(atomic_load(&closes), 1);
    domus_system_free(system_);
}
DOMT_SUITE(60)
