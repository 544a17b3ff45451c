/* The parts of a proxy: the heads that it passes on, the URLs in answers, and peers that have
 * changed to another protocol. */
#ifndef DOMI_PROTOCOLS_HTTP_PROXY_PARTS_H
#define DOMI_PROTOCOLS_HTTP_PROXY_PARTS_H

#include <domus/conversation.h>
#include <domus/http.h>
#include <domus/http_proxy.h>
#include <domus/stream.h>

/* ---- forward.c --------------------------------------------------------------------------------*/

/* The heads that a proxy sends: of the request to the server, and of the answer to the client. */

/* Make the head of the request for the server. `client` is the address that has asked, and
 * `upgrade` the protocol of the tunnel that the client wants, or NULL. The caller owns the slices
 * of the head. Returns 0; -ENOMEM; -EINVAL. */
int domi_http_make_forwarded_request(const domus_http_proxy *proxy,
                                     const domus_http_request *request,
                                     const domus_endpoint *client, const char *upgrade,
                                     domus_http_request *ret_request);

/* Make the head of the answer to `request` for the client. The caller owns the slices of the head.
 * Returns 0; -ENOMEM; -EINVAL. */
int domi_http_forward_response(const domus_http_proxy *proxy, const domus_http_request *request,
                               const domus_http_response *response,
                               domus_http_response *ret_response);

/* Make the trailers that the proxy passes on, which may be none. The caller owns their slice.
 * Returns 0; -ENOMEM. */
int domi_http_forward_trailers(const domus_http_proxy *proxy, domus_slice fields,
                               domus_http_trailers *ret_trailers);

/* ---- location.c -------------------------------------------------------------------------------*/

/* Rewrites URLs in the answers of a server behind a proxy, so that clients can use them. */

/* Add the field Location of the answer to `request`, made from the value that the server has given
 * it. */
void domi_http_add_location_behind_proxy(domus_appender *to, const domus_http_proxy *proxy,
                                         const domus_http_request *request, domus_slice value);

/* ---- relay.c ----------------------------------------------------------------------------------*/

/* Relays the bytes of two peers that have changed to another protocol. Each direction reads a
 * piece, writes it, and reads the next one when the receiver accepts more; the directions do not
 * wait for each other. So each holds one piece, and a peer that does not read slows only its own
 * sender. */

/* Tags of the answers for which a conversation that relays waits; tag 0 is used for other
 * answers. */
enum {
    DOMI_HTTP_READ_UP = 1,
    DOMI_HTTP_READ_DOWN,
    DOMI_HTTP_WRITTEN_UP,
    DOMI_HTTP_WRITTEN_DOWN,
};

/* The bytes of both directions between a client and a server. */
typedef struct domi_http_ways {
    domus_request request; /* the request to the server, by which bytes go to the server */
    /* the answer to the client, by which bytes go to the client; domi_http_begin_relay() sets it */
    domus_stream answer;
    /* bytes from the client; with number 0 there are none, or they have ended */
    domus_body up;
    domus_body down; /* bytes from the server; with number 0 there are none, or they have ended */
    bool waits_up;   /* a read or a write of bytes to the server is under way */
    bool waits_down;
} domi_http_ways;

/* Begin to relay both directions after the answer 101, in the conversation of the request on the
 * client's channel. Returns as domus_wait_first(). */
int domi_http_begin_relay(domus_stack *stack, domi_http_ways *ways, domus_resumed *then);

/* Continue to relay when this answer to a read or write has come. Returns as domus_wait_first(); 0
 * when both directions have ended; or an error, which ends both. */
int domi_http_continue_relay(domus_stack *stack, domi_http_ways *ways, const domus_answer *answer,
                             domus_resumed *then);

/* ---- tunnel.c ---------------------------------------------------------------------------------*/

/* Tunnels to another protocol through a proxy, after "Upgrade" and the answer 101. On the side of
 * the client the field `tunnels` of a request opens one (domus/http.h). */

/* Find the protocol to which a request wants to change, among `protocols` (ended by NULL; if
 * `protocols` is NULL, WebSocket only). Returns NULL if there is none that is allowed. Requests
 * with a body and changes to HTTP/2 in clear are never allowed. */
const char *domi_http_find_allowed_upgrade(const char *const *protocols,
                                           const domus_http_request *request);

/* Prepare the channel for the case that its current request becomes a tunnel. From now on an answer
 * other than 101 ends the connection, because the client may send bytes of the other protocol at
 * any time, which must not be read as requests. Returns 0; a negative errno if the request cannot
 * become a tunnel. */
int domi_http_mark_that_tunnel_was_asked(domus_stack *stack, domus_channel *channel);

/* Open the tunnel: all bytes that the client has sent behind its request, and will send, are read
 * as bytes of the other protocol. The answer must be 101, by domus_reply_begin(). Returns 0; or as
 * domus_channel_open_rest(). */
int domi_http_open_tunnel(domus_stack *stack, domus_channel *channel, domus_body *ret_body);

#endif
