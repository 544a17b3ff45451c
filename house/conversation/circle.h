/* Circles of asks: an ask that waits behind a barrier, and was made for the conversation that holds
 * the barrier, would wait for itself. */
#ifndef DOMI_HOUSE_CONVERSATION_CIRCLE_H
#define DOMI_HOUSE_CONVERSATION_CIRCLE_H

#include "house/message/manager.h"

/* An ask was just appended behind a barrier. If it waits for itself, take it out again and let it
 * fail with -EDEADLK. Returns true if it stays. Home, or the runner. */
bool domi_circle_hold_ask(domi_manager *manager, domi_house *house, domi_node *ask);

/* Let those waiting asks fail with -EDEADLK that were made, directly or through other actors, for
 * `holder`, because they would wait behind the barrier of `holder` for ever. Called when `holder`
 * parks for the first time after it raised the barrier. */
void domi_circle_fail_waiting(domi_manager *manager, domi_house *house, const domus_stack *holder);

/* True if the ask that `back` belongs to was made, directly or through other asks, for the
 * conversation `holder`. Any thread. */
bool domi_stack_is_in_chain(const domi_return *back, const domus_stack *holder);

#endif
