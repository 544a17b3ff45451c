/* Park, resume, answer, end; see the header. */
#include "house/stack.h"

#include "base/check.h"
#include "house/mailbox.h"
#include "house/pool.h"

#include <errno.h>
#include <string.h>

static uint32_t epoch_of(const domus_stack *stack)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&stack->epoch, memory_order_relaxed);
}

domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size)
{
    size_t bytes = offsetof(domus_stack, frame) + frame_size;
    uint32_t slab = bytes <= 192   ? DOMI_SLAB_STACK_192
                    : bytes <= 384 ? DOMI_SLAB_STACK_384
                                   : DOMI_SLAB_STACK_960;

    if (frame_size > DOMUS_FRAME_MAX)
        return NULL;
    domus_stack *stack = domi_pool_take(manager, slab);
    if (stack == NULL)
        return NULL;

    stack->frame_size = frame_size;
    atomic_store_explicit(&stack->house, house, memory_order_relaxed);
    stack->manager = manager;
    stack->ask = stack->message = NULL;
    stack->pooled = stack;
    stack->then = NULL;
    stack->failure = 0;
    stack->waiting = stack->answered = stack->parked = stack->failed = false;
    stack->sender = (domus_address){NULL, 0};
    memset(stack->frame, 0, frame_size);
    return stack;
}

static void stack_free(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    if (stack->parked) {
        if (stack->next != NULL)
            stack->next->previous = stack->previous;
        if (stack->previous != NULL)
            stack->previous->next = stack->next;
        else
            house->stacks = stack->next;
        if (--house->stacks_count < manager->conversations_max)
            house->marks &= (uint8_t)~DOMI_MARK_SATURATED;
    }
    atomic_store_explicit(&stack->epoch, epoch_of(stack) + 1, memory_order_relaxed);
    atomic_store_explicit(&stack->house, NULL, memory_order_relaxed);
    domi_pool_free(manager, &stack->node);
}

/* Move what the run's frame holds to the pooled one, and link that at the house. */
static void park(domus_stack *stack)
{
    domi_house *house = domi_stack_house(stack);
    domus_stack *pooled = stack->pooled;

    if (pooled != stack) {
        pooled->ask = stack->ask;
        pooled->answered = stack->answered;
        pooled->sender = stack->sender;
        if (house->barrier == stack)
            house->barrier = pooled;
    }
    pooled->message = NULL;
    if (pooled->parked)
        return;
    pooled->parked = true;
    pooled->previous = NULL;
    pooled->next = house->stacks;
    if (pooled->next != NULL)
        pooled->next->previous = pooled;
    house->stacks = pooled;
    if (++house->stacks_count >= stack->manager->conversations_max)
        house->marks |= DOMI_MARK_SATURATED;
}

/* The conversation is over with `result`: whoever asked has to hear of it. */
static void end(domus_stack *stack, int result)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_house(stack);
    domus_stack *pooled = stack->pooled;

    if (stack->ask != NULL) {
        domi_ask_fail(manager, stack->ask, result < 0 ? result : -ENOMSG);
        stack->ask = NULL;
    } else if (result < 0) {
        domi_counter_add(&manager->counters.failures, 1);
    }
    if (house->barrier == stack || (pooled != NULL && house->barrier == pooled)) {
        house->barrier = NULL;
        house->marks &= (uint8_t)~DOMI_MARK_BARRIER;
    }
    if (pooled != NULL) {
        /* It asked and then returned something else: the answer will find another epoch. */
        if (pooled->waiting)
            house->promises--;
        pooled->waiting = false;
        pooled->then = NULL;
        if (!pooled->failed) /* else its node is linked: it is freed when that is taken */
            stack_free(manager, house, pooled);
    }
}

void domi_stack_return(domus_stack *stack, int result)
{
    domus_stack *pooled = stack->pooled;

    if (result != DOMUS_PARKED)
        end(stack, result);
    else if (pooled == NULL || !pooled->waiting)
        end(stack, -EINVAL); /* it says that it waits, but for nothing */
    else
        park(stack);
}

static void resume(domi_manager *manager, domus_stack *stack, domi_envelope *message,
                   const domus_answer *answer)
{
    domi_house *house = domi_stack_house(stack);

    atomic_store_explicit(&stack->epoch, epoch_of(stack) + 1, memory_order_relaxed);
    house->promises--;
    stack->manager = manager;
    stack->waiting = false;
    stack->message = message;
    domi_stack_return(stack, stack->then(stack, house->self, answer));
}

void domi_stack_resume(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    const domi_return *back = domi_envelope_return(message);
    domus_stack *stack = back->stack;

    if (domi_stack_house(stack) != house || epoch_of(stack) != back->epoch) {
        domi_mailbox_dead(manager, &message->node, 0);
        return;
    }

    domus_answer answer = {0};
    if (message->node.kind == DOMI_EXCEPTION) {
        answer.error = message->error;
    } else {
        answer.type = message->type;
        answer.payload = domi_envelope_payload(message);
    }
    resume(manager, stack, message, &answer);
    domi_pool_free(manager, &message->node);
}

void domi_stack_resume_failed(domi_manager *manager, domi_house *house, domi_node *node)
{
    domus_stack *stack = (domus_stack *)(void *)node;
    domus_answer answer = {.error = stack->failure};

    DOMI_CHECK(domi_stack_house(stack) == house && stack->failed);
    stack->failed = false;
    if (stack->then == NULL) /* it ended without waiting for it */
        stack_free(manager, house, stack);
    else
        resume(manager, stack, NULL, &answer);
}

void domi_stack_dropped(domi_manager *manager, domi_node *node)
{
    domus_stack *stack = (domus_stack *)(void *)node;

    stack->failed = false;
    if (!stack->parked) /* else domi_stack_drop_all() finds it */
        stack_free(manager, domi_stack_house(stack), stack);
}

void domi_stack_drop_all(domi_manager *manager, domi_house *house)
{
    while (house->stacks != NULL) {
        domus_stack *stack = house->stacks;

        if (stack->ask != NULL)
            domi_ask_fail(manager, stack->ask, -ESTALE);
        stack->ask = NULL;
        stack_free(manager, house, stack);
    }
    house->promises = 0;
    house->barrier = NULL;
}
