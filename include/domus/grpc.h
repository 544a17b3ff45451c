/* gRPC for servers: methods in a table, calls as asks, messages as bytes. It is in the library
 * domus-grpc, over domus-http and domus-http2. docs/grpc.md is the manual. The meaning of
 * messages (protobuf) is the affair of the user.
 *
 *     static int greet(domus_stack *stack, void *self, const void *payload)
 *     {
 *         const domus_grpc_call *call = payload;
 *         ... call->message ...
 *         return domus_grpc_reply(stack, made);
 *     }
 *     static const domus_grpc_service service = {
 *         .methods = (const domus_grpc_method[]){
 *             {"/hello.Greeter/Greet", DOMUS_GRPC_UNARY, greet}, {NULL, 0, NULL}}};
 *     static int serve(domus_stack *stack, void *self, const void *request)
 *     {
 *         return domus_grpc_serve(stack, self, request, &service);
 *     }
 *     ... .pipeline with domus_http2_stage and domus_http_stage (DOMUS_GRPC_HTTP)
 *     ... .on_peer = {{.type = &domus_http_request_type, .handle = serve,
 *                      .peer_frame_size = DOMUS_GRPC_FRAME}, {.type = NULL}}
 *     ... .on = {{&domus_grpc_call_type, domus_grpc_dispatch, FRAME}, {.type = NULL}}
 *
 * **A call** is an ask of the channel to itself, with a domus_grpc_call, that domus_grpc_dispatch()
 * gives to the handler of its method. So a handler may wait, begin a sequence (FRAME is the size of
 * the largest frame of all handlers), keep the call, or forward it to another actor on any thread;
 * its deadline is that of the call ("grpc-timeout", domus_deadline_ns()), which begins with the
 * request and holds for messages that do not come, too; and when the client takes the call back,
 * the conversation is cancelled. An ask to oneself is none to an actor that does one thing at a
 * time: the row of requests has no DOMUS_ALONE, and no barrier.
 *
 * **The end** of a call is its status. A handler answers with domus_grpc_reply(), domus_grpc_fail()
 * or a domus_grpc_answer, or returns a negative errno (domus_grpc_status_of()). No handler can
 * break its connection.
 *
 * **Kinds.** With a message that comes alone (unary, server streaming) the handler is called when
 * the message is there, and it is `message` of the call. With messages that come as a stream it is
 * called at once, and reads them (DOMUS_GRPC_READ()). With one that leaves alone (unary, client
 * streaming) it is that of the answer. A stream that leaves is begun (domus_grpc_begin()), written
 * (domus_grpc_write()), and ended by an answer without a message.
 *
 * **Refused** before any handler: other content types than application/grpc (415), HTTP/1.1 (505),
 * other HTTP methods than POST (405); and by the status of the call: a method that is not in the
 * table, and a compression that is not known (UNIMPLEMENTED), a message of more than message_max
 * bytes, as it is after decompression (RESOURCE_EXHAUSTED), bytes that are no messages (INTERNAL).
 *
 * Thread-safety: the functions with a stack only from within a handler; all others, any thread. */
#ifndef DOMUS_GRPC_H
#define DOMUS_GRPC_H

#include <domus/await.h>
#include <domus/http.h>
#include <domus/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* bytes of the frame of the row for requests, which domus_grpc_serve() uses */
#define DOMUS_GRPC_FRAME 64u
/* most bytes of the text of a status; further ones are cut off */
#define DOMUS_GRPC_TEXT_MAX 1024u
/* size in bytes of the largest message that leaves compressed */
#define DOMUS_GRPC_PACK_MAX 65536u
/* most bytes of the metadata, or of the trailers, of an answer */
#define DOMUS_GRPC_METADATA_MAX 8192u

/* The fields of domus_http_options that gRPC needs: `(domus_http_options){DOMUS_GRPC_HTTP}`.
 * Streams of messages may go on for ever, so a body has no bound. */
#define DOMUS_GRPC_HTTP .streams = true, .body_max = UINT64_MAX

/* The status with which a call ends, by the numbers of gRPC. */
typedef enum domus_grpc_status {
    DOMUS_GRPC_OK = 0,
    DOMUS_GRPC_CANCELLED = 1,
    DOMUS_GRPC_UNKNOWN = 2,
    DOMUS_GRPC_INVALID_ARGUMENT = 3,
    DOMUS_GRPC_DEADLINE_EXCEEDED = 4,
    DOMUS_GRPC_NOT_FOUND = 5,
    DOMUS_GRPC_ALREADY_EXISTS = 6,
    DOMUS_GRPC_PERMISSION_DENIED = 7,
    DOMUS_GRPC_RESOURCE_EXHAUSTED = 8,
    DOMUS_GRPC_FAILED_PRECONDITION = 9,
    DOMUS_GRPC_ABORTED = 10,
    DOMUS_GRPC_OUT_OF_RANGE = 11,
    DOMUS_GRPC_UNIMPLEMENTED = 12,
    DOMUS_GRPC_INTERNAL = 13,
    DOMUS_GRPC_UNAVAILABLE = 14,
    DOMUS_GRPC_DATA_LOSS = 15,
    DOMUS_GRPC_UNAUTHENTICATED = 16
} domus_grpc_status;

