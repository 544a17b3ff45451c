/* The life of a network as a whole. */
#ifndef DOMI_RUNTIME_NETWORK_LIFE_H
#define DOMI_RUNTIME_NETWORK_LIFE_H

#include "runtime/network/network.h"

/* Make a network at the time `now_ns`. Returns NULL if there is no memory. */
domi_net *domi_net_new(uint64_t seed, uint64_t now_ns);

/* Free the network with everything in it. All rings are closed. NULL is allowed. */
void domi_net_free(domi_net *net);

/* Break the link between two machines, or repair it (domus_testkit_net_part). */
int domi_net_part(domi_net *net, const domus_endpoint *one, const domus_endpoint *other,
                  bool is_broken);

#endif
