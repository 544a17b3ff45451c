/* Park, resume, end; see the header. */
#include "house/stack.h"

#include "base/check.h"
#include "house/ask.h"
#include "house/family.h"
#include "house/mailbox.h"
#include "house/pool.h"
#include "house/receive.h"

#include <errno.h>
#include <string.h>

domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size)
{
    size_t bytes = DOMI_STACK_HEAD + frame_size;
    uint32_t slab = bytes <= 384   ? DOMI_SLAB_STACK_SMALL
                    : bytes <= 640 ? DOMI_SLAB_STACK_MEDIUM
                                   : DOMI_SLAB_STACK_LARGE;

    if (frame_size > DOMUS_FRAME_MAX)
        return NULL;
    domus_stack *stack = domi_pool_take(manager, slab);
    if (stack == NULL)
        return NULL;

    atomic_store_explicit(&stack->house, house, memory_order_relaxed);
    stack->manager = manager;
    stack->ask = stack->message = stack->received = NULL;
    stack->pooled = stack;
    stack->then = NULL;
    stack->sender = (domus_address){NULL, 0};
    stack->frame_size = frame_size;
    stack->wait = DOMI_WAIT_NONE;
    stack->answered = stack->barrier = stack->barrier_fresh = stack->parked = false;
    stack->queued = stack->cancelled = stack->ended = false;
    stack->pending = 0;
    stack->waiting = stack->answers = stack->answers_last = stack->awaited = NULL;
    atomic_store_explicit(&stack->parent, NULL, memory_order_relaxed);
    stack->begun_by = NULL;
    stack->first.node.slab = DOMI_SLAB_STACK_PROMISE;
    stack->first.state = DOMI_PROMISE_FREE;
    stack->first.queued = stack->first.noted = false;
    domi_wheel_node_init(&stack->first.wheel);
    atomic_store_explicit(&stack->first.stack, stack, memory_order_relaxed);
    memset(stack->frame, 0, frame_size);
    return stack;
}

/* Who asked for this, for those who walk the chain from elsewhere. */
static void set_parent(domus_stack *pooled, domi_envelope *ask)
{
    const domi_return *back = domi_envelope_return(ask);

    atomic_store_explicit(&pooled->parent_serial, back->serial, memory_order_relaxed);
    /* release: who reads the parent sees its serial. */
    atomic_store_explicit(&pooled->parent, back->promise, memory_order_release);
}

domus_stack *domi_stack_pooled(domus_stack *stack)
{
    if (stack->pooled == NULL)
        stack->pooled = domi_stack_new(stack->manager, domi_stack_house(stack), 0);
    domus_stack *pooled = stack->pooled;
    if (pooled != NULL && stack->ask != NULL)
        set_parent(pooled, stack->ask);
    if (pooled != NULL && stack->message != NULL && pooled->begun_by == NULL)
        pooled->begun_by = stack->message->type;
    return pooled;
}

