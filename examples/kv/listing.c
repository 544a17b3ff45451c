/* Commands that list all of something: KEYS, HGETALL, HKEYS, HVALS and LRANGE; and RANDOMKEY. */
#include "glob.h"
#include "hash.h"
#include "walk.h"

#include <errno.h>

/* --- keys ------------------------------------------------------------------------------------- */

static int add_next_matching_keys_to_answer(struct kv_store *store, struct kv_walk *walk)
{
    const char *pattern = domus_slice_data(walk->pattern);
    bool full = false;

    for (; walk->at < kv_table_count_buckets(walk->table) && !full; walk->at++) {
        const struct kv_item *item = kv_table_first_item_of_bucket(walk->table, walk->at);
        full = kv_walk_count_visit_and_is_piece_full(walk);
        for (; item != NULL; item = item->next) {
            full = kv_walk_count_visit_and_is_piece_full(walk);
            if ((item->expires_ms == 0 || item->expires_ms > store->now_ms) &&
                kv_matches_pattern(pattern, walk->pattern.size, item->bytes, item->key_size))
                (void)domus_resp_add_bulk(&walk->builder, item->bytes, item->key_size);
        }
    }
    return full;
}

int kv_run_keys(struct kv_call *call)
{
    struct kv_walk walk = {
        .piece = add_next_matching_keys_to_answer, .table = &call->store->table, .counts = true};
    domus_slice pattern = domus_resp_argument(call->command, 1);

    if (pattern.size > KV_PATTERN_MAX)
        return kv_answer_error(call->stack, KV_LONG_PATTERN);
    walk.is_part = kv_shard_count > 1;
    int error = domus_slice_keep(pattern, &walk.pattern);
    return error != 0 ? error : kv_run_walk_and_park_if_long(call, &walk);
}

int kv_run_randomkey(struct kv_call *call)
{
    const struct kv_item *item;

    for (uint32_t tries = 0; tries < 100; tries++) {
        item = kv_table_random_item(&call->store->table);
        if (item == NULL)
            break;
        if (item->expires_ms == 0 || item->expires_ms > call->store->now_ms)
            return kv_answer_bytes_as_bulk_string(call->stack,
                                                  (domus_resp_bytes){item->bytes, item->key_size});
    }
    return kv_answer_null(call->stack);
}

/* --- fields ----------------------------------------------------------------------------------- */

enum parts { FIELDS = 1, VALUES = 2 };

static int add_next_fields_of_hash_to_answer(struct kv_store *store, struct kv_walk *walk)
{
    bool full = false;

    (void)store;
    for (; walk->at < kv_table_count_buckets(walk->table) && !full; walk->at++) {
        const struct kv_item *item = kv_table_first_item_of_bucket(walk->table, walk->at);
        full = kv_walk_count_visit_and_is_piece_full(walk);
        for (; item != NULL; item = item->next) {
            domus_resp_bytes value = kv_item_string(item);
            if ((walk->parts & FIELDS) != 0)
                (void)domus_resp_add_bulk(&walk->builder, item->bytes, item->key_size);
            if ((walk->parts & VALUES) != 0)
                (void)domus_resp_add_bulk(&walk->builder, value.data, value.size);
            full = kv_walk_count_visit_and_is_piece_full(walk);
        }
    }
    return full;
}

static int answer_all_fields_or_values_of_hash(struct kv_call *call, unsigned parts)
{
    struct kv_walk walk = {.piece = add_next_fields_of_hash_to_answer, .parts = parts};
    struct kv_table none = {0};
    struct kv_item **link;
    int there = kv_find_hash_at_key_of_call(call, &link);

    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    walk.table = there != 0 ? (*link)->fields : &none;
    walk.builder.version = call->command->version;
    uint32_t count = (uint32_t)walk.table->count;
    (void)(parts == (FIELDS | VALUES) ? domus_resp_add_map(&walk.builder, count)
                                      : domus_resp_add_array(&walk.builder, count));
    return kv_run_walk_and_park_if_long(call, &walk);
}

int kv_run_hgetall(struct kv_call *call)
{
    return answer_all_fields_or_values_of_hash(call, FIELDS | VALUES);
}

int kv_run_hkeys(struct kv_call *call)
{
    return answer_all_fields_or_values_of_hash(call, FIELDS);
}

int kv_run_hvals(struct kv_call *call)
{
    return answer_all_fields_or_values_of_hash(call, VALUES);
}

/* --- elements --------------------------------------------------------------------------------- */

static int add_next_elements_of_list_to_answer(struct kv_store *store, struct kv_walk *walk)
{
    bool full = false;

    (void)store;
    for (; walk->left != 0 && !full; walk->left--) {
        domus_resp_bytes element = kv_list_element_at_place(walk->place);
        (void)domus_resp_add_bulk(&walk->builder, element.data, element.size);
        walk->place = kv_list_place_behind(walk->place);
        full = kv_walk_count_visit_and_is_piece_full(walk);
    }
    return walk->left != 0;
}

int kv_run_lrange(struct kv_call *call)
{
    struct kv_walk walk = {.piece = add_next_elements_of_list_to_answer};
    struct kv_item **link;
    int64_t first, last;

    if (!kv_read_integer_argument(call, 2, &first) || !kv_read_integer_argument(call, 3, &last))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    int there = kv_find_list_at_key_of_call(call, &link);
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    int64_t size = there == 0 ? 0 : (int64_t)(*link)->list->count;
    first = first >= 0 ? first : first + size < 0 ? 0 : first + size;
    last = last < 0 ? last + size : last < size ? last : size - 1;
    walk.left = first < size && first <= last ? (uint64_t)(last - first + 1) : 0;
    walk.builder.version = call->command->version;
    (void)domus_resp_add_array(&walk.builder, (uint32_t)walk.left);
    if (walk.left != 0)
        walk.place = kv_list_place_of_index((*link)->list, (uint64_t)first);
    return kv_run_walk_and_park_if_long(call, &walk);
}
