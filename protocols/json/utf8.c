/* Copies a text and checks its bytes on the way, eight at a time where they are printable ASCII, or
 * 32 at a time with SSE2, which every x86-64 has. */
#include "protocols/json/utf8.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Returns 0 if all eight bytes of a word are in 0x20..0x7f: then no byte has its highest bit set,
 * and no byte borrows when 0x20 is subtracted. A borrow may spoil the next byte, but then the
 * result is not 0 anyway. */
static uint64_t nonzero_if_word_has_byte_not_plain(uint64_t word)
{
    return (word | (word - EACH(0x20))) & EACH(0x80);
}

/* Copy the printable ASCII at the beginning of a text, in steps of whole words. Returns how many
 * bytes were copied. */
static size_t copy_printable_ascii_at_begin(char *to, const unsigned char *from, size_t size)
{
    uint64_t word;
    size_t done = 0;

#if defined(__SSE2__)
    const __m128i space = _mm_set1_epi8(0x20);
    /* the comparison is signed, so bytes from 0x80 on are negative, and less than a space */
    for (; size - done >= 32; done += 32) {
        __m128i left = _mm_loadu_si128((const __m128i *)(const void *)(from + done));
        __m128i right = _mm_loadu_si128((const __m128i *)(const void *)(from + done + 16));
        __m128i odd = _mm_or_si128(_mm_cmplt_epi8(left, space), _mm_cmplt_epi8(right, space));
        if (_mm_movemask_epi8(odd) != 0)
            break;
        _mm_storeu_si128((__m128i *)(void *)(to + done), left);
        _mm_storeu_si128((__m128i *)(void *)(to + done + 16), right);
    }
#endif
    for (; size - done >= sizeof word; done += sizeof word) {
        memcpy(&word, from + done, sizeof word);
        if (nonzero_if_word_has_byte_not_plain(word) != 0)
            break;
        memcpy(to + done, &word, sizeof word);
    }
    return done;
}

size_t domi_json_copy_valid_text(char *to, const char *from, size_t size)
{
    const unsigned char *begin = (const unsigned char *)from;
    const unsigned char *end = begin + size;

    for (const unsigned char *at = begin; at != end;) {
        size_t plain = copy_printable_ascii_at_begin(to + (at - begin), at, (size_t)(end - at));
        at += plain;
        /* the end of the word that has a byte which is not plain, or the end of the text */
        const unsigned char *stop = end - at >= 8 ? at + 8 : end;
        while (at < stop) {
            size_t length = domi_json_size_of_character(at, end);
            if (length == 0 || (*at < 0x20 && *at != '\n' && *at != '\r' && *at != '\t'))
                return (size_t)(at - begin);
            for (; length != 0; length--, at++)
                to[at - begin] = (char)*at;
        }
    }
    return size;
}
