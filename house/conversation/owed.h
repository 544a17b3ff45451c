/* Asks of the library itself that belong to earlier work of the asked actor: the pieces of bodies
 * and streams (io/pipelines/). A full mailbox does not refuse these asks; the work to which they
 * belong bounds their number. The thread that runs the house of the stack calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_OWED_H
#define DOMI_HOUSE_CONVERSATION_OWED_H

#include "house/conversation/stack.h"

#include <domus/conversation.h>

/* Make an ask as domus_ask() does, one that belongs to earlier work of the asked actor, so that a
 * full mailbox does not refuse it. */
int domi_ask_for_earlier_work(domus_stack *stack, domus_address to, const domus_type *type,
                              const void *payload, domus_resumed *then);

/* Make a further ask as domus_ask_add() does, one that belongs to earlier work of the asked actor,
 * without a time-out. */
int domi_ask_add_for_earlier_work(domus_stack *stack, domus_address to, const domus_type *type,
                                  const void *payload, uint64_t tag);

/* --- asks that leave in parts ------------------------------------------------------------------
 *
 * Such an ask has two promises of one conversation: one for its answer, and one for its start,
 * which the asked actor completes when it has taken the first part. Then the conversation goes on
 * and sends the other parts. */

/* The fields that the library has in the payload of the first part of an ask that leaves in
 * parts. */
typedef struct domi_begin {
    domi_return back; /* the promise that waits until the asked actor has taken the first part */
    /* the asking conversation, and its serial; the conversation is over when its serial has
     * changed */
    domus_stack *stack;
    uint32_t serial;
} domi_begin;

/* Ask with the first part of an ask that leaves in parts, and suspend until the asked actor has
 * taken it or the ask has ended. Fills `begin`, which lies in the payload. `timeout_ns` is the
 * time-out of the ask; 0: none of its own. Returns as domus_ask(). */
int domi_ask_put_first_part_and_wait(domus_stack *stack, domus_address to, const domus_type *type,
                                     const void *payload, domi_begin *begin, uint64_t timeout_ns,
                                     domus_resumed *then);

/* An ask that this conversation has made: its promise, and the serial that the promise had then. */
typedef struct domi_asking {
    struct domi_promise *promise;
    uint32_t serial;
} domi_asking;

/* Returns 0 if the answer of an ask is still to come, or was not shown to a handler yet; -ENOENT if
 * it was; -ECANCELED in a conversation that was cancelled. */
int domi_ask_check_under_way(const domus_stack *stack, domi_asking asking);

/* Put the last part of an ask that leaves in parts, as domi_ask_for_earlier_work() does (its
 * payload is copied), and suspend until the answer to the whole ask is there.
 * domi_ask_check_under_way() must have returned 0 before. The last part itself gets no answer. If
 * it cannot be put, the ask has ended, or will end. Returns DOMUS_PARKED, or -ENOMEM. */
int domi_ask_put_last_part_and_wait(domus_stack *stack, domi_asking asking, domus_address to,
                                    const domus_type *type, const void *payload,
                                    domus_resumed *then);

/* Find the channel and the number of the peer's request that this conversation handles, as
 * domi_ask_find_request_of_peer() does. Returns -EALREADY when the request was answered, forwarded
 * or kept. */
int domi_stack_find_request_of_peer(const domus_stack *stack, domus_address *ret_channel,
                                    uint32_t *ret_number);

/* Find the channel and the number of a peer's request that was kept, as
 * domi_ask_find_request_of_peer() does. Returns -ENOENT when it is not kept any more. */
int domi_kept_find_request_of_peer(const domus_stack *stack, domus_kept kept,
                                   domus_address *ret_channel, uint32_t *ret_number);

#endif
