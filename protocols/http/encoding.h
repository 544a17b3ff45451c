/* Encodings of bodies: which one a client wants, and which one a body has
 * (encoding.c). Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_ENCODING_H
#define DOMI_PROTOCOLS_HTTP_ENCODING_H

#include <domus/slice.h>

/* Returns whether the fields of a request accept gzip, at least as much as plain bytes. */
bool domi_http_wants_gzip(domus_slice fields);

/* Returns whether the fields of a message say that its body is gzip, and nothing else. */
bool domi_http_is_gzip(domus_slice fields);

/* Returns whether If-None-Match of these fields has a strong tag in its weak form ("W/" before it),
 * as the stage makes it of the tag of an answer that it compresses. */
bool domi_http_lists_weakly(domus_slice fields, const char *etag);

#endif
