/* Compares names of parameters in queries and forms. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_QUERY_H
#define DOMI_PROTOCOLS_HTTP_QUERY_H

#include <domus/slice.h>

/* Returns whether `encoded`, a name from a query or a form, is the given name (query.c). */
bool domi_http_is_encoded_name(domus_slice encoded, const char *name);

#endif
