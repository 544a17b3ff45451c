/* The seats of outsiders, and the caretaker of vacant seats (seat.h). */
#include "runtime/outside/seat.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/promise.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/memory_watch.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "house/message/trim.h"
#include "runtime/os/futex.h"
#include "runtime/os/threads.h"
#include "runtime/outside/follow_orders.h"
#include "runtime/outside/futex_park.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"

#include <errno.h>

/* most rounds for which the caretaker serves one vacant seat before it goes on to the next */
#define CARE_ROUNDS 16u

/* --- lists of answers and events -------------------------------------------------------------- */

/* Free all answers and events in a seat's lists, after the actor has ended and none of its
 * conversations uses them. */
static void free_mail_of_seat(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;

    domi_outside_mails_free_all(manager, &seat->asked);
    domi_outside_mails_free_all(manager, &seat->answers);
    domi_outside_mails_free_all(manager, &seat->events);
    domi_outside_mails_free_all(manager, &seat->spares);
    seat->asked_count = seat->events_count = 0;
}

/* --- use of the manager ----------------------------------------------------------------------- */

static domus_outsider *get_seat_of_outsider_or_null(domi_detached *detached)
{
    return detached->foreign ? (domus_outsider *)(void *)detached : NULL;
}

/* Begin the use of a seat's manager by the calling thread, which has locked the seat's mutex;
 * end_use_of_seat_manager() ends it. */
static void begin_use_of_seat_manager(domus_outsider *seat)
{
    domi_manager_become_owner(&seat->detached.manager);
    seat->outer = domi_thread_manager;
    domi_thread_manager = &seat->detached.manager;
}

static void end_use_of_seat_manager(domus_outsider *seat)
{
    domi_thread_manager = seat->outer;
}

bool domi_seat_lock(domus_outsider *seat)
{
    pthread_mutex_lock(&seat->mutex);
    if (seat->closed) {
        pthread_mutex_unlock(&seat->mutex);
        return false;
    }
    begin_use_of_seat_manager(seat);
    return true;
}

void domi_seat_unlock(domus_outsider *seat)
{
    end_use_of_seat_manager(seat);
    pthread_mutex_unlock(&seat->mutex);
}

static void update_time_of_seat_manager(domus_outsider *seat)
{
    seat->detached.manager.now_ns = domi_clock_now(&seat->detached.system->clock);
}

/* Returns the system's orders. seq_cst: this load, in the second look of a park, pairs with the
 * store in domi_system_set_stop_step(). */
static uint32_t read_orders_of_system(const domus_system *system)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->orders,
                                memory_order_seq_cst);
}

bool domi_seat_must_actor_stop(const domus_outsider *seat)
{
    return read_orders_of_system(seat->detached.system) >= domi_orders_of_stop(DOMI_STOP_ACTORS);
}

bool domi_seat_has_actor_ended(const domus_outsider *seat)
{
    if (seat->address.house == NULL)
        return true; /* the seat has no actor, because none was ever made on it */
    uint64_t life = domi_house_life_word(seat->address.house);

    return (life & DOMI_LIFE_CLOSED) != 0 || DOMI_LIFE_LEASE(life) != seat->address.lease;
}

static void follow_new_orders_at_seat(domus_outsider *seat)
{
    uint32_t orders = read_orders_of_system(seat->detached.system);

    if (orders != seat->detached.orders)
        domi_outside_let_manager_follow_orders(seat->detached.system, &seat->detached.manager,
                                               orders, &seat->detached.orders);
}

static void look_at_memory_and_trim(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;

    domi_pressure_look_if_due(seat->detached.system, DOMUS_LOG_OUTSIDE, manager->now_ns);
    domi_manager_reread_memory_level(manager);
    domi_memory_watches_put_events(manager, manager);
    if (manager->memory.pressure_seen != DOMUS_MEMORY_NORMAL)
        (void)domi_pool_take_trim_step(manager, manager->now_ns, DOMI_TRIM_BUSY);
}

/* Before a run of the outsider's actor, forget up to which places a receive has looked through
 * the mailboxes, unless the run can remove no message there. A cancel, which is an event,
 * removes an ask; a conversation that receives removes any message. If the run can do neither,
 * the mark FRESH is cleared, because no receive looks at the mailboxes then. */
static void forget_places_that_a_run_may_invalidate(domi_house *house, domi_node *seen[2])
{
    const domi_family *family = house->family;
    bool only_own = family != NULL && family->receives != NULL &&
                    family->receives->next_receive == NULL && family->stashed == 0;

    if (only_own)
        house->marks &= (uint16_t)~DOMI_MARK_FRESH;
    if (seen == NULL)
        return;
    if (house->tails[DOMI_EVENT] != NULL || !only_own)
        seen[0] = NULL;
    if (!only_own)
        seen[1] = NULL;
}

