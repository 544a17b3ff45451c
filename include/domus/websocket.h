/* WebSocket (RFC 6455), server and client, as the message stage of a pipeline (domus/pipeline.h).
 * It is in the library domus-http. docs/websocket.md is the manual.
 *
 * A connection begins as HTTP/1.1, and its pipeline is changed by the handshake:
 *
 *     static const domus_pipeline socket = {
 *         .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, NULL}, {0}},
 *     };
 *     static const domus_websocket_service service = {.pipeline = &socket};
 *
 *     static int on_request(domus_stack *stack, void *self, const void *payload)
 *     {
 *         return domus_websocket_accept(stack, payload, &service, NULL);
 *     }
 *     static int on_message(domus_stack *stack, void *self, const void *payload)
 *     {
 *         return domus_channel_send(stack, domus_channel_running(stack),
 *                                   &domus_websocket_message_type, payload);
 *     }
 *
 * with rows of `on_peer` for domus_http_request_type and domus_websocket_message_type.
 *
 * Messages of the peer are notices: domus_websocket_message for each message, whole, in however
 * many fragments it came; domus_websocket_close when the peer closes; and, if the options ask for
 * them, pongs. A handler sends by domus_channel_send() at once, or by a notice to the channel's
 * address, as other actors do (`encodes` of the pipeline). A message for many members is made a
 * frame once (domus_websocket_frame()) and published to a group.
 *
 * The stage answers pings, watches that the peer is there, and says goodbye: a close of the peer is
 * answered and ends the channel; bytes that are wrong are answered with the code for that. In a
 * drain, and after domus_channel_close(), the peer gets 1001 unless a close was sent before.
 * Extensions are declined.
 *
 * Thread-safety: the stage as all stages (domus/stage.h); the functions here as they say. */
#ifndef DOMUS_WEBSOCKET_H
#define DOMUS_WEBSOCKET_H

#include <domus/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the stage ------------------------------------------------------------------------------ */

/* value of ping_ns with which the stage sends no pings */
#define DOMUS_WEBSOCKET_NEVER UINT64_MAX

/* Options of domus_websocket_stage. NULL: a server with all defaults. A limit of 0 is its
 * default. */
typedef struct domus_websocket_options {
    domus_role role; /* role of this side: DOMUS_ROLE_SERVER or DOMUS_ROLE_CLIENT */
    /* whether pongs of the peer are shown, as messages of domus_websocket_pong_type */
    bool pongs;
    uint8_t reserved[3]; /* 0 */
    /* most bytes of a message, 1..1 GiB; 0 means 1 MiB; more gets close code 1009 */
    uint32_t message_max;
    /* most bytes of one frame of a message, 1..1 GiB; 0: as message_max; more gets close code
     * 1009 */
    uint32_t frame_max;
    /* most frames of one message; 0 means 4096; more gets close code 1008 */
    uint32_t fragments_max;
    uint32_t reserved2; /* 0 */
    /* Silence after which a peer gets a ping; after the same silence again the channel is reset
     * with -ETIMEDOUT. 1 ms..1 h; 0 means 30 s; DOMUS_WEBSOCKET_NEVER: no pings. It has to be less
     * than channel.idleTimeout to keep an idle connection. */
    uint64_t ping_ns;
    /* Time in which a peer has to answer a close; then it is reset with -ETIMEDOUT. 1 ms..1 h; 0
     * means 5 s. */
    uint64_t close_ns;
    /* Budget for messages that have come in part, over all channels whose options point to it.
     * Beyond it the peer gets 1013. NULL: each channel may gather message_max. The budget stays the
     * caller's, and valid as long as the pipeline is used. */
    domus_budget *budget;
} domus_websocket_options;

/* The message stage of WebSocket. Memory is taken for bytes that have come, never for those that
 * are only announced. A message that lies whole where it was received is shown there. */
DOMUS_API extern const domus_stage domus_websocket_stage;

/* --- messages ------------------------------------------------------------------------------- */

/* A message, as it was received or is to be sent. Text is UTF-8, both ways: other text is refused
 * with 1007 when it comes, and with -EILSEQ when it is to be sent. */
typedef struct domus_websocket_message {
    domus_slice bytes;
    bool binary; /* whether the message is binary; else it is text */
    uint8_t reserved[7];
} domus_websocket_message;

