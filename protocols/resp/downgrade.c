/* Writes in RESP 2 what was built for RESP 3, value by value, as redis-server does. */
#include "protocols/resp/number.h"
#include "protocols/resp/resp.h"

#include <errno.h>

static int append_head_of_value(domus_appender *to, char mark, uint64_t number)
{
    char head[DOMI_RESP_HEAD_MAX];

    return domus_append(to, head, (size_t)(domi_resp_put_head(head, mark, number) - head));
}

static int add_bulk_string(domus_appender *to, domus_slice text)
{
    (void)append_head_of_value(to, '$', text.size);
    (void)domus_append(to, domus_slice_data(text), text.size);
    return domus_append(to, "\r\n", 2);
}

/* Append an error that is a bulk string in RESP 3 as a line; the line ends that it may have become
 * spaces. */
static int add_error_as_line(domus_appender *to, domus_slice text)
{
    (void)domus_append(to, "-", 1);
    char *line = domus_append_room(to, text.size);
    for (uint32_t i = 0; line != NULL && i < text.size; i++) {
        char c = domus_slice_data(text)[i];
        line[i] = c == '\r' || c == '\n' ? ' ' : c;
    }
    domus_append_written(to, text.size);
    return domus_append(to, "\r\n", 2);
}

static int add_value_in_resp_2(const domus_resp_value *value, domus_slice whole, domus_appender *to)
{
    switch (value->kind) {
    case DOMUS_RESP_MAP:
    case DOMUS_RESP_SET:
    case DOMUS_RESP_PUSH:
        return append_head_of_value(to, '*', value->count);
    case DOMUS_RESP_BOOLEAN:
        return domus_append(to, value->integer != 0 ? ":1\r\n" : ":0\r\n", 4);
    case DOMUS_RESP_DOUBLE:
    case DOMUS_RESP_BIG_NUMBER:
    case DOMUS_RESP_VERBATIM:
        return add_bulk_string(to, value->text);
    case DOMUS_RESP_BULK_ERROR:
        return add_error_as_line(to, value->text);
    case DOMUS_RESP_NULL:
        if (domus_slice_data(whole)[0] == '_')
            return domus_append(to, "$-1\r\n", 5);
        break; /* a null of RESP 2, of either kind, stays as it is */
    default:
        break;
    }
    return domus_append(to, domus_slice_data(whole), whole.size);
}

int domi_resp_write_values_in_resp_2(domus_slice bytes, domus_appender *to)
{
    domus_resp_reader reader = {bytes, 0};
    domus_resp_value value;

    for (;;) {
        uint32_t begin = reader.at;
        int result = domus_resp_read(&reader, &value);
        if (result <= 0)
            return result == 0 ? 0 : -EINVAL;
        if (value.kind == DOMUS_RESP_ATTRIBUTE) {
            if (domus_resp_skip(&reader, &value) != 0)
                return -EINVAL;
            continue;
        }
        domus_slice whole = {bytes.page, bytes.offset + begin, reader.at - begin};
        result = add_value_in_resp_2(&value, whole, to);
        if (result != 0)
            return result;
    }
}
