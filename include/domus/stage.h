/* Stages: the codecs of a pipeline, for those who write one (docs/pipelines.md shows how).
 *
 * A stage is a constant table of functions, with a state for each channel. It does no IO, knows no
 * actor, and may not wait. The last stage of a pipeline is a message stage: it turns bytes into
 * messages, and messages into bytes. Before it there may be byte stages, wire side first, which
 * turn bytes into bytes (TLS, compression).
 *
 * The library calls a stage's functions on the thread of its channel, one at a time. Each gets a
 * domus_wire, by which it reaches everything that it may use. The wire is valid during the call.
 *
 * A stage can be run without a runtime, by a test or a fuzzer: domus/stage_kit.h. */
#ifndef DOMUS_STAGE_H
#define DOMUS_STAGE_H

#include <domus/endpoint.h>
#include <domus/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A wire: the bytes of one channel as its stages see them. */
typedef struct domus_wire domus_wire;

struct domus_inner; /* an inner channel, which travels within another one (domus/inner.h) */

/* Most bytes that a stage sees at once. A message that does not fit ends the channel with
 * -EMSGSIZE, unless its stage takes it piece by piece. */
#define DOMUS_WINDOW_MAX 65536u

/* The part that the peer plays, for a stage that can be on either side. */
typedef enum domus_role {
    DOMUS_ROLE_SERVER, /* the peer is a client: it sends requests, and gets an answer to each */
    DOMUS_ROLE_CLIENT, /* the peer is a server: it answers the asks of this side */
    DOMUS_ROLE_PEER,   /* both sides send notices */
} domus_role;

/* A stage: a table of functions. All may be NULL, except `decode`, and `encode` (of a message
 * stage) or `wrap` (of a byte stage), of which a stage has exactly one. */
