/* Classes of the bytes that HTTP allows, in tokens and in texts without control characters, and
 * functions that count and compare such bytes. */
#ifndef DOMI_PROTOCOLS_HTTP_CHARS_H
#define DOMI_PROTOCOLS_HTTP_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    DOMI_HTTP_TOKEN = 1,  /* a byte of a token: tchar of RFC 9110 */
    DOMI_HTTP_TARGET = 2, /* a visible ASCII byte other than '#' */
    DOMI_HTTP_HOST = 4,   /* a letter, a digit, '-', '.' or '_' */
    DOMI_HTTP_HEX = 8,
    DOMI_HTTP_COOKIE = 16, /* a byte of a cookie's value: cookie-octet of RFC 6265 */
    DOMI_HTTP_PLAIN = 32,  /* a byte that needs no escape: unreserved of RFC 3986 */
};

/* The classes of each byte, as bits. */
extern const uint8_t domi_http_classes[256];

static inline bool domi_http_is(char byte, unsigned classes)
{
    return (domi_http_classes[(unsigned char)byte] & classes) != 0;
}

/* Returns how many of the first bytes at `bytes` belong to one of the classes. */
static inline size_t domi_http_run(const char *bytes, size_t size, unsigned classes)
{
    size_t i = 0;

    while (i < size && domi_http_is(bytes[i], classes))
        i++;
    return i;
}

/* With SSE2 the following functions read 16 bytes at once, and never a byte behind `size`. */

#ifdef __SSE2__
static inline __m128i domi_http_16(const char *bytes)
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* Returns a word with a bit for each byte that is a control character. */
static inline unsigned domi_http_controls(__m128i some)
{
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(some, _mm_set1_epi8(0x1f)), some);
    __m128i last = _mm_cmpeq_epi8(some, _mm_set1_epi8(0x7f));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, last));
}

/* Returns the same for 8 to 15 bytes: bits for the first 8 bytes, and behind them for the last
 * 8. */
static inline unsigned domi_http_controls_of_few(const char *bytes, size_t size)
{
    __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)bytes);
    __m128i last = _mm_loadl_epi64((const __m128i *)(const void *)(bytes + size - 8));

    return domi_http_controls(_mm_unpacklo_epi64(first, last));
}
#endif

/* Returns how many of the first bytes are not control characters (0..31 and 127). */
static inline size_t domi_http_run_text(const char *bytes, size_t size)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; i + 16 <= size; i += 16) {
        unsigned wrong = domi_http_controls(domi_http_16(bytes + i));
        if (wrong != 0)
            return i + (size_t)__builtin_ctz(wrong);
    }
    if (size >= 16 && i != size) { /* the last 16 bytes, the first of which were checked before */
        unsigned wrong = domi_http_controls(domi_http_16(bytes + size - 16));
        return wrong != 0 ? size - 16 + (size_t)__builtin_ctz(wrong) : size;
    }
    if (size >= 8 && size < 16 && domi_http_controls_of_few(bytes, size) == 0)
        return size;
#endif
    while (i < size && (unsigned char)bytes[i] >= 0x20 && bytes[i] != 0x7f)
        i++;
    return i;
}

/* Returns how many of the first bytes may be in a target. */
static inline size_t domi_http_run_target(const char *bytes, size_t size)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; i + 16 <= size; i += 16) {
        __m128i some = domi_http_16(bytes + i);
        __m128i above = _mm_sub_epi8(some, _mm_set1_epi8(0x21));
        __m128i visible = _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(0x7e - 0x21)), above);
        __m128i hash = _mm_cmpeq_epi8(some, _mm_set1_epi8('#'));
        unsigned right = (unsigned)_mm_movemask_epi8(_mm_andnot_si128(hash, visible));
        if (right != 0xffff)
            return i + (size_t)__builtin_ctz(~right);
    }
#endif
    return i + domi_http_run(bytes + i, size - i, DOMI_HTTP_TARGET);
}

/* Returns how many of the first bytes may be in a token. Most names have only letters, digits and
 * '-'. */
static inline size_t domi_http_run_token(const char *bytes, size_t size)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; i + 16 <= size; i += 16) {
        __m128i some = domi_http_16(bytes + i);
        __m128i letter = _mm_sub_epi8(_mm_or_si128(some, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
        __m128i digit = _mm_sub_epi8(some, _mm_set1_epi8('0'));
        letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
        digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
        __m128i dash = _mm_cmpeq_epi8(some, _mm_set1_epi8('-'));
        unsigned right =
            (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(letter, digit), dash));
        if (right != 0xffff) {
            i += (size_t)__builtin_ctz(~right);
            break;
        }
    }
#endif
    return i + domi_http_run(bytes + i, size - i, DOMI_HTTP_TOKEN);
}

static inline char domi_http_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* Returns whether `size` bytes are the word, which is in small letters; the bytes may be in
 * capitals. */
static inline bool domi_http_is_word(const char *bytes, size_t size, const char *word)
{
    size_t i = 0;

    for (; i < size && word[i] != '\0'; i++) {
        if (domi_http_lower(bytes[i]) != word[i])
            return false;
    }
    return i == size && word[i] == '\0';
}

/* Returns whether two texts are the same, regardless of case. */
static inline bool domi_http_is_same(const char *one, const char *other, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (domi_http_lower(one[i]) != domi_http_lower(other[i]))
            return false;
    }
    return true;
}

static inline bool domi_http_is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Remove spaces and tabs from both ends of a text. */
static inline void domi_http_trim(const char **bytes, size_t *size)
{
    while (*size != 0 && domi_http_is_space((*bytes)[*size - 1]))
        (*size)--;
    while (*size != 0 && domi_http_is_space(**bytes)) {
        (*bytes)++;
        (*size)--;
    }
}

/* Find the next element, which may be empty, of a list with commas. Returns false when there is
 * none. `at` must begin as 0. Commas in quoted strings also divide, so use this only for lists
 * where that does no harm. */
static inline bool domi_http_next_element(const char *list, size_t size, size_t *at,
                                          const char **ret_element, size_t *ret_size)
{
    if (*at > size)
        return false;
    const char *from = list + *at;
    const char *comma = size != *at ? memchr(from, ',', size - *at) : NULL;

    *ret_element = from;
    *ret_size = comma != NULL ? (size_t)(comma - from) : size - *at;
    *at += *ret_size + 1;
    domi_http_trim(ret_element, ret_size);
    return true;
}

/* Returns the value of a hexadecimal digit; -1 for any other byte. */
static inline int domi_http_hex(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char lower = domi_http_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

#endif
