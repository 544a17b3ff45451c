/* More commands of hashes: counting in fields, and random fields. */
#include "hash.h"
#include "job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int kv_run_hsetnx(struct kv_call *call)
{
    struct kv_item **field;

    if (kv_find_hash_field_of_second_argument(call, &field) != 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (field != NULL)
        return kv_answer_integer(call->stack, 0);
    int error = kv_set_field_of_hash_at_key(call, domus_resp_argument(call->command, 2),
                                            domus_resp_argument(call->command, 3));
    return error < 0 ? error : kv_answer_integer(call->stack, 1);
}

int kv_run_hstrlen(struct kv_call *call)
{
    struct kv_item **field;

    if (kv_find_hash_field_of_second_argument(call, &field) != 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return kv_answer_integer(call->stack, field != NULL ? (int64_t)kv_item_string(*field).size : 0);
}

/* Set the field of a call to a text that was computed, and is no argument of the command. */
static int set_field_of_call_to_made_text(struct kv_call *call, char *text, uint32_t size)
{
    domus_page page = {text};
    int error = kv_set_field_of_hash_at_key(call, domus_resp_argument(call->command, 2),
                                            (domus_slice){&page, 0, size});

    return error < 0 ? error : 0;
}

int kv_run_hincrby(struct kv_call *call)
{
    struct kv_item **field;
    int64_t value = 0, by;
    char text[21];

    if (!kv_read_integer_argument(call, 3, &by))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    if (kv_find_hash_field_of_second_argument(call, &field) != 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (field != NULL) {
        domus_resp_bytes bytes = kv_item_string(*field);
        if (!kv_read_integer_in_text(bytes.data, bytes.size, &value))
            return kv_answer_error(call->stack, "ERR hash value is not an integer");
    }
    if (__builtin_add_overflow(value, by, &value))
        return kv_answer_error(call->stack, "ERR increment or decrement would overflow");
    int error = set_field_of_call_to_made_text(call, text, kv_write_integer_as_text(text, value));
    return error != 0 ? error : kv_answer_integer(call->stack, value);
}

int kv_run_hincrbyfloat(struct kv_call *call)
{
    domus_slice argument = domus_resp_argument(call->command, 3);
    struct kv_item **field;
    char text[KV_FLOAT_MAX];
    long double value = 0, by;

    if (!kv_read_float_of_resp_bytes((domus_resp_bytes){domus_slice_data(argument), argument.size},
                                     &by))
        return kv_answer_error(call->stack, "ERR value is not a valid float");
    if (isnan(by) || isinf(by))
        return kv_answer_error(call->stack, "ERR value is NaN or Infinity");
    if (kv_find_hash_field_of_second_argument(call, &field) != 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (field != NULL && !kv_read_float_of_resp_bytes(kv_item_string(*field), &value))
        return kv_answer_error(call->stack, "ERR hash value is not a float");
    value += by;
    if (isnan(value) || isinf(value))
        return kv_answer_error(call->stack, "ERR increment would produce NaN or Infinity");
    uint32_t size = kv_print_float(text, value);
    int error = set_field_of_call_to_made_text(call, text, size);
    return error != 0 ? error
                      : kv_answer_bytes_as_bulk_string(call->stack, (domus_resp_bytes){text, size});
}

/* --- random fields ---------------------------------------------------------------------------- */

static void add_field_to_answer(domus_resp_builder *builder, const struct kv_item *item,
                                bool with_value)
{
    domus_resp_bytes value = kv_item_string(item);

    if (with_value && builder->version == 3)
        (void)domus_resp_add_array(builder, 2);
    (void)domus_resp_add_bulk(builder, item->bytes, item->key_size);
    if (with_value)
        (void)domus_resp_add_bulk(builder, value.data, value.size);
}

/* Add `count` random fields to the answer of HRANDFIELD; a field may be chosen again. */
static void add_random_fields(domus_resp_builder *builder, const struct kv_table *fields,
                              uint32_t count, bool with_values)
{
    (void)domus_resp_add_array(builder, with_values && builder->version != 3 ? 2 * count : count);
    while (count-- > 0 && builder->bytes.error == 0)
        add_field_to_answer(builder, kv_table_random_item(fields), with_values);
}

/* Choose job->found different random fields for HRANDFIELD. Each of the job->left fields that were
 * not considered yet has the same chance. */
static int choose_next_different_random_fields(struct kv_call *call, struct kv_job *job)
{
    const struct kv_table *fields = (*job->link)->fields;

    (void)call;
    for (; job->found != 0 && job->at < kv_table_count_buckets(fields); job->at++) {
        if (kv_job_add_cost_and_is_piece_full(job, 0))
            return 1;
        for (struct kv_item *item = kv_table_first_item_of_bucket(fields, job->at);
             item != NULL && job->found != 0; item = item->next, job->left--) {
            if (kv_random_number() % (uint64_t)job->left >= (uint64_t)job->found)
                continue;
            add_field_to_answer(&job->builder, item, job->is_set);
            (void)kv_job_add_cost_and_is_piece_full(job, kv_item_string(item).size);
            job->found--;
        }
    }
    return job->builder.bytes.error;
}

static int answer_hrandfield_at_end_of_job(struct kv_call *call, struct kv_job *job, int error)
{
    bool is_too_large = error == -EMSGSIZE && job->builder.bytes.error == 0;

    if (error == 0)
        return kv_answer_what_builder_has_made(call->stack, &job->builder);
    domus_resp_drop(&job->builder);
    return is_too_large ? kv_answer_error(call->stack, KV_TOO_LARGE) : error;
}

static int begin_job_of_different_random_fields(struct kv_call *call, struct kv_item **link,
                                                uint64_t count, domus_resp_builder *builder,
                                                bool with_values)
{
    struct kv_job job = {.piece = choose_next_different_random_fields,
                         .finish = answer_hrandfield_at_end_of_job,
                         .link = link};
    uint64_t all = (*link)->fields->count;

    if (count > all)
        count = all;
    (void)domus_resp_add_array(
        builder, (uint32_t)(with_values && builder->version != 3 ? 2 * count : count));
    /* reserved memory that is not written to costs nothing (walk.c) */
    if (count >= KV_JOB_COST / 64) {
        uint64_t most = 2 * call->store->memory.used_bytes;
        uint64_t free = builder->bytes.size_max - builder->bytes.size;
        (void)domus_append_room(&builder->bytes, (size_t)(most < free ? most : free));
    }
    job.builder = *builder;
    job.is_set = with_values;
    job.left = (int64_t)all;
    job.found = (int64_t)count;
    return kv_run_job_and_park_if_long(call, &job);
}

int kv_run_hrandfield(struct kv_call *call)
{
    domus_resp_builder builder = {.version = call->command->version};
    uint32_t arguments = call->command->count;
    bool with_values = arguments == 4;
    struct kv_item **link;
    int64_t count = 0;

    builder.bytes.size_max = kv_most_bytes_of_one_answer();
    if (arguments > 2 && !kv_read_integer_argument(call, 2, &count))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    if (arguments > 4 ||
        (with_values && !domus_resp_is(domus_resp_argument(call->command, 3), "WITHVALUES")))
        return kv_answer_error(call->stack, KV_SYNTAX);
    if (count < -KV_FIELDS_MOST || count > INT64_MAX / 2)
        return kv_answer_error(call->stack, "ERR value is out of range");
    int there = kv_find_hash_at_key_of_call(call, &link);
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (arguments == 2) {
        const struct kv_item *item = there != 0 ? kv_table_random_item((*link)->fields) : NULL;
        return item != NULL ? kv_answer_bytes_as_bulk_string(
                                  call->stack, (domus_resp_bytes){item->bytes, item->key_size})
                            : kv_answer_null(call->stack);
    }
    if (there == 0)
        (void)domus_resp_add_array(&builder, 0);
    else if (count < 0)
        add_random_fields(&builder, (*link)->fields, (uint32_t)-count, with_values);
    else
        return begin_job_of_different_random_fields(call, link, (uint64_t)count, &builder,
                                                    with_values);
    return kv_answer_what_builder_has_made(call->stack, &builder);
}
