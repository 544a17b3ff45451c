/* How the head of an HTTP/1.1 message is read: its lines, its start line, the method, and the
 * fields that concern the connection or the body. */
#ifndef DOMI_PROTOCOLS_HTTP_HEADS_H
#define DOMI_PROTOCOLS_HTTP_HEADS_H

#include "protocols/http/head.h"

#include <domus/http.h>

/* ---- lines.c ----------------------------------------------------------------------------------*/

/* Reads heads. A head lies in one piece of memory, and is read as it comes: complete lines are read
 * once, and each byte of an incomplete line is searched once. Which bytes are refused, and with
 * which status, does not depend on the pieces in which the head comes. */

/* Continue to read a head, which begins with the `size` bytes at `bytes`. Returns the bytes of the
 * head when it is complete; 0 when more are needed; -EPROTO when it is invalid, and -EMSGSIZE
 * beyond a limit, and then `wrong` of the head is set. */
int domi_http_read_head(domi_http_head *head, const domi_http_limits *limits, const char *bytes,
                        size_t size);

/* ---- start.c ----------------------------------------------------------------------------------*/

/* Reads the start lines of requests and of responses. */

/* Read the start line of a request, or of a response, which ends at `end`. Return 0, or a negative
 * errno. */
int domi_http_read_request_line(domi_http_head *head, const domi_http_limits *limits,
                                const char *bytes, size_t end);
int domi_http_read_status_line(domi_http_head *head, const char *bytes, size_t end);

/* ---- method.c ---------------------------------------------------------------------------------*/

/* Methods of requests by their names, and the form of a host. */

/* Returns the method of requests with this name; DOMUS_HTTP_METHODS if there is none. */
domus_http_method domi_http_find_method(const char *name, size_t size);

/* Returns whether a text is a host with or without a port: a name, an IPv4 address, or an IPv6
 * address in brackets. */
bool domi_http_is_valid_host(const char *text, size_t size);

/* Returns whether the `size` bytes are an address of this family (AF_INET or AF_INET6) as text. */
bool domi_http_is_address_of_family(int family, const char *text, size_t size);

/* Returns how many bytes the IPv6 address in brackets has with which a text begins, with its
 * brackets; 0 if what is in them is no such address. The text begins with '['. */
size_t domi_http_size_of_address_in_brackets(const char *text, size_t size);

/* ---- framing.c --------------------------------------------------------------------------------*/

/* Reads the fields that concern the connection or the framing of the body. */

/* Store in the head what one field tells; `line` is the text behind the field's colon. Returns 0,
 * or a negative errno. */
int domi_http_read_field_of_head(domi_http_head *head, const char *bytes, const char *name,
                                 size_t name_size, const char *line, size_t line_size);

/* Check the fields of a complete head against each other. Returns 0, or a negative errno. */
int domi_http_check_head_as_a_whole(domi_http_head *head, const char *bytes);

#endif
