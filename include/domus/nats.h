/* NATS: a client of its servers (libdomus-nats), as an actor, and its protocol as a stage. The page
 * docs/nats.md shows how it is used.
 *
 *     static int on_mount(domus_stack *stack, void *self_)
 *     {
 *         struct self *self = self_;
 *         domus_nats_options options = {.servers = "127.0.0.1:4222"};
 *         int error = domus_nats_open(stack, &options, &self->nats);
 *         if (error != 0)
 *             return error;
 *         domus_nats_subscribe subscribe;
 *         error = domus_nats_subscribe_make("greet.*", "greeters", &subscribe);
 *         if (error != 0)
 *             return error;
 *         return domus_ask(stack, self->nats, &domus_nats_subscribe_type, &subscribe, subscribed);
 *     }
 *
 * **The client** is an actor with one connection at a time, on the thread that has opened it. All
 * verbs are messages to its address, so actors of any thread use it. While there is no connection,
 * it makes one: to any server of its list, in random order, with a back-off for each that doubles
 * with each failure. Publications wait meanwhile, up to `buffer_max` bytes, and so do those
 * that a slow connection does not take; the subscriptions are made again. Nothing is delivered
 * twice; what was on its way when a connection broke may be lost.
 *
 *   domus_nats_publish_type      notice, or ask    publish; an ask is answered once it is queued
 *   domus_nats_request_type      ask               publish with an inbox, and get one reply
 *   domus_nats_subscribe_type    ask               messages come as notices from now on
 *   domus_nats_unsubscribe_type  notice, or ask    they come no longer
 *   domus_nats_flush_type        ask               answered when the server has all from before
 *   domus_nats_drain_type        notice, or ask    let everything end, and stop
 *   domus_nats_look_type         ask               the state of the client
 *
 * A message that comes has the type domus_nats_message_type: as a notice for a subscription, as the
 * answer of a request.
 *
 * The order of a sender's notices is kept on the way to the server, and messages of a subscription
 * come in the order of the server. Between asks and notices there is no order (domus/actor.h), so a
 * request may overtake what was published before it; a flush does not.
 *
 * An actor answers a message by publishing to domus_nats_reply_to(). If nobody has subscribed to
 * the subject of a request, it fails at once with -ECONNREFUSED ("no responders").
 *
 * Thread-safety: functions without a stack may be called by any thread, for values of its own. */
#ifndef DOMUS_NATS_H
#define DOMUS_NATS_H

#include <domus/channel_options.h>
#include <domus/nats_nkey.h>
#include <domus/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- messages that come ----------------------------------------------------------------------- */

/* A message of the server (MSG or HMSG). Its parts lie in `bytes`; the functions below get them. */
typedef struct domus_nats_message {
    domus_slice bytes;     /* bytes of the message, from its subject to the end of its payload */
    uint64_t subscription; /* number of the subscription that brings the message; 0 in an answer */
    uint64_t tag;          /* the tag of the domus_nats_subscribe; 0 in an answer */
    uint32_t payload_size;
    uint32_t headers_size; /* bytes of the headers with "NATS/1.0" and the empty line; 0: none */
    uint16_t subject_size;
    uint16_t reply_at; /* offset of the reply subject in `bytes`; meaningless if there is none */
    uint16_t reply_size;
    /* status of a block "NATS/1.0 503", 100..999; 0: none. Any publisher may set it */
    uint16_t status;
} domus_nats_message;

/* The type of messages of the server. Its `release` frees the bytes. */
DOMUS_API extern const domus_type domus_nats_message_type;

/* Return a part of a message: `size` of its bytes from `at` on, or its subject.
 *
 * Ownership: the slices own nothing, so they are not freed. They are valid as long as the message
 * is, and domus_slice_keep() makes an owner of one. */
static inline domus_slice domus_nats_part(const domus_nats_message *message, uint32_t at,
                                          uint32_t size)
{
    domus_slice part = message->bytes;

    part.offset += at;
    part.size = size;
    return part;
}

static inline domus_slice domus_nats_subject(const domus_nats_message *message)
{
    return domus_nats_part(message, 0, message->subject_size);
}

/* Returns the subject to which an answer is published; empty if none is wanted. */
static inline domus_slice domus_nats_reply_to(const domus_nats_message *message)
{
    return domus_nats_part(message, message->reply_at, message->reply_size);
}

static inline domus_slice domus_nats_payload(const domus_nats_message *message)
{
    return domus_nats_part(message, message->bytes.size - message->payload_size,
                           message->payload_size);
}

