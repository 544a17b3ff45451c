/* Decodes and encodes the escapes, paths and parameters of targets. */
#include "protocols/http/texts.h"

#include "protocols/http/chars.h"
#include "protocols/http/fields.h"

#include <domus/http_query.h>

#include <errno.h>

/* --- escapes ---------------------------------------------------------------------------------- */

/* Returns the byte that the escape at `text` stands for; -1 if the escape is invalid. */
static int value_of_escape(const char *text, size_t size)
{
    if (size < 3)
        return -1;
    int high = domi_http_value_of_hex_digit(text[1]);
    int low = domi_http_value_of_hex_digit(text[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int64_t domus_http_decode(char *to, const char *text, size_t size, bool form)
{
    size_t written = 0;

    for (size_t i = 0; i < size; i++) {
        char byte = text[i];
        if (byte == '%') {
            int escaped = value_of_escape(text + i, size - i);
            if (escaped < 0)
                return -EINVAL;
            byte = (char)escaped;
            i += 2;
        } else if (byte == '+' && form) {
            byte = ' ';
        }
        to[written++] = byte;
    }
    return (int64_t)written;
}

int domus_http_encode(domus_appender *appender, const void *bytes_, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *bytes = bytes_;

    while (size != 0) {
        size_t plain = domi_http_count_bytes_of_classes(bytes, size, DOMI_HTTP_PLAIN);
        int error = plain != 0 ? domus_append(appender, bytes, plain) : 0;
        if (plain < size && error == 0) {
            unsigned char byte = (unsigned char)bytes[plain];
            char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
            error = domus_append(appender, escape, sizeof escape);
            plain++;
        }
        if (error != 0)
            return error;
        bytes += plain;
        size -= plain;
    }
    return appender->error;
}

/* --- paths ------------------------------------------------------------------------------------ */

/* Decode one segment of a path to `to`. Returns how many bytes it has then; -EINVAL. */
static int64_t decode_segment_of_path(char *to, const char *text, size_t size)
{
    int64_t written = domus_http_decode(to, text, size, false);

    for (int64_t i = 0; i < written; i++) {
        if (to[i] == '\0' || to[i] == '/' || to[i] == '\\')
            return -EINVAL;
    }
    return written;
}

int64_t domus_http_decode_path(char *to, const char *text, size_t size)
{
    size_t end = 0; /* bytes of the segments that were decoded so far, each with a '/' before it */
    bool is_folder = true;

    if (size == 0 || *text != '/')
        return -EINVAL;
    for (size_t at = 1; at <= size;) {
        const char *slash = at < size ? memchr(text + at, '/', size - at) : NULL;
        size_t segment = slash != NULL ? (size_t)(slash - text) - at : size - at;
        int64_t written = decode_segment_of_path(to + end + 1, text + at, segment);
        if (written < 0)
            return written;
        is_folder = slash != NULL;
        if (written == 0 || (written == 1 && to[end + 1] == '.')) {
            is_folder = true;
        } else if (written == 2 && memcmp(to + end + 1, "..", 2) == 0) {
            if (end == 0)
                return -EINVAL;
            while (to[--end] != '/')
                ;
            is_folder = true;
        } else {
            to[end] = '/';
            end += 1 + (size_t)written;
        }
        at += segment + 1;
    }
    if (is_folder)
        to[end++] = '/';
    return (int64_t)end;
}

/* --- parameters ------------------------------------------------------------------------------- */

bool domus_http_next_parameter(domus_slice query, uint32_t *at, domus_http_parameter *ret_parameter)
{
    const char *data = domus_slice_data(query);

    while (*at < query.size && data[*at] == '&')
        (*at)++;
    if (*at >= query.size)
        return false;
    const char *end = memchr(data + *at, '&', query.size - *at);
    size_t size = end != NULL ? (size_t)(end - data) - *at : query.size - *at;
    const char *equals = memchr(data + *at, '=', size);
    size_t name = equals != NULL ? (size_t)(equals - data) - *at : size;
    size_t value = name < size ? name + 1 : size;

    ret_parameter->name = domi_http_borrow_part_of_slice(query, *at, name);
    ret_parameter->value = domi_http_borrow_part_of_slice(query, *at + value, size - value);
    *at += (uint32_t)size;
    return true;
}

bool domi_http_does_encoded_name_equal(domus_slice encoded, const char *name)
{
    const char *data = domus_slice_data(encoded);
    char byte;

    for (size_t i = 0; i < encoded.size; i++, name++) {
        size_t size = data[i] == '%' ? 3 : 1;
        if (i + size > encoded.size || domus_http_decode(&byte, data + i, size, true) != 1 ||
            byte != *name || byte == '\0')
            return false;
        i += size - 1;
    }
    return *name == '\0';
}

int64_t domus_http_query_value(domus_slice query, const char *name, char *to, size_t room)
{
    domus_http_parameter parameter;
    uint32_t at = 0;

    while (domus_http_next_parameter(query, &at, &parameter)) {
        if (!domi_http_does_encoded_name_equal(parameter.name, name))
            continue;
        if (parameter.value.size > room)
            return -EMSGSIZE;
        return domus_http_decode(to, domus_slice_data(parameter.value), parameter.value.size, true);
    }
    return -ENOENT;
}
