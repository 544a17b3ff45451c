/* Commands that look for elements within lists, or change them there. */
#include "list.h"

#include "kv.h"

#include <errno.h>
#include <string.h>

/* Returns the place of an element by its index, which is counted from behind if it is negative;
 * `node` is NULL if there is none. */
static struct kv_place place_of(const struct kv_list *list, int64_t index)
{
    if (index < 0)
        index += (int64_t)list->count;
    if (index < 0 || index >= (int64_t)list->count)
        return (struct kv_place){NULL, 0};
    return kv_list_seek(list, (uint64_t)index);
}

int kv_run_lindex(struct kv_call *call)
{
    struct kv_item **link;
    int64_t index;
    int there = kv_find_list(call, &link);

    if (there == 0)
        return kv_null(call->stack);
    if (there < 0)
        return kv_error(call->stack, KV_WRONG_TYPE);
    if (!kv_argument_integer(call, 2, &index))
        return kv_error(call->stack, KV_NO_INTEGER);
    struct kv_place place = place_of((*link)->list, index);
    return place.node != NULL ? kv_bytes(call->stack, kv_list_at(place)) : kv_null(call->stack);
}

int kv_run_lset(struct kv_call *call)
{
    domus_slice value = domus_resp_argument(call->command, 3);
    struct kv_memory *memory = &call->store->memory;
    struct kv_item **link;
    int64_t index;
    int there = kv_find_list(call, &link);

    if (there == 0)
        return kv_error(call->stack, "ERR no such key");
    if (there < 0)
        return kv_error(call->stack, KV_WRONG_TYPE);
    if (!kv_argument_integer(call, 2, &index))
        return kv_error(call->stack, KV_NO_INTEGER);
    struct kv_place place = place_of((*link)->list, index);
    if (place.node == NULL)
        return kv_error(call->stack, "ERR index out of range");
    int error = kv_list_insert(memory, (*link)->list, &place, domus_slice_data(value), value.size);
    if (error != 0)
        return error;
    (void)kv_list_remove(memory, (*link)->list, kv_list_next(place));
    return kv_ok(call->stack);
}

static bool is_equal(struct kv_place place, domus_slice bytes)
{
    domus_resp_bytes element = kv_list_at(place);

    return element.size == bytes.size &&
           memcmp(element.data, domus_slice_data(bytes), bytes.size) == 0;
}

int kv_run_linsert(struct kv_call *call)
{
    domus_slice where = domus_resp_argument(call->command, 2);
    domus_slice pivot = domus_resp_argument(call->command, 3);
    domus_slice value = domus_resp_argument(call->command, 4);
    struct kv_memory *memory = &call->store->memory;
    bool behind = domus_resp_is(where, "AFTER");
    struct kv_item **link;
    int error;

    if (!behind && !domus_resp_is(where, "BEFORE"))
        return kv_error(call->stack, KV_SYNTAX);
    int there = kv_find_list(call, &link);
    if (there <= 0)
        return there == 0 ? kv_integer(call->stack, 0) : kv_error(call->stack, KV_WRONG_TYPE);
    struct kv_list *list = (*link)->list;
    struct kv_place place = kv_list_seek(list, 0);
    while (place.node != NULL && !is_equal(place, pivot))
        place = kv_list_next(place);
    if (place.node == NULL)
        return kv_integer(call->stack, -1);
    if (behind)
        place = kv_list_next(place);
    if (place.node == NULL)
        error = kv_list_push(memory, list, KV_TAIL, domus_slice_data(value), value.size);
    else
        error = kv_list_insert(memory, list, &place, domus_slice_data(value), value.size);
    return error != 0 ? error : kv_integer(call->stack, (int64_t)list->count);
}

/* Remove equal elements, at most `most` of them, from the head or from the tail on. */
static int64_t remove_equal(struct kv_memory *memory, struct kv_list *list, domus_slice bytes,
                            int64_t most, bool from_tail)
{
    struct kv_place place = from_tail ? kv_list_last(list) : kv_list_seek(list, 0);
    int64_t removed = 0;

    while (place.node != NULL && removed < most) {
        struct kv_place before = from_tail ? kv_list_previous(place) : place;
        bool equal = is_equal(place, bytes);
        struct kv_place next = equal       ? kv_list_remove(memory, list, place)
                               : from_tail ? place
                                           : kv_list_next(place);
        removed += equal;
        place = from_tail ? before : next;
    }
    return removed;
}

