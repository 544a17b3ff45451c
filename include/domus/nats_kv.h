/* Buckets of JetStream: a replicated store of keys and values, in a NATS server (libdomus-nats).
 * The page docs/nats.md shows how it is used, and says how far it can be trusted.
 *
 *     domus_nats_kv_config config = {.history = 1, .ttl_ns = 10 * SECOND};
 *     domus_nats_kv_options options = {.client = nats, .bucket = "leases", .create = &config};
 *
 *     domus_nats_kv_open(stack, &options, &self->leases);
 *     ...
 *     return domus_nats_kv_create(stack, self->leases, "leader", "node-1", 6, 0, then);
 *     ...
 *     then: answer->error is 0, -EEXIST when somebody has the key, or another error; the payload is
 *           a domus_nats_kv_revision
 *
 * **A bucket** is an actor in front of a client (domus/nats.h). It makes the bucket on the server,
 * or looks whether it is there, before it handles its first ask; if that fails, the ask fails, and
 * the next one tries anew. Its verbs are asks to its address, so actors of any thread use it:
 *
 *   domus_nats_kv_get_type     the entry of a key: domus_nats_kv_entry_type
 *   domus_nats_kv_put_type     put, create, update, delete, purge: domus_nats_kv_revision_type
 *   domus_nats_kv_keys_type    all keys: domus_nats_kv_list_type
 *   domus_nats_kv_watch_type   hear of each change: domus_nats_kv_watching_type
 *   domus_nats_kv_look_type    the state: domus_nats_kv_status_type
 *   domus_nats_kv_remove_type  remove the bucket with all keys: domus_nats_done_type
 *
 * **Revisions.** Each change gets a number, which grows over the whole bucket. Create and update
 * change a key only if its revision is the one that the caller knows: of several that try, one
 * succeeds. So a revision is a fencing token.
 *
 * **Times to live** are of the bucket: an entry goes `ttl_ns` after it was written, without a
 * further entry or a word to watchers. Whoever has a lease updates it in time.
 *
 * All asks fail as domus/nats_stream.h says, and with:
 *
 *   -ENOENT        the key has no value (get); or not with the revision that was asked for
 *   -EEXIST        the key has a value (create), or another revision (update, delete, purge)
 *   -ENXIO         the server has no such bucket
 *   -ECONNREFUSED  no server has such a bucket (a change), or none offers JetStream
 *
 * A change that fails with -EPIPE or -ETIMEDOUT may have been made: get the key, and look. An
 * update that is sent again at the same revision fails with -EEXIST if the one before was made,
 * too.
 *
 * Thread-safety: functions without a stack may be called by any thread, for values of its own. */
#ifndef DOMUS_NATS_KV_H
#define DOMUS_NATS_KV_H

#include <domus/nats_stream.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_NATS_KV_BUCKET_MAX  80u /* bytes of the name of a bucket */
#define DOMUS_NATS_KV_KEY_MAX     255u
#define DOMUS_NATS_KV_HISTORY_MAX 64u                  /* the server's bound, too */
#define DOMUS_NATS_KV_KEYS_MAX    65536u               /* keys of a list */
#define DOMUS_NATS_KV_KEYS_BYTES  (UINT32_C(8) << 20)  /* bytes of a list */
#define DOMUS_NATS_KV_HEARTBEAT   UINT64_C(5000000000) /* default of heartbeat_ns */

/* A bucket as it is made. All fields may be 0. */
typedef struct domus_nats_kv_config {
    const char *description; /* NULL: none */
    domus_nats_storage storage;
    uint32_t history;  /* values that are kept for each key, 1..64; 0: 1 */
    uint32_t replicas; /* servers that have it, 1..5; 0: 1 */
    /* Bytes of a value with the headers that the server counts, too: those of a create, an update,
     * a delete or a purge take up to 110. 0: what the server takes */
    uint32_t value_max;
    uint64_t bytes_max; /* of the bucket; a change beyond it fails with -ENOSPC. 0: no bound */
    uint64_t ttl_ns;    /* 100 ms at least; 0: entries stay */
} domus_nats_kv_config;

