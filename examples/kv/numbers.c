/* Commands of strings that are numbers: INCR, DECR, INCRBY, DECRBY; and STRLEN and GETDEL. */
#include "kv.h"

#include <errno.h>

#define DIGITS_MAX 20u

static int add_to_number_at_key_and_answer(struct kv_call *call, int64_t by)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    int64_t value = 0;
    char text[DIGITS_MAX + 1];

    if (link != NULL) {
        if (!kv_is_string(*link))
            return kv_answer_error(call->stack, KV_WRONG_TYPE);
        domus_resp_bytes bytes = kv_item_string(*link);
        if (!kv_read_integer_in_text(bytes.data, bytes.size, &value))
            return kv_answer_error(call->stack, KV_NO_INTEGER);
    }
    if (__builtin_add_overflow(value, by, &value))
        return kv_answer_error(call->stack, "ERR increment or decrement would overflow");
    if (link == NULL && (link = kv_find_or_add_item(call, DIGITS_MAX)) == NULL)
        return -ENOMEM;
    uint32_t size = kv_write_integer_as_text(text, value);
    int error = kv_item_set_string(&call->store->memory, link, text, size);
    return error != 0 ? error : kv_answer_integer(call->stack, value);
}

int kv_run_incr(struct kv_call *call)
{
    return add_to_number_at_key_and_answer(call, 1);
}

int kv_run_decr(struct kv_call *call)
{
    return add_to_number_at_key_and_answer(call, -1);
}

int kv_run_incrby(struct kv_call *call)
{
    int64_t by;

    return kv_read_integer_argument(call, 2, &by) ? add_to_number_at_key_and_answer(call, by)
                                                  : kv_answer_error(call->stack, KV_NO_INTEGER);
}

int kv_run_decrby(struct kv_call *call)
{
    int64_t by;

    if (!kv_read_integer_argument(call, 2, &by))
        return kv_answer_error(call->stack, KV_NO_INTEGER);
    return by == INT64_MIN ? kv_answer_error(call->stack, "ERR decrement would overflow")
                           : add_to_number_at_key_and_answer(call, -by);
}

int kv_run_strlen(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link == NULL)
        return kv_answer_integer(call->stack, 0);
    return kv_is_string(*link) ? kv_answer_integer(call->stack, (int64_t)kv_item_string(*link).size)
                               : kv_answer_error(call->stack, KV_WRONG_TYPE);
}

int kv_run_getdel(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link == NULL)
        return kv_answer_null(call->stack);
    if (!kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    int error = kv_answer_item_as_bulk_string(call->stack, *link);
    if (error == 0)
        kv_store_remove(call->store, link);
    return error;
}
