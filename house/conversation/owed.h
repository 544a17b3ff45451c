/* The asks of the library itself that belong to something which the asked actor does already: the
 * pieces of bodies and streams (io/pipelines/). They are put whatever waits at that actor, and are
 * bounded by what they belong to. Whoever runs the house of the stack. */
#ifndef DOMI_HOUSE_CONVERSATION_OWED_H
#define DOMI_HOUSE_CONVERSATION_OWED_H

#include "house/conversation/stack.h"

#include <domus/conversation.h>

/* As domus_ask(), for such an ask. */
int domi_ask_owed(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
                  domus_resumed *then);

/* As domus_ask_add(), without a time-out. */
int domi_ask_owed_add(domus_stack *stack, domus_address to, const domus_type *type,
                      const void *payload, uint64_t tag);

/* As domi_ask_look_of_peer(), for the request that is handled; -EALREADY when it was answered,
 * forwarded or kept. */
int domi_stack_look_of_peer(const domus_stack *stack, domus_address *ret_channel,
                            uint32_t *ret_number);

/* The same for a request that was kept; -ENOENT when it is not kept any more. */
int domi_kept_look_of_peer(const domus_stack *stack, domus_kept kept, domus_address *ret_channel,
                           uint32_t *ret_number);

#endif
