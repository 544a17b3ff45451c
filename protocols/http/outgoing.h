/* An answer of a server on its way to the wire, of whichever message type (answer.c), and its
 * compression (pack.c). */
#ifndef DOMI_PROTOCOLS_HTTP_OUTGOING_H
#define DOMI_PROTOCOLS_HTTP_OUTGOING_H

#include "protocols/http/coding.h"
#include "protocols/http/http.h"

typedef struct domi_http_outgoing {
    unsigned status;
    const char *media;
    size_t media_size;
    domus_slice fields;
    /* fields that parts of a chain have added, up to DOMI_HTTP_COPIED_MAX bytes */
    domus_slice added;
    domus_slice body;
    domus_slice trailers; /* trailers of a complete answer */
    const char *text;     /* the body, if it is a text and not a slice */
    size_t body_size;
    uint64_t length;
    bool close;
    /* the length of the body is unknown, so the head does not tell it */
    bool has_no_length;
    /* compresses the pieces of the body; NULL: they are not compressed */
    domi_http_deflater *deflater;
} domi_http_outgoing;

/* Slices that a compressed answer owns. */
typedef struct domi_http_packed {
    domus_slice fields;
    domus_slice body;
} domi_http_packed;

/* Returns whether answers with this status have no body. */
static inline bool domi_http_has_no_body(unsigned status)
{
    return status < 200 || status == 204 || status == 304;
}

/* Compress an answer, or prepare an answer in pieces to be compressed, if this is allowed and its
 * client accepts it; and add the fields for it. If this returns 0, the answer points to what
 * `packed` owns, which the caller frees afterwards, and the caller has to list or give back the
 * deflater. Returns 0; -ENOMEM. */
int domi_http_pack(domi_http_state *state, uint64_t id, bool is_stream, domi_http_outgoing *answer,
                   domi_http_packed *packed);

#endif
