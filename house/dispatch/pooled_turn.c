/* A runner acts here for the home of pooled actors: it gives them turns, and fires their timers and
 * time-outs.
 *
 * From the exchange that takes the inbox to the exchange that releases it no other thread touches
 * the house, except its atomics. The thread that advances the wheel fires a timer whose house is
 * idle, and has the house meanwhile as a runner would. If the house is not idle, the timer is
 * postponed by a tick, and DOMI_SLOT_PENDING tells the house's runner to fire it at the end of the
 * turn. */
#include "house/dispatch/pooled_turn.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/phases.h"
#include "house/message/link.h"
#include "house/message/mailbox.h"

/* most due timers and time-outs that are fired in one hold of the pool's lock */
#define FIRED_AT_ONCE 64u

/* --- who has a house -------------------------------------------------------------------------- */

bool domi_pooled_take_idle_house(domi_house *house)
{
    uint64_t idle = 0;

    /* acquire: pairs with release_idle_house(), so this thread sees the writes of the last turn. */
    return atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&house->inbox, &idle, DOMI_INBOX_BUSY,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Release a pooled actor's house that has nothing to do. Returns false if mail has come: then the
 * caller still has the house. */
static bool release_idle_house(domi_house *house)
{
    uint64_t busy = DOMI_INBOX_BUSY;

    return atomic_compare_exchange_strong_explicit(&house->inbox, &busy, 0, memory_order_release,
                                                   memory_order_relaxed);
}

void domi_pooled_give_idle_house_back(domi_pooled *pooled, domi_house *house)
{
    if (!release_idle_house(house))
        pooled->schedule(pooled, NULL, house);
}

/* --- due objects ------------------------------------------------------------------------------ */

/* One of the wheels of a pool's home (timers, time-outs), with the functions for its nodes. */
typedef struct due_kind {
    domi_house *(*house_of)(domi_wheel_node *node);
    void (*fire)(domi_manager *home, domi_wheel_node *node);
    void (*postpone)(domi_manager *home, domi_wheel_node *node);
} due_kind;

static const due_kind timers = {domi_timer_house_of_wheel_node,
                                domi_timer_put_event_or_count_missed,
                                domi_timer_postpone_to_next_tick};
static const due_kind timeouts = {domi_promise_house_of_wheel_node, domi_promise_fail_at_deadline,
                                  domi_promise_postpone_to_next_tick};

/* Fire up to `most` due nodes of a pool's wheel, under the lock. Houses that were idle and now have
 * to be scheduled go to `taken`. Returns the number of due nodes. */
static uint32_t fire_due_nodes_of_wheel(domi_manager *home, domi_wheel *wheel, const due_kind *kind,
                                        uint32_t most, domi_fifo *taken)
{
    domi_wheel_node *node;
    uint32_t count = 0;

    domi_wheel_advance_to_time(wheel, home->now_ns);
    while (count < most && (node = domi_wheel_take_due_node(wheel)) != NULL) {
        domi_house *house = kind->house_of(node);

        count++;
        if (!domi_pooled_take_idle_house(house)) {
            domi_house_set_slot_bits(house, domi_house_slot_bits(house) | DOMI_SLOT_PENDING);
            kind->postpone(home, node);
            continue;
        }
        kind->fire(home, node);
        domi_house *ready = domi_queue_take_house(&home->schedule.ready[DOMUS_STATE]);
        DOMI_CHECK(ready == NULL || ready == house);
        if (ready != NULL || !release_idle_house(house))
            domi_fifo_put(taken, house);
    }
    return count;
}

/* Take the lock of the pool. Returns its home, which the lock guards. */
static domi_manager *lock_home_of_pool(domi_manager *runner)
{
    domi_manager *home = runner->pooled->home;

    domi_spinlock_lock(&runner->pooled->lock);
    domi_manager_become_owner(home);
    if (runner->now_ns > home->now_ns)
        home->now_ns = runner->now_ns;
    return home;
}

uint32_t domi_pooled_fire_due_timers(domi_manager *runner)
{
    domi_pooled *pooled = runner->pooled;
    domi_fifo taken = {NULL, NULL};

    domi_manager *home = lock_home_of_pool(runner);
    uint32_t count =
        fire_due_nodes_of_wheel(home, &home->timing.wheel, &timers, FIRED_AT_ONCE / 2, &taken);
    count += fire_due_nodes_of_wheel(home, &home->timing.deadlines, &timeouts,
                                     FIRED_AT_ONCE - count, &taken);
    domi_spinlock_unlock(&pooled->lock);
    for (domi_house *house = domi_fifo_take(&taken); house != NULL; house = domi_fifo_take(&taken))
        pooled->schedule(pooled, runner, house);
    return count;
}

/* Fire those timers of a pooled actor's house that were postponed. */
static void fire_postponed_timers_of_house(domi_manager *home, domi_house *house)
{
    for (domi_link *link = house->attached; link != NULL; link = link->next) {
        domi_timer *timer = (domi_timer *)(void *)domi_link_get_node(link);

        if (!domi_node_is_timer(&timer->event.node) || !timer->timed ||
            timer->event.node.lease == 0)
            continue;
        domi_wheel_disarm_node(&home->timing.wheel, &timer->wheel);
        domi_timer_put_event_or_count_missed(home, &timer->wheel);
    }
}

static void fire_postponed_promises_of_house(domi_manager *home, domi_house *house)
{
    for (domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        for (domi_promise *promise = stack->waiting; promise != NULL; promise = promise->next) {
            if (!domi_promise_is_postponed(promise))
                continue;
            domi_wheel_disarm_node(&home->timing.deadlines, &promise->wheel);
            domi_promise_fail_at_deadline(home, &promise->wheel);
        }
    }
}

/* Fire the timers and time-outs that were postponed because this runner has the house. The house
 * may become READY. */
static void fire_postponed_timers_and_promises(domi_manager *runner, domi_house *house)
{
    domi_manager *home = lock_home_of_pool(runner);

    domi_house_set_slot_bits(house, domi_house_slot_bits(house) & ~DOMI_SLOT_PENDING);
    fire_postponed_timers_of_house(home, house);
    fire_postponed_promises_of_house(home, house);
    /* the house is scheduled by its state alone: being READY, it was put into this queue, too */
    (void)domi_queue_take_house(&home->schedule.ready[DOMUS_STATE]);
    domi_spinlock_unlock(&runner->pooled->lock);
}

/* Returns the time at which the next timer or time-out of a pool is due. Under the lock. */
static uint64_t get_next_due_time_of_pool(domi_manager *home)
{
    uint64_t timer_ns = domi_wheel_next_ns(&home->timing.wheel);
    uint64_t timeout_ns = domi_wheel_next_ns(&home->timing.deadlines);

    return timer_ns < timeout_ns ? timer_ns : timeout_ns;
}

uint64_t domi_pooled_next_due_ns(domi_pooled *pooled)
{
    domi_spinlock_lock(&pooled->lock);
    uint64_t due_ns = get_next_due_time_of_pool(pooled->home);
    domi_spinlock_unlock(&pooled->lock);
    return due_ns;
}

uint64_t domi_pooled_next_due_ns_before_sleep(domi_pooled *pooled)
{
    domi_spinlock_lock(&pooled->lock);
    uint64_t due_ns = pooled->awake_ns = get_next_due_time_of_pool(pooled->home);
    domi_spinlock_unlock(&pooled->lock);
    return due_ns;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* True if the actor that began the turn still lives here. In a free slot only the life word may
 * be read, because another thread may be making an actor there. */
static bool does_actor_still_live_in_slot(const domi_house *house, uint32_t lease)
{
    uint64_t life = domi_house_life_word(house);

    return DOMI_LIFE_LEASE(life) == lease && (life & DOMI_LIFE_CLOSED) == 0;
}

/* Take the house out of the runner's queue if it is READY; no other house is ever in that queue. */
static domi_house *take_ready_house_of_runner(domi_manager *runner)
{
    return domi_queue_take_house(&runner->schedule.ready[DOMUS_STATE]);
}

/* Sort, mount and run a house once. Returns the number of handled messages, but at least 1, so that
 * mail that is not handled does not prolong a turn without end. */
static uint32_t sort_mount_and_run_house(domi_manager *runner, domi_house *house)
{
    domi_mailbox_sort_inbox_of_pooled(runner, house);
    if (DOMI_UNLIKELY(runner->schedule.mounting.head != NULL))
        (void)domi_manager_mount_actors(runner);
    uint32_t handled =
        take_ready_house_of_runner(runner) != NULL ? domi_house_run_and_settle(runner, house) : 0;
    return handled != 0 ? handled : 1;
}

domi_pooled_left domi_pooled_run_turn_of_house(domi_manager *runner, domi_house *house)
{
    uint32_t lease = DOMI_LIFE_LEASE(domi_house_life_word(house));
    uint32_t handled = 0;
    bool alive = true;

    do {
        handled += sort_mount_and_run_house(runner, house);
        alive = does_actor_still_live_in_slot(house, lease);
        /* the house is scheduled by its state alone: if READY, it was put into this queue, too */
        (void)take_ready_house_of_runner(runner);
        if (DOMI_UNLIKELY((domi_house_slot_bits(house) & DOMI_SLOT_PENDING) != 0) && alive)
            fire_postponed_timers_and_promises(runner, house);
        bool more = alive && house->state == DOMI_READY;
        if (!more && release_idle_house(house))
            return alive ? DOMI_POOLED_IDLE : DOMI_POOLED_ENDED;
    } while (alive && handled < runner->limits.messages_per_run_max);
    return DOMI_POOLED_MORE;
}

void domi_pooled_schedule_arrivals(domi_pooled *pooled)
{
    /* seq_cst: this exchange of the arrivals comes after the store that sets the park word back
     * to sleep (schedule_houses_with_arrivals() of runtime/pools), just as a push comes before a
     * load of that word. */
    domi_house *house =
        atomic_exchange_explicit(&pooled->home->mail.arrivals, NULL, memory_order_seq_cst);
    domi_house *first = NULL;

    while (house != NULL) { /* Reverse the list, in which the newest house comes first. */
        domi_house *next = atomic_load_explicit(&house->arrival_next, memory_order_relaxed);
        atomic_store_explicit(&house->arrival_next, first, memory_order_relaxed);
        first = house;
        house = next;
    }
    while (first != NULL) {
        domi_house *next = atomic_load_explicit(&first->arrival_next, memory_order_relaxed);
        pooled->schedule(pooled, NULL, first);
        first = next;
    }
}