/* Returns the block of headers, as its publisher has sent it; no server checks that it is one. */
static inline domus_slice domus_nats_headers(const domus_nats_message *message)
{
    return domus_nats_part(message,
                           message->bytes.size - message->payload_size - message->headers_size,
                           message->headers_size);
}

/* Find a header by its name, whose letters have to be the same (as the Go client has it, and unlike
 * HTTP). `ret_value` gets the value without spaces around it. Returns 0; -ENOENT. With `from`, a
 * number that begins as 0, several headers of one name are found one after the other. */
DOMUS_API int domus_nats_header(const domus_nats_message *message, const char *name, uint32_t *from,
                                domus_slice *ret_value);

/* Get a message's next header. `from` begins as 0. Returns 0; -ENOENT behind the last one. */
DOMUS_API int domus_nats_header_next(const domus_nats_message *message, uint32_t *from,
                                     domus_slice *ret_name, domus_slice *ret_value);

/* Returns the words behind a message's status, such as "No Responders"; empty if it has none. */
DOMUS_API domus_slice domus_nats_description(const domus_nats_message *message);

/* --- messages that are sent ------------------------------------------------------------------- */

/* Most bytes of subject, reply and payload that need no page. */
#define DOMUS_NATS_INLINE 184u

/* A message to be published, or a request. It is made from `{0}` by the functions below, which put
 * what is short into the message itself; or with slices as its parts, of which it becomes the
 * owner. A part that is in both places is that of the slice. */
typedef struct domus_nats_publish {
    domus_slice subject;
    domus_slice reply;   /* the reply subject; must be empty in a request */
    domus_slice headers; /* whole block (domus_nats_headers_end()); empty: no headers */
    domus_slice payload; /* bytes of the payload; long ones are sent without a copy */
    uint8_t used; /* bytes in use of `bytes`; from here on the fields belong to the library */
    uint8_t subject_at;
    uint8_t subject_size;
    uint8_t reply_at;
    uint8_t reply_size;
    uint8_t payload_at;
    uint8_t payload_size;
    uint8_t reserved;
    char bytes[DOMUS_NATS_INLINE];
} domus_nats_publish;

/* Set the parts of a message to copies, each part once. Return 0; -EINVAL for a subject that cannot
 * be one (empty, of more than 1024 bytes, with a space or a control character, or with an empty
 * token); -EMSGSIZE above DOMUS_SLICE_MAX; -ENOMEM. */
DOMUS_API int domus_nats_set_subject(domus_nats_publish *publish, const char *subject);
DOMUS_API int domus_nats_set_reply(domus_nats_publish *publish, const char *reply);
DOMUS_API int domus_nats_set_payload(domus_nats_publish *publish, const void *data, size_t size);

/* Set the subject to that on which `message` wants its answer. Returns as domus_nats_set_subject();
 * -EINVAL if it wants none. */
DOMUS_API int domus_nats_set_reply_of(domus_nats_publish *publish,
                                      const domus_nats_message *message);

/* Free the slices of a message that was made and not sent. */
DOMUS_API void domus_nats_publish_free(domus_nats_publish *publish);

#define DOMUS_NATS_SUBJECT_MAX 1024u /* most bytes of a subject, or of a queue group */

/* Build a block of headers in an appender that begins as `{0}`: each call adds a line. A name has
 * printing characters without ":" and space; a value has no line ends. Return 0; -EINVAL; and as
 * domus_append(). */
DOMUS_API int domus_nats_headers_add(domus_appender *headers, const char *name, const char *value);
DOMUS_API int domus_nats_headers_add_bytes(domus_appender *headers, const char *name,
                                           const void *value, size_t size);
/* End the block. Ownership: the slice is the caller's, or the message's whose `headers` it becomes.
 * Returns as domus_append_end(). */
DOMUS_API int domus_nats_headers_end(domus_appender *headers, domus_slice *ret_headers);

/* Publish: the payload is a domus_nats_publish. A notice that cannot be sent is thrown away and
 * counted (`refused`). An ask is answered with domus_nats_done_type when the message is queued, or
 * fails:
 *
 *   -EINVAL      a wrong subject, reply or block of headers
 *   -EMSGSIZE    more bytes than the server takes (max_payload)
 *   -ENOBUFS     `buffer_max` bytes wait
 *   -EOPNOTSUPP  headers, and the server does not know them
 *   -ESHUTDOWN   the client drains
 *   -ENOMEM
 *
 * (While there is no connection the server is not known: then an ask is answered once the message
 * waits, and one that the next server does not take is counted as refused.) */
