/* Lists of keys: a watch that sends nothing to a watcher, and answers with the keys once all of
 * them have come.
 *
 * A key that changes meanwhile comes again, and a deleted key is removed. So the keys lie one
 * behind the other, each after a byte that says whether it has a value and a byte with its size,
 * and a hash table finds them. */
#include "protocols/nats/kv.h"

#include <domus/spawn.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD        2u   /* bytes before each key in `bytes`: the flag and the size */
#define ROOM_LEAST  512u /* bytes that are allocated for the keys of a list at first */
#define SLOTS_LEAST 64u

static uint64_t hash_key(uint64_t seed, const char *key, uint32_t size)
{
    /* the hash of a key is FNV-1a, begun with the seed */
    uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* Returns the hash table's slot that has the key, or else the free slot (0) that is meant for
 * it. */
static uint32_t *find_slot_of_key_or_free_slot(const domi_kv_keys *keys, uint64_t seed,
                                               const char *key, uint32_t size)
{
    uint32_t mask = keys->slots_count - 1;
    uint32_t at = (uint32_t)hash_key(seed, key, size) & mask;

    for (;; at = (at + 1) & mask) {
        const char *there = keys->bytes + keys->slots[at];
        if (keys->slots[at] == 0 ||
            ((unsigned char)there[-1] == size && memcmp(there, key, size) == 0))
            return &keys->slots[at];
    }
}

/* Double the hash table of a list of keys. Returns 0; -ENOMEM. */
static int double_hash_table(domi_kv_keys *keys, uint64_t seed)
{
    domi_kv_keys grown = *keys;

    grown.slots_count = keys->slots_count != 0 ? 2 * keys->slots_count : SLOTS_LEAST;
    grown.slots = calloc(grown.slots_count, sizeof *grown.slots);
    if (grown.slots == NULL)
        return -ENOMEM;
    for (uint32_t at = 0; at < keys->size;) {
        uint32_t size = (unsigned char)keys->bytes[at + 1];
        *find_slot_of_key_or_free_slot(&grown, seed, keys->bytes + at + HEAD, size) = at + HEAD;
        at += HEAD + size;
    }
    free(keys->slots);
    *keys = grown;
    return 0;
}

/* Enlarge the memory for the keys of a list by at least `size` bytes. Returns 0; -ENOMEM. */
static int enlarge_bytes_of_keys(domi_kv_keys *keys, uint32_t size)
{
    uint32_t room = keys->room != 0 ? keys->room : ROOM_LEAST;

    while (room - keys->size < size)
        room *= 2;
    if (room == keys->room)
        return 0;
    char *bytes = realloc(keys->bytes, room);
    if (bytes == NULL)
        return -ENOMEM;
    keys->bytes = bytes;
    keys->room = room;
    return 0;
}

/* Add a key that is not in the list's table yet. Returns 0; -E2BIG; -ENOMEM. */
static int add_new_key(domi_kv_keys *keys, uint64_t seed, const char *key, uint32_t size)
{
    if (keys->count == DOMUS_NATS_KV_KEYS_MAX ||
        /* the size of all keys as lines of the answer, with the new key */
        keys->size - keys->count + size + 1 > DOMUS_NATS_KV_KEYS_BYTES)
        return -E2BIG;
    int error = enlarge_bytes_of_keys(keys, HEAD + size);
    if (error == 0 && 2 * keys->count >= keys->slots_count)
        error = double_hash_table(keys, seed);
    if (error != 0)
        return error;
    char *at = keys->bytes + keys->size;
    at[0] = 1;
    at[1] = (char)size;
    memcpy(at + HEAD, key, size);
    *find_slot_of_key_or_free_slot(keys, seed, key, size) = keys->size + HEAD;
    keys->size += HEAD + size;
    keys->count++;
    return 0;
}

int domi_kv_add_entry_to_list(domi_kv_watch *watch, const domus_nats_kv_entry *entry)
{
    domi_kv_keys *keys = &watch->keys;
    domus_slice key = domus_nats_kv_key(entry);
    const char *data = domus_slice_data(key);
    uint32_t at =
        keys->count != 0 ? *find_slot_of_key_or_free_slot(keys, watch->seed, data, key.size) : 0;
    bool has_value = entry->operation == DOMUS_NATS_KV_PUT;

    watch->met += at == 0;
    if (at != 0)
        keys->bytes[at - HEAD] = has_value;
    return at == 0 && has_value ? add_new_key(keys, watch->seed, data, key.size) : 0;
}

void domi_kv_free_keys_of_list(domi_kv_watch *watch)
{
    free(watch->keys.bytes);
    free(watch->keys.slots);
    watch->keys = (domi_kv_keys){.count = 0};
}

/* Make the answer to a list, which has the keys as lines. Returns 0; -ENOMEM. */
static int make_answer_with_keys(const domi_kv_keys *keys, domus_nats_kv_list *ret_list)
{
    domus_appender lines = {0};

    ret_list->count = 0;
    for (uint32_t at = 0; at < keys->size;) {
        uint32_t size = (unsigned char)keys->bytes[at + 1];
        if (keys->bytes[at] != 0) {
            (void)domus_append(&lines, keys->bytes + at + HEAD, size);
            (void)domus_append(&lines, "\n", 1);
            ret_list->count++;
        }
        at += HEAD + size;
    }
    return domus_append_end(&lines, &ret_list->bytes);
}

int domi_kv_answer_list_and_stop_watch(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_kv_list list;
    int error = make_answer_with_keys(&watch->keys, &list);

    if (error != 0)
        return domi_kv_stop_watch_and_tell_error(stack, watch, error);
    watch->is_initial_told = true;
    domi_kv_unsubscribe_and_end_round(stack, watch);
    if (domus_kept_reply(stack, watch->asked, &domus_nats_kv_list_type, &list) != 0)
        /* the asker does not wait for the list any more, so its bytes are freed */
        domus_slice_free(list.bytes);
    (void)domus_stop(stack, domus_self(stack));
    return 0;
}
