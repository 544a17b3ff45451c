/* This file tells whether all threads of a system go on (domus/watchdog.h).
 *
 * It reads what threads count and publish in any case, as the stall watch does (system/stall.c),
 * and writes only its own notes. A note says whether its thread has shown life since the period
 * began, and which beat the thread had at that begin. */
#include <domus/watchdog.h>

#include "base/memory.h"
#include "runtime/pools/runners.h"
#include "runtime/system/system.h"

#include <errno.h>

/* Nanoseconds of lateness after which a sleeping thread counts as hanging: a thread wakes at least
 * once in DOMI_PARK_CAP_NS. */
#define LATE_NS UINT64_C(1000000000)

typedef struct note {
    uint64_t beat;  /* beat of the note's thread or runner when the period began */
    bool has_shown; /* whether the note's thread or runner has shown life since the period began */
} note;

struct domus_watchdog {
    domus_system *system;
    uint64_t now_ns; /* time at which the watchdog looks now, in nanoseconds */
    note notes[];    /* a note for each thread, and then for each runner of each pool */
};

/* --- one thread, one runner ------------------------------------------------------------------- */

/* Returns whether a thread sleeps although it should have woken by now. In a simulation no thread
 * is overdue, because virtual time goes on by itself. */
static bool is_sleeping_thread_overdue(const domi_thread *thread, uint64_t now_ns)
{
    uint64_t stamp_ns = domi_counter_read(&thread->counters.stamp_ns);

    return thread->system->simulator == NULL && (stamp_ns & DOMI_STAMP_ASLEEP) != 0 &&
           stamp_ns != DOMI_STAMP_MOVING && now_ns > stamp_ns + DOMI_PARK_CAP_NS + LATE_NS;
}

/* Returns whether a thread is in a state (asleep, spinning, not begun, ended) in which it need not
 * show life. The owner changes its park word before it runs anything, and a stand-in, which holds
 * the word, is a thread with a beat of its own. */
static bool is_thread_at_rest(const domi_thread *thread, uint64_t now_ns)
{
    uint32_t park = domi_park_read_word(&thread->manager.park);

    /* the thread counts as at rest, because its loop has not begun, or has ended */
    if (domi_counter_read(&thread->counters.stamp_ns) == 0 ||
        domi_counter_read(&thread->counters.cpu_end_ns) != 0)
        return true;
    if (domi_park_is_word_of_sleeper(park))
        return !is_sleeping_thread_overdue(thread, now_ns);
    return park == DOMI_PARK_SPINNING && domi_manager_running_behaviour(&thread->manager) == NULL;
}

/* Returns whether a runner of a pool waits for a turn, or has no OS thread; it need not show life
 * then. */
static bool is_runner_at_rest(const domus_runner *runner)
{
    return !runner->begun || runner->left ||
           atomic_load_explicit((_Atomic bool *)(uintptr_t)&runner->rests, memory_order_relaxed);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Record in a note what a look at its thread or runner found. Returns 1 if that has shown no life
 * in this period, else 0. */
static uint32_t record_in_note_whether_life_was_shown(note *own, bool rests, uint64_t beat)
{
    own->has_shown = own->has_shown || rests || beat != own->beat;
    return own->has_shown ? 0 : 1;
}

/* Call `act` with the note, the rest and the beat of each thread and runner. Returns the sum of
 * what `act` returned. Called under the system's mutex, under which threads of runners begin and
 * end. */
static uint32_t call_for_each_note(domus_watchdog *watchdog,
                                   uint32_t (*act)(note *own, bool rests, uint64_t beat))
{
    domus_system *system = watchdog->system;
    note *next = watchdog->notes;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_thread *thread = &system->threads[i];
        uint64_t beat = domi_thread_count_beats(thread);
        sum += act(next++, is_thread_at_rest(thread, watchdog->now_ns), beat);
    }
    pthread_mutex_lock(&system->mutex);
    for (uint32_t i = 0; i < system->pool_count; i++) {
        const domus_pool *pool = system->pools[i];
        for (uint32_t j = 0; j < pool->count; j++) {
            uint64_t beat = domi_runner_count_turn_changes(pool->runners[j]);
            sum += act(next++, is_runner_at_rest(pool->runners[j]), beat);
        }
    }
    pthread_mutex_unlock(&system->mutex);
    return sum;
}

/* Begin a period of the watchdog in one note: take the present beat of its thread or runner. Called
 * as `act` of call_for_each_note(). */
static uint32_t begin_period_of_watchdog_in_note(note *own, bool rests, uint64_t beat)
{
    (void)rests;
    *own = (note){.beat = beat};
    return 0;
}

static uint32_t count_watched_threads_and_runners(const domus_system *system)
{
    uint32_t count = system->count;

    for (uint32_t i = 0; i < system->pool_count; i++)
        count += system->pools[i]->count;
    return count;
}

int domus_watchdog_look(domus_watchdog *watchdog)
{
    if (domi_system_is_forked(watchdog->system))
        return -ECHILD;
    watchdog->now_ns = domi_clock_now(&watchdog->system->clock);
    uint32_t silent = call_for_each_note(watchdog, record_in_note_whether_life_was_shown);
    if (silent == 0)
        (void)call_for_each_note(watchdog, begin_period_of_watchdog_in_note);
    return (int)silent;
}

int domus_watchdog_new(domus_system *system, domus_watchdog **ret_watchdog)
{
    if (domi_system_is_forked(system))
        return -ECHILD;
    if (system->stage == DOMI_STAGE_NEW)
        return -ESHUTDOWN;
    uint32_t count = count_watched_threads_and_runners(system);
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domus_watchdog *watchdog = domi_memory_new(sizeof *watchdog + count * sizeof(note));
    (void)domi_memory_set_allocator(before);
    if (watchdog == NULL)
        return -ENOMEM;
    watchdog->system = system;
    (void)call_for_each_note(watchdog, begin_period_of_watchdog_in_note);
    *ret_watchdog = watchdog;
    return 0;
}

void domus_watchdog_free(domus_watchdog *watchdog)
{
    domi_memory_free(watchdog);
}
