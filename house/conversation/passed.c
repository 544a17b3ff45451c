/* Follows asks that were passed on; see the header. */
#include "house/conversation/passed.h"

#include "base/memory.h"
#include "house/conversation/holder.h"

/* --- the asks that were cancelled last --------------------------------------------------------
 *
 * A cancel misses an ask that is between two actors, and the actor that holds it then tells the
 * asker. The promise may serve another ask by then, and does not say how the first one ended. An
 * ask whose asker only went on without the answer is to be left alone, so a manager remembers which
 * asks it has cancelled last. Promises have places in that table, and the later one of two that
 * have the same place is remembered. */

static domi_cancelled *place_of(domi_manager *manager, const domi_promise *promise)
{
    uintptr_t index = (uintptr_t)promise / sizeof(domi_promise);

    return &manager->cancelled[index % DOMI_CANCELLED_MAX];
}

static void remember_cancel(domi_manager *manager, const domi_promise *promise)
{
    if (manager->cancelled == NULL)
        manager->cancelled = domi_memory_new(DOMI_CANCELLED_MAX * sizeof(domi_cancelled));
    if (manager->cancelled != NULL)
        *place_of(manager, promise) = (domi_cancelled){promise, domi_promise_serial(promise)};
}

static bool was_cancelled(domi_manager *manager, const domi_return *back)
{
    if (manager->cancelled == NULL)
        return false;
    const domi_cancelled *last = place_of(manager, back->promise);
    return last->promise == back->promise && last->serial == back->serial;
}

/* --- cancel ----------------------------------------------------------------------------------- */

void domi_ask_cancel(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise)};

    if (promise->target.house == NULL)
        return;
    remember_cancel(manager, promise);
    domi_ask_put_cancel(manager, promise->target, &back);
}

void domi_ask_cancel_kept(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise),
                              .note = DOMI_CANCEL_KEPT};

    if (promise->target.house != NULL && promise->state == DOMI_PROMISE_WAITING)
        domi_ask_put_cancel(manager, promise->target, &back);
}

/* --- pass on ---------------------------------------------------------------------------------- */

bool domi_ask_is_given_up(const domi_envelope *ask)
{
    const domi_return *back = (const domi_return *)(const void *)ask->payload;

    /* Relaxed: the walks over chains of asks read the same (circle.c). */
    return back->promise != NULL && (back->until & DOMI_UNFOLLOWED) == 0 &&
           domi_promise_serial(back->promise) != back->serial;
}

void domi_ask_pass_on(const domus_stack *stack, domi_envelope *ask)
{
    domi_return *back = domi_envelope_return(ask);

    if (ask->sender != domi_stack_house(stack))
        back->until |= DOMI_PASSED_ON;
    else if (stack->pooled != NULL && stack->pooled->outlives)
        back->until |= DOMI_UNFOLLOWED;
}

void domi_ask_follow(const domus_stack *stack, const domi_envelope *ask, domus_address to)
{
    const domi_return *back = (const domi_return *)(const void *)ask->payload;

    if (ask->sender != domi_stack_house(stack) || back->promise == NULL ||
        (back->until & DOMI_UNFOLLOWED) != 0 || domi_ask_is_given_up(ask))
        return;
    if (back->promise->state == DOMI_PROMISE_WAITING)
        back->promise->target = to;
}

void domi_ask_note_holder(domi_manager *manager, domi_envelope *message)
{
    const domi_return *back = domi_envelope_return(message);
    domi_promise *promise = back->promise;
    bool is_over = domi_promise_serial(promise) != back->serial;

    if (!is_over && promise->state == DOMI_PROMISE_WAITING)
        promise->target = (domus_address){message->sender, message->sender_lease};
    else if (was_cancelled(manager, back))
        domi_ask_cancel_at_holder(manager, message);
}

void domi_ask_cancel_at_holder(domi_manager *manager, domi_envelope *message)
{
    domi_ask_put_cancel(manager, (domus_address){message->sender, message->sender_lease},
                        domi_envelope_return(message));
}
