/* Parts of strings: GETRANGE, SETRANGE and APPEND. A string that changes is put together in memory
 * of its own, because its slice may be on its way to a slow reader. */
#include "kv.h"

#include <errno.h>
#include <string.h>

#define SLICE_LEAST 4096u /* bytes from which on a part is sent by reference */

static const char too_long[] = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

/* Answer with a part of a string that is there. */
static int answer_part(struct kv_call *call, const struct kv_item *item, size_t from, size_t size)
{
    domus_resp_bytes bytes = kv_item_string(item);
    domus_slice part;

    if (item->kind == KV_SHORT || size < SLICE_LEAST)
        return kv_bytes(call->stack, (domus_resp_bytes){(const char *)bytes.data + from, size});
    int error = domus_slice_keep(item->slice, &part);
    if (error != 0)
        return error;
    part.offset += (uint32_t)from;
    part.size = (uint32_t)size;
    error = kv_answer(call->stack, &domus_slice_type, &part);
    if (error != 0)
        domus_slice_free(part);
    return error;
}

int kv_run_getrange(struct kv_call *call)
{
    struct kv_item **link = kv_find(call);
    int64_t from, to;

    if (!kv_argument_integer(call, 2, &from) || !kv_argument_integer(call, 3, &to))
        return kv_error(call->stack, KV_NO_INTEGER);
    if (link != NULL && !kv_is_string(*link))
        return kv_error(call->stack, KV_WRONG_TYPE);
    int64_t size = link != NULL ? (int64_t)kv_item_string(*link).size : 0;
    bool is_none = from < 0 && to < 0 && from > to;
    from = from < 0 ? (from + size < 0 ? 0 : from + size) : from;
    to = to < 0 ? (to + size < 0 ? 0 : to + size) : to;
    to = to >= size ? size - 1 : to;
    if (is_none || size == 0 || from > to)
        return kv_bytes(call->stack, (domus_resp_bytes){"", 0});
    return answer_part(call, *link, (size_t)from, (size_t)(to - from + 1));
}

/* Let the string of an item have `more` from the byte `at` on; between its end and `at` are zeros.
 */
static int overwrite(struct kv_call *call, struct kv_item **link, size_t at, domus_slice more)
{
    domus_resp_bytes old = kv_item_string(*link);
    size_t size = at + more.size > old.size ? at + more.size : old.size;
    domus_appender bytes = {0};
    domus_slice slice;

    char *whole = domus_append_room(&bytes, size);
    if (whole != NULL) {
        memcpy(whole, old.data, old.size);
        if (old.size < at)
            memset(whole + old.size, 0, at - old.size);
        memcpy(whole + at, domus_slice_data(more), more.size);
        domus_append_written(&bytes, size);
    }
    int error = domus_append_end(&bytes, &slice);
    if (error == 0 && (error = kv_item_set_slice(&call->store->memory, link, slice)) != 0)
        domus_slice_free(slice);
    return error != 0 ? error : kv_integer(call->stack, (int64_t)size);
}

/* Find the string of a call, or make an empty one. */
static int find_string(struct kv_call *call, struct kv_item ***ret_link)
{
    *ret_link = kv_find_or_add(call, 0);
    return *ret_link == NULL ? -ENOMEM : 0;
}

int kv_run_setrange(struct kv_call *call)
{
    domus_slice more = domus_resp_argument(call->command, 3);
    struct kv_item **link = kv_find(call);
    int64_t at;

    if (!kv_argument_integer(call, 2, &at))
        return kv_error(call->stack, KV_NO_INTEGER);
    if (at < 0)
        return kv_error(call->stack, "ERR offset is out of range");
    if (link != NULL && !kv_is_string(*link))
        return kv_error(call->stack, KV_WRONG_TYPE);
    if (more.size == 0)
        return kv_integer(call->stack, link != NULL ? (int64_t)kv_item_string(*link).size : 0);
    if (at > (int64_t)kv_settings.value_max_bytes - more.size)
        return kv_error(call->stack, too_long);
    if (!kv_has_room(call->store, (uint64_t)at + more.size))
        return kv_error(call->stack, KV_OUT_OF_MEMORY);
    int error = find_string(call, &link);
    return error != 0 ? error : overwrite(call, link, (size_t)at, more);
}

int kv_run_append(struct kv_call *call)
{
    domus_slice more = domus_resp_argument(call->command, 2);
    struct kv_item **link = kv_find(call);

    if (link != NULL && !kv_is_string(*link))
        return kv_error(call->stack, KV_WRONG_TYPE);
    if (link != NULL &&
        (int64_t)kv_item_string(*link).size + more.size > (int64_t)kv_settings.value_max_bytes)
        return kv_error(call->stack, too_long);
    int error = find_string(call, &link);
    return error != 0 ? error : overwrite(call, link, kv_item_string(*link).size, more);
}
