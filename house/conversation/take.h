/* Taking payloads: a handler takes over what the payload of a message owns. */
#ifndef DOMI_HOUSE_CONVERSATION_TAKE_H
#define DOMI_HOUSE_CONVERSATION_TAKE_H

#include "house/message/envelope.h"

/* Take over what the payload of a message owns, so that the library does not release it. Returns as
 * domus_take(). */
int domi_envelope_take_payload(domi_envelope *message);

#endif
