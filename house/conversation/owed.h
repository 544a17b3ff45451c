/* The asks of the library itself that belong to something which the asked actor does already: the
 * pieces of bodies and streams (io/pipelines/). They are put whatever waits at that actor, and are
 * bounded by what they belong to. Whoever runs the house of the stack. */
#ifndef DOMI_HOUSE_CONVERSATION_OWED_H
#define DOMI_HOUSE_CONVERSATION_OWED_H

#include "house/conversation/stack.h"

#include <domus/conversation.h>

/* Do the same as domus_ask(), for an ask that belongs to earlier work of the asked actor. */
int domi_ask_owed(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
                  domus_resumed *then);

/* Do the same as domus_ask_add(), without a time-out. */
int domi_ask_owed_add(domus_stack *stack, domus_address to, const domus_type *type,
                      const void *payload, uint64_t tag);

/* --- asks that leave in parts ------------------------------------------------------------------
 *
 * Such an ask has two promises of one conversation: that of its answer, and that of its start,
 * which the asked actor completes when it has taken the first part. The conversation goes on then,
 * and sends the other parts. */

/* A part of the payload of the first part. */
typedef struct domi_begin {
    domi_return back;   /* the promise that waits for the start */
    domus_stack *stack; /* the conversation, and its serial: it is over when that has changed */
    uint32_t serial;
} domi_begin;

/* Ask with the first part, and suspend until it was taken, or until the ask is over. `begin`,
 * which lies in the payload, is filled. `timeout_ns` is the ask's; 0: it has none of its own.
 * Returns as domus_ask(). */
int domi_ask_begin(domus_stack *stack, domus_address to, const domus_type *type,
                   const void *payload, domi_begin *begin, uint64_t timeout_ns,
                   domus_resumed *then);

/* An ask of this conversation, by its promise and the serial that it had. */
typedef struct domi_asking {
    struct domi_promise *promise;
    uint32_t serial;
} domi_asking;

/* Returns 0 if the answer of the ask is still to come, or was not shown yet; -ENOENT; -ECANCELED in
 * a conversation that was cancelled. */
int domi_ask_check(const domus_stack *stack, domi_asking asking);

/* Put the last part of such an ask (its payload is copied), as domi_ask_owed() does, and suspend
 * until the answer to the ask is there. domi_ask_check() has returned 0. Its own return names
 * nobody. If it cannot be put, the ask has ended, or will end. Returns DOMUS_PARKED; -ENOMEM. */
int domi_ask_end(domus_stack *stack, domi_asking asking, domus_address to, const domus_type *type,
                 const void *payload, domus_resumed *then);

/* Do the same as domi_ask_look_of_peer(), for the request that is handled; -EALREADY when it was
 * answered, forwarded or kept. */
int domi_stack_look_of_peer(const domus_stack *stack, domus_address *ret_channel,
                            uint32_t *ret_number);

/* Do the same for a request that was kept; -ENOENT when the request is not kept any more. */
int domi_kept_look_of_peer(const domus_stack *stack, domus_kept kept, domus_address *ret_channel,
                           uint32_t *ret_number);

#endif
