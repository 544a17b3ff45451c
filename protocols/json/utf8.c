/* Copies a text and looks at its bytes, eight at a time where they are printable ASCII. */
#include "protocols/json/utf8.h"

#include <stdbool.h>
#include <string.h>

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether all eight bytes are 0x20..0x7f: none has its high bit, and none borrows when 0x20 is
 * taken from it. A borrow goes on to the next byte, but then there was one anyway. */
static bool is_plain(uint64_t word)
{
    return ((word | (word - EACH(0x20))) & EACH(0x80)) == 0;
}

size_t domi_json_copy(char *to, const char *from, size_t size)
{
    const unsigned char *at = (const unsigned char *)from;
    const unsigned char *end = at + size;
    uint64_t word;

    while (at != end) {
        for (; end - at >= 8; at += 8, to += 8) {
            memcpy(&word, at, sizeof word);
            if (!is_plain(word))
                break;
            memcpy(to, &word, sizeof word);
        }
        /* the rest of the eight, or of the text */
        const unsigned char *stop = end - at >= 8 ? at + 8 : end;
        while (at < stop) {
            size_t length = domi_json_character(at, end);
            if (length == 0 || (*at < 0x20 && *at != '\n' && *at != '\r' && *at != '\t'))
                return (size_t)(at - (const unsigned char *)from);
            for (; length != 0; length--)
                *to++ = (char)*at++;
        }
    }
    return size;
}
