/* The parts of an iteration that concern houses. Each part is bounded, so that no phase keeps the
 * others waiting. */
#include "house/dispatch/phases.h"

#include "base/check.h"
#include "base/prefetch.h"
#include "house/conversation/promise.h"
#include "house/conversation/timer.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/later.h"
#include "house/dispatch/loan.h"
#include "house/family/life.h"
#include "house/message/observer.h"

/* Sort the inboxes of houses that were taken off the arrivals. Returns the number of houses. */
static uint32_t sort_inboxes_of_arrivals(domi_manager *manager, domi_house *house)
{
    domi_house *first = NULL;

    /* The newest house comes first in the list of arrivals, so the list is reversed: the oldest is
     * sorted first. */
    while (house != NULL) {
        /* fetch the house's first cache line: the sorting will write the inbox, which is in it */
        domi_prefetch_write(house);
        domi_house *next = atomic_load_explicit(&house->arrival_next, memory_order_relaxed);
        atomic_store_explicit(&house->arrival_next, first, memory_order_relaxed);
        first = house;
        house = next;
    }
    return domi_inboxes_sort_all_of_list(manager, first);
}

static uint32_t take_houses_off_arrivals(domi_manager *manager)
{
    if (atomic_load_explicit(&manager->mail.arrivals, memory_order_relaxed) == NULL)
        return 0;
    /* acquire: pairs with the push of domi_links_add_house_to_arrivals(), so arrival_next of the
     * houses and the mail that was put before the push are seen. */
    return sort_inboxes_of_arrivals(
        manager, atomic_exchange_explicit(&manager->mail.arrivals, NULL, memory_order_acquire));
}

/* True if the mail of the actor may need io: it has channels, or it is pinned, as an actor that
 * watches a descriptor is. Relaxed: a house that changes after this load is sorted as it is then. A
 * house of another kind has to be mounted first, and a descriptor is watched only within a run. */
static bool may_actor_use_io(const domi_house *house)
{
    const domus_behaviour *behaviour = domi_house_get_behaviour(house);

    if (behaviour == NULL || behaviour->kind != DOMUS_STATE)
        return true;
    /* The houses of arrivals that are exposed or free are not examined: a thief may use an exposed
     * house, and another thread may make an actor in a free slot. acquire: as in
     * domi_mailbox_sort_inbox(). */
    uint64_t life =
        atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->life, memory_order_acquire);
    return !domi_house_is_exposed(house) && (life & DOMI_LIFE_CLOSED) == 0 &&
           (house->marks & DOMI_MARK_PINNED) != 0;
}

/* True if the houses of the list that begins with `house` are few, and are state actors with little
 * mail. */
static bool are_arrivals_few_and_plain(const domi_house *house)
{
    uint64_t mail = 0;

    for (uint32_t count = 0; house != NULL; count++) {
        mail += domi_mailbox_depth_of_inbox(house);
        if (may_actor_use_io(house) || count == DOMI_PLAIN_HOUSES_MAX || mail > DOMI_PLAIN_MAIL_MAX)
            return false;
        house = atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&house->arrival_next,
                                     memory_order_relaxed);
    }
    return true;
}

void domi_manager_take_arrivals_as_stand_in(domi_manager *manager)
{
    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    if (!domi_loans_settle_as_stand_in(manager))
        return;
    /* acquire: the comment in take_houses_off_arrivals() says why. Only the owner takes houses off,
     * so if the newest house is the same as before, the list has not changed. */
    domi_house *newest = atomic_load_explicit(&manager->mail.arrivals, memory_order_acquire);
    if (newest != NULL && are_arrivals_few_and_plain(newest) &&
        atomic_compare_exchange_strong_explicit(&manager->mail.arrivals, &newest, NULL,
                                                memory_order_acquire, memory_order_relaxed))
        (void)sort_inboxes_of_arrivals(manager, newest);
}

