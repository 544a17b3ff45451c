/* The message of a gathered send (one send of several pieces of memory) and the list of these
 * pieces, as a backend keeps them.
 *
 * A caller of `send_message` builds both on its own stack, so no channel has room for them. The
 * backend copies them to a place that belongs to the queued operation, and the place is used again
 * when the kernel has taken that operation. The bytes themselves are not copied. Owner thread. */
#ifndef DOMI_IO_BACKEND_GATHERED_H
#define DOMI_IO_BACKEND_GATHERED_H

#include "base/check.h"
#include "io/backend/backend.h"

#include <string.h>
#include <sys/uio.h>

typedef struct domi_gathered {
    struct msghdr message; /* message of a gathered send, whose msg_iov points to `pieces` */
    struct iovec pieces[DOMI_PIECES_MAX];
} domi_gathered;

/* Copy the `message` of a gathered send and the list of its pieces, of which there are at most
 * DOMI_PIECES_MAX. Returns the copy. */
static inline const struct msghdr *domi_gathered_copy_message(domi_gathered *gathered,
                                                              const struct msghdr *message)
{
    size_t count = (size_t)message->msg_iovlen; /* the field msg_iovlen is an int in musl */

    DOMI_CHECK(count <= DOMI_PIECES_MAX);
    gathered->message = *message;
    memcpy(gathered->pieces, message->msg_iov, count * sizeof *gathered->pieces);
    gathered->message.msg_iov = gathered->pieces;
    return &gathered->message;
}

#endif