typedef struct domus_nats_kv_options {
    domus_address client; /* domus_nats_open() */
    const char *bucket;   /* 1..80 bytes: letters, digits, - and _ */
    /* The bucket is made like this if it is not there; one that is there has to be the same.
     * NULL: it has to be there. */
    const domus_nats_kv_config *create;
    /* Any server that has the bucket answers a get, and not its leader alone: quicker, and perhaps
     * older, so that a get may miss what this actor has put before. */
    bool reads_any;
    /* The seed of the names of inboxes, for runs that repeat; 0: a good one. */
    uint64_t seed;
} domus_nats_kv_options;

/* Make the actor of a bucket, near the running one and its child. The texts are copied.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -EINVAL for a wrong name or option; -ENOMEM; and as domus_spawn(). */
DOMUS_API int domus_nats_kv_open(domus_stack *stack, const domus_nats_kv_options *options,
                                 domus_address *ret_bucket);

/* --- keys ------------------------------------------------------------------------------------- */

/* A key has 1..255 bytes: letters, digits and - / _ = and ".", which neither begins nor ends it nor
 * stands beside another one. Returns 0; -EINVAL. */
DOMUS_API int domus_nats_kv_check_key(const char *key);

/* Make a key, or a part of one, of any bytes: letters, digits, - and _ stay, each other byte
 * becomes
 * "=" and two hexadecimal digits. Different bytes make different keys. `key` has `key_size` bytes
 * and gets a zero at its end.
 * Returns 0; -EINVAL without bytes; -EMSGSIZE when it does not fit. */
DOMUS_API int domus_nats_kv_make_key(const void *bytes, size_t size, char *key, size_t key_size);

/* Get the bytes back. `ret_size` gets their number. Returns 0; -EINVAL for a text that
 * domus_nats_kv_make_key() never makes; -EMSGSIZE when they do not fit into `bytes_max`. */
DOMUS_API int domus_nats_kv_read_key(const char *key, size_t key_size, void *bytes,
                                     size_t bytes_max, size_t *ret_size);

/* --- entries ---------------------------------------------------------------------------------- */

/* The change of a key that an entry tells of. */
typedef enum domus_nats_kv_operation {
    DOMUS_NATS_KV_PUT = 0,
    DOMUS_NATS_KV_DELETE, /* the key has no value any more; its history stays */
    DOMUS_NATS_KV_PURGE,  /* nor a history */
} domus_nats_kv_operation;

/* An entry of a bucket: a key at one revision. */
typedef struct domus_nats_kv_entry {
    domus_slice bytes; /* owned; key and value lie in it */
    uint64_t revision; /* never 0 */
    /* time of the write by the server's clock, in ns since 1970; 0: not told */
    uint64_t written_ns;
    uint64_t pending; /* for a watch: existing entries that are still to come */
    uint64_t tag;     /* the tag of the watch */
    uint32_t key_at;
    uint32_t value_at;
    uint32_t value_size; /* 0 for a delete and a purge */
    uint16_t key_size;
    uint8_t operation; /* domus_nats_kv_operation; PUT in the answer to a get */
    uint8_t initial;   /* for a watch: 1 if the entry was there when the watch began */
} domus_nats_kv_entry;

/* Its `release` frees the bytes. */
DOMUS_API extern const domus_type domus_nats_kv_entry_type;

/* Key and value. Ownership: they own nothing, and are valid as long as the entry. */
static inline domus_slice domus_nats_kv_key(const domus_nats_kv_entry *entry)
{
    domus_slice key = entry->bytes;

    key.offset += entry->key_at;
    key.size = entry->key_size;
    return key;
}

static inline domus_slice domus_nats_kv_value(const domus_nats_kv_entry *entry)
{
    domus_slice value = entry->bytes;

    value.offset += entry->value_at;
    value.size = entry->value_size;
    return value;
}

/* Get a key, an ask. */
typedef struct domus_nats_kv_get {
    uint64_t revision; /* the revision to get; 0: the newest */
    char key[DOMUS_NATS_KV_KEY_MAX + 1];
} domus_nats_kv_get;

