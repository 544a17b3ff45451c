/* Builds blocks of header fields. */
#include "protocols/http/fields.h"
#include "protocols/http/write.h"

static bool is_valid_field_value(const char *value, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        at += domi_http_count_text_bytes(value + at, size - at);
        if (at < size && value[at] != '\t')
            return false;
    }
    return true;
}

static int add_field_if_valid(domus_appender *fields, const char *name, size_t name_size,
                              const char *value, size_t value_size)
{
    if (name_size == 0 || domi_http_count_token_bytes(name, name_size) != name_size ||
        !is_valid_field_value(value, value_size))
        return domi_http_fail_appender_of_fields(fields);
    char *begin = domus_append_room(fields, name_size + value_size + 4);
    if (begin == NULL)
        return fields->error;
    char *to = domi_http_put_bytes(begin, name, name_size);
    to = DOMI_HTTP_PUT(to, ": ");
    if (value_size != 0)
        to = domi_http_put_bytes(to, value, value_size);
    to = DOMI_HTTP_PUT(to, "\r\n");
    domus_append_written(fields, (size_t)(to - begin));
    return fields->error;
}

int domus_http_add(domus_appender *fields, const char *name, const char *value)
{
    return add_field_if_valid(fields, name, strlen(name), value, strlen(value));
}

int domus_http_add_bytes(domus_appender *fields, const char *name, const void *value, size_t size)
{
    return add_field_if_valid(fields, name, strlen(name), value, size);
}

int domus_http_add_number(domus_appender *fields, const char *name, uint64_t value)
{
    char digits[DOMI_HTTP_DIGITS_MAX];
    char *end = domi_http_put_decimal_number(digits, value);

    return add_field_if_valid(fields, name, strlen(name), digits, (size_t)(end - digits));
}

/* --- fields of another message ---------------------------------------------------------------- */

int domi_http_add_field_unchanged(domus_appender *fields, const domus_http_line *line)
{
    return add_field_if_valid(fields, domus_slice_data(line->name), line->name.size,
                              domus_slice_data(line->value), line->value.size);
}

/* Find the fields Connection in a block. Returns the shortest part of the block that has them all,
 * mostly one line or nothing, with which each other field is compared. */
static domus_slice part_of_block_with_connection_fields(domus_slice fields)
{
    domus_http_line line;
    uint32_t at = 0;
    uint32_t first = 0;
    uint32_t end = 0;

    for (uint32_t from = 0; domus_http_next(fields, &at, &line); from = at) {
        if (!domi_http_is_slice_word_in_any_case(line.name, "connection"))
            continue;
        first = end == 0 ? from : first;
        end = at;
    }
    /* the last line of the block may have no line end */
    end = end < fields.size ? end : fields.size;
    return domi_http_borrow_part_of_slice(fields, first, end - first);
}

/* Returns whether a field Connection names this field, so that it must not be passed on. */
static bool is_field_named_by_connection(domus_slice connection, domus_slice name)
{
    domi_http_elements walk = {.fields = connection, .name = "connection"};
    const char *element;
    size_t size;

    while (domi_http_next_element_of_fields(&walk, &element, &size)) {
        if (size == name.size &&
            domi_http_is_same_regardless_of_case(element, domus_slice_data(name), size))
            return true;
    }
    return false;
}

int domi_http_add_end_to_end_fields_except(domus_appender *fields, domus_slice received,
                                           bool (*is_left)(domus_slice name))
{
    static const char *const of_connection[] = {"connection", "keep-alive",     "proxy-connection",
                                                "te",         "trailer",        "transfer-encoding",
                                                "upgrade",    "content-length", NULL};
    domus_slice connection = part_of_block_with_connection_fields(received);
    uint32_t at = 0;
    domus_http_line line;

    while (fields->error == 0 && domus_http_next(received, &at, &line)) {
        if (!domi_http_is_slice_any_word_of_list(line.name, of_connection) &&
            !is_field_named_by_connection(connection, line.name) && !is_left(line.name))
            (void)domi_http_add_field_unchanged(fields, &line);
    }
    return fields->error;
}

static bool keep_every_field(domus_slice name)
{
    (void)name;
    return false;
}

int domus_http_add_end_to_end(domus_appender *fields, domus_slice received)
{
    return domi_http_add_end_to_end_fields_except(fields, received, keep_every_field);
}
