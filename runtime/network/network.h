/* The inside of the simulated network: sockets, connections and what is on its way between them.
 *
 * A network stands for all machines that a service under test talks to, its own one included. All
 * of it happens in one OS thread and in one order: what takes time is an event in a heap, and an
 * event that is due is carried out when time has come there (domi_net_advance). Everything that is
 * left to chance is drawn from one seed. So the same calls with the same seed give the same run.
 *
 * A connection has two sides: 0 has opened it, 1 has accepted it. It has two pipes (pipe.h), and
 * `pipes[side]` holds the bytes that go to that side. A socket belongs to the ring of a simulated
 * thread (ring.h), which begins operations on it by its descriptor, or to a scripted peer of the
 * test, which is called when something has changed.
 *
 * Datagrams (parts.h) have no connection: each is an object of its own, which is on its way (in
 * an event) or waits in the queue of the socket that will receive it. */
#ifndef DOMI_RUNTIME_NETWORK_NETWORK_H
#define DOMI_RUNTIME_NETWORK_NETWORK_H

#include "base/fifo.h"
#include "base/random.h"
#include "io/backend/backend.h"
#include "runtime/network/pipe.h"

#include <domus/endpoint.h>
#include <domus/testkit_net.h>
#include <sys/uio.h>

#define DOMI_NET_FIRST_FD   (1 << 20) /* descriptors of the network; the kernel's are lower */
#define DOMI_NET_FIRST_PORT 49152u    /* the ports that the network chooses, up to 65,535 */

typedef struct domi_net domi_net;
typedef struct domi_net_ring domi_net_ring;
typedef struct domi_net_socket domi_net_socket;
typedef struct domi_net_connection domi_net_connection;
typedef struct domi_net_event domi_net_event;
typedef struct domi_net_datagram domi_net_datagram;
typedef struct domi_net_poll domi_net_poll;
typedef struct domi_net_ready domi_net_ready;

typedef enum domi_net_event_kind {
    DOMI_NET_SYN,      /* a connect reaches the machine of the listener */
    DOMI_NET_ANSWER,   /* the answer to a connect reaches the side that opens */
    DOMI_NET_ARRIVAL,  /* bytes, or the end of a stream, reach `side` */
    DOMI_NET_RESET,    /* a reset reaches `side` */
    DOMI_NET_CUT,      /* a fault: the network itself resets both sides */
    DOMI_NET_DATAGRAM, /* a datagram reaches the machine that it is meant for */
    DOMI_NET_REFUSAL,  /* the word that nobody takes a datagram reaches the machine of its sender */
    DOMI_NET_ROOM,     /* a socket of datagrams has room again in its send buffer */
} domi_net_event_kind;

struct domi_net_event {
    domi_net_event *next;            /* links the events that are held up on their link */
    uint64_t due_ns;                 /* the time at which it happens */
    uint64_t number;                 /* events that are due at one time happen by this number */
    domi_net_connection *connection; /* the event's connection; NULL: it is about a datagram */
    domi_net_datagram *datagram;     /* DATAGRAM, REFUSAL: which one; the event owns it */
    uint64_t socket;                 /* ROOM: the number of the socket */
    uint32_t size;                   /* for an ARRIVAL: the number of bytes */
    int error;                       /* ANSWER: 0, or the negative errno of the connect */
    uint8_t kind;                    /* domi_net_event_kind */
    uint8_t side;                    /* the side that the event reaches */
    bool is_end;                     /* ARRIVAL: the end of the stream, behind all bytes */
};

DOMI_FIFO(domi_net_events, domi_net_event, next);

/* A datagram that is on its way, or waits to be received. */
struct domi_net_datagram {
    domi_net_datagram *next; /* next in the queue of the receiver */
    uint64_t number;     /* names the datagram in a trace; both copies of a doubled one have it */
    domus_endpoint from; /* the sender; size 0: a Unix socket without a name */
    domus_endpoint to;   /* the socket or the group of sockets that it was sent to */
    uint32_t size;       /* bytes in `bytes` */
    char bytes[];
};

