/* Hash tables of items, whose growth is spread over the commands that cause it. */
#include "trash.h"
#include "wide.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BUCKETS_LEAST 8u
#define MOVED_AT_ONCE 4u /* number of buckets whose items one change of a growing table moves */
/* The factor by which a table must have fewer items than buckets before it shrinks. */
#define SHRINK_SHARE 16u

/* --- memory ----------------------------------------------------------------------------------- */

void *kv_allocate_and_count_memory(struct kv_memory *memory, size_t size)
{
    void *bytes = malloc(size);

    if (bytes != NULL)
        memory->used_bytes += malloc_usable_size(bytes);
    return bytes;
}

void kv_free_and_uncount_memory(struct kv_memory *memory, void *bytes)
{
    if (bytes != NULL)
        memory->used_bytes -= malloc_usable_size(bytes);
    free(bytes);
}

/* --- hashes ----------------------------------------------------------------------------------- */

static uint64_t seed;
static _Thread_local uint64_t chance;

void kv_seed_hash_at_random(void)
{
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed * 0x9e3779b97f4a7c15u;
}

void kv_seed_hash_by_text(const char *text)
{
    /* the hash of the text under this constant becomes the seed */
    seed = UINT64_C(0x589965cc75374cc3);
    seed = kv_hash_of_bytes(text, (uint32_t)strlen(text));
}

/* Mix the bits of a hash by two products. With one product, keys that differ in a few bits of one
 * byte (f1, f2 ...) are told apart by eight bits of the seed alone: with one seed in a hundred a
 * dozen such keys share a bucket. */
static inline uint64_t mix_hash(uint64_t hash)
{
    return kv_fold_product(kv_fold_product(hash, 0xe7037ed1a0b428dbu ^ seed), 0x8ebc6af09c88c6e3u);
}

uint64_t kv_hash_of_bytes(const char *bytes, uint32_t size)
{
    uint64_t hash = seed ^ size;
    uint64_t word = 0;

    if (size < sizeof word) {
        for (uint32_t i = 0; i < size; i++)
            word |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
        return mix_hash(hash ^ word);
    }
    /* the last word of the bytes, which may overlap the word before */
    const char *last = bytes + size - sizeof word;
    for (; bytes < last; bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = kv_fold_product(hash ^ word, 0xa0761d6478bd642fu);
    }
    memcpy(&word, last, sizeof word);
    return mix_hash(hash ^ word);
}

/* --- growing and shrinking -------------------------------------------------------------------- */

static void link_item_to_bucket(struct kv_table *table, struct kv_item *item)
{
    struct kv_item **bucket = &table->buckets[item->hash & table->mask];

    item->next = *bucket;
    *bucket = item;
}

/* Move some items of a table that is being resized to its new buckets. */
static void move_next_items_to_new_buckets(struct kv_table *table, struct kv_memory *memory)
{
    for (uint32_t i = 0; i < MOVED_AT_ONCE && table->old != NULL; i++) {
        struct kv_item *item = table->old[table->moved];
        while (item != NULL) {
            struct kv_item *next = item->next;
            link_item_to_bucket(table, item);
            item = next;
        }
        table->old[table->moved] = NULL;
        if (table->moved++ == table->old_mask) {
            kv_free_and_uncount_memory(memory, table->old);
            table->old = NULL;
        }
    }
}

/* Begin to resize a table: to move all its items to `size` new buckets. Without memory the table
 * stays as it is. */
static void begin_resize_to_new_buckets(struct kv_table *table, struct kv_memory *memory,
                                        uint64_t size)
{
    struct kv_item **buckets =
        /* calloc(), because large memory comes as zero pages that cost nothing */
        calloc((size_t)size, sizeof *buckets);

    if (buckets == NULL)
        return;
    memory->used_bytes += malloc_usable_size(buckets);
    table->old = table->buckets;
    table->old_mask = table->mask;
    table->moved = 0;
    table->buckets = buckets;
    table->mask = size - 1;
}

static void begin_or_continue_resize_of_table(struct kv_table *table, struct kv_memory *memory)
{
    if (table->old != NULL)
        move_next_items_to_new_buckets(table, memory);
    else if (table->buckets == NULL)
        begin_resize_to_new_buckets(table, memory, BUCKETS_LEAST);
    else if (table->count > table->mask)
        begin_resize_to_new_buckets(table, memory, (table->mask + 1) * 2);
    else if (table->mask >= BUCKETS_LEAST && table->count < (table->mask + 1) / SHRINK_SHARE)
        begin_resize_to_new_buckets(table, memory, (table->mask + 1) / 4);
}

/* --- items ------------------------------------------------------------------------------------ */

static struct kv_item **find_link_to_item_in_bucket(struct kv_item **link, uint64_t hash,
                                                    domus_slice key)
{
    for (; *link != NULL; link = &(*link)->next) {
        struct kv_item *item = *link;
        if (item->hash == hash && item->key_size == key.size &&
            memcmp(item->bytes, domus_slice_data(key), key.size) == 0)
            return link;
    }
    return NULL;
}

struct kv_item **kv_table_find(struct kv_table *table, uint64_t hash, domus_slice key)
{
    struct kv_item **link = NULL;