void domi_seat_serve_once(domus_outsider *seat, domi_node *seen[2])
{
    domi_manager *manager = &seat->detached.manager;
    domi_queue *ready = &manager->schedule.ready[DOMUS_STATE];

    update_time_of_seat_manager(seat);
    look_at_memory_and_trim(seat);
    (void)domi_manager_take_arrivals(manager);
    (void)domi_manager_fire_timers(manager);
    (void)domi_manager_mount_actors(manager);
    follow_new_orders_at_seat(seat);
    for (uint32_t left = ready->count; left != 0; left--) {
        domi_house *house = domi_queue_take_house(ready);
        if (house == NULL)
            break;
        forget_places_that_a_run_may_invalidate(house, seen);
        (void)domi_house_run_and_settle(manager, house);
    }
    if (manager->pool.chained >= DOMI_CHAINED_MAX)
        domi_pool_push_chains_to_owners(manager);
}

void domi_seat_serve_until_idle(domus_outsider *seat)
{
    uint32_t rounds = 0;

    do
        domi_seat_serve_once(seat, NULL);
    while (domi_manager_has_work(&seat->detached.manager) && ++rounds < CARE_ROUNDS);
}

void domi_seat_queue_actor_if_runnable(domus_outsider *seat)
{
    domi_house *house = seat->address.house;

    if (house->state == DOMI_WAITING &&
        (domi_house_is_runnable(house) || domi_house_is_asked_to_stop(house)))
        domi_house_make_ready(&seat->detached.manager, house);
}

/* Returns the time of the manager's next timer, or the end of the longest sleep if sooner. */
static uint64_t time_of_next_timer_or_sleep_end(domi_manager *manager)
{
    uint64_t due_ns[] = {domi_wheel_next_ns(&manager->timing.wheel),
                         domi_wheel_next_ns(&manager->timing.deadlines)};
    uint64_t until_ns = manager->now_ns + DOMI_PARK_CAP_NS;

    for (size_t i = 0; i < sizeof due_ns / sizeof due_ns[0]; i++)
        until_ns = due_ns[i] < until_ns ? due_ns[i] : until_ns;
    return until_ns;
}

bool domi_seat_sleep(domus_outsider *seat, uint64_t until_ns)
{
    domi_manager *manager = &seat->detached.manager;
    uint64_t due_ns = time_of_next_timer_or_sleep_end(manager);

    if (due_ns < until_ns)
        until_ns = due_ns;
    domi_pool_push_chains_to_owners(manager);
    domi_park_begin_sleep(&manager->park);
    update_time_of_seat_manager(seat);
    if (!domi_manager_has_work(manager) &&
        read_orders_of_system(seat->detached.system) == seat->detached.orders &&
        until_ns > manager->now_ns) {
        uint64_t time_ns = until_ns - manager->now_ns;
        domi_seat_unlock(seat);
        domi_futex_park_sleep(manager, time_ns);
        if (!domi_seat_lock(seat))
            return false;
    }
    (void)domi_park_end_sleep(&manager->park);
    update_time_of_seat_manager(seat);
    return true;
}

/* --- the caretaker ---------------------------------------------------------------------------- */

void domi_seats_wake_caretaker(domus_system *system)
{
    /* seq_cst: the caretaker reads this counter before it looks at the seats, and the kernel
     * compares it before the caretaker sleeps, so no call is missed. */
    (void)atomic_fetch_add_explicit(&system->seats_calls, 1, memory_order_seq_cst);
    domi_futex_wake(&system->seats_calls);
}

/* Wake the owner of a seat, or, if the seat is vacant, the caretaker. It is called as the hook
 * `wake` of a seat's manager. */
static void wake_owner_or_caretaker_of_seat(domi_manager *manager)
{
    domus_outsider *seat = (domus_outsider *)(void *)manager;

    domi_futex_park_wake(manager);
    /* seq_cst: this load is in step 3 of seat.h, after the exchange of the park word. */
    if (atomic_load_explicit(&seat->owner, memory_order_seq_cst) == NULL)
        domi_seats_wake_caretaker(seat->detached.system);
}

static void set_seat_busy(domus_outsider *seat, bool busy)
{
    domus_system *system = seat->detached.system;

    pthread_mutex_lock(&system->mutex);
    seat->detached.busy = busy;
    pthread_mutex_unlock(&system->mutex);
}

/* Let a vacant seat rest: free it if its actor has ended, set its park word to SLEEPING for
 * senders, and call the caretaker again if work has come meanwhile. */
