/* An answer of a server on its way to the wire, whatever message the handler has answered with
 * (answer.c), and how it is compressed (pack.c). */
#ifndef DOMI_PROTOCOLS_HTTP_OUTGOING_H
#define DOMI_PROTOCOLS_HTTP_OUTGOING_H

#include "protocols/http/coding.h"
#include "protocols/http/http.h"

typedef struct domi_http_outgoing {
    unsigned status;
    const char *media;
    size_t media_size;
    domus_slice fields;
    /* fields that parts of the chain have added to the answer, up to DOMI_HTTP_COPIED_MAX bytes */
    domus_slice added;
    domus_slice body;
    domus_slice trailers; /* trailers behind the body of a complete answer */
    const char *text;     /* body of the answer, if it is a text and not a slice */
    size_t body_size;
    uint64_t length;
    bool close;
    /* the length of the answer's body is unknown, so the head does not tell it */
    bool has_no_length;
    /* compresses the pieces of the answer's body; NULL: they are not compressed */
    domi_http_deflater *deflater;
} domi_http_outgoing;

/* Slices that were made for a compressed answer, and that the caller of
 * domi_http_compress_answer_if_allowed() frees. */
typedef struct domi_http_packed {
    domus_slice fields;
    domus_slice body;
} domi_http_packed;

/* Returns whether answers with this status have no body. */
static inline bool domi_http_is_status_without_body(unsigned status)
{
    return status < 200 || status == 204 || status == 304;
}

/* Compress an answer, or prepare an answer in pieces to be compressed, if this is allowed and its
 * client accepts it; and add the fields for that. If this returns 0, the answer points to slices of
 * `packed`, which the caller frees afterwards, and the caller has to list or give back the
 * deflater. Returns 0; -ENOMEM. */
int domi_http_compress_answer_if_allowed(domi_http_state *state, uint64_t id, bool is_stream,
                                         domi_http_outgoing *answer, domi_http_packed *packed);

#endif
