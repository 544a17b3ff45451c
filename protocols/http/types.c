/* The types of HTTP's messages, and how their payloads are released. */
#include "protocols/http/http.h"

#include <domus/http_client.h>

static void release_slices_of_request(void *payload)
{
    domus_http_request *request = payload;

    domus_slice_free(request->target);
    domus_slice_free(request->fields);
    domus_slice_free(request->body);
}

static void release_slices_of_response(void *payload)
{
    domus_http_response *response = payload;

    domus_slice_free(response->fields);
    domus_slice_free(response->body);
    domus_slice_free(response->trailers);
}

static void release_slices_of_trailers(void *payload)
{
    domus_slice_free(((domus_http_trailers *)payload)->fields);
}

const domus_type domus_http_request_type = {.name = "http_request",
                                            .size = sizeof(domus_http_request),
                                            .release = release_slices_of_request};
const domus_type domus_http_repeatable_type = {.name = "http_request that may be done twice",
                                               .size = sizeof(domus_http_request),
                                               .release = release_slices_of_request};
const domus_type domus_http_response_type = {.name = "http_response",
                                             .size = sizeof(domus_http_response),
                                             .release = release_slices_of_response};
const domus_type domus_http_text_type = {.name = "http_text", .size = sizeof(domus_http_text)};
const domus_type domus_http_trailers_type = {.name = "http_trailers",
                                             .size = sizeof(domus_http_trailers),
                                             .release = release_slices_of_trailers};
