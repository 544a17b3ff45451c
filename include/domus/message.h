/* Messages as objects: to pass a received one on, or to build one in place, without a copy.
 *
 * A message has one owner. It is a notice when it is sent; asks are passed on with
 * domus_forward(). What its payload owns is the message's ("Ownership" in domus/actor.h): it goes
 * with it when it is sent, and is released when it is freed.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. A
 * message may be kept in an actor's state between handlers, and is freed by the same actor. */
#ifndef DOMUS_MESSAGE_H
#define DOMUS_MESSAGE_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct domus_message domus_message;

/* A new message of `type`; its payload is not set, but zeroed when the type has a `release`, which
 * has to do nothing for zeros then. Returns 0; -ENOMEM, -ENOBUFS and -EBUSY as domus_notice();
 * -EMSGSIZE.
 * Ownership: the caller's, until sent or freed. What is written into the payload is owned by the
 * message from then on. */
DOMUS_API int domus_message_new(domus_stack *stack, const domus_type *type,
                                domus_message **ret_message);

/* Make the notice that is being handled one's own: its payload stays where it is and valid.
 * What it owns is the message's. Returns 0; -EINVAL when something else is handled, or it is gone
 * already; -EALREADY after domus_take(). */
DOMUS_API int domus_message_take(domus_stack *stack, domus_message **ret_message);

/* Its type, and type->size bytes aligned to 8. The payload of a publication is shared and must not
 * be changed; of any other message what it owns is kept by setting it to zeros there. */
DOMUS_API const domus_type *domus_message_type(const domus_message *message);
DOMUS_API void *domus_message_payload(domus_message *message);

/* Send it as a notice from this actor. Returns as domus_notice().
 * Ownership: consumed when this returns 0, else still the caller's. */
DOMUS_API int domus_message_send(domus_stack *stack, domus_address to, domus_message *message);

/* Free it, and release what its payload owns. NULL is taken. */
DOMUS_API void domus_message_free(domus_stack *stack, domus_message *message);

#ifdef __cplusplus
}
#endif

#endif