static void prepare_seat_to_rest(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;

    if (seat->leaving && domi_seat_has_actor_ended(seat)) {
        seat->leaving = false;
        free_mail_of_seat(seat);
        set_seat_busy(seat, false);
    }
    domi_pool_push_chains_to_owners(manager);
    domi_park_begin_sleep(&manager->park);
    if (domi_manager_has_work(manager))
        domi_seats_wake_caretaker(seat->detached.system);
}

/* Serve a seat if it is vacant. Returns when the caretaker has to look at the seat again. */
static uint64_t serve_vacant_seat(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;
    uint64_t due_ns = UINT64_MAX;

    /* Relaxed: only a hint, because `owner` is read again under the mutex. */
    if (atomic_load_explicit(&seat->owner, memory_order_relaxed) != NULL)
        return due_ns;
    pthread_mutex_lock(&seat->mutex);
    if (atomic_load_explicit(&seat->owner, memory_order_relaxed) == NULL) {
        begin_use_of_seat_manager(seat);
        (void)domi_park_end_sleep(&manager->park);
        domi_seat_serve_until_idle(seat);
        due_ns = time_of_next_timer_or_sleep_end(manager);
        prepare_seat_to_rest(seat);
        end_use_of_seat_manager(seat);
    }
    pthread_mutex_unlock(&seat->mutex);
    return due_ns;
}

/* Returns how many seats and detached actors the system has; their list only grows. */
static uint32_t count_seats_and_detached(domus_system *system)
{
    pthread_mutex_lock(&system->mutex);
    uint32_t count = system->detached_count;
    pthread_mutex_unlock(&system->mutex);
    return count;
}

static uint64_t serve_vacant_seats(domus_system *system)
{
    uint64_t due_ns = UINT64_MAX;
    uint32_t count = count_seats_and_detached(system);

    for (uint32_t i = 0; i < count; i++) {
        domus_outsider *seat = get_seat_of_outsider_or_null(system->detached[i]);
        uint64_t seat_ns = seat != NULL ? serve_vacant_seat(seat) : UINT64_MAX;
        due_ns = seat_ns < due_ns ? seat_ns : due_ns;
    }
    return due_ns;
}

/* Close all seats: from then on only the thread that stops the system uses them. If a seat's
 * owner is in a function of domus_outsider_act(), this waits for the function's end. */
static void close_all_seats(domus_system *system)
{
    uint32_t seats = 0;
    uint32_t count = count_seats_and_detached(system);

    for (uint32_t i = 0; i < count; i++) {
        domus_outsider *seat = get_seat_of_outsider_or_null(system->detached[i]);
        if (seat == NULL)
            continue;
        pthread_mutex_lock(&seat->mutex);
        seat->closed = true;
        (void)atomic_exchange_explicit(&seat->detached.manager.park, DOMI_PARK_NOTIFIED,
                                       memory_order_seq_cst);
        domi_futex_park_wake(&seat->detached.manager);
        pthread_mutex_unlock(&seat->mutex);
        seats++;
    }
    pthread_mutex_lock(&system->mutex);
    system->detached_left += seats;
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
}

static void *run_caretaker_thread(void *system_)
{
    domus_system *system = system_;

    (void)domi_memory_set_allocator(system->hooks.allocator);
    (void)domi_memory_set_meter(&system->pressure.meter);
    for (;;) {
        /* seq_cst: pairs with the addition in domi_seats_wake_caretaker(): a call after this
         * load keeps the caretaker from sleeping. */
        uint32_t calls = atomic_load_explicit(&system->seats_calls, memory_order_seq_cst);
        domi_system_check_not_forked(system);
        if (read_orders_of_system(system) >= domi_orders_of_stop(DOMI_STOP_END))
            break;
        uint64_t due_ns = serve_vacant_seats(system);
        uint64_t now_ns = domi_clock_now(&system->clock);
        if (due_ns <= now_ns)
            continue;
        uint64_t time_ns = due_ns - now_ns;
        const struct timespec until =
            domi_clock_deadline_after(time_ns < DOMI_PARK_CAP_NS ? time_ns : DOMI_PARK_CAP_NS);
        domi_futex_wait(&system->seats_calls, calls, &until);
    }
    close_all_seats(system);
    (void)domi_memory_set_meter(NULL);
    return NULL;
}

/* --- attaching to a seat and leaving it ------------------------------------------------------- */

