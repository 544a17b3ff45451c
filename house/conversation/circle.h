/* Circles of asks: an ask that waits behind a barrier, and was made for the conversation that holds
 * this barrier, would wait for itself. */
#ifndef DOMI_HOUSE_CONVERSATION_CIRCLE_H
#define DOMI_HOUSE_CONVERSATION_CIRCLE_H

#include "house/message/manager.h"

/* Check an ask that was just appended behind a barrier. If the ask would wait for itself, take it
 * out again and let it fail with -EDEADLK. Returns true if the ask stays. Called by home, or by the
 * runner of a pool. */
bool domi_circle_check_ask(domi_manager *manager, domi_house *house, domi_node *ask);

/* Let those waiting asks fail with -EDEADLK that were made, directly or through other actors, for
 * `holder`, because they would wait behind the barrier of `holder` for ever. Called when `holder`
 * parks for the first time after it raised the barrier. */
void domi_circle_fail_waiting(domi_manager *manager, domi_house *house, const domus_stack *holder);

/* True if the ask named by `back` was made for the conversation `holder`, directly or through other
 * asks. Any thread. */
bool domi_stack_is_in_chain(const domi_return *back, const domus_stack *holder);

#endif
