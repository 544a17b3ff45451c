/* Tunnels to another protocol through a proxy, after "Upgrade" and the answer 101. On the side of
 * the client the field `tunnels` of a request opens one (domus/http.h). */
#ifndef DOMI_PROTOCOLS_HTTP_TUNNEL_H
#define DOMI_PROTOCOLS_HTTP_TUNNEL_H

#include <domus/http.h>

/* Find the protocol to which a request wants to change, among `protocols` (ended by NULL; if
 * `protocols` is NULL, WebSocket only). Returns NULL if there is none that is allowed. Requests
 * with a body and changes to HTTP/2 in clear are never allowed. */
const char *domi_http_find_upgrade(const char *const *protocols, const domus_http_request *request);

/* Prepare that the current request may become a tunnel. From now on an answer other than 101 ends
 * the connection, because its client may send bytes of the other protocol at any time, which must
 * not be read as requests. Returns 0; a negative errno if it cannot become a tunnel. */
int domi_http_await_tunnel(domus_stack *stack, domus_channel *channel);

/* Open the tunnel: read all bytes that the client has sent behind its request, and will send, as
 * bytes of the other protocol. The answer must be 101, by domus_reply_begin(). Returns 0; or as
 * domus_channel_open_rest(). */
int domi_http_open_tunnel(domus_stack *stack, domus_channel *channel, domus_body *ret_body);

#endif
