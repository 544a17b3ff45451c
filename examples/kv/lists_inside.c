/* Commands that look for elements in lists, or change elements in the middle. */
#include "job.h"

#include <errno.h>
#include <string.h>

/* Returns the place of an element by its index; a negative index counts from the tail. `node` is
 * NULL if there is none. */
static struct kv_place place_of_signed_list_index(const struct kv_list *list, int64_t index)
{
    if (index < 0)
        index += (int64_t)list->count;
    if (index < 0 || index >= (int64_t)list->count)
        return (struct kv_place){NULL, 0};
    return kv_list_place_of_index(list, (uint64_t)index);
}

int kv_run_lindex(struct kv_call *call)
{
    struct kv_item **link;
    int64_t index;
    int there = kv_find_list_at_key_of_call(call, &link);

    if (there == 0)
        return kv_answer_null(call->stack);
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (!kv_read_integer_argument(call, 2, &index))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    struct kv_place place = place_of_signed_list_index((*link)->list, index);
    return place.node != NULL
               ? kv_answer_bytes_as_bulk_string(call->stack, kv_list_element_at_place(place))
               : kv_answer_null(call->stack);
}

int kv_run_lset(struct kv_call *call)
{
    domus_slice value = domus_resp_argument(call->command, 3);
    struct kv_memory *memory = &call->store->memory;
    struct kv_item **link;
    int64_t index;
    int there = kv_find_list_at_key_of_call(call, &link);

    if (there == 0)
        return kv_answer_error(call->stack, "ERR no such key");
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (!kv_read_integer_argument(call, 2, &index))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    struct kv_place place = place_of_signed_list_index((*link)->list, index);
    if (place.node == NULL)
        return kv_answer_error(call->stack, "ERR index out of range");
    int error = kv_list_insert_before_place(memory, (*link)->list, &place, domus_slice_data(value),
                                            value.size);
    if (error != 0)
        return error;
    (void)kv_list_remove_element_at_place(memory, (*link)->list, kv_list_place_behind(place));
    return kv_answer_ok(call->stack);
}

static bool is_list_element_equal_to_bytes(struct kv_place place, domus_slice bytes)
{
    domus_resp_bytes element = kv_list_element_at_place(place);

    return element.size == bytes.size &&
           memcmp(element.data, domus_slice_data(bytes), bytes.size) == 0;
}

static int answer_error_of_failed_list_job(const struct kv_call *call, int error)
{
    return error == -EMSGSIZE ? kv_answer_error(call->stack, KV_TOO_LARGE) : error;
}

static int look_for_pivot_in_piece_of_list(struct kv_call *call, struct kv_job *job)
{
    domus_slice pivot = domus_resp_argument(call->command, 3);

    for (; job->place.node != NULL; job->place = kv_list_place_behind(job->place)) {
        if (kv_job_add_cost_and_is_piece_full(job, 0))
            return 1;
        if (is_list_element_equal_to_bytes(job->place, pivot)) {
            job->found = 1;
            return 0;
        }
    }
    return 0;
}

/* End an LINSERT: insert the element beside the pivot, if the pivot was found. */
static int end_linsert_and_insert_at_pivot(struct kv_call *call, struct kv_job *job, int error)
{
    domus_slice value = domus_resp_argument(call->command, 4);
    struct kv_memory *memory = &call->store->memory;
    struct kv_list *list = (*job->link)->list;
    struct kv_place place = job->place;

    if (error != 0)
        return answer_error_of_failed_list_job(call, error);
    if (job->found == 0)
        return kv_answer_integer(call->stack, -1);
    if (job->is_set)
        place = kv_list_place_behind(place);
    if (place.node == NULL)
        error =
            kv_list_add_element_at_end(memory, list, KV_TAIL, domus_slice_data(value), value.size);
    else
        error =
            kv_list_insert_before_place(memory, list, &place, domus_slice_data(value), value.size);
    return error != 0 ? error : kv_answer_integer(call->stack, (int64_t)list->count);
}

