/* This file begins and ends the spares of pools; runners.h says when. Only the monitor's thread
 * calls these functions. */
#include "runtime/pools/runners.h"

#include "house/dispatch/pooled_turn.h"
#include "house/message/types.h"
#include "runtime/system/logs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIFE_BEAT_DEFAULT_NS UINT64_C(5000000)
/* number of life-beats in a row for which too many runners of the pool must be at work before
 * spares end */
#define CROWDED_BEATS 20u
#define MS            UINT64_C(1000000)

/* The findings of one look of the monitor at the runners of a pool. */
typedef struct look {
    uint64_t now_ns;
    uint32_t at_work; /* number of runners that have given a life-beat, or rest */
    uint32_t resting; /* number of those runners in `at_work` that rest */
    /* number of runners that are in a turn and have given no life-beat for too long */
    uint32_t blocked;
    uint64_t blocked_ns;         /* nanoseconds for which the runner `longest` has been blocked */
    const domus_runner *longest; /* runner of the pool that has been blocked longest */
    /* number of the pool's actors that wait for a turn, plus 1 if a timer is due */
    uint64_t waiting;
} look;

static uint64_t life_beat_time_of_pool(const domus_pool *pool)
{
    uint64_t wanted_ns = pool->settings->life_beat_ns;

    return wanted_ns != 0 ? wanted_ns : LIFE_BEAT_DEFAULT_NS;
}

/* --- looks ------------------------------------------------------------------------------------ */

static bool is_runner_resting(const domus_runner *runner)
{
    /* seq_cst: pairs with the store in end_rest_of_runner(): a monitor that falls asleep sees here
     * that the runner goes on, or the runner sees ASLEEP and wakes it. */
    return atomic_load_explicit((_Atomic bool *)(uintptr_t)&runner->rests, memory_order_seq_cst);
}

static void look_at_life_beats_of_runner(domus_runner *runner, uint64_t most_ns, look *found)
{
    domi_pulse *pulse = &runner->pulse;
    uint64_t beat = domi_runner_count_life_beats(runner);
    bool is_resting = is_runner_resting(runner);

    if (is_resting || beat != pulse->beat) {
        domi_runner_end_stall(runner, found->now_ns);
        *pulse = (domi_pulse){.beat = beat, .beat_ns = found->now_ns};
    } else {
        domi_runner_look_for_stall(runner, found->now_ns);
    }
    uint64_t since_ns = found->now_ns - pulse->beat_ns;
    if (since_ns < most_ns) {
        found->at_work++;
        found->resting += is_resting;
        return;
    }
    found->blocked++;
    if (since_ns >= found->blocked_ns) {
        found->blocked_ns = since_ns;
        found->longest = runner;
    }
}

static look look_at_runners_of_pool(domus_pool *pool)
{
    look found = {.now_ns = domi_clock_now(&pool->system->clock)};

    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->runners[i]->begun)
            look_at_life_beats_of_runner(pool->runners[i], life_beat_time_of_pool(pool), &found);
    }
    if (found.blocked != 0)
        found.waiting = domi_pool_count_queued_jobs(pool) +
                        (domi_pooled_next_due_ns(&pool->pooled) <= found.now_ns ? 1 : 0);
    return found;
}

/* --- a spare begins --------------------------------------------------------------------------- */

static void log_that_pool_is_blocked(const domus_pool *pool, const look *found, const char *then)
{
    domi_log_line(pool->system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                  "pool %s: all %" PRIu32 " runners are blocked, one for %" PRIu64
                  " ms in %.64s, and %" PRIu64 " actors wait; %s",
                  pool->settings->name, found->blocked, found->blocked_ns / MS,
                  domi_behaviour_name(domi_manager_running_behaviour(&found->longest->manager)),
                  found->waiting, then);
}

/* Returns a spare of the pool whose thread has ended, or was never made; NULL: there is none. */
static domus_runner *find_idle_spare(domus_pool *pool)
{
    for (uint32_t i = pool->usual; i < pool->count; i++) {
        if (!pool->runners[i]->begun)
            return pool->runners[i];
    }
    return NULL;
}