typedef struct domus_stage {
    const char *name;
    /* bytes of the stage's state for each channel, 0..65536; the state begins zeroed */
    uint32_t state_size;

    /* Returns whether the options are right: 0 or a negative errno. Called when an actor with such
     * a pipeline is made, on any thread, before everything else. */
    int (*check)(const void *options);

    /* Begin the stage on a channel. `options` are those of the pipeline, valid as long as it is. It
     * may append bytes. A negative errno resets the channel, and `close` is not called. */
    int (*open)(domus_wire *wire, void *state, const void *options);

    /* Look at the bytes that have come and were not used yet: `size` (1..DOMUS_WINDOW_MAX) bytes at
     * `bytes`, which are gone after this call. A byte stage passes on what it makes of them
     * (domus_wire_pass()); if that is more than there is room for, it passes on the rest in another
     * call (domus_wire_again()), in which `size` may be 0. A message stage makes at most one
     * message of them (domus_wire_request(), _notice(), _answer()).
     *
     * Returns how many bytes it used (1..size), also if there is no message yet; 0 when it needs
     * more: then it is called again when more have come, with these bytes first (and see
     * domus_wire_need()); or a negative errno when the bytes are wrong: then no further bytes are
     * looked at, `fail` is called for a request of type NULL, and the channel is closed when the
     * answers before and what `fail` has appended are sent; what this call has appended is not.
     * That is so for the error of a byte stage, too. If the message stage has no `fail`, or it
     * fails, the channel is reset; but after the error of a byte stage it is closed all the same if
     * a byte stage has a `finish`, which may tell the peer why (TLS: an alert). */
    int (*decode)(domus_wire *wire, void *state, const char *bytes, size_t size);

    /* Handle that the peer has finished sending. `left` bytes were not used and never will be. This
     * may make a message, as `decode` does. The stages are called from the wire on, each when the
     * one before has said 0. So a byte stage whose protocol has an end of its own returns an error
     * when that did not come: then what was passed on is not taken for the whole. A byte stage that
     * has more to pass on than there is room for says domus_wire_again(), and is called again with
     * a `left` of 0. Returns 0, or a negative errno as `decode` when something is missing. NULL: 0
     * if `left` is 0, else -EPIPE. */
    int (*end)(domus_wire *wire, void *state, size_t left);

    /* Append the bytes of a message (domus_wire_append() and its like): the answer to the
     * request that was given this `id`, or a message that is no answer, with id DOMUS_NO_ID.
     * The payload stays the caller's. Returns 0; -EOPNOTSUPP for a type that it does not know;
     * or another negative errno. Then nothing is sent of what it appended, and an answer fails
     * with that error. */
    int (*encode)(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                  const void *payload);

    /* Append what the peer gets instead of an answer, because a request (its type and id) has
     * failed with `error`. The type is NULL when the bytes themselves are wrong, or, with
     * -ETIMEDOUT, when the rest of a message did not come in time. With -ETIME the rest of the body
     * of this request did not come in time, and the read of it has failed with -ETIMEDOUT before.
     * Returns 0, or a negative errno, which resets the channel; NULL: the same as a negative errno.
     * After a time-out without a type such a channel is closed, and is reset only if bytes wait for
     * its peer. */
    int (*fail)(domus_wire *wire, void *state, uint64_t id, const domus_type *request, int error);

    /* Wrap `size` (1..DOMUS_WINDOW_MAX) bytes at `bytes` that are to be sent: a byte stage appends
     * what goes to the wire instead. Returns 0, or a negative errno, which resets the channel. */
    int (*wrap)(domus_wire *wire, void *state, const char *bytes, size_t size);

    /* Append what ends the output, before the FIN (TLS: close_notify), when nothing more is sent to
     * the peer (domus_channel_close(), domus_channel_finish(), or the last answer has left). It is
     * called once, for the message stage first and the stage next to the wire last; what a stage
     * appends is wrapped by those before it. It is not called when the channel is reset, nor when a
     * body or a stream is cut: the peer sees that what it got is not all. Returns 0, or a negative
     * errno, which resets the channel. NULL: nothing is appended. */
    int (*finish)(domus_wire *wire, void *state);

    /* End the stage on a channel: give back what its state owns. */
    void (*close)(domus_wire *wire, void *state);

    /* --- bodies and streams (domus/stream.h) --- */

    /* Whether the stage makes bodies or streams. Then answers leave in order: domus_pipeline.by_id
     * is false, or the actor is refused with -EINVAL. */
    bool has_bodies;

    /* Append what lets the peer send a body (100 Continue), when somebody reads the open body for
     * the first time. It leaves behind the answers before. Returns 0, or a negative errno, with
     * which the read fails and the body ends. NULL: nothing is appended. */
    int (*wanted)(domus_wire *wire, void *state);

    /* Append what tells the peer that a stream is cut: the answer `id`, or the request of this side
     * that was encoded with it, has begun, and ends with `error` before its end. Returns 0, and the
     * connection goes on: the peer answers a request that was cut, too, and that answer is thrown
     * away; or a negative errno: then the channel is reset once the bytes before have left. NULL:
     * the same as a negative errno. */
    int (*cut)(domus_wire *wire, void *state, uint64_t id, int error);

    /* Append what is due (a ping to a silent peer), when the time of domus_wire_wake() is over on
     * an open channel. It is called for the message stage. `owed` says that this side is to blame
     * if nothing was heard: bytes of the peer have come and were not looked at, or bytes for it
     * have not left yet. Returns 0, or a negative errno, which resets the channel; NULL: 0. */
    int (*wake)(domus_wire *wire, void *state, bool owed);

    /* --- byte stages that carry inner channels (domus/inner.h) --- */

    /* Append what inner channels have to send, when they have news, when there is room for their
     * bytes again, or when a drain has begun. Returns 0, or a negative errno, which resets the
     * channel. */
    int (*carry)(domus_wire *wire, void *state);

    /* Lend an inner channel to an ask for the peer (domus/lend.h): set `ret_inner` to an inner
     * channel without an ask, an idle one or a new one. Returns 0; a negative errno, with which the
     * ask fails as one that was not sent. */
    int (*lend)(domus_wire *wire, void *state, struct domus_inner **ret_inner);
} domus_stage;

#define DOMUS_NO_ID UINT64_MAX

/* --- messages, in `decode` and `end` of a message stage --------------------------------------- */

