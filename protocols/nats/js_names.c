/* Checks names that JetStream uses. A name becomes a token of a subject and a folder on the
 * server's disk, so a name that could mean something else in one of them is refused before it is
 * sent. */
#include "protocols/nats/js.h"

#include <string.h>

static bool is_printable_character(char c)
{
    /* bytes above 0x7f belong to letters of UTF-8, so they are printable */
    return (unsigned char)c > ' ' && c != 0x7f;
}

bool domi_js_is_valid_stream_name(const char *text)
{
    size_t size = text != NULL ? strlen(text) : 0;

    if (size == 0 || size > DOMUS_NATS_STREAM_NAME_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_printable_character(text[i]) || strchr(".*>/\\", text[i]) != NULL)
            return false;
    }
    return true;
}

/* Returns whether the bytes are a valid token of a subject; if `wildcards` is set, it may be "*",
 * and the last token ">". */
static bool is_valid_token_of_subject(const char *text, size_t size, bool wildcards, bool is_last)
{
    if (size == 0)
        return false;
    if (size == 1 && (*text == '*' || *text == '>'))
        return wildcards && (*text == '*' || is_last);
    for (size_t i = 0; i < size; i++) {
        if (!is_printable_character(text[i]) || text[i] == '*' || text[i] == '>')
            return false;
    }
    return true;
}

bool domi_js_is_valid_subject(const char *text, size_t size, bool wildcards)
{
    size_t begin = 0;

    if (size == 0 || size > DOMUS_NATS_SUBJECT_MAX)
        return false;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '.')
            continue;
        if (!is_valid_token_of_subject(text + begin, i - begin, wildcards, i == size))
            return false;
        begin = i + 1;
    }
    return true;
}
