/* Reads the fields that concern the connection or the framing of the body. */
#ifndef DOMI_PROTOCOLS_HTTP_FRAMING_H
#define DOMI_PROTOCOLS_HTTP_FRAMING_H

#include "protocols/http/head.h"

/* Store what a field tells; `line` is the text behind its colon. Returns 0, or a negative errno. */
int domi_http_read_field(domi_http_head *head, const char *bytes, const char *name,
                         size_t name_size, const char *line, size_t line_size);

/* Check the fields of a complete head against each other. Returns 0, or a negative errno. */
int domi_http_settle(domi_http_head *head, const char *bytes);

#endif