int kv_run_lrem(struct kv_call *call)
{
    struct kv_item **link;
    int64_t count;

    if (!kv_argument_integer(call, 2, &count))
        return kv_error(call->stack, KV_NO_INTEGER);
    int there = kv_find_list(call, &link);
    if (there <= 0)
        return there == 0 ? kv_integer(call->stack, 0) : kv_error(call->stack, KV_WRONG_TYPE);
    int64_t most = count == 0 || count == INT64_MIN ? INT64_MAX : count < 0 ? -count : count;
    int64_t removed = remove_equal(&call->store->memory, (*link)->list,
                                   domus_resp_argument(call->command, 3), most, count < 0);
    if ((*link)->list->count == 0)
        kv_store_remove(call->store, link);
    return kv_integer(call->stack, removed);
}

int kv_run_ltrim(struct kv_call *call)
{
    struct kv_item **link;
    int64_t first, last;

    if (!kv_argument_integer(call, 2, &first) || !kv_argument_integer(call, 3, &last))
        return kv_error(call->stack, KV_NO_INTEGER);
    int there = kv_find_list(call, &link);
    if (there <= 0)
        return there == 0 ? kv_ok(call->stack) : kv_error(call->stack, KV_WRONG_TYPE);
    struct kv_list *list = (*link)->list;
    int64_t size = (int64_t)list->count;
    first = first >= 0 ? first : first + size < 0 ? 0 : first + size;
    last = last < 0 ? last + size : last < size ? last : size - 1;
    if (first >= size || first > last) {
        kv_store_remove(call->store, link);
        return kv_ok(call->stack);
    }
    kv_list_drop(&call->store->memory, list, KV_HEAD, (uint64_t)first);
    kv_list_drop(&call->store->memory, list, KV_TAIL, (uint64_t)(size - 1 - last));
    return kv_ok(call->stack);
}

/* --- LPOS ------------------------------------------------------------------------------------- */

struct search {
    int64_t rank; /* of the first element that counts among the equal ones; negative: from behind */
    int64_t count;   /* elements that are wanted; 0: all */
    int64_t compare; /* elements that are looked at; 0: all */
    bool many;       /* the answer is an array */
};

/* Read the option at `i`. Returns NULL, or the error. */
static const char *read_search(const struct kv_call *call, uint32_t i, struct search *search)
{
    domus_slice word = domus_resp_argument(call->command, i);
    bool is_rank = domus_resp_is(word, "RANK"), is_count = domus_resp_is(word, "COUNT");
    int64_t value;

    if (i + 1 >= call->command->count || (!is_rank && !is_count && !domus_resp_is(word, "MAXLEN")))
        return KV_SYNTAX;
    bool is_number = kv_argument_integer(call, i + 1, &value);
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

/* Add the indexes that are wanted to `builder`. Returns their number, and the first of them. */
static uint32_t search_list(const struct kv_list *list, domus_slice bytes, struct search search,
                            domus_resp_builder *builder, int64_t *ret_first)
{
    bool from_tail = search.rank < 0;
    int64_t skip = from_tail ? -search.rank - 1 : search.rank - 1;
    struct kv_place place = from_tail ? kv_list_last(list) : kv_list_seek(list, 0);
    int64_t size = (int64_t)list->count;
    int64_t most = search.compare != 0 && search.compare < size ? search.compare : size;
    uint32_t found = 0;

    for (int64_t i = 0; i < most; i++) {
        int64_t index = from_tail ? size - 1 - i : i;
        if (is_equal(place, bytes) && skip-- <= 0) {
            if (found++ == 0)
                *ret_first = index;
            (void)domus_resp_add_integer(builder, index);
            if (search.count != 0 && found == search.count)
                break;
        }
        place = from_tail ? kv_list_previous(place) : kv_list_next(place);
    }
    return found;
}

static int answer_indexes(struct kv_call *call, domus_resp_builder *indexes, uint32_t count)
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
    return kv_reply(call->stack, &builder);
}

int kv_run_lpos(struct kv_call *call)
{
    domus_resp_builder indexes = {.version = call->command->version};
    struct search search = {.rank = 1, .count = 1};
    const char *wrong = NULL;
    struct kv_item **link;
    uint32_t found = 0;
    int64_t first = 0;

    for (uint32_t i = 3; i < call->command->count && wrong == NULL; i += 2)
        wrong = read_search(call, i, &search);
    if (wrong != NULL)
        return kv_error(call->stack, wrong);
    int there = kv_find_list(call, &link);
    if (there < 0)
        return kv_error(call->stack, KV_WRONG_TYPE);
    if (there != 0)
        found = search_list((*link)->list, domus_resp_argument(call->command, 2), search, &indexes,
                            &first);
    if (search.many)
        return answer_indexes(call, &indexes, found);
    domus_resp_drop(&indexes);
    return found != 0 ? kv_integer(call->stack, first) : kv_null(call->stack);
}
