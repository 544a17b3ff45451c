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
    KV_SHORT, /* a string of up to DOMUS_RESP_SHORT_MAX bytes, which follow the key in the item */
    KV_LONG,  /* a longer string, which is a slice */
    KV_LIST,
    KV_HASH,
};

struct kv_item {
    struct kv_item *next; /* next item in the bucket of the table */
    uint64_t hash;
    /* time at which the item expires, on the clock of domus_now_ns(); 0: never */
    uint64_t expires_ms;
    uint32_t key_size;
    uint8_t kind;  /* kind of the item's value, one of enum kv_kind */
    uint8_t size;  /* number of bytes in a short string */
    uint16_t room; /* number of bytes behind the key that a short string may take */
    union {
        domus_slice slice;
        struct kv_list *list;
        struct kv_table *fields;
    };
    char bytes[]; /* bytes of the key, and behind them those of the short string */
};

struct kv_table {
    struct kv_item **buckets; /* buckets of the table; NULL: the table has none yet */
    struct kv_item **old;     /* buckets from which items move to `buckets`; NULL: none */
    uint64_t mask, old_mask;  /* number of buckets minus one, of `buckets` and of `old` */
    uint64_t moved;           /* number of buckets of `old` whose items have moved */
    uint64_t count;           /* number of items in the table */
};

/* Count of the bytes in use. All tables of a shard share one. */
struct kv_memory {
    uint64_t used_bytes;
    uint64_t bytes_max;
    struct kv_trash *trash; /* values that are being freed in pieces (trash.h); NULL: none */
    uint64_t changes;       /* number of changes: it grows each time a key or a value is changed */
};

struct kv_store {
    struct kv_table table;
    struct kv_memory memory;
    /* time in ms of the command that runs, on the clock of domus_now_ns() */
    uint64_t now_ms;
    /* offset of the wall clock to domus_now_ns() when the shard began */
    int64_t wall_ms;
    uint64_t expiring; /* number of items that have a time at which they expire */
    uint64_t expired;  /* number of items that have expired since the shard began */
    bool ticks;        /* whether the timer for the work between commands is armed */
    bool frees;        /* whether the timer that frees trash is armed */
    /* the command that is walking the table in pieces (walk.h); NULL: none */
    struct kv_walk *walk;
    /* the command that is changing a large value in pieces (job.h); NULL: none */
    struct kv_job *job;
    uint64_t at; /* index of the bucket at which kv_store_remove_some_expired_items() continues */
    /* state of the fetch of what the last life has left (legacy.h); NULL: nothing is being
     * fetched */
    struct kv_fetching *fetching;
    /* fence of this life in a cluster; 0: the shard leaves no legacy */
    uint64_t fence;
    /* whether not all was fetched, so that the store must not be left as a legacy */
    bool is_partial;
    struct kv_observed *observed; /* keys that clients watch or wait for (observed.h); NULL: none */
    /* value of memory.changes up to which the observed keys were told of changes */
    uint64_t noted;
    uint32_t index;   /* number of the shard that owns the store */
    bool is_ending;   /* whether the program ends, so that no client may begin to wait */
    uint64_t hits;    /* number of strings that were asked for and found */
    uint64_t misses;  /* number of strings that were asked for and not found */
    uint64_t waiting; /* number of commands that wait for elements of lists */
};

/* Choose the seed of the hash of keys at random, so that clients cannot foresee hashes. */
void kv_seed_hash_at_random(void);
/* Set the seed of the hash of keys from a text, so that several programs have the same hash. */
void kv_seed_hash_by_text(const char *text);
uint64_t kv_hash_of_bytes(const char *bytes, uint32_t size);

/* Find the item of a key in a table. Returns the link to it, which is valid until the table
 * changes; NULL: there is none. */
struct kv_item **kv_table_find(struct kv_table *table, uint64_t hash, domus_slice key);

/* Add an item for a key that is not in the table. Its value is a short string without bytes, with
 * room for `room` bytes. NULL: no memory. */
struct kv_item *kv_table_add(struct kv_table *table, struct kv_memory *memory, uint64_t hash,
                             domus_slice key, uint32_t room);

/* Take an item out of the table, and free it and its value. */
void kv_table_remove(struct kv_table *table, struct kv_memory *memory, struct kv_item **link);

/* Free all items of a table. */
void kv_table_clear(struct kv_table *table, struct kv_memory *memory);

/* Take the first item out of bucket `at` of a table, which must not be empty, and free it. The
 * table does not shrink. */
void kv_table_remove_first_of_bucket(struct kv_table *table, struct kv_memory *memory, uint64_t at);

/* kv_table_count_buckets() returns the number of buckets, and kv_table_first_item_of_bucket() the
 * first item of bucket `at`, which is less than that. */
uint64_t kv_table_count_buckets(const struct kv_table *table);
struct kv_item *kv_table_first_item_of_bucket(const struct kv_table *table, uint64_t at);

/* Returns an item of a table, chosen at random; NULL: the table has no item. */
struct kv_item *kv_table_random_item(const struct kv_table *table);

/* Returns a random number that need not be secret. */
uint64_t kv_random_number(void);

/* Returns the key of an item, or the short string behind it. */
static inline const char *kv_item_short_string(const struct kv_item *item)
{
    return item->bytes + item->key_size;
}

/* Free the value of an item, which becomes a short string without bytes. */
void kv_item_free_value(struct kv_memory *memory, struct kv_item *item);

/* Returns the bytes of the string that is the value of an item. */
domus_resp_bytes kv_item_string(const struct kv_item *item);

/* Copy the string of an item into a new slice. Returns 0; -ENOMEM. */
int kv_item_copy_or_share_string(const struct kv_item *item, domus_slice *ret_slice);

/* Set the value of the item at `link` to a string. `value` is an argument of a command; the item
 * must not keep the whole command alive, so it copies the bytes. Returns 0; -ENOMEM. */
int kv_item_set_string(struct kv_memory *memory, struct kv_item **link, const char *bytes,
                       uint32_t size);

/* Set the value of the item at `link` to a slice, which it then owns. On an error the slice still
 * belongs to the caller. */
int kv_item_set_slice(struct kv_memory *memory, struct kv_item **link, domus_slice value);

/* Find the item of a key in a store. Returns NULL if there is none, or if it has expired. */
struct kv_item **kv_store_find(struct kv_store *store, uint64_t hash, domus_slice key);
void kv_store_remove(struct kv_store *store, struct kv_item **link);
/* Remove all items of a store. They become trash. */
void kv_store_clear(struct kv_store *store);
void kv_store_set_expiry(struct kv_store *store, struct kv_item *item, uint64_t expires_ms);

/* Remove expired items from a store, in a limited number of buckets. */
void kv_store_remove_some_expired_items(struct kv_store *store);

/* Allocate memory that counts as memory of the store. NULL: no memory is left. */
void *kv_allocate_and_count_memory(struct kv_memory *memory, size_t size);
void kv_free_and_uncount_memory(struct kv_memory *memory, void *bytes);

#endif