uint32_t domi_manager_take_arrivals(domi_manager *manager)
{
    const domi_house *newest = NULL;

    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    if (DOMI_UNLIKELY(manager->observer != NULL))
        newest = domi_queue_newest_house(&manager->schedule.ready[DOMUS_STATE]);
    uint32_t returned = domi_loans_settle_returned_houses(manager);

    uint32_t carried = domi_manager_has_belts(manager) ? domi_belts_take_some_messages(manager) : 0;

    uint32_t taken = returned + carried + take_houses_off_arrivals(manager);
    if (DOMI_UNLIKELY(manager->observer != NULL))
        manager->observer->note_arrivals(manager, newest);
    return taken;
}

uint32_t domi_manager_mount_actors(domi_manager *manager)
{
    /* An actor that is spawned by an on_mount here waits in `mounting` for the next call of this
     * function. */
    domi_fifo now = manager->schedule.mounting;
    uint32_t count = 0;

    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    manager->schedule.mounting = (domi_fifo){NULL, NULL};
    for (domi_house *house = domi_fifo_take(&now); house != NULL; house = domi_fifo_take(&now)) {
        domi_house_mount_actor(manager, house);
        count++;
    }
    return count;
}

/* Most due timers that one call fires; time-outs of promises have as many places again, and those
 * that timers leave. The others wait for the next phase 2, so a million due timers do not stop the
 * other phases. Firing them in portions also takes a third of the time, as measured, because the
 * events are handled while they are in the cache. */
#define TIMERS_PER_ITERATION 1024u

uint32_t domi_manager_fire_timers(domi_manager *manager)
{
    domi_wheel_node *node;
    uint32_t count = 0;

    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    domi_wheel_advance_to_time(&manager->timing.wheel, manager->now_ns);
    while (count < TIMERS_PER_ITERATION &&
           (node = domi_wheel_take_due_node(&manager->timing.wheel)) != NULL) {
        domi_timer_put_event_or_count_missed(manager, node);
        count++;
    }
    domi_wheel_advance_to_time(&manager->timing.deadlines, manager->now_ns);
    while (count < 2 * TIMERS_PER_ITERATION &&
           (node = domi_wheel_take_due_node(&manager->timing.deadlines)) != NULL) {
        domi_promise_fail_at_deadline(manager, node);
        count++;
    }
    return count;
}

/* Run the channels actors that are ready, within the bounds of one phase 2. Inlined, so that a
 * thread without an observer tests nothing for each run. */
DOMI_INLINE uint32_t run_ready_channels_by_run_function(domi_manager *manager, domi_run_house *run)
{
    domi_queue *ready = &manager->schedule.ready[DOMUS_CHANNELS];
    uint32_t most = ready->count + manager->config->scheduler.channels_runs_per_iteration;
    uint32_t count = 0;

    /* The bound of further runs is for all actors together: with a bound for each actor, a ring of
     * actors that send to each other would have as many runs for each of its members. */
    for (; count < most; count++) {
        domi_house *house = domi_queue_take_house(ready);
        if (house == NULL)
            break;
        (void)run(manager, house);
    }
    return count;
}

static uint32_t run_ready_channels_actors(domi_manager *manager)
{
    if (DOMI_UNLIKELY(manager->observer != NULL))
        return run_ready_channels_by_run_function(manager, manager->observer->choose(manager));
    return run_ready_channels_by_run_function(manager, domi_house_run_and_settle);
}

uint32_t domi_manager_run_channels_actors(domi_manager *manager)
{
    uint32_t count = run_ready_channels_actors(manager);

    if (DOMI_UNLIKELY(manager->schedule.laters != NULL)) {
        domi_laters_put_events(manager);
        /* once in a phase 2: a call of domus_later() in these later runs waits for the next
         * phase 2 */
        count += run_ready_channels_actors(manager);
    }
    return count;
}

bool domi_manager_has_work(const domi_manager *manager)
{
    return domi_manager_has_ready_actor(manager) || manager->schedule.mounting.head != NULL ||
           manager->schedule.laters != NULL ||
           atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&manager->mail.arrivals,
                                memory_order_seq_cst) != NULL ||
           atomic_load_explicit((_Atomic(domi_node *) *)(uintptr_t)&manager->loans.returns,
                                memory_order_seq_cst) != NULL ||
           domi_loans_count_shared_houses(manager) != 0 ||
           domi_belts_have_mail(manager, memory_order_seq_cst);
}
