/* Commands that move and copy values from one key to another. */
#include "hash.h"
#include "job.h"

#include <errno.h>
#include <string.h>

/* A value that is moved or copied from one key to another. */
struct value {
    uint8_t kind;
    bool is_large; /* whether the value is a hash that Redis would keep as a table (hash.h) */
    uint64_t expires_ms;
    union {
        domus_slice slice; /* the bytes of a string, for both kinds of strings */
        struct kv_list *list;
        struct kv_table *fields;
    };
};

static void free_value_taken_from_item(struct kv_memory *memory, struct value *value)
{
    struct kv_item item = {.kind = value->kind, .slice = value->slice};

    if (value->kind == KV_SHORT || value->kind == KV_LONG)
        domus_slice_free(value->slice);
    else
        kv_item_free_value(memory, &item);
}

/* Set the key that is argument `i` to this value. Returns 0; -ENOMEM, and the value still belongs
 * to the caller. */
static int put_value_at_key(struct kv_call *call, uint32_t i, const struct value *value)
{
    struct kv_memory *memory = &call->store->memory;

    kv_make_argument_key_of_call(call, i);
    struct kv_item **link = kv_find_or_add_item(call, DOMUS_RESP_SHORT_MAX);
    if (link == NULL)
        return -ENOMEM;
    kv_item_free_value(memory, *link);
    if (value->kind == KV_SHORT || value->kind == KV_LONG) {
        int error = kv_item_set_slice(memory, link, value->slice);
        if (error != 0)
            return error;
    } else {
        /* copy the value: the slice is the largest member of the union, so this copies any of
         * them */
        (*link)->slice = value->slice;
        (*link)->kind = value->kind;
        (*link)->size = value->is_large;
    }
    kv_store_set_expiry(call->store, *link, value->expires_ms);
    return 0;
}

