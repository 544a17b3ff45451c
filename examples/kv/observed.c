/* Keys that are observed (observed.h): chains of marks, found by key, and clients, found by the
 * address of their connection. Both are in tables like that of the keys; the short strings of these
 * tables hold pointers. */
#include "observed.h"

#include "kv.h"
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_BYTES 12u

static void *pointer_stored_in_table_item(const struct kv_item *item)
{
    void *pointer;

    memcpy(&pointer, kv_item_short_string(item), sizeof pointer);
    return pointer;
}

/* Put a pointer into a table, under a name that is not in it. Returns 0; -ENOMEM. */
static int put_pointer_into_table(struct kv_observed *observed, struct kv_table *table,
                                  uint64_t hash, domus_slice name, void *pointer)
{
    struct kv_memory *memory = &observed->memory;

    if (kv_table_add(table, memory, hash, name, sizeof pointer) == NULL)
        return -ENOMEM;
    struct kv_item **link = kv_table_find(table, hash, name);
    return kv_item_set_string(memory, link, (const char *)&pointer, sizeof pointer);
}

static void *get_pointer_from_table(struct kv_table *table, uint64_t hash, domus_slice name)
{
    struct kv_item **link = kv_table_find(table, hash, name);

    return link != NULL ? pointer_stored_in_table_item(*link) : NULL;
}

static void remove_pointer_from_table(struct kv_observed *observed, struct kv_table *table,
                                      uint64_t hash, domus_slice name)
{
    kv_table_remove(table, &observed->memory, kv_table_find(table, hash, name));
}

static struct kv_observed *allocate_observed_keys_if_none(struct kv_store *store)
{
    if (store->observed != NULL)
        return store->observed;
    store->observed = calloc(1, sizeof *store->observed);
    if (store->observed == NULL)
        return NULL;
    store->observed->memory.bytes_max = kv_settings.observed_bytes / kv_shard_count;
    store->noted = store->memory.changes;
    return store->observed;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* An address as bytes without padding, for use as a name in a table. */
struct name {
    char bytes[ADDRESS_BYTES];
    domus_page page;
    uint64_t hash;
};

static domus_slice table_name_of_client_address(domus_address address, struct name *name)
{
    memcpy(name->bytes, &address.house, sizeof address.house);
    memcpy(name->bytes + sizeof address.house, &address.lease, sizeof address.lease);
    name->page.data = name->bytes;
    name->hash = kv_hash_of_bytes(name->bytes, ADDRESS_BYTES);
    return (domus_slice){&name->page, 0, ADDRESS_BYTES};
}

struct kv_client *kv_client_find(struct kv_store *store, domus_address address)
{
    struct name name;
    domus_slice bytes = table_name_of_client_address(address, &name);

    return store->observed != NULL
               ? get_pointer_from_table(&store->observed->clients, name.hash, bytes)
               : NULL;
}

int kv_client_find_or_add(domus_stack *stack, struct kv_store *store, domus_address address,
                          struct kv_client **ret_client)
{
    struct kv_client *client = kv_client_find(store, address);
    struct kv_observed *observed = allocate_observed_keys_if_none(store);
    struct name name;

    if (observed == NULL)
        return -ENOMEM;
    if (client == NULL) {
        domus_slice bytes = table_name_of_client_address(address, &name);
        client = kv_allocate_and_count_memory(&observed->memory, sizeof *client);
        if (client == NULL)
            return -ENOMEM;
        *client = (struct kv_client){.address = address};
        int error = put_pointer_into_table(observed, &observed->clients, name.hash, bytes, client);
        if (error == 0) {
            error = domus_watch_actor(stack, address, &client->down);
            if (error != 0)
                remove_pointer_from_table(observed, &observed->clients, name.hash, bytes);
        }
        if (error != 0) {
            kv_free_and_uncount_memory(&observed->memory, client);
            return error;
        }
    }
    *ret_client = client;
    return 0;
}

void kv_forget_client_without_marks(domus_stack *stack, struct kv_store *store,
                                    struct kv_client *client)
{
    struct kv_observed *observed = store->observed;
    struct name name;

    if (client->marks[KV_WATCHES] != NULL || client->waiter != NULL)
        return;
    domus_slice bytes = table_name_of_client_address(client->address, &name);
    remove_pointer_from_table(observed, &observed->clients, name.hash, bytes);
    (void)domus_unwatch(stack, client->down);
    kv_free_and_uncount_memory(&observed->memory, client);
}

void kv_free_observed_if_unused(struct kv_store *store)
{
    const struct kv_observed *observed = store->observed;

    if (observed != NULL && observed->clients.count == 0 && observed->ready == NULL)
        kv_observed_free(store);
}

/* --- chains ----------------------------------------------------------------------------------- */

static struct kv_chain *add_empty_chain_for_observed_key(struct kv_observed *observed,
                                                         enum kv_observing what, uint64_t hash,
                                                         domus_slice key)
{
    struct kv_chain *chain =
        kv_allocate_and_count_memory(&observed->memory, sizeof *chain + key.size);

    if (chain == NULL)
        return NULL;
    *chain = (struct kv_chain){.hash = hash, .key_size = key.size, .page = {chain->key}};
    memcpy(chain->key, domus_slice_data(key), key.size);
    if (put_pointer_into_table(observed, &observed->chains[what], hash, kv_key_of_chain(chain),
                               chain) != 0) {
        kv_free_and_uncount_memory(&observed->memory, chain);
        return NULL;
    }
    return chain;
}

static void remove_chain_of_key(struct kv_observed *observed, enum kv_observing what,
                                struct kv_chain *chain)
{
    remove_pointer_from_table(observed, &observed->chains[what], chain->hash,
                              kv_key_of_chain(chain));
    kv_free_and_uncount_memory(&observed->memory, chain);
}

int kv_observe_key_for_client(struct kv_store *store, struct kv_client *client,
                              enum kv_observing what, uint64_t hash, domus_slice key)
{
    struct kv_observed *observed = store->observed;
    struct kv_memory *memory = &observed->memory;
    struct kv_chain *chain = get_pointer_from_table(&observed->chains[what], hash, key);