/* Make the message of this call. The result is its payload, `type->size` bytes, zeroed and aligned
 * to 8, which the stage fills. If its type has a `release`, that is called once, also when `decode`
 * fails after this.
 *
 *   request  wants an answer. Answers leave in the order of the requests, unless the pipeline has
 *            ids. `id` comes back with `encode` and `fail`: that of the protocol, or whatever the
 *            stage has to remember of this request.
 *   notice   wants none.
 *   answer   is the answer to the oldest ask that was sent to the peer (DOMUS_NO_ID), or to that
 *            which was encoded with this id. If nobody waits for it, it is thrown away, and
 * counted.
 *
 * Return NULL without memory, and when there is a message already; then `decode`
 * returns -ENOMEM. */
DOMUS_API void *domus_wire_request(domus_wire *wire, const domus_type *type, uint64_t id);
DOMUS_API void *domus_wire_notice(domus_wire *wire, const domus_type *type);
DOMUS_API void *domus_wire_answer(domus_wire *wire, const domus_type *type, uint64_t id);

/* Begin an answer, as domus_wire_answer() does, that is an error: the ask fails with the negative
 * errno `error`. Returns false where domus_wire_answer() returns NULL. */
DOMUS_API bool domus_wire_answer_error(domus_wire *wire, uint64_t id, int error);

/* Say that a body follows the request or the answer that this call has made. Returns the value for
 * the payload, by which it is read. From now on `decode` is called when somebody reads (or the rest
 * is skipped), and makes pieces instead of messages, until one of these ends the body. Number 0 if
 * there is no such message, or if the stage does not say `has_bodies`. */
DOMUS_API domus_body domus_wire_body(domus_wire *wire);

/* Say that a tunnel follows: a body, as after domus_wire_body(), which is all that the peer still
 * sends, in another protocol. Its end is that of the connection. It may pause for as long as
 * channel.idleTimeout allows: neither channel.bodyRate nor channel.answerTimeout bounds it. If it
 * belongs to an answer whose request leaves in pieces, the end of that request is a FIN (half
 * close), and each of the two may end before the other. */
DOMUS_API domus_body domus_wire_rest(domus_wire *wire);

/* Make the message of this call a piece of the body: `size` bytes at `from`, of those that `decode`
 * was shown; at least one, unless it is the last. Returns false without memory, and when no body is
 * open or there is a message already; then `decode` returns -ENOMEM. A peer that finishes within a
 * body lets it fail with -EPIPE, unless `end` makes its last piece. */
DOMUS_API bool domus_wire_piece(domus_wire *wire, const char *from, size_t size, bool is_last);

/* Make the message of this call the end of the body, with what the reader gets then (trailers).
 * Returns as domus_wire_answer(). */
DOMUS_API void *domus_wire_trailer(domus_wire *wire, const domus_type *type);

/* Returns a slice of the bytes that `decode` was shown, for the payload of the message: `size`
 * bytes at `from`. The message owns it (so its type needs a `release`). */
DOMUS_API domus_slice domus_wire_slice(domus_wire *wire, const char *from, size_t size);

/* Returns the `size` bytes at `from`, of those that `decode` was shown, to be changed where they
 * are, so that a slice of them shows the changed bytes (WebSocket masks its bytes). The call that
 * changes bytes has to use them. */
DOMUS_API char *domus_wire_edit(domus_wire *wire, const char *from, size_t size);

/* Say, before `decode` returns 0, that `decode` need not be called again before `size` bytes are
 * there, counted from the first byte that it was shown. More than DOMUS_WINDOW_MAX ends the channel
 * with -EMSGSIZE. */
DOMUS_API void domus_wire_need(domus_wire *wire, size_t size);

/* Say, before `decode` of a message stage returns without a message, which part of the message the
 * peer is to send next. This bounds the time that it has; what is not said has no bound but
 * channel.idleTimeout and channel.minRate.
 *
 *   a head   has to be whole channel.headTimeout after the first such call for its message,
 *            however its bytes drip
 *   a body   has to come with channel.bodyRate on average. A body in pieces (domus_wire_body()) is
 *            measured without this call, while somebody reads it.
 *
 * A byte stage whose protocol begins with a dialogue of its own (TLS) says in `open`, and in each
 * `decode`, that it expects a head, until the dialogue is over: so that is bounded, too. Asks for
 * the peer wait until then, and count as not sent.
 *
 * A drain waits for the rest of a body, and not for that of a head.
 *
 * Time in which this side does not read does not count. If the time is over, `fail` is called for a
 * request of type NULL with -ETIMEDOUT, and the channel is closed behind the answers before. */
