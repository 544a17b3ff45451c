/* Messages as objects: an actor can pass a received message on, or build one in place, without a
 * copy.
 *
 * A message has one owner. It is sent as a notice; asks are passed on with domus_forward(). The
 * message owns what its payload owns ("Ownership" in domus/actor.h): this goes along when the
 * message is sent, and is released when the message is freed.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. An actor may keep a message in its state between handlers; only the same actor may
 * free it. */
#ifndef DOMUS_MESSAGE_H
#define DOMUS_MESSAGE_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message as an object, which has one owner. */
typedef struct domus_message domus_message;

/* Make a message of `type`. Its payload is not initialised. Only if the type has a `release`, the
 * payload is zeroed; that `release` must then do nothing for zeros.
 *
 * Ownership: the message is the caller's, until it is sent or freed. The message owns what the
 * caller's writes make its payload own.
 * Returns 0; -ENOMEM, -ENOBUFS and -EBUSY as domus_notice(); -EMSGSIZE. */
DOMUS_API int domus_message_new(domus_stack *stack, const domus_type *type,
                                domus_message **ret_message);

/* Turn the notice that is being handled into an object of this actor. Its payload stays at its
 * address and valid.
 *
 * Ownership: the message is the caller's, until it is sent or freed, and owns what its payload
 * owns.
 * Returns 0; -EINVAL when no notice is handled, or the notice is gone (forwarded, put aside, made
 * an object); -EALREADY after domus_take(). */
DOMUS_API int domus_message_take(domus_stack *stack, domus_message **ret_message);

/* Return the type of a message, and its payload of type->size bytes, aligned to 8. The payload of a
 * publication is shared and must not be changed. To keep what the payload of another message owns,
 * set the pointers in it to zero. */
DOMUS_API const domus_type *domus_message_type(const domus_message *message);
DOMUS_API void *domus_message_payload(domus_message *message);

/* Send the message as a notice from this actor.
 *
 * Ownership: the message is consumed when this returns 0; otherwise it is still the caller's.
 * Returns as domus_notice(). */
DOMUS_API int domus_message_send(domus_stack *stack, domus_address to, domus_message *message);

/* Free the message, and release what its payload owns. NULL is allowed, and does nothing. */
DOMUS_API void domus_message_free(domus_stack *stack, domus_message *message);

#ifdef __cplusplus
}
#endif

#endif
