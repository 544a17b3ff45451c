/* Streams of JetStream: messages that a NATS server keeps (libdomus-nats). The page docs/nats.md
 * shows how they are used, and says how far the store can be trusted.
 *
 *     domus_nats_stream_config config = {.subjects = "orders.>", .messages_max = 100000};
 *     domus_nats_stream_options options = {.client = nats, .name = "ORDERS", .create = &config};
 *
 *     domus_nats_stream_open(stack, &options, &self->orders);
 *     ...
 *     return domus_nats_stream_send(stack, self->orders, "orders.new", data, size, 0, then);
 *     ...
 *     then: answer->error is 0, or why the message is not in the stream; the payload is a
 *           domus_nats_stream_ack with its sequence
 *
 * **A stream** is an actor in front of a client (domus/nats.h). It makes the stream on the server,
 * or looks whether it is there, before it handles its first ask; if that fails, the ask fails, and
 * the next one tries anew. Its verbs are asks to its address:
 *
 *   domus_nats_stream_publish_type  publish with an acknowledgement: domus_nats_stream_ack_type
 *   domus_nats_stream_get_type      read one message: domus_nats_stream_message_type
 *   domus_nats_stream_purge_type    remove messages: domus_nats_stream_count_type
 *   domus_nats_stream_look_type     the state: domus_nats_stream_status_type
 *   domus_nats_stream_remove_type   remove the stream with all it has: domus_nats_done_type
 *
 * **A consumer** is an actor, too. It is a place in a stream that the server remembers, from which
 * messages are fetched some at a time; each is acknowledged, or delivered again.
 *
 *   domus_nats_consumer_fetch_type  get up to so many messages: domus_nats_batch_type
 *   domus_nats_consumer_look_type   the state: domus_nats_consumer_status_type
 *   domus_nats_consumer_remove_type remove the consumer on the server: domus_nats_done_type
 *
 * All asks here fail as the requests of the client do, and with:
 *
 *   -ENXIO         the server has no such stream or consumer (a publish: -ECONNREFUSED)
 *   -EEXIST        it has one with another configuration; or the stream is not as was expected
 *   -EINVAL        a name, subject or option that cannot be one
 *   -ENOSPC        the stream is full, or the account has no more room
 *   -EMSGSIZE      the message is larger than the stream or the server takes
 *   -EOPNOTSUPP    JetStream is not enabled there, or does not know what was asked for
 *   -EAGAIN        the server cannot say now (no leader yet)
 *   -EBUSY         a fetch: the server has ended it (its leader has changed, or too many wait)
 *   -EACCES        it is not permitted
 *   -EREMOTEIO     any other error of the server
 *   -EPROTO        an answer that is none of JetStream, or exceeds a limit
 *   -ENOMEM
 *
 * A publish that fails with -EPIPE or -ETIMEDOUT may be in the stream. Publish it again with the
 * same `id`: within the duplicate window of the stream it is stored once.
 *
 * Thread-safety: functions without a stack may be called by any thread, for values of its own. */
#ifndef DOMUS_NATS_STREAM_H
#define DOMUS_NATS_STREAM_H

#include <domus/conversation.h>
#include <domus/nats.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_NATS_STREAM_NAME_MAX 128u /* most bytes of the name of a stream or consumer */
/* size in bytes of the list of subjects of a stream, with a zero at its end */
#define DOMUS_NATS_SUBJECTS_SIZE 1024u
/* most bytes of the subject by which messages are looked for */
#define DOMUS_NATS_FILTER_MAX 255u
/* most bytes of the id of a message */
#define DOMUS_NATS_ID_MAX 128u
/* most bytes of an answer of JetStream's API; a message in it may have more, up to
 * DOMUS_NATS_PAYLOAD_LIMIT */
#define DOMUS_NATS_ANSWER_MAX 262144u
/* most values in the JSON of an answer of JetStream's API */
#define DOMUS_NATS_ANSWER_VALUES 4096u