DOMUS_API extern const domus_type domus_nats_publish_type;
DOMUS_API extern const domus_type domus_nats_done_type; /* an answer without payload: done */

/* Request: the payload is a domus_nats_publish without a reply. The answer is a message
 * (domus_nats_message_type), the first one that comes. The time-out of the ask holds, and without
 * one `request_timeout_ns`. Fails as a publish does, and with:
 *
 *   -ECONNREFUSED  nobody has subscribed to the subject
 *   -ETIMEDOUT     no answer came in time
 *   -EPIPE         the connection broke when the request was sent; it may have been handled
 *   -ENOTCONN      there is no connection, and `fails_fast` is set
 *   -ENOBUFS       also: `inflight_max` requests and flushes are under way
 *   -ESTALE        the client was stopped, or the connection broke before the request was sent */
DOMUS_API extern const domus_type domus_nats_request_type;

/* --- subscriptions ---------------------------------------------------------------------------- */

/* The payload of domus_nats_subscribe_type, which owns the two slices. */
typedef struct domus_nats_subscribe {
    domus_slice subject;   /* subject, with wildcards: "*" for a token, ">" for the rest */
    domus_slice queue;     /* queue group, of which one member gets each message; empty: no group */
    uint64_t messages_max; /* number of messages after which the subscription ends; 0: never */
    uint64_t tag;          /* number that each message of the subscription brings back */
    domus_address to;      /* actor that gets the messages; nobody: the actor that asks */
} domus_nats_subscribe;

/* Make a subscribe from copies of texts; `queue` may be NULL. The other fields are 0, and the
 * caller's. Ownership: the caller's, until it is sent (domus_nats_subscribe_type.release).
 * Returns 0; -EINVAL for a wrong subject or queue group; -ENOMEM. */
DOMUS_API int domus_nats_subscribe_make(const char *subject, const char *queue,
                                        domus_nats_subscribe *ret_subscribe);

/* The payload of domus_nats_subscription_type, the answer to a subscribe. */
typedef struct domus_nats_subscription {
    uint64_t number; /* its number in messages (`subscription`), also after a reconnect; never 0 */
} domus_nats_subscription;

/* Subscribe. Messages come to the subscriber as notices, in order. A message that finds a full
 * mailbox, or no memory, is dropped and counted (`lost`). When the subscriber ends, so does the
 * subscription. The ask is answered when the subscription is queued for the server, or at once
 * while there is no connection; a flush tells when the server has it. A server that does not permit
 * it says so by an event.
 *
 * Fails with -EINVAL for a wrong subject or queue group, and an asker from outside without a `to`;
 * -ENOBUFS at `subscriptions_max`; -ESHUTDOWN while the client drains; -ENOMEM. */
DOMUS_API extern const domus_type domus_nats_subscribe_type;
DOMUS_API extern const domus_type domus_nats_subscription_type;

/* The payload of domus_nats_unsubscribe_type. */
typedef struct domus_nats_unsubscribe {
    uint64_t number;
    uint64_t messages_max; /* number of messages since the subscribe at which it ends; 0: now */
} domus_nats_unsubscribe;

/* End a subscription. An ask is answered with domus_nats_done_type, or fails with -ENOENT. With a
 * `messages_max` of 0 nothing is sent to the subscriber after this is handled; what was sent before
 * may still be in its mailbox. */
DOMUS_API extern const domus_type domus_nats_unsubscribe_type;

/* --- the client ------------------------------------------------------------------------------- */

#define DOMUS_NATS_SERVERS_MAX 32u  /* most servers that a client knows, with those of INFO */
#define DOMUS_NATS_SERVER_SIZE 300u /* size in bytes of a server's address, with a zero */
#define DOMUS_NATS_SECRET_SIZE 256u /* size in bytes of a user, password or token, with a zero */
#define DOMUS_NATS_JWT_SIZE    8192u
#define DOMUS_NATS_NAME_SIZE   128u

