/* This file starts, runs and stops detached actors, and lets them receive. Each has a thread with a
 * loop of its own: the loop follows a stop of the system, receives arrivals and fires timers, runs
 * the house, and sleeps on the park word if nothing is left to do. Only this thread uses its
 * `domi_detached`, except `busy`. */
#include "runtime/outside/detached.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/asks.h"
#include "house/conversation/receive.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/family/memory_watch.h"
#include "house/family/watch.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/trim.h"
#include "runtime/os/threads.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/follow_orders.h"
#include "runtime/outside/futex_park.h"
#include "runtime/outside/visit.h"
#include "runtime/system/crash.h"
#include "runtime/system/logs.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"

#include <domus/blocking.h>
#include <domus/detached.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>

/* --- orders and sleep ------------------------------------------------------------------------- */

static void update_time_of_manager(domi_detached *detached)
{
    detached->manager.now_ns = domi_clock_now(&detached->system->clock);
}

/* Returns the system's orders. seq_cst: this load, in the second look of a park, pairs with the
 * store in domi_system_set_stop_step(). */
static uint32_t read_orders_of_system(const domi_detached *detached)
{
    return atomic_load_explicit(&detached->system->orders, memory_order_seq_cst);
}

/* Follow the system's orders, if there are new ones. Returns true if they want the thread to
 * leave its loop. */
static bool follow_new_orders(domi_detached *detached)
{
    uint32_t orders = read_orders_of_system(detached);

    if (orders != detached->orders)
        domi_outside_let_manager_follow_orders(detached->system, &detached->manager, orders,
                                               &detached->orders);
    return orders >= domi_orders_of_stop(DOMI_STOP_END);
}

/* Sleep, by the steps of base/park.h, until another thread puts something for the detached
 * actor, a timer is due, or `until_ns` has come. */
static void sleep_until_mail_or_due_time(domi_detached *detached, uint64_t until_ns)
{
    domi_manager *manager = &detached->manager;
    uint64_t due_ns[] = {manager->now_ns + DOMI_PARK_CAP_NS,
                         domi_wheel_next_ns(&manager->timing.wheel),
                         domi_wheel_next_ns(&manager->timing.deadlines)};

    domi_pool_push_chains_to_owners(manager);
    for (size_t i = 0; i < sizeof due_ns / sizeof due_ns[0]; i++) {
        if (due_ns[i] < until_ns)
            until_ns = due_ns[i];
    }
    domi_park_begin_sleep(&manager->park);
    update_time_of_manager(detached);
    if (!domi_manager_has_work(manager) && read_orders_of_system(detached) == detached->orders &&
        until_ns > manager->now_ns)
        domi_futex_park_sleep(manager, until_ns - manager->now_ns);
    (void)domi_park_end_sleep(&manager->park);
    update_time_of_manager(detached);
}

static void look_at_memory_and_trim(domi_detached *detached)
{
    domi_manager *manager = &detached->manager;

    domi_pressure_look_if_due(detached->system, DOMUS_LOG_OUTSIDE, manager->now_ns);
    domi_manager_reread_memory_level(manager);
    domi_memory_watches_put_events(manager, manager);
    if (manager->memory.pressure_seen != DOMUS_MEMORY_NORMAL)
        (void)domi_pool_take_trim_step(manager, manager->now_ns, DOMI_TRIM_BUSY);
}

/* Receive what other threads have put for the detached actor, and fire timers that are due. */
static void receive_arrivals_and_fire_timers(domi_detached *detached)
{
    domi_system_check_not_forked(detached->system);
    update_time_of_manager(detached);
    look_at_memory_and_trim(detached);
    (void)domi_manager_take_arrivals(&detached->manager);
    (void)domi_manager_fire_timers(&detached->manager);
    /* freed objects are sent home in this place, too, because a thread that is always busy never
     * calls sleep_until_mail_or_due_time() */
    if (detached->manager.pool.chained >= DOMI_CHAINED_MAX)
        domi_pool_push_chains_to_owners(&detached->manager);
}

