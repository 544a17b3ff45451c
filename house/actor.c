/* The verbs of an actor: the public functions of domus/actor.h over mailboxes, stacks and timers.
 */
#include <domus/actor.h>

#include "base/prefetch.h"
#include "house/life.h"
#include "house/mailbox.h"
#include "house/pool.h"
#include "house/stack.h"
#include "house/timer.h"

#include <errno.h>
#include <string.h>

domus_address domus_self(const domus_stack *stack)
{
    return domi_house_address(domi_stack_house(stack));
}

domus_address domus_sender(const domus_stack *stack)
{
    const domi_envelope *message = stack->message;

    if (message == NULL)
        return stack->sender;
    return message->sender != NULL ? (domus_address){message->sender, message->sender_lease}
                                   : (domus_address){NULL, 0};
}

void *domus_frame(domus_stack *stack)
{
    return stack->frame_size != 0 ? stack->frame : NULL;
}

uint64_t domus_now_ns(const domus_stack *stack)
{
    return stack->manager->now_ns;
}

/* Payloads are small: one copy of 8 or 16 bytes is worth a branch of its own. */
static inline void copy(void *to, const void *from, uint32_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == 16)
        memcpy(to, from, 16);
    else if (size != 0)
        memcpy(to, from, size);
}

static inline void sign(domi_envelope *envelope, const domus_type *type, const domi_house *sender)
{
    domus_address self = domi_house_address(sender);

    envelope->type = type;
    envelope->sender = self.house;
    envelope->sender_lease = self.lease;
}

int domus_notice(domus_stack *stack, domus_address to, const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;

    if (DOMI_UNLIKELY(type->size > DOMUS_PAYLOAD_MAX))
        return -EMSGSIZE;
    domi_prefetch_write(to.house); /* the put reads and writes this line, perhaps from afar */
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + type->size);
    if (DOMI_UNLIKELY(envelope == NULL))
        return -ENOMEM;
    sign(envelope, type, domi_stack_house(stack));
    copy(envelope->payload, payload, type->size);

    int error = domi_mailbox_put(manager, to, &envelope->node, DOMI_NOTICE);
    if (DOMI_UNLIKELY(error != 0))
        domi_pool_free(manager, &envelope->node);
    return error;
}

int domus_ask(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
              domus_resumed *then)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_house(stack);

    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    if (stack->pooled != NULL && stack->pooled->waiting)
        return -EBUSY;
    if (stack->pooled == NULL)
        stack->pooled = domi_stack_new(manager, house, 0);
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ASK_HEAD + type->size);
    if (stack->pooled == NULL || envelope == NULL) {
        if (envelope != NULL)
            domi_pool_free(manager, &envelope->node);
        return -ENOMEM; /* a stack that it got is freed when the handler returns */
    }

    domus_stack *pooled = stack->pooled;
    sign(envelope, type, house);
    *domi_envelope_return(envelope) = (domi_return){
        .stack = pooled,
        .epoch = atomic_load_explicit(&pooled->epoch, memory_order_relaxed),
    };
    copy((char *)envelope + DOMI_ASK_HEAD, payload, type->size);
    pooled->then = then;
    pooled->waiting = true;
    house->promises++;

    int error = domi_mailbox_put(manager, to, &envelope->node, DOMI_ASK);
    if (DOMI_UNLIKELY(error != 0)) {
        /* It resumes with its error, on a later message of this run: through its own node. */
        if (type->drop != NULL)
            type->drop((char *)envelope + DOMI_ASK_HEAD);
        domi_pool_free(manager, &envelope->node);
        pooled->failure = error;
        pooled->failed = true;
        pooled->node.kind = DOMI_EXCEPTION;
        domi_list_push(&house->tails[DOMI_EXCEPTION], &pooled->node);
    }
    return DOMUS_PARKED;
}

/* The ask's own envelope if the reply fits, else a larger one. NULL without memory. */
static domi_envelope *reply_envelope(domi_manager *manager, domi_envelope *ask, uint32_t size)
{
    if (DOMI_ASK_HEAD + size <= domi_envelope_room(ask))
        return ask;
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ASK_HEAD + size);
    if (envelope == NULL)
        return NULL;
    *domi_envelope_return(envelope) = *domi_envelope_return(ask);
    return envelope;
}

int domus_reply(domus_stack *stack, const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;
    domi_envelope *ask = stack->ask;

    if (ask == NULL)
        return stack->answered ? -EALREADY : -EINVAL;
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;

    domus_address asker = {ask->sender, ask->sender_lease};
    stack->ask = NULL;
    stack->answered = true;
    if (stack->message == ask) {
        stack->message = NULL;
        stack->sender = asker;
    }
    domi_envelope *reply = reply_envelope(manager, ask, type->size);
    if (reply == NULL) {
        if (type->drop != NULL)
            type->drop((void *)(uintptr_t)payload);
        domi_ask_fail(manager, ask, -ENOMEM);
        return 0;
    }
    /* The reply may be made from the ask's own payload: move, and free the ask after. */
    if (type->size != 0)
        memmove((char *)reply + DOMI_ASK_HEAD, payload, type->size);
    if (reply != ask)
        domi_pool_free(manager, &ask->node);
    sign(reply, type, domi_stack_house(stack));
    if (domi_mailbox_put(manager, asker, &reply->node, DOMI_REPLY) != 0)
        domi_mailbox_dead(manager, &reply->node, 0);
    return 0;
}

int domus_barrier(domus_stack *stack)
{
    domi_house *house = domi_stack_house(stack);

    if (house->barrier != NULL)
        return house->barrier == stack || house->barrier == stack->pooled ? -EALREADY : -EBUSY;
    house->barrier = stack;
    house->marks |= DOMI_MARK_BARRIER;
    return 0;
}

int domus_spawn(domus_stack *stack, const domus_behaviour *behaviour, const void *state,
                domus_address *ret_address)
{
    domi_manager *manager = stack->manager;

    return domi_house_spawn(manager, domi_stack_house(stack)->home, behaviour, state, ret_address);
}

int domus_stop(domus_stack *stack, domus_address address)
{
    return domi_house_stop(stack->manager, address);
}

static int timer_arm(domus_stack *stack, uint64_t delay_ns, uint64_t period_ns,
                     const domus_type *type, const void *payload, domus_timer *ret_timer)
{
    domi_timer *timer;

    if (type->size > DOMUS_TIMER_PAYLOAD_MAX)
        return -EMSGSIZE;
    int error = domi_timer_new(stack->manager, domi_stack_house(stack), delay_ns, period_ns, type,
                               payload, &timer);
    if (error == 0 && ret_timer != NULL)
        *ret_timer = (domus_timer){timer, timer->generation};
    return error;
}

int domus_after(domus_stack *stack, uint64_t delay_ns, const domus_type *type, const void *payload,
                domus_timer *ret_timer)
{
    return timer_arm(stack, delay_ns, 0, type, payload, ret_timer);
}

int domus_every(domus_stack *stack, uint64_t period_ns, const domus_type *type, const void *payload,
                domus_timer *ret_timer)
{
    if (period_ns < DOMI_WHEEL_TICK_NS)
        return -EINVAL;
    return timer_arm(stack, period_ns, period_ns, type, payload, ret_timer);
}

int domus_timer_cancel(domus_stack *stack, domus_timer timer)
{
    domi_timer *own = timer.timer;

    if (own == NULL || own->generation != timer.generation ||
        own->house != domi_stack_house(stack) || own->cancelled)
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
