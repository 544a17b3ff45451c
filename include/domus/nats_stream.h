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

#define DOMUS_NATS_STREAM_NAME_MAX 128u  /* bytes of the name of a stream or consumer */
#define DOMUS_NATS_SUBJECTS_SIZE   1024u /* bytes of the subjects of a stream, with a zero */
#define DOMUS_NATS_FILTER_MAX      255u  /* bytes of a subject that is looked for */
#define DOMUS_NATS_ID_MAX          128u  /* bytes of the id of a message */
#define DOMUS_NATS_ANSWER_MAX                                                                      \
    262144u                            /* bytes of an answer of JetStream's API; but for a         \
                                          message in it: DOMUS_NATS_PAYLOAD_LIMIT */
#define DOMUS_NATS_ANSWER_VALUES 4096u /* values in the JSON of such an answer */

/* The place where a server keeps the messages of a stream. */
typedef enum domus_nats_storage {
    DOMUS_NATS_FILE = 0,
    DOMUS_NATS_MEMORY,
} domus_nats_storage;

/* When messages are removed: by the limits alone; or also when all consumers have acknowledged
 * them; or when one has, and then each subject has one consumer at most. */
typedef enum domus_nats_retention {
    DOMUS_NATS_LIMITS = 0,
    DOMUS_NATS_INTEREST,
    DOMUS_NATS_WORKQUEUE,
} domus_nats_retention;

/* A stream as it is made. All fields but `subjects` may be 0. */
typedef struct domus_nats_stream_config {
    const char *subjects;    /* one or several with "," between them; they may have wildcards */
    const char *description; /* NULL: none */
    domus_nats_storage storage;
    domus_nats_retention retention;
    uint32_t replicas;             /* servers that have it, 1..5; 0: 1 */
    uint32_t message_max;          /* bytes of a message; 0: what the server takes */
    uint64_t messages_max;         /* 0: no bound */
    uint64_t messages_per_subject; /* 0: no bound */
    uint64_t bytes_max;            /* 0: no bound */
    uint64_t age_max_ns;           /* messages are removed when they are as old, 100 ms at least;
                                      0: never */
    uint64_t duplicate_window_ns;  /* how long ids are remembered; 0: 2 minutes, or age_max_ns if
                                      that is less */
    bool refuses_new;              /* a full stream refuses; false: its oldest message goes */
    bool allow_direct;             /* servers other than the leader may answer gets */
    bool allow_rollup;             /* a message may remove those before it (Nats-Rollup) */
    bool deny_delete;              /* single messages cannot be removed */
    bool deny_purge;
} domus_nats_stream_config;

