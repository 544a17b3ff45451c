/* Makes stacks. park.c parks and ends them, and turn.c resumes a parked stack. */
#include "house/conversation/stack.h"

#include "house/conversation/holder.h"
#include "house/message/pool.h"

#include <string.h>

/* Set up a stack that has a frame of its own. Its serial is not set here, because it grows over all
 * lives of a pooled stack. */
static inline void init_stack_with_frame(domus_stack *stack, domi_manager *manager,
                                         domi_house *house, uint32_t frame_size)
{
    atomic_store_explicit(&stack->house, house, memory_order_relaxed);
    stack->manager = manager;
    stack->ask = stack->message = stack->received = NULL;
    stack->pooled = stack;
    stack->then = NULL;
    stack->sender = (domus_address){NULL, 0};
    stack->frame_size = frame_size;
    stack->wait = DOMI_WAIT_NONE;
    stack->answered = stack->barrier = stack->barrier_fresh = stack->end_acts = false;
    stack->parked = stack->queued = stack->cancelled = stack->ended = false;
    stack->outlives = stack->works = false;
    stack->pending = stack->away = 0;
    stack->waiting = stack->answers = stack->answers_last = stack->awaited = NULL;
    atomic_store_explicit(&stack->parent, NULL, memory_order_relaxed);
    stack->begun_by = NULL;
    stack->first.node.slab = DOMI_SLAB_STACK_PROMISE;
    stack->first.state = DOMI_PROMISE_FREE;
    stack->first.queued = stack->first.noted = stack->first.timed = false;
    stack->first.uncounted = stack->first.second = false;
    domi_wheel_node_init(&stack->first.wheel);
    atomic_store_explicit(&stack->first.stack, stack, memory_order_relaxed);
    memset(stack->frame, 0, frame_size);
}

domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size)
{
    size_t bytes = DOMI_STACK_HEAD + frame_size;
    uint32_t slab = bytes <= 384   ? DOMI_SLAB_STACK_SMALL
                    : bytes <= 640 ? DOMI_SLAB_STACK_MEDIUM
                                   : DOMI_SLAB_STACK_LARGE;

    if (frame_size > DOMUS_FRAME_MAX)
        return NULL;
    domus_stack *stack = domi_pool_take_object(manager, slab);
    if (stack != NULL)
        init_stack_with_frame(stack, manager, house, frame_size);
    return stack;
}

domus_stack *domi_stack_init_in_c_frame(void *place, domi_manager *manager, domi_house *house,
                                        uint32_t frame_size)
{
    domus_stack *stack = place;

    init_stack_with_frame(stack, manager, house, frame_size);
    atomic_init(&stack->serial, 0);
    /* marks the stack as one on which domi_stack_check_may_wait() refuses every wait */
    stack->cancelled = true;
    stack->away = DOMI_STACK_LOCAL; /* lets the end of the stack free nothing */
    return stack;
}

/* Record the promise of the asker that waits for this ask, for walks over the chain of asks
 * (circle.c). */
static void record_promise_of_asker(domus_stack *pooled, domi_envelope *ask)
{
    const domi_return *back = domi_envelope_get_return_of_ask(ask);

    /* release: a walker that reads a new `parent` or `parent_serial` also sees that the stack's
     * earlier wait is over (circle.c). */
    atomic_store_explicit(&pooled->parent_serial, back->serial, memory_order_release);
    atomic_store_explicit(&pooled->parent, back->promise, memory_order_release);
}

domus_stack *domi_stack_get_or_make_pooled(domus_stack *stack)
{
    if (stack->pooled == NULL)
        stack->pooled = domi_stack_new(stack->manager, domi_stack_get_house(stack), 0);
    domus_stack *pooled = stack->pooled;
    if (pooled != NULL && stack->ask != NULL) {
        record_promise_of_asker(pooled, stack->ask);
        domi_ask_record_hold_beyond_turn(stack->manager, domi_stack_get_house(stack), stack->ask);
    }
    if (pooled != NULL && stack->message != NULL && pooled->begun_by == NULL)
        pooled->begun_by = stack->message->type;
    return pooled;
}
