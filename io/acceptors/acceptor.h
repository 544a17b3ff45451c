/* Acceptors: channels actors that own a listening socket and hand connections over.
 *
 * Each accepted connection goes to the thread with the fewest, as an event to the channels actor
 * that serves there. At descriptor limits the accept is paused and tried again after a time that
 * doubles from 10 ms to 1 s; at connections_max it is paused and looked at every 10 ms, and what
 * was accepted before the pause took hold waits for its turn. It is paused in the same way while
 * memory is short.
 *
 * A connection whose address has all connections that it may have is reset at once. After a FIN,
 * the kernel would keep a socket that nobody counts until the peer closes, or for a minute. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPTOR_H
#define DOMI_IO_ACCEPTORS_ACCEPTOR_H

#include "io/resources/io.h"
#include "io/resources/peers.h"
#include "io/resources/shortage.h"

typedef struct domi_acceptor_target {
    domus_address actor;
    domi_io *io;
} domi_acceptor_target;

/* An accepted connection that has no actor yet. */
typedef struct domi_arrival {
    int fd;
    domi_peer *peer; /* the address that it is counted on; NULL: it is not counted */
} domi_arrival;

typedef struct domi_acceptor domi_acceptor;

struct domi_acceptor {
    domi_io *io;      /* where it runs; set when it is mounted */
    const char *name; /* of the listener, for the log; outlives it; NULL: none */
    domi_house *house;
    domi_acceptor **held; /* its maker's pointer to it, cleared as it is mounted; NULL: none */
    int fd;
    uint32_t slot; /* in io->acceptors */
    bool armed;
    bool cancelling;
    bool stopping;
    bool serves_rest;    /* in a drain: who is accepted while it stops is handed over */
    bool full;           /* paused at connections_max, or for memory, not at a descriptor limit */
    uint64_t backoff_ns; /* of the next pause */
    domi_io_timer timer;
    domi_shortage shortages[DOMI_SHORTAGES];
    domi_arrival
        *waiting; /* accepted beyond connections_max, before the pause took hold; oldest first */
    uint32_t waiting_count;
    uint32_t waiting_capacity;
    uint32_t taken; /* from the backlog, while the listener is being closed */
    uint32_t turn;  /* ties are broken round robin */
    uint32_t target_count;
    domi_acceptor_target targets[];
};

/* The behaviour of its actor; its state is a pointer to the acceptor, which it frees once it is
 * mounted. */
extern const domus_behaviour domi_acceptor_behaviour;

/* Close the listener of an acceptor whose actor has ended before it was mounted, count who waited
 * there on its first target, and free it. After all threads have ended. NULL is taken. */
void domi_acceptor_free_unmounted(domi_acceptor *acceptor);

/* The event that hands a connection over. */
typedef struct domi_accepted {
    int fd;
    domi_io *io;     /* its `connections` counts this one */
    domi_peer *peer; /* the address that it is counted on; NULL: it is not counted */
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Make a bound, listening socket for "127.0.0.1:7000" or "[::1]:7000", whose connections have the
 * socket options of `config`. `ret_port` gets its port.
 * Returns the descriptor; a negative errno. Any thread. */
int domi_acceptor_listen(const char *address, uint32_t backlog, const domus_config *config,
                         uint16_t *ret_port);

void domi_acceptor_completed(domi_acceptor *acceptor, const domi_completion *completion);
void domi_acceptor_cancelled(domi_acceptor *acceptor);
void domi_acceptor_timer(domi_acceptor *acceptor);

/* io->pressure.pauses has changed: pause the accept; it goes on by its timer. */
void domi_acceptor_press(domi_acceptor *acceptor);

/* The ring has failed, and what the acceptor has in flight does not come back: stop. The socket is
 * shut, because the ring may still hold it: who connects is refused. */
void domi_acceptor_fail(domi_acceptor *acceptor);

/* Begin to stop: cancel the accept, and turn away who waits. Returns 1 while something is still in
 * flight, else 0, and then the listener is closed. */
uint32_t domi_acceptor_stop(domi_acceptor *acceptor);

/* The system drains: hand over everybody who waits to be accepted, beyond all limits, because a
 * backlog is bounded; then close the listener. */
void domi_acceptor_drain(domi_acceptor *acceptor);

/* The time of the drain is over: turn away who still waits. */
void domi_acceptor_abort(domi_acceptor *acceptor);

/* --- backlog.c ------------------------------------------------------------------------------ */

/* Close the connection by a reset (RST). A FIN would look to the peer like an empty answer. Any
 * thread. */
void domi_reset_descriptor(int fd);

/* Reset a connection that gets no channel, and count it with the bytes that it had sent. Any
 * thread. */
void domi_turn_away(domi_io *io, int fd);

/* Let hardly anybody join those who wait on `listener`. */
void domi_backlog_shrink(int listener);

/* Accept those who wait, without waiting for more, at most io.completionEntries of them, and give
 * each to `take`. Nothing may be in flight on the listener. Returns 0 when nobody waits any more
 * (or so many were taken in all that a flood of connections must be the reason); -EAGAIN when there
 * may be more, for the next turn; -EMFILE when descriptors or memory have run out. */
int domi_backlog_take(domi_acceptor *acceptor, void (*take)(domi_acceptor *acceptor, int fd));

/* Count those who wait as turned away: the listener is about to be closed. */
void domi_backlog_count(domi_acceptor *acceptor);

#endif