int domi_stack_may_wait(const domus_stack *stack)
{
    uint32_t marks = domi_stack_house(stack)->marks;

    if ((stack->pooled != NULL && stack->pooled->cancelled) ||
        (marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0)
        return -ECANCELED;
    return 0;
}

int domi_stack_promise(domus_stack *stack, domi_promise_kind kind, domi_promise **ret_promise)
{
    int error = domi_stack_may_wait(stack);

    if (error != 0)
        return error;
    domus_stack *pooled = domi_stack_pooled(stack);
    if (pooled == NULL)
        return -ENOMEM; /* a stack that it has got is freed when the handler returns */
    domi_promise *promise = domi_promise_new(stack->manager, pooled, kind);
    if (promise == NULL)
        return -ENOMEM;
    *ret_promise = promise;
    return 0;
}

static void stack_unlink(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    if (!stack->parked)
        return;
    stack->parked = false;
    if (stack->next != NULL)
        stack->next->previous = stack->previous;
    if (stack->previous != NULL)
        stack->previous->next = stack->next;
    else
        house->stacks = stack->next;
    if (--house->stacks_count < manager->conversations_max)
        house->marks &= (uint16_t)~DOMI_MARK_SATURATED;
}

static void stack_free(domi_manager *manager, domus_stack *stack)
{
    /* Relaxed: a walker only compares. */
    atomic_store_explicit(&stack->house, NULL, memory_order_relaxed);
    atomic_store_explicit(&stack->parent, NULL, memory_order_relaxed);
    domi_pool_free(manager, &stack->node);
}

/* No node of it is in a list any more. */
static void free_if_done(domi_manager *manager, domus_stack *stack)
{
    if (stack->ended && !stack->queued && !stack->first.queued && !stack->first.noted)
        stack_free(manager, stack);
}

void domi_stack_noted(domi_manager *home, domi_promise *promise)
{
    domus_stack *stack = domi_promise_stack(promise);
    bool own = promise->node.slab == DOMI_SLAB_STACK_PROMISE;

    if (domi_wheel_armed(&promise->wheel))
        domi_wheel_cancel(&home->deadlines, &promise->wheel);
    domi_promise_release(home, promise);
    if (own)
        free_if_done(home, stack);
}

/* Answers are linked by what the user sees: a promise's node may still be in the mailbox. */
static domi_promise *next_answer(const domi_promise *promise)
{
    if (promise->answer.next == NULL)
        return NULL;
    return (domi_promise *)(void *)((char *)(uintptr_t)promise->answer.next -
                                    offsetof(domi_promise, answer));
}

/* Free answers that were shown. */
static void answers_free(domi_manager *manager, domi_promise *answers)
{
    while (answers != NULL) {
        domi_promise *promise = answers;

        answers = next_answer(promise);
        if (promise->message != NULL && promise->message->node.kind == DOMI_ASK)
            domi_ask_fail(manager, promise->message, -ENOMSG); /* received among others */
        else if (promise->message != NULL)
            domi_pool_free(manager, &promise->message->node);
        domi_promise_release(manager, promise);
    }
}

/* What was not shown has not been handled either. */
static void answers_drop(domi_manager *manager, domus_stack *stack)
{
    for (domi_promise *promise = stack->answers; promise != NULL;) {
        domi_promise *next = next_answer(promise);

        if (promise->message != NULL)
            domi_mailbox_dead(manager, domi_stack_house(stack), &promise->message->node,
                              -ECANCELED);
        domi_promise_release(manager, promise);
        promise = next;
    }
    stack->answers = stack->answers_last = NULL;
}

/* Take back all that a pooled stack has, and free it as soon as no node of it is queued. */
static void pooled_end(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    while (stack->waiting != NULL)
        domi_promise_abandon(manager, stack->waiting);
    answers_drop(manager, stack);
    stack_unlink(manager, house, stack);
    atomic_store_explicit(&stack->serial, domi_stack_serial(stack) + 1, memory_order_relaxed);
    stack->wait = DOMI_WAIT_NONE;
    stack->ended = true;
    free_if_done(manager, stack);
}

/* --- park ----------------------------------------------------------------------------------- */

static void barrier_fall(domi_house *house)
{
    house->marks &= (uint16_t)~DOMI_MARK_BARRIER;
}

/* Who holds the barrier is the first, so that an ask that meets it finds him at once. */
static void link_parked(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    domus_stack *head = house->stacks;

    if (head != NULL && head->barrier) {
        stack->previous = head;
        stack->next = head->next;
        head->next = stack;
    } else {
        stack->previous = NULL;
        stack->next = head;
        house->stacks = stack;
    }
    if (stack->next != NULL)
        stack->next->previous = stack;
    stack->parked = true;
    if (++house->stacks_count >= manager->conversations_max)
        house->marks |= DOMI_MARK_SATURATED;
}

/* What it waits for is there: true if it may go on at once. */
static inline bool is_satisfied(const domus_stack *stack)
{
    switch (stack->wait) {
    case DOMI_WAIT_ONE:
        return stack->awaited->state == DOMI_PROMISE_DONE;
    case DOMI_WAIT_ALL:
        return stack->pending == 0;
    case DOMI_WAIT_FIRST:
        return stack->answers != NULL || stack->pending == 0;
    default:
        return false;
    }
}

/* Move what the run's frame holds to the pooled one, and link that at the house. */
static void park(domus_stack *stack)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_house(stack);
    domus_stack *pooled = stack->pooled;

    if (pooled != stack) {
        pooled->ask = stack->ask;
        pooled->answered = stack->answered;
        pooled->sender = stack->sender;
        pooled->barrier = stack->barrier;
        pooled->barrier_fresh = stack->barrier_fresh;
    }
    pooled->message = NULL;
    if (DOMI_LIKELY(pooled->parked && !pooled->barrier_fresh && !is_satisfied(pooled)))
        return;
    if (pooled->barrier_fresh && pooled->parked)
        stack_unlink(manager, house, pooled); /* to the head of the list */
    if (!pooled->parked)
        link_parked(manager, house, pooled);
    if (pooled->barrier_fresh) {
        pooled->barrier_fresh = false;
        domi_mailbox_fail_circles(manager, house, pooled);
    }
    if (is_satisfied(pooled) && !pooled->queued) {
        pooled->queued = true;
        pooled->node.kind = DOMI_EXCEPTION;
        domi_list_push(&house->tails[DOMI_EXCEPTION], &pooled->node);
    }
}

