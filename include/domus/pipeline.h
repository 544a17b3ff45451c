/* Pipelines: a peer is talked with as an actor is.
 *
 * The behaviour of a channel that has a `pipeline` handles messages instead of bytes: its stages
 * decode what the peer sends, and encode what the peer gets. Such a behaviour has no on_read. It
 * has two tables of rows: `on` takes mail from actors, `on_peer` what the pipeline has decoded.
 *
 *     static const domus_pipeline lines = {
 *         .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {0}},
 *     };
 *     static const domus_behaviour line_channel = {
 *         .name = "lines", .kind = DOMUS_CHANNELS, .pipeline = &lines,
 *         .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = answer_line},
 * {0}},
 *     };
 *
 * **A request of the peer is an ask.** Its handler answers it as any ask: with domus_reply() at
 * once or after a wait, with domus_forward() to an actor that answers, with domus_keep(), or it
 * fails it. The answer is encoded and sent; answers leave in the order of the requests, in whatever
 * order they are given (or at once, if the pipeline is `by_id`). A request that fails, expires, or
 * ends without an answer gets what the stage makes of the error (`fail`), so the order has no hole.
 * domus_sender() of a request is the channel itself.
 *
 * Requests do not pass through the mailbox. The channel decodes one message at a time, in its run,
 * and handles it at once; bytes that are not decoded yet wait as bytes. While channel.requestsMax
 * requests are not answered, or more than channel.sendHigh bytes wait for the peer (answers that
 * wait for their turn count, too), nothing more is decoded, and then nothing more is read. A
 * request that was decoded is answered, also beyond channel.sendMax; only when memory.queued is
 * used up is the channel reset instead.
 *
 * **Mail to the peer.** A notice to the channel's address whose type is in `encodes`, and for which
 * `on` has no row, is encoded and sent to the peer. While more than channel.sendMax bytes wait it
 * is a dead letter (-ENOBUFS). An ask is sent, too: its answer is what the peer answers (a client).
 * At most `inflight_max` asks are with the peer at a time, and while more than channel.sendHigh
 * bytes wait none is sent (and further ones get -ENOBUFS at once, as all mail to a channel then
 * does); up to `queue_max` further ones wait, and one more fails with -ENOBUFS. An ask that was not
 * sent when the connection ends fails with -ENOTCONN, and may be made again; one that was sent, but
 * not answered, fails with -EPIPE: the peer may have done it. That is so as well when this side
 * closes the channel, and when the peer has finished sending.
 *
 * An ask whose asker has stopped waiting (a deadline, a cancel, its end) is dropped if it was not
 * sent. If it was, it keeps its place, and the answer is thrown away when it comes. An answer to
 * nothing is thrown away if the protocol has ids. In a protocol without ids the peer is out of step
 * then, and the connection is reset with -EPROTO, before an answer goes to the wrong asker.
 *
 * When the peer has finished sending, its last requests are answered, and then the channel is
 * closed, unless there is an on_end. */
#ifndef DOMUS_PIPELINE_H
#define DOMUS_PIPELINE_H

#include <domus/channel.h>
#include <domus/stage.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row of `on_peer`. Its first three fields are as those of domus_on. The handler gets the payload
 * that the stage has made; that of a request stays valid until it is answered. */
typedef struct domus_on_peer {
    const domus_type *type;
    domus_handler *handle;
    /* bytes of the frame of the row's conversations (domus_frame()), 0..DOMUS_FRAME_MAX */
    uint32_t peer_frame_size;
    /* marks of the row: DOMUS_ALONE or others, combined by |; 0: no marks */
    uint32_t marks;
    /* A function that returns further marks of one message, for protocols in which one type stands
     * for many commands. It is called before the handler, must not call domus_*, and does not
     * change the payload. NULL: none. */
    uint32_t (*marks_of)(const void *payload);
} domus_on_peer;

/* A mark of a row: the request begins when all requests before it are answered, and the messages
 * behind it are decoded when it is answered. If the peer finishes meanwhile, and has sent nothing
 * behind it, an actor that has an on_end hears of that at once: the peer may be gone, and no answer
 * is worth waiting for. */
#define DOMUS_ALONE 1u
/* A mark of a row: the conversations of the request, and the request if it is kept, go on to their
 * end when the connection is gone; others are cancelled then. The actor lives until the last of
 * them has ended. The answer is thrown away, and to forward the request fails with -ENOTCONN. */
