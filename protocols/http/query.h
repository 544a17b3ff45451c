/* Names of parameters, for queries and forms. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_QUERY_H
#define DOMI_PROTOCOLS_HTTP_QUERY_H

#include <domus/slice.h>

/* Returns whether a name, as it is encoded in a query or a form, is this one (query.c). */
bool domi_http_is_encoded_name(domus_slice encoded, const char *name);

#endif
