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

#define DOMUS_NATS_KV_BUCKET_MAX 80u /* most bytes of the name of a bucket */
#define DOMUS_NATS_KV_KEY_MAX    255u
/* most values that are kept of a key, which is the server's bound, too */
#define DOMUS_NATS_KV_HISTORY_MAX 64u
#define DOMUS_NATS_KV_KEYS_MAX    65536u              /* most keys in the answer to a list */
#define DOMUS_NATS_KV_KEYS_BYTES  (UINT32_C(8) << 20) /* most bytes of the answer to a list */
/* default of heartbeat_ns of a watch, in ns */
#define DOMUS_NATS_KV_HEARTBEAT UINT64_C(5000000000)

/* Settings with which a bucket is made. All fields may be 0. */
typedef struct domus_nats_kv_config {
    const char *description; /* description of the bucket for people; NULL: none */
    domus_nats_storage storage;
    uint32_t history;  /* values that are kept for each key, 1..64; 0 means 1 */
    uint32_t replicas; /* number of servers that have a copy of the bucket, 1..5; 0 means 1 */
    /* Most bytes of a value and its headers, which the server counts, too: the headers of a create,
     * an update, a delete or a purge take up to 110 bytes. 0: what the server takes */
    uint32_t value_max;
    /* most bytes of the whole bucket; a change beyond it fails with -ENOSPC. 0: no bound */
    uint64_t bytes_max;
    /* time after its write at which an entry goes, 100 ms at least; 0: entries stay */
    uint64_t ttl_ns;
} domus_nats_kv_config;

typedef struct domus_nats_kv_options {
    domus_address client; /* address of the client that domus_nats_open() has made */
    const char *bucket;   /* name of the bucket, 1..80 bytes: letters, digits, - and _ */
    /* Settings with which the bucket is made if it is not there; a bucket that is there has to have
     * the same settings. NULL: the bucket has to be there. */
    const domus_nats_kv_config *create;
    /* Whether any server that has the bucket answers a get, and not its leader alone: quicker, and
     * perhaps older, so that a get may miss what this actor has put before. */
    bool reads_any;
    /* The seed of the names of inboxes, for runs that repeat; 0: a random seed. */
    uint64_t seed;
} domus_nats_kv_options;

/* Make the actor of a bucket, near the running one and its child. The texts are copied.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -EINVAL for a wrong name or option; -ENOMEM; and as domus_spawn(). */
DOMUS_API int domus_nats_kv_open(domus_stack *stack, const domus_nats_kv_options *options,
                                 domus_address *ret_bucket);

/* --- keys ------------------------------------------------------------------------------------- */

/* Check a key: it has 1..255 bytes: letters, digits and - / _ = and ".", which neither begins nor
 * ends it nor stands beside another one. Returns 0; -EINVAL. */
DOMUS_API int domus_nats_kv_check_key(const char *key);

/* Make a key, or a part of one, of any bytes: letters, digits, - and _ stay, each other byte
 * becomes
 * "=" and two hexadecimal digits. Different bytes make different keys. `key` has `key_size` bytes
 * and gets a zero at its end.
 * Returns 0; -EINVAL without bytes; -EMSGSIZE when it does not fit. */
DOMUS_API int domus_nats_kv_make_key(const void *bytes, size_t size, char *key, size_t key_size);

/* Get the bytes back of which a key was made. `ret_size` gets their number. Returns 0; -EINVAL for
 * a text that domus_nats_kv_make_key() never makes; -EMSGSIZE when they do not fit into
 * `bytes_max`. */
DOMUS_API int domus_nats_kv_read_key(const char *key, size_t key_size, void *bytes,
                                     size_t bytes_max, size_t *ret_size);

/* --- entries ---------------------------------------------------------------------------------- */

/* The change of a key that an entry tells of. */
typedef enum domus_nats_kv_operation {
    DOMUS_NATS_KV_PUT = 0,
    DOMUS_NATS_KV_DELETE, /* delete: the key has no value any more; its history stays */
    DOMUS_NATS_KV_PURGE,  /* purge: the key has neither a value nor a history any more */
} domus_nats_kv_operation;