static void begin_spare_if_any_is_idle(domus_pool *pool, const look *found)
{
    domi_watched *watched = &pool->watched;
    domus_runner *spare = find_idle_spare(pool);
    char text[64];

    if (spare == NULL) {
        if (!watched->told_full && pool->count > pool->usual)
            log_that_pool_is_blocked(pool, found, "there are no more spares");
        watched->told_full = true;
        return;
    }
    spare->pulse =
        (domi_pulse){.beat = domi_runner_count_life_beats(spare), .beat_ns = found->now_ns};
    atomic_store_explicit(&spare->retires, false, memory_order_relaxed);
    atomic_store_explicit(&spare->rests, false, memory_order_relaxed);
    pthread_mutex_lock(&pool->system->mutex);
    int result = domi_runner_start_thread(spare);
    pthread_mutex_unlock(&pool->system->mutex);
    if (result != 0) {
        snprintf(text, sizeof text, "a spare cannot begin: %.32s", strerror(-result));
        if (!watched->told_refused)
            log_that_pool_is_blocked(pool, found, text);
        watched->told_refused = true;
        return;
    }
    if (watched->spares++ == 0)
        log_that_pool_is_blocked(pool, found, "a spare begins");
}

/* --- a spare ends ----------------------------------------------------------------------------- */

/* Join the threads of the spares that have left their loops. */
static void join_spares_that_have_ended(domus_pool *pool)
{
    domus_system *system = pool->system;

    for (uint32_t i = pool->usual; i < pool->count && pool->watched.spares != 0; i++) {
        domus_runner *spare = pool->runners[i];
        if (!spare->begun)
            continue;
        pthread_mutex_lock(&system->mutex);
        bool left = spare->left;
        if (left) {
            spare->begun = spare->left = false;
            system->runners_begun--;
            system->runners_left--;
        }
        pthread_mutex_unlock(&system->mutex);
        if (!left)
            continue;
        /* This wait is short, because the spare has left its loop and only has to unlock the
         * mutex. */
        pthread_join(spare->pthread, NULL);
        pool->watched.spares--;
    }
}

/* Tell up to `most` spares of the pool to end. */
static void tell_spares_to_end(domus_pool *pool, uint32_t most)
{
    for (uint32_t i = pool->count; i > pool->usual && most != 0; i--) {
        domus_runner *spare = pool->runners[i - 1];
        if (!spare->begun || atomic_load_explicit(&spare->retires, memory_order_relaxed))
            continue;
        /* seq_cst, as in domi_pool_call_all_runners(): a spare that is about to wait reads `called`
         * after it has said so. */
        atomic_store_explicit(&spare->retires, true, memory_order_relaxed);
        atomic_store_explicit(&spare->called, true, memory_order_seq_cst);
        most--;
    }
    pool->policy->call(pool);
}

static void retire_spares_if_too_many_work(domus_pool *pool, const look *found)
{
    domi_watched *watched = &pool->watched;

    if (watched->spares == 0 || found->at_work <= pool->usual)
        watched->crowded_ns = 0;
    else if (watched->crowded_ns == 0)
        watched->crowded_ns = found->now_ns;
    else if (found->now_ns - watched->crowded_ns >= CROWDED_BEATS * life_beat_time_of_pool(pool))
        tell_spares_to_end(pool, found->at_work - pool->usual);
}

/* --- the watch -------------------------------------------------------------------------------- */

static void look_at_pool_and_begin_spare(domus_pool *pool)
{
    domi_watched *watched = &pool->watched;

    join_spares_that_have_ended(pool);
    look found = look_at_runners_of_pool(pool);
    if (watched->spares == 0 && found.blocked == 0)
        watched->told_full = watched->told_refused = false;
    if (found.waiting != 0) {
        if (found.at_work == 0)
            begin_spare_if_any_is_idle(pool, &found);
        /* A blocked runner may have put jobs into its own queue, which wakes no other runner, so
         * the runners that rest are called. */
        else if (found.resting != 0)
            domi_pool_call_all_runners(pool);
    }
    retire_spares_if_too_many_work(pool, &found);
}

static uint64_t look_at_all_pools(domus_system *system)
{
    uint64_t next_ns = UINT64_MAX;

    for (uint32_t i = 0; i < system->pool_count; i++) {
        uint64_t often_ns = life_beat_time_of_pool(system->pools[i]) / 2;

        look_at_pool_and_begin_spare(system->pools[i]);
        next_ns = often_ns < next_ns ? often_ns : next_ns;
    }
    return next_ns;
}

static bool is_any_pool_active(const domus_system *system)
{
    for (uint32_t i = 0; i < system->pool_count; i++) {
        const domus_pool *pool = system->pools[i];
        if (pool->watched.spares != 0)
            return true;
        for (uint32_t j = 0; j < pool->usual; j++) {
            if (!is_runner_resting(pool->runners[j]))
                return true;
        }
    }
    return false;
}

const domi_monitor_watch domi_spares_watch = {.look = look_at_all_pools,
                                              .is_awake = is_any_pool_active};
