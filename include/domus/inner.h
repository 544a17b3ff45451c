/* Inner channels: channels that travel within another one, for stages of protocols that carry
 * several conversations in one connection (HTTP/2 by domus/http2.h).
 *
 * An inner channel is a channel as any other: it has an actor of its own, with the behaviour of the
 * channel that carries it (the outer one), and the limits and time-outs of the same listener. It
 * has no descriptor. Its pipeline is what follows the stage in that of the outer channel. Its bytes
 * come from that stage, and its stage takes them; until then they are queued, and count, and the
 * actor that writes them waits, as for any peer that reads slowly. An inner channel can serve many
 * requests, one after the other, as a connection does.
 *
 * The stage has a `carry` (domus/stage.h), which is called when some inner channels have news: at
 * the end of an iteration of the loop, once for all of them. It asks for each of these by
 * domus_wire_inner_next(), and hears at least of:
 *
 *   - bytes that were queued when nothing else was,
 *   - bytes that were passed on and have been used,
 *   - the end of its output, or of the channel.
 *
 * An inner channel counts as a connection, for channel.maxConnections and channel.maxPerAddress,
 * too. channel.minRate and channel.maxAge are about sockets, and do not hold for it.
 *
 * Thread-safety: only from within the functions of the stage that has opened it. */
#ifndef DOMUS_INNER_H
#define DOMUS_INNER_H

#include <domus/channel.h>
#include <domus/stage.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An inner channel as its stage sees it: valid from domus_wire_inner_open() to domus_inner_drop(),
 * also when the channel has ended meanwhile. */
typedef struct domus_inner domus_inner;

/* The state of an inner channel, as its stage sees it. */
typedef enum domus_inner_state {
    DOMUS_INNER_OPEN,
    /* the channel sends nothing behind what is queued, and still takes bytes */
    DOMUS_INNER_FINISHED,
    DOMUS_INNER_CLOSED, /* the channel has ended: nothing is queued, and nothing is taken */
} domus_inner_state;

/* Open an inner channel, in a byte stage that is none of a listener's front. `data` is for the
 * stage, which gets it back by domus_inner_data(). The stage has to drop it, in its `close` at the
 * latest.
 *
 * Returns 0; -ENOMEM; -ENOBUFS when channel.maxConnections are there, or memory is short; -EPIPE
 * when the outer channel is being closed; -ESHUTDOWN when its owner ends; -EOPNOTSUPP for another
 * stage, and in a kit of stages that has none (domus/inner_kit.h). */
DOMUS_API int domus_wire_inner_open(domus_wire *wire, void *data, domus_inner **ret_inner);

/* Drop an inner channel. If it has not ended, it ends as one whose peer is gone: with 0 or a
 * negative errno, which its on_close gets. Ownership: `inner` is not valid any more. */
DOMUS_API void domus_inner_drop(domus_inner *inner, int error);

DOMUS_API void *domus_inner_data(const domus_inner *inner);

/* Returns the state of an inner channel; `ret_error` (may be NULL) gets the error with which it has
 * ended. */
DOMUS_API domus_inner_state domus_inner_look(const domus_inner *inner, int *ret_error);

/* Pass a copy of `size` bytes on to an inner channel, which receives them. They are always taken;
 * the stage bounds them by domus_inner_unused(). Returns 0; -ENOMEM; -EPIPE when the channel is
 * being closed. */
DOMUS_API int domus_inner_pass(domus_inner *inner, const void *bytes, size_t size);

/* Tell an inner channel that no more bytes will be passed on, as after the FIN of a peer. */
DOMUS_API void domus_inner_end(domus_inner *inner);

/* Tell an inner channel that it has nothing to do, until bytes are passed on again. If none are
 * passed on for DOMUS_INNER_REST_NS, or for channel.idleTimeout, if that is less, the channel ends,
 * with 0: so a peer that has been busy does not hold the places of many channels. */
#define DOMUS_INNER_REST_NS UINT64_C(1000000000)
DOMUS_API void domus_inner_rest(domus_inner *inner);

/* Returns the number of bytes that were passed on, and that the pipeline of the inner channel has
 * not taken yet. */
DOMUS_API uint64_t domus_inner_unused(const domus_inner *inner);

/* Returns the first of the bytes that an inner channel has queued, as many as lie behind each
 * other. They are valid until the next call with this inner channel. NULL, with size 0, if none are
 * queued. */
DOMUS_API const char *domus_inner_bytes(const domus_inner *inner, size_t *ret_size);

/* Tell an inner channel that the stage has taken the first `size` bytes of what is queued. More may
 * be queued behind them. */
DOMUS_API void domus_inner_took(domus_inner *inner, size_t size);

/* Returns the next inner channel that has news since it was returned last; NULL: there is none. */
DOMUS_API domus_inner *domus_wire_inner_next(domus_wire *wire);

/* Set how many things are under way in inner channels. While there are some, a drain and
 * channel.maxAge wait before they close the outer channel. */
DOMUS_API void domus_wire_set_carried(domus_wire *wire, uint32_t count);

/* True if more than channel.sendHigh bytes wait for the peer of the outer channel, or if it is
 * being closed. A stage appends nothing then that can wait; `carry` is called when it can go on. */
DOMUS_API bool domus_wire_is_full(const domus_wire *wire);

/* True if the outer channel is going to be closed when nothing is under way (a drain, or
 * channel.maxAge). `carry` is called when that begins. */
DOMUS_API bool domus_wire_is_draining(const domus_wire *wire);

/* True if the channel is an inner one itself: a stage of it may know then what its outer protocol
 * can say. domus_channel_is_inner() is for the handlers of the channel. */
DOMUS_API bool domus_wire_is_inner(const domus_wire *wire);
DOMUS_API bool domus_channel_is_inner(const domus_channel *channel);

/* Take a stage out of its channel: say, in `decode` of a byte stage that is none of a listener's
 * front, before it has used or passed on a byte, that it has nothing to do on this channel. Then
 * `decode` returns 0, the next stage gets what this one was shown, and no function of this one but
 * `close` is called any more. The first stage of a pipeline is closed and taken out at once, and
 * costs nothing from then on; behind another one, such as that of TLS, it stays until the end, and
 * bytes are copied by it. */
DOMUS_API void domus_wire_leave(domus_wire *wire);

#ifdef __cplusplus
}
#endif

#endif
