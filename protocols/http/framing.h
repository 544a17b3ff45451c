/* The fields that concern the connection or the body. */
#ifndef DOMI_PROTOCOLS_HTTP_FRAMING_H
#define DOMI_PROTOCOLS_HTTP_FRAMING_H

#include "protocols/http/head.h"

/* Note what a field says; `line` is what stands behind its colon. Returns 0, or an error. */
int domi_http_read_field(domi_http_head *head, const char *bytes, const char *name,
                         size_t name_size, const char *line, size_t line_size);

/* Hold the fields of a whole head against each other. Returns 0, or an error. */
int domi_http_settle(domi_http_head *head, const char *bytes);

#endif
