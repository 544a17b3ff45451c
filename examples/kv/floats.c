/* Numbers with fractions in strings and fields: INCRBYFLOAT and HINCRBYFLOAT. They are printed with
 * up to 17 digits behind the point, as by Redis. */
#include "kv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read a number with a fraction as Redis does. */
static bool read_float_as_redis_does(const char *bytes, size_t size, long double *ret_value)
{
    char text[KV_FLOAT_MAX];
    char *end;

    if (size == 0 || size >= sizeof text || bytes[0] == ' ' ||
        (bytes[0] >= '\t' && bytes[0] <= '\r'))
        return false;
    memcpy(text, bytes, size);
    text[size] = '\0';
    errno = 0;
    *ret_value = strtold(text, &end);
    return (size_t)(end - text) == size && !isnan(*ret_value) &&
           !(errno == ERANGE &&
             (fabsl(*ret_value) == HUGE_VALL || fpclassify(*ret_value) == FP_ZERO));
}

bool kv_read_float_of_resp_bytes(domus_resp_bytes bytes, long double *ret_value)
{
    return read_float_as_redis_does(bytes.data, bytes.size, ret_value);
}

uint32_t kv_print_float(char text[KV_FLOAT_MAX], long double value)
{
    int size = snprintf(text, KV_FLOAT_MAX, "%.17Lf", value);

    while (size > 0 && text[size - 1] == '0')
        size--;
    if (size > 0 && text[size - 1] == '.')
        size--;
    if (size == 2 && memcmp(text, "-0", 2) == 0) {
        text[0] = '0';
        size = 1;
    }
    return (uint32_t)size;
}

int kv_run_incrbyfloat(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    domus_slice argument = domus_resp_argument(call->command, 2);
    domus_resp_bytes by_text = {domus_slice_data(argument), argument.size};
    char text[KV_FLOAT_MAX];
    long double value = 0, by;

    if (link != NULL && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if ((link != NULL && !kv_read_float_of_resp_bytes(kv_item_string(*link), &value)) ||
        !kv_read_float_of_resp_bytes(by_text, &by))
        return kv_answer_error(call->stack, "ERR value is not a valid float");
    value += by;
    if (isnan(value) || isinf(value))
        return kv_answer_error(call->stack, "ERR increment would produce NaN or Infinity");
    uint32_t size = kv_print_float(text, value);
    if (link == NULL &&
        (link = kv_find_or_add_item(call, size <= DOMUS_RESP_SHORT_MAX ? size : 0)) == NULL)
        return -ENOMEM;
    int error = kv_item_set_string(&call->store->memory, link, text, size);
    return error != 0 ? error
                      : kv_answer_bytes_as_bulk_string(call->stack, (domus_resp_bytes){text, size});
}
