/* Implements the verbs of an actor for its own address, notices, spawning and stopping, its
 * behaviour, and timers. */
#include "base/prefetch.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/family/behaviour.h"
#include "house/family/life.h"
#include "house/message/arrivals.h"
#include "house/message/family.h"
#include "house/message/order.h"
#include "house/message/pool.h"
#include "house/message/pooled.h"
#include "house/message/sign.h"
#include "house/message/types.h"

#include <domus/receive.h>
#include <domus/timer.h>

#include <errno.h>

domus_address domus_self(const domus_stack *stack)
{
    return domi_house_get_address(domi_stack_get_house(stack));
}

domus_address domus_sender(const domus_stack *stack)
{
    const domi_envelope *message = stack->message;
    domus_address sender =
        message == NULL ? stack->sender : (domus_address){message->sender, message->sender_lease};

    if (sender.house == NULL || sender.house == stack->manager->asker)
        return (domus_address){NULL, 0};
    return sender;
}

void *domus_frame(domus_stack *stack)
{
    return domi_stack_get_frame(stack);
}

uint64_t domus_now_ns(const domus_stack *stack)
{
    return stack->manager->now_ns;
}

DOMI_INLINE int send_notice_in_new_envelope(domi_manager *manager, const domi_house *sender,
                                            domus_address to, const domus_type *type,
                                            const void *payload)
{
    domi_envelope *envelope = domi_message_new(manager, DOMI_ENVELOPE_HEAD + type->size);

    if (DOMI_UNLIKELY(envelope == NULL))
        return domi_message_error_of_failed_new(manager);
    domi_envelope_set_type_and_sender(envelope, type, sender);
    domi_payload_copy(envelope->payload, payload, type->size);

    int error = domi_mailbox_put_copied_notice(manager, to, &envelope->node);
    if (DOMI_UNLIKELY(error != 0))
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

/* Send a notice of any kind, with a payload of any size and in a new envelope. */
__attribute__((noinline)) static int send_notice_of_any_size(domus_stack *stack, domus_address to,
                                                             const domus_type *type,
                                                             const void *payload)
{
    if (DOMI_UNLIKELY(type->size > DOMUS_PAYLOAD_MAX))
        return -EMSGSIZE;
    return send_notice_in_new_envelope(stack->manager, domi_stack_get_house(stack), to, type,
                                       payload);
}

/* Send a notice that cannot take the short way of domus_notice(). A small notice to another thread
 * or within a pool is put directly, without another test of the home lane. */
__attribute__((noinline)) static int send_notice_by_slow_path(domus_stack *stack, domus_address to,
                                                              const domus_type *type,
                                                              const void *payload)
{
    domi_manager *manager = stack->manager;

    if (type->size > DOMI_PAYLOAD_FEW || to.house == NULL || to.house->home == manager ||
        !domi_pool_has_free_envelope_in_slab(manager, DOMI_SLAB_64))
        return send_notice_of_any_size(stack, to, type, payload);
    domi_envelope *envelope = domi_pool_take_object(manager, DOMI_SLAB_64);
    envelope->node.lease = to.lease;
    envelope->node.kind = DOMI_NOTICE;
    domi_envelope_set_type_and_sender(envelope, type, domi_stack_get_house(stack));
    domi_payload_copy_few_bytes(envelope->payload, payload, type->size);
    int error = domi_mailbox_put_copied_notice_slow(manager, to.house, &envelope->node);
    if (DOMI_UNLIKELY(error != 0))
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

/* Send a small notice by the home lane without a function call. This is possible if no mark holds
 * the notice back, so all conditions that may need a call are checked before anything is
 * changed. */
int domus_notice(domus_stack *stack, domus_address to, const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;

    /* the put reads and writes this cache line of the receiver's house, which another thread may
     * have written last */
    domi_prefetch_write(to.house);
    if (DOMI_UNLIKELY(type->size > DOMI_PAYLOAD_FEW ||
                      !domi_mailbox_is_home_lane_open(manager, to, DOMI_NOTICE) ||
                      (to.house->marks & DOMI_MARKS_HOLD) != 0 ||
                      !domi_pool_has_free_envelope_in_slab(manager, DOMI_SLAB_64)))
        return send_notice_by_slow_path(stack, to, type, payload);
    domi_envelope *envelope = domi_pool_take_object(manager, DOMI_SLAB_64);
    envelope->node.lease = to.lease;
    envelope->node.kind = DOMI_NOTICE;
    domi_envelope_set_type_and_sender(envelope, type, domi_stack_get_house(stack));
    domi_payload_copy_few_bytes(envelope->payload, payload, type->size);
    domi_mailbox_append_unheld_node(manager, to.house, &envelope->node, DOMI_NOTICE);
    return 0;
}

/* Number of targets of domus_notice_all() whose houses are prefetched. This halves the time of
 * 100,000 sends, and makes no difference for a few. */
#define AHEAD 8u

int domus_notice_all(domus_stack *stack, const domus_address *to, uint32_t count,
                     const domus_type *type, const void *payload, uint32_t *ret_sent)
{
    domi_manager *manager = stack->manager;
    uint32_t sent = 0;
    int result = 0;

    if (ret_sent != NULL)
        *ret_sent = 0;
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    if (type->release != NULL)
        return -EINVAL;
    domi_links_begin_batch(manager);
    for (uint32_t i = 0; i < count; i++) {
        if (i + AHEAD < count)
            domi_prefetch_write(to[i + AHEAD].house);
        int error =
            send_notice_in_new_envelope(manager, domi_stack_get_house(stack), to[i], type, payload);
        sent += error == 0;
        if (result == 0)
            result = error;
    }
    domi_links_end_batch(manager);
    if (ret_sent != NULL)
        *ret_sent = sent;
    return result;
}

/* Returns the home for a new actor; NULL if the options name a thread that does not exist or a pool
 * of another system, or if the actor would be in a pool and is no state actor. */
static domi_manager *choose_home_of_new_actor(domus_stack *stack, const domus_behaviour *behaviour,
                                              const domus_spawn_options *options)
{
    domi_manager *manager = stack->manager;
    domi_manager *home = domi_stack_get_house(stack)->home;
    domus_placement placement = options != NULL ? options->placement : DOMUS_NEAR;
    uint32_t threads = manager->threads;

    if (options != NULL && options->pool != NULL)
        return domi_pooled_home_for_spawn(manager, options->pool, behaviour);
    if (placement == DOMUS_NEAR && home->index < threads)
        return home;
    if (placement == DOMUS_NEAR && home->pooled != NULL)
        return behaviour == NULL || behaviour->kind == DOMUS_STATE ? home : NULL;
    if (placement == DOMUS_NEAR || placement == DOMUS_SPREAD)
        return manager->managers[manager->births.next_home++ % threads];
    if (placement == DOMUS_ON_THREAD && options->thread < threads)
        return manager->managers[options->thread];
    return NULL;
}

/* True if the options of a spawn name neither a pool nor a place, so that the new actor would be in
 * a pool only because its parent is in it. */
static bool would_spawn_stay_in_parents_pool(const domi_house *parent,
                                             const domus_spawn_options *options)
{
    return domi_house_is_pooled(parent) &&
           (options == NULL || (options->pool == NULL && options->placement == DOMUS_NEAR));
}

int domus_spawn_with(domus_stack *stack, const domus_behaviour *behaviour, const void *state,
                     const domus_spawn_options *options, domus_address *ret_address)
{
    domi_manager *manager = stack->manager;
    domi_house *parent = domi_stack_get_house(stack);

    if (options != NULL && options->detached) {
        if (options->pool != NULL)
            return -EINVAL;
        if (manager->hooks.spawn_detached == NULL)
            return -EOPNOTSUPP;
        return manager->hooks.spawn_detached(manager, parent, behaviour, state, options,
                                             ret_address);
    }
    domi_manager *home = choose_home_of_new_actor(stack, behaviour, options);
    if (home == NULL)
        return would_spawn_stay_in_parents_pool(parent, options)
                   ? domi_refuse_verb_without_ring(stack)
                   : -EINVAL;
    return domi_house_spawn_child(manager, parent, home, behaviour, state, options, ret_address);
}

int domus_spawn(domus_stack *stack, const domus_behaviour *behaviour, const void *state,
                domus_address *ret_address)
{
    domi_house *parent = domi_stack_get_house(stack);

    if (DOMI_UNLIKELY(parent->home->index >= stack->manager->threads))
        return domus_spawn_with(stack, behaviour, state, NULL, ret_address);
    return domi_house_spawn_child(stack->manager, parent, parent->home, behaviour, state, NULL,
                                  ret_address);
}

int domus_stop(domus_stack *stack, domus_address address)
{
    return domi_house_ask_to_stop(stack->manager, address);
}

int domus_stop_after_mail(domus_stack *stack, domus_address address)
{
    domi_envelope *envelope = domi_message_new(stack->manager, DOMI_ENVELOPE_HEAD);

    if (envelope == NULL)
        return domi_message_error_of_failed_new(stack->manager);
    domi_envelope_set_type_and_sender(envelope, &domi_last_type, domi_stack_get_house(stack));
    int error = domi_mailbox_put_behind_all_mail(stack->manager, address, &envelope->node);
    if (error != 0)
        domi_pool_free_object(stack->manager, &envelope->node);
    return error;
}

int domus_become(domus_stack *stack, const domus_behaviour *behaviour)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_family *family = domi_family_get_or_make(house);

    if (family == NULL)
        return -ENOMEM;
    if (family->born_as == NULL)
        family->born_as = house->behaviour;
    const domus_behaviour *next = behaviour != NULL ? behaviour : family->born_as;
    int error = domi_behaviour_check(next);
    if (error != 0)
        return error;
    if (next->kind != family->born_as->kind || next->state_size > family->born_as->state_size)
        return -EINVAL;
    if (domi_house_is_channel(house) &&
        (next->pipeline == NULL) != (house->behaviour->pipeline == NULL))
        return -EINVAL;
    if (next->order != NULL && domi_order_make_for_house(house) != 0)
        return -ENOMEM;
    domi_house_count_under_behaviour(stack->manager, house, next);
    domi_order_set_behaviour_and_resort(house, next);
    return 0;
}

static int arm_timer_of_actor(domus_stack *stack, uint64_t delay_ns, uint64_t period_ns,
                              bool fixed_delay, const domus_type *type, const void *payload,
                              domus_timer *ret_timer)
{
    domi_timer *timer;

    if (type->size > DOMUS_TIMER_PAYLOAD_MAX)
        return -EMSGSIZE;
    int error = domi_timer_new(stack->manager, domi_stack_get_house(stack), delay_ns, period_ns,
                               type, payload, &timer);
    if (error == 0)
        timer->fixed_delay = fixed_delay;
    if (error == 0 && ret_timer != NULL)
        *ret_timer = (domus_timer){timer, domi_timer_generation(timer)};
    return error;
}

int domus_after(domus_stack *stack, uint64_t delay_ns, const domus_type *type, const void *payload,
                domus_timer *ret_timer)
{
    return arm_timer_of_actor(stack, delay_ns, 0, false, type, payload, ret_timer);
}

int domus_every(domus_stack *stack, uint64_t period_ns, const domus_type *type, const void *payload,
                domus_timer *ret_timer)
{
    if (period_ns < DOMI_WHEEL_TICK_NS)
        return -EINVAL;
    return arm_timer_of_actor(stack, period_ns, period_ns, false, type, payload, ret_timer);
}

int domus_repeat(domus_stack *stack, uint64_t delay_ns, const domus_type *type, const void *payload,
                 domus_timer *ret_timer)
{
    if (delay_ns < DOMI_WHEEL_TICK_NS)
        return -EINVAL;
    return arm_timer_of_actor(stack, delay_ns, delay_ns, true, type, payload, ret_timer);
}

int domus_timer_cancel(domus_stack *stack, domus_timer timer)
{
    domi_timer *own = timer.timer;

    if (own == NULL || domi_timer_generation(own) != timer.generation ||
        own->house != domi_stack_get_house(stack) || own->cancelled)
        return -ENOENT;
    bool handled_now = stack->message == &own->event;
    if (handled_now && own->period_ns == 0)
        return -ENOENT;
    domi_timer_cancel(stack->manager, own);
    return 0;
}

uint64_t domus_timer_missed(const domus_stack *stack)
{
    const domi_envelope *message = stack->message;

    if (message == NULL || !domi_node_is_timer(&message->node))
        return 0;
    return message->sender_lease;
}
