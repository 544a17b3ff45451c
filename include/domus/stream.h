/* Streams: requests and answers whose bodies come, and leave, in pieces.
 *
 * **A body** belongs to a request or an answer of a peer. The stage says that one follows, and puts
 * a domus_body into the payload. It is a small value that may be handed to any actor, on any
 * thread; its bytes stay in the channel, and with the peer, until somebody reads them:
 *
 *     DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
 *     if (answer->error == 0 && answer->type == &domus_piece_type)
 *         ... ((const domus_piece *)answer->payload)->bytes ...
 *
 * The channel takes the next piece out of its bytes only when somebody reads. So a body of any size
 * costs no more than the bytes that a channel holds anyway, and a slow reader slows the peer down.
 * Nothing that follows a body is decoded before its end.
 *
 * A body lives as long as its request is not answered, or, on the side that has asked, until its
 * end. The rest that nobody has read by then is skipped, up to channel.skipMax bytes; if more is
 * left, the channel is closed behind the answer.
 *
 * **A stream** is an answer that leaves in pieces:
 *
 *     DOMUS_AWAIT(domus_reply_begin(stack, &head_type, &head, then));
 *     while (answer->error == 0 && there is more)
 *         DOMUS_AWAIT(domus_reply_write(stack, slice, then));
 *     return domus_reply_end(stack, NULL, NULL);
 *
 * The request is under way until domus_reply_end(), for all bounds, for its time-out and for a
 * drain. Each write parks its conversation while more than channel.sendHigh bytes wait for the
 * peer, and until the answers before it have left. If the request fails after its answer has begun
 * (its conversation ends, its actor stops, its time is over), the stream is cut: the stage tells
 * the peer (`cut`), or else the channel is reset once the bytes before it have left.
 *
 * **A request that leaves in pieces** is an ask whose peer is on the other side of a channel:
 *
 *     DOMUS_AWAIT(domus_request_begin(stack, to, &head_type, &head, 0, then));
 *     if (answer->error != 0)
 *         return answer->error;
 *     frame->request = *(const domus_request *)answer->payload;
 *     while (answer->error == 0 && there is more)
 *         DOMUS_AWAIT(domus_request_write(stack, frame->request, slice, then));
 *     if (answer->error == 0)
 *         DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
 *     else
 *         DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
 *     ... the answer of the peer, or why there is none, as after domus_ask() ...
 *
 * From its start on it is one of the asks that are with the peer (domus/pipeline.h). Until its body
 * has ended no other ask is sent on that connection. A pool never repeats it.
 *
 * The body is cut when the asker gives up: by domus_request_cut(), when its conversation ends or is
 * cancelled (the channel looks every 100 ms), and when the deadline of the ask passes. Then the
 * stage tells the peer (`cut`), or else the channel is reset once the bytes before it have left,
 * because the peer could take a part for the whole otherwise. A channel that closes in the midst of
 * a body, of a request or of an answer, is reset for the same reason.
 *
 * The answer may come before the body has ended, for instance as a refusal. Then the next write, or
 * the one that waits, is resumed with -EALREADY, once; its piece was sent. Whoever has nothing more
 * to say cuts the request, and gets the answer. Whoever goes on may write as before; the answer is
 * there when domus_request_end() or domus_wait_first() asks for it. With the latter both bodies can
 * flow at a time: another actor writes, by the stream, while this one reads.
 *
 * Bodies and streams need a stage that knows them (domus/stage.h) and a pipeline whose answers
 * leave in order.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. The actor may live on any thread. */
#ifndef DOMUS_STREAM_H
#define DOMUS_STREAM_H

#include <domus/conversation.h>
#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A body that comes in pieces. It owns nothing, and may be copied. */
typedef struct domus_body {
    domus_address channel; /* address of the channel that brings the body */
    uint32_t number;       /* number of the body in its channel; 0: there is no body */
} domus_body;

/* A piece of a body, as a read has brought it. */
typedef struct domus_piece {
    domus_slice bytes; /* bytes of this piece, up to 64 KiB; empty only in the last piece */
    bool last;         /* whether the body ends with this piece */
} domus_piece;

