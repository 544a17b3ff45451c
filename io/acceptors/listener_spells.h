/* The spells of shortage of a listener (shortage.h). Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTENER_SPELLS_H
#define DOMI_IO_ACCEPTORS_LISTENER_SPELLS_H

#include "io/acceptors/acceptor.h"

/* Called when the acceptor has met channel.maxConnections. */
void domi_shortage_of_connections(domi_acceptor *acceptor);

/* Called when an accept has failed with `error`, a negative errno, because descriptors or memory
 * had run out. */
void domi_shortage_of_accept(domi_acceptor *acceptor, int error);

/* Called when a connection of `key` is refused, because its address has `most` connections. */
void domi_shortage_of_address(domi_acceptor *acceptor, const domi_peer_key *key, uint32_t most);

/* Called by the timer: log all spells of the thread that are over, also that of the receive
 * buffers, and arm the timer again while others go on. */
void domi_shortages_handle_timer(domi_io *io);

#endif