/* The status for the error with which a handler ends:
 *
 *   ECANCELED                                       CANCELLED
 *   EINVAL, EBADMSG, EDOM                           INVALID_ARGUMENT
 *   ETIMEDOUT, ETIME                                DEADLINE_EXCEEDED
 *   ENOENT                                          NOT_FOUND
 *   EEXIST                                          ALREADY_EXISTS
 *   EACCES, EPERM                                   PERMISSION_DENIED
 *   EMSGSIZE, ENOBUFS, ENOMEM, ENOSPC, EDQUOT       RESOURCE_EXHAUSTED
 *   ERANGE                                          OUT_OF_RANGE
 *   EOPNOTSUPP, ENOSYS                              UNIMPLEMENTED
 *   EPROTO, ENOMSG (it ended without an answer)     INTERNAL
 *   EAGAIN, EBUSY, ENOTCONN, ESTALE, EHOSTDOWN,
 *   ECONNREFUSED, ECONNRESET, EPIPE                 UNAVAILABLE
 *   EKEYREJECTED                                    UNAUTHENTICATED
 *   0                                               OK
 *   any other                                       UNKNOWN */
DOMUS_API domus_grpc_status domus_grpc_status_of(int error);

/* --- services --------------------------------------------------------------------------------- */

/* The kinds of methods: by whether the client, the server, or both send several messages. */
typedef enum domus_grpc_kind {
    DOMUS_GRPC_UNARY,
    DOMUS_GRPC_SERVER_STREAMING,
    DOMUS_GRPC_CLIENT_STREAMING,
    DOMUS_GRPC_BIDIRECTIONAL
} domus_grpc_kind;

/* A method of a service. The last row of the table has a NULL path. */
typedef struct domus_grpc_method {
    const char *path; /* path of the method: "/package.Service/Method" */
    domus_grpc_kind kind;
    domus_handler *handle; /* handler of a domus_grpc_call; for a sequence NAME: domi_NAME_begin */
} domus_grpc_method;

/* A service, or several of them. It is constant, and valid as long as it is used. */
typedef struct domus_grpc_service {
    const domus_grpc_method *methods;
    /* most bytes of a received message, 1..DOMUS_SLICE_MAX - 5; 0 means 4 MiB */
    uint32_t message_max;
    /* Least size in bytes of messages that leave compressed by gzip (those of more than
     * DOMUS_GRPC_PACK_MAX do not, because they would hold up the thread), if the client accepts
     * that, and if they become smaller; 0: no message is compressed. */
    uint32_t pack_least;
    /* time for which a call may last, if its client names no time or a longer one; 0: as long as
     * the client says */
    uint64_t timeout_ns;
    /* Returns whether the service `name` in `methods` is well, for the health check; NULL: all
     * services are. */
    bool (*is_serving)(const char *name, size_t size);
} domus_grpc_service;

/* Serve a request of a channel, as the end of its handler: `return domus_grpc_serve(...)`. The
 * frame of its row has DOMUS_GRPC_FRAME bytes, which the handler does not use. In a chain
 * (domus/http_chain.h) this is the handler of a row "/{service}/{method}".
 *
 * Returns as a handler does; -EINVAL when the row has no frame, or the service is wrong. */
DOMUS_API int domus_grpc_serve(domus_stack *stack, void *self, const domus_http_request *request,
                               const domus_grpc_service *service);

/* Give a call to the handler of its method: the handler of a row of `on`, for
 * domus_grpc_call_type. */
DOMUS_API int domus_grpc_dispatch(domus_stack *stack, void *self, const void *payload);

/* The handler of the method "/grpc.health.v1.Health/Check", which is a row of its service as all
 * others: SERVING or NOT_SERVING for the names of services in the table, and for "", which stands
 * for the server; NOT_FOUND for others. */
DOMUS_API int domus_grpc_check_health(domus_stack *stack, void *self, const void *payload);

/* --- calls ------------------------------------------------------------------------------------ */

/* The payload of the ask that is a call. domus_asked(stack, &domus_grpc_call_type) finds it behind
 * a wait. The message owns the slices. */
typedef struct domus_grpc_call {
    const domus_grpc_method *method;
    /* the metadata of the call, and all other fields of the request (domus_http_field()) */
    domus_slice fields;
    /* the message of the client if it sends one; empty if its messages come as a stream */
    domus_slice message;
    struct domi_grpc_inside *inside; /* state of the call, which is for the library alone */
} domus_grpc_call;

