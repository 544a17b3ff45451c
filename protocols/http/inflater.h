/* The state of zlib while the body of a response is decompressed (inflater.c, unzip.c). */
#ifndef DOMI_PROTOCOLS_HTTP_INFLATER_H
#define DOMI_PROTOCOLS_HTTP_INFLATER_H

#include "protocols/http/http.h"

#include <zlib.h>

struct domi_http_inflater {
    z_stream zlib;
    bool is_begun;
    bool is_whole; /* the current part of the gzip body was read to its end */
};

/* Begin to decompress the body of the response whose head was read. Returns 0; -ENOMEM. */
int domi_http_unzip_begin(domi_http_state *state);

/* Returns whether the body may end here: it is empty, or its last part is complete. */
bool domi_http_unzip_is_whole(const domi_http_state *state);

/* Free the state of the decompression. */
void domi_http_unzip_end(domi_http_state *state);

#endif
