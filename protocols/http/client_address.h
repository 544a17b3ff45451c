/* The address of an exchange's client, which trusted proxies may have added to a field of the
 * request. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_CLIENT_ADDRESS_H
#define DOMI_PROTOCOLS_HTTP_CLIENT_ADDRESS_H

#include <domus/http_chain.h>

/* Find the address that the outermost of `proxies` trusted proxies has added to X-Forwarded-For; in
 * a shorter list it is the first address. Without proxies, or if the text there is no address, it
 * is the peer of the connection. An IPv4 address that is mapped into IPv6 becomes IPv4, and the
 * port is 0. */
void domi_http_find_client_address(const domus_http_exchange *exchange, domus_slice fields,
                                   uint32_t proxies, domus_endpoint *ret_client);

#endif
