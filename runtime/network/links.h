/* Links between machines, which a test may break. */
#ifndef DOMI_RUNTIME_NETWORK_LINKS_H
#define DOMI_RUNTIME_NETWORK_LINKS_H

#include "runtime/network/network.h"

/* True if both endpoints are on one machine: the ports may differ. */
bool domi_net_is_same_host(const domus_endpoint *one, const domus_endpoint *other);

/* True if the link between the machines of these endpoints is broken. */
bool domi_net_is_link_broken(const domi_net *net, const domus_endpoint *one,
                             const domus_endpoint *other);

/* True if nothing passes on the link of this connection now. */
bool domi_net_is_blocked(const domi_net_connection *connection);

/* Break the link between two machines; NULL: every machine. Returns 0; -ENOSPC. */
int domi_net_break_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other);

/* Repair such a link; the caller lets go on what was held up. Returns 0; -ENOENT. */
int domi_net_repair_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other);

#endif
