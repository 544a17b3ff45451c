/* Asks that were passed on; see the header. */
#include "house/conversation/passed.h"

#include "base/memory.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <string.h>

/* --- the asks that were cancelled last --------------------------------------------------------
 *
 * A cancel misses an ask that is between two actors, and the actor that holds it then tells the
 * asker. By then the promise may serve another ask, and does not say how the first one ended. An
 * ask whose asker only went on without the answer is to be left alone, so a manager remembers which
 * asks it has cancelled last. Of two whose promises have the same place, it remembers the later
 * one. */

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

/* Put an event about an ask to `to`. Returns 0; -ESTALE; 0 without memory for the event. */
static int put_event(domi_manager *manager, domus_address to, const domus_type *type,
                     const domi_return *back, domus_address sender)
{
    domi_envelope *envelope = domi_envelope_new(manager, sizeof(domi_envelope));

    if (envelope == NULL)
        return 0;
    envelope->type = type;
    envelope->sender = sender.house;
    envelope->sender_lease = sender.lease;
    memcpy(envelope->payload, back, sizeof *back);
    int error = domi_mailbox_put(manager, to, &envelope->node, DOMI_EVENT);
    if (error != 0)
        domi_pool_free(manager, &envelope->node);
    return error;
}

static void put_cancel(domi_manager *manager, domus_address to, const domi_return *back)
{
    (void)put_event(manager, to, &domi_cancel_type, back, (domus_address){NULL, 0});
}

void domi_ask_cancel(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise)};

    if (promise->target.house == NULL)
        return;
    remember_cancel(manager, promise);
    put_cancel(manager, promise->target, &back);
}

void domi_ask_cancel_kept(domi_manager *manager, const domi_promise *promise)
{
    const domi_return back = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise),
                              .note = DOMI_CANCEL_KEPT};

    if (promise->target.house != NULL && promise->state == DOMI_PROMISE_WAITING)
        put_cancel(manager, promise->target, &back);
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

void domi_ask_tell_holder(domi_manager *manager, const domi_house *house, domi_envelope *ask)
{
    domi_return *back = domi_envelope_return(ask);
    domus_address self = domi_house_address(house);
    domus_address asker = {ask->sender, ask->sender_lease};

    back->until &= ~DOMI_PASSED_ON;
    if ((back->until & DOMI_UNFOLLOWED) != 0)
        return;
    const domi_return held = {.promise = back->promise, .serial = back->serial};
    if (put_event(manager, asker, &domi_held_type, &held, self) != 0)
        put_cancel(manager, self, &held);
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
    put_cancel(manager, (domus_address){message->sender, message->sender_lease},
               domi_envelope_return(message));
}