#define DOMUS_OUTLIVES 2u

/* A mark of a row, with DOMUS_ALONE: the actor hears of the end of its peer at once, also when the
 * peer has sent more behind the request. Such bytes are handled when the request is answered,
 * unless the actor closes the channel, and when all of it was handled, the end is there once more:
 * for the on_end that the actor has then, or without one to close the channel. The end is not seen
 * while the peer has sent more than the channel may receive and hold. */
#define DOMUS_HEARS_END 4u

/* A mark of a row, with DOMUS_ALONE: when the peer has finished sending while the request is not
 * answered, it counts as gone, whether it has sent more or not: the channel is closed, or reset in
 * the midst of a body, and the conversations of the request are cancelled. No on_end is called for
 * that. So a client that gives up does not keep its descriptor until a slow answer is there; but
 * one that finishes sending and waits for its answer, which few do, gets none. */
#define DOMUS_ENDS_WITH_PEER 8u

/* A row of `on_peer` whose messages begin the sequence `name` (domus/await.h). */
#ifdef __cplusplus
#define DOMUS_ON_PEER(type, name, marks)                                                           \
    domus_on_peer                                                                                  \
    {                                                                                              \
        type, domi_##name##_begin, sizeof(struct domi_##name##_frame), marks, NULL                 \
    }
