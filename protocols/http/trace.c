/* Ids of requests: reads, makes and writes the fields traceparent and X-Request-Id. Any thread. */
#include "protocols/http/trace.h"
#include "protocols/http/fields.h"
#include "protocols/http/websocket/websocket.h"

#include <errno.h>

#define TRACE_AT 3u /* offset in a traceparent at which the id of the trace begins */
#define SPAN_AT  36u
#define FLAGS_AT 53u

/* --- traceparent ------------------------------------------------------------------------------ */

/* Returns the value of a hexadecimal digit in small letters; -1 for any other byte, including
 * capitals. */
static int value_of_small_hex_digit(char byte)
{
    return byte >= 'A' && byte <= 'F' ? -1 : domi_http_value_of_hex_digit(byte);
}

/* Read `count` bytes, each from two hexadecimal digits. Returns false at any other character. */
static bool read_bytes_from_hex(const char *text, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = value_of_small_hex_digit(text[2 * i]);
        int low = value_of_small_hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static char *write_bytes_as_hex(char *to, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < count; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

static bool are_all_bytes_zero(const uint8_t *bytes, size_t count)
{
    while (count != 0 && bytes[count - 1] == 0)
        count--;
    return count == 0;
}

int domus_http_traceparent_read(const char *value, size_t size, domus_http_trace *ret_trace)
{
    domus_http_trace trace = {.flags = 0};
    uint8_t version;

    if (size < DOMUS_HTTP_TRACEPARENT_SIZE || !read_bytes_from_hex(value, &version, 1) ||
        version == 0xff)
        return -EINVAL;
    if (value[2] != '-' || value[SPAN_AT - 1] != '-' || value[FLAGS_AT - 1] != '-')
        return -EINVAL;
    if (size > DOMUS_HTTP_TRACEPARENT_SIZE &&
        (version == 0 || value[DOMUS_HTTP_TRACEPARENT_SIZE] != '-'))
        return -EINVAL;
    if (!read_bytes_from_hex(value + TRACE_AT, trace.trace, sizeof trace.trace) ||
        !read_bytes_from_hex(value + SPAN_AT, trace.span, sizeof trace.span) ||
        !read_bytes_from_hex(value + FLAGS_AT, &trace.flags, 1))
        return -EINVAL;
    if (are_all_bytes_zero(trace.trace, sizeof trace.trace) ||
        are_all_bytes_zero(trace.span, sizeof trace.span))
        return -EINVAL;
    memcpy(ret_trace->trace, trace.trace, sizeof trace.trace);
    memcpy(ret_trace->span, trace.span, sizeof trace.span);
    /* version 00 of traceparent gives only the lowest flag a meaning */
    ret_trace->flags = trace.flags & 1;
    return 0;
}

void domus_http_traceparent_write(const domus_http_trace *trace,
                                  char text[DOMUS_HTTP_TRACEPARENT_SIZE + 1])
{
    char *to = text;

    *to++ = '0';
    *to++ = '0';
    *to++ = '-';
    to = write_bytes_as_hex(to, trace->trace, sizeof trace->trace);
    *to++ = '-';
    to = write_bytes_as_hex(to, trace->span, sizeof trace->span);
    *to++ = '-';
    to = write_bytes_as_hex(to, &trace->flags, 1);
    *to = '\0';
}

/* --- ids -------------------------------------------------------------------------------------- */

bool domi_http_is_valid_request_id(const char *id, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char byte = id[i];
        char lower = domi_http_small_letter_of(byte);
        bool is_name = (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
        if (!is_name && (byte == '\0' || strchr("-_.:+/=@", byte) == NULL))
            return false;
    }
    return size != 0 && size <= DOMUS_HTTP_REQUEST_ID_MAX;
}

void domi_http_write_trace_as_request_id(domus_http_trace *trace)
{
    *write_bytes_as_hex(trace->id, trace->trace, sizeof trace->trace) = '\0';
}

/* --- ids in fields ---------------------------------------------------------------------------- */

/* Store the value of a field with an id, and count how often the field was found, because only a
 * single one counts. */
static void store_id_value_and_count_its_fields(domus_slice *value, unsigned *count,
                                                const domus_http_line *line)
{
    *value = line->value;
    ++*count;
}

void domi_http_find_fields_with_ids(domus_slice fields, domi_http_names_found *ret_found)
{
    domus_http_line line;
    uint32_t at = 0;

    *ret_found = (domi_http_names_found){.parents = 0};
    while (domus_http_next(fields, &at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, "traceparent"))
            store_id_value_and_count_its_fields(&ret_found->parent, &ret_found->parents, &line);
        else if (domi_http_is_slice_word_in_any_case(line.name, "x-request-id"))
            store_id_value_and_count_its_fields(&ret_found->id, &ret_found->ids, &line);
        else if (domi_http_is_slice_word_in_any_case(line.name, "tracestate"))
            ret_found->states++;
    }
}

void domi_http_copy_request_id_if_valid(const domi_http_names_found *found, domus_http_trace *trace)
{
    const char *id = domus_slice_data(found->id);

    if (found->ids != 1 || !domi_http_is_valid_request_id(id, found->id.size))
        return;
    memcpy(trace->id, id, found->id.size);
    trace->id[found->id.size] = '\0';
}

int domi_http_take_trace_from_fields(const domi_http_names_found *found, domus_http_trace *trace)
{
    return found->parents == 1 ? domus_http_traceparent_read(domus_slice_data(found->parent),
                                                             found->parent.size, trace)
                               : -ENOENT;
}

int domus_http_trace_of(domus_slice fields, domus_http_trace *ret_trace)
{
    domi_http_names_found found;

    domi_http_find_fields_with_ids(fields, &found);
    *ret_trace = (domus_http_trace){.flags = 0};
    domi_http_copy_request_id_if_valid(&found, ret_trace);
    return domi_http_take_trace_from_fields(&found, ret_trace) == 0 ? 0 : -ENOENT;
}

int domus_http_trace_begin(const domus_http_trace *parent, domus_http_trace *ret_trace)
{
    domus_http_trace trace = parent != NULL ? *parent : (domus_http_trace){.flags = 0};
    int error =
        parent == NULL ? domi_websocket_draw_random_bytes(trace.trace, sizeof trace.trace) : 0;

    if (error == 0)
        error = domi_websocket_draw_random_bytes(trace.span, sizeof trace.span);
    if (error != 0)
        return error;
    trace.span[0] |= are_all_bytes_zero(trace.span, sizeof trace.span);
    trace.trace[0] |= are_all_bytes_zero(trace.trace, sizeof trace.trace);
    *ret_trace = trace;
    return 0;
}

int domus_http_trace_add(domus_appender *fields, const domus_http_trace *trace)
{
    char text[DOMUS_HTTP_TRACEPARENT_SIZE + 1];

    if (!are_all_bytes_zero(trace->trace, sizeof trace->trace)) {
        domus_http_traceparent_write(trace, text);
        (void)domus_http_add(fields, "traceparent", text);
    }
    if (trace->id[0] != '\0')
        (void)domus_http_add(fields, "X-Request-Id", trace->id);
    return fields->error;
}