int kv_run_linsert(struct kv_call *call)
{
    domus_slice where = domus_resp_argument(call->command, 2);
    struct kv_job job = {.piece = look_for_pivot_in_piece_of_list,
                         .finish = end_linsert_and_insert_at_pivot};

    job.is_set = domus_resp_is(where, "AFTER");
    if (!job.is_set && !domus_resp_is(where, "BEFORE"))
        return kv_answer_error(call->stack, KV_SYNTAX);
    int there = kv_find_list_at_key_of_call(call, &job.link);
    if (there <= 0)
        return there == 0 ? kv_answer_integer(call->stack, 0)
                          : kv_answer_error(call->stack, KV_WRONG_TYPE);
    job.place = kv_list_place_of_index((*job.link)->list, 0);
    return kv_run_job_and_park_if_long(call, &job);
}

/* Do a piece of LREM: remove elements that are equal to the argument, at most job->left of them,
 * from the head or from the tail on. */
static int remove_equal_in_piece_of_list(struct kv_call *call, struct kv_job *job)
{
    domus_slice bytes = domus_resp_argument(call->command, 3);
    struct kv_memory *memory = &call->store->memory;
    struct kv_list *list = (*job->link)->list;

    while (job->place.node != NULL && job->found < job->left) {
        struct kv_place place = job->place;
        if (kv_job_add_cost_and_is_piece_full(job, 0))
            return 1;
        struct kv_place before = job->from_tail ? kv_list_place_before(place) : place;
        bool equal = is_list_element_equal_to_bytes(place, bytes);
        struct kv_place next = equal ? kv_list_remove_element_at_place(memory, list, place)
                               : job->from_tail ? place
                                                : kv_list_place_behind(place);
        job->found += equal;
        job->place = job->from_tail ? before : next;
    }
    return 0;
}

static int end_job_of_lrem_and_answer(struct kv_call *call, struct kv_job *job, int error)
{
    if ((*job->link)->list->count == 0)
        kv_store_remove(call->store, job->link);
    return error != 0 ? answer_error_of_failed_list_job(call, error)
                      : kv_answer_integer(call->stack, job->found);
}

int kv_run_lrem(struct kv_call *call)
{
    struct kv_job job = {.piece = remove_equal_in_piece_of_list,
                         .finish = end_job_of_lrem_and_answer};
    int64_t count;

    if (!kv_read_integer_argument(call, 2, &count))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    int there = kv_find_list_at_key_of_call(call, &job.link);
    if (there <= 0)
        return there == 0 ? kv_answer_integer(call->stack, 0)
                          : kv_answer_error(call->stack, KV_WRONG_TYPE);
    struct kv_list *list = (*job.link)->list;
    job.left = count == 0 || count == INT64_MIN ? INT64_MAX : count < 0 ? -count : count;
    job.from_tail = count < 0;
    job.place = job.from_tail ? kv_list_last_place(list) : kv_list_place_of_index(list, 0);
    return kv_run_job_and_park_if_long(call, &job);
}

int kv_run_ltrim(struct kv_call *call)
{
    struct kv_item **link;
    int64_t first, last;

    if (!kv_read_integer_argument(call, 2, &first) || !kv_read_integer_argument(call, 3, &last))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    int there = kv_find_list_at_key_of_call(call, &link);
    if (there <= 0)
        return there == 0 ? kv_answer_ok(call->stack) : kv_answer_error(call->stack, KV_WRONG_TYPE);
    struct kv_list *list = (*link)->list;
    int64_t size = (int64_t)list->count;
    first = first >= 0 ? first : first + size < 0 ? 0 : first + size;
    last = last < 0 ? last + size : last < size ? last : size - 1;
    if (first >= size || first > last) {
        kv_store_remove(call->store, link);
        return kv_answer_ok(call->stack);
    }
    kv_list_remove_elements_at_end(&call->store->memory, list, KV_HEAD, (uint64_t)first);
    kv_list_remove_elements_at_end(&call->store->memory, list, KV_TAIL,
                                   (uint64_t)(size - 1 - last));
    return kv_answer_ok(call->stack);
}

/* --- LPOS ------------------------------------------------------------------------------------- */

struct search {
    /* number of the equal element that counts first; negative: counted from the tail */
    int64_t rank;
    int64_t count;   /* number of equal elements that are wanted; 0: all */
    int64_t compare; /* number of elements that are compared at most; 0: all */
    bool many;       /* whether the answer is an array, and not one index */
};

