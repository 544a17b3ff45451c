/* The end of a listener: by a stop of its actor, in a drain, or because the ring has failed. Owner
 * thread. */
#ifndef DOMI_IO_ACCEPTORS_STOP_H
#define DOMI_IO_ACCEPTORS_STOP_H

#include "io/acceptors/acceptor.h"

/* Add a listener that was opened (`by` is 1) or closed (UINT64_MAX) to the count. */
void domi_io_count_listener(domi_io *io, uint64_t by);

/* Handle a connection that is accepted while the listener is being closed. In a drain it is handed
 * over, beyond all limits, because a backlog is bounded and a request that is not answered now will
 * never be. */
void domi_acceptor_handle_last(domi_acceptor *acceptor, int fd);

/* Turn away the connections that wait, and close the listener. */
void domi_acceptor_close(domi_acceptor *acceptor);

/* Begin a stop: cancel the accept, and turn away waiting connections. Returns 1 while an operation
 * is still in flight or more connections may wait; 0 when the listener is closed. */
uint32_t domi_acceptor_stop(domi_acceptor *acceptor);

/* Begin a drain: hand over every connection that waits to be accepted, beyond all limits, because a
 * backlog is bounded; then close the listener. */
void domi_acceptor_drain(domi_acceptor *acceptor);

/* Turn away the connections that still wait, because the time of a drain is over. */
void domi_acceptor_abort_drain(domi_acceptor *acceptor);

/* Stop an acceptor whose ring has failed, so that the operations in flight do not come back. The
 * socket is shut down, because the ring may still hold it: new connections are refused then. */
void domi_acceptor_fail(domi_acceptor *acceptor);

/* Continue a stop when the accept or its cancel has come back, or the next step is due, once
 * nothing is in flight. The house is made ready when the listener is closed, because a stopping
 * actor waits for that. */
void domi_acceptor_continue_stop(domi_acceptor *acceptor);

#endif
