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
    DOMI_SHORTAGE_CONNECTIONS, /* kind of shortage: channel.maxConnections is reached */
    /* kind of shortage: the process or the machine has no descriptor left */
    DOMI_SHORTAGE_DESCRIPTORS,
    DOMI_SHORTAGE_KERNEL, /* kind of shortage: the kernel has no memory for a connection */
    /* kind of shortage: a filter or a security module refuses all connections */
    DOMI_SHORTAGE_REFUSED,
    DOMI_SHORTAGE_ADDRESS, /* kind of shortage: an address has all connections that it may have */
    /* number of kinds of shortage that a listener may have; a thread has one more kind, of receive
     * buffers */
    DOMI_SHORTAGES,
} domi_shortage_kind;

typedef struct domi_acceptor_target {
    domus_address actor; /* the actor that gets the connections of this target of an acceptor */
    domi_io *io; /* the io of the target's thread, which makes the channels of these connections */
} domi_acceptor_target;

typedef struct domi_acceptor domi_acceptor;

struct domi_acceptor {
    /* the io of the thread on which the acceptor runs; set when the acceptor's actor is mounted */
    domi_io *io;
    /* name of the listener for the log; its text outlives the acceptor; NULL: none */
    const char *name;
    domi_house *house; /* the house of the acceptor's own actor; NULL before the mount */
    /* address of the pointer by which the acceptor's maker finds it, and which the mount clears;
     * NULL: none */
    domi_acceptor **held;
    /* settings of the channels of accepted connections; the acceptor counts as one of their
     * users */
    domi_channel_settings *settings;
    /* networks from which proxies connect to the listener; empty: clients connect to it
     * themselves */
    domi_networks proxies;
    int fd;          /* descriptor of the acceptor's listening socket; -1: it is closed */
    uint32_t slot;   /* index of the acceptor in io->acceptors */
    bool armed;      /* an accept of the acceptor is in flight */
    bool cancelling; /* a cancel of the acceptor's accept is in flight */
    /* the acceptor's actor was asked to stop, so it accepts no more connections */
    bool stopping;
    /* Other processes hold the listening socket, too, as systemd does: the socket stays open when
     * this process closes it, so waiting connections are left to the next server. */
    bool is_shared;
    /* the stop is part of a drain: connections that are accepted during it are handed over */
    bool serves_rest;
    bool full; /* why the acceptor pauses: true, maxConnections or memory; false, no descriptors */
    uint64_t backoff_ns; /* length of the acceptor's next pause in nanoseconds */
    /* timer that ends a pause of the acceptor, or makes the next step of closing it */
    domi_io_timer timer;
    /* the acceptor's shortages of each kind, for the log (shortage.h) */
    domi_shortage shortages[DOMI_SHORTAGES];
    /* Connections that were accepted beyond channel.maxConnections, before the pause began; the
     * oldest first. */
    domi_connection *waiting;
    uint32_t waiting_count;    /* number of accepted connections in `waiting` */
    uint32_t waiting_capacity; /* number of accepted connections for which `waiting` has room */
    /* number of connections taken from the backlog of the listener while it is being closed */
    uint32_t taken;
    /* index of the target at which the acceptor's next search for the fewest connections begins */
    uint32_t turn;
    /* number of targets of the acceptor, which are the entries of `targets` */
    uint32_t target_count;
    domi_acceptor_target targets[]; /* the actors over which the acceptor spreads its connections */
};

#endif
