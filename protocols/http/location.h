/* Rewrites URLs in the answers of a server behind a proxy, so that clients can use them. */
#ifndef DOMI_PROTOCOLS_HTTP_LOCATION_H
#define DOMI_PROTOCOLS_HTTP_LOCATION_H

#include <domus/http_proxy.h>

/* Add the field Location of an answer to `request`, with the value that the server has given it. */
void domi_http_add_location(domus_appender *to, const domus_http_proxy *proxy,
                            const domus_http_request *request, domus_slice value);

#endif