DOMI_FIFO(domi_net_datagrams, domi_net_datagram, next);

struct domi_net_connection {
    domi_net_connection *next; /* links of the network's list of all connections */
    domi_net_connection *previous;
    domi_net_connection *next_waiting; /* next in the queue of a listener */
    domi_net *net;                     /* the network */
    uint64_t number;                   /* names the connection in a trace */
    domi_net_socket *sockets[2];       /* NULL: closed, or (side 1) not there yet */
    domi_net_pipe pipes[2];            /* the bytes that go to that side */
    domi_net_events held;              /* events that wait until the link works again */
    uint64_t retry_ns;                 /* time to the next try of a connect that got no answer */
    uint32_t events;                   /* events that are in the heap or in `held` */
    domus_endpoint ends[2];            /* the endpoint of each side */
    bool is_held;      /* nothing passes, because the test has said so (domus_peer_hold) */
    bool is_kept;      /* a peer reads its counts, so it stays until the network is freed */
    bool has_reset[2]; /* this side has sent a reset */
    bool was_reset[2]; /* this side got a reset */
    bool is_cut;       /* the network has reset both sides */
};

DOMI_FIFO(domi_net_waiting, domi_net_connection, next_waiting);

typedef enum domi_net_state {
    DOMI_NET_FRESH,
    DOMI_NET_CONNECTING,
    DOMI_NET_CONNECTED, /* also after the end of one or both directions */
    DOMI_NET_LISTENING,
    DOMI_NET_DATAGRAMS, /* a socket of datagrams, from its beginning */
    DOMI_NET_WAKE,      /* the wake of a thread */
} domi_net_state;

/* An operation that waits for input; the names of both other backends' operations. */
typedef enum domi_net_input {
    DOMI_NET_ACCEPT,
    DOMI_NET_RECEIVE,
    DOMI_NET_RECEIVE_ONCE,
    DOMI_NET_RECEIVE_DATAGRAMS,
    DOMI_NET_POLL,
} domi_net_input;

/* A poll of one shot. */
struct domi_net_poll {
    domi_net_poll *next;
    uint64_t user_data; /* comes back with the completion */
    uint32_t events;    /* the events of poll(2) that end the poll */
};

/* The bytes that a send has to write. */
typedef struct domi_net_output {
    struct iovec pieces[DOMI_PIECES_MAX];
    uint32_t count; /* pieces in use */
    /* it is a send_message, which may end with -EAGAIN when there is room again */
    bool is_gathered;
} domi_net_output;

/* The further state of a socket of datagrams. */
typedef struct domi_net_mail {
    domi_net_datagrams inbox; /* datagrams that have arrived and were not received */
    uint32_t inbox_count;     /* datagrams in `inbox` */
    uint32_t inbox_bytes;     /* bytes that these datagrams take in the receive buffer */
    uint32_t dropped;         /* datagrams for which that buffer had no room (SO_MEMINFO) */
    uint64_t clear_ns;        /* when all that was sent has passed the wire, by its bandwidth */
    domus_endpoint peer;      /* the peer that it is connected to; family 0: none */
    /* the number of the peer, if this is a connected Unix socket; 0: none */
    uint64_t peer_number;
} domi_net_mail;