/* Defaults of fields of domus_nats_options: a 0 in the field means this value. */
#define DOMUS_NATS_BUFFER_MAX        (UINT64_C(8) * 1024 * 1024)
#define DOMUS_NATS_INFLIGHT_MAX      4096u
#define DOMUS_NATS_SUBSCRIPTIONS_MAX 4096u
#define DOMUS_NATS_PAYLOAD_MAX       (UINT32_C(8) * 1024 * 1024)
#define DOMUS_NATS_REQUEST_TIMEOUT   UINT64_C(5000000000)
#define DOMUS_NATS_CONNECT_TIMEOUT   UINT64_C(5000000000)
#define DOMUS_NATS_DRAIN_TIMEOUT     UINT64_C(30000000000)
#define DOMUS_NATS_BACKOFF_MIN       UINT64_C(100000000)
#define DOMUS_NATS_BACKOFF_MAX       UINT64_C(10000000000)
#define DOMUS_NATS_PING_INTERVAL     UINT64_C(20000000000)
#define DOMUS_NATS_PINGS_MISSED_MAX  2u

/* Options of a client. All fields but `servers` may be 0. Texts are copied, except the stages of
 * `front`, which have to stay valid as long as the client is there. */
typedef struct domus_nats_options {
    /* Addresses of servers, with "," between them: "host:port", "a.b.c.d:port", "[v6]:port". A port
     * that is left out is 4222, and a leading "nats://" is left away; so is "tls://", with a front
     * only. */
    const char *servers;
    const char *name; /* name of this client, which the server shows; NULL: none */

    /* The identity of this client, at most one of: user and password; token; nkey_seed, with or
     * without a jwt. */
    const char *user;
    const char *password;
    const char *token;
    const char *nkey_seed; /* seed of the user's nkey, "SU..."; only a signature leaves */
    const char *jwt;       /* the JWT of the user to whom `nkey_seed` belongs */

    /* Byte stages for TLS (that of libdomus-tls with its options), up to one whose stage is NULL.
     * The server speaks first, in clear, and then TLS begins; one that does not want TLS is left
     * (-EACCES). NULL: no TLS; a server that requires it is left (-EPROTONOSUPPORT). */
    const struct domus_pipeline_stage *front;
    bool tls_first;      /* whether TLS begins at once (a server with handshake_first) */
    bool no_echo;        /* whether this client's own publications do not come back */
    bool fails_fast;     /* whether requests and flushes without a connection fail (-ENOTCONN) */
    bool ignores_others; /* whether servers of INFO (connect_urls) are not added */

    uint32_t inflight_max;      /* most requests and flushes under way, 1..65536; 0 means 4096 */
    uint32_t subscriptions_max; /* most subscriptions at a time, 1..1048576; 0 means 4096 */
    /* Most bytes of a message that comes, with headers, 1024..64 MiB; 0: 8 MiB. A server that sends
     * more is left (-EMSGSIZE). */
    uint32_t payload_max;
    uint32_t pings_missed_max; /* most unanswered pings, 1..16; 0 means 2. One more: -ETIMEDOUT */
    /* Most bytes of messages that wait, because there is no connection or a slow one, 4 KiB..1 GiB;
     * 0: 8 MiB. A message counts with 320 bytes more. */
    uint64_t buffer_max;
    uint64_t request_timeout_ns; /* time of a request without a time-out; 1 ms..1 h; 0 means 5 s */
    uint64_t connect_timeout_ns; /* time until a server has accepted this client; 0 means 5 s */
    uint64_t drain_timeout_ns;   /* time of a drain, then the client stops; 0 means 30 s */
    uint64_t backoff_min_ns;     /* first wait to connect again, 1 ms..1 h; 0 means 100 ms */
    /* longest such wait, up to 1 h; 0 means 10 s, at least backoff_min_ns */
    uint64_t backoff_max_ns;
    uint64_t ping_interval_ns; /* time between two pings of the server, 1 ms..1 h; 0 means 20 s */
    domus_address events;      /* actor that gets domus_nats_event notices; nobody: none does */
    /* The seed of the random numbers (inbox, order of servers, jitter), for runs that repeat; 0: a
     * random seed, which is right everywhere but in tests. */
    uint64_t seed;
    /* options of the client's connections that differ from the configuration; copied; NULL: none */
    const domus_channel_options *channel;
} domus_nats_options;

/* Make a client, an actor on the thread of the running one and its child. It begins to connect at
 * once, and takes all verbs meanwhile.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -EINVAL for a wrong option or text (a server that is no host and port, or no UTF-8);
 * -EBADMSG for an nkey seed that is none; what `check` of a stage returned; -E2BIG for too many
 * servers or too long a text; and as domus_spawn(). */
