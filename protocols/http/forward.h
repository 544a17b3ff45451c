/* The heads that a proxy sends: of the request to the server, and of the answer to the client. */
#ifndef DOMI_PROTOCOLS_HTTP_FORWARD_H
#define DOMI_PROTOCOLS_HTTP_FORWARD_H

#include <domus/http_proxy.h>

/* Make the head of the request for the server. `client` is the address that has asked, and
 * `upgrade` the protocol of the tunnel that it wants, or NULL. The slices of the head are the
 * caller's. Returns 0; -ENOMEM; -EINVAL. */
int domi_http_forward_request(const domus_http_proxy *proxy, const domus_http_request *request,
                              const domus_endpoint *client, const char *upgrade,
                              domus_http_request *ret_request);

/* Make the head of the answer to `request` for the client. The slices of the head are the caller's.
 * Returns 0; -ENOMEM; -EINVAL. */
int domi_http_forward_response(const domus_http_proxy *proxy, const domus_http_request *request,
                               const domus_http_response *response,
                               domus_http_response *ret_response);

/* Make the trailers that are passed on, which may be none. Their slice is the caller's.
 * Returns 0; -ENOMEM. */
int domi_http_forward_trailers(const domus_http_proxy *proxy, domus_slice fields,
                               domus_http_trailers *ret_trailers);

#endif
