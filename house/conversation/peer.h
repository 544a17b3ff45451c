/* Requests of a channel's peer, for the conversations that answer them.
 *
 * A request is an ask whose asker is the house of the channel itself. While only that house has the
 * ask, it needs no promise: its domi_return names none, and the `serial` in it is the number that
 * io has given the request. An answer in that house goes to io by a direct call. Before the request
 * leaves the house (a forward), and if it has a deadline, it gets a promise, in a stack that is no
 * conversation and belongs to the channel (DOMI_WAIT_PEER). Then the answer comes through the
 * mailbox as any other, and io is called where a conversation would be resumed.
 *
 * The thread of the channel calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_PEER_H
#define DOMI_HOUSE_CONVERSATION_PEER_H

#include "house/conversation/stack.h"

/* Mark `ask` as a request of the peer of `house`, with the number `number`. Asks that are made for
 * it inherit `deadline_ns` from the first turn on; 0: it has no deadline. */
void domi_ask_make_request_of_peer(domi_envelope *ask, const domus_type *type,
                                   const domi_house *house, uint32_t number, uint64_t deadline_ns);

/* Give a request a promise, unless it has one. `*holder` is the stack of the channel for such
 * promises; it is made here if it is NULL. The promise carries the number of the request as its
 * tag, and fails at the deadline of the request. Returns 0; -ENOMEM. */
int domi_ask_give_request_promise(domi_manager *manager, domi_house *house, domi_envelope *ask,
                                  domus_stack **holder);

/* Read from which channel a request of a peer came, and its number there. Returns 0; -EINVAL for
 * any other ask. The thread that has the ask calls it. */
int domi_ask_find_request(domi_envelope *ask, domus_address *ret_channel, uint32_t *ret_number);

/* Cancel the conversations of `house`, because its connection is gone, except those that outlive
 * the connection. Returns whether any of them outlives it. */
bool domi_stack_cancel_of_peer(domi_manager *manager, domi_house *house);

/* Cancel those requests of the peer that actors keep, because the peer has finished sending and may
 * be gone. `holder` has the promises of its requests; NULL: none. */
void domi_stack_cancel_kept_of_peer(domi_manager *manager, domi_house *house, domus_stack *holder);

#endif