/* --- the loop of a detached thread ------------------------------------------------------------ */

static void set_detached_thread_busy(domi_detached *detached, bool busy)
{
    pthread_mutex_lock(&detached->system->mutex);
    detached->busy = busy;
    pthread_mutex_unlock(&detached->system->mutex);
}

/* Publish how many actors this detached thread has mounted; a stop of the system reads the
 * number. */
static void publish_count_of_mounted_actors(domi_detached *detached)
{
    uint32_t mounts = (uint32_t)domi_counter_read(&detached->manager.counters.spawns);

    /* release: a thread that reads the number also sees what on_mount has written, such as
     * entries in the list of processes. */
    if (atomic_load_explicit(&detached->mounted, memory_order_relaxed) != mounts)
        atomic_store_explicit(&detached->mounted, mounts, memory_order_release);
}

static void run_loop_of_detached_actor(domi_detached *detached)
{
    domi_manager *manager = &detached->manager;
    bool had_one = false;

    while (!follow_new_orders(detached)) {
        receive_arrivals_and_fire_timers(detached);
        (void)domi_manager_mount_actors(manager);
        publish_count_of_mounted_actors(detached);
        had_one = had_one || domi_counter_read(&manager->births.houses) != 0;
        domi_house *house = domi_queue_take_house(&manager->schedule.ready[DOMUS_STATE]);
        if (house != NULL)
            (void)domi_house_run_and_settle(manager, house);
        if (had_one && domi_counter_read(&manager->births.houses) == 0) {
            had_one = false;
            set_detached_thread_busy(detached, false);
        }
        if (!domi_manager_has_work(manager) &&
            !domi_pool_take_trim_step(manager, manager->now_ns, DOMI_TRIM_IDLE))
            sleep_until_mail_or_due_time(detached, UINT64_MAX);
    }
}

static void *run_detached_thread(void *detached_)
{
    domi_detached *detached = detached_;
    domus_system *system = detached->system;

    domi_thread_manager = &detached->manager;
    domi_manager_become_owner(&detached->manager);
    (void)domi_memory_set_allocator(system->hooks.allocator);
    (void)domi_memory_set_meter(&system->pressure.meter);
    domi_crash_prepare_thread(NULL);
    run_loop_of_detached_actor(detached);
    domi_crash_unprepare_thread();
    (void)domi_memory_set_meter(NULL);
    pthread_mutex_lock(&system->mutex);
    detached->busy = false;
    system->detached_left++;
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
    return NULL;
}

/* --- making detached threads ------------------------------------------------------------------ */

static int start_detached_thread(domi_detached *detached)
{
    char name[16];

    snprintf(name, sizeof name, "domus-own-%u",
             (detached->manager.index - detached->system->count - 1) % 10000);
    return domi_unpinned_start_thread(&detached->pthread, run_detached_thread, detached, name,
                                      &detached->system->all_cpus);
}

/* Lock the system's mutex for a spawn by a detached actor. Returns false, and locks nothing,
 * once detached actors are closed: the stop does not wait for their handlers, and these must not
 * spawn on a thread whose slots are being walked or which has ended. */
static bool lock_system_for_spawn(domi_manager *manager)
{
    domus_system *system = manager->system;

    pthread_mutex_lock(&system->mutex);
    if (!system->detached_closed)
        return true;
    pthread_mutex_unlock(&system->mutex);
    return false;
}

static void unlock_system_after_spawn(domi_manager *manager)
{
    domus_system *system = manager->system;

    pthread_mutex_unlock(&system->mutex);
}

const domi_runtime_hooks domi_hooks_of_detached = {
    .wake = domi_futex_park_wake,
    .log = domi_log_what_happened_to_actor,
    .warn = domi_log_mistake_of_user,
    .spawn_detached = domi_detached_spawn_actor,
    .begin_spawn = lock_system_for_spawn,
    .end_spawn = unlock_system_after_spawn,
    .withdraw = domi_blocking_withdraw_work,
    .block = domus_blocking,
    .read_memory = domi_pressure_read_levels,
};

