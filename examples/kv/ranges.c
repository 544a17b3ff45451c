/* Parts of strings: GETRANGE, SETRANGE and APPEND, and their bits: GETBIT and SETBIT. A string that
 * changes is built in new memory, because its old slice may still be on its way to a slow reader. A
 * large string is built in pieces. */
#include "job.h"

#include <errno.h>
#include <string.h>

/* least bytes of a part of a string that is sent by reference, without a copy */
#define SLICE_LEAST 4096u

static const char too_long[] = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/* Answer with a part of the string of an item that exists. */
static int answer_with_part_of_item_string(struct kv_call *call, const struct kv_item *item,
                                           size_t from, size_t size)
{
    domus_resp_bytes bytes = kv_item_string(item);
    domus_slice part;

    if (item->kind == KV_SHORT || size < SLICE_LEAST)
        return kv_answer_bytes_as_bulk_string(
            call->stack, (domus_resp_bytes){(const char *)bytes.data + from, size});
    int error = domus_slice_keep(item->slice, &part);
    if (error != 0)
        return error;
    part.offset += (uint32_t)from;
    part.size = (uint32_t)size;
    error = kv_answer_or_gather_answer(call->stack, &domus_slice_type, &part);
    if (error != 0)
        domus_slice_free(part);
    return error;
}

