/* The keys of one shard: a hash table of items, in bounded memory.
 *
 * An item is one piece of memory with its key and, if it is a short string, its value. Longer
 * strings are slices, which are sent by reference. The table grows and shrinks by steps: there are
 * two of them meanwhile, and each change moves some items to the new one, so no command waits for a
 * whole table.
 *
 * Thread-safety: the shard that owns the store. */
#ifndef KV_STORE_H
#define KV_STORE_H

#include <domus/resp.h>

enum kv_kind {
    KV_SHORT, /* a string of up to DOMUS_RESP_SHORT_MAX bytes, which stand behind the key */
    KV_LONG,  /* a string that is a slice */
    KV_LIST,
    KV_HASH,
};

struct kv_item {
    struct kv_item *next; /* in its bucket */
    uint64_t hash;
    uint64_t expires_ms; /* on the clock of domus_now_ns(); 0: never */
    uint32_t key_size;
    uint8_t kind;  /* enum kv_kind */
    uint8_t size;  /* bytes of a short string */
    uint16_t room; /* bytes behind the key */
    union {
        domus_slice slice;
        struct kv_list *list;
        struct kv_table *fields;
    };
    char bytes[]; /* the key, and the short string */
};

struct kv_table {
    struct kv_item **buckets; /* NULL: none yet */
    struct kv_item **old;     /* whose items move to `buckets`; NULL: none */
    uint64_t mask, old_mask;  /* buckets less one */
    uint64_t moved;           /* old buckets that are empty */
    uint64_t count;           /* items */
};

/* Bytes in use. All tables of a shard count here. */
struct kv_memory {
    uint64_t used_bytes;
    uint64_t bytes_max;
    struct kv_trash *trash; /* what is freed in pieces (trash.h) */
    uint64_t changes;       /* how often a key or value was changed: more with each change */
};

struct kv_store {
    struct kv_table table;
    struct kv_memory memory;
    /* the time of the command that runs, on the clock of domus_now_ns() */
    uint64_t now_ms;
    int64_t wall_ms;              /* the wall clock less that clock, when the shard began */
    uint64_t expiring;            /* items that have a time at which they expire */
    uint64_t expired;             /* items that have expired, since the start */
    bool ticks;                   /* a timer is armed for what is done between commands */
    bool frees;                   /* a timer is armed that frees trash */
    struct kv_walk *walk;         /* a command that is done in pieces (walk.h); NULL: none */
    struct kv_job *job;           /* the same (job.h) */
    uint64_t at;                  /* the bucket at which kv_store_expire() goes on */
    struct kv_fetching *fetching; /* what the last life has left is fetched (legacy.h); NULL: no */
    uint64_t fence;               /* the fence of this life in a cluster; 0: no legacy is left */
    bool is_partial; /* and it was not all fetched: there is nothing that may be left */
    struct kv_observed *observed; /* keys that clients watch or wait for (observed.h); NULL: none */
    uint64_t noted;               /* memory.changes, as far as `observed` knows of them */
    uint32_t index;               /* the number of the shard */
    bool is_ending;               /* no client may begin to wait any more */
    uint64_t hits;                /* strings that were asked for, and there */
    uint64_t misses;              /* and not there */
    uint64_t waiting;             /* commands that wait */
};

/* A hash of bytes that strangers cannot foresee, once kv_hash_seed() was called. */
void kv_hash_seed(void);
/* Set the seed of the hash from a text, so that several programs agree about the hash. */
void kv_hash_seed_by(const char *text);
uint64_t kv_hash(const char *bytes, uint32_t size);

/* Find the item of a key. A link stays valid until the table changes. NULL: there is none. */
struct kv_item **kv_table_find(struct kv_table *table, uint64_t hash, domus_slice key);

/* Make an item for a key that is not in the table, a short string without bytes and with room for
 * `room` of them. NULL: no memory. */
struct kv_item *kv_table_add(struct kv_table *table, struct kv_memory *memory, uint64_t hash,
                             domus_slice key, uint32_t room);

/* Take an item out, and free it with its value. */
void kv_table_remove(struct kv_table *table, struct kv_memory *memory, struct kv_item **link);

/* Free all items. */
void kv_table_clear(struct kv_table *table, struct kv_memory *memory);

/* Take the first item out of the bucket `at`, which has one, and free it. The table
 * does not shrink. */
void kv_table_pop(struct kv_table *table, struct kv_memory *memory, uint64_t at);

/* The items of the bucket `at`, 0..kv_table_buckets() less one. */
uint64_t kv_table_buckets(const struct kv_table *table);
struct kv_item *kv_table_bucket(const struct kv_table *table, uint64_t at);

/* An item by chance; NULL: there is none. */
struct kv_item *kv_table_any(const struct kv_table *table);

/* A number by chance, which need not be secret. */
uint64_t kv_chance(void);

/* The key of an item, and the short string that it holds. */
static inline const char *kv_item_text(const struct kv_item *item)
{
    return item->bytes + item->key_size;
}

/* Free the value of an item, which is then a short string without bytes. */
void kv_item_clear(struct kv_memory *memory, struct kv_item *item);

/* The bytes of a string. */
domus_resp_bytes kv_item_string(const struct kv_item *item);

/* Copy the text of an item into a slice of its own. Returns 0; -ENOMEM. */
int kv_item_slice(const struct kv_item *item, domus_slice *ret_slice);

/* Give the item behind `link` this string, instead of what it has. `value` is an argument of a
 * command, which the item must not keep alive as a whole. Returns 0; -ENOMEM. */
int kv_item_set(struct kv_memory *memory, struct kv_item **link, const char *bytes, uint32_t size);

/* The same with a slice, which the item owns then. With an error it is still the caller's. */
int kv_item_set_slice(struct kv_memory *memory, struct kv_item **link, domus_slice value);

/* Find the item of a key that has not expired. */
struct kv_item **kv_store_find(struct kv_store *store, uint64_t hash, domus_slice key);
void kv_store_remove(struct kv_store *store, struct kv_item **link);
/* Remove all items: they become trash. */
void kv_store_clear(struct kv_store *store);
void kv_store_set_expiry(struct kv_store *store, struct kv_item *item, uint64_t expires_ms);

/* Remove items that have expired, in a bounded number of buckets. */
void kv_store_expire(struct kv_store *store);

/* Memory that counts. NULL: none left. */
void *kv_allocate(struct kv_memory *memory, size_t size);
void kv_free(struct kv_memory *memory, void *bytes);

#endif
