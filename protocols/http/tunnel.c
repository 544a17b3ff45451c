/* Opens tunnels to other protocols on connections that a server has accepted (proxy_parts.h). Owner
 * thread of the channel. */
#include "protocols/http/proxy_parts.h"

#include "protocols/http/fields.h"
#include "protocols/http/http.h"

#include <errno.h>

/* Returns whether the protocol is HTTP/2, whose requests would pass through a tunnel unchecked. */
static bool is_protocol_http2(const char *protocol)
{
    return domi_http_is_word_regardless_of_case(protocol, strlen(protocol), "h2c") ||
           domi_http_is_word_regardless_of_case(protocol, strlen(protocol), "h2");
}

static bool may_request_upgrade_to(const domus_http_request *request, const char *protocol)
{
    bool is_websocket = strcmp(protocol, "websocket") == 0;

    return !is_protocol_http2(protocol) && (request->method == DOMUS_HTTP_GET || !is_websocket) &&
           domi_http_do_fields_list_word(request->fields, "upgrade", protocol);
}

const char *domi_http_find_allowed_upgrade(const char *const *protocols,
                                           const domus_http_request *request)
{
    static const char *const websocket[] = {"websocket", NULL};

    if (!request->upgrade || request->stream.number != 0 || request->body.size != 0)
        return NULL;
    for (protocols = protocols != NULL ? protocols : websocket; *protocols != NULL; protocols++) {
        if (may_request_upgrade_to(request, *protocols))
            return *protocols;
    }
    return NULL;
}

static domi_http_state *http_state_of_channel(domus_stack *stack, domus_channel *channel)
{
    return channel != NULL ? domus_channel_stage_state(stack, channel, &domus_http_stage) : NULL;
}

int domi_http_mark_that_tunnel_was_asked(domus_stack *stack, domus_channel *channel)
{
    domi_http_state *state = http_state_of_channel(stack, channel);
    int error = state != NULL ? domus_channel_open_rest(stack, channel, NULL) : -EPERM;

    if (error == 0)
        state->tunnel = DOMI_HTTP_TUNNEL_ASKED;
    return error;
}

int domi_http_open_tunnel(domus_stack *stack, domus_channel *channel, domus_body *ret_body)
{
    domi_http_state *state = http_state_of_channel(stack, channel);
    int error = state != NULL ? domus_channel_open_rest(stack, channel, ret_body) : -EPERM;

    if (error != 0)
        return error;
    state->tunnel = DOMI_HTTP_TUNNEL_OPEN;
    state->phase = DOMI_HTTP_STREAMING;
    state->body = (domi_http_body){.framing = DOMI_HTTP_TUNNEL};
    return 0;
}
