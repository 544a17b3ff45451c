/* Tunnels to another protocol, behind "Upgrade" and 101, through a proxy. The side of a client is
 * `tunnels` of a request (domus/http.h). */
#ifndef DOMI_PROTOCOLS_HTTP_TUNNEL_H
#define DOMI_PROTOCOLS_HTTP_TUNNEL_H

#include <domus/http.h>

/* Returns the protocol of these (up to a NULL; NULL: WebSocket alone) that a request wants to
 * change to; NULL: none that may be. A request with a body may not, nor one for HTTP/2 in clear. */
const char *domi_http_find_upgrade(const char *const *protocols, const domus_http_request *request);

/* The request in hand may become a tunnel. From now on an answer other than 101 ends the
 * connection, because its client may send bytes of the other protocol at any time, which must not
 * be read as requests. Returns 0; an error, if it can be none. */
int domi_http_await_tunnel(domus_stack *stack, domus_channel *channel);

/* Read all that the client has sent behind its request, and sends, as the bytes of the other
 * protocol. The answer is 101, by domus_reply_begin(). Returns 0; as domus_channel_open_rest(). */
int domi_http_open_tunnel(domus_stack *stack, domus_channel *channel, domus_body *ret_body);

#endif
