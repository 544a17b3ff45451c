/* Encodings of bodies: which one a client accepts, and which one a body has (encoding.c). Any
 * thread. */
#ifndef DOMI_PROTOCOLS_HTTP_ENCODING_H
#define DOMI_PROTOCOLS_HTTP_ENCODING_H

#include <domus/slice.h>

/* Returns whether the fields of a request prefer gzip to plain bytes, or accept both equally. */
bool domi_http_wants_gzip(domus_slice fields);

/* Returns whether the fields of a message tell that gzip is the only encoding of its body. */
bool domi_http_is_gzip(domus_slice fields);

/* Returns whether If-None-Match of the fields contains `etag`, a strong tag, in its weak form ("W/"
 * before it), which it has in answers that the stage compresses. */
bool domi_http_lists_weakly(domus_slice fields, const char *etag);

#endif
