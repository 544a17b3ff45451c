/* Decompresses the body of a response while it is gathered (unzip.c). */
#ifndef DOMI_PROTOCOLS_HTTP_UNZIP_H
#define DOMI_PROTOCOLS_HTTP_UNZIP_H

#include "protocols/http/http.h"

/* Compressed bytes that are decompressed in one step, at most: a hostile peer can make them 1 MiB,
 * and normally they become some KiB. */
#define DOMI_HTTP_UNZIP_STEP 1024u

/* Decompress some bytes, and gather the result. Returns 0; -EPROTO for bytes that are not gzip;
 * -EMSGSIZE when the body is too large; -ENOMEM. */
int domi_http_unzip(domi_http_state *state, const char *bytes, size_t size);

#endif