/* An entry of a bucket: a key at one revision. */
typedef struct domus_nats_kv_entry {
    domus_slice bytes; /* bytes of the entry, which the entry owns; key and value lie in them */
    uint64_t revision; /* revision of the entry, never 0 */
    /* time of the entry's write by the server's clock, in ns since 1970; 0: not told */
    uint64_t written_ns;
    uint64_t pending; /* number of existing entries that the watch has still to bring */
    uint64_t tag;     /* the tag of the watch that brings the entry */
    uint32_t key_at;
    uint32_t value_at;
    uint32_t value_size; /* length of the value in bytes; 0 for a delete and a purge */
    uint16_t key_size;
    /* the change that the entry tells, a domus_nats_kv_operation; PUT in the answer to a get */
    uint8_t operation;
    uint8_t initial; /* 1 in a watch if the entry was there when the watch began; else 0 */
} domus_nats_kv_entry;

/* The type of entries. Its `release` frees the bytes. */
DOMUS_API extern const domus_type domus_nats_kv_entry_type;

/* Return the key, and the value, of an entry. Ownership: the slices own nothing, and are valid as
 * long as the entry. */
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

/* The payload of an ask to get a key. */
typedef struct domus_nats_kv_get {
    uint64_t revision; /* the revision of the key to get; 0: the newest */
    char key[DOMUS_NATS_KV_KEY_MAX + 1];
} domus_nats_kv_get;

DOMUS_API extern const domus_type domus_nats_kv_get_type;

/* The condition under which a change of a key is made. */
typedef enum domus_nats_kv_condition {
    DOMUS_NATS_KV_ALWAYS = 0,
    DOMUS_NATS_KV_IF_NONE, /* the change is made only if the key has no value */
    /* The change is made only if the key's newest entry, also one of a delete, has this revision;
     * 0: only if the key has no entry */
    DOMUS_NATS_KV_IF_REVISION,
} domus_nats_kv_condition;

/* The payload of an ask to change a key. Its type owns `value`. */
typedef struct domus_nats_kv_put {
    domus_slice value; /* new value of the key; empty for a delete and a purge */
    uint64_t revision;
    uint8_t operation; /* the change to be made, a domus_nats_kv_operation */
    /* the condition of the change, a domus_nats_kv_condition; IF_NONE for a PUT alone */
    uint8_t condition;
    char key[DOMUS_NATS_KV_KEY_MAX + 1]; /* the key that is changed */
} domus_nats_kv_put;

/* The answer to a change: the revision that the key has now. */
typedef struct domus_nats_kv_revision {
    uint64_t revision;
} domus_nats_kv_revision;

DOMUS_API extern const domus_type domus_nats_kv_put_type;
DOMUS_API extern const domus_type domus_nats_kv_revision_type;

/* --- verbs: `return domus_nats_kv_...(...)`, as domus_ask_within() ------------------------------
 *
 * A `timeout_ns` of 0 sets no time-out; then the time-out of the client holds for each request.
 * Values are copied. Return as domus_ask_within(); -EINVAL for a wrong key; -EMSGSIZE; -ENOMEM. */

/* Get a key. The answer is a domus_nats_kv_entry. */
DOMUS_API int domus_nats_kv_read(domus_stack *stack, domus_address bucket, const char *key,
                                 uint64_t timeout_ns, domus_resumed *then);

/* Change a key. The answer is a domus_nats_kv_revision. */
DOMUS_API int domus_nats_kv_write(domus_stack *stack, domus_address bucket, const char *key,
                                  const void *value, size_t size, uint64_t timeout_ns,
                                  domus_resumed *then);
DOMUS_API int domus_nats_kv_create(domus_stack *stack, domus_address bucket, const char *key,
                                   const void *value, size_t size, uint64_t timeout_ns,
                                   domus_resumed *then);
DOMUS_API int domus_nats_kv_update(domus_stack *stack, domus_address bucket, const char *key,
                                   const void *value, size_t size, uint64_t revision,
                                   uint64_t timeout_ns, domus_resumed *then);