/* The type of messages. Its `release` frees the bytes. */
DOMUS_API extern const domus_type domus_websocket_message_type;

/* The type of a frame: a message of a server as it is on the wire; the payload is a domus_slice.
 * All channels of servers that send a frame share its bytes, so one frame is made for all members
 * of a room. A stage whose peer is a server refuses it with -EINVAL, because what a client sends is
 * masked for each connection. */
DOMUS_API extern const domus_type domus_websocket_frame_type;

/* Make a frame of a message, which stays the caller's. For any thread.
 *
 * Returns 0; -EILSEQ for text that is not UTF-8; -EMSGSIZE near DOMUS_SLICE_MAX; -ENOMEM. */
DOMUS_API int domus_websocket_frame(const domus_websocket_message *message, domus_slice *ret_frame);

/* The types of a ping of this side, which the peer answers, and of a pong, which is the peer's
 * answer or is sent unasked. The payload is a domus_slice of up to 125 bytes (-EMSGSIZE). Pings of
 * the peer are answered by the stage, and not shown. */
DOMUS_API extern const domus_type domus_websocket_ping_type;
DOMUS_API extern const domus_type domus_websocket_pong_type;

/* --- the end -------------------------------------------------------------------------------- */

/* Codes of a close (RFC 6455, 7.4, and the registry of IANA). */
enum {
    DOMUS_WEBSOCKET_NORMAL = 1000,
    DOMUS_WEBSOCKET_GOING_AWAY = 1001,
    DOMUS_WEBSOCKET_PROTOCOL_ERROR = 1002,
    DOMUS_WEBSOCKET_UNSUPPORTED = 1003, /* close code: this side cannot take data of such a kind */
    DOMUS_WEBSOCKET_NO_CODE = 1005,     /* close code: the peer has given no code; never sent */
    DOMUS_WEBSOCKET_INVALID_DATA = 1007,
    DOMUS_WEBSOCKET_POLICY = 1008,
    DOMUS_WEBSOCKET_TOO_BIG = 1009,
    DOMUS_WEBSOCKET_NO_EXTENSION = 1010,
    DOMUS_WEBSOCKET_INTERNAL_ERROR = 1011,
    DOMUS_WEBSOCKET_RESTART = 1012,
    DOMUS_WEBSOCKET_TRY_LATER = 1013,
    DOMUS_WEBSOCKET_BAD_GATEWAY = 1014,
};

/* A close, as it was received or is to be sent. May be sent: 1000..1003, 1007..1014, 3000..4999.
 *
 * To send one begins the end: nothing is sent behind it (-EPIPE), messages of the peer are thrown
 * away from then on, and the channel is closed when the peer has answered. A close of the peer is
 * answered by the stage, and is the last message that comes; the channel is closed then. A handler
 * of domus_websocket_close_type gets the peer's close in both cases. An actor that does not care
 * how the connection ended has an on_close (domus/channel.h) alone, which is called in every
 * case. */
typedef struct domus_websocket_close {
    /* code of the close, such as DOMUS_WEBSOCKET_NORMAL. Received: DOMUS_WEBSOCKET_NO_CODE if there
     * is none. Sent: 0 for none */
    uint16_t code;
    uint8_t reserved[6];
    /* reason of the close, up to 123 bytes of UTF-8; empty if there is no code */
    domus_slice reason;
} domus_websocket_close;

/* The type of closes. Its `release` frees the reason. A close that must not be sent is refused with
 * -EINVAL, one whose reason is too long with -EMSGSIZE. */
DOMUS_API extern const domus_type domus_websocket_close_type;

/* Send a close to the peer of a channel: domus_channel_send() with a reason that is a string (NULL:
 * none), which is copied.
 *
 * Thread-safety: as domus_channel_send(). Returns as that; -EINVAL; -EMSGSIZE; -EILSEQ. */
DOMUS_API int domus_websocket_close_channel(domus_stack *stack, domus_channel *channel,
                                            uint16_t code, const char *reason);

/* --- the handshake of a server -------------------------------------------------------------- */