/* Make a seat, which is not in the system's list yet. Called under the system's mutex. */
static int make_seat_of_outsider(domus_system *system, domus_outsider **ret_seat)
{
    uint32_t place = system->detached_count;
    domus_outsider *seat = domi_memory_map_pages(sizeof *seat);

    if (seat == NULL)
        return -ENOMEM;
    domi_manager_options options = domi_system_make_manager_options(
        system, system->count + 1 + place, domi_clock_now(&system->clock));
    domi_runtime_hooks hooks = domi_hooks_of_detached;
    hooks.wake = wake_owner_or_caretaker_of_seat;
    options.hooks = &hooks;
    int result = domi_manager_init(&seat->detached.manager, &options);
    if (result != 0) {
        domi_memory_unmap_pages(seat, sizeof *seat);
        return result;
    }
    seat->detached.system = system;
    seat->detached.foreign = true;
    /* a seat has no thread of the library, so none has to be joined */
    seat->detached.joined = true;
    seat->detached.bytes = sizeof *seat;
    pthread_mutex_init(&seat->mutex, NULL);
    *ret_seat = seat;
    return 0;
}

/* Start the caretaker of vacant seats, unless it runs. Called under the system's mutex. */
static int start_caretaker_thread(domus_system *system)
{
    if (system->seats_cared)
        return 0;
    int result = domi_unpinned_start_thread(&system->seats_pthread, run_caretaker_thread, system,
                                            "domus-seats", &system->all_cpus);
    system->seats_cared = result == 0;
    return result;
}

/* Find an unused seat, or make one, and mark it busy. Called under the system's mutex. */
static int reserve_or_make_seat(domus_system *system, domus_outsider **ret_seat)
{
    domus_outsider *seat = NULL;

    if (system->detached_closed)
        return -ESHUTDOWN;
    for (uint32_t i = 0; i < system->detached_count && seat == NULL; i++) {
        if (!system->detached[i]->busy)
            seat = get_seat_of_outsider_or_null(system->detached[i]);
    }
    if (seat == NULL) {
        if (system->detached_count == system->config.detached.threads_max)
            return -EAGAIN;
        int result = start_caretaker_thread(system);
        if (result != 0)
            return result;
        result = make_seat_of_outsider(system, &seat);
        if (result != 0)
            return result;
        system->managers[system->count + 1 + system->detached_count] = &seat->detached.manager;
        system->detached[system->detached_count++] = &seat->detached;
    }
    seat->detached.busy = true;
    *ret_seat = seat;
    return 0;
}

/* The mutex of a seat is locked while the seat gets its owner, and stays locked for the caller. */
int domi_seat_attach_thread(domus_system *system, domus_outsider **ret_seat)
{
    domus_outsider *seat;

    pthread_mutex_lock(&system->mutex);
    int result = reserve_or_make_seat(system, &seat);
    pthread_mutex_unlock(&system->mutex);
    if (result != 0)
        return result;
    if (!domi_seat_lock(seat))
        return -ESHUTDOWN;
    atomic_store_explicit(&seat->owner, &domi_here, memory_order_seq_cst);
    (void)domi_park_end_sleep(&seat->detached.manager.park);
    update_time_of_seat_manager(seat);
    seat->acting = seat->answered = false;
    seat->received = NULL;
    seat->shown = NULL;
    *ret_seat = seat;
    return 0;
}

void domi_seat_leave_to_caretaker(domus_outsider *seat)
{
    domi_manager *manager = &seat->detached.manager;

    if (!domi_seat_has_actor_ended(seat))
        (void)domi_house_ask_to_stop(manager, seat->address);
    domi_seat_serve_until_idle(seat);
    /* seq_cst: this store is step 1 of seat.h; it comes before the exchange of the park word. */
    atomic_store_explicit(&seat->owner, NULL, memory_order_seq_cst);
    seat->leaving = true;
    prepare_seat_to_rest(seat);
    if (seat->leaving)
        domi_seats_wake_caretaker(seat->detached.system);
}

/* --- end of the system ------------------------------------------------------------------------ */

void domi_seats_join_caretaker(domus_system *system)
{
    if (system->seats_cared)
        pthread_join(system->seats_pthread, NULL);
    system->seats_cared = false;
}

void domi_seats_fini(domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++) {
        domus_outsider *seat = get_seat_of_outsider_or_null(system->detached[i]);
        if (seat == NULL)
            continue;
        domi_manager *manager = &seat->detached.manager;
        domi_manager_become_owner(
            manager); /* this thread may own it, because the system has ended */
        if (seat->received != NULL)
            domi_envelope_release_and_free(manager, seat->received);
        if (seat->shown != NULL)
            domi_outside_mail_free(manager, seat->shown);
        free_mail_of_seat(seat);
        pthread_mutex_destroy(&seat->mutex);
    }
}