typedef struct domus_nats_stream_options {
    domus_address client; /* domus_nats_open() */
    const char *name;     /* 1..128 bytes without space, control characters and . * > / \ */
    /* The stream is made like this if it is not there; one that is there has to be the same.
     * NULL: it has to be there. */
    const domus_nats_stream_config *create;
    /* Any server that has the stream answers a get, and not its leader alone, if `allow_direct` of
     * the stream is set: quicker, and perhaps older. */
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

/* Expect nothing of a sequence. 0 expects that there is no message. */
#define DOMUS_NATS_ANY_SEQUENCE UINT64_MAX

/* A message for the stream. It is made by domus_nats_stream_publish_make(), so that the fields
 * below `message` expect nothing. */
typedef struct domus_nats_stream_publish {
    /* the message, without a reply; its `headers` are a block, or empty */
    domus_nats_publish message;
    /* sequence of the last message of the stream, and of the last one with this subject; else the
     * publish fails with -EEXIST, and nothing is stored */
    uint64_t expected_last;
    uint64_t expected_last_of_subject;
    char id[DOMUS_NATS_ID_MAX + 1]; /* a second message with the same id is not stored; "": none */
} domus_nats_stream_publish;

/* Make one from copies. The other fields are the caller's to set.
 *
 * Ownership: the caller's, until it is sent (domus_nats_stream_publish_type.release).
 * Returns as domus_nats_set_subject() and domus_nats_set_payload(). */
DOMUS_API int domus_nats_stream_publish_make(const char *subject, const void *data, size_t size,
                                             domus_nats_stream_publish *ret_publish);

/* The payload of domus_nats_stream_ack_type: a server has stored the message (how safely, says
 * docs/nats.md). */
typedef struct domus_nats_stream_ack {
    uint64_t sequence; /* the sequence of the message, or of the first one with the same id */
    bool duplicate;    /* one with its id was there; nothing was stored */
} domus_nats_stream_ack;

/* Publish, an ask whose payload is a domus_nats_stream_publish. No headers of the caller may be
 * named as those that the fields make. */
DOMUS_API extern const domus_type domus_nats_stream_publish_type;
DOMUS_API extern const domus_type domus_nats_stream_ack_type;

/* Make a message and ask the stream to publish it: `return domus_nats_stream_send(...)`. With a
 * `timeout_ns` of 0 the ask has no time-out of its own.
 * Returns as domus_ask_within(), and as domus_nats_stream_publish_make(). */
DOMUS_API int domus_nats_stream_send(domus_stack *stack, domus_address stream, const char *subject,
                                     const void *data, size_t size, uint64_t timeout_ns,
                                     domus_resumed *then);

/* --- messages of a stream --------------------------------------------------------------------- */

/* A message as it is stored. Its parts are got by the functions below. */
typedef struct domus_nats_stream_message {
    domus_slice bytes;  /* owned; the parts lie in it */
    uint64_t sequence;  /* in the stream */
    uint64_t stored_ns; /* time when the message was stored, in ns since 1970; 0: not told */
    /* how often the message was delivered, this time included; 0 after a get */
    uint64_t deliveries;
    uint64_t pending; /* messages that the consumer has still to deliver; 0 after a get */
    uint32_t subject_at;
    uint32_t headers_at;
    uint32_t headers_size; /* 0: there are none */
    uint32_t payload_at;
    uint32_t payload_size;
    uint32_t ack_at; /* the subject to which it is acknowledged */
    uint16_t subject_size;
    uint16_t ack_size; /* 0: it needs no acknowledgement */
} domus_nats_stream_message;

DOMUS_API extern const domus_type domus_nats_stream_message_type;

/* The parts. Ownership: they own nothing, and are valid as long as the message. */
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

/* Find a header, as domus_nats_header() does. */
DOMUS_API int domus_nats_stream_header(const domus_nats_stream_message *message, const char *name,
                                       uint32_t *from, domus_slice *ret_value);

/* Read a message, an ask whose payload is a domus_nats_stream_get. It fails with -ENOENT if there
 * is none. */
typedef struct domus_nats_stream_get {
    uint64_t sequence; /* 0: the last message with `subject` */
    char subject[DOMUS_NATS_FILTER_MAX + 1];
} domus_nats_stream_get;

DOMUS_API extern const domus_type domus_nats_stream_get_type;

/* --- the whole stream ------------------------------------------------------------------------- */

/* Remove messages, an ask. All fields may be 0. */
typedef struct domus_nats_stream_purge {
    uint64_t below; /* only those with a lower sequence; 0: all. Not together with `keep` */
    uint64_t keep;  /* the number of the newest messages that stay */
    char subject[DOMUS_NATS_FILTER_MAX + 1]; /* only those, with wildcards; "": all */
} domus_nats_stream_purge;

/* The answer to a domus_nats_stream_purge. */
typedef struct domus_nats_stream_count {
    uint64_t count; /* messages that were removed */
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
    uint64_t messages_max; /* as of the configuration, as the server has it; 0: no bound */
    uint64_t messages_per_subject;
    uint64_t bytes_max;
    uint64_t age_max_ns;
    uint32_t message_max;
    uint32_t replicas;
    domus_nats_storage storage;
    domus_nats_retention retention;
    bool allow_direct;
} domus_nats_stream_status;

DOMUS_API extern const domus_type domus_nats_stream_look_type; /* no payload */
DOMUS_API extern const domus_type domus_nats_stream_status_type;

/* Remove the stream, an ask without a payload. The actor stays; without `create` its further asks
 * fail with -ENXIO. */
DOMUS_API extern const domus_type domus_nats_stream_remove_type;

/* --- consumers -------------------------------------------------------------------------------- */

/* Where a consumer begins. */
typedef enum domus_nats_deliver {
    DOMUS_NATS_DELIVER_ALL = 0,
    DOMUS_NATS_DELIVER_NEW,      /* messages that come from now on */
    DOMUS_NATS_DELIVER_LAST,     /* the last one, and those behind it */
    DOMUS_NATS_DELIVER_SUBJECTS, /* the last one of each subject, and those behind them; needs a
                                    `filter` */
    DOMUS_NATS_DELIVER_FROM,     /* from `first_sequence` on */
} domus_nats_deliver;

#define DOMUS_NATS_FETCH_MAX   1024u                       /* messages of one fetch */
#define DOMUS_NATS_FETCH_BYTES (UINT32_C(8) * 1024 * 1024) /* default of bytes_max */
#define DOMUS_NATS_INACTIVE    UINT64_C(300000000000)      /* default of inactive_ns: 5 minutes */
#define DOMUS_NATS_WAIT_MAX    UINT64_C(3600000000000)     /* longest wait of a fetch: 1 hour */

/* Options of a consumer. */
typedef struct domus_nats_consumer_options {
    domus_address client;
    const char *stream;  /* its name */
    const char *durable; /* name of the consumer, which stays when nobody fetches, and which several
                            actors may share; NULL: it is of this actor alone, and goes after
                            `inactive_ns` without a fetch */
    const char *filter;  /* only subjects that match; NULL: all */
    domus_nats_deliver deliver;
    uint64_t first_sequence;
    uint64_t ack_wait_ns;     /* without an acknowledgement for so long a message is delivered
                                 again; 0: 30 s */
    uint64_t inactive_ns;     /* 0: 5 minutes without `durable`, never with */
    uint32_t deliveries_max;  /* most deliveries of one message; 0: no bound */
    uint32_t ack_pending_max; /* messages that are not acknowledged; 0: 1000. Beyond it the server
                                 delivers none */
    uint32_t bytes_max;       /* most bytes of the messages of one fetch, 1 KiB..64 MiB; 0: 8 MiB */
    /* The seed of the name of its inbox, for runs that repeat; 0: a good one. */
    uint64_t seed;
} domus_nats_consumer_options;

/* Make the actor of a consumer, near the running one and its child. The texts are copied.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns as domus_nats_stream_open(). */
DOMUS_API int domus_nats_consumer_open(domus_stack *stack,
                                       const domus_nats_consumer_options *options,
                                       domus_address *ret_consumer);

/* Fetch messages, an ask. It is answered when `count` are there or the server has no more that fit
 * into `bytes_max`, after `wait_ns`, or a second later if the server does not say so: then the
 * connection has broken meanwhile, and the server has forgotten the fetch. The batch may be empty.
 * Asks are answered one after the other, each with its own `wait_ns`. Messages that come for an ask
 * whose asker waits no more are kept for the next one, which is answered with them at once, also
 * if they are fewer than its `count`.
 *
 * It fails with -EINVAL for a count of 0 or above DOMUS_NATS_FETCH_MAX, or a wait above 1 hour. */
typedef struct domus_nats_consumer_fetch {
    uint32_t count;
    uint64_t wait_ns; /* 0: only those that are there */
} domus_nats_consumer_fetch;

/* The answer; its `release` frees the messages. A slice of one is kept by domus_slice_keep(). */
typedef struct domus_nats_batch {
    domus_nats_stream_message *messages;
    uint32_t count;
} domus_nats_batch;

DOMUS_API extern const domus_type domus_nats_consumer_fetch_type;
DOMUS_API extern const domus_type domus_nats_batch_type;

/* How a message is acknowledged. */
typedef enum domus_nats_ack_kind {
    DOMUS_NATS_ACK = 0,     /* the message is done */
    DOMUS_NATS_NAK,         /* deliver it again, at once or after `delay_ns` */
    DOMUS_NATS_TERM,        /* never deliver it again, though it is not done */
    DOMUS_NATS_IN_PROGRESS, /* the work takes longer: ack_wait_ns begins anew */
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

/* Acknowledge, as a notice to the client. Returns as domus_nats_ack_make() and domus_notice(). */
DOMUS_API int domus_nats_ack(domus_stack *stack, domus_address client,
                             const domus_nats_stream_message *message, domus_nats_ack_kind kind,
                             uint64_t delay_ns);

/* The state of a consumer, the answer to an ask of domus_nats_consumer_look_type. */
typedef struct domus_nats_consumer_status {
    char name[DOMUS_NATS_STREAM_NAME_MAX + 1];
    uint64_t delivered;   /* sequence in the stream of the last message that was delivered */
    uint64_t ack_floor;   /* all messages up to this sequence were acknowledged */
    uint64_t ack_pending; /* delivered, and not acknowledged */
    uint64_t redelivered; /* messages of `ack_pending` that were delivered more than once */
    uint64_t pending;     /* messages that are still to be delivered */
} domus_nats_consumer_status;

DOMUS_API extern const domus_type domus_nats_consumer_look_type; /* no payload */
DOMUS_API extern const domus_type domus_nats_consumer_status_type;

/* Remove the consumer on the server, an ask without a payload. The next fetch makes it anew. */
DOMUS_API extern const domus_type domus_nats_consumer_remove_type;

#ifdef __cplusplus
}
#endif

#endif