DOMUS_API extern const domus_type domus_nats_kv_get_type;

/* When a change is made. */
typedef enum domus_nats_kv_condition {
    DOMUS_NATS_KV_ALWAYS = 0,
    DOMUS_NATS_KV_IF_NONE,     /* the key has no value */
    DOMUS_NATS_KV_IF_REVISION, /* its newest entry, also one of a delete, has this revision; 0: it
                                  has none */
} domus_nats_kv_condition;

/* Change a key, an ask. Its type owns `value`. */
typedef struct domus_nats_kv_put {
    domus_slice value; /* empty for a delete and a purge */
    uint64_t revision;
    uint8_t operation; /* domus_nats_kv_operation */
    uint8_t condition; /* domus_nats_kv_condition; IF_NONE for a PUT alone */
    char key[DOMUS_NATS_KV_KEY_MAX + 1];
} domus_nats_kv_put;

/* The answer: the revision that the key has now. */
typedef struct domus_nats_kv_revision {
    uint64_t revision;
} domus_nats_kv_revision;

DOMUS_API extern const domus_type domus_nats_kv_put_type;
DOMUS_API extern const domus_type domus_nats_kv_revision_type;

/* --- verbs: `return domus_nats_kv_...(...)`, as domus_ask_within() ------------------------------
 *
 * A `timeout_ns` of 0 sets no time-out of its own; then that of the client holds for each request.
 * Values are copied. Return as domus_ask_within(); -EINVAL for a wrong key; -EMSGSIZE; -ENOMEM. */

/* The answer is a domus_nats_kv_entry. */
DOMUS_API int domus_nats_kv_read(domus_stack *stack, domus_address bucket, const char *key,
                                 uint64_t timeout_ns, domus_resumed *then);

/* The answer is a domus_nats_kv_revision. */
DOMUS_API int domus_nats_kv_write(domus_stack *stack, domus_address bucket, const char *key,
                                  const void *value, size_t size, uint64_t timeout_ns,
                                  domus_resumed *then);
DOMUS_API int domus_nats_kv_create(domus_stack *stack, domus_address bucket, const char *key,
                                   const void *value, size_t size, uint64_t timeout_ns,
                                   domus_resumed *then);
DOMUS_API int domus_nats_kv_update(domus_stack *stack, domus_address bucket, const char *key,
                                   const void *value, size_t size, uint64_t revision,
                                   uint64_t timeout_ns, domus_resumed *then);
/* `revision`: only if it is that; 0: in any case. The key need not have a value. */
DOMUS_API int domus_nats_kv_delete(domus_stack *stack, domus_address bucket, const char *key,
                                   uint64_t revision, uint64_t timeout_ns, domus_resumed *then);
DOMUS_API int domus_nats_kv_purge(domus_stack *stack, domus_address bucket, const char *key,
                                  uint64_t revision, uint64_t timeout_ns, domus_resumed *then);

/* --- lists and watches ------------------------------------------------------------------------ */

/* List the keys that have a value, an ask. It fails with -E2BIG beyond DOMUS_NATS_KV_KEYS_MAX keys
 * or DOMUS_NATS_KV_KEYS_BYTES. */
typedef struct domus_nats_kv_keys {
    char pattern[DOMUS_NATS_KV_KEY_MAX + 1]; /* the pattern as a watch takes it; "": all keys */
} domus_nats_kv_keys;

/* The answer: each key once, in the order in which they were written, but for those that were
 * written while they were listed. */
typedef struct domus_nats_kv_list {
    domus_slice bytes; /* owned; the keys, each with a line feed behind it */
    uint32_t count;
} domus_nats_kv_list;

DOMUS_API extern const domus_type domus_nats_kv_keys_type;
DOMUS_API extern const domus_type domus_nats_kv_list_type;

/* Get the next key of a list. `at` begins as 0. Returns whether there is one. */
static inline bool domus_nats_kv_next(const domus_nats_kv_list *list, uint32_t *at,
                                      domus_slice *ret_key)
{
    domus_slice key = list->bytes;
    const char *data = domus_slice_data(key);
    uint32_t end = *at;

    if (end >= key.size)
        return false;
    while (end < key.size && data[end] != '\n')
        end++;
    key.offset += *at;
    key.size = end - *at;
    *at = end + 1;
    *ret_key = key;
    return true;
}