/* The conversation is over with `result`: whoever asked has to hear of it. */
static void end(domus_stack *stack, int result)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_house(stack);
    domus_stack *pooled = stack->pooled;

    if (stack->ask != NULL) {
        /* What a stop has cancelled is the stop's doing: who asked did not cancel anything. */
        if (result == -ECANCELED && (house->marks & DOMI_MARK_STOPPING) != 0)
            result = -ESTALE;
        domi_ask_fail(manager, stack->ask, result < 0 ? result : -ENOMSG);
        stack->ask = NULL;
    } else if (result < 0 && !(pooled != NULL && pooled->cancelled)) {
        domi_family_failed(manager, house, result, false);
    }
    if (stack->barrier)
        barrier_fall(house);
    if (pooled != NULL)
        pooled_end(manager, house, pooled);
}

void domi_stack_return(domus_stack *stack, int result)
{
    domus_stack *pooled = stack->pooled;

    if (stack->received != NULL) { /* a received ask that was neither answered nor kept */
        domi_ask_fail(stack->manager, stack->received, result < 0 ? result : -ENOMSG);
        stack->received = NULL;
    }
    if (result != DOMUS_PARKED)
        end(stack, result);
    else if (pooled == NULL || pooled->wait == DOMI_WAIT_NONE)
        end(stack, -EINVAL); /* it says that it waits, but for nothing */
    else
        park(stack);
}

void domi_stack_wait(domus_stack *pooled, domi_wait wait, domi_promise *awaited,
                     domus_resumed *then)
{
    pooled->wait = (uint8_t)wait;
    pooled->awaited = awaited;
    pooled->then = then;
}

/* --- resume --------------------------------------------------------------------------------- */

static void answers_append(domus_stack *stack, domi_promise *promise)
{
    promise->answer.next = NULL;
    if (stack->answers == NULL)
        stack->answers = promise;
    else
        stack->answers_last->answer.next = &promise->answer;
    stack->answers_last = promise;
}

/* What the resumed function is shown: of ALL the whole list, else one promise, taken out. */
static domi_promise *answers_take(domus_stack *stack, const domi_promise *one)
{
    domi_promise *first = stack->answers;
    domi_promise *before = NULL;
    domi_promise *promise = first;

    if (one == NULL) {
        stack->answers = stack->answers_last = NULL;
        return first;
    }
    for (; promise != one; promise = next_answer(promise))
        before = promise;
    domi_promise *next = next_answer(promise);
    if (before == NULL)
        stack->answers = next;
    else
        before->answer.next = promise->answer.next;
    if (next == NULL)
        stack->answers_last = before;
    promise->answer.next = NULL;
    return promise;
}

static int go_on(domi_manager *manager, domus_stack *stack, domi_envelope *message,
                 const domus_answer *answer)
{
    stack->manager = manager;
    stack->message = message;
    stack->wait = DOMI_WAIT_NONE;
    stack->awaited = NULL;
    return stack->then(stack, domi_stack_house(stack)->self, answer);
}

/* One answer: shown from here, so that its promise is free for the next ask. */
static void resume_one(domi_manager *manager, domus_stack *stack, domi_promise *promise)
{
    domus_answer answer = promise->answer;
    domi_envelope *message = promise->message;

    domi_promise_release(manager, promise);
    if (message != NULL && message->node.kind == DOMI_ASK) /* who answers or keeps it has it */
        stack->received = message;
    int result = go_on(manager, stack, message, &answer);
    if (message != NULL && stack->message == message && message->node.kind != DOMI_ASK)
        domi_pool_free(manager, &message->node);
    domi_stack_return(stack, result);
}

static void resume_all(domi_manager *manager, domus_stack *stack)
{
    static const domus_answer nothing = {0};
    domi_promise *answers = answers_take(stack, NULL);
    int result = go_on(manager, stack, NULL, answers != NULL ? &answers->answer : &nothing);

    answers_free(manager, answers);
    domi_stack_return(stack, result);
}

