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
    DOMI_HTTP_TOKEN = 1,  /* class of the bytes of a token: tchar of RFC 9110 */
    DOMI_HTTP_TARGET = 2, /* class of the bytes of a target: visible ASCII, except '#' */
    DOMI_HTTP_HOST = 4,   /* class of the bytes of a host: letters, digits, '-', '.' and '_' */
    DOMI_HTTP_HEX = 8,
    DOMI_HTTP_COOKIE = 16, /* class of the bytes of a cookie's value: cookie-octet of RFC 6265 */
    /* class of the bytes that a URL needs not escape: unreserved of RFC 3986 */
    DOMI_HTTP_PLAIN = 32,
};

/* The classes of each byte value, as bits. */
extern const uint8_t domi_http_classes[256];

static inline bool domi_http_is_byte_of_class(char byte, unsigned classes)
{
    return (domi_http_classes[(unsigned char)byte] & classes) != 0;
}

/* Returns how many bytes at the start of `bytes` belong to one of the classes. */
static inline size_t domi_http_count_bytes_of_classes(const char *bytes, size_t size,
                                                      unsigned classes)
{
    size_t i = 0;

    while (i < size && domi_http_is_byte_of_class(bytes[i], classes))
        i++;
    return i;
}

/* With SSE2 the functions below read 16 bytes at once, and never a byte behind `size`. */

#ifdef __SSE2__
static inline __m128i domi_http_load_16_bytes(const char *bytes)
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* Returns a mask with one bit for each of the 16 bytes, set if the byte is a control character. */
static inline unsigned domi_http_mask_of_controls_in_16_bytes(__m128i some)
{
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(some, _mm_set1_epi8(0x1f)), some);
    __m128i last = _mm_cmpeq_epi8(some, _mm_set1_epi8(0x7f));

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, last));
}

/* Returns a mask of the control characters among 8 to 15 bytes: bits for the first 8 bytes, and
 * above them bits for the last 8 bytes. */
static inline unsigned domi_http_mask_of_controls_in_8_to_15(const char *bytes, size_t size)
{
    __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)bytes);
    __m128i last = _mm_loadl_epi64((const __m128i *)(const void *)(bytes + size - 8));

    return domi_http_mask_of_controls_in_16_bytes(_mm_unpacklo_epi64(first, last));
}
#endif

/* Returns how many bytes at the start of a text are no control characters (0..31 and 127). */
static inline size_t domi_http_count_text_bytes(const char *bytes, size_t size)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; i + 16 <= size; i += 16) {
        unsigned wrong = domi_http_mask_of_controls_in_16_bytes(domi_http_load_16_bytes(bytes + i));
        if (wrong != 0)
            return i + (size_t)__builtin_ctz(wrong);
    }
    /* check the last 16 bytes, of which the first were checked already */
    if (size >= 16 && i != size) {
        unsigned wrong =
            domi_http_mask_of_controls_in_16_bytes(domi_http_load_16_bytes(bytes + size - 16));
        return wrong != 0 ? size - 16 + (size_t)__builtin_ctz(wrong) : size;
    }
    if (size >= 8 && size < 16 && domi_http_mask_of_controls_in_8_to_15(bytes, size) == 0)
        return size;
#endif
    while (i < size && (unsigned char)bytes[i] >= 0x20 && bytes[i] != 0x7f)
        i++;
    return i;
}

/* Returns how many bytes at the start of `bytes` may stand in a target. */
static inline size_t domi_http_count_target_bytes(const char *bytes, size_t size)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; i + 16 <= size; i += 16) {
        __m128i some = domi_http_load_16_bytes(bytes + i);
        __m128i above = _mm_sub_epi8(some, _mm_set1_epi8(0x21));
        __m128i visible = _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(0x7e - 0x21)), above);
        __m128i hash = _mm_cmpeq_epi8(some, _mm_set1_epi8('#'));
        unsigned right = (unsigned)_mm_movemask_epi8(_mm_andnot_si128(hash, visible));
        if (right != 0xffff)
            return i + (size_t)__builtin_ctz(~right);
    }
#endif
    return i + domi_http_count_bytes_of_classes(bytes + i, size - i, DOMI_HTTP_TARGET);
}

/* Returns how many bytes at the start of `bytes` may stand in a token. Most names have only
 * letters, digits and '-'. */
static inline size_t domi_http_count_token_bytes(const char *bytes, size_t size)
{
    size_t i = 0;

#ifdef __SSE2__
    for (; i + 16 <= size; i += 16) {
        __m128i some = domi_http_load_16_bytes(bytes + i);
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
    return i + domi_http_count_bytes_of_classes(bytes + i, size - i, DOMI_HTTP_TOKEN);
}

static inline char domi_http_small_letter_of(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* Returns whether the `size` bytes are the word, which is given in small letters; the bytes may be
 * capitals. */
static inline bool domi_http_is_word_regardless_of_case(const char *bytes, size_t size,
                                                        const char *word)
{
    size_t i = 0;

    for (; i < size && word[i] != '\0'; i++) {
        if (domi_http_small_letter_of(bytes[i]) != word[i])
            return false;
    }
    return i == size && word[i] == '\0';
}

/* Returns whether two texts of the same size are equal, regardless of case. */
static inline bool domi_http_is_same_regardless_of_case(const char *one, const char *other,
                                                        size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (domi_http_small_letter_of(one[i]) != domi_http_small_letter_of(other[i]))
            return false;
    }
    return true;
}

static inline bool domi_http_is_space_or_tab(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Remove spaces and tabs from both ends of a text. */
static inline void domi_http_trim_spaces_and_tabs(const char **bytes, size_t *size)
{
    while (*size != 0 && domi_http_is_space_or_tab((*bytes)[*size - 1]))
        (*size)--;
    while (*size != 0 && domi_http_is_space_or_tab(**bytes)) {
        (*bytes)++;
        (*size)--;
    }
}

/* Find the next element, which may be empty, of a list that commas divide. `at` must begin as 0.
 * Returns false when there is none. Commas in quoted strings divide, too, so use this only for
 * lists where that does no harm. */
static inline bool domi_http_next_element_of_list(const char *list, size_t size, size_t *at,
                                                  const char **ret_element, size_t *ret_size)
{
    if (*at > size)
        return false;
    const char *from = list + *at;
    const char *comma = size != *at ? memchr(from, ',', size - *at) : NULL;

    *ret_element = from;
    *ret_size = comma != NULL ? (size_t)(comma - from) : size - *at;
    *at += *ret_size + 1;
    domi_http_trim_spaces_and_tabs(ret_element, ret_size);
    return true;
}

/* Returns the value of a hexadecimal digit; -1 for any other byte. */
static inline int domi_http_value_of_hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char lower = domi_http_small_letter_of(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

#endif
