/* Signed values and secrets: how their bytes become text, how random ones are drawn, and how MACs
 * are made. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_SESSION_SIGNING_H
#define DOMI_PROTOCOLS_HTTP_SESSION_SIGNING_H

#include <domus/http_sign.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* ---- base64url --------------------------------------------------------------------------------*/

/* base64url without padding (RFC 4648, section 5), as in signed values. Each sequence of bytes has
 * exactly one encoding: unused bits must be zero, and no other characters are allowed. (The decoder
 * of nettle ignores white space and requires padding.) Any thread. */

/* Number of characters of base64url that `size` bytes become. */
#define DOMI_HTTP_64_SIZE(size) (((size)*4u + 2u) / 3u)

/* Write `size` bytes as characters of base64url, without a zero at their end. Returns how many
 * characters there are. */
size_t domi_http_base64url_encode(char *to, const void *bytes, size_t size);

/* Returns how many bytes `size` valid characters of base64url decode to. */
static inline size_t domi_http_base64url_decoded_size(size_t size)
{
    return size / 4 * 3 + (size % 4 * 3) / 4;
}

/* Decode `size` characters of base64url to `to`, which has room for
 * domi_http_base64url_decoded_size() of them. Returns how many bytes there are; -EINVAL, and some
 * bytes may have been written. */
int64_t domi_http_base64url_decode(void *to, const char *text, size_t size);

/* ---- draw -------------------------------------------------------------------------------------*/

/* Draws random secrets. They come from the kernel and not from the seeded source of base/random.h,
 * which could be predicted, so a run that is replayed by its seed has other ids. Any thread. */

/* Fill up to 256 bytes with random bytes of the kernel, which gives so few at once. Returns 0; the
 * error of getrandom(2). */
static inline int domi_http_draw_random_bytes(void *to, size_t size)
{
    ssize_t drawn = getrandom(to, size, 0);

    if (drawn == (ssize_t)size)
        return 0;
    return drawn < 0 ? -errno : -EAGAIN;
}

/* ---- mac --------------------------------------------------------------------------------------*/

/* MACs by a key of a ring: HMAC-SHA256 over a purpose, a byte 0, and some bytes. A purpose has no
 * byte 0, so different pairs of purpose and bytes never give the same input. Purposes of this
 * library begin with "domus-http", and purposes of users are put behind such a prefix, so neither
 * can be taken for the other. Any thread. */

#define DOMI_HTTP_MAC_BYTES 32u

typedef struct domi_http_mac_text {
    const char *kind;    /* the library's part of a MAC's purpose, such as "domus-http-sign" */
    const char *purpose; /* the user's part of a MAC's purpose */
    const void *bytes;
    size_t size;
} domi_http_mac_text;

void domi_http_make_mac(const domus_http_key *key, const domi_http_mac_text *text,
                        unsigned char mac[DOMI_HTTP_MAC_BYTES]);

/* Returns whether two MACs are equal, in a time that does not depend on their bytes. */
bool domi_http_mac_equals(const unsigned char *one, const unsigned char *other, size_t size);

#endif
