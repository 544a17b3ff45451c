/* The address of the client of an exchange, perhaps as trusted proxies have named it. Any
 * thread. */
#ifndef DOMI_PROTOCOLS_HTTP_CLIENT_ADDRESS_H
#define DOMI_PROTOCOLS_HTTP_CLIENT_ADDRESS_H

#include <domus/http_chain.h>

/* Find the address that the outermost of `proxies` trusted proxies has added to X-Forwarded-For; of
 * a shorter list it is the first one. Without proxies, or if it is no address, it is the peer of
 * the connection. IPv4 that is mapped into IPv6 becomes IPv4, and the port is 0. */
void domi_http_find_client(const domus_http_exchange *exchange, domus_slice fields,
                           uint32_t proxies, domus_endpoint *ret_client);

#endif