DOMUS_API int domus_nats_open(domus_stack *stack, const domus_nats_options *options,
                              domus_address *ret_client);

/* Check options without making a client: all that domus_nats_open() looks at, but `channel`.
 * Secrets are never shown.
 *
 * Thread-safety: any thread.
 * Returns as domus_nats_open(), and then `error` has one line that names the field (NUL-terminated,
 * cut at `error_size` bytes; it may be NULL if the size is 0). */
DOMUS_API int domus_nats_check(const domus_nats_options *options, char *error, size_t error_size);

/* Flush: an ask without a payload, answered with domus_nats_done_type when the server has answered
 * a ping that was sent behind everything that the asker has sent to the client before. Fails as a
 * request does, but not with -ECONNREFUSED. */
DOMUS_API extern const domus_type domus_nats_flush_type;

/* Drain: a notice or an ask without a payload. All subscriptions end, the messages that came for
 * them are delivered, what was published is sent, requests get their answers; then the client
 * stops. Meanwhile it takes nothing new (-ESHUTDOWN; a drain: -EALREADY). An ask is answered with
 * domus_nats_done_type, or fails with -ETIMEDOUT after `drain_timeout_ns`, and the client stops. */
DOMUS_API extern const domus_type domus_nats_drain_type;

/* The kinds of events that the actor `events` of the options gets. */
typedef enum domus_nats_happening {
    DOMUS_NATS_CONNECTED = 1, /* event: a server has accepted this client; `text` is that server */
    DOMUS_NATS_DISCONNECTED,  /* event: a connection was lost; `error` says why */
    DOMUS_NATS_FAILED,        /* event: a server was not reached, or has not accepted this client */
    DOMUS_NATS_LAME_DUCK,     /* event: the server will stop; the next connection is elsewhere */
    DOMUS_NATS_ERROR,         /* event: the server has sent -ERR; `text` is its text */
    DOMUS_NATS_CLOSED,        /* event: the client ends, and connects no more */
} domus_nats_happening;

#define DOMUS_NATS_TEXT_SIZE 200u

typedef struct domus_nats_event {
    domus_nats_happening happening;
    int error;        /* 0, or a negative errno: -EACCES when the server refuses the user */
    domus_address of; /* address of the client whose event this is */
    char text[DOMUS_NATS_TEXT_SIZE]; /* text of the event; bytes that do not print are "?" */
} domus_nats_event;

DOMUS_API extern const domus_type domus_nats_event_type;

/* The state of a client, its answer to an ask of domus_nats_look_type. Counts are since the client
 * was made. */
typedef struct domus_nats_status {
    bool connected;
    bool draining;
    bool has_headers;     /* whether the server knows headers; false without a connection */
    bool has_jetstream;   /* whether the server offers JetStream; false without a connection */
    uint32_t max_payload; /* bytes of the largest payload that the server takes; 0 without a
                             connection */
    uint32_t servers;     /* number of servers that the client knows */
    uint32_t left_out;    /* number of servers that are left out for a time now, after failures */
    uint32_t subscriptions;
    uint32_t inflight; /* requests and flushes that are under way now */
    uint32_t waiting;  /* messages that wait now for a connection, or for a slow one */
    uint64_t waiting_bytes;
    uint64_t rtt_ns;       /* round trip time of the last ping; 0: none was answered yet */
    uint64_t connects;     /* connections that a server has accepted */
    uint64_t reconnects;   /* connections that a server has accepted after the first one */
    uint64_t failures;     /* attempts to connect that have failed */
    uint64_t out_messages; /* messages that the client has published, with requests */
    uint64_t out_bytes;    /* bytes of payloads and headers of `out_messages` */
    uint64_t in_messages;
    uint64_t in_bytes;
    uint64_t lost;    /* messages for subscribers that were dropped: mailbox full, or no memory */
    uint64_t unknown; /* messages for nobody: late answers, subscriptions that have ended */
    uint64_t refused; /* messages of actors that were not sent: buffer full, too large and so on */
    uint64_t lost_bytes; /* bytes that connections had queued, and had not sent, when they broke */
    uint64_t errors;     /* -ERR lines that servers have sent */
    uint64_t stale;      /* connections that were reset because pings were not answered */
    char server[DOMUS_NATS_SERVER_SIZE]; /* server of the connection; "" without a connection */
    char server_name[64]; /* the name that the server gives itself, cut off where it does not fit */
    char version[32];
} domus_nats_status;

