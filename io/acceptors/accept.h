/* The accept of a listener, which is either in flight or paused. Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPT_H
#define DOMI_IO_ACCEPTORS_ACCEPT_H

#include "io/acceptors/acceptor.h"

/* Arm the accept, unless it is in flight or the listener will be closed. */
void domi_acceptor_arm(domi_acceptor *acceptor);

/* Cancel the accept if it is in flight. */
void domi_acceptor_cancel(domi_acceptor *acceptor);

/* Pause the accept, and try it again later. `full` says why: true, the limits on connections and
 * memory; false, no descriptors, and then an accept that is armed again at once would fail at once,
 * for ever. */
void domi_acceptor_pause(domi_acceptor *acceptor, bool full);

/* Make the next pause short again, because a connection has come. */
void domi_acceptor_end_backoff(domi_acceptor *acceptor);

/* Pause the accept if io->pressure.pauses was set. Called after each change of that field. The
 * timer of the acceptor ends the pause. */
void domi_acceptor_apply_pressure(domi_acceptor *acceptor);

#endif
