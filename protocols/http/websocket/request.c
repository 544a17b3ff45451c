/* The client's side of the WebSocket handshake: makes the request, and checks the answer. */
#include "protocols/http/fields.h"
#include "protocols/http/websocket/handshake.h"

#include <errno.h>
#include <string.h>

/* Add the subprotocols that the client offers, as one list. */
static void add_offered_subprotocols(domus_appender *fields, const char *const *protocol)
{
    domus_appender list = {0};
    domus_slice made;

    if (protocol == NULL || *protocol == NULL)
        return;
    for (const char *divider = ""; *protocol != NULL; protocol++, divider = ", ") {
        size_t size = strlen(*protocol);
        bool is_token = size != 0 && domi_http_count_token_bytes(*protocol, size) == size;
        /* a name that is no token makes the field invalid, because it would be read as several
         * names or as none */
        (void)domus_append_text(&list, "%s%s", divider, is_token ? *protocol : "\n");
    }
    int error = domus_append_end(&list, &made);
    if (error != 0) {
        fields->error = fields->error != 0 ? fields->error : error;
        return;
    }
    (void)domus_http_add_bytes(fields, "Sec-WebSocket-Protocol", domus_slice_data(made), made.size);
    domus_slice_free(made);
}

int domus_websocket_request(const domus_websocket_wish *wish, domus_http_request *ret_request,
                            domus_websocket_key *ret_key)
{
    domus_http_request request = {.method = DOMUS_HTTP_GET, .upgrade = true};
    domus_websocket_key accept;
    domus_appender fields = {0};
    char key[DOMI_WEBSOCKET_KEY64];
    const char *target = wish->target != NULL ? wish->target : "/";
    int error = domi_websocket_make_key(key);

    if (error != 0)
        return error;
    domi_websocket_make_answer_to_key(key, &accept);
    (void)domus_http_add(&fields, "Upgrade", "websocket");
    (void)domus_http_add_bytes(&fields, "Sec-WebSocket-Key", key, sizeof key);
    (void)domus_http_add(&fields, "Sec-WebSocket-Version", "13");
    if (wish->origin != NULL)
        (void)domus_http_add(&fields, "Origin", wish->origin);
    add_offered_subprotocols(&fields, wish->protocols);
    (void)domus_append(&fields, domus_slice_data(wish->fields), wish->fields.size);
    error = domus_append_end(&fields, &request.fields);
    if (error == 0)
        error = domus_slice_copy(target, strlen(target), &request.target);
    if (error != 0) {
        domus_http_request_type.release(&request);
        return error;
    }
    *ret_request = request;
    *ret_key = accept;
    return 0;
}

/* Set `ret_protocol` to the subprotocol that the server has chosen. Returns 0; -EPROTO if the
 * client did not offer it. */
static int find_chosen_subprotocol(const domus_websocket_wish *wish, domus_slice fields,
                                   const char **ret_protocol)
{
    domus_slice chosen;
    unsigned count = domi_websocket_find_first_and_count(fields, "sec-websocket-protocol", &chosen);
    const char *const *protocol = wish->protocols;

    *ret_protocol = NULL;
    if (count == 0)
        return 0;
    for (; count == 1 && protocol != NULL && *protocol != NULL; protocol++) {
        if (domi_websocket_are_bytes_text(domus_slice_data(chosen), chosen.size, *protocol)) {
            *ret_protocol = *protocol;
            return 0;
        }
    }
    return -EPROTO;
}

int domus_websocket_check(const domus_websocket_wish *wish, const domus_websocket_key *key,
                          const domus_http_response *response, const char **ret_protocol)
{
    domus_slice fields = response->fields;
    const char *protocol;
    domus_slice value;

    if (response->status != 101)
        return -ECONNREFUSED;
    if (domi_websocket_find_first_and_count(fields, "upgrade", &value) != 1 ||
        !domi_http_is_slice_word_in_any_case(value, "websocket") ||
        !domi_http_do_fields_list_word(fields, "connection", "upgrade"))
        return -EPROTO;
    if (domi_websocket_find_first_and_count(fields, "sec-websocket-accept", &value) != 1 ||
        !domi_websocket_are_bytes_text(domus_slice_data(value), value.size, key->accept))
        return -EPROTO;
    if (domi_websocket_find_first_and_count(fields, "sec-websocket-extensions", &value) != 0)
        return -EPROTO;
    int error = find_chosen_subprotocol(wish, fields, &protocol);
    if (error == 0 && ret_protocol != NULL)
        *ret_protocol = protocol;
    return error;
}
