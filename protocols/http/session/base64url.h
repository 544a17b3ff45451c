/* base64url without padding (RFC 4648, section 5), as signed values have it. Each sequence of bytes
 * has one spelling: unused bits are zero, and nothing stands between the characters. (The decoder
 * of nettle passes over white space and wants padding.) Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_SESSION_BASE64URL_H
#define DOMI_PROTOCOLS_HTTP_SESSION_BASE64URL_H

#include <stddef.h>
#include <stdint.h>

/* The characters of `size` bytes. */
#define DOMI_HTTP_64_SIZE(size) (((size)*4u + 2u) / 3u)

/* Write the characters of `size` bytes, without a zero at their end. Returns how many they are. */
size_t domi_http_64_encode(char *to, const void *bytes, size_t size);

/* The bytes that `size` characters stand for, if they are right. */
static inline size_t domi_http_64_bytes(size_t size)
{
    return size / 4 * 3 + (size % 4 * 3) / 4;
}

/* Write the bytes of `size` characters to `to`, which has room for domi_http_64_bytes(). Returns
 * how many they are; -EINVAL, and some of them may have been written. */
int64_t domi_http_64_decode(void *to, const char *text, size_t size);

#endif
