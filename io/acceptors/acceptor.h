/* The inside of an acceptor, which is a channels actor that owns a listening socket and hands its
 * connections over (acceptors.h).
 *
 * Each accepted connection goes to the thread that has the fewest connections, as an event for the
 * channels actor that serves there. When descriptors run out, the accept is paused and tried again
 * after a time that doubles from 10 ms to 1 s. At channel.maxConnections the accept is paused, and
 * the number of connections is checked every 10 ms; connections that were accepted before the pause
 * began wait in the acceptor. The accept is paused in the same way while memory is short.
 *
 * A connection is reset at once if its address has all connections that it may have. After a FIN
 * the kernel would keep a socket that nobody counts, until the peer closes or for a minute. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPTOR_H
#define DOMI_IO_ACCEPTORS_ACCEPTOR_H

#include "io/resources/io.h"
#include "io/resources/networks.h"
#include "io/resources/peers.h"
#include "io/resources/shortage.h"

typedef enum domi_shortage_kind {
    DOMI_SHORTAGE_CONNECTIONS, /* channel.maxConnections is reached */
    DOMI_SHORTAGE_DESCRIPTORS, /* the process or the machine has no descriptor left */
    DOMI_SHORTAGE_KERNEL,      /* the kernel has no memory for a connection */
    DOMI_SHORTAGE_REFUSED,     /* a filter or a security module refuses all connections */
    DOMI_SHORTAGE_ADDRESS,     /* an address has all connections that it may have */
    /* number of kinds of a listener's shortages; a thread has one more, of receive buffers */
    DOMI_SHORTAGES,
} domi_shortage_kind;

typedef struct domi_acceptor_target {
    domus_address actor; /* the actor that gets the connections */
    domi_io *io;         /* the io of the actor's thread, which makes the channels */
} domi_acceptor_target;

typedef struct domi_acceptor domi_acceptor;

struct domi_acceptor {
    domi_io *io;       /* the io on which the acceptor runs; set when its actor is mounted */
    const char *name;  /* name of the listener for the log; outlives the acceptor; NULL: none */
    domi_house *house; /* the house of the acceptor's own actor; NULL before the mount */
    /* address of the maker's pointer to the acceptor, which is cleared at the mount; NULL: none */
    domi_acceptor **held;
    /* settings of accepted channels; the acceptor counts as one of their users */
    domi_channel_settings *settings;
    /* networks from which proxies connect; empty: clients connect themselves */
    domi_networks proxies;
    int fd;          /* descriptor of the listening socket; -1: it is closed */
    uint32_t slot;   /* index of the acceptor in io->acceptors */
    bool armed;      /* an accept is in flight */
    bool cancelling; /* a cancel of that accept is in flight */
    /* the actor was asked to stop, so it accepts no more connections */
    bool stopping;
    /* other processes hold the listening socket, too, as systemd does: the socket listens on after
     * the close here, so waiting connections are left to the next server */
    bool is_shared;
    bool serves_rest;    /* in a drain: connections accepted during the stop are handed over */
    bool full;           /* the pause is for maxConnections or memory, not for descriptors */
    uint64_t backoff_ns; /* length of the next pause in nanoseconds */
    domi_io_timer timer; /* timer that ends a pause, or makes the next step of closing */
    /* the shortages of each kind, for the log (shortage.h) */
    domi_shortage shortages[DOMI_SHORTAGES];
    /* Connections that were accepted beyond channel.maxConnections, before the pause began; the
     * oldest first. */
    domi_connection *waiting;
    uint32_t waiting_count;    /* number of connections in `waiting` */
    uint32_t waiting_capacity; /* number of connections for which `waiting` has room */
    uint32_t taken; /* number of connections taken from the backlog while the listener is closed */
    /* index of the target at which the next search for the fewest connections begins */
    uint32_t turn;
    uint32_t target_count;          /* number of targets in use */
    domi_acceptor_target targets[]; /* the actors over which connections are spread */
};

#endif