DOMUS_API extern const domus_type domus_nats_look_type;
DOMUS_API extern const domus_type domus_nats_status_type;

/* --- the stage -------------------------------------------------------------------------------- */

/* The protocol as a stage, for those who do without the client above. It is the side of a client.
 *
 * All that comes is a notice: domus_nats_info_type, domus_nats_message_type, domus_nats_pong_type,
 * domus_nats_error_type. A PING is answered by the stage, and +OK is passed over. It sends
 * domus_nats_connect_type, domus_nats_publish_type, domus_nats_sub_type, domus_nats_unsub_type,
 * domus_nats_ping_type. */
typedef struct domus_nats_stage_options {
    uint32_t line_max; /* most bytes of a line but INFO, 64..65534; 0 means 4096; more: -EMSGSIZE */
    uint32_t info_max; /* most bytes of INFO, 512..65534; 0 means 32768; more: -EMSGSIZE */
    /* most bytes of a received message's headers, 16..payload_max; 0: 65536; more: -EMSGSIZE */
    uint32_t headers_max;
    /* most bytes of a received message with its headers, 1024..64 MiB; 0: 8 MiB; more: -EMSGSIZE */
    uint32_t payload_max;
} domus_nats_stage_options;

#define DOMUS_NATS_PAYLOAD_LIMIT (UINT32_C(64) * 1024 * 1024)

/* The stage of NATS, whose options may be NULL. Memory is taken for bytes that have come, never for
 * those that are only announced. It ends a channel with -EPROTO for bytes that are no NATS, and
 * with -EMSGSIZE. */
DOMUS_API extern const domus_stage domus_nats_stage;

/* A message INFO of the server: its JSON. */
typedef struct domus_nats_info {
    domus_slice json;
} domus_nats_info;

/* The fields of INFO that a client needs. Texts are cut off where they do not fit. */
typedef struct domus_nats_server_info {
    char server_id[64];
    char server_name[64];
    char version[32];
    char nonce[128];      /* nonce, bytes that the client has to sign; "": none */
    uint32_t max_payload; /* most bytes of a payload that the server takes; 0: it does not say */
    uint32_t client_id;
    bool headers;
    bool auth_required;
    bool tls_required;
    bool tls_available;
    bool jetstream;
    bool lame_duck;
    uint32_t urls; /* number of further servers; too long or too many ones are left out */
    char url[DOMUS_NATS_SERVERS_MAX][DOMUS_NATS_SERVER_SIZE];
} domus_nats_server_info;

/* Read the fields of INFO. Returns 0; -EPROTO when it is no object of JSON, or a field has a wrong
 * type; -ENOMEM. */
DOMUS_API int domus_nats_info_read(const domus_nats_info *info, domus_nats_server_info *ret_info);

/* A message CONNECT to the server. Texts of NULL are left away. */
typedef struct domus_nats_connect {
    const char *name;
    const char *user;
    const char *password;
    const char *token;
    const char *jwt;
    const char *nkey;      /* public key of the user who connects */
    const char *signature; /* the user's signature of the nonce, in base64url */
    bool tls;
    bool no_echo;
    bool headers; /* whether headers and "no responders" are wanted, if the server knows them */
} domus_nats_connect;

typedef struct domus_nats_sub {
    uint64_t number;
    const char *subject;
    const char *queue; /* queue group of the subscription; NULL: none */
} domus_nats_sub;

typedef struct domus_nats_unsub {
    uint64_t number;
    uint64_t messages_max; /* number of messages after which the subscription ends; 0: now */
} domus_nats_unsub;

/* A message -ERR of the server, without the quotes. */
typedef struct domus_nats_error {
    char text[DOMUS_NATS_TEXT_SIZE]; /* text of the error; bytes that do not print are "?" */
} domus_nats_error;

DOMUS_API extern const domus_type domus_nats_info_type; /* INFO: `release` frees its JSON */
DOMUS_API extern const domus_type domus_nats_error_type;
DOMUS_API extern const domus_type domus_nats_pong_type;    /* PONG, a message without payload */
DOMUS_API extern const domus_type domus_nats_ping_type;    /* PING, a message without payload */
DOMUS_API extern const domus_type domus_nats_connect_type; /* CONNECT: encoding reads its texts */
DOMUS_API extern const domus_type domus_nats_sub_type;     /* SUB: encoding reads its texts */
DOMUS_API extern const domus_type domus_nats_unsub_type;

#ifdef __cplusplus
}
#endif

#endif