DOMUS_API extern const domus_type domus_grpc_call_type;

/* An answer that ends a call of gRPC. The message owns the slices. */
typedef struct domus_grpc_answer {
    /* the one message of an answer with the status DOMUS_GRPC_OK; not used in other answers */
    domus_slice message;
    /* metadata: fields before the messages; not used if the stream has begun */
    domus_slice metadata;
    domus_slice trailers; /* trailers: fields behind the messages */
    /* text of the status for a person, in UTF-8, which is escaped here; empty: none */
    domus_slice text;
    domus_grpc_status status; /* status with which the call ends */
} domus_grpc_answer;

DOMUS_API extern const domus_type domus_grpc_answer_type;

/* Answer a call with OK: with one message, or with the empty slice when messages have left as a
 * stream.
 *
 * Ownership: this takes the slice in every case.
 * Returns as domus_reply(). */
DOMUS_API int domus_grpc_reply(domus_stack *stack, domus_slice message);

/* Answer a call with a status and a text (NULL: none). Returns as domus_reply(); -ENOMEM. */
DOMUS_API int domus_grpc_fail(domus_stack *stack, domus_grpc_status status, const char *text);

/* --- messages that come as a stream ----------------------------------------------------------- */

/* Read the next message, in a sequence; behind this, domus_grpc_message() gives the message or the
 * error. */
#define DOMUS_GRPC_READ()                                                                          \
    while (domus_grpc_read_goes_on(stack, answer, then))                                           \
    DOMUS_AWAIT(DOMUS_PARKED)

/* Go on with the read of the next message. `answer` is what the last wait has brought; when a read
 * begins, it is not looked at. Returns true when a wait has begun; false when the read has ended.
 * One conversation at a time reads. */
DOMUS_API bool domus_grpc_read_goes_on(domus_stack *stack, const domus_answer *answer,
                                       domus_resumed *then);

/* Set `ret_message` to the message that was read. It is valid until the next read, or until the
 * call is over, and domus_slice_keep() makes an owner of it.
 *
 * Returns 0; -ENODATA when the client has ended; -EMSGSIZE beyond message_max; -EPROTO for bytes
 * that are no messages; -ECANCELED when the call is over or its client is gone; -ENOMEM; or as
 * domus_body_read() tells. A handler may return each of these but -ENODATA. */
DOMUS_API int domus_grpc_message(domus_stack *stack, domus_slice *ret_message);

/* --- messages that leave as a stream ---------------------------------------------------------- */

/* Begin an answer whose messages leave as a stream, with metadata (the empty slice: none), and
 * suspend until the metadata is encoded. The rest of this text holds for domus_grpc_write(), too.
 *
 * Ownership: these take the slice in every case.
 * `then` is resumed as after domus_reply_begin() and domus_reply_write().
 * Return as domus_ask(); -EOPNOTSUPP for a kind of which one message leaves; -EINVAL for metadata
 * that cannot be sent, and for a write before the begin; -ECANCELED when the call is over;
 * -EMSGSIZE. */
DOMUS_API int domus_grpc_begin(domus_stack *stack, domus_slice metadata, domus_resumed *then);

/* Write a message, and suspend until the next one may be written: while more than channel.sendHigh
 * bytes wait for the client. */
DOMUS_API int domus_grpc_write(domus_stack *stack, domus_slice message, domus_resumed *then);

/* Give the stream of a call that has begun, for other actors, which write what domus_grpc_frame()
 * has made of a message, once for any number of streams, by domus_stream_write(). Returns 0;
 * -ECANCELED. */
DOMUS_API int domus_grpc_stream(domus_stack *stack, domus_stream *ret_stream);

/* Make the bytes of a message for streams, with the 5 bytes that stand before it. `message` stays
 * the caller's. Returns 0; -EMSGSIZE; -ENOMEM. */
DOMUS_API int domus_grpc_frame(domus_slice message, domus_slice *ret_frame);

/* --- metadata --------------------------------------------------------------------------------- */

/* Text is read and added as fields of HTTP are (domus_http_field(), domus_http_add()). Names that
 * begin with "grpc-", and content-type, content-encoding, content-length, te, trailer, host,
 * connection and transfer-encoding, are not metadata, and are refused, as are lines that are no
 * fields: a call ends with INTERNAL then.
 *
 * Bytes have names that end with "-bin", and leave in base64. Returns as domus_http_add_bytes();
 * -EINVAL for another name. */
DOMUS_API int domus_grpc_add_binary(domus_appender *fields, const char *name, const void *bytes,
                                    size_t size);

/* Read a value of bytes, as base64 with or without "=" at its end.
 *
 * Ownership: the slice is the caller's.
 * Returns 0; -EINVAL when it is no base64; -ENOMEM. */
DOMUS_API int domus_grpc_binary(domus_slice value, domus_slice *ret_bytes);

#ifdef __cplusplus
}
#endif

#endif