#else
#define DOMUS_ON_PEER(type_, name, marks_)                                                         \
    {                                                                                              \
        .type = (type_), .handle = domi_##name##_begin,                                            \
        .peer_frame_size = sizeof(struct domi_##name##_frame), .marks = (marks_)                   \
    }
#endif

/* A stage of a pipeline with its options. */
typedef struct domus_pipeline_stage {
    const domus_stage *stage;
    const void
        /* options of the stage; its header says what they are, and whether NULL is allowed */
        *options;
} domus_pipeline_stage;

#define DOMUS_STAGES_MAX 4u /* most stages of one pipeline (byte stages, and the message stage) */

/* Most byte stages that a listener puts in front of the pipelines of its connections (`front` in
 * domus/system.h and domus/listen.h), or a connect in front of its own (domus/connect.h,
 * domus/pool.h). The pipelines behind them are the same with them and without them: such stages
 * stand before the first stage of whatever pipeline a connection has, go on as they are when it is
 * changed, and are not counted in DOMUS_STAGES_MAX. */
#define DOMUS_FRONT_MAX 2u

/* A pipeline. It is constant, as a behaviour is. */
typedef struct domus_pipeline {
    /* The stages, wire side first: byte stages, then one message stage, then one whose `stage` is
     * NULL. */
    const domus_pipeline_stage *stages;
    /* Types of mail from actors that goes to the peer, up to a NULL. NULL: none. */
    const domus_type *const *encodes;
    /* Whether the protocol has ids, so that answers leave as they come. */
    bool by_id;
    /* Whether the channel of a client has to come to terms with its peer first (a login, STARTTLS):
     * then asks of other actors wait, up to `queue_max` of whatever type, until another pipeline
     * takes the place of this one (domus_channel_set_pipeline()), and then fail with -EOPNOTSUPP if
     * the other pipeline does not encode them. Only asks that the channel makes to its own address
     * are sent. */
    bool holds_asks;
    /* Time for the answer to a request, in ns, rounded up to ticks of 1 ms. After this time the
     * request fails with -ETIMEDOUT. Asks that are made for the request inherit the deadline, as
     * they do from any ask (domus_ask_within()). 0: requests have no deadline. */
    uint64_t request_timeout_ns;
    /* Most asks of the channel that are with the peer at a time (0: channel.inflightMax), and most
     * asks that wait to be sent (0: channel.askQueueMax). */
    uint32_t inflight_max;
    uint32_t queue_max;
    /* Time for the answer of the peer to each ask, up to 1 h. A connection with an ask that is
     * older is reset, with the error -ETIMEDOUT; 0: channel.answerTimeout. */
    uint64_t answer_timeout_ns;
} domus_pipeline;

/* Change the pipeline of a channel at the boundary behind the message in hand: for an upgrade of
 * the protocol (HTTP to WebSocket), or to put a byte stage before it (STARTTLS).
 *
 * The message in hand is the one whose row has called this function, in its first turn. In any
 * later turn, and in a handler of something else, the boundary is behind the last message that was
 * decoded; a conversation that waits before it changes the pipeline wants DOMUS_ALONE, so that this
 * is its own request. Requests up to the boundary are answered by the stages that were there, that
 * in hand, too. A body that belongs to one of them (domus/stream.h) lies before the boundary, and
 * an answer that leaves in pieces is answered at its end. When all their answers are queued, those
 * stages are closed, and the new ones are opened and get what the peer has sent behind the
 * boundary. Until then nothing more is decoded, and asks for the peer wait. Mail for the peer
 * leaves by the stages that are there when it is handled.
 *
 * Stages begin anew, also a message stage that both pipelines have: it knows nothing of what was
 * said before. But byte stages with which both pipelines begin, with the same options, go on as
 * they are: {TLS, HTTP} becomes {TLS, WebSocket} within the same TLS.
 *
 * With DOMUS_PIPELINE_CLEAN the peer must not have sent anything behind the boundary before the
 * change takes place. If it has, the channel is reset with -EPROTO. That is for STARTTLS, where an
 * attacker could put clear bytes behind the command, which would be taken for what came by TLS.
 *
 * A client makes the ask that the peer answers with "go ahead" from the channel itself, to its own
 * address (domus_self()). The answer to such an ask is handled before anything behind it is
 * decoded, so the change finds the boundary where it is. With `holds_asks` no ask of another actor
 * overtakes the change; otherwise one that did lets it fail (-EBUSY).
 *
 * The rows of `on_peer` stay those of the behaviour, so its table has the types of all pipelines
 * that a channel may get. domus_become() changes them. `next` and its options have to stay valid as
 * long as the channel is there. If `open` of a new stage fails, the channel is reset with its
 * error.
 *
 * Thread-safety: only from a handler of the channel's own behaviour, with its stack.
 * Returns 0; -EPERM for another actor, and in a conversation of a request behind which more was
 * decoded; -EINVAL for a wrong pipeline or flag, or when the channel has no pipeline; what `check`
 * of a stage returned; -EBUSY when a change is waiting, when a request that is alone was decoded
 * and has not begun, or while asks, or their bodies, are with the peer; -EPIPE when the channel is
 * being closed, has finished sending, has got wrong bytes, or has sent its last answer; -EPROTO
 * when the peer has sent bytes too early, and the channel was reset because of that. */
DOMUS_API int domus_channel_set_pipeline(domus_stack *stack, domus_channel *channel,
                                         const domus_pipeline *next, uint32_t flags);

#define DOMUS_PIPELINE_CLEAN 1u

/* Make all that the peer sends behind the request in hand, until it finishes, a body of this
 * request: a tunnel. It is for the library of a stage, whose `decode` makes pieces from now on, as
 * behind domus_wire_rest(). The request has to be alone (DOMUS_ALONE), so that nothing behind it
 * was decoded, and is not answered yet; its conversation may have waited. From now on the end of
 * the peer is the end of that body and no reason to end the request (DOMUS_ENDS_WITH_PEER), and
 * domus_channel_finish() may be called while the answer leaves in pieces.
 *
 * With a `ret_body` of NULL nothing is opened: the result says whether it could be.
 *
 * Thread-safety: only from a handler of the channel's own behaviour, with its stack.
 * Returns 0; -EPERM for another actor, and for a request that is not alone; -EINVAL in a
 * conversation that answers no request of the peer; -EALREADY when it was answered; -EBUSY when a
 * body is open, or a change of the pipeline waits; -EPIPE when the channel is being closed or has
 * finished sending; -EOPNOTSUPP for a stage without bodies. */
DOMUS_API int domus_channel_open_rest(domus_stack *stack, domus_channel *channel,
                                      domus_body *ret_body);

/* Encode a message for the peer and queue it at once, as a notice of this type to the channel's
 * address is. So a handler that answers a notice of the peer by another one sends it in the order
 * of its calls, hears of an error, and slows down a peer that does not read. The type need not be
 * in `encodes`.
 *
 * Ownership: the payload, and what it owns, stays the caller's; a stage takes slices of its own.
 * Thread-safety: as all functions that act on a channel (domus/channel.h).
 * Returns 0; -EPERM; -EINVAL when the channel has no pipeline; -EPIPE after domus_channel_finish()
 * or domus_channel_close(), when the connection is broken, and in on_mount; -ENOBUFS when more than
 * channel.sendMax bytes wait on this channel, or when the channels of this thread have as many
 * bytes queued together as they may (domus/memory.h), and then this channel is reset; -EBUSY while
 * a change of the pipeline waits; -ENOMEM; what the stage returned (-EOPNOTSUPP for a type that it
 * does not know). */
DOMUS_API int domus_channel_send(domus_stack *stack, domus_channel *channel, const domus_type *type,
                                 const void *payload);

/* Get the state that a stage has for this channel. It is for the library of that stage, which by it
 * tells its users what they may know (domus/tls.h). Returns NULL for another actor than that of the
 * channel, and when no such stage is open in its pipeline, nor, for an inner channel, in that of
 * the channel that carries it (domus/inner.h).
 *
 * Thread-safety: only from a handler of the channel's own behaviour, with its stack; the state is
 * valid until the end of that turn. */
DOMUS_API void *domus_channel_stage_state(domus_stack *stack, domus_channel *channel,
                                          const domus_stage *stage);

/* --- packets: stages that divide bytes, and do not look into them ----------------------------- */

/* A packet: the bytes between two boundaries. The stages below decode and encode this type. The
 * packet of a server's or client's stage is a request or an answer by its role.
 *
 * `size_max` bounds received packets: a larger packet ends the channel with -EMSGSIZE. Each stage
 * is cheap for peers that send byte by byte. All but the line stage and that of bytes need options.
 * All but the line stage reset the channel when a request fails, because there is nothing that
 * their peer would understand. */
typedef struct domus_packet {
    domus_slice bytes; /* the bytes of the packet, without the boundary between packets */
} domus_packet;

DOMUS_API extern const domus_type domus_packet_type;

/* Options of domus_line_stage: packets are lines, which end with "\n" or "\r\n". Packets come
 * without either, and leave with `crlf` ? "\r\n" : "\n" (but one that ends with "\r" always with
 * "\r\n"). A packet to be sent that contains "\n" is refused with -EINVAL. Options may be NULL. */
typedef struct domus_line_options {
    domus_role role;
    /* most bytes of a line without its end, 1..65534; 0 means 8192; a longer line ends the channel
     * with -EMSGSIZE */
    uint32_t size_max;
    bool crlf;
    /* text that the peer gets for a request that failed; NULL: "error: " and the name of the
     * error */
    const char *failed;
} domus_line_options;

DOMUS_API extern const domus_stage domus_line_stage;

/* Options of domus_delimiter_stage: packets end with a certain byte. A packet to be sent that
 * contains that byte is refused with -EINVAL. */
typedef struct domus_delimiter_options {
    domus_role role;
    uint32_t size_max; /* most bytes of a packet without its last byte, 1..65535; 0 means 8192 */
    char delimiter;
} domus_delimiter_options;

DOMUS_API extern const domus_stage domus_delimiter_stage;

/* Options of domus_length_stage: packets begin with their length. A packet to be sent that is too
 * long for `width` is refused with -EMSGSIZE. A length that should count itself, and is less than
 * its own bytes, ends the channel with -EBADMSG. */
typedef struct domus_length_options {
    domus_role role;
    uint32_t size_max; /* most bytes of a packet without its length, 1..65528; 0 means 65528 */
    uint8_t width;     /* bytes in which the length is written: 1, 2, 4 or 8 */
    /* whether the length is written in little-endian order; else it is in network order */
    bool little_endian;
    bool counts_itself; /* whether the length counts its own bytes, too */
} domus_length_options;

DOMUS_API extern const domus_stage domus_length_stage;

/* Options of domus_fixed_stage: packets of one size. A packet to be sent of another size is refused
 * with -EINVAL. */
typedef struct domus_fixed_options {
    domus_role role;
    uint32_t size; /* size of each packet in bytes, 1..65536 */
} domus_fixed_options;

DOMUS_API extern const domus_stage domus_fixed_stage;

/* The stage for bytes as they come: a packet is what a read has brought, 1..65536 bytes, and has no
 * meaning as a whole. It is a notice, and what is sent leaves as it is. It has no options. So a
 * program that takes bytes can stand behind a byte stage (TLS), which an on_read cannot. */
DOMUS_API extern const domus_stage domus_bytes_stage;

#ifdef __cplusplus
}
#endif

#endif