/* Watch keys, an ask. The answer comes before the first entry. Then the watcher gets, as notices
 * and in the order of the server:
 *
 *   domus_nats_kv_entry_type    each entry that is there, the newest of each key (with `history`
 *                               all), and then each change
 *   domus_nats_kv_initial_type  once, behind the entries that were there at the beginning, also if
 *                               there were none. If some of these went before they were told, with
 *                               the next heartbeat
 *   domus_nats_kv_ended_type    the watch has ended by itself, for good: the bucket is gone
 *                               (-ENXIO), the client is (-ESHUTDOWN), or it is not permitted
 *
 * Their sender is the address of the watch. It goes on over broken connections, and asks the server
 * for what it has missed: no key is missing, and none is told twice, but of several changes of a
 * key that were made meanwhile the older ones may be left out. If the watcher's mailbox is full,
 * the watch waits for room.
 *
 * The watch ends when the watcher ends, when the bucket's actor does, and by domus_stop() of its
 * address. */
typedef struct domus_nats_kv_watch {
    domus_address to;      /* the watcher; nobody: the asker */
    uint64_t tag;          /* comes back in each notice */
    uint64_t heartbeat_ns; /* the server says so often that it is there, 100 ms..1 h; 0: 5 s. A
                              loss is noticed within 3 times that */
    uint64_t from;         /* the first revision that is told, of all that the history has; 0: as
                              said above */
    bool changes_only;     /* nothing that is there at the beginning */
    bool history;          /* all that is there, not only the newest of each key */
    bool ignore_deletes;   /* neither deletes nor purges are told */
    bool no_values;        /* entries without their values */
    /* A key, or keys with wildcards: "*" for a token between ".", ">" at the end for the rest. "":
     * all. */
    char pattern[DOMUS_NATS_KV_KEY_MAX + 1];
} domus_nats_kv_watch;

/* The answer to a domus_nats_kv_watch: the watch has begun. */
typedef struct domus_nats_kv_watching {
    domus_address watch;
} domus_nats_kv_watching;

/* A notice of a watch: what there was at its beginning has been told. */
typedef struct domus_nats_kv_initial {
    uint64_t tag;
    uint64_t revision; /* the revision of the last entry that was told; 0: none was */
} domus_nats_kv_initial;

/* A notice of a watch: it has ended, with this error. */
typedef struct domus_nats_kv_ended {
    uint64_t tag;
    int error;
} domus_nats_kv_ended;

DOMUS_API extern const domus_type domus_nats_kv_watch_type;
DOMUS_API extern const domus_type domus_nats_kv_watching_type;
DOMUS_API extern const domus_type domus_nats_kv_initial_type;
DOMUS_API extern const domus_type domus_nats_kv_ended_type;

/* --- the whole bucket ------------------------------------------------------------------------- */

/* The state of a bucket, the answer to an ask of domus_nats_kv_look_type. */
typedef struct domus_nats_kv_status {
    uint64_t entries; /* with those of histories, and of deletes */
    uint64_t bytes;
    uint64_t revision;  /* the last one */
    uint64_t bytes_max; /* as of the configuration, as the server has it; 0: no bound */
    uint64_t ttl_ns;
    uint32_t history;
    uint32_t value_max;
    uint32_t replicas;
    domus_nats_storage storage;
    bool allow_direct; /* servers other than the leader may answer gets */
} domus_nats_kv_status;

DOMUS_API extern const domus_type domus_nats_kv_look_type; /* no payload */
DOMUS_API extern const domus_type domus_nats_kv_status_type;

/* Remove the bucket, an ask without a payload. The actor stays; its further asks fail with -ENXIO,
 * or make the bucket anew with `create`. */
DOMUS_API extern const domus_type domus_nats_kv_remove_type;

#ifdef __cplusplus
}
#endif

#endif
