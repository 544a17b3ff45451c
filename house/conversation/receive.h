/* Selective receive, stash: which of the waiting mail a conversation takes, and what it puts aside.
 * By the runner. */
#ifndef DOMI_HOUSE_CONVERSATION_RECEIVE_H
#define DOMI_HOUSE_CONVERSATION_RECEIVE_H

#include "house/conversation/stack.h"

/* A receive waits no more. */
void domi_receive_leave(domi_house *house, domi_promise *promise);

/* Let the receives look at mail that they have not seen; resume who found something. Returns how
 * many messages were handled, at most `budget`. */
uint32_t domi_receive_run(domi_manager *manager, domi_house *house, uint32_t budget);

/* Take out the first message that `pattern` takes, for a receive that returns; NULL: none. `seen`
 * (asks, notices) remembers what was looked at; NULL at first. */
domi_envelope *domi_receive_find(domi_manager *manager, domi_house *house,
                                 const domus_pattern *pattern, const void *frame,
                                 domi_node *seen[2]);

/* domus_stop_after_mail() is the first in line (what no receive takes stays before it): take it out
 * and stop. */
bool domi_receive_last(domi_manager *manager, domi_house *house);

/* Mail was taken out or put in front: look at all of it again. */
void domi_receive_reset(domi_house *house);

#endif