/* The place where a server keeps the messages of a stream. */
typedef enum domus_nats_storage {
    DOMUS_NATS_FILE = 0,
    DOMUS_NATS_MEMORY,
} domus_nats_storage;

/* The reason for which messages are removed: the limits alone; or also that all consumers have
 * acknowledged them; or that one has, and then each subject has one consumer at most. */
typedef enum domus_nats_retention {
    DOMUS_NATS_LIMITS = 0,
    DOMUS_NATS_INTEREST,
    DOMUS_NATS_WORKQUEUE,
} domus_nats_retention;

/* Settings with which a stream is made. All fields but `subjects` may be 0. */
typedef struct domus_nats_stream_config {
    /* one subject, or several with "," between them; they may have wildcards */
    const char *subjects;
    const char *description; /* description of the stream for people; NULL: none */
    domus_nats_storage storage;
    domus_nats_retention retention;
    /* number of servers that have a copy of the stream, 1..5; 0 means 1 */
    uint32_t replicas;
    /* most bytes of one message of the stream; 0: what the server takes */
    uint32_t message_max;
    uint64_t messages_max;         /* most messages in the stream; 0: no bound */
    uint64_t messages_per_subject; /* most messages of one subject in the stream; 0: no bound */
    uint64_t bytes_max;            /* most bytes of all messages in the stream; 0: no bound */
    /* age at which messages of the stream are removed, 100 ms at least; 0: never */
    uint64_t age_max_ns;
    /* time for which the ids of messages are remembered; 0 means 2 minutes, or age_max_ns if that
     * is less */
    uint64_t duplicate_window_ns;
    /* whether a full stream refuses messages; false: its oldest message is removed for a new one */
    bool refuses_new;
    bool allow_direct; /* whether servers other than the leader may answer gets of the stream */
    bool allow_rollup; /* whether a message may remove earlier messages (Nats-Rollup) */
    bool deny_delete;  /* whether single messages of the stream cannot be removed */
    bool deny_purge;
} domus_nats_stream_config;

typedef struct domus_nats_stream_options {
    domus_address client; /* address of the client that domus_nats_open() has made */
    /* name of the stream, 1..128 bytes without space, control characters and . * > / \ */
    const char *name;
    /* Settings with which the stream is made if it is not there; a stream that is there has to have
     * the same settings. NULL: the stream has to be there. */
    const domus_nats_stream_config *create;
    /* Whether any server that has the stream answers a get, and not its leader alone, if
     * `allow_direct` of the stream is set: quicker, and perhaps older. */
    bool reads_any;
} domus_nats_stream_options;

/* Make the actor of a stream, near the running one and its child. The texts are copied.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -EINVAL for a wrong name or option; -E2BIG for too long a text; -ENOMEM; and as
 * domus_spawn(). */
DOMUS_API int domus_nats_stream_open(domus_stack *stack, const domus_nats_stream_options *options,
                                     domus_address *ret_stream);

/* --- publishing ------------------------------------------------------------------------------- */

/* A value of `expected_last` and `expected_last_of_subject`: any sequence will do. 0 expects that
 * there is no message. */
#define DOMUS_NATS_ANY_SEQUENCE UINT64_MAX

/* A message for the stream, made by domus_nats_stream_publish_make(), after which the fields below
 * `message` expect nothing. */
typedef struct domus_nats_stream_publish {
    /* the message to be published, without a reply subject; its `headers` are a block, or empty */
    domus_nats_publish message;
    /* sequences that the last message of the stream, and the last one with this subject, have to
     * have; else the publish fails with -EEXIST, and nothing is stored */
    uint64_t expected_last;
    uint64_t expected_last_of_subject;
    /* id of the message; a second message with the same id is not stored; "": none */
    char id[DOMUS_NATS_ID_MAX + 1];
} domus_nats_stream_publish;

/* Make a message for the stream from copies. The other fields are the caller's to set.
 *
 * Ownership: the caller's, until it is sent (domus_nats_stream_publish_type.release).
 * Returns as domus_nats_set_subject() and domus_nats_set_payload(). */