DOMUS_API void domus_wire_expect_head(domus_wire *wire);
DOMUS_API void domus_wire_expect_body(domus_wire *wire);

/* --- the last message ------------------------------------------------------------------------- */

/* Say, in `decode`, that the message of this call is the last one of the peer (in a call without a
 * message, that no further one comes), or, in `encode`, `fail` and `cut`, that this side sends no
 * other answer (Connection: close). Nothing more is
 * decoded, but the body of a request that was, and the channel is closed when all requests that
 * were decoded are answered. The handler of such a message may change the pipeline all the same
 * (domus_channel_set_pipeline()).
 *
 * In `encode` of an ask it says that no other one is sent behind it. Further asks go to other
 * connections of the pool, or fail with -ENOTCONN; what the peer sends is decoded, and the channel
 * is closed when all asks are answered.
 *
 * A byte stage may say it in `decode`, when its peer has ended by the rules of its protocol before
 * the connection does (TLS: close_notify). It is not called again then. The stages behind it use
 * what it has passed on and get `end`, as if the peer had finished; so a message that goes on to
 * the end is whole. */
DOMUS_API void domus_wire_last(domus_wire *wire);

/* Returns, in `encode` and `fail`, whether the channel is going to be closed behind this answer in
 * any case, because nothing that has come lies behind its request and the system drains
 * (domus/system.h) or the connection is older than channel.maxAge; or because the body of the
 * request was wrong. The stage may tell the peer so, and call domus_wire_last(). */
DOMUS_API bool domus_wire_is_closing(const domus_wire *wire);

/* Let the log tell, in `encode` and `fail`, that a request has failed by a fault of this side, and
 * not of its peer, with the negative errno `error`. `what` says for people what had to handle the
 * request, such as "GET /scores"; NULL: the type of the request. It is a warning with the name of
 * the behaviour, and a thread writes it once for each `what` and `error` in a spell of such
 * failures, for at most 8 of these, and once more, with the number of failures, when the spell is
 * over. A spell is over after a second without a failure, or up to 64 s when spells follow each
 * other. In a kit of stages it does nothing. */
DOMUS_API void domus_wire_tell_failure(domus_wire *wire, const char *what, int error);

/* --- time, in all functions of a message stage but `check` and `close` ------------------------ */

/* Let the function `wake` of the stage be called once, `delay_ns` from now, rounded up to ticks of
 * 1 ms. Another call of this takes the place of the one before; 0: `wake` is not called at all. A
 * change of the pipeline ends it. */
DOMUS_API void domus_wire_wake(domus_wire *wire, uint64_t delay_ns);

/* Returns the time as handlers see it (domus_now_ns()), also in `close`; 0 in a kit of stages. */
DOMUS_API uint64_t domus_wire_now_ns(const domus_wire *wire);

/* --- the server and the peer, in all functions but `check` -------------------------------------
 */

/* Get the server to which this side has connected: its name as domus_connect() was given it,
 * in lower case, or its address without brackets. NULL, with port 0, for a connection that
 * was accepted or adopted, and for one to a Unix socket. The text is valid as long as the
 * stage is open. */
DOMUS_API const char *domus_wire_server(const domus_wire *wire, uint16_t *ret_port);

/* Get the endpoint of the peer, as domus_channel_peer() does. It may be a call of the kernel each
 * time, so a stage that needs it often keeps it. Returns 0; -ENOTCONN in a kit of stages; or as
 * domus_channel_peer(). */
DOMUS_API int domus_wire_peer(const domus_wire *wire, domus_endpoint *ret_peer);

/* --- the protocol that two peers have agreed on, in byte stages --------------------------------
 */

/* Say, in `decode`, by which protocol the peers speak behind this stage, once they have agreed on
 * it (TLS: ALPN); "" of 0 bytes if they have not. `name` has 0..255 bytes, and stays valid as long
 * as the stage is open. If the next stage lends inner channels (domus/lend.h), its `decode` is
 * called then, with no bytes, before asks are sent. */
