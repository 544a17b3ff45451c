/* The end of a listener: by a stop of its actor, in a drain, or because the ring has failed.
 * Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_STOP_H
#define DOMI_IO_ACCEPTORS_STOP_H

#include "io/acceptors/acceptor.h"

/* Count a listener that was opened (1) or closed (UINT64_MAX). */
void domi_io_count_listener(domi_io *io, uint64_t by);

/* Take a connection that is accepted while the listener is being closed. In a drain it is handed
 * over, beyond all limits, because a backlog is bounded and a request that is not answered now
 * never will be. */
void domi_acceptor_take_last(domi_acceptor *acceptor, int fd);

/* Turn away the connections that wait, and close the listener. */
void domi_acceptor_close(domi_acceptor *acceptor);

/* Begin to stop: cancel the accept, and turn away the connections that wait. Returns 1 while an
 * operation is still in flight or more connections may wait; otherwise the listener is closed, and
 * 0 is returned. */
uint32_t domi_acceptor_stop(domi_acceptor *acceptor);

/* Begin a drain: hand over every connection that waits to be accepted, beyond all limits, because a
 * backlog is bounded; then close the listener. */
void domi_acceptor_drain(domi_acceptor *acceptor);

/* Called when the time of a drain is over: turn away the connections that still wait. */
void domi_acceptor_abort_drain(domi_acceptor *acceptor);

/* Stop, because the ring has failed and the operations in flight do not come back. The socket is
 * shut down, because the ring may still hold it: new connections are refused then. */
void domi_acceptor_fail(domi_acceptor *acceptor);

/* The accept or its cancel has come back, or it is time for the next step: go on with the stop if
 * nothing is in flight. The house is made ready when the listener is closed, because a stopping
 * actor waits for that. */
void domi_acceptor_go_on_stopping(domi_acceptor *acceptor);

#endif
