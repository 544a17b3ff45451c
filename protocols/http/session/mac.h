/* MACs by a key of a ring: HMAC-SHA256 over a purpose, a byte 0, and some bytes. A purpose has no
 * byte 0, so different pairs of purpose and bytes never give the same input. Purposes of this
 * library begin with "domus-http", and purposes of users are put behind such a prefix, so neither
 * can be taken for the other. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_SESSION_MAC_H
#define DOMI_PROTOCOLS_HTTP_SESSION_MAC_H

#include <domus/http_sign.h>

#define DOMI_HTTP_MAC_BYTES 32u

typedef struct domi_http_mac_text {
    const char *kind;    /* the library's part of the purpose, such as "domus-http-sign" */
    const char *purpose; /* the user's part of the purpose */
    const void *bytes;
    size_t size;
} domi_http_mac_text;

void domi_http_mac(const domus_http_key *key, const domi_http_mac_text *text,
                   unsigned char mac[DOMI_HTTP_MAC_BYTES]);

/* Returns whether two MACs are equal, in a time that does not depend on their bytes. */
bool domi_http_mac_equals(const unsigned char *one, const unsigned char *other, size_t size);

#endif
