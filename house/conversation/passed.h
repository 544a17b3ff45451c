/* Asks that were passed on, which a cancel has to find all the same.
 *
 * An asker cancels where its promise says that the ask is (domi_promise.target). A forward moves
 * the ask, and mostly its new actor answers at once, so a forward tells nobody: it only marks the
 * ask (DOMI_PASSED_ON). An actor that holds such an ask beyond its turn, because its conversation
 * waits, or because the ask was kept or put aside, tells the asker once. The asker notes the new
 * place, or cancels the ask there if it has given it up meanwhile. So it does not matter how often
 * the ask was passed on, by whom, and over how many threads; and an ask that was not passed on pays
 * for nothing. The part of the holder is in holder.h. Whoever has the ask calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_PASSED_H
#define DOMI_HOUSE_CONVERSATION_PASSED_H

#include "house/conversation/stack.h"

/* True if nobody waits for the answer of `ask` any more: it was cancelled, its asker has ended, or
 * goes on without the answer. False for an ask that the end of its asker does not cancel. */
bool domi_ask_is_given_up(const domi_envelope *ask);

/* `stack` is about to put `ask`, which it handles or has kept, to another actor. Afterwards
 * domi_ask_follow() is called with a copy of the ask, if that has left. */
void domi_ask_pass_on(const domus_stack *stack, domi_envelope *ask);

/* An ask of this house itself, or of the peer of its channel, was put to `to`. */
void domi_ask_follow(const domus_stack *stack, const domi_envelope *ask, domus_address to);

/* Cancel an ask of this side where it is. Without memory for the event the asked actor is not
 * told. */
void domi_ask_cancel(domi_manager *manager, const domi_promise *promise);

/* Do the same, but only if an actor keeps the ask, or if an actor that works for it waits for a
 * kept ask. */
void domi_ask_cancel_kept(domi_manager *manager, const domi_promise *promise);

/* The sender of `message` has told that it holds an ask of the house that runs. */
void domi_ask_note_holder(domi_manager *manager, domi_envelope *message);

/* The house that `message` was for has ended, and waits for nothing: cancel the ask. */
void domi_ask_cancel_at_holder(domi_manager *manager, domi_envelope *message);

#endif
