/* Asks in inner channels: for byte stages of clients that carry several conversations in one
 * connection (domus/inner.h), such as HTTP/2 by domus/http2_client.h.
 *
 * An ask for the peer of a channel with such a stage is not encoded there. It goes on to an inner
 * channel that the stage lends (`lend` in domus/stage.h), whose message stage encodes it and
 * decodes its answer, as that of any connection does. The stage lends it again when it has no ask
 * left. To pools the outer channel is one connection that has room for many asks (domus/pool.h).
 *
 * Asks that an inner channel cannot have answered go back to the pool of the outer one. An inner
 * channel is reset when the deadline of its ask has passed. The outer one is not: a stage whose
 * peer may be gone without a word has to find that out.
 *
 * The stage hears of the end of an ask as of other news (domus_wire_inner_next()), also of one that
 * was not sent, because its message stage has refused it or its time was over:
 * domus_inner_has_ask() is false then. A stage calls domus_inner_rest() for an inner channel
 * without an ask, so that it does not hold its place for long; to lend it ends that.
 *
 * The outer channel has to be of a pool or of a channels actor. Inner channels count as connections
 * of this side (connect.maxConnections).
 *
 * Thread-safety: only from within the functions of the stage. */
#ifndef DOMUS_LEND_H
#define DOMUS_LEND_H

#include <domus/inner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Say that asks go to inner channels from now on, as long as fewer than `most` things are under way
 * in them (domus_wire_set_carried(), which counts an inner channel from `lend` until it is idle);
 * further ones wait. It may be called again. 0: the peer takes no further ask, and the channel is
 * closed when nothing is under way. Asks that wait go to other connections of the pool, or fail
 * with -ENOTCONN, and so do further ones. */
DOMUS_API void domus_wire_lend(domus_wire *wire, uint32_t most);

/* True from the moment at which an inner channel is lent until its ask is over: it was answered,
 * and the body of the answer was read, or it has failed. */
DOMUS_API bool domus_inner_has_ask(const domus_inner *inner);

/* True if the channel is reset when what is queued was taken, because its message stage has cut a
 * request. The peer need not get that: to drop the channel ends it at once. */
DOMUS_API bool domus_inner_is_broken(const domus_inner *inner);

/* Give an inner channel up as domus_inner_drop() does, whose peer has said that it has done nothing
 * of what it was asked. The pool then sends the ask again, whatever its type is, unless a part of
 * it was written in pieces. Each time counts as one of `tries_max`. */
DOMUS_API void domus_inner_refuse(domus_inner *inner);

/* Give an inner channel up as domus_inner_drop() does, whose ask cannot be sent to any peer: it
 * fails with this negative errno, and is not sent again. */
DOMUS_API void domus_inner_fail(domus_inner *inner, int error);

#ifdef __cplusplus
}
#endif

#endif
