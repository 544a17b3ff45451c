/* Escapes text for a string of JSON (texts.h). */
#include "protocols/http/texts.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT UINT32_C(0xfffd)
#define ESCAPED_MAX 12u /* bytes of two surrogates as escapes, such as \ud83d\ude00 */

/* Returns whether a code point is valid, and UTF-8 encodes it in exactly `size` bytes. */
static bool is_valid_code_point(uint32_t point, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    return point >= least[size] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

/* Read the code point at the start of a text; a byte that is no UTF-8 counts as REPLACEMENT.
 * Returns how many bytes it has. */
static size_t read_code_point(const char *bytes, size_t size, uint32_t *ret_point)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t count = from[0] < 0x80               ? 1
                   : (from[0] & 0xe0u) == 0xc0u ? 2
                   : (from[0] & 0xf0u) == 0xe0u ? 3
                   : (from[0] & 0xf8u) == 0xf0u ? 4
                                                : 0;
    uint32_t point = count == 1 ? from[0] : count == 0 ? 0 : from[0] & (0x7fu >> count);

    *ret_point = REPLACEMENT;
    if (count == 0 || count > size)
        return 1;
    for (size_t i = 1; i < count; i++) {
        if ((from[i] & 0xc0u) != 0x80u)
            return 1;
        point = point << 6 | (from[i] & 0x3fu);
    }
    if (!is_valid_code_point(point, count))
        return 1;
    *ret_point = point;
    return count;
}

static size_t put_escape_of_utf16_unit(char *to, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";

    to[0] = '\\';
    to[1] = 'u';
    for (int i = 0; i < 4; i++)
        to[2 + i] = digits[unit >> (12 - 4 * i) & 15];
    return 6;
}

/* Write a code point as one or two escapes, or as itself. Returns how many bytes were written. */
static size_t put_code_point_for_json(char to[ESCAPED_MAX], uint32_t point)
{
    if (point == '"' || point == '\\') {
        to[0] = '\\';
        to[1] = (char)point;
        return 2;
    }
    if (point >= 0x20 && point < 0x7f) {
        to[0] = (char)point;
        return 1;
    }
    if (point < 0x10000)
        return put_escape_of_utf16_unit(to, point);
    size_t high = put_escape_of_utf16_unit(to, 0xd800 + ((point - 0x10000) >> 10));
    return high + put_escape_of_utf16_unit(to + high, 0xdc00 + ((point - 0x10000) & 0x3ff));
}

/* Returns how many bytes at the start of a text need no escape in JSON. */
static size_t count_bytes_without_escape(const char *bytes, size_t size)
{
    size_t i = 0;

    while (i < size && bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\')
        i++;
    return i;
}

size_t domi_http_escape_text_for_json(const char *bytes, size_t size, char *to, size_t room)
{
    char escaped[ESCAPED_MAX];
    size_t written = 0;

    for (size_t at = 0; at < size;) {
        size_t plain = count_bytes_without_escape(bytes + at, size - at);
        plain = plain < room - written ? plain : room - written;
        memcpy(to + written, bytes + at, plain);
        written += plain;
        at += plain;
        if (at == size || written == room)
            break;
        uint32_t point;
        at += read_code_point(bytes + at, size - at, &point);
        size_t more = put_code_point_for_json(escaped, point);
        if (more > room - written)
            break;
        memcpy(to + written, escaped, more);
        written += more;
    }
    return written;
}
