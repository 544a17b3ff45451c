/* Selective receive and stash. A receive takes one message that a conversation chooses out of the
 * waiting mail; a stash puts a message aside. Only the thread that runs the house calls these. */
#ifndef DOMI_HOUSE_CONVERSATION_RECEIVE_H
#define DOMI_HOUSE_CONVERSATION_RECEIVE_H

#include "house/conversation/stack.h"

/* Search mail that the receives have not looked at yet, and resume each conversation whose receive
 * finds a message. Returns the number of handled messages, at most `budget`. */
uint32_t domi_receive_search_new_mail(domi_manager *manager, domi_house *house, uint32_t budget);

/* Search new mail for the receives as domi_receive_search_new_mail() does, for an actor with an
 * order. */
uint32_t domi_receive_search_new_ordered_mail(domi_manager *manager, domi_house *house,
                                              uint32_t budget);

/* Take the first message that `pattern` accepts out of the mail, for a receive that returns to its
 * caller (detached.h); NULL: none. `seen` remembers the last ask and the last notice that were
 * looked at; both are NULL at first. */
domi_envelope *domi_receive_take_matching_message(domi_manager *manager, domi_house *house,
                                                  const domus_pattern *pattern, const void *frame,
                                                  domi_node *seen[2]);

/* Put the messages of domus_stash() back before all waiting mail. Home of a channels actor may do
 * so, too. */
void domi_house_put_stash_back(domi_house *house);

/* If the message of domus_stop_after_mail() is the first in the mailbox, take it out and stop the
 * actor; mail that no receive accepts would otherwise stay before it for ever. True if the actor
 * stops. */
bool domi_receive_stop_if_last_notice_is_next(domi_manager *manager, domi_house *house);

#endif