/* The type of a domus_piece. Its `release` frees the slice; domus_take_answer() or domus_take()
 * keeps it. */
DOMUS_API extern const domus_type domus_piece_type;

/* Ask for the next piece of a body, and suspend. `then` is resumed with a domus_piece; or with a
 * message of another type, if the protocol has some for the end of a body (trailers): then this is
 * the end, too. Or it is resumed with an error:
 *
 *   -EBUSY      somebody else reads this body
 *   -ENODATA    the body was read to its end
 *   -ESTALE     it is over: its request is answered, or its channel is gone
 *   -EPIPE      the connection ended within it
 *   -EDEADLK    the channel's own actor reads it behind a barrier
 *   any other   what the stage returned for wrong bytes; the error of the connection; and as
 *               domus/conversation.h says
 *
 * The read has no time-out of its own, but the deadline of the request that the conversation
 * answers. After an error nothing more can be read.
 *
 * Returns as domus_ask(); -EINVAL for a body of number 0. */
DOMUS_API int domus_body_read(domus_stack *stack, domus_body body, domus_resumed *then);

/* Begin a read of a body as one of several things to wait for, as domus_ask_add() does. */
DOMUS_API int domus_body_read_add(domus_stack *stack, domus_body body, uint64_t tag);

/* --- answers that leave in pieces ------------------------------------------------------------- */

/* Begin the answer to the request that is handled, with its head, and suspend until the head is
 * encoded. The payload is copied.
 *
 * Ownership: the head owns what the payload owns, unless this returns a negative errno.
 * `then` is resumed with -EOPNOTSUPP when the stage does not know the type, or no streams; what its
 * `encode` returned; -EALREADY when the answer has begun; -EPIPE when the request is over. After
 * such an error the request may be answered in another way.
 * Returns as domus_ask(); -EINVAL when the message is no request of a peer; -EALREADY when it was
 * answered, forwarded or kept. */
DOMUS_API int domus_reply_begin(domus_stack *stack, const domus_type *type, const void *payload,
                                domus_resumed *then);

/* Send a piece of an answer, and suspend until the next one may be sent. An empty slice sends
 * nothing.
 *
 * Ownership: this takes the slice in every case.
 * `then` is resumed with -EPIPE when the request is over or the channel has closed (-ESTALE when
 * the channel is gone); -EINVAL when the answer has not begun; -EBUSY when another write to this
 * answer waits; -ENOBUFS when the thread may queue no more bytes; what `encode` returned.
 * Returns as domus_reply_begin(). */
DOMUS_API int domus_reply_write(domus_stack *stack, domus_slice bytes, domus_resumed *then);

/* End an answer that leaves in pieces, with a message of `type` behind its last piece (trailers);
 * NULL: without a message. This is domus_reply(), and has its rules and results. */
DOMUS_API int domus_reply_end(domus_stack *stack, const domus_type *type, const void *payload);

/* Suspend until it is the turn of the answer to the request that is handled: all answers before it
 * have left, and at most channel.sendHigh bytes wait for the peer. An answer that needs something
 * scarce, such as an open file, takes it only then, and not while it waits behind others: a peer
 * may send many requests ahead, and read none of the answers. The payload is copied, and comes
 * back.
 *
 * Ownership: the wait owns what the payload owns, unless this returns a negative errno.
 * `then` is resumed with a message of `type`, which is that payload; or with -EPIPE when the
 * request is over or the channel has closed (-ESTALE when the channel is gone).
 * Returns as domus_reply_begin(). */
DOMUS_API int domus_reply_await_turn(domus_stack *stack, const domus_type *type,
                                     const void *payload, domus_resumed *then);

/* Returns whether the answers before the one to the request that is handled have left. Only the
 * channel's own actor can know; for all other actors the result is false. */
DOMUS_API bool domus_reply_has_turn(domus_stack *stack);

/* The stream of an answer or a request, for other actors that write it. It owns nothing. The actor
 * that has begun the stream ends it. */
typedef struct domus_stream {
    domus_address channel;
    uint32_t number;
    /* whether the stream is that of a request of this side, and not of an answer */
    bool of_request;
} domus_stream;

