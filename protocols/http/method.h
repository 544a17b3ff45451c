/* Methods by their names, and what a host may be. */
#ifndef DOMI_PROTOCOLS_HTTP_METHOD_H
#define DOMI_PROTOCOLS_HTTP_METHOD_H

#include <domus/http.h>

/* Returns the method of this name; DOMUS_HTTP_METHODS if there is none. */
domus_http_method domi_http_find_method(const char *name, size_t size);

/* Returns whether a text is a host with or without a port: a name, an address of version 4, or one
 * of version 6 in brackets. */
bool domi_http_is_host(const char *text, size_t size);

#endif