static int make_detached_thread(domus_system *system, uint32_t place, domi_detached **ret_detached)
{
    domi_detached *detached = domi_memory_map_pages(sizeof *detached);

    if (detached == NULL)
        return -ENOMEM;
    domi_manager_options options = domi_system_make_manager_options(
        system, system->count + 1 + place, domi_clock_now(&system->clock));
    options.hooks = &domi_hooks_of_detached;
    int result = domi_manager_init(&detached->manager, &options);
    if (result != 0) {
        domi_memory_unmap_pages(detached, sizeof *detached);
        return result;
    }
    detached->system = system;
    detached->bytes = sizeof *detached;
    result = start_detached_thread(detached);
    if (result != 0) {
        domi_manager_fini(&detached->manager);
        domi_memory_unmap_pages(detached, sizeof *detached);
        return result;
    }
    *ret_detached = detached;
    return 0;
}

/* Find a detached thread that has no actor, or make one, and mark it busy. Called under the
 * system's mutex. */
static int reserve_or_make_detached_thread(domus_system *system, domi_detached **ret_detached)
{
    domi_detached *detached = NULL;
    int result = 0;

    for (uint32_t i = 0; i < system->detached_count && detached == NULL; i++) {
        if (!system->detached[i]->busy && !system->detached[i]->foreign)
            detached = system->detached[i];
    }
    if (detached == NULL) {
        uint32_t place = system->detached_count;
        if (system->detached_closed || place == system->config.detached.threads_max)
            return system->detached_closed ? -ESHUTDOWN : -EAGAIN;
        result = make_detached_thread(system, place, &detached);
        if (result != 0)
            return result;
        system->managers[system->count + 1 + place] = &detached->manager;
        system->detached[place] = detached;
        system->detached_count++;
    }
    detached->busy = true;
    detached->chosen++;
    *ret_detached = detached;
    return 0;
}

/* Make a reserved detached thread free again, because the spawn of its actor has failed. */
static void release_reserved_thread(domi_detached *detached)
{
    pthread_mutex_lock(&detached->system->mutex);
    detached->busy = false;
    detached->chosen--;
    pthread_mutex_unlock(&detached->system->mutex);
}

int domi_detached_spawn_actor(domi_manager *manager, domi_house *parent,
                              const domus_behaviour *behaviour, const void *state,
                              const domus_spawn_options *options, domus_address *ret_address)
{
    domus_system *system = manager->system;
    domi_detached *detached;

    if (system->simulator != NULL)
        return -EOPNOTSUPP;
    if (behaviour == NULL || behaviour->kind != DOMUS_STATE)
        return -EINVAL;
    pthread_mutex_lock(&system->mutex);
    int result = reserve_or_make_detached_thread(system, &detached);
    pthread_mutex_unlock(&system->mutex);
    if (result != 0)
        return result;
    result = domi_house_spawn_child(manager, parent, &detached->manager, behaviour, state, options,
                                    ret_address);
    if (result != 0)
        release_reserved_thread(detached);
    return result;
}

/* --- receiving messages ----------------------------------------------------------------------- */

/* True if the detached actor was asked to stop or to restart, so that its receive has to end: a
 * restart begins only after the running handler. */
static bool must_actor_stop_or_restart(const domi_house *house)
{
    return domi_house_is_asked_to_stop(house) || (house->marks & DOMI_MARK_RESTART) != 0;
}

/* If the mailbox was full, clear the life bit FULL and tell waiting senders, because a received
 * message has made room. The end of a run does the same. */
