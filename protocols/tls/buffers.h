/* The buffers of OpenSSL: 17 KiB to read and 17 KiB to write for a connection.
 *
 * A connection gives its buffers back after each record, so an idle one has none. That costs two
 * allocations and two frees for a record, which malloc(3) does the long way for blocks of this
 * size. So the last connections of a thread that had something to read keep theirs, `buffers_max`
 * (64) of each context, some 2 MiB in all; another one takes the place of the one that came first.
 * They count with it, so none keeps its buffers while there is no room in the budget, or while
 * memory is full. Owner thread. */
#ifndef DOMI_PROTOCOLS_TLS_BUFFERS_H
#define DOMI_PROTOCOLS_TLS_BUFFERS_H

#include "protocols/tls/tls.h"

/* Let a connection, whose handshake is done, keep its buffers. */
void domi_tls_buffers_keep(domi_tls_state *state);

/* The connection ends: take it out of the shard's `keepers`. */
void domi_tls_buffers_forget(domi_tls_state *state);

#endif
