/* The buffers of OpenSSL: 17 KiB to read and 17 KiB to write for a connection.
 *
 * A connection frees its buffers after each record, so an idle one has none. That costs two
 * allocations and two frees for a record, which are slow in malloc(3) for blocks of this size.
 * So the connections of a thread that were the last to read something keep their buffers,
 * `buffers_max` (64) of each context, about 2 MiB in all; a further one takes the place of the
 * oldest. Kept buffers count for the budget, so none are kept while the budget has no room, or
 * while memory is full. Thread-safety: owner thread. */
#ifndef DOMI_PROTOCOLS_TLS_BUFFERS_H
#define DOMI_PROTOCOLS_TLS_BUFFERS_H

#include "protocols/tls/tls.h"

/* Let a connection keep OpenSSL's buffers after each record. Its handshake must be done. */
void domi_tls_keep_buffers_in_place_of_oldest(domi_tls_state *state);

/* Take a connection that is about to end out of its shard's `keepers`. */
void domi_tls_stop_keeping_buffers(domi_tls_state *state);

#endif
