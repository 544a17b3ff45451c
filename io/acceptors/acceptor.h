/* Acceptors: channels actors that own a listening socket and hand its connections over.
 *
 * Each accepted connection goes to the thread that has the fewest connections, as an event for the
 * channels actor that serves there. When descriptors run out, the accept is paused and tried again
 * after a time that doubles from 10 ms to 1 s. At channel.maxConnections the accept is paused, and
 * the number is looked at every 10 ms; connections that were accepted before the pause took hold
 * wait in the acceptor. The accept is paused in the same way while memory is short.
 *
 * A connection whose address has all connections that it may have is reset at once. After a FIN the
 * kernel would keep a socket that nobody counts, until the peer closes or for a minute. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPTOR_H
#define DOMI_IO_ACCEPTORS_ACCEPTOR_H

#include "io/resources/io.h"
#include "io/resources/peers.h"
#include "io/resources/shortage.h"

typedef struct domi_acceptor_target {
    domus_address actor;
    domi_io *io;
} domi_acceptor_target;

/* A connection that was accepted and has no actor yet. */
typedef struct domi_arrival {
    int fd;
    domi_peer *peer; /* the address that it is counted on; NULL: it is not counted */
} domi_arrival;

typedef struct domi_acceptor domi_acceptor;

struct domi_acceptor {
    domi_io *io;      /* the io on which the acceptor runs; set when its actor is mounted */
    const char *name; /* name of the listener for the log; outlives the acceptor; NULL: none */
    domi_house *house;
    /* its maker's pointer to the acceptor, cleared at the mount; NULL: none */
    domi_acceptor **held;
    int fd;
    uint32_t slot; /* the acceptor's index in io->acceptors */
    bool armed;
    bool cancelling;
    bool stopping;
    bool serves_rest;    /* in a drain: connections accepted during the stop are handed over */
    bool full;           /* paused at maxConnections or for memory, not because of descriptors */
    uint64_t backoff_ns; /* length of the next pause */
    domi_io_timer timer;
    domi_shortage shortages[DOMI_SHORTAGES];
    domi_arrival
        /* Connections accepted beyond channel.maxConnections, before the pause took hold; oldest
         * first. */
        *waiting;
    uint32_t waiting_count;
    uint32_t waiting_capacity;
    uint32_t taken; /* connections taken from the backlog while the listener is being closed */
    uint32_t turn;  /* the target at which the next search for the fewest begins */
    uint32_t target_count;
    domi_acceptor_target targets[];
};

/* The behaviour of an acceptor. The state of the actor is a pointer to its domi_acceptor. Once the
 * actor was mounted, it frees the domi_acceptor at its end. */
extern const domus_behaviour domi_acceptor_behaviour;

/* Free an acceptor whose actor has ended before it was mounted. Its listener is closed, and the
 * connections that waited there are counted as turned away on its first target. Called after all
 * threads have ended. NULL is allowed. */
void domi_acceptor_free_unmounted(domi_acceptor *acceptor);

/* The payload of the event that hands a connection over. */
typedef struct domi_accepted {
    int fd;
    domi_io *io;     /* the io of the receiving thread; its `connections` counts this one */
    domi_peer *peer; /* the address that it is counted on; NULL: it is not counted */
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Make a listening socket for "127.0.0.1:7000" or "[::1]:7000", whose connections get the socket
 * options of `config`. `ret_port` gets its port. Returns the descriptor; a negative errno. Any
 * thread. */
int domi_acceptor_listen(const char *address, uint32_t backlog, const domus_config *config,
                         uint16_t *ret_port);

void domi_acceptor_handle_completion(domi_acceptor *acceptor, const domi_completion *completion);
void domi_acceptor_handle_cancel(domi_acceptor *acceptor);
void domi_acceptor_handle_timer(domi_acceptor *acceptor);

/* Called when io->pressure.pauses has changed: pause the accept if it is set. The timer of the
 * acceptor ends the pause. */
void domi_acceptor_look_at_pressure(domi_acceptor *acceptor);

/* Stop, because the ring has failed and the operations in flight do not come back. The socket is
 * shut down, because the ring may still hold it: new connections are refused then. */
void domi_acceptor_fail(domi_acceptor *acceptor);

/* Begin to stop: cancel the accept, and turn away the connections that wait. Returns 1 while an
 * operation is still in flight or more connections may wait; otherwise the listener is closed, and
 * 0 is returned. */
uint32_t domi_acceptor_stop(domi_acceptor *acceptor);

/* Begin a drain: hand over every connection that waits to be accepted, beyond all limits, because a
 * backlog is bounded; then close the listener. */
void domi_acceptor_drain(domi_acceptor *acceptor);

/* Called when the time of a drain is over: turn away the connections that still wait. */
void domi_acceptor_abort_drain(domi_acceptor *acceptor);

/* --- backlog.c ------------------------------------------------------------------------------ */

/* Reset a connection that gets no channel, and count it together with the bytes that its peer had
 * sent. Any thread. */
void domi_connection_turn_away(domi_io *io, int fd);

/* Set the backlog of `listener` to 0, so that hardly any connection can join those that wait. */
void domi_backlog_shrink(int listener);

/* Accept the connections that wait, without blocking, at most io.completionEntries of them, and
 * give each to `take`. No operation may be in flight on the listener. Returns 0 when none waits any
 * more, or when so many were taken in all (131,072) that this must be a flood; -EAGAIN when there
 * may be more, for the next iteration; -EMFILE when descriptors or memory have run out. */
int domi_backlog_take(domi_acceptor *acceptor, void (*take)(domi_acceptor *acceptor, int fd));

/* Count the connections that still wait as turned away, because the listener is about to be closed.
 */
void domi_backlog_count_turned_away(domi_acceptor *acceptor);

#endif
