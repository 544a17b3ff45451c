/* The inside of an acceptor, which is a channels actor that owns a listening socket and hands its
 * connections over (serve.h).
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
#include "io/resources/networks.h"
#include "io/resources/peers.h"
#include "io/resources/shortage.h"

typedef enum domi_shortage_kind {
    DOMI_SHORTAGE_CONNECTIONS, /* channel.maxConnections is reached */
    DOMI_SHORTAGE_DESCRIPTORS, /* the process or the machine has no descriptor left */
    DOMI_SHORTAGE_KERNEL,      /* the kernel has no memory for a connection */
    DOMI_SHORTAGE_REFUSED,     /* a filter or a security module refuses all of them */
    DOMI_SHORTAGE_ADDRESS,     /* an address has all connections that it may have */
    DOMI_SHORTAGES, /* number of kinds of a listener; for receive buffers a thread has one more */
} domi_shortage_kind;

typedef struct domi_acceptor_target {
    domus_address actor; /* the actor that gets the connections */
    domi_io *io;         /* the io of its thread, which makes the channels */
} domi_acceptor_target;

typedef struct domi_acceptor domi_acceptor;

struct domi_acceptor {
    domi_io *io;       /* the io on which the acceptor runs; set when its actor is mounted */
    const char *name;  /* name of the listener for the log; outlives the acceptor; NULL: none */
    domi_house *house; /* the house of the acceptor's own actor; NULL before the mount */
    /* its maker's pointer to the acceptor, cleared at the mount; NULL: none */
    domi_acceptor **held;
    domi_channel_settings *settings; /* for accepted channels; the acceptor is one of its users */
    domi_networks proxies;           /* from where proxies connect; empty: clients connect */
    int fd;                          /* the listening socket; -1: it is closed */
    uint32_t slot;                   /* the acceptor's index in io->acceptors */
    bool armed;                      /* an accept is in flight */
    bool cancelling;                 /* a cancel of that accept is in flight */
    bool stopping;                   /* the actor was asked to stop, so nothing more is accepted */
    /* others hold the listening socket, too, as systemd does: it goes on to listen after the close,
     * so connections that wait there are left to whoever serves it next */
    bool is_shared;
    bool serves_rest;    /* in a drain: connections accepted during the stop are handed over */
    bool full;           /* paused at maxConnections or for memory, not because of descriptors */
    uint64_t backoff_ns; /* length of the next pause */
    domi_io_timer timer; /* ends a pause, and makes the next step of closing */
    /* the spells of refusals of each kind, for the log (shortage.h) */
    domi_shortage shortages[DOMI_SHORTAGES];
    /* Connections accepted beyond channel.maxConnections, before the pause took hold;
     * oldest first. */
    domi_connection *waiting;
    uint32_t waiting_count;    /* connections in `waiting` */
    uint32_t waiting_capacity; /* connections for which `waiting` has room */
    uint32_t taken; /* connections taken from the backlog while the listener is being closed */
    uint32_t turn;  /* the target at which the next search for the fewest begins */
    uint32_t target_count;          /* targets in use */
    domi_acceptor_target targets[]; /* the actors among which connections are spread */
};

#endif
