/* An answer of a server on its way to the wire, in whichever type it came (answer.c), and what
 * becomes of it if it may be compressed (pack.c). */
#ifndef DOMI_PROTOCOLS_HTTP_OUTGOING_H
#define DOMI_PROTOCOLS_HTTP_OUTGOING_H

#include "protocols/http/deflate.h"
#include "protocols/http/http.h"

typedef struct domi_http_outgoing {
    unsigned status;
    const char *media;
    size_t media_size;
    domus_slice fields;
    domus_slice added; /* further fields, of parts of a chain, up to DOMI_HTTP_COPIED_MAX bytes */
    domus_slice body;
    domus_slice trailers; /* of a whole answer */
    const char *text;     /* the body, if it is not a slice */
    size_t body_size;
    uint64_t length;
    bool close;
    bool has_no_length;           /* the length of its body is not known, and not said */
    domi_http_deflater *deflater; /* compresses its pieces; NULL: they leave as they are */
} domi_http_outgoing;

/* Slices that an answer owns because of its compression. */
typedef struct domi_http_packed {
    domus_slice fields;
    domus_slice body;
} domi_http_packed;

/* True if there is no body with this status. */
static inline bool domi_http_has_no_body(unsigned status)
{
    return status < 200 || status == 204 || status == 304;
}

/* Compress an answer, or prepare it for pieces that are compressed, if it may be and its client
 * accepts it; and say what its fields have to say. If this returns 0, the answer shows what
 * `packed` owns, which the caller frees behind it, and the caller has to list or give back its
 * deflater. Returns 0; -ENOMEM. */
int domi_http_pack(domi_http_state *state, uint64_t id, bool is_stream, domi_http_outgoing *answer,
                   domi_http_packed *packed);

#endif
