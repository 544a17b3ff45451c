/* The bytes behind a head: a body of a known length, in chunks, or up to the end of
 * the connection. */
#ifndef DOMI_PROTOCOLS_HTTP_BODY_H
#define DOMI_PROTOCOLS_HTTP_BODY_H

#include "protocols/http/head.h"

typedef enum domi_http_framing {
    DOMI_HTTP_NO_BODY,
    DOMI_HTTP_COUNTED,
    DOMI_HTTP_IN_CHUNKS,
    DOMI_HTTP_UNTIL_CLOSE,
    DOMI_HTTP_TUNNEL, /* the rest of the connection, which speaks another protocol (proxy_parts.h)
                       */
} domi_http_framing;

typedef struct domi_http_body_limits {
    uint64_t body_max;
    uint32_t extension_max;
    uint32_t trailer_max;
    uint32_t fields_max;
} domi_http_body_limits;

/* `{.framing = framing, .left = length}` begins a body. */
typedef struct domi_http_body {
    uint8_t framing;     /* domi_http_framing */
    uint8_t phase;       /* the part to which the next byte belongs (the enum in body.c) */
    uint8_t digits;      /* digits of the chunk's size that have come */
    uint16_t wrong;      /* status of the answer for a body that was refused */
    uint32_t extensions; /* bytes of chunk extensions so far */
    uint64_t left;       /* bytes of the body, or of the chunk, that have not come */
    uint64_t taken;      /* bytes of the body that have come */
    domi_http_head trailers;
} domi_http_body;

/* The result of domi_http_body_step(). */
typedef struct domi_http_part {
    /* offset of the body's bytes, or of the trailers, in the bytes of the step */
    size_t at;
    size_t size;
    bool done; /* the body ends here; for a body in chunks, these bytes are its trailers */
} domi_http_part;

/* Decode `size` (at least 1) bytes at `bytes`. Returns how many were used; 0 when more are needed;
 * -EPROTO or -EMSGSIZE, and then `wrong` is set. */
int domi_http_body_step(domi_http_body *body, const domi_http_body_limits *limits,
                        const char *bytes, size_t size, domi_http_part *ret_part);

#endif
