/* The general forms of domus_ask() and domus_reply(). The short forms in near.c handle small
 * messages between two actors of one thread, and call these for all others. */
#ifndef DOMI_HOUSE_CONVERSATION_ASK_H
#define DOMI_HOUSE_CONVERSATION_ASK_H

#include <domus/conversation.h>

/* Do the same as domus_ask(), for any message and any address. The thread that runs the house of
 * the stack calls it. */
int domi_ask_slow(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
                  domus_resumed *then);

/* Do the same as domus_reply(), for any reply. The thread that runs the house of the stack calls
 * it. */
int domi_reply_slow(domus_stack *stack, const domus_type *type, const void *payload);

#endif