/* Delete, or purge, a key, if its revision is `revision`; 0: in any case. The key need not have a
 * value. */
DOMUS_API int domus_nats_kv_delete(domus_stack *stack, domus_address bucket, const char *key,
                                   uint64_t revision, uint64_t timeout_ns, domus_resumed *then);
DOMUS_API int domus_nats_kv_purge(domus_stack *stack, domus_address bucket, const char *key,
                                  uint64_t revision, uint64_t timeout_ns, domus_resumed *then);

/* --- lists and watches ------------------------------------------------------------------------ */

/* The payload of an ask to list the keys that have a value. It fails with -E2BIG beyond
 * DOMUS_NATS_KV_KEYS_MAX keys or DOMUS_NATS_KV_KEYS_BYTES. */
typedef struct domus_nats_kv_keys {
    /* pattern of the keys that are listed, as a watch takes it; "": all keys */
    char pattern[DOMUS_NATS_KV_KEY_MAX + 1];
} domus_nats_kv_keys;

/* The answer to a list: each key that has a value once, in the order in which they were written. A
 * key that is written while they are listed may stand at another place. */
typedef struct domus_nats_kv_list {
    domus_slice bytes; /* the keys, each with a line feed behind it; the list owns them */
    uint32_t count;
} domus_nats_kv_list;

DOMUS_API extern const domus_type domus_nats_kv_keys_type;
DOMUS_API extern const domus_type domus_nats_kv_list_type;

/* Get the next key of a list. `at` begins as 0. Returns whether there is a next key. */
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

/* The payload of an ask to watch keys. The answer comes before the first entry. Then the watcher
 * gets, as notices and in the order of the server:
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
    domus_address to; /* actor that gets the notices of the watch; nobody: the actor that asks */
    uint64_t tag;     /* number that comes back in each notice of the watch */
    /* time between two signs of life of the server, 100 ms..1 h; 0 means 5 s. A loss is noticed
     * within 3 times that */
    uint64_t heartbeat_ns;
    /* first revision that is told, of all that the history has; 0: the newest of each key, or
     * all with `history` */
    uint64_t from;
    bool changes_only; /* whether entries that are there at the beginning are not told */
    /* whether all entries that are there are told, not only the newest of each key */
    bool history;
    bool ignore_deletes; /* whether deletes and purges are not told */
    bool no_values;      /* whether entries come without their values */
    /* Pattern: a key, or keys with wildcards: "*" for a token between ".", ">" at the end for the
     * rest. "": all keys. */
    char pattern[DOMUS_NATS_KV_KEY_MAX + 1];
} domus_nats_kv_watch;

/* The answer to a watch, which has begun: its address. */
typedef struct domus_nats_kv_watching {
    domus_address watch;
} domus_nats_kv_watching;

/* A notice of a watch: all entries that were there at its beginning have been told. */
typedef struct domus_nats_kv_initial {
    uint64_t tag;
    /* the revision of the last entry that the watch has told; 0: the watch has told none */
    uint64_t revision;
} domus_nats_kv_initial;

/* A notice of a watch: the watch has ended, with this error. */
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
    uint64_t entries; /* number of entries in the bucket, with those of histories and of deletes */
    uint64_t bytes;
    uint64_t revision;  /* revision of the bucket's newest entry */
    uint64_t bytes_max; /* most bytes; this and the next fields are settings; 0: no bound */
    uint64_t ttl_ns;
    uint32_t history;
    uint32_t value_max;
    uint32_t replicas;
    domus_nats_storage storage;
    bool allow_direct; /* whether servers other than the leader may answer gets of the bucket */
} domus_nats_kv_status;

/* the type of an ask without payload for the state of a bucket */
DOMUS_API extern const domus_type domus_nats_kv_look_type;
DOMUS_API extern const domus_type domus_nats_kv_status_type;

/* Remove the bucket, an ask without a payload. The actor stays; its further asks fail with -ENXIO,
 * or make the bucket anew with `create`. */
DOMUS_API extern const domus_type domus_nats_kv_remove_type;

#ifdef __cplusplus
}
#endif

#endif
