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
    DOMI_HTTP_TUNNEL, /* as the last, of another protocol, and of any length (tunnel.h) */
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
    uint8_t phase;       /* where the next byte belongs (the enum in body.c) */
    uint8_t digits;      /* digits of the chunk's size that have come */
    uint16_t wrong;      /* the status for a body that was refused */
    uint32_t extensions; /* bytes of extensions */
    uint64_t left;       /* bytes of the body, or of the chunk, that have not come */
    uint64_t taken;      /* bytes of the body that have come */
    domi_http_head trailers;
} domi_http_body;

/* The outcome of a step. */
typedef struct domi_http_part {
    /* where the bytes of the body, or the trailers, begin in the bytes that were looked at */
    size_t at;
    size_t size;
    bool done; /* the body ends with it, and if it came in chunks, these are its trailers */
} domi_http_part;

/* Go on, with `size` bytes (1 or more) at `bytes`. Returns how many were used; 0 when more are
 * needed; -EPROTO or -EMSGSIZE: then `wrong` is set. */
int domi_http_body_step(domi_http_body *body, const domi_http_body_limits *limits,
                        const char *bytes, size_t size, domi_http_part *ret_part);

#endif