static void clear_full_mark_and_tell_senders(domi_manager *manager, domi_house *house)
{
    uint64_t life = domi_house_life_word(house);

    if ((life & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
        domi_watch_tell_of_room_if_there_is(manager, house);
}

static void describe_received_message(domi_detached *detached, domus_stack *stack,
                                      domi_envelope *message, domus_received *ret_received)
{
    bool is_ask = message->node.kind == DOMI_ASK;

    *ret_received = (domus_received){
        .type = message->type,
        .payload = domi_envelope_get_payload(message),
        .sender = message->sender != NULL && message->sender != detached->manager.asker
                      ? (domus_address){message->sender, message->sender_lease}
                      : (domus_address){NULL, 0},
        .is_ask = is_ask,
    };
    stack->received = message;
}

int domus_receive_now(domus_stack *stack, const domus_pattern *pattern, uint64_t within_ns,
                      domus_received *ret_received)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_node *seen[2] = {NULL, NULL};

    /* Only a detached actor may receive. During a stop a pool's home has no thread and is the
     * manager of the pool's actors, so that case is refused, too. */
    if (stack->manager->index <= stack->manager->threads || house->home != stack->manager ||
        stack->manager->pooled != NULL || ((domi_detached *)(void *)stack->manager)->foreign)
        return -EOPNOTSUPP;
    /* the conversation needs a pooled stack (house/conversation/stack.h), because only the end of
     * such a stack releases the received message */
    if (domi_stack_get_or_make_pooled(stack) == NULL)
        return -ENOMEM;
    domi_detached *detached = (domi_detached *)(void *)stack->manager;
    /* the message that was received before ends: an unanswered ask fails with -ENOMSG */
    domi_stack_end_received_message(stack, -ENOMSG);
    receive_arrivals_and_fire_timers(detached);
    uint64_t until_ns = detached->manager.now_ns + within_ns;
    if (until_ns < within_ns)
        until_ns = UINT64_MAX;
    for (;;) {
        if (domi_ask_carry_out_waiting_cancels(&detached->manager, house))
            seen[0] = NULL; /* the cancel may have dropped the node that `seen[0]` points to */
        if (follow_new_orders(detached) || must_actor_stop_or_restart(house) ||
            domi_receive_stop_if_last_notice_is_next(&detached->manager, house))
            return -ECANCELED;
        domi_envelope *message = domi_receive_take_matching_message(
            &detached->manager, house, pattern, domus_frame(stack), seen);
        clear_full_mark_and_tell_senders(&detached->manager, house);
        if (message != NULL) {
            describe_received_message(detached, stack, message, ret_received);
            return 0;
        }
        if (detached->manager.now_ns >= until_ns)
            return -ETIMEDOUT;
        sleep_until_mail_or_due_time(detached, until_ns);
        receive_arrivals_and_fire_timers(detached);
    }
}

/* --- stopping detached actors ----------------------------------------------------------------- */

void domi_detached_close_for_spawns(domus_system *system)
{
    pthread_mutex_lock(&system->mutex);
    system->detached_closed = true;
    pthread_mutex_unlock(&system->mutex);
}

void domi_detached_wake_all_threads(domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++)
        domi_manager_notify_of_push(&system->outside, &system->detached[i]->manager);
}

bool domi_detached_have_all_mounted(const domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++) {
        const domi_detached *detached = system->detached[i];
        /* acquire: pairs with the release in publish_count_of_mounted_actors(), so what on_mount
         * has written is seen. */
        if (!detached->foreign &&
            atomic_load_explicit(&detached->mounted, memory_order_acquire) != detached->chosen)
            return false;
    }
    return true;
}

uint64_t domi_detached_count_busy_threads(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->detached_count; i++)
        sum += system->detached[i]->busy ? 1 : 0;
    return sum;
}

bool domi_detached_have_all_ended(const domus_system *system)
{
    return system->detached_left == system->detached_count;
}

void domi_detached_join_threads(domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++) {
        domi_detached *detached = system->detached[i];
        if (!detached->joined)
            pthread_join(detached->pthread, NULL);
        detached->joined = true;
    }
}

void domi_detached_fini(domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++) {
        domi_manager_fini(&system->detached[i]->manager);
        domi_memory_unmap_pages(system->detached[i], system->detached[i]->bytes);
    }
    system->detached_count = 0;
}
