/* Reads the ids of requests (domus/http_trace.h), for the part of a chain that gives ids
 * (request_id.c). Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_TRACE_H
#define DOMI_PROTOCOLS_HTTP_TRACE_H

#include <domus/http.h>
#include <domus/http_trace.h>

/* The fields of a request that have ids. If a field is there twice, nobody knows which one is
 * right, so none counts. */
typedef struct domi_http_names_found {
    domus_slice parent; /* value of the last field traceparent */
    domus_slice id;     /* value of the last field X-Request-Id */
    unsigned parents;
    unsigned ids;
    unsigned states; /* number of fields tracestate in the request */
} domi_http_names_found;

void domi_http_find_fields_with_ids(domus_slice fields, domi_http_names_found *ret_found);

/* Set the id of a request's trace from its fields, if they have a valid id; set the trace itself,
 * which returns 0, or a negative errno if the field is invalid, and then `trace` is unchanged. */
void domi_http_copy_request_id_if_valid(const domi_http_names_found *found,
                                        domus_http_trace *trace);
int domi_http_take_trace_from_fields(const domi_http_names_found *found, domus_http_trace *trace);

bool domi_http_is_valid_request_id(const char *id, size_t size);

/* Make the id of a request from its trace. */
void domi_http_write_trace_as_request_id(domus_http_trace *trace);

#endif
