/* Start lines of requests and of responses. */
#ifndef DOMI_PROTOCOLS_HTTP_START_H
#define DOMI_PROTOCOLS_HTTP_START_H

#include "protocols/http/head.h"

/* Read a start line, which ends at `end`. Return 0, or a negative errno. */
int domi_http_read_request_line(domi_http_head *head, const domi_http_limits *limits,
                                const char *bytes, size_t end);
int domi_http_read_status_line(domi_http_head *head, const char *bytes, size_t end);

#endif
