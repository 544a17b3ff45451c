/* The spells of shortage of a listener, for the log (shortage.h). Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTENER_SPELLS_H
#define DOMI_IO_ACCEPTORS_LISTENER_SPELLS_H

#include "io/acceptors/acceptor.h"

/* Record that the acceptor has reached channel.maxConnections. */
void domi_shortage_record_connections(domi_acceptor *acceptor);

/* Record that an accept has failed with `error`, a negative errno, because descriptors or memory
 * had run out. */
void domi_shortage_record_accept(domi_acceptor *acceptor, int error);

/* Record that a connection of `key` is refused, because its address has `most` connections. */
void domi_shortage_record_address(domi_acceptor *acceptor, const domi_peer_key *key, uint32_t most);

/* Log all spells of the thread that are over, also those of the receive buffers, and arm the timer
 * again while others last. The timer calls this. */
void domi_shortages_handle_timer(domi_io *io);

#endif