static bool are_two_arguments_equal(const struct kv_call *call, uint32_t i, uint32_t j)
{
    domus_slice other = domus_resp_argument(call->command, j);

    return domus_slice_equals(domus_resp_argument(call->command, i), domus_slice_data(other),
                              other.size);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Move the value of the first key to the second one. Only short strings are copied on the way, and
 * long ones are slices, so nothing is lost if there is no memory. */
static int move_value_of_first_key_to_second(struct kv_call *call)
{
    struct kv_item *item = *kv_find_item_at_key_of_call(call);
    struct value value = {.kind = item->kind, .expires_ms = item->expires_ms};
    value.is_large = kv_is_hash_a_table_in_redis(item);
    bool is_string = kv_is_string(item);
    int error = 0;

    if (is_string)
        error = kv_item_copy_or_share_string(item, &value.slice);
    else
        value.slice = item->slice;
    if (error != 0)
        return error;
    error = put_value_at_key(call, 2, &value);
    if (error != 0)
        return error;
    kv_make_argument_key_of_call(call, 1);
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    if (!is_string)
        /* take the value away from the old item, which becomes an empty string */
        (*link)->kind = KV_SHORT, (*link)->size = 0;
    kv_store_remove(call->store, link);
    return 0;
}

static int rename_first_key_to_second(struct kv_call *call, bool only_new)
{
    if (kv_find_item_at_key_of_call(call) == NULL)
        return kv_answer_error(call->stack, "ERR no such key");
    if (are_two_arguments_equal(call, 1, 2))
        return only_new ? kv_answer_integer(call->stack, 0) : kv_answer_ok(call->stack);
    kv_make_argument_key_of_call(call, 2);
    if (only_new && kv_find_item_at_key_of_call(call) != NULL)
        return kv_answer_integer(call->stack, 0);
    kv_make_argument_key_of_call(call, 1);
    int error = move_value_of_first_key_to_second(call);
    if (error != 0)
        return error;
    return only_new ? kv_answer_integer(call->stack, 1) : kv_answer_ok(call->stack);
}

int kv_run_rename(struct kv_call *call)
{
    return rename_first_key_to_second(call, false);
}

int kv_run_renamenx(struct kv_call *call)
{
    return rename_first_key_to_second(call, true);
}

/* --- copying ---------------------------------------------------------------------------------- */

/* Do a piece of COPY: copy elements of a list. Returns 1 if there are more; 0; -ENOMEM. */
static int copy_next_elements_of_list(struct kv_memory *memory, struct kv_job *job)
{
    int error = 0;

    for (; job->place.node != NULL && error == 0; job->place = kv_list_place_behind(job->place)) {
        domus_resp_bytes element = kv_list_element_at_place(job->place);
        if (kv_job_add_cost_and_is_piece_full(job, element.size))
            return 1;
        error = kv_list_add_element_at_end(memory, job->copy, KV_TAIL, element.data,
                                           (uint32_t)element.size);
    }
    return error;
}

static int copy_field_to_other_hash(struct kv_memory *memory, struct kv_table *to,
                                    const struct kv_item *item)
{
    domus_slice field = {&(domus_page){item->bytes}, 0, item->key_size};
    domus_resp_bytes value = kv_item_string(item);
    uint32_t room = item->kind == KV_SHORT ? item->size : 0;

    if (kv_table_add(to, memory, item->hash, field, room) == NULL)
        return -ENOMEM;
    return kv_item_set_string(memory, kv_table_find(to, item->hash, field), value.data,
                              (uint32_t)value.size);
}

static int copy_next_fields_of_hash(struct kv_memory *memory, const struct kv_table *from,
                                    struct kv_job *job)
{
    for (; job->at < kv_table_count_buckets(from); job->at++) {
        if (kv_job_add_cost_and_is_piece_full(job, 0))
            return 1;
        for (const struct kv_item *item = kv_table_first_item_of_bucket(from, job->at);
             item != NULL; item = item->next) {
            int error = copy_field_to_other_hash(memory, job->copy, item);
            if (error != 0)
                return error;
            (void)kv_job_add_cost_and_is_piece_full(job, kv_item_string(item).size);
        }
    }
    return 0;
}

static int copy_next_part_of_list_or_hash(struct kv_call *call, struct kv_job *job)
{
    const struct kv_item *item = *job->link;

    if (kv_is_string(item))
        return 0;
    if (job->copy == NULL)
        return -ENOMEM;
    return item->kind == KV_LIST
               ? copy_next_elements_of_list(&call->store->memory, job)
               : copy_next_fields_of_hash(&call->store->memory, item->fields, job);
}

static int put_copy_at_second_key_and_answer(struct kv_call *call, struct kv_job *job, int error)
{
    const struct kv_item *item = *job->link;
    struct kv_memory *memory = &call->store->memory;
    struct value value = {.kind = item->kind,
                          .is_large = kv_is_hash_a_table_in_redis(item),
                          .expires_ms = item->expires_ms};

    if (value.kind == KV_LIST)
        value.list = job->copy;
    else if (value.kind == KV_HASH)
        value.fields = job->copy;
    else if (error == 0)
        error = kv_item_copy_or_share_string(item, &value.slice);
    /* Making the copy has counted as a change, but the key that is copied has not changed. */
    call->store->noted = memory->changes;
    if (error == 0)
        error = put_value_at_key(call, 2, &value);
    if (error == 0)
        return kv_answer_integer(call->stack, 1);
    if (job->copy != NULL || kv_is_string(item))
        free_value_taken_from_item(memory, &value);
    return error == -EMSGSIZE ? kv_answer_error(call->stack, KV_TOO_LARGE) : error;
}

/* Copy the value of the item at `link` to the second key. */
static int begin_job_of_copy_to_second_key(struct kv_call *call, struct kv_item **link)
{
    struct kv_job job = {.piece = copy_next_part_of_list_or_hash,
                         .finish = put_copy_at_second_key_and_answer,
                         .link = link};
    struct kv_memory *memory = &call->store->memory;
    struct kv_table *fields;

    if ((*link)->kind == KV_LIST) {
        job.copy = kv_list_new(memory);
        job.place = kv_list_place_of_index((*link)->list, 0);
    } else if ((*link)->kind == KV_HASH) {
        job.copy = fields = kv_allocate_and_count_memory(memory, sizeof *fields);
        if (fields != NULL)
            *fields = (struct kv_table){0};
    }
    return kv_run_job_and_park_if_long(call, &job);
}

/* Read the options DB and REPLACE of COPY. Returns NULL, or the text of the error. */
static const char *read_copy_options(const struct kv_call *call, bool *ret_replaces)
{
    int64_t database;

    for (uint32_t i = 3; i < call->command->count; i++) {
        domus_slice word = domus_resp_argument(call->command, i);
        if (domus_resp_is(word, "REPLACE"))
            *ret_replaces = true;
        else if (!domus_resp_is(word, "DB") || ++i == call->command->count)
            return KV_SYNTAX;
        else if (!kv_read_integer_argument(call, i, &database))
            return KV_NO_INTEGER;
        else if (database != 0)
            return "ERR DB index is out of range";
    }
    return NULL;
}

int kv_run_copy(struct kv_call *call)
{
    bool replaces = false;
    const char *wrong = read_copy_options(call, &replaces);

    if (wrong == NULL && are_two_arguments_equal(call, 1, 2))
        wrong = "ERR source and destination objects are the same";
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    kv_make_argument_key_of_call(call, 2);
    bool is_taken = kv_find_item_at_key_of_call(call) != NULL && !replaces;
    kv_make_argument_key_of_call(call, 1);
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    if (link == NULL || is_taken)
        return kv_answer_integer(call->stack, 0);
    return begin_job_of_copy_to_second_key(call, link);
}
