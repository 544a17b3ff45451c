/* Reads heads. A head lies in one piece of memory, and is read as it comes: complete lines are read
 * once, and each byte of an incomplete line is searched once. Which bytes are refused, and with
 * which status, does not depend on the pieces in which they come. */
#ifndef DOMI_PROTOCOLS_HTTP_LINES_H
#define DOMI_PROTOCOLS_HTTP_LINES_H

#include "protocols/http/head.h"

/* Continue to read a head, which begins with the `size` bytes at `bytes`. Returns the bytes of the
 * head when it is complete; 0 when more are needed; -EPROTO when it is invalid, and -EMSGSIZE
 * beyond a limit, and then `wrong` is set. */
int domi_http_head_read(domi_http_head *head, const domi_http_limits *limits, const char *bytes,
                        size_t size);

#endif