    if (table->buckets != NULL)
        link = find_link_to_item_in_bucket(&table->buckets[hash & table->mask], hash, key);
    if (link == NULL && table->old != NULL)
        link = find_link_to_item_in_bucket(&table->old[hash & table->old_mask], hash, key);
    return link;
}

struct kv_item *kv_table_add(struct kv_table *table, struct kv_memory *memory, uint64_t hash,
                             domus_slice key, uint32_t room)
{
    size_t size = sizeof(struct kv_item) + key.size + room;

    begin_or_continue_resize_of_table(table, memory);
    if (table->buckets == NULL)
        return NULL;
    struct kv_item *item = kv_allocate_and_count_memory(memory, size);
    if (item == NULL)
        return NULL;
    memset(item, 0, sizeof *item);
    item->hash = hash;
    item->key_size = key.size;
    item->room = (uint16_t)(malloc_usable_size(item) - size + room);
    memcpy(item->bytes, domus_slice_data(key), key.size);
    link_item_to_bucket(table, item);
    table->count++;
    memory->changes++;
    return item;
}

void kv_item_free_value(struct kv_memory *memory, struct kv_item *item)
{
    if (item->kind == KV_LONG) {
        memory->used_bytes -= item->slice.size;
        domus_slice_free(item->slice);
    } else if (item->kind == KV_LIST) {
        if (!kv_trash_put_list(memory, item->list))
            kv_list_free(memory, item->list);
    } else if (item->kind == KV_HASH && !kv_trash_put_table(memory, item->fields)) {
        kv_table_clear(item->fields, memory);
        kv_free_and_uncount_memory(memory, item->fields);
    }
    item->kind = KV_SHORT;
    item->size = 0;
}

void kv_table_remove(struct kv_table *table, struct kv_memory *memory, struct kv_item **link)
{
    struct kv_item *item = *link;

    *link = item->next;
    kv_item_free_value(memory, item);
    kv_free_and_uncount_memory(memory, item);
    table->count--;
    memory->changes++;
    begin_or_continue_resize_of_table(table, memory);
}

void kv_table_remove_first_of_bucket(struct kv_table *table, struct kv_memory *memory, uint64_t at)
{
    bool is_old = at > table->mask;
    struct kv_item **bucket = is_old ? &table->old[at - table->mask - 1] : &table->buckets[at];
    struct kv_item *item = *bucket;

    *bucket = item->next;
    kv_item_free_value(memory, item);
    kv_free_and_uncount_memory(memory, item);
    table->count--;
}

void kv_table_clear(struct kv_table *table, struct kv_memory *memory)
{
    for (uint64_t at = 0; at < kv_table_count_buckets(table); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(table, at), *next; item != NULL;
             item = next) {
            next = item->next;
            kv_item_free_value(memory, item);
            kv_free_and_uncount_memory(memory, item);
        }
    }
    kv_free_and_uncount_memory(memory, table->buckets);
    kv_free_and_uncount_memory(memory, table->old);
    *table = (struct kv_table){0};
}

uint64_t kv_table_count_buckets(const struct kv_table *table)
{
    return (table->buckets != NULL ? table->mask + 1 : 0) +
           (table->old != NULL ? table->old_mask + 1 : 0);
}

struct kv_item *kv_table_first_item_of_bucket(const struct kv_table *table, uint64_t at)
{
    return at <= table->mask ? table->buckets[at] : table->old[at - table->mask - 1];
}

uint64_t kv_random_number(void)
{
    chance += UINT64_C(0x9e3779b97f4a7c15);
    /* Returns a random number, as a product of which both factors change: if one stayed, numbers
     * that follow each other would be alike. */
    return kv_fold_product(chance, chance ^ seed ^ UINT64_C(0xe7037ed1a0b428db));
}

/* up to so many items in a bucket have the same chance to be drawn; those of longer ones have
 * less */
#define CHAIN_USUAL 8u

static uint32_t count_items_of_bucket(const struct kv_item *item)
{
    uint32_t length = 0;

    for (; item != NULL; item = item->next)
        length++;
    return length;
}

struct kv_item *kv_table_random_item(const struct kv_table *table)
{
    uint64_t buckets = kv_table_count_buckets(table);
    const struct kv_item *item = NULL;

    if (table->count == 0)
        return NULL;
    /* Draw an item: a bucket is taken as often as it has items, so that all items have the same
     * chance. A table has at least one item for SHRINK_SHARE buckets, except for a while after many
     * were removed. In such a table the next item behind the bucket will do. */
    uint64_t at = 0;
    uint32_t length = 0;
    for (uint32_t tries = 0; tries < 8 * CHAIN_USUAL * SHRINK_SHARE; tries++) {
        at = kv_random_number() % buckets;
        item = kv_table_first_item_of_bucket(table, at);
        length = count_items_of_bucket(item);
        if (length > kv_random_number() % CHAIN_USUAL)
            break;
    }
    for (; item == NULL; item = kv_table_first_item_of_bucket(table, at))
        at = (at + 1) % buckets;
    length = count_items_of_bucket(item);
    for (uint64_t steps = kv_random_number() % length; steps > 0; steps--)
        item = item->next;
    return (struct kv_item *)(uintptr_t)item;
}