/* Read the option of LPOS at argument `i`. Returns NULL, or the text of the error. */
static const char *read_lpos_option(const struct kv_call *call, uint32_t i, struct search *search)
{
    domus_slice word = domus_resp_argument(call->command, i);
    bool is_rank = domus_resp_is(word, "RANK"), is_count = domus_resp_is(word, "COUNT");
    int64_t value;

    if (i + 1 >= call->command->count || (!is_rank && !is_count && !domus_resp_is(word, "MAXLEN")))
        return KV_SYNTAX;
    bool is_number = kv_read_integer_argument(call, i + 1, &value);
    if (is_rank) {
        search->rank = value;
        return !is_number   ? KV_NO_INTEGER
               : value == 0 ? "ERR RANK can't be zero: use 1 to start from the first match, 2 from "
                              "the second ... or use negative to start from the end of the list"
               : value == INT64_MIN ? "ERR value is out of range"
                                    : NULL;
    }
    if (is_count) {
        search->count = value;
        search->many = true;
        return is_number && value >= 0 ? NULL : "ERR COUNT can't be negative";
    }
    search->compare = value;
    return is_number && value >= 0 ? NULL : "ERR MAXLEN can't be negative";
}

/* Do a piece of LPOS: add the indexes of the wanted elements to the builder. */
static int add_equal_indexes_of_piece_of_list(struct kv_call *call, struct kv_job *job)
{
    domus_slice bytes = domus_resp_argument(call->command, 2);
    int64_t size = (int64_t)(*job->link)->list->count;

    for (; job->at < job->end; job->at++) {
        int64_t index = job->from_tail ? size - 1 - (int64_t)job->at : (int64_t)job->at;
        if (kv_job_add_cost_and_is_piece_full(job, 0))
            return 1;
        if (is_list_element_equal_to_bytes(job->place, bytes) && job->skip-- <= 0) {
            if (job->found++ == 0)
                job->first = index;
            (void)domus_resp_add_integer(&job->builder, index);
            if (job->left != 0 && job->found == job->left)
                return 0;
        }
        job->place =
            job->from_tail ? kv_list_place_before(job->place) : kv_list_place_behind(job->place);
    }
    return 0;
}

static int answer_lpos_with_found_indexes(struct kv_call *call, domus_resp_builder *indexes,
                                          uint32_t count)
{
    domus_resp_builder builder = {.version = call->command->version};
    domus_resp_reply part = {{NULL, 0, 0}, 0, 0, {0}};
    int error = count != 0 ? domus_resp_end(indexes, &part) : 0;

    if (error != 0)
        return error;
    (void)domus_resp_add_array(&builder, count);
    if (count != 0)
        (void)domus_resp_add_reply(&builder, &part);
    domus_slice_free(part.bytes);
    return kv_answer_what_builder_has_made(call->stack, &builder);
}

static int end_job_of_lpos_and_answer(struct kv_call *call, struct kv_job *job, int error)
{
    if (error == 0 && job->is_set)
        return answer_lpos_with_found_indexes(call, &job->builder, (uint32_t)job->found);
    domus_resp_drop(&job->builder);
    if (error != 0)
        return answer_error_of_failed_list_job(call, error);
    return job->found != 0 ? kv_answer_integer(call->stack, job->first)
                           : kv_answer_null(call->stack);
}

/* Set a job up to search a list for LPOS. */
static void set_up_job_of_lpos(struct kv_job *job, const struct kv_list *list,
                               const struct search *search)
{
    int64_t size = (int64_t)list->count;

    job->from_tail = search->rank < 0;
    job->skip = job->from_tail ? -search->rank - 1 : search->rank - 1;
    job->left = search->count;
    job->place = job->from_tail ? kv_list_last_place(list) : kv_list_place_of_index(list, 0);
    job->end = (uint64_t)(search->compare != 0 && search->compare < size ? search->compare : size);
}

int kv_run_lpos(struct kv_call *call)
{
    struct kv_job job = {.piece = add_equal_indexes_of_piece_of_list,
                         .finish = end_job_of_lpos_and_answer};
    struct search search = {.rank = 1, .count = 1};
    const char *wrong = NULL;

    for (uint32_t i = 3; i < call->command->count && wrong == NULL; i += 2)
        wrong = read_lpos_option(call, i, &search);
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    int there = kv_find_list_at_key_of_call(call, &job.link);
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    job.builder.version = call->command->version;
    job.is_set = search.many;
    if (there == 0)
        return end_job_of_lpos_and_answer(call, &job, 0);
    set_up_job_of_lpos(&job, (*job.link)->list, &search);
    return kv_run_job_and_park_if_long(call, &job);
}
