/* The ways of an ask: it is answered or fails, waits behind a barrier, is passed on, cancelled, or
 * was asked by the peer of a channel. The thread that runs the house calls these functions, where
 * nothing else is said. */
#ifndef DOMI_HOUSE_CONVERSATION_ASKS_H
#define DOMI_HOUSE_CONVERSATION_ASKS_H

#include "house/conversation/stack.h"
#include "house/message/manager.h"

#include <domus/conversation.h>

/* ---- answer.c ---------------------------------------------------------------------------------*/

/* The three ends of an ask: it is answered, it fails, or its deadline passes. The functions of this
 * section work on envelopes and know no conversation; the verbs of domus/conversation.h are built
 * on them. */

/* True if the deadline of an ask has passed. The actor drops such an ask before it is handled; the
 * asker needs no answer, because it watches the deadline by its own clock. */
static inline bool domi_ask_is_expired(const domi_manager *manager, domi_envelope *ask)
{
    uint64_t deadline_ns = domi_envelope_deadline_ns(ask);

    return deadline_ns != 0 && deadline_ns <= manager->now_ns;
}

void domi_ask_drop_expired(domi_manager *manager, domi_envelope *ask);

/* Let an ask fail with `error`: its own envelope goes back to the asker as an exception. The
 * library releases what the ask's payload owns, unless a handler took it. */
void domi_ask_fail(domi_manager *manager, domi_envelope *ask, int error);

/* Answer `ask` in the name of `house`, with a payload of `type`. This takes over `ask`; the caller
 * has checked the size of the payload. */
void domi_ask_answer_for_house(domi_manager *manager, domi_house *house, domi_envelope *ask,
                               const domus_type *type, const void *payload);

/* ---- ask.c ------------------------------------------------------------------------------------*/

/* The general forms of domus_ask() and domus_reply(). The short forms in near.c handle small
 * messages between two actors of one thread, and call these for all others. */

/* Make an ask as domus_ask() does, for any message and any address. The thread that runs the house
 * of the stack calls it. */
int domi_ask_by_slow_path(domus_stack *stack, domus_address to, const domus_type *type,
                          const void *payload, domus_resumed *then);

/* Answer an ask as domus_reply() does, for any reply. The thread that runs the house of the stack
 * calls it. */
int domi_reply_by_slow_path(domus_stack *stack, const domus_type *type, const void *payload);

/* ---- cancel.c ---------------------------------------------------------------------------------*/

/* The functions of cancel.c carry out cancels, by which an asker tells the asked actor that it has
 * given up an ask. */

/* Handle the cancel `first`, which has come to the asked house, and all cancels that wait directly
 * behind it. For each of them drop the ask if it still waits in a mailbox, else cancel the
 * conversation that answers it. */
void domi_ask_carry_out_cancels_in_row(domi_manager *manager, domi_house *house,
                                       const domi_envelope *first);

/* Handle all cancels among the events of `house` now. A handler that receives in a loop calls this,
 * because its house takes nothing from the event mailbox meanwhile. Returns true if there was any
 * cancel. */
bool domi_ask_carry_out_waiting_cancels(domi_manager *manager, domi_house *house);

/* ---- circle.c ---------------------------------------------------------------------------------*/

/* Circles of asks: an ask that waits behind a barrier, and was made for the conversation that holds
 * this barrier, would wait for itself. */

/* Check an ask that was just appended behind a barrier. If the ask would wait for itself, take it
 * out again and let it fail with -EDEADLK. Returns true if the ask stays. Called by home, or by the
 * runner of a pool. */
bool domi_circle_fail_ask_if_in_circle(domi_manager *manager, domi_house *house, domi_node *ask);

/* Let those waiting asks fail with -EDEADLK that were made, directly or through other actors, for
 * `holder`, because they would wait behind the barrier of `holder` for ever. Called when `holder`
 * parks for the first time after it raised the barrier. */
void domi_circle_fail_waiting_asks(domi_manager *manager, domi_house *house,
                                   const domus_stack *holder);

/* True if the ask named by `back` was made for the conversation `holder`, directly or through other
 * asks. Any thread. */
bool domi_stack_was_ask_made_for(const domi_return *back, const domus_stack *holder);

/* ---- passed.c ---------------------------------------------------------------------------------*/

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

/* True if nobody waits for the answer of `ask` any more: the ask was cancelled, or its asker has
 * ended or has gone on without the answer. False for an ask that the end of its asker does not
 * cancel. */
bool domi_ask_is_given_up(const domi_envelope *ask);

/* Mark `ask`, which `stack` handles or has kept and is about to put to another actor, as passed on.
 * If the put succeeds, domi_ask_record_new_holder() has to be called with a copy of the ask. */
void domi_ask_mark_passed_on(const domus_stack *stack, domi_envelope *ask);

/* Record in the promise of an ask of this house, or of its channel's peer, that the ask was put to
 * `to`. */
void domi_ask_record_new_holder(const domus_stack *stack, const domi_envelope *ask,
                                domus_address to);

/* Cancel an ask of this house at the actor that has the ask now. Without memory for the event that
 * actor is not told. */
void domi_ask_cancel_at_its_actor(domi_manager *manager, const domi_promise *promise);

/* Cancel an ask as domi_ask_cancel_at_its_actor() does, but only if an actor keeps the ask, or if
 * an actor that works for it waits for a kept ask. */
void domi_ask_cancel_if_kept(domi_manager *manager, const domi_promise *promise);

/* Record that the sender of `message`, an event, holds an ask of the house that runs. */
void domi_ask_record_sender_as_holder(domi_manager *manager, domi_envelope *message);

/* Cancel the ask that the sender of `message`, an event, holds: the house that had asked, and that
 * `message` was for, has ended. */
void domi_ask_cancel_at_holder(domi_manager *manager, domi_envelope *message);

/* ---- peer.c -----------------------------------------------------------------------------------*/

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

/* Mark `ask` as a request of the peer of `house`, with the number `number`. Asks that are made for
 * it inherit `deadline_ns` from the first turn on; 0: it has no deadline. */
void domi_ask_make_request_of_peer(domi_envelope *ask, const domus_type *type,
                                   const domi_house *house, uint32_t number, uint64_t deadline_ns);

/* Give a request of a channel's peer a promise, unless it has one. `*holder` is the stack of the
 * channel for such promises; it is made here if it is NULL. The promise carries the number of the
 * request as its tag, and fails at the deadline of the request. Returns 0; -ENOMEM. */
int domi_ask_make_promise_for_peer_request(domi_manager *manager, domi_house *house,
                                           domi_envelope *ask, domus_stack **holder);

/* Read from which channel a request of a peer came, and its number there. Returns 0; -EINVAL for
 * any other ask. The thread that has the ask calls it. */
int domi_ask_find_request_of_peer(domi_envelope *ask, domus_address *ret_channel,
                                  uint32_t *ret_number);

/* Cancel the conversations of the channel `house`, because its connection is gone, except those
 * that outlive the connection. Returns whether any of them outlives it. */
bool domi_stack_cancel_when_peer_is_gone(domi_manager *manager, domi_house *house);

/* Cancel those requests of a channel's peer that actors keep, because the peer has finished sending
 * and may be gone. `holder` has the promises of its requests; NULL: none. */
void domi_stack_cancel_kept_requests_of_peer(domi_manager *manager, domi_house *house,
                                             domus_stack *holder);

#endif