int kv_run_getrange(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    int64_t from, to;

    if (!kv_read_integer_argument(call, 2, &from) || !kv_read_integer_argument(call, 3, &to))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    if (link != NULL && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    int64_t size = link != NULL ? (int64_t)kv_item_string(*link).size : 0;
    bool is_none = from < 0 && to < 0 && from > to;
    from = from < 0 ? (from + size < 0 ? 0 : from + size) : from;
    to = to < 0 ? (to + size < 0 ? 0 : to + size) : to;
    to = to >= size ? size - 1 : to;
    if (is_none || size == 0 || from > to)
        return kv_answer_bytes_as_bulk_string(call->stack, (domus_resp_bytes){"", 0});
    return answer_with_part_of_item_string(call, *link, (size_t)from, (size_t)(to - from + 1));
}

/* Write bytes `from` to `to` of the new string of a job. The new string has the argument from byte
 * job->at on; if the old string ends before that byte, there are zeros between. */
static void write_bytes_of_new_string(const struct kv_job *job, domus_resp_bytes old,
                                      domus_slice more, uint64_t from, uint64_t to)
{
    uint64_t old_to = to < old.size ? to : old.size;
    uint64_t more_from = from > job->at ? from : job->at;
    uint64_t more_to = to < job->at + more.size ? to : job->at + more.size;

    if (from < old_to)
        memcpy(job->room + from, (const char *)old.data + from, (size_t)(old_to - from));
    if (old_to < to) {
        uint64_t zeros = old_to > from ? old_to : from;
        memset(job->room + zeros, 0, (size_t)(to - zeros));
    }
    if (more_from < more_to)
        memcpy(job->room + more_from, domus_slice_data(more) + (more_from - job->at),
               (size_t)(more_to - more_from));
}

static int write_next_piece_of_new_string(struct kv_call *call, struct kv_job *job)
{
    uint64_t from = job->written;
    uint64_t to = job->end - from > KV_JOB_COST ? from + KV_JOB_COST : job->end;

    if (job->room == NULL)
        return -ENOMEM;
    domus_page page = {&job->byte};
    domus_slice more = job->argument != 0 ? domus_resp_argument(call->command, job->argument)
                                          : (domus_slice){&page, 0, 1};
    write_bytes_of_new_string(job, kv_item_string(*job->link), more, from, to);
    job->written = to;
    return to < job->end;
}

/* Set the item of a job to its new string. Returns 0; a negative errno. */
static int set_item_to_new_string_of_job(struct kv_call *call, struct kv_job *job)
{
    domus_slice slice;

    domus_append_written(&job->bytes, (size_t)job->end);
    int error = domus_append_end(&job->bytes, &slice);
    if (error == 0 && (error = kv_item_set_slice(&call->store->memory, job->link, slice)) != 0)
        domus_slice_free(slice);
    return error;
}

static int set_new_string_and_answer_its_job(struct kv_call *call, struct kv_job *job, int error)
{
    if (error != 0) {
        domus_append_drop(&job->bytes);
        return error == -EMSGSIZE ? kv_answer_error(call->stack, KV_TOO_LARGE) : error;
    }
    error = set_item_to_new_string_of_job(call, job);
    if (error != 0)
        return error;
    return kv_answer_integer(call->stack, job->argument != 0 ? (int64_t)job->end : job->found);
}

/* Write an argument, or the byte of a job, into the string of an item from job->at on. */
static int run_job_that_overwrites_string(struct kv_call *call, struct kv_job *job, uint32_t size)
{
    uint64_t end = job->at + size;
    size_t old = kv_item_string(*job->link).size;

    job->piece = write_next_piece_of_new_string;
    job->finish = set_new_string_and_answer_its_job;
    job->end = end > old ? end : old;
    job->room = domus_append_room(&job->bytes, (size_t)job->end);
    return kv_run_job_and_park_if_long(call, job);
}

static int overwrite_string_with_argument(struct kv_call *call, struct kv_item **link, size_t at,
                                          uint32_t argument)
{
    struct kv_job job = {.link = link, .at = at, .argument = argument};

    return run_job_that_overwrites_string(call, &job,
                                          domus_resp_argument(call->command, argument).size);
}

/* Find the string that is the value of the key of a call, or add an empty one. */
static int find_or_add_string(struct kv_call *call, struct kv_item ***ret_link)
{
    *ret_link = kv_find_or_add_item(call, 0);
    return *ret_link == NULL ? -ENOMEM : 0;
}

int kv_run_setrange(struct kv_call *call)
{
    domus_slice more = domus_resp_argument(call->command, 3);
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    int64_t at;

    if (!kv_read_integer_argument(call, 2, &at))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    if (at < 0)
        return kv_answer_error(call->stack, "ERR offset is out of range");
    if (link != NULL && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (more.size == 0)
        return kv_answer_integer(call->stack,
                                 link != NULL ? (int64_t)kv_item_string(*link).size : 0);
    if (at > kv_current_limit(KV_VALUE) - more.size)
        return kv_answer_error(call->stack, too_long);
    if (!kv_store_has_memory_for_bytes(call->store, (uint64_t)at + more.size))
        return kv_answer_error(call->stack, KV_OUT_OF_MEMORY);
    int error = find_or_add_string(call, &link);
    return error != 0 ? error : overwrite_string_with_argument(call, link, (size_t)at, 3);
}

int kv_run_append(struct kv_call *call)
{
    domus_slice more = domus_resp_argument(call->command, 2);
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link != NULL && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (link != NULL &&
        (int64_t)kv_item_string(*link).size + more.size > kv_current_limit(KV_VALUE))
        return kv_answer_error(call->stack, too_long);
    int error = find_or_add_string(call, &link);
    return error != 0 ? error
                      : overwrite_string_with_argument(call, link, kv_item_string(*link).size, 2);
}

/* --- bits ------------------------------------------------------------------------------------- */

/* Read argument 2 of GETBIT and SETBIT as the place of a bit. Bit 0 of a byte is its highest. */
static bool read_bit_place_of_argument(const struct kv_call *call, int64_t *ret_byte,
                                       unsigned *ret_shift)
{
    int64_t place;

    if (!kv_read_integer_argument(call, 2, &place) || place < 0 ||
        place / 8 >= kv_current_limit(KV_VALUE))
        return false;
    *ret_byte = place / 8;
    *ret_shift = 7u - (unsigned)(place % 8);
    return true;
}

static const char bad_place[] = "ERR bit offset is not an integer or out of range";

/* Returns byte `at` of the string of an item; 0 behind its end, or if there is no item. */
static unsigned byte_of_string_or_zero(struct kv_item *const *link, int64_t at)
{
    if (link == NULL)
        return 0;
    domus_resp_bytes bytes = kv_item_string(*link);
    return at < (int64_t)bytes.size ? ((const unsigned char *)bytes.data)[at] : 0;
}

int kv_run_getbit(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    unsigned shift;
    int64_t at;

    if (!read_bit_place_of_argument(call, &at, &shift))
        return kv_answer_error(call->stack, bad_place);
    if (link != NULL && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    return kv_answer_integer(call->stack, byte_of_string_or_zero(link, at) >> shift & 1);
}

int kv_run_setbit(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    unsigned shift;
    int64_t at, bit;

    if (!read_bit_place_of_argument(call, &at, &shift))
        return kv_answer_error(call->stack, bad_place);
    if (!kv_read_integer_argument(call, 3, &bit) || bit < 0 || bit > 1)
        return kv_answer_error(call->stack, "ERR bit is not an integer or out of range");
    if (link != NULL && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (!kv_store_has_memory_for_bytes(call->store, (uint64_t)at + 1))
        return kv_answer_error(call->stack, KV_OUT_OF_MEMORY);
    unsigned old = byte_of_string_or_zero(link, at);
    struct kv_job job = {.at = (uint64_t)at,
                         .byte = (char)((old & ~(1u << shift)) | (unsigned)bit << shift),
                         .found = old >> shift & 1};
    int error = find_or_add_string(call, &job.link);
    return error != 0 ? error : run_job_that_overwrites_string(call, &job, 1);
}
