/* Keys that clients watch (WATCH) or wait for (BLPOP and its like), and these clients.
 *
 * A shard has this only while there are such clients, so that it costs all other commands one look
 * at a pointer. A change is found without a word of the command that makes it: the memory of a
 * store counts changes, and when that number has grown, the key that the command is at has changed.
 *
 * A mark is one key of one client. The marks of one key form a chain, in the order in which they
 * came, which is the order in which clients that wait are served. A client is known by the address
 * of its connection, and forgotten when that ends.
 *
 * Thread-safety: the shard that owns the store. */
#ifndef KV_OBSERVED_H
#define KV_OBSERVED_H

#include "store.h"

#include <domus/domus.h>

struct kv_client;
struct kv_chain;
struct kv_waiter;

/* A mark: one key that a client watches, or waits for. */
struct kv_mark {
    struct kv_mark *next, *before; /* neighbours of the mark in the chain of its key */
    struct kv_mark *next_of_client;
    struct kv_chain *chain;
    struct kv_client *client;
};

/* The chain of the marks of one key. */
struct kv_chain {
    struct kv_mark *first, *last;
    struct kv_chain *next_ready;
    bool is_ready; /* whether the chain's key may have elements for clients that wait */
    /* whether clients of the chain are being served, so that it stays even without a mark */
    bool is_served;
    uint64_t hash;
    domus_page page; /* page with the bytes of the key behind it */
    uint32_t key_size;
    char key[];
};

enum kv_observing { KV_WATCHES, KV_WAITS };

/* A client that watches keys of this shard, or waits for them. */
struct kv_client {
    domus_address address; /* the address of the connection's actor */
    domus_watch down;
    struct kv_mark *marks[2]; /* the client's marks, by enum kv_observing */
    bool is_dirty;            /* whether a key that the client watches has changed */
    struct kv_waiter *waiter; /* the client's command that waits (wait.c); NULL: none */
};

struct kv_observed {
    /* the chain of each observed key, one table for each of enum kv_observing */
    struct kv_table chains[2];
    struct kv_table clients; /* the clients that observe keys, by address */
    struct kv_memory memory; /* the memory that the clients, marks and chains take */
    struct kv_chain *ready, *ready_last;
};

/* Find the client that a connection is; NULL: no client of this shard has its address. */
struct kv_client *kv_client_find(struct kv_store *store, domus_address address);
/* Find the client that a connection is, or add it. Returns 0; -ENOMEM. */
int kv_client_find_or_add(domus_stack *stack, struct kv_store *store, domus_address address,
                          struct kv_client **ret_client);
/* Forget a client if it neither watches nor waits for any key. */
void kv_forget_client_without_marks(domus_stack *stack, struct kv_store *store,
                                    struct kv_client *client);

/* Add a mark of a client for a key. Returns 0; -ENOMEM, also if kv.observedMemory is used up. */
int kv_observe_key_for_client(struct kv_store *store, struct kv_client *client,
                              enum kv_observing what, uint64_t hash, domus_slice key);
/* Remove all marks of a client that watch, or all that wait. */
void kv_end_observing_all_of_client(struct kv_store *store, struct kv_client *client,
                                    enum kv_observing what);

static inline domus_slice kv_key_of_chain(const struct kv_chain *chain)
{
    return (domus_slice){&chain->page, 0, chain->key_size};
}

/* Mark the clients that watch a key as dirty, and its chain as ready, because the key has
 * changed. */
void kv_tell_clients_that_key_changed(struct kv_store *store, uint64_t hash, domus_slice key);
/* Note that the key of the running command was changed, if the store has changed since the last
 * call of this function. */
void kv_mark_key_if_command_changed_it(struct kv_store *store, uint64_t hash, domus_slice key);
/* Do what kv_tell_clients_that_key_changed() does, for all keys, which are about to be removed. */
void kv_tell_clients_that_all_keys_change(struct kv_store *store);

/* Take the next key that may have elements for clients that wait; NULL: none. A chain that has no
 * mark any more is freed by kv_free_chain_without_clients(). */
struct kv_chain *kv_take_next_chain_of_changed_key(struct kv_store *store);
void kv_free_chain_without_clients(struct kv_store *store, struct kv_chain *chain);

/* Call `visit` for each client that observes keys. */
void kv_visit_all_observing_clients(struct kv_store *store, domus_stack *stack,
                                    void (*visit)(domus_stack *stack, struct kv_store *store,
                                                  struct kv_client *client));

/* Free all that the store has for observed keys, if it has no client. No other function of
 * observed.c may be running. */
void kv_free_observed_if_unused(struct kv_store *store);

/* Free all clients, marks and chains when the shard ends. */
void kv_observed_free(struct kv_store *store);

#endif
