/* Checks the fields of a message before it is sent, so that no value can end its line, and no field
 * can tell where the message ends. */
#include "protocols/http/chars.h"
#include "protocols/http/write.h"

#include <errno.h>

/* Returns a flag for a field that the stage knows; -EINVAL for a field that only the stage may
 * write. */
static int classify_field_to_be_sent(const char *name, size_t size)
{
    switch (size) {
    case 4:
        if (domi_http_is_word_regardless_of_case(name, size, "host"))
            return DOMI_HTTP_FIELD_HOST;
        return domi_http_is_word_regardless_of_case(name, size, "date") ? DOMI_HTTP_FIELD_DATE : 0;
    case 6:
        return domi_http_is_word_regardless_of_case(name, size, "expect") ? DOMI_HTTP_FIELD_EXPECT
                                                                          : 0;
    case 10:
        return domi_http_is_word_regardless_of_case(name, size, "connection") ? -EINVAL : 0;
    case 14:
        return domi_http_is_word_regardless_of_case(name, size, "content-length") ? -EINVAL : 0;
    case 17:
        return domi_http_is_word_regardless_of_case(name, size, "transfer-encoding") ? -EINVAL : 0;
    default:
        return 0;
    }
}

/* Returns how many bytes of a field's value stand before the end of its line; `size` if there is no
 * line end. */
static size_t find_end_of_field_value(const char *bytes, size_t size)
{
    size_t end = domi_http_count_text_bytes(bytes, size);

    while (end < size && bytes[end] == '\t') {
        end++;
        end += domi_http_count_text_bytes(bytes + end, size - end);
    }
    return end;
}

int domi_http_check_fields(domus_slice fields)
{
    const char *bytes = domus_slice_data(fields);
    size_t size = fields.size;
    int has = 0;

    for (size_t at = 0; at < size; at += 2) {
        size_t name = domi_http_count_token_bytes(bytes + at, size - at);
        int found = classify_field_to_be_sent(bytes + at, name);
        if (name == 0 || at + name == size || bytes[at + name] != ':' || found < 0)
            return -EINVAL;
        if ((found & has & DOMI_HTTP_FIELD_HOST) != 0)
            return -EINVAL; /* refused, because the message has two fields Host */
        has |= found;
        at += name + 1;
        at += find_end_of_field_value(bytes + at, size - at);
        if (size - at < 2 || bytes[at] != '\r' || bytes[at + 1] != '\n')
            return -EINVAL;
    }
    return has;
}
