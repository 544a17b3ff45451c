/* Commands of hashes: a hash is a table of items, whose keys are the fields. */
#include "hash.h"

#include <errno.h>

int kv_find_hash_at_key_of_call(struct kv_call *call, struct kv_item ***ret_link)
{
    *ret_link = kv_find_item_at_key_of_call(call);
    if (*ret_link == NULL)
        return 0;
    return (**ret_link)->kind == KV_HASH ? 1 : -EINVAL;
}

struct kv_item **kv_find_field_in_hash(struct kv_item *item, domus_slice field)
{
    return kv_table_find(item->fields, kv_hash_of_bytes(domus_slice_data(field), field.size),
                         field);
}

int kv_find_hash_field_of_second_argument(struct kv_call *call, struct kv_item ***ret_field)
{
    struct kv_item **link;
    int there = kv_find_hash_at_key_of_call(call, &link);

    if (there < 0)
        return there;
    *ret_field =
        there != 0 ? kv_find_field_in_hash(*link, domus_resp_argument(call->command, 2)) : NULL;
    return 0;
}

static struct kv_item **add_empty_hash_at_key_of_call(struct kv_call *call)
{
    struct kv_table *fields = kv_allocate_and_count_memory(&call->store->memory, sizeof *fields);
    struct kv_item **link = fields != NULL ? kv_find_or_add_item(call, 0) : NULL;

    if (link == NULL) {
        kv_free_and_uncount_memory(&call->store->memory, fields);
        return NULL;
    }
    *fields = (struct kv_table){0};
    (*link)->kind = KV_HASH;
    (*link)->fields = fields;
    return link;
}

/* Returns whether a hash is too large for the list form of Redis, after it got this field. */
static bool is_hash_too_large_for_redis_list(const struct kv_table *fields, domus_slice field,
                                             domus_slice value)
{
    int64_t bytes = kv_current_limit(KV_HASH_VALUE);

    return field.size > bytes || value.size > bytes ||
           (int64_t)fields->count > kv_current_limit(KV_HASH_ENTRIES);
}

/* Set a field of the hash in `item`. Returns 1 if the field is new; 0 if it was there; -ENOMEM. */
static int set_hash_field(struct kv_call *call, struct kv_item *item, domus_slice field,
                          domus_slice value)
{
    struct kv_memory *memory = &call->store->memory;
    uint32_t room = value.size <= DOMUS_RESP_SHORT_MAX ? value.size : 0;
    struct kv_item **link = kv_find_field_in_hash(item, field);
    bool is_new = link == NULL;

    if (is_new) {
        uint64_t hash = kv_hash_of_bytes(domus_slice_data(field), field.size);
        if (kv_table_add(item->fields, memory, hash, field, room) == NULL)
            return -ENOMEM;
        link = kv_table_find(item->fields, hash, field);
    }
    int error = kv_item_set_string(memory, link, domus_slice_data(value), value.size);
    if (error != 0 && is_new)
        kv_table_remove(item->fields, memory, link);
    if (item->size == 0)
        item->size = is_hash_too_large_for_redis_list(item->fields, field, value);
    return error != 0 ? error : is_new;
}

int kv_set_field_of_hash_at_key(struct kv_call *call, domus_slice field, domus_slice value)
{
    struct kv_item **link;

    if (kv_find_hash_at_key_of_call(call, &link) == 0 &&
        (link = add_empty_hash_at_key_of_call(call)) == NULL)
        return -ENOMEM;
    int result = set_hash_field(call, *link, field, value);
    if ((*link)->fields->count == 0)
        /* remove the key again, because a hash without fields must not exist */
        kv_store_remove(call->store, link);
    return result;
}

static int set_all_fields_of_hset_command(struct kv_call *call, int64_t *ret_added)
{
    struct kv_item **link;
    int there = kv_find_hash_at_key_of_call(call, &link);
    int result = 0;

    if (there < 0)
        return -EINVAL;
    if (there == 0 && (link = add_empty_hash_at_key_of_call(call)) == NULL)
        return -ENOMEM;
    for (uint32_t i = 2; i + 1 < call->command->count && result >= 0; i += 2) {
        result = set_hash_field(call, *link, domus_resp_argument(call->command, i),
                                domus_resp_argument(call->command, i + 1));
        *ret_added += result > 0;
    }
    if ((*link)->fields->count == 0)
        kv_store_remove(call->store, link);
    return result < 0 ? result : 0;
}

static int run_hset_or_hmset(struct kv_call *call, bool with_count)
{
    int64_t added = 0;

    if (call->command->count % 2 != 0)
        return kv_answer_error(call->stack,
                               with_count ? "ERR wrong number of arguments for 'hset' command"
                                          : "ERR wrong number of arguments for 'hmset' command");
    int error = set_all_fields_of_hset_command(call, &added);
    if (error == -EINVAL)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (error != 0)
        return error;
    return with_count ? kv_answer_integer(call->stack, added) : kv_answer_ok(call->stack);
}

int kv_run_hset(struct kv_call *call)
{
    return run_hset_or_hmset(call, true);
}

int kv_run_hmset(struct kv_call *call)
{
    return run_hset_or_hmset(call, false);
}

int kv_run_hget(struct kv_call *call)
{
    struct kv_item **field;

    if (kv_find_hash_field_of_second_argument(call, &field) != 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return field != NULL ? kv_answer_item_as_bulk_string(call->stack, *field)
                         : kv_answer_null(call->stack);
}

int kv_run_hexists(struct kv_call *call)
{
    struct kv_item **field;

    if (kv_find_hash_field_of_second_argument(call, &field) != 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return kv_answer_integer(call->stack, field != NULL);
}

int kv_run_hlen(struct kv_call *call)
{
    struct kv_item **link;
    int there = kv_find_hash_at_key_of_call(call, &link);

    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return kv_answer_integer(call->stack, there != 0 ? (int64_t)(*link)->fields->count : 0);
}

int kv_run_hdel(struct kv_call *call)
{
    struct kv_item **link;
    int there = kv_find_hash_at_key_of_call(call, &link);
    int64_t count = 0;

    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    for (uint32_t i = 2; there != 0 && i < call->command->count; i++) {
        struct kv_item **field =
            kv_find_field_in_hash(*link, domus_resp_argument(call->command, i));
        if (field == NULL)
            continue;
        kv_table_remove((*link)->fields, &call->store->memory, field);
        count++;
    }
    if (there != 0 && (*link)->fields->count == 0)
        kv_store_remove(call->store, link);
    return kv_answer_integer(call->stack, count);
}

int kv_run_hmget(struct kv_call *call)
{
    domus_resp_builder builder = {.version = call->command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    struct kv_item **link;
    int there = kv_find_hash_at_key_of_call(call, &link);

    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    (void)domus_resp_add_array(&builder, call->command->count - 2);
    for (uint32_t i = 2; i < call->command->count; i++) {
        struct kv_item **field =
            there != 0 ? kv_find_field_in_hash(*link, domus_resp_argument(call->command, i)) : NULL;
        domus_resp_bytes value = field != NULL ? kv_item_string(*field) : (domus_resp_bytes){0};
        (void)(field != NULL ? domus_resp_add_bulk(&builder, value.data, value.size)
                             : domus_resp_add_null(&builder));
    }
    return kv_answer_what_builder_has_made(call->stack, &builder);
}
