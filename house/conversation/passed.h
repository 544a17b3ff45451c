/* Asks that were passed on, which a cancel has to find all the same.
 *
 * An asker sends a cancel to the actor that its promise names (domi_promise.target). A forward
 * moves the ask, and mostly its new actor answers at once, so a forward tells nobody: it only marks
 * the ask (DOMI_PASSED_ON). An actor that holds such an ask beyond its turn, because its
 * conversation waits, or because the ask was kept or stashed, tells the asker once. The asker
 * records the new place, or cancels the ask there if it has given it up meanwhile. So it does not
 * matter how often, by whom and over how many threads the ask was passed on; and an ask that was
 * not passed on pays for nothing. holder.h has the part of the holder. The thread that has the ask
 * calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_PASSED_H
#define DOMI_HOUSE_CONVERSATION_PASSED_H

#include "house/conversation/stack.h"

/* True if nobody waits for the answer of `ask` any more: the ask was cancelled, or its asker has
 * ended or has gone on without the answer. False for an ask that the end of its asker does not
 * cancel. */
bool domi_ask_is_given_up(const domi_envelope *ask);

/* Mark `ask`, which `stack` handles or has kept and is about to put to another actor. If the put
 * succeeds, domi_ask_record_new_holder() has to be called with a copy of the ask. */
void domi_ask_mark_passed_on(const domus_stack *stack, domi_envelope *ask);

/* Record that an ask of this house itself, or of the peer of its channel, was put to `to`. */
void domi_ask_record_new_holder(const domus_stack *stack, const domi_envelope *ask,
                                domus_address to);

/* Cancel an ask of this house at the actor that has it. Without memory for the event that actor is
 * not told. */
void domi_ask_cancel(domi_manager *manager, const domi_promise *promise);

/* Do the same as domi_ask_cancel(), but only if an actor keeps the ask, or if an actor that works
 * for it waits for a kept ask. */
void domi_ask_cancel_kept(domi_manager *manager, const domi_promise *promise);

/* Record that the sender of `message` holds an ask of the house that runs. */
void domi_ask_record_holder(domi_manager *manager, domi_envelope *message);

/* Cancel the ask that the sender of `message` holds, because the house that `message` was for has
 * ended. */
void domi_ask_cancel_at_holder(domi_manager *manager, domi_envelope *message);

#endif
