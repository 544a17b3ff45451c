/* The accept of a listener: it is in flight, or it pauses. Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPT_H
#define DOMI_IO_ACCEPTORS_ACCEPT_H

#include "io/acceptors/acceptor.h"

/* Arm the accept, unless it is in flight or the listener is to be closed. */
void domi_acceptor_arm(domi_acceptor *acceptor);

/* Cancel the accept if it is in flight. */
void domi_acceptor_cancel(domi_acceptor *acceptor);

/* Pause, and try again later, because descriptors have run out; `full`: because of the limits on
 * connections and memory. An accept that is armed again at once would fail at once, for ever. */
void domi_acceptor_pause(domi_acceptor *acceptor, bool full);

/* The next connection has come: the next pause is short again. */
void domi_acceptor_end_backoff(domi_acceptor *acceptor);

/* Called when io->pressure.pauses has changed: pause the accept if it is set. The timer of the
 * acceptor ends the pause. */
void domi_acceptor_look_at_pressure(domi_acceptor *acceptor);

#endif
