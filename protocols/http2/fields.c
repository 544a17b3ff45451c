/* Reads the fields of a message that an inner channel sends (an answer, a request of a client, or
 * trailers), which are lines, and finds out how its body is framed and whether the inner channel
 * ends behind it. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <string.h>

static bool has_field_this_name(const nghttp2_nv *field, const char *name)
{
    return field->namelen == strlen(name) && memcmp(field->name, name, field->namelen) == 0;
}

static bool has_field_this_value(const nghttp2_nv *field, const char *word)
{
    return field->valuelen == strlen(word) && memcmp(field->value, word, field->valuelen) == 0;
}

/* Store what a field tells of the body or the connection. Returns whether the field is sent in the
 * stream, too. */
static bool note_framing_field_of_answer(domi_h2_fields *fields, const nghttp2_nv *field)
{
    if (has_field_this_name(field, "connection")) {
        fields->closes = fields->closes || has_field_this_value(field, "close");
        return false;
    }
    if (has_field_this_name(field, "transfer-encoding")) {
        fields->in_chunks = true;
        return false;
    }
    if (has_field_this_name(field, "content-length")) {
        fields->has_length = true;
        for (size_t i = 0; i < field->valuelen; i++)
            fields->length = fields->length * 10 + (uint64_t)(field->value[i] - '0');
    }
    return !has_field_this_name(field, "keep-alive") && !has_field_this_name(field, "upgrade") &&
           !has_field_this_name(field, "proxy-connection");
}

/* Copy the name of a field in small letters. Returns the copy; NULL if there is no room. */
static uint8_t *copy_name_in_small_letters(domi_h2_fields *fields, const char *name, size_t size)
{
    char *copy = fields->names + fields->names_size;

    if (size == 0 || size > sizeof fields->names - fields->names_size)
        return NULL;
    for (size_t i = 0; i < size; i++)
        copy[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + ('a' - 'A')) : name[i];
    fields->names_size += size;
    return (uint8_t *)copy;
}

/* Read one line with a field, without its line end. */
static int read_line_with_field(domi_h2_fields *fields, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);
    const char *end = line + size;

    if (colon == NULL || fields->count == DOMI_H2_FIELDS_MAX)
        return -EPROTO;
    const char *value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    nghttp2_nv *field = &fields->fields[fields->count];
    *field = (nghttp2_nv){.name = copy_name_in_small_letters(fields, line, (size_t)(colon - line)),
                          .value = (uint8_t *)(uintptr_t)value,
                          .namelen = (size_t)(colon - line),
                          .valuelen = (size_t)(end - value)};
    if (field->name == NULL)
        return -EPROTO;
    fields->count += note_framing_field_of_answer(fields, field);
    return 0;
}

int domi_h2_read_fields_of_message(const char *lines, size_t size, domi_h2_fields *fields)
{
    while (size != 0) {
        const char *end = memchr(lines, '\r', size);
        if (end == NULL)
            return -EPROTO;
        int error = read_line_with_field(fields, lines, (size_t)(end - lines));
        if (error != 0)
            return error;
        size -= (size_t)(end - lines) + 2;
        lines = end + 2;
    }
    return 0;
}
