/* Finds routes in tables whose rows have more than a route (dispatch.c). Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_ROUTER_H
#define DOMI_PROTOCOLS_HTTP_ROUTER_H

#include <domus/http_router.h>

#include <stddef.h>

/* Find a route as domus_http_find_route() does, in a table whose rows have `row_size` bytes and
 * begin with a route. */
domus_http_match domi_http_find_route(const domus_http_route *routes, size_t row_size,
                                      const domus_http_request *request);

#endif