DOMUS_API int domus_nats_stream_publish_make(const char *subject, const void *data, size_t size,
                                             domus_nats_stream_publish *ret_publish);

/* The payload of domus_nats_stream_ack_type: a server has stored the message (how safely, says
 * docs/nats.md). */
typedef struct domus_nats_stream_ack {
    /* sequence of the message in the stream, or of the first message with the same id */
    uint64_t sequence;
    /* whether a message with the same id was there already, so that nothing was stored */
    bool duplicate;
} domus_nats_stream_ack;

/* The payload of an ask to publish is a domus_nats_stream_publish. No headers of the caller may
 * have the names of those that the fields make. */
DOMUS_API extern const domus_type domus_nats_stream_publish_type;
DOMUS_API extern const domus_type domus_nats_stream_ack_type;

/* Make a message and ask the stream to publish it: `return domus_nats_stream_send(...)`. With a
 * `timeout_ns` of 0 the ask has no time-out of its own.
 * Returns as domus_ask_within(), and as domus_nats_stream_publish_make(). */
DOMUS_API int domus_nats_stream_send(domus_stack *stack, domus_address stream, const char *subject,
                                     const void *data, size_t size, uint64_t timeout_ns,
                                     domus_resumed *then);

/* --- messages of a stream --------------------------------------------------------------------- */

/* A message as the stream has stored it. The functions below get its parts. */
typedef struct domus_nats_stream_message {
    domus_slice bytes;  /* bytes of the message, which this owns; the message's parts lie in them */
    uint64_t sequence;  /* sequence of the message in the stream */
    uint64_t stored_ns; /* time when the message was stored, in ns since 1970; 0: not told */
    /* how often the message was delivered, this time included; 0 after a get */
    uint64_t deliveries;
    uint64_t pending; /* number of messages that the consumer has still to deliver; 0 after a get */
    uint32_t subject_at;
    uint32_t headers_at;
    uint32_t headers_size; /* bytes of the message's headers; 0: there are none */
    uint32_t payload_at;
    uint32_t payload_size;
    uint32_t ack_at; /* offset of the subject to which the message is acknowledged */
    uint16_t subject_size;
    uint16_t ack_size; /* bytes of the subject at `ack_at`; 0: no acknowledgement is needed */
} domus_nats_stream_message;

DOMUS_API extern const domus_type domus_nats_stream_message_type;

/* Return parts of a message. Ownership: they own nothing, and are valid as long as the message. */
static inline domus_slice domus_nats_stream_part(const domus_nats_stream_message *message,
                                                 uint32_t at, uint32_t size)
{
    domus_slice part = message->bytes;

    part.offset += at;
    part.size = size;
    return part;
}

static inline domus_slice domus_nats_stream_subject(const domus_nats_stream_message *message)
{
    return domus_nats_stream_part(message, message->subject_at, message->subject_size);
}

static inline domus_slice domus_nats_stream_headers(const domus_nats_stream_message *message)
{
    return domus_nats_stream_part(message, message->headers_at, message->headers_size);
}

static inline domus_slice domus_nats_stream_payload(const domus_nats_stream_message *message)
{
    return domus_nats_stream_part(message, message->payload_at, message->payload_size);
}

/* Find a header of a stored message, as domus_nats_header() does. */
DOMUS_API int domus_nats_stream_header(const domus_nats_stream_message *message, const char *name,
                                       uint32_t *from, domus_slice *ret_value);

/* The payload of an ask to read a message. It fails with -ENOENT if there is none. */
typedef struct domus_nats_stream_get {
    uint64_t sequence; /* sequence of the message to be read; 0: the last message with `subject` */
    char subject[DOMUS_NATS_FILTER_MAX + 1];
} domus_nats_stream_get;

DOMUS_API extern const domus_type domus_nats_stream_get_type;

/* --- the whole stream ------------------------------------------------------------------------- */

