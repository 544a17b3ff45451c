/* The server's side of the WebSocket handshake: checks a request, and answers it by 101 or by an
 * error. */
#include "protocols/http/fields.h"
#include "protocols/http/websocket/handshake.h"

#include <errno.h>
#include <string.h>

/* --- fields ----------------------------------------------------------------------------------- */

unsigned domi_websocket_find_first_and_count(domus_slice fields, const char *name,
                                             domus_slice *ret_value)
{
    domus_http_line line;
    uint32_t at = 0;
    unsigned count = 0;

    *ret_value = (domus_slice){NULL, 0, 0};
    while (domus_http_next(fields, &at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, name) && count++ == 0)
            *ret_value = line.value;
    }
    return count;
}

bool domi_websocket_are_bytes_text(const char *bytes, size_t size, const char *text)
{
    return strlen(text) == size && memcmp(bytes, text, size) == 0;
}

/* --- checking the request --------------------------------------------------------------------- */

#define VERSION "13"

/* Returns whether pages of the request's origin may open a WebSocket; a request without an origin
 * comes from no page, and may. */
static bool may_origin_open_websocket(const domus_http_request *request,
                                      const domus_websocket_service *service)
{
    domus_slice origin;
    unsigned count = domi_websocket_find_first_and_count(request->fields, "origin", &origin);

    if (service->origins == NULL || count == 0)
        return true;
    for (const char *const *allowed = service->origins; count == 1 && *allowed != NULL; allowed++) {
        if (domi_websocket_are_bytes_text(domus_slice_data(origin), origin.size, *allowed))
            return true;
    }
    return false;
}

/* Returns the status for the answer to a handshake: 101 if the request is valid. */
static uint16_t http_status_of_websocket_handshake(const domus_http_request *request,
                                                   const domus_websocket_service *service,
                                                   domus_slice *ret_key)
{
    domus_slice version;

    if (request->method != DOMUS_HTTP_GET || request->minor == 0 || request->body.size != 0 ||
        request->stream.number != 0)
        return 400;
    if (!request->upgrade ||
        !domi_http_do_fields_list_word(request->fields, "upgrade", "websocket"))
        return 426;
    if (domi_websocket_find_first_and_count(request->fields, "sec-websocket-version", &version) !=
            1 ||
        !domi_websocket_are_bytes_text(domus_slice_data(version), version.size, VERSION))
        return 426;
    if (domi_websocket_find_first_and_count(request->fields, "sec-websocket-key", ret_key) != 1 ||
        !domi_websocket_is_valid_key(*ret_key))
        return 400;
    return may_origin_open_websocket(request, service) ? 101 : 403;
}

/* Returns whether the client offers this subprotocol; case matters. */
static bool is_subprotocol_offered(domus_slice fields, const char *protocol)
{
    domi_http_elements walk = {.fields = fields, .name = "sec-websocket-protocol"};
    const char *element;
    size_t size;

    while (domi_http_next_element_of_fields(&walk, &element, &size)) {
        if (domi_websocket_are_bytes_text(element, size, protocol))
            return true;
    }
    return false;
}

/* Choose the first of the service's subprotocols that the client offers. Returns NULL if it offers
 * none of them. */
static const char *choose_offered_subprotocol(const domus_http_request *request,
                                              const domus_websocket_service *service)
{
    const char *const *protocol = service->protocols;

    for (; protocol != NULL && *protocol != NULL; protocol++) {
        if (is_subprotocol_offered(request->fields, *protocol))
            return *protocol;
    }
    return NULL;
}

int domus_websocket_answer(const domus_http_request *request,
                           const domus_websocket_service *service,
                           domus_http_response *ret_response, domus_websocket_outcome *ret_outcome)
{
    domus_websocket_outcome outcome = {.protocol = NULL};
    domus_http_response response = {.status = 0};
    domus_appender fields = {0};
    domus_websocket_key key;
    domus_slice sent;

    response.status = outcome.status = http_status_of_websocket_handshake(request, service, &sent);
    if (outcome.status == 101 || outcome.status == 426)
        (void)domus_http_add(&fields, "Upgrade", "websocket");
    if (outcome.status == 426)
        (void)domus_http_add(&fields, "Sec-WebSocket-Version", VERSION);
    if (outcome.status == 101) {
        domi_websocket_make_answer_to_key(domus_slice_data(sent), &key);
        (void)domus_http_add(&fields, "Sec-WebSocket-Accept", key.accept);
        outcome.protocol = choose_offered_subprotocol(request, service);
        if (outcome.protocol != NULL)
            (void)domus_http_add(&fields, "Sec-WebSocket-Protocol", outcome.protocol);
    }
    int error = domus_append_end(&fields, &response.fields);
    if (error != 0)
        return error;
    *ret_response = response;
    if (ret_outcome != NULL)
        *ret_outcome = outcome;
    return 0;
}

int domus_websocket_accept(domus_stack *stack, const domus_http_request *request,
                           const domus_websocket_service *service,
                           domus_websocket_outcome *ret_outcome)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_http_response response;
    domus_websocket_outcome outcome;

    if (channel == NULL)
        return -EPERM;
    int error = domus_websocket_answer(request, service, &response, &outcome);
    if (error != 0)
        return error;
    bool changes = outcome.status == 101;
    if (changes)
        error = domus_channel_set_pipeline(stack, channel, service->pipeline, 0);
    if (error != 0) {
        domus_slice_free(response.fields);
        return error;
    }
    error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0) { /* the library owns the answer's fields only if it has accepted the answer */
        domus_slice_free(response.fields);
        /* The connection's protocol was changed already, so it is reset, and the peer gets no HTTP
         * error. */
        if (changes)
            (void)domus_channel_reset(stack, channel, error);
        return error;
    }
    if (ret_outcome != NULL)
        *ret_outcome = outcome;
    return 0;
}