static void resume(domi_manager *manager, domus_stack *stack)
{
    if (stack->wait == DOMI_WAIT_ONE)
        resume_one(manager, stack, answers_take(stack, stack->awaited));
    else if (stack->wait == DOMI_WAIT_FIRST && stack->answers != NULL)
        resume_one(manager, stack, answers_take(stack, stack->answers));
    else
        resume_all(manager, stack);
}

void domi_stack_done(domi_manager *manager, domi_promise *promise, domi_envelope *message)
{
    domus_stack *stack = domi_promise_stack(promise);

    domi_promise_finish(manager, promise, message);
    answers_append(stack, promise);
    if (!stack->queued && is_satisfied(stack))
        resume(manager, stack);
}

/* What most conversations do: wait for one answer, and here it is. Nothing is kept, nothing linked.
 */
static void resume_at_once(domi_manager *manager, domus_stack *stack, domi_promise *promise,
                           domi_envelope *message)
{
    bool failed = message->node.kind == DOMI_EXCEPTION;
    const domus_answer answer = {
        .error = failed ? message->error : 0,
        .type = failed ? NULL : message->type,
        .payload = failed ? NULL : domi_envelope_payload(message),
        .tag = promise->answer.tag,
    };

    domi_promise_close(manager, promise);
    int result = go_on(manager, stack, message, &answer);
    if (stack->message == message)
        domi_pool_free(manager, &message->node);
    domi_stack_return(stack, result);
}

void domi_stack_answer(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    const domi_return *back = domi_envelope_return(message);
    domi_promise *promise = back->promise;

    if (domi_promise_serial(promise) != back->serial) {
        domi_counter_add(&manager->counters.late_replies, 1);
        domi_mailbox_dead(manager, house, &message->node, -ETIMEDOUT);
        return;
    }
    domus_stack *stack = domi_promise_stack(promise);
    DOMI_CHECK(domi_stack_house(stack) == house);
    if (DOMI_LIKELY(stack->awaited == promise && !stack->queued && !promise->queued)) {
        resume_at_once(manager, stack, promise, message);
        return;
    }
    if (message->node.kind == DOMI_EXCEPTION) {
        domi_promise_error(promise, message->error);
    } else {
        promise->answer.error = 0; /* it may have been about to fail here */
        promise->answer.type = message->type;
        promise->answer.payload = domi_envelope_payload(message);
    }
    domi_stack_done(manager, promise, message);
}

/* --- nodes, cancel, drop -------------------------------------------------------------------- */

/* Its node is out of the mailbox. True if it is still to be acted on. */
static bool unqueue(domi_manager *manager, domi_node *node)
{
    domi_promise *promise = (domi_promise *)(void *)node;
    domus_stack *stack =
        domi_node_is_stack(node) ? (domus_stack *)(void *)node : domi_promise_stack(promise);
    bool alive;

    if (domi_node_is_stack(node)) {
        stack->queued = false;
        alive = !stack->ended;
    } else {
        promise->queued = false;
        alive = promise->state == DOMI_PROMISE_WAITING;
        if (promise->state == DOMI_PROMISE_DEAD)
            domi_promise_release(manager, promise);
        if (node->slab == DOMI_SLAB_PROMISE)
            return alive;
    }
    free_if_done(manager, stack);
    return alive;
}

void domi_stack_node(domi_manager *manager, domi_node *node)
{
    if (!unqueue(manager, node)) {
        domi_counter_add(&manager->counters.late_replies, 1);
        return;
    }
    if (domi_node_is_stack(node))
        resume(manager, (domus_stack *)(void *)node);
    else
        domi_stack_done(manager, (domi_promise *)(void *)node, NULL);
}

void domi_stack_dropped(domi_manager *manager, domi_node *node)
{
    domi_promise *promise = (domi_promise *)(void *)node;

    /* While its node still says that it has failed: a receive is in no list any more. */
    if (domi_node_is_promise(node) && promise->state == DOMI_PROMISE_WAITING)
        domi_promise_abandon(manager, promise);
    (void)unqueue(manager, node);
}

void domi_stack_kept_end(domi_manager *manager, domus_stack *kept)
{
    kept->ask = NULL;
    pooled_end(manager, domi_stack_house(kept), kept);
}

void domi_stack_drop_all(domi_manager *manager, domi_house *house)
{
    while (house->stacks != NULL) {
        domus_stack *stack = house->stacks;

        if (stack->ask != NULL)
            domi_ask_fail(manager, stack->ask, -ESTALE);
        stack->ask = NULL;
        pooled_end(manager, house, stack);
    }
    DOMI_CHECK(house->promises == 0);
    barrier_fall(house);
}