/* The offer of a server at a path. */
typedef struct domus_websocket_service {
    /* The pipeline that follows HTTP. Its message stage is domus_websocket_stage in the role of a
     * server. */
    const domus_pipeline *pipeline;
    /* Subprotocols, up to a NULL; the first one that the client offers is chosen. NULL: none. */
    const char *const *protocols;
    /* Values of Origin that are allowed, such as "https://example.com", up to a NULL: other values
     * get 403. Browsers always send Origin; other clients need not, and are let in without it.
     * NULL: all.
     *
     * Browsers let every page of every site open a WebSocket, with the user's cookies. A service
     * that trusts cookies has to set this. */
    const char *const *origins;
} domus_websocket_service;

/* The outcome of a handshake. */
typedef struct domus_websocket_outcome {
    uint16_t status;      /* status of the answer; 101: the connection is a WebSocket now */
    const char *protocol; /* subprotocol of the service that was chosen; NULL: none */
} domus_websocket_outcome;

/* Answer a request that wants to be a WebSocket, and change the pipeline of its channel. A request
 * that does not want it, and one of another version than 13, gets 426 with the protocol and version
 * that are spoken here; a wrong request gets 400, and one from an Origin that is not allowed 403.
 * Bytes of the client behind its request are read as frames.
 *
 * In this turn nothing can be sent to the peer yet (domus_channel_send() returns -EBUSY). A notice
 * to domus_self() is sent behind the answer, if the request was alone or the first.
 *
 * `ret_outcome` may be NULL. Thread-safety: only from the row of domus_http_request_type in a
 * channel's own behaviour, before the request is answered.
 * Returns 0: the request was answered, in whichever way; otherwise it was not: -EPERM when the
 * actor is no channel's; -ENOMEM; as domus_channel_set_pipeline() and domus_reply(). */
DOMUS_API int domus_websocket_accept(domus_stack *stack, const domus_http_request *request,
                                     const domus_websocket_service *service,
                                     domus_websocket_outcome *ret_outcome);

/* Only make the answer of domus_websocket_accept(): for tests, and for programs that add fields to
 * it. The caller replies with it and, if its status is 101, changes the pipeline in the same turn.
 * For any thread.
 *
 * Ownership: `ret_response` owns its fields. Returns 0; -ENOMEM. */
DOMUS_API int domus_websocket_answer(const domus_http_request *request,
                                     const domus_websocket_service *service,
                                     domus_http_response *ret_response,
                                     domus_websocket_outcome *ret_outcome);

/* --- the handshake of a client -------------------------------------------------------------- */

/* The options of a handshake that a client begins. */
typedef struct domus_websocket_wish {
    const char *target; /* path of the request with its query; NULL: "/" */
    const char *origin; /* value of the field Origin; NULL: none is sent */
    /* subprotocols that the client offers, the best first, up to a NULL; NULL: none */
    const char *const *protocols;
    domus_slice fields; /* further fields of the request, such as cookies; they stay the caller's */
} domus_websocket_wish;

/* The answer that the server has to give. It is a small value, kept from request to answer. */
typedef struct domus_websocket_key {
    char accept[29]; /* value that Sec-WebSocket-Accept has to have */
} domus_websocket_key;

/* Make the request of a handshake, for domus_ask() to the channel itself. Its pipeline is one of
 * HTTP in the role of a client. For any thread.
 *
 * Ownership: `ret_request` owns its slices.
 * Returns 0; -EINVAL for texts that cannot stand in a request; -ENOMEM; or the error of
 * getrandom(2). */
DOMUS_API int domus_websocket_request(const domus_websocket_wish *wish,
                                      domus_http_request *ret_request,
                                      domus_websocket_key *ret_key);

/* Check the answer of the server. After 0 the channel changes its pipeline to one whose message
 * stage is domus_websocket_stage in the role of a client, in the turn that was given the answer.
 * For any thread.
 *
 * `ret_protocol` (may be NULL) gets the protocol of the wish that the server has chosen, or NULL.
 * Returns 0; -ECONNREFUSED when the status is not 101; -EPROTO when the answer is wrong: another
 * key, another protocol than those that were offered, or any extension. */
DOMUS_API int domus_websocket_check(const domus_websocket_wish *wish,
                                    const domus_websocket_key *key,
                                    const domus_http_response *response, const char **ret_protocol);

#ifdef __cplusplus
}
#endif

#endif
