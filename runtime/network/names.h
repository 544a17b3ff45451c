/* Names of sockets: who listens where, and which ports are taken. */
#ifndef DOMI_RUNTIME_NETWORK_NAMES_H
#define DOMI_RUNTIME_NETWORK_NAMES_H

#include "runtime/network/network.h"

/* Give a socket its name; port 0 chooses one, and a Unix socket whose endpoint has no name gets an
 * abstract one. Returns 0; -EINVAL if it has one already;
 * -EADDRINUSE. */
int domi_net_bind(domi_net_socket *socket, const domus_endpoint *at);

/* Give a socket that is about to connect to `to` a name, if it has none. Returns 0; -EADDRINUSE. */
int domi_net_bind_for(domi_net_socket *socket, const domus_endpoint *to);

/* Take the name of a socket away, if it has one. */
void domi_net_unbind(domi_net_socket *socket);

/* Returns the socket that gets a connect to `at`; NULL: nobody listens there. Among listeners that
 * share a port the seed chooses. */
domi_net_socket *domi_net_find_listener(domi_net *net, const domus_endpoint *at);

/* Returns the socket that gets a datagram; NULL: there is none. One that is connected gets only
 * what its peer sends. Among sockets that share a port the sender decides, so that all that one
 * sender sends comes to one socket. */
domi_net_socket *domi_net_find_receiver(const domi_net *net, const domus_endpoint *from,
                                        const domus_endpoint *to);

/* True for 0.0.0.0 and [::]. */
bool domi_net_is_any(const domus_endpoint *at);

#endif
