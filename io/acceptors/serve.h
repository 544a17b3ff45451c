/* The behaviour of acceptors, and the calls for their completions and timers. Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_SERVE_H
#define DOMI_IO_ACCEPTORS_SERVE_H

#include "io/acceptors/acceptor.h"

/* The behaviour of an acceptor. The state of the actor is a pointer to its domi_acceptor. Once the
 * actor was mounted, it frees the domi_acceptor at its end. */
extern const domus_behaviour domi_acceptor_behaviour;

/* Attach the acceptor to the io of its thread, and to `house`, the house of its actor. Returns 0;
 * -EMFILE when the thread has DOMI_ACCEPTORS_MAX of them. */
int domi_acceptor_attach(domi_acceptor *acceptor, domi_io *io, domi_house *house);

/* Close and free an attached acceptor. None of its operations is in flight, or the ring has
 * failed. */
void domi_acceptor_end(domi_acceptor *acceptor);

/* Free an acceptor whose actor has ended before it was mounted. Its listener is closed, and the
 * connections that waited there are counted as turned away on its first target. Called after all
 * threads have ended. NULL is allowed. */
void domi_acceptor_free_unmounted(domi_acceptor *acceptor);

/* Give a completion of `op` (an accept, or its cancel) to the acceptor that it names. */
void domi_acceptor_complete(domi_io *io, enum domi_op op, const domi_completion *completion);

/* End a pause or take the next step of a stop, because the timer of the acceptor has fired. */
void domi_acceptor_handle_timer(domi_acceptor *acceptor);

#endif
