/* Copies a text and looks at its bytes, eight at a time where they are printable ASCII. */
#include "protocols/json/utf8.h"

#include <string.h>

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Returns 0 if all eight bytes are 0x20..0x7f: none has its high bit, and none borrows when 0x20 is
 * taken from it. A borrow goes on to the next byte, but then there was one anyway. */
static uint64_t odd_bits(uint64_t word)
{
    return (word | (word - EACH(0x20))) & EACH(0x80);
}

/* Copy as many plain bytes as there are, in steps of eight. Returns how many. */
static size_t copy_plain(char *to, const unsigned char *from, size_t size)
{
    uint64_t words[4];
    uint64_t word;
    size_t done = 0;

    for (; size - done >= sizeof words; done += sizeof words) {
        memcpy(words, from + done, sizeof words);
        if ((odd_bits(words[0]) | odd_bits(words[1]) | odd_bits(words[2]) | odd_bits(words[3])) !=
            0)
            break;
        memcpy(to + done, words, sizeof words);
    }
    for (; size - done >= sizeof word; done += sizeof word) {
        memcpy(&word, from + done, sizeof word);
        if (odd_bits(word) != 0)
            break;
        memcpy(to + done, &word, sizeof word);
    }
    return done;
}

size_t domi_json_copy(char *to, const char *from, size_t size)
{
    const unsigned char *begin = (const unsigned char *)from;
    const unsigned char *end = begin + size;

    for (const unsigned char *at = begin; at != end;) {
        size_t plain = copy_plain(to + (at - begin), at, (size_t)(end - at));
        at += plain;
        /* the eight bytes that are not plain, or the rest of the text */
        const unsigned char *stop = end - at >= 8 ? at + 8 : end;
        while (at < stop) {
            size_t length = domi_json_character(at, end);
            if (length == 0 || (*at < 0x20 && *at != '\n' && *at != '\r' && *at != '\t'))
                return (size_t)(at - begin);
            for (; length != 0; length--, at++)
                to[at - begin] = (char)*at;
        }
    }
    return size;
}
