/* Builds replies. A builder for RESP 2 at once writes what such a connection gets. Any other
 * builder writes RESP 3, and remembers in `form` whether RESP 2 says the reply differently. */
#include "protocols/resp/double.h"
#include "protocols/resp/number.h"
#include "protocols/resp/resp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_BYTES 4096 /* bytes of the line of an error, at most */

static bool is_builder_for_resp_2(const domus_resp_builder *builder)
{
    return builder->version == 2;
}

/* Append bytes that are one value, or the head of one, to a reply. */
static int append_value_bytes(domus_resp_builder *builder, const char *bytes, size_t size)
{
    builder->values++;
    return domus_append(&builder->bytes, bytes, size);
}

static int append_value_that_needs_resp_3(domus_resp_builder *builder, const char *bytes,
                                          size_t size)
{
    builder->form = DOMUS_RESP_ONLY_3;
    return append_value_bytes(builder, bytes, size);
}

static int add_head_of_value(domus_resp_builder *builder, char mark, uint64_t number)
{
    char head[DOMI_RESP_HEAD_MAX];

    return append_value_bytes(builder, head,
                              (size_t)(domi_resp_put_head(head, mark, number) - head));
}

static int add_line_of_text(domus_resp_builder *builder, char mark, const char *text, size_t size)
{
    char *to = domus_append_room(&builder->bytes, size + 3);

    builder->values++;
    if (to == NULL)
        return builder->bytes.error;
    *to++ = mark;
    for (size_t i = 0; i < size; i++)
        *to++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    *to++ = '\r';
    *to++ = '\n';
    domus_append_written(&builder->bytes, size + 3);
    return 0;
}

int domus_resp_add_simple(domus_resp_builder *builder, const char *text)
{
    return add_line_of_text(builder, '+', text, strlen(text));
}

