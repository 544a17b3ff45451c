/* The release of the memory that the payload of a message owns.
 *
 * A message owns what its payload owns from the put on. When no one needs the message any more, the
 * library calls the `release` of its type, unless a handler took what is owned (domus_take()). The
 * lease in a node is not needed any more once the message is out of its mailbox, and 0 is no
 * actor's lease. So a lease of 0 marks a message whose payload owns nothing any more. Such a
 * message is never put again as it is: forward and stash refuse it, and a put of its envelope as a
 * reply or as an exception writes another lease.
 *
 * A timer's payload belongs to the timer, and the lease of a timer's event has another use
 * (timer.h). If a payload is shared, the last receiver releases what it owns (shared.h). */
#ifndef DOMI_HOUSE_MESSAGE_OWNED_H
#define DOMI_HOUSE_MESSAGE_OWNED_H

#include "house/message/pool.h"

#define DOMI_LEASE_TAKEN 0u /* lease that marks a message whose payload owns nothing any more */

/* lease that marks a new message which is in no mailbox yet and owns what its payload owns */
#define DOMI_LEASE_OWNED 1u

/* Release the memory that a message owns, unless a handler took it or it is shared. The type of the
 * message has a release. */
void domi_envelope_release_payload_slow(domi_envelope *message);

/* True if a handler took what the payload owns. Valid for an ask, a notice or an answer outside its
 * mailbox. */
static inline bool domi_envelope_is_payload_taken(const domi_envelope *message)
{
    return message->node.lease == DOMI_LEASE_TAKEN;
}

/* Release the memory that a message owns, if its type has a release. The message has a type, so it
 * is not an exception. */
DOMI_INLINE void domi_envelope_release_payload(domi_envelope *message)
{
    if (DOMI_UNLIKELY(message->type->release != NULL))
        domi_envelope_release_payload_slow(message);
}

/* Release the memory that a handled message owns, and free the message, unless an actor keeps
 * it. */
DOMI_INLINE void domi_envelope_release_and_free(domi_manager *manager, domi_envelope *message)
{
    domi_envelope_release_payload(message);
    domi_pool_free_object(manager, &message->node);
}

/* Release what an answer owns, and free it, as domi_envelope_release_and_free() does. An exception
 * owns nothing. */
DOMI_INLINE void domi_answer_release_and_free(domi_manager *manager, domi_envelope *answer)
{
    if (DOMI_LIKELY(answer->type != NULL))
        domi_envelope_release_payload(answer);
    domi_pool_free_object(manager, &answer->node);
}

#endif
