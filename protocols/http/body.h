/* The bytes behind a head in HTTP/1.1: a body of a known length, one in chunks, or one up to the
 * end of the connection. */
#ifndef DOMI_PROTOCOLS_HTTP_BODY_H
#define DOMI_PROTOCOLS_HTTP_BODY_H

#include "protocols/http/head.h"

typedef enum domi_http_framing {
    DOMI_HTTP_NO_BODY,
    DOMI_HTTP_COUNTED,
    DOMI_HTTP_IN_CHUNKS,
    DOMI_HTTP_UNTIL_CLOSE,
    /* the rest of the connection, on which another protocol is spoken (proxy_parts.h) */
    DOMI_HTTP_TUNNEL,
} domi_http_framing;

typedef struct domi_http_body_limits {
    uint64_t body_max;
    uint32_t extension_max;
    uint32_t trailer_max;
    uint32_t fields_max;
} domi_http_body_limits;

/* A body while it is decoded; `{.framing = framing, .left = length}` begins one. */
typedef struct domi_http_body {
    uint8_t framing; /* how the body's end is marked: domi_http_framing */
    /* part of a body in chunks to which the next byte belongs (the enum in body.c) */
    uint8_t phase;
    uint8_t digits;      /* number of digits of the current chunk's size that have come */
    uint16_t wrong;      /* status of the answer, if the body was refused */
    uint32_t extensions; /* bytes of the extensions of chunks that have come, over the whole body */
    uint64_t left;       /* bytes of the body, or of the current chunk, that have not come */
    uint64_t taken;      /* bytes of the body that have come */
    domi_http_head trailers;
} domi_http_body;

/* A part of a body that one call of domi_http_decode_part_of_body() has decoded. */
typedef struct domi_http_part {
    /* offset of the part's bytes, or of the trailers, in the bytes of the call */
    size_t at;
    size_t size;
    bool done; /* the body ends with this part; if it is in chunks, the bytes are its trailers */
} domi_http_part;

/* Decode the next part of a body from the `size` (at least 1) bytes at `bytes`. Returns how many
 * bytes were used; 0 when more are needed; -EPROTO or -EMSGSIZE, and then `wrong` of the body is
 * set. */
int domi_http_decode_part_of_body(domi_http_body *body, const domi_http_body_limits *limits,
                                  const char *bytes, size_t size, domi_http_part *ret_part);

#endif