/* The payload of an ask to remove messages. All fields may be 0. */
typedef struct domus_nats_stream_purge {
    /* only messages with a lower sequence are removed; 0: all. Not together with `keep` */
    uint64_t below;
    uint64_t keep; /* number of the newest messages that stay */
    /* only messages of this subject are removed, which may have wildcards; "": all */
    char subject[DOMUS_NATS_FILTER_MAX + 1];
} domus_nats_stream_purge;

/* The answer to a purge of a stream. */
typedef struct domus_nats_stream_count {
    uint64_t count; /* number of messages that the purge has removed */
} domus_nats_stream_count;

DOMUS_API extern const domus_type domus_nats_stream_purge_type;
DOMUS_API extern const domus_type domus_nats_stream_count_type;

/* The state of a stream, the answer to an ask of domus_nats_stream_look_type. */
typedef struct domus_nats_stream_status {
    uint64_t messages;
    uint64_t bytes;
    uint64_t first_sequence;
    uint64_t last_sequence;
    uint64_t consumers;
    uint64_t messages_max; /* most messages; this and the next fields are settings; 0: no bound */
    uint64_t messages_per_subject;
    uint64_t bytes_max;
    uint64_t age_max_ns;
    uint32_t message_max;
    uint32_t replicas;
    domus_nats_storage storage;
    domus_nats_retention retention;
    bool allow_direct;
} domus_nats_stream_status;

/* the type of an ask without payload for the state of a stream */
DOMUS_API extern const domus_type domus_nats_stream_look_type;
DOMUS_API extern const domus_type domus_nats_stream_status_type;

/* Remove the stream, an ask without a payload. The actor stays; without `create` its further asks
 * fail with -ENXIO. */
DOMUS_API extern const domus_type domus_nats_stream_remove_type;

/* --- consumers -------------------------------------------------------------------------------- */

/* The message of the stream at which a consumer begins. */
typedef enum domus_nats_deliver {
    DOMUS_NATS_DELIVER_ALL = 0, /* the first message of the stream, and all behind it */
    DOMUS_NATS_DELIVER_NEW,     /* the first message that comes after the consumer was made */
    DOMUS_NATS_DELIVER_LAST,    /* the last message of the stream, and those behind it */
    /* the last message of each subject, and all behind them; needs a `filter` */
    DOMUS_NATS_DELIVER_SUBJECTS,
    DOMUS_NATS_DELIVER_FROM, /* the message with `first_sequence`, and those behind it */
} domus_nats_deliver;

#define DOMUS_NATS_FETCH_MAX 1024u /* most messages of one fetch */
/* default of bytes_max of a consumer */
#define DOMUS_NATS_FETCH_BYTES (UINT32_C(8) * 1024 * 1024)
/* default of inactive_ns of a consumer: 5 minutes */
#define DOMUS_NATS_INACTIVE UINT64_C(300000000000)
/* longest wait of a fetch: 1 hour */
#define DOMUS_NATS_WAIT_MAX UINT64_C(3600000000000)

/* Options of a consumer. */
typedef struct domus_nats_consumer_options {
    domus_address client;
    const char *stream; /* name of the stream that the consumer reads */
    /* name of the consumer, which stays when nobody fetches, and which several actors may share;
     * NULL: the consumer is of this actor alone, and goes after `inactive_ns` without a fetch */
    const char *durable;
    const char *filter; /* subject of the messages, which may have wildcards; NULL: all */
    domus_nats_deliver deliver;
    uint64_t first_sequence;
    /* time without an acknowledgement after which a message is delivered again; 0 means 30 s */
    uint64_t ack_wait_ns;
    /* time without a fetch after which the consumer goes; 0 means 5 minutes, or never with
     * `durable` */
    uint64_t inactive_ns;
    /* most deliveries of one message, if it is not acknowledged; 0: no bound */
    uint32_t deliveries_max;
    /* most messages that are delivered and not acknowledged; at it the server delivers none; 0
     * means 1000 */
    uint32_t ack_pending_max;
    uint32_t bytes_max; /* most bytes of the messages of one fetch, 1 KiB..64 MiB; 0 means 8 MiB */
    /* The seed of the name of the consumer's inbox, for runs that repeat; 0: a random seed. */
    uint64_t seed;
} domus_nats_consumer_options;

