/* Items of a store: their strings, and their expiry. */
#include "observed.h"
#include "trash.h"

#include <errno.h>
#include <string.h>

/* number of buckets that kv_store_remove_some_expired_items() looks at before it checks whether
 * more are worth it */
#define EXPIRE_BUCKETS 512u
#define EXPIRE_ROUNDS  16u

domus_resp_bytes kv_item_string(const struct kv_item *item)
{
    if (item->kind == KV_SHORT)
        return (domus_resp_bytes){kv_item_short_string(item), item->size};
    return (domus_resp_bytes){domus_slice_data(item->slice), item->slice.size};
}

int kv_item_copy_or_share_string(const struct kv_item *item, domus_slice *ret_slice)
{
    return item->kind == KV_SHORT
               ? domus_slice_copy(kv_item_short_string(item), item->size, ret_slice)
               : domus_slice_keep(item->slice, ret_slice);
}

/* Let the item at `link` have memory for a short string of `room` bytes. */
static int enlarge_item_for_short_string(struct kv_memory *memory, struct kv_item **link,
                                         uint32_t room)
{
    struct kv_item *item = *link;
    size_t head = sizeof *item + item->key_size;

    if (item->room >= room)
        return 0;
    struct kv_item *larger = kv_allocate_and_count_memory(memory, head + room);
    if (larger == NULL)
        return -ENOMEM;
    memcpy(larger, item, head);
    larger->room = (uint16_t)room;
    *link = larger;
    kv_free_and_uncount_memory(memory, item);
    return 0;
}

static void set_item_to_long_string_of_slice(struct kv_memory *memory, struct kv_item *item,
                                             domus_slice slice)
{
    memory->used_bytes += slice.size;
    kv_item_free_value(memory, item);
    item->slice = slice;
    item->kind = KV_LONG;
}

int kv_item_set_slice(struct kv_memory *memory, struct kv_item **link, domus_slice value)
{
    if (value.size > DOMUS_RESP_SHORT_MAX) {
        memory->changes++;
        set_item_to_long_string_of_slice(memory, *link, value);
        return 0;
    }
    int error = kv_item_set_string(memory, link, domus_slice_data(value), value.size);
    if (error == 0)
        domus_slice_free(value);
    return error;
}

int kv_item_set_string(struct kv_memory *memory, struct kv_item **link, const char *bytes,
                       uint32_t size)
{
    domus_slice slice = {NULL, 0, 0};

    memory->changes++;
    if (size > DOMUS_RESP_SHORT_MAX) {
        /* copy to a slice that owns exactly these bytes */
        int error = domus_slice_copy(bytes, size, &slice);
        if (error == 0)
            set_item_to_long_string_of_slice(memory, *link, slice);
        return error;
    }
    if ((*link)->kind != KV_SHORT)
        kv_item_free_value(memory, *link);
    int error = enlarge_item_for_short_string(memory, link, size);
    if (error != 0)
        return error;
    memcpy((*link)->bytes + (*link)->key_size, bytes, size);
    (*link)->size = (uint8_t)size;
    return 0;
}

/* --- expiry ----------------------------------------------------------------------------------- */

void kv_store_set_expiry(struct kv_store *store, struct kv_item *item, uint64_t expires_ms)
{
    store->memory.changes++;
    store->expiring += (uint64_t)(expires_ms != 0) - (uint64_t)(item->expires_ms != 0);
    item->expires_ms = expires_ms;
}

void kv_store_clear(struct kv_store *store)
{
    struct kv_table *table = kv_allocate_and_count_memory(&store->memory, sizeof *table);

    if (table != NULL)
        *table = store->table;
    if (table != NULL && kv_trash_put_table(&store->memory, table)) {
        store->table = (struct kv_table){0};
    } else {
        kv_free_and_uncount_memory(&store->memory, table);
        kv_table_clear(&store->table, &store->memory);
    }
    store->expiring = 0;
    store->at = 0;
}

void kv_store_remove(struct kv_store *store, struct kv_item **link)
{
    struct kv_item *item = *link;

    if (store->observed != NULL)
        kv_tell_clients_that_key_changed(
            store, item->hash, (domus_slice){&(domus_page){item->bytes}, 0, item->key_size});
    store->expiring -= item->expires_ms != 0;
    kv_table_remove(&store->table, &store->memory, link);
}

struct kv_item **kv_store_find(struct kv_store *store, uint64_t hash, domus_slice key)
{
    struct kv_item **link = kv_table_find(&store->table, hash, key);

    if (link != NULL && (*link)->expires_ms != 0 && (*link)->expires_ms <= store->now_ms) {
        store->expired++;
        kv_store_remove(store, link);
        return NULL;
    }
    return link;
}

static uint32_t remove_first_expired_item_of_bucket(struct kv_store *store, uint64_t at)
{
    uint32_t expired = 0;

    for (struct kv_item *item = kv_table_first_item_of_bucket(&store->table, at), *next;
         item != NULL; item = next) {
        next = item->next;
        if (item->expires_ms == 0 || item->expires_ms > store->now_ms)
            continue;
        domus_slice key = {&(domus_page){item->bytes}, 0, item->key_size};
        kv_store_remove(store, kv_table_find(&store->table, item->hash, key));
        expired++;
        /* Leave the bucket, because the removal may have moved its items; the rest of it expires in
         * the next walk. */
        break;
    }
    return expired;
}

void kv_store_remove_some_expired_items(struct kv_store *store)
{
    for (uint32_t round = 0; round < EXPIRE_ROUNDS && store->expiring != 0; round++) {
        uint32_t expired = 0;
        for (uint32_t i = 0; i < EXPIRE_BUCKETS; i++) {
            if (store->at >= kv_table_count_buckets(&store->table))
                store->at = 0;
            expired += remove_first_expired_item_of_bucket(store, store->at++);
        }
        store->expired += expired;
        if (expired < EXPIRE_BUCKETS / 8)
            break;
    }
}
