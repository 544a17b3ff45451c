/* Appends values as JSON. A text is gone through in runs of bytes that need no escape, so most
 * texts are one copy. */
#include "protocols/json/append.h"

#include "protocols/json/parse.h"
#include "protocols/json/utf8.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define DIGITS_MOST 20u

/* Append the escape of a byte that may not stand in a text of JSON as it is. */
static int append_escape_of_byte(domus_appender *to, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    /* the letters of the short escapes for the bytes from 0x08 on; 0x0b has no short escape */
    static const char shorts[] = "btnvfr";
    char text[6] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    bool is_short = byte >= 0x08 && byte <= 0x0d && byte != 0x0b;

    if (!is_short && byte != '"' && byte != '\\')
        return domus_append(to, text, sizeof text);
    text[1] = is_short ? shorts[byte - 0x08] : (char)byte;
    return domus_append(to, text, 2);
}

/* Returns where the run of bytes that need no escape, which begins at `at`, ends; `end` is the end
 * of the text. */
static const unsigned char *find_end_of_bytes_without_escape(const unsigned char *at,
                                                             const unsigned char *end)
{
    while (at != end) {
        if (*at < 0x20 || *at == '"' || *at == '\\')
            break;
        size_t length = domi_json_size_of_character(at, end);
        if (length == 0)
            break;
        at += length;
    }
    return at;
}

/* Copy a text with its quotes, if none of its bytes needs an escape or is not ASCII, which is the
 * usual case. Returns true if it was copied, or if the appender has failed. */
static bool append_plain_text(domus_appender *to, const char *text, size_t size)
{
    char *room = domus_append_room(to, size + 2);
    unsigned char odd = 0;

    if (room == NULL)
        return true;
    room[0] = '"';
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        room[i + 1] = text[i];
        /* the highest bit is set here for a byte below 0x20 or above 0x7f */
        odd |= (unsigned char)((byte - 0x20) | byte) & 0x80;
        odd |= (unsigned char)(byte == '"') | (unsigned char)(byte == '\\');
    }
    room[size + 1] = '"';
    if (odd != 0)
        return false;
    domus_append_written(to, size + 2);
    return true;
}

int domi_json_append_text(domus_appender *to, const char *text, size_t size, bool replaces)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + size;

    if (append_plain_text(to, text, size))
        return to->error;
    (void)domus_append(to, "\"", 1);
    while (at != end && to->error == 0) {
        const unsigned char *stop = find_end_of_bytes_without_escape(at, end);
        if (stop != at)
            (void)domus_append(to, at, (size_t)(stop - at));
        at = stop;
        if (at == end)
            break;
        if (*at < 0x80)
            (void)append_escape_of_byte(to, *at);
        else if (replaces)
            (void)domus_append(to, "\xef\xbf\xbd", 3);
        else
            return -EILSEQ;
        at++;
    }
    return domus_append(to, "\"", 1);
}

int domi_json_append_field_name(domus_appender *to, const char *name, size_t size, bool is_first)
{
    char *room = domus_append_room(to, size + 4);

    if (room == NULL)
        return to->error;
    *room = ',';
    room += is_first ? 0 : 1;
    room[0] = '"';
    memcpy(room + 1, name, size);
    room[size + 1] = '"';
    room[size + 2] = ':';
    domus_append_written(to, size + (is_first ? 3 : 4));
    return 0;
}

static int append_digits_of_number(domus_appender *to, uint64_t value, bool is_negative)
{
    char digits[DIGITS_MOST + 1];
    char *at = digits + sizeof digits;

    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    if (is_negative)
        *--at = '-';
    return domus_append(to, at, (size_t)(digits + sizeof digits - at));
}

int domi_json_append_unsigned(domus_appender *to, uint64_t value)
{
    return append_digits_of_number(to, value, false);
}

int domi_json_append_signed(domus_appender *to, int64_t value)
{
    return append_digits_of_number(to, value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                                   value < 0);
}

int domi_json_append_real(domus_appender *to, double value)
{
    char text[DOMI_JSON_REAL_ROOM];

    if (!isfinite(value))
        return -ERANGE;
    return domus_append(to, text, domi_json_real_text(value, text));
}
