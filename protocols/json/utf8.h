/* Characters of UTF-8 by the rules of RFC 3629: no overlong forms, no surrogates, nothing above
 * U+10FFFF. */
#ifndef DOMI_PROTOCOLS_JSON_UTF8_H
#define DOMI_PROTOCOLS_JSON_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many bytes the character at `at` has, which must end before `end`; 0 if it is no
 * valid character of UTF-8. */
static inline size_t domi_json_size_of_character(const unsigned char *at, const unsigned char *end)
{
    size_t left = (size_t)(end - at);
    unsigned char first = at[0];

    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4 || left < 2)
        return 0;
    if (first < 0xe0)
        return (at[1] & 0xc0) == 0x80 ? 2 : 0;
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < least || at[1] > most || left < 3 || (at[2] & 0xc0) != 0x80)
        return 0;
    if (first < 0xf0)
        return 3;
    return left >= 4 && (at[3] & 0xc0) == 0x80 ? 4 : 0;
}

/* Copy a text up to the first byte that a text of JSON cannot have: it must be UTF-8, without
 * control characters except those that may stand between values. Returns how many bytes were
 * copied. */
size_t domi_json_copy_valid_text(char *to, const char *from, size_t size);

#endif
