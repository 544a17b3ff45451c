/* Reads heads. A head lies in one piece of memory, and is read as it comes: whole lines are read
 * once, and the bytes of a line that is not whole are looked at once each. The bytes that are
 * refused, and the status for them, do not depend on the pieces in which they come. */
#ifndef DOMI_PROTOCOLS_HTTP_LINES_H
#define DOMI_PROTOCOLS_HTTP_LINES_H

#include "protocols/http/head.h"

/* Read on, from the `size` bytes at `bytes`, with which the head begins. Returns the bytes of the
 * head when it is whole; 0 when more are needed; -EPROTO when it is wrong, and -EMSGSIZE beyond a
 * limit: then `wrong` is set. */
int domi_http_head_read(domi_http_head *head, const domi_http_limits *limits, const char *bytes,
                        size_t size);

#endif
