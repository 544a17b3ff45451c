/* Decompresses the body of a response while it is gathered (unzip.c). */
#ifndef DOMI_PROTOCOLS_HTTP_UNZIP_H
#define DOMI_PROTOCOLS_HTTP_UNZIP_H

#include "protocols/http/http.h"

/* Bytes that are decompressed in one step at most: they become 1 MiB, if they come from a peer that
 * wants that, and some KiB otherwise. */
#define DOMI_HTTP_UNZIP_STEP 1024u

/* Decompress some bytes, and gather what they become. Returns 0; -EPROTO for bytes that are not
 * gzip; -EMSGSIZE when the body is too large; -ENOMEM. */
int domi_http_unzip(domi_http_state *state, const char *bytes, size_t size);

#endif