/* Set `ret_stream` to the stream of the request that is handled, or of one that was
 * kept. Returns 0; -EINVAL, -EALREADY as domus_reply_begin(); domus_kept_stream()
 * -ENOENT as domus_kept_reply(). */
DOMUS_API int domus_reply_stream(domus_stack *stack, domus_stream *ret_stream);
DOMUS_API int domus_kept_stream(domus_stack *stack, domus_kept kept, domus_stream *ret_stream);

/* Do what domus_reply_begin() (not of a request), domus_reply_write() and domus_request_write() do,
 * from any actor. */
DOMUS_API int domus_stream_begin(domus_stack *stack, domus_stream stream, const domus_type *type,
                                 const void *payload, domus_resumed *then);
DOMUS_API int domus_stream_write(domus_stack *stack, domus_stream stream, domus_slice bytes,
                                 domus_resumed *then);

/* Begin a write as one of several things to wait for, as domus_ask_add() does. So a relay can read
 * one side while the other one does not take its bytes.
 *
 * Ownership: this takes the slice in every case. */
DOMUS_API int domus_stream_write_add(domus_stack *stack, domus_stream stream, domus_slice bytes,
                                     uint64_t tag);

/* --- requests that leave in pieces ------------------------------------------------------------ */

/* A request that leaves in pieces and has begun. It may be copied. */
typedef struct domus_request {
    /* stream of the request, by which other actors write it (domus_stream_write()) */
    domus_stream stream;
    void *promise; /* the promise and its serial are for the library alone */
    uint32_t serial;
} domus_request;

DOMUS_API extern const domus_type domus_request_type;

/* Ask the peer of a channel, by the address of the channel or of a pool, with a message of `type`
 * as its head, which the pipeline lists in `encodes`; a row of `on` does not get it. Suspend until
 * the head is encoded, which waits as asks do (inflightMax). The payload is copied.
 *
 * From then on the answer is one of the things that are under way for this conversation
 * (domus_pending()). The ask has the deadline of the conversation, or after `timeout_ns` (0: none
 * of its own), whichever comes first, until the answer.
 *
 * Ownership: the head owns what the payload owns, unless this returns a negative errno.
 * `then` is resumed with a domus_request; or with an error as a domus_ask() to that address, and
 * with -EOPNOTSUPP when the stage knows no streams or the address is no channel's.
 * Returns as domus_ask(). */
DOMUS_API int domus_request_begin(domus_stack *stack, domus_address to, const domus_type *type,
                                  const void *payload, uint64_t timeout_ns, domus_resumed *then);

/* Send a piece of a request, and suspend until the next one may be sent: while more than
 * channel.sendHigh bytes wait for the peer. An empty slice sends nothing. Any actor may write, with
 * the stream.
 *
 * Ownership: this takes the slice in every case.
 * `then` is resumed with -EALREADY, once, when the answer has come; -EPIPE when the request is over
 * or the channel has closed (-ESTALE when the channel is gone); -EBUSY when another write to this
 * request waits; -ENOBUFS when the thread may queue no more bytes; what `encode` returned.
 * Returns as domus_ask(). */
DOMUS_API int domus_request_write(domus_stack *stack, domus_request request, domus_slice bytes,
                                  domus_resumed *then);

/* End the body of a request, with a message of `type` behind its last piece (trailers; NULL:
 * without one), and suspend until the answer is there. If the end cannot be encoded, the request is
 * cut, and fails with that error. domus_request_cut() ends the body where it is.
 *
 * A conversation that was shown the answer already (domus_wait_first()), or that has not begun the
 * request, is resumed without an answer when the end was sent: with -EPIPE when the request is
 * over, and with what `encode` returned.
 *
 * Ownership: the request owns what the payload owns, unless this returns a negative errno.
 * `then` is resumed with the answer, or with an error as after domus_ask(): -EPIPE when the
 * connection has ended, for instance because of the cut.
 * Returns as domus_ask(). */
DOMUS_API int domus_request_end(domus_stack *stack, domus_request request, const domus_type *type,
                                const void *payload, domus_resumed *then);
DOMUS_API int domus_request_cut(domus_stack *stack, domus_request request, domus_resumed *then);

#ifdef __cplusplus
}
#endif

#endif
