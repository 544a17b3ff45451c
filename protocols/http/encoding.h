/* Which encoding of a body a client wants (encoding.c). Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_ENCODING_H
#define DOMI_PROTOCOLS_HTTP_ENCODING_H

#include <domus/slice.h>

/* Returns whether the fields of a request accept gzip, at least as much as plain bytes. */
bool domi_http_wants_gzip(domus_slice fields);

#endif
