/* Makes the io of a thread (its ring, buffers and tables), and ends it. */
#ifndef DOMI_IO_COMPLETIONS_SETUP_H
#define DOMI_IO_COMPLETIONS_SETUP_H

#include "io/resources/io.h"

/* The functions of io that a manager calls: for the options of a manager that has io. */
extern const domi_io_hooks domi_hooks_of_io;

/* Make the ring and the receive buffers of a thread. Any thread, before start. `manager` was made
 * with domi_hooks_of_io and with this `io`. Returns 0; on failure a negative errno, and a line of
 * text in `error`. */
int domi_io_init(domi_io *io, domi_manager *manager, const domi_backend *backend, char *error,
                 size_t error_size);

/* Enable the ring of the calling thread, which owns it, give it the receive buffers, and arm the
 * poll of the wake descriptor. Returns 0; a negative errno. */
int domi_io_start_ring(domi_io *io);

/* Close the sockets of connects that were given up and whose completion has not come, on the owning
 * thread, which has left its loop and has ended its actors. Otherwise these sockets would stay open
 * until the system is freed. */
void domi_io_end_tries_and_connects(domi_io *io);

/* Free the io of a thread that has ended, with its ring and its buffers. */
void domi_io_fini(domi_io *io);

#endif