/* Make the actor of a consumer, near the running one and its child. The texts are copied.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns as domus_nats_stream_open(). */
DOMUS_API int domus_nats_consumer_open(domus_stack *stack,
                                       const domus_nats_consumer_options *options,
                                       domus_address *ret_consumer);

/* The payload of an ask to fetch messages. The ask is answered when `count` are there or the server
 * has no more that fit into `bytes_max`, after `wait_ns`, or a second later if the server does not
 * say so: then the connection has broken meanwhile, and the server has forgotten the fetch. The
 * batch may be empty. Asks are answered one after the other, each with its own `wait_ns`. Messages
 * that come for an ask whose asker waits no more are kept for the next one, which is answered with
 * them at once, also if they are fewer than its `count`.
 *
 * It fails with -EINVAL for a count of 0 or above DOMUS_NATS_FETCH_MAX, or a wait above 1 hour. */
typedef struct domus_nats_consumer_fetch {
    uint32_t count;
    uint64_t wait_ns; /* longest wait of the fetch for messages; 0: only messages that are there */
} domus_nats_consumer_fetch;

/* The answer to a fetch; its `release` frees the messages. domus_slice_keep() keeps a slice of
 * one. */
typedef struct domus_nats_batch {
    domus_nats_stream_message *messages;
    uint32_t count;
} domus_nats_batch;

DOMUS_API extern const domus_type domus_nats_consumer_fetch_type;
DOMUS_API extern const domus_type domus_nats_batch_type;

/* How a consumer acknowledges a message. */
typedef enum domus_nats_ack_kind {
    DOMUS_NATS_ACK = 0,     /* the message is done, and is not delivered again */
    DOMUS_NATS_NAK,         /* the message is delivered again, at once or after `delay_ns` */
    DOMUS_NATS_TERM,        /* the message is never delivered again, though it is not done */
    DOMUS_NATS_IN_PROGRESS, /* the work on the message takes longer: ack_wait_ns begins anew */
} domus_nats_ack_kind;

/* Make an acknowledgement. As a notice of domus_nats_publish_type to the client it may be lost; as
 * an ask of domus_nats_request_type it is answered when the server has it. `delay_ns` is for a NAK;
 * 0: none.
 *
 * Ownership: as of every domus_nats_publish.
 * Returns 0; -EINVAL for a message without an `ack_size`; -ENOMEM. */
DOMUS_API int domus_nats_ack_make(const domus_nats_stream_message *message,
                                  domus_nats_ack_kind kind, uint64_t delay_ns,
                                  domus_nats_publish *ret_publish);

/* Acknowledge a message, by a notice to the client. Returns as domus_nats_ack_make() and
 * domus_notice(). */
DOMUS_API int domus_nats_ack(domus_stack *stack, domus_address client,
                             const domus_nats_stream_message *message, domus_nats_ack_kind kind,
                             uint64_t delay_ns);

/* The state of a consumer, the answer to an ask of domus_nats_consumer_look_type. */
typedef struct domus_nats_consumer_status {
    char name[DOMUS_NATS_STREAM_NAME_MAX + 1];
    /* sequence in the stream of the last message that was delivered to the consumer */
    uint64_t delivered;
    uint64_t ack_floor;   /* sequence up to which the consumer has acknowledged all messages */
    uint64_t ack_pending; /* messages that were delivered to the consumer, and not acknowledged */
    uint64_t redelivered; /* messages of `ack_pending` that were delivered more than once */
    uint64_t pending;     /* messages that are still to be delivered to the consumer */
} domus_nats_consumer_status;

/* the type of an ask without payload for the state of a consumer */
DOMUS_API extern const domus_type domus_nats_consumer_look_type;
DOMUS_API extern const domus_type domus_nats_consumer_status_type;

/* Remove the consumer on the server, an ask without a payload. The next fetch makes it anew. */
DOMUS_API extern const domus_type domus_nats_consumer_remove_type;

#ifdef __cplusplus
}
#endif

#endif
