/* The calls on sockets, for the backend of the network (ring.h). */
#ifndef DOMI_RUNTIME_NETWORK_SOCKETS_H
#define DOMI_RUNTIME_NETWORK_SOCKETS_H

#include "io/backend/backend.h"

extern const domi_sockets domi_net_sockets;

#endif
