/* Arms, fires and frees timers. A one-shot timer is freed once its event was handled. A periodic
 * timer is armed again as it fires, at a fixed rate; periods that pass while its event is under way
 * are only counted. */
#include "house/conversation/timer.h"

#include "base/check.h"
#include "base/prefetch.h"
#include "house/conversation/notes.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/pooled.h"

#include <errno.h>
#include <string.h>

static void add_to_timer_count_of_home(domi_manager *manager, const domi_house *house, uint32_t by)
{
    if (!domi_house_is_run_by_thief(manager, house))
        domi_timers_add_to_count_of_home(manager, by);
    else if (domi_house_is_pooled(house))
        /* Relaxed: the number of the pool's timers is only compared with the limit. */
        atomic_fetch_add_explicit(&house->home->timing.timers, by, memory_order_relaxed);
    else
        manager->timing.noted_timers += by;
}

static void leave_note_for_timer(domi_manager *manager, domi_timer *timer)
{
    timer->noted = true;
    domi_note_leave_for_home(manager, &timer->event.node);
}

static void put_timer_on_wheel(domi_manager *home, domi_timer *timer, uint64_t expires_ns)
{
    domi_wheel_arm_node(&home->timing.wheel, &timer->wheel, expires_ns);
    timer->timed = true;
}

static void remove_timer_from_wheel(domi_manager *home, domi_timer *timer)
{
    domi_wheel_disarm_node(&home->timing.wheel, &timer->wheel);
    timer->timed = false;
}

/* Take a timer off the wheel of the pool of its actor; the runner of this actor calls this. */
static void remove_timer_from_wheel_of_pool(domi_timer *timer)
{
    domi_manager *home = timer->house->home;

    domi_pooled_disarm_node_on_pools_wheel(home->pooled, &home->timing.wheel, &timer->wheel);
    timer->timed = false;
}

static void arm_timer_or_leave_note(domi_manager *manager, domi_timer *timer, uint64_t expires_ns)
{
    domi_manager *home = timer->house->home;

    if (!domi_house_is_run_by_thief(manager, timer->house)) {
        put_timer_on_wheel(manager, timer, expires_ns);
        return;
    }
    if (home->pooled != NULL) {
        timer->timed = true;
        domi_pooled_arm_node_on_pools_wheel(home->pooled, &home->timing.wheel, &timer->wheel,
                                            expires_ns);
        return;
    }
    timer->wheel.expires_ns = expires_ns;
    leave_note_for_timer(manager, timer);
}

static int refuse_timer_at_limit(domi_manager *manager)
{
    domi_counter_add(&manager->counters.timers_refused, 1);
    return -ENOBUFS;
}

int domi_timer_new(domi_manager *manager, domi_house *house, uint64_t delay_ns, uint64_t period_ns,
                   const domus_type *type, const void *payload, domi_timer **ret_timer)
{
    if (domi_timers_count_of_home(house->home) + manager->timing.noted_timers >=
        manager->config->scheduler.timers_max)
        return refuse_timer_at_limit(manager);
    domi_timer *timer = domi_pool_take_object(manager, DOMI_SLAB_TIMER);
    if (timer == NULL)
        return -ENOMEM;

    timer->event.type = type;
    timer->event.sender = NULL;
    timer->event.sender_lease = 0;
    timer->event.error = 0;
    timer->event.node.lease = 0;
    if (type->size != 0)
        memcpy(timer->event.payload, payload, type->size);
    timer->house = house;
    timer->period_ns = period_ns;
    timer->under_way = timer->cancelled = timer->fixed_delay = false;
    timer->noted = timer->timed = timer->taken = false;
    domi_link_attach_to_house(house, &timer->link);
    add_to_timer_count_of_home(manager, house, 1);

    domi_wheel_node_init(&timer->wheel);
    uint64_t expires_ns = manager->now_ns + delay_ns;
    arm_timer_or_leave_note(manager, timer, expires_ns < manager->now_ns ? UINT64_MAX : expires_ns);
    *ret_timer = timer;
    return 0;
}

/* Free a timer. A thief cannot take the timer off home's wheel, so it leaves a note, and home frees
 * the timer. */
static void free_timer(domi_manager *manager, domi_timer *timer)
{
    if (timer->timed && domi_house_is_run_by_thief(manager, timer->house)) {
        if (!domi_house_is_pooled(timer->house)) {
            leave_note_for_timer(manager, timer);
            return;
        }
        remove_timer_from_wheel_of_pool(timer);
    }
    if (timer->timed) /* a thief has cancelled the timer while its event was in the mailbox */
        remove_timer_from_wheel(manager, timer);
    domi_link_detach_from_house(timer->house, &timer->link);
    atomic_store_explicit(&timer->generation, domi_timer_generation(timer) + 1,
                          memory_order_relaxed);
    add_to_timer_count_of_home(manager, timer->house, UINT32_MAX);
    if (DOMI_UNLIKELY(timer->event.type->release != NULL) && !timer->taken)
        timer->event.type->release(timer->event.payload);
    domi_pool_free_object(manager, &timer->event.node);
}

