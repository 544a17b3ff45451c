/* The ring of a simulated thread: the third backend, beside those of io_uring and of epoll.
 *
 * Operations are queued, and the next enter carries them out in their order, as in the epoll
 * backend. An operation that can complete then is completed; any other one waits at its socket (one
 * operation for input, one send, and polls), and the socket comes to the list of those that are
 * ready when something has changed. Completions are shown by an enter and not before, as those of
 * an io_uring with DEFER_TASKRUN are. A thread that sleeps is inside an enter: the test kit wakes
 * it when domi_net_ring_is_due(). */
#ifndef DOMI_RUNTIME_NETWORK_RING_H
#define DOMI_RUNTIME_NETWORK_RING_H

#include "runtime/network/network.h"

/* The network in which rings that this OS thread opens from now on will be; NULL: none, and an open
 * fails. Returns the one before. */
domi_net *domi_net_open_rings_in(domi_net *net);

/* True if an enter that waits would return now: there is a completion, or one can be had. */
bool domi_net_ring_is_due(const void *ring);

/* End the enter in which a thread has slept: what can complete now is shown. */
void domi_net_ring_wake(void *ring);

extern const domi_backend domi_backend_net;

#endif
