/* Acceptors at work: the behaviour of their actors, and what comes for them. Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_SERVE_H
#define DOMI_IO_ACCEPTORS_SERVE_H

#include "io/acceptors/acceptor.h"

/* The behaviour of an acceptor. The state of the actor is a pointer to its domi_acceptor. Once the
 * actor was mounted, it frees the domi_acceptor at its end. */
extern const domus_behaviour domi_acceptor_behaviour;

/* Give the acceptor its place in the io of its thread, and to `house`, the house of its actor.
 * Returns 0; -EMFILE when the thread has DOMI_ACCEPTORS_MAX of them. */
int domi_acceptor_attach(domi_acceptor *acceptor, domi_io *io, domi_house *house);

/* Close and free an acceptor that is attached. Nothing of it is in flight, or the
 * ring has ended. */
void domi_acceptor_end(domi_acceptor *acceptor);

/* Free an acceptor whose actor has ended before it was mounted. Its listener is closed, and the
 * connections that waited there are counted as turned away on its first target. Called after all
 * threads have ended. NULL is allowed. */
void domi_acceptor_free_unmounted(domi_acceptor *acceptor);

/* Hand a completion of `op` (an accept, or its cancel) to the acceptor that it names. */
void domi_acceptor_complete(domi_io *io, enum domi_op op, const domi_completion *completion);

/* Called when the timer of the acceptor fires: its pause, or a step of its stop, is due. */
void domi_acceptor_handle_timer(domi_acceptor *acceptor);

#endif