DOMUS_API void domus_wire_agree(domus_wire *wire, const void *name, size_t size);

/* Get the protocol that domus_wire_agree() has named, in all functions but `check`. NULL,
 * with a size of 0: no stage has named one, or none yet. */
DOMUS_API const char *domus_wire_agreed(const domus_wire *wire, size_t *ret_size);

/* --- streams, in `encode` and `cut` of a message stage ---------------------------------------- */

/* Returns the stream to which the message belongs, an answer or a request of this side: a word that
 * the stage may use as it likes, 0 at first, kept until the stream ends. NULL: the message is
 * whole. `encode` is called for the head, which begins the stream; for each piece, with a
 * domus_piece that is not the last; and for its end, with an empty domus_piece that is the last, or
 * with a message of another type behind the last piece. The streams of later answers may be encoded
 * before an earlier one has ended; they wait. Within a request no other one is encoded; notices and
 * answers are, and a stage in whose protocol that is wrong refuses them. */
DOMUS_API uint64_t *domus_wire_stream(domus_wire *wire);

/* --- a body that waits, in all functions of a message stage but `check` and `close` ----------- */

/* Hold the writer of the request of this side that leaves in pieces, or let it go on. A write that
 * is taken meanwhile is encoded as always; that is one piece at most, which the stage may keep. The
 * writer is resumed when it may go on, or when the answer comes. */
DOMUS_API void domus_wire_hold(domus_wire *wire, bool holds);

/* --- bytes for the next stage, in `decode` and `end` of a byte stage -------------------------- */

/* Pass on a copy of `size` bytes. Returns 0; -ENOMEM; -EMSGSIZE beyond what domus_wire_pass_room()
 * says: that is DOMUS_WINDOW_MAX at least when `decode` or `end` begins. */
DOMUS_API int domus_wire_pass(domus_wire *wire, const void *data, size_t size);
DOMUS_API size_t domus_wire_pass_room(const domus_wire *wire);

/* Pass bytes on without a copy: get space for `size` bytes, write up to so many there, and then
 * count them with domus_wire_passed(). The space is valid until the next call with this wire;
 * what is not counted is not passed on. Returns NULL without memory, for a size of 0, and
 * beyond domus_wire_pass_room(). */
DOMUS_API char *domus_wire_pass_space(domus_wire *wire, size_t size);
DOMUS_API void domus_wire_passed(domus_wire *wire, size_t size);

/* Say, in `decode`, that this call has taken long (0.1 ms and more: a signature of RSA). The thread
 * then looks at the clock before it goes on with this channel, so that scheduler.stageTime holds
 * for calls that make no message. */
DOMUS_API void domus_wire_yield(domus_wire *wire);

/* Say that this stage has more to pass on than there was room for: it is called again when the
 * stages behind it have used what they got, before new bytes are waited for, with the bytes that
 * it has left over, which may be none. If it neither used nor passed on a byte in this call,
 * this is ignored. */
DOMUS_API void domus_wire_again(domus_wire *wire);

/* --- bytes for the peer, in all functions but `check` and `close` ----------------------------- */

/* Append a copy of `size` bytes to the output for the peer. Returns 0; -ENOMEM. Bytes that a
 * message stage appends in `open` and `decode` leave at once, before answers that are not there
 * yet. */
DOMUS_API int domus_wire_append(domus_wire *wire, const void *data, size_t size);

/* Append text as printf(3) makes it, up to 4096 bytes. Returns 0; -ENOMEM; -EMSGSIZE; -EINVAL. */
DOMUS_API int domus_wire_append_text(domus_wire *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append the bytes of a slice: long ones are not copied. The slice stays the caller's.
 * Returns 0; -ENOMEM. */
DOMUS_API int domus_wire_append_slice(domus_wire *wire, domus_slice slice);

/* Make room for `size` bytes (1..DOMUS_WINDOW_MAX) that the stage writes itself and then counts
 * with domus_wire_written(). Returns a pointer to the room, valid until the next call with this
 * wire; NULL without memory. */
DOMUS_API char *domus_wire_room(domus_wire *wire, size_t size);
DOMUS_API void domus_wire_written(domus_wire *wire, size_t size);

#ifdef __cplusplus
}
#endif

#endif