struct domi_net_socket {
    domi_net *net;                   /* the network */
    uint64_t number;                 /* no other socket of the network ever has it; from 1 on */
    domi_net_socket *next_bound;     /* next in the list of sockets that have a name */
    domi_net_connection *connection; /* NULL: none */
    domi_net_ring *ring;             /* the ring that has operations on it; NULL: none */
    domi_net_ready *listed_in;       /* the list of ready sockets that contains this one */
    domi_net_socket *next_ready;     /* next in that list */
    /* called when it may be readable or writable; NULL: nobody waits for that */
    void (*changed)(domi_net_socket *socket);
    void *owner;              /* the scripted peer whose socket this is; NULL: none */
    uint64_t input_data;      /* user_data of the operation that waits for input; 0: none */
    uint64_t output_data;     /* user_data of the send that waits for room; 0: none */
    domi_net_output output;   /* the bytes that this send writes */
    domi_net_poll *polls;     /* polls of one shot */
    domi_net_mail mail;       /* used only by sockets of datagrams */
    domi_net_waiting waiting; /* a listener's connections that nobody has accepted */
    uint32_t waiting_count;   /* connections in `waiting` */
    uint32_t backlog;         /* a listener has room for so many in `waiting` */
    uint32_t wakes;           /* wakes that no poll has told yet */
    uint32_t send_max;        /* bytes that its send buffer holds */
    uint32_t receive_max;     /* bytes that its receive buffer holds */
    int fd;                   /* the descriptor of the socket; -1: none */
    int error;                /* what SO_ERROR tells once, a positive errno; 0: none */
    domus_endpoint local;     /* the socket's own name; `family` is set from the beginning */
    uint8_t state;            /* domi_net_state */
    uint8_t input;            /* domi_net_input */
    uint8_t side;             /* the side (0 or 1) of `connection` that this socket is */
    bool is_bound;            /* the socket is in the list of sockets that have a name */
    bool shares_port;         /* SO_REUSEPORT */
    bool sets_send_max;       /* SO_SNDBUF was set, and connections inherit it */
    bool sets_receive_max;    /* SO_RCVBUF was set, and connections inherit it */
    bool aborts;              /* a close resets (SO_LINGER with a time of 0) */
    bool reads_no_more;       /* shutdown(SHUT_RD) */
    bool is_dead;             /* reset, or the connect has failed */
    bool is_listed;           /* the socket is in the list `listed_in` */
};

/* Sockets on which an operation of a ring can go on. */
DOMI_FIFO(domi_net_ready, domi_net_socket, next_ready);

/* Machines between which nothing passes. */
typedef struct domi_net_partition {
    domus_endpoint one;   /* port 0; family 0: every machine */
    domus_endpoint other; /* port 0; family 0: every machine */
} domi_net_partition;

#define DOMI_NET_PARTITIONS_MAX 16u

/* Something that a trace shows. */
typedef struct domi_net_note {
    const char *what; /* such as "bytes" or "reset" */
    uint64_t number;  /* the number of the connection or the datagram */
    uint64_t amount;  /* bytes, or the port; 0: none */
    uint8_t side;     /* the side that it reaches */
    bool is_datagram; /* the note is about a datagram, not a connection */
} domi_net_note;

struct domi_net {
    domi_random random;         /* all chance */
    uint64_t now_ns;            /* the present time */
    domus_net_faults faults;    /* the faults that may happen, and how often */
    domi_net_event **heap;      /* events, the first one is due first */
    uint32_t heap_count;        /* events in `heap` */
    uint32_t heap_capacity;     /* events for which `heap` has room */
    uint64_t event_count;       /* events that were made */
    uint64_t connection_count;  /* connections that were begun */
    uint64_t socket_number;     /* sockets that were made */
    domi_net_connection *first; /* all connections, the youngest first */
    domi_net_socket **sockets;  /* by descriptor, from DOMI_NET_FIRST_FD on; NULL: free */
    uint32_t socket_capacity;   /* entries of `sockets` */
    uint32_t socket_count;      /* descriptors in use */
    domi_net_socket *bound;     /* all sockets that have a name, the youngest first */
    uint16_t next_port;         /* the next port to try for a socket that names none */
    domi_net_partition partitions[DOMI_NET_PARTITIONS_MAX]; /* broken links */
    uint32_t partition_count;                               /* entries of `partitions` in use */
    domus_net_totals totals;                                /* bytes of all connections */
    domus_net_datagrams datagrams;                          /* all datagrams */
    /* does what is due (life.c) */
    void (*carry_out)(domi_net *net, const domi_net_event *event);
    /* Called for each thing that a trace shows; NULL: nobody listens. */
    void (*note)(void *context, const domi_net_note *note);
    void *note_context;    /* the argument of `note` */
    bool is_alone;         /* there is no kit: an enter that waits moves the time */
    bool is_out_of_memory; /* something could not be kept; the test kit reports it */
};

#endif
