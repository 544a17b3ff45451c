/* The long ways of domus_ask() and domus_reply(), which near.c takes for all but small messages
 * between two actors of one thread. */
#ifndef DOMI_HOUSE_CONVERSATION_ASK_H
#define DOMI_HOUSE_CONVERSATION_ASK_H

#include <domus/conversation.h>

/* Do the same as domus_ask(). The thread that runs the house of the stack calls it. */
int domi_ask_slow(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
                  domus_resumed *then);

/* Do the same as domus_reply(). The thread that runs the house of the stack calls it. */
int domi_reply_slow(domus_stack *stack, const domus_type *type, const void *payload);

#endif
