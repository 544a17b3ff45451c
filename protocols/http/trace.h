/* Reading the names of requests (domus/http_trace.h), for the part that gives them (request_id.c).
 * Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_TRACE_H
#define DOMI_PROTOCOLS_HTTP_TRACE_H

#include <domus/http.h>
#include <domus/http_trace.h>

/* The fields of a request that have to do with its names. If one stands there twice, nobody knows
 * which is right, so it does not count. */
typedef struct domi_http_names_found {
    domus_slice parent; /* the last traceparent */
    domus_slice id;     /* the last X-Request-Id */
    unsigned parents;
    unsigned ids;
    unsigned states; /* fields tracestate */
} domi_http_names_found;

void domi_http_find_names(domus_slice fields, domi_http_names_found *ret_found);

/* Take the id, if there is a valid one; and the trace. Returns 0; a negative errno without a valid
 * one, and `trace` is as it was. */
void domi_http_take_id(const domi_http_names_found *found, domus_http_trace *trace);
int domi_http_take_parent(const domi_http_names_found *found, domus_http_trace *trace);

bool domi_http_is_request_id(const char *id, size_t size);

/* Make the id of the trace. */
void domi_http_name_by_trace(domus_http_trace *trace);

#endif