int domus_resp_add_error(domus_resp_builder *builder, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list list;

    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (size < 0)
        return -EINVAL;
    return add_line_of_text(builder, '-', text,
                            (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

int domus_resp_add_integer(domus_resp_builder *builder, int64_t value)
{
    char line[DOMI_RESP_HEAD_MAX] = ":";
    char *end = domi_resp_put_signed_number(line + 1, value);

    *end++ = '\r';
    *end++ = '\n';
    return append_value_bytes(builder, line, (size_t)(end - line));
}

int domus_resp_add_bulk(domus_resp_builder *builder, const void *data, size_t size)
{
    char head[DOMI_RESP_HEAD_MAX];
    size_t head_size = (size_t)(domi_resp_put_head(head, '$', size) - head);
    char *to =
        size <= DOMUS_SLICE_MAX ? domus_append_room(&builder->bytes, head_size + size + 2) : NULL;

    builder->values++;
    /* there is no memory, or `size` is too large; the appender refuses this size with the right
     * error */
    if (to == NULL)
        return domus_append(&builder->bytes, data, size > DOMUS_SLICE_MAX ? size : 0);
    memcpy(to, head, head_size);
    if (size != 0)
        memcpy(to + head_size, data, size);
    to[head_size + size] = '\r';
    to[head_size + size + 1] = '\n';
    domus_append_written(&builder->bytes, head_size + size + 2);
    return 0;
}

int domus_resp_add_null(domus_resp_builder *builder)
{
    return is_builder_for_resp_2(builder) ? append_value_bytes(builder, "$-1\r\n", 5)
                                          : append_value_that_needs_resp_3(builder, "_\r\n", 3);
}

int domus_resp_add_null_array(domus_resp_builder *builder)
{
    /* RESP 3 has only one null. Its clients know the null array of RESP 2, too, so if the version
     * is unknown, that is sent. */
    return is_builder_for_resp_2(builder) || builder->version == 0
               ? append_value_bytes(builder, "*-1\r\n", 5)
               : append_value_that_needs_resp_3(builder, "_\r\n", 3);
}

int domus_resp_add_boolean(domus_resp_builder *builder, bool value)
{
    return is_builder_for_resp_2(builder)
               ? domus_resp_add_integer(builder, value)
               : append_value_that_needs_resp_3(builder, value ? "#t\r\n" : "#f\r\n", 4);
}

int domus_resp_add_double(domus_resp_builder *builder, double value)
{
    char line[1 + DOMI_RESP_DOUBLE_MAX + 2] = ",";
    size_t size = domi_resp_write_double(line + 1, value);

    if (is_builder_for_resp_2(builder))
        return domus_resp_add_bulk(builder, line + 1, size);
    line[1 + size] = '\r';
    line[2 + size] = '\n';
    return append_value_that_needs_resp_3(builder, line, size + 3);
}

int domus_resp_add_big_number(domus_resp_builder *builder, const char *digits)
{
    size_t size = strlen(digits);
    size_t sign = digits[0] == '-';

    if (size == sign || strspn(digits + sign, "0123456789") != size - sign)
        return -EINVAL;
    if (is_builder_for_resp_2(builder))
        return domus_resp_add_bulk(builder, digits, size);
    builder->form = DOMUS_RESP_ONLY_3;
    return add_line_of_text(builder, '(', digits, size);
}

int domus_resp_add_verbatim(domus_resp_builder *builder, const char *format, const void *data,
                            size_t size)
{
    if (strlen(format) != 3)
        return -EINVAL;
    if (size > DOMUS_SLICE_MAX - 4 || is_builder_for_resp_2(builder))
        return domus_resp_add_bulk(builder, data, size);
    (void)add_head_of_value(builder, '=', size + 4);
    builder->form = DOMUS_RESP_ONLY_3;
    (void)domus_append(&builder->bytes, format, 3);
    (void)domus_append(&builder->bytes, ":", 1);
    (void)domus_append(&builder->bytes, data, size);
    return domus_append(&builder->bytes, "\r\n", 2);
}

/* Append the head of an array or the like with `count` elements, which are `values` values in RESP
 * 2. */
static int append_head_of_array_set_or_map(domus_resp_builder *builder, char mark, uint32_t count,
                                           uint64_t values)
{
    int error = is_builder_for_resp_2(builder) ? add_head_of_value(builder, '*', values)
                                               : add_head_of_value(builder, mark, count);

    builder->values -= (int64_t)values;
    return error;
}

int domus_resp_add_array(domus_resp_builder *builder, uint32_t count)
{
    return append_head_of_array_set_or_map(builder, '*', count, count);
}

int domus_resp_add_set(domus_resp_builder *builder, uint32_t count)
{
    builder->form = DOMUS_RESP_ONLY_3;
    return append_head_of_array_set_or_map(builder, '~', count, count);
}

int domus_resp_add_map(domus_resp_builder *builder, uint32_t count)
{
    builder->form = DOMUS_RESP_ONLY_3;
    return append_head_of_array_set_or_map(builder, '%', count, 2 * (uint64_t)count);
}

int domus_resp_add_push(domus_resp_builder *builder, uint32_t count)
{
    builder->form = builder->bytes.size == 0 ? DOMUS_RESP_PUSHED : DOMUS_RESP_ONLY_3;
    return append_head_of_array_set_or_map(builder, '>', count, count);
}

int domus_resp_add_reply(domus_resp_builder *builder, const domus_resp_reply *reply)
{
    builder->values += reply->values;
    if (reply->form == DOMUS_RESP_EXACT || !is_builder_for_resp_2(builder)) {
        if (reply->form != DOMUS_RESP_EXACT)
            builder->form = DOMUS_RESP_ONLY_3;
        return domus_append(&builder->bytes, domus_slice_data(reply->bytes), reply->bytes.size);
    }
    return domi_resp_write_values_in_resp_2(reply->bytes, &builder->bytes);
}

int domus_resp_end(domus_resp_builder *builder, domus_resp_reply *ret_reply)
{
    domus_resp_reply reply = {.form = is_builder_for_resp_2(builder) ? DOMUS_RESP_EXACT
                                                                     : builder->form};
    int64_t values = builder->values;
    int error = values < 1 || values > UINT32_MAX ? -EINVAL : 0;

    if (builder->bytes.error != 0 || error == 0)
        error = domus_append_end(&builder->bytes, &reply.bytes);
    domus_resp_drop(builder);
    if (error != 0)
        return error;
    reply.values = (uint32_t)values;
    *ret_reply = reply;
    return 0;
}

void domus_resp_drop(domus_resp_builder *builder)
{
    domus_append_drop(&builder->bytes);
    builder->values = 0;
    builder->form = DOMUS_RESP_EXACT;
}
