/* The ring of a simulated thread. It is the third backend, beside those of io_uring and of epoll.
 *
 * Operations are queued, and the next enter carries them out in their order, as in the epoll
 * backend. An operation that can complete then is completed. Any other operation waits at its
 * socket (one operation for input, one send, and polls), and the socket is listed as ready when it
 * has changed so that the operation can go on. Completions are shown only by an enter, like those
 * of an io_uring with DEFER_TASKRUN. A thread that sleeps is inside an enter: the test kit wakes it
 * when domi_net_would_waiting_enter_return() returns true. */
#ifndef DOMI_RUNTIME_NETWORK_RING_H
#define DOMI_RUNTIME_NETWORK_RING_H

#include "runtime/network/network.h"

/* Set in which network the rings are that this OS thread opens from now on; with NULL an open
 * fails. Returns the network that was set before. */
domi_net *domi_net_set_network_of_new_rings(domi_net *net);

/* True if an enter of this ring that waits would return now, because it has a completion or an
 * operation can complete. */
bool domi_net_would_waiting_enter_return(const void *ring);

/* End the enter in which a simulated thread has slept, and show the operations that can complete
 * now. */
void domi_net_ring_end_sleep(void *ring);

extern const domi_backend domi_backend_net;

#endif
