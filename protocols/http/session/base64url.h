/* base64url without padding (RFC 4648, section 5), as in signed values. Each sequence of bytes has
 * exactly one encoding: unused bits must be zero, and no other characters are allowed. (The decoder
 * of nettle ignores white space and requires padding.) Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_SESSION_BASE64URL_H
#define DOMI_PROTOCOLS_HTTP_SESSION_BASE64URL_H

#include <stddef.h>
#include <stdint.h>

/* The number of characters for `size` bytes. */
#define DOMI_HTTP_64_SIZE(size) (((size)*4u + 2u) / 3u)

/* Write the characters for `size` bytes, without a zero at their end. Returns how many there
 * are. */
size_t domi_http_64_encode(char *to, const void *bytes, size_t size);

/* Returns how many bytes `size` valid characters decode to. */
static inline size_t domi_http_64_bytes(size_t size)
{
    return size / 4 * 3 + (size % 4 * 3) / 4;
}

/* Decode `size` characters to `to`, which has room for domi_http_64_bytes(). Returns how many bytes
 * there are; -EINVAL, and some bytes may have been written. */
int64_t domi_http_64_decode(void *to, const char *text, size_t size);

#endif
