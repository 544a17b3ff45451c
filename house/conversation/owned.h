/* Who releases what the payload of a message owns.
 *
 * A message owns what its payload owns from the put on. When the message is done with, the library
 * calls the release of its type, unless a handler took what is owned (domus_take()). A message that
 * was taken out of its mailbox needs its lease no more, and 0 is no actor's lease, so a lease of 0
 * marks a message whose payload owns nothing any more. Such a message is never put again as it is:
 * forward and stash refuse it, and a put of its envelope as a reply or as an exception writes
 * another lease.
 *
 * A timer's payload is the timer's, which needs the lease of its event for something else
 * (timer.h). A shared payload is released by the last one who looks at it (shared.h).
 */
#ifndef DOMI_HOUSE_CONVERSATION_OWNED_H
#define DOMI_HOUSE_CONVERSATION_OWNED_H

#include "house/message/pool.h"

#define DOMI_LEASE_TAKEN 0u

/* A new message has been put to nobody, and owns its payload. */
#define DOMI_LEASE_OWNED 1u

/* Release what a message with a type of its own owns, unless it was taken or is shared. */
void domi_envelope_release_owned(domi_envelope *message);

/* Of an ask, a notice or an answer that is out of its mailbox. */
static inline bool domi_envelope_is_taken(const domi_envelope *message)
{
    return message->node.lease == DOMI_LEASE_TAKEN;
}

/* `message` is of a type: it is no exception. */
DOMI_INLINE void domi_envelope_release(domi_envelope *message)
{
    if (DOMI_UNLIKELY(message->type->release != NULL))
        domi_envelope_release_owned(message);
}

/* A message was handled, and nobody has it any more: release what it owns, and free it. */
DOMI_INLINE void domi_envelope_done(domi_manager *manager, domi_envelope *message)
{
    domi_envelope_release(message);
    domi_pool_free(manager, &message->node);
}

/* The same for an answer, which may be an exception. */
DOMI_INLINE void domi_answer_done(domi_manager *manager, domi_envelope *answer)
{
    if (DOMI_LIKELY(answer->type != NULL))
        domi_envelope_release(answer);
    domi_pool_free(manager, &answer->node);
}

/* Take what the payload of a message owns. Returns as domus_take(). */
int domi_envelope_take(domi_envelope *message);

#endif