    if (memory->used_bytes + 2 * (uint64_t)key.size + sizeof *chain > memory->bytes_max)
        return -ENOMEM;
    struct kv_mark *mark = kv_allocate_and_count_memory(memory, sizeof *mark);
    if (mark == NULL)
        return -ENOMEM;
    if (chain == NULL &&
        (chain = add_empty_chain_for_observed_key(observed, what, hash, key)) == NULL) {
        kv_free_and_uncount_memory(memory, mark);
        return -ENOMEM;
    }
    *mark = (struct kv_mark){.before = chain->last,
                             .next_of_client = client->marks[what],
                             .chain = chain,
                             .client = client};
    if (chain->last != NULL)
        chain->last->next = mark;
    else
        chain->first = mark;
    chain->last = mark;
    client->marks[what] = mark;
    return 0;
}

void kv_end_observing_all_of_client(struct kv_store *store, struct kv_client *client,
                                    enum kv_observing what)
{
    struct kv_observed *observed = store->observed;

    while (client->marks[what] != NULL) {
        struct kv_mark *mark = client->marks[what];
        struct kv_chain *chain = mark->chain;
        client->marks[what] = mark->next_of_client;
        *(mark->before != NULL ? &mark->before->next : &chain->first) = mark->next;
        *(mark->next != NULL ? &mark->next->before : &chain->last) = mark->before;
        kv_free_and_uncount_memory(&observed->memory, mark);
        if (chain->first == NULL && !chain->is_ready && !chain->is_served)
            remove_chain_of_key(observed, what, chain);
    }
}

/* --- changes ---------------------------------------------------------------------------------- */

void kv_tell_clients_that_key_changed(struct kv_store *store, uint64_t hash, domus_slice key)
{
    struct kv_observed *observed = store->observed;
    const struct kv_chain *watched =
        get_pointer_from_table(&observed->chains[KV_WATCHES], hash, key);
    struct kv_chain *awaited = get_pointer_from_table(&observed->chains[KV_WAITS], hash, key);

    for (struct kv_mark *mark = watched != NULL ? watched->first : NULL; mark != NULL;
         mark = mark->next)
        mark->client->is_dirty = true;
    if (awaited == NULL || awaited->is_ready)
        return;
    awaited->is_ready = true;
    awaited->next_ready = NULL;
    *(observed->ready != NULL ? &observed->ready_last->next_ready : &observed->ready) = awaited;
    observed->ready_last = awaited;
}

void kv_mark_key_if_command_changed_it(struct kv_store *store, uint64_t hash, domus_slice key)
{
    if (store->noted == store->memory.changes)
        return;
    store->noted = store->memory.changes;
    kv_tell_clients_that_key_changed(store, hash, key);
}

void kv_tell_clients_that_all_keys_change(struct kv_store *store)
{
    struct kv_table *table = &store->observed->chains[KV_WATCHES];

    for (uint64_t at = 0; at < kv_table_count_buckets(table); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(table, at); item != NULL;
             item = item->next) {
            const struct kv_chain *chain = pointer_stored_in_table_item(item);
            if (kv_store_find(store, chain->hash, kv_key_of_chain(chain)) != NULL)
                kv_tell_clients_that_key_changed(store, chain->hash, kv_key_of_chain(chain));
        }
    }
}

struct kv_chain *kv_take_next_chain_of_changed_key(struct kv_store *store)
{
    struct kv_chain *chain = store->observed->ready;

    if (chain != NULL) {
        store->observed->ready = chain->next_ready;
        chain->next_ready = NULL;
        /* false before clients are served, because that may make the chain ready again */
        chain->is_ready = false;
    }
    return chain;
}

void kv_free_chain_without_clients(struct kv_store *store, struct kv_chain *chain)
{
    if (chain->first == NULL && !chain->is_ready)
        remove_chain_of_key(store->observed, KV_WAITS, chain);
}

/* --- all of them ------------------------------------------------------------------------------ */

void kv_visit_all_observing_clients(struct kv_store *store, domus_stack *stack,
                                    void (*visit)(domus_stack *stack, struct kv_store *store,
                                                  struct kv_client *client))
{
    struct kv_table *table = &store->observed->clients;

    for (uint64_t at = 0; at < kv_table_count_buckets(table); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(table, at); item != NULL;
             item = item->next)
            visit(stack, store, pointer_stored_in_table_item(item));
    }
}

static void free_client(domus_stack *stack, struct kv_store *store, struct kv_client *client)
{
    (void)stack;
    kv_end_observing_all_of_client(store, client, KV_WATCHES);
    kv_free_waiter(store, client);
    kv_free_and_uncount_memory(&store->observed->memory, client);
}

void kv_observed_free(struct kv_store *store)
{
    struct kv_observed *observed = store->observed;

    if (observed == NULL)
        return;
    kv_visit_all_observing_clients(store, NULL, free_client);
    for (struct kv_chain *chain = kv_take_next_chain_of_changed_key(store); chain != NULL;
         chain = kv_take_next_chain_of_changed_key(store))
        kv_free_chain_without_clients(store, chain);
    kv_table_clear(&observed->chains[KV_WATCHES], &observed->memory);
    kv_table_clear(&observed->chains[KV_WAITS], &observed->memory);
    kv_table_clear(&observed->clients, &observed->memory);
    free(observed);
    store->observed = NULL;
}