void domi_timer_cancel(domi_manager *manager, domi_timer *timer)
{
    if (!domi_house_is_run_by_thief(manager, timer->house))
        remove_timer_from_wheel(manager, timer);
    else if (domi_house_is_pooled(timer->house))
        remove_timer_from_wheel_of_pool(timer);
    timer->cancelled = true;
    if (!timer->under_way && !timer->noted)
        free_timer(manager, timer);
}

void domi_timer_carry_out_note_of_thief(domi_manager *home, domi_timer *timer)
{
    timer->noted = false;
    if (timer->cancelled)
        free_timer(home, timer);
    else
        put_timer_on_wheel(home, timer, timer->wheel.expires_ns);
}

static domi_timer *get_timer_of_node(domi_wheel_node *node)
{
    return (domi_timer *)(void *)((char *)node - offsetof(domi_timer, wheel));
}

domi_house *domi_timer_house_of_wheel_node(domi_wheel_node *node)
{
    return get_timer_of_node(node)->house;
}

/* Postpone a timer by a tick, because its house is away. The number of such ticks is added to the
 * lease of its event, which needs no lease, so that the timer keeps its rate. */
void domi_timer_postpone_to_next_tick(domi_manager *manager, domi_wheel_node *node)
{
    domi_timer *timer = get_timer_of_node(node);
    uint64_t late_ns = manager->now_ns - timer->wheel.expires_ns;
    uint32_t ticks = (uint32_t)(late_ns / DOMI_WHEEL_TICK_NS) + 1;

    timer->event.node.lease += ticks;
    domi_wheel_arm_node(&manager->timing.wheel, &timer->wheel,
                        timer->wheel.expires_ns + ticks * DOMI_WHEEL_TICK_NS);
}

void domi_timer_put_event_or_count_missed(domi_manager *manager, domi_wheel_node *node)
{
    domi_timer *timer = get_timer_of_node(node);

    if (domi_house_may_be_with_thief(timer->house)) {
        domi_timer_postpone_to_next_tick(manager, node);
        return;
    }
    uint64_t due_ns = node->expires_ns - timer->event.node.lease * DOMI_WHEEL_TICK_NS;
    uint64_t late_ns = manager->now_ns - due_ns;

    timer->event.node.lease = 0;
    timer->timed = false;
    domi_counter_add(&manager->counters.timers_fired, 1);
    if (timer->period_ns != 0 && !timer->fixed_delay) {
        uint64_t skipped = late_ns / timer->period_ns;
        timer->event.sender_lease += (uint32_t)skipped;
        put_timer_on_wheel(manager, timer, due_ns + (skipped + 1) * timer->period_ns);
    }
    if (timer->under_way) {
        timer->event.sender_lease++;
        return;
    }
    timer->under_way = true;
    /* The processor fetches the neighbours of the timer in the house's list of attached objects
     * now, because the end of the event writes them. */
    domi_prefetch_write(timer->link.next);
    domi_prefetch_write(timer->link.previous);
    /* A timer's event goes straight into the mailbox and not through the inbox: a house cancels its
     * timers before it is gone, and an event in the inbox could outlive it. */
    timer->event.node.kind = DOMI_EVENT;
    domi_mailbox_append_node(manager, timer->house, &timer->event.node, DOMI_EVENT);
}

void domi_timer_free_or_rearm_after_event(domi_manager *manager, domi_timer *timer)
{
    timer->under_way = false;
    timer->event.sender_lease = 0;
    if (timer->cancelled || timer->period_ns == 0)
        free_timer(manager, timer);
    else if (timer->fixed_delay)
        arm_timer_or_leave_note(manager, timer, manager->now_ns + timer->period_ns);
}

void domi_timer_free_with_dropped_event(domi_manager *manager, domi_node *node)
{
    domi_timer *timer = (domi_timer *)(void *)node;

    if (domi_house_is_run_by_thief(manager, timer->house) && domi_house_is_pooled(timer->house))
        remove_timer_from_wheel_of_pool(timer);
    else
        remove_timer_from_wheel(manager, timer);
    timer->cancelled = true;
    domi_timer_free_or_rearm_after_event(manager, timer);
}
