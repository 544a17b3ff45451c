/* The behaviours of a client's connections to servers, and which requests may be sent twice on
 * them. */
#include "protocols/http/http.h"

#include <domus/http_client.h>

const domus_type *const domus_http_client_encodes[] = {&domus_http_request_type,
                                                       &domus_http_repeatable_type, NULL};
const domus_type *const domus_http_repeatable[] = {&domus_http_repeatable_type, NULL};

static const domus_http_options whole = {.role = DOMUS_ROLE_CLIENT, .origin_form = true};
static const domus_http_options pieces = {
    .role = DOMUS_ROLE_CLIENT, .origin_form = true, .streams = true, .body_max = UINT64_MAX};

static const domus_pipeline whole_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &whole}, {NULL, NULL}},
    .encodes = domus_http_client_encodes,
    .inflight_max = 1};
static const domus_pipeline pieces_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &pieces}, {NULL, NULL}},
    .encodes = domus_http_client_encodes,
    .inflight_max = 1};

const domus_behaviour domus_http_connection = {
    .name = "http connection", .kind = DOMUS_CHANNELS, .pipeline = &whole_pipeline};
const domus_behaviour domus_http_streaming_connection = {
    .name = "http connection", .kind = DOMUS_CHANNELS, .pipeline = &pieces_pipeline};

bool domus_http_is_repeatable(domus_http_method method)
{
    return method == DOMUS_HTTP_GET || method == DOMUS_HTTP_HEAD || method == DOMUS_HTTP_PUT ||
           method == DOMUS_HTTP_DELETE || method == DOMUS_HTTP_OPTIONS ||
           method == DOMUS_HTTP_TRACE || method == DOMUS_HTTP_PROPFIND;
}
