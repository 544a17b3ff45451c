/* The data of the simulated network: sockets, connections, and the bytes that travel between them.
 *
 * One network stands for all machines that a service under test talks to, and for the machine of
 * the service too. It runs in one OS thread, and everything in it happens in one order: an action
 * that takes time is an event in a heap, and domi_net_advance() carries the event out when the
 * network's time has come to it. All random choices follow from one seed. So the same calls with
 * the same seed give the same run.
 *
 * A connection has two sides: side 0 has opened it, and side 1 has accepted it. It has two pipes
 * (pipe.h), and `pipes[side]` holds the bytes that go to that side. A socket belongs to the ring of
 * a simulated thread (ring.h), which begins operations on it by its descriptor, or to a scripted
 * peer of the test, which is called when the socket has changed.
 *
 * Datagrams (parts.h) have no connection. Each datagram is an object of its own, which an event
 * carries or which waits in the queue of the receiving socket. */
#ifndef DOMI_RUNTIME_NETWORK_NETWORK_H
#define DOMI_RUNTIME_NETWORK_NETWORK_H

#include "base/fifo.h"
#include "base/random.h"
#include "io/backend/backend.h"
#include "runtime/network/pipe.h"

#include <domus/endpoint.h>
#include <domus/testkit_net.h>
#include <sys/uio.h>

/* first descriptor of the network; descriptors of the kernel are lower */
#define DOMI_NET_FIRST_FD (1 << 20)
/* first of the ports that the network chooses; the last is 65,535 */
#define DOMI_NET_FIRST_PORT 49152u

typedef struct domi_net domi_net;
typedef struct domi_net_ring domi_net_ring;
typedef struct domi_net_socket domi_net_socket;
typedef struct domi_net_connection domi_net_connection;
typedef struct domi_net_event domi_net_event;
typedef struct domi_net_datagram domi_net_datagram;
typedef struct domi_net_poll domi_net_poll;
typedef struct domi_net_ready domi_net_ready;

typedef enum domi_net_event_kind {
    DOMI_NET_SYN,      /* a connect reaches the listener's machine */
    DOMI_NET_ANSWER,   /* the answer to a connect reaches the side that opened the connection */
    DOMI_NET_ARRIVAL,  /* bytes or the end of the stream reach `side` */
    DOMI_NET_RESET,    /* a reset reaches `side` */
    DOMI_NET_CUT,      /* a fault resets both sides */
    DOMI_NET_DATAGRAM, /* a datagram reaches the receiver's machine */
    DOMI_NET_REFUSAL,  /* the news that a datagram has no receiver reaches the sender's machine */
    DOMI_NET_ROOM,     /* the send buffer of a datagram socket has room again */
} domi_net_event_kind;

struct domi_net_event {
    /* links the events that wait while nothing passes on their connection */
    domi_net_event *next;
    uint64_t due_ns; /* the time at which the event is due */
    /* serial number; events with one due time happen in the order of their numbers */
    uint64_t number;
    /* the event's connection; NULL: the event is about a datagram */
    domi_net_connection *connection;
    /* for DATAGRAM and REFUSAL: the datagram, which the event owns */
    domi_net_datagram *datagram;
    uint64_t socket; /* for ROOM: the number of the socket */
    uint32_t size;   /* for ARRIVAL: number of bytes */
    int error;       /* for ANSWER: 0, or the negative errno of the connect */
    uint8_t kind;    /* domi_net_event_kind */
    uint8_t side;    /* the side that the event reaches */
    bool is_end;     /* for ARRIVAL: the stream ends here, behind all bytes */
};

DOMI_FIFO(domi_net_events, domi_net_event, next);

/* A datagram that is on its way, or has arrived and waits to be received. */
struct domi_net_datagram {
    domi_net_datagram *next; /* next datagram in the receiver's queue */
    /* number of the datagram in a trace; both copies of a doubled datagram have the same one */
    uint64_t number;
    domus_endpoint from; /* address of the sender; size 0: a Unix socket without a name */
    domus_endpoint to;   /* address to which the datagram was sent */
    uint32_t size;       /* number of bytes in `bytes` */
    char bytes[];
};

DOMI_FIFO(domi_net_datagrams, domi_net_datagram, next);

struct domi_net_connection {
    domi_net_connection *next; /* links in the network's list of all connections */
    domi_net_connection *previous;
    domi_net_connection *next_waiting; /* next connection in the queue of a listener */
    domi_net *net;                     /* the network of the connection */
    uint64_t number;                   /* number of the connection in a trace */
    /* socket of each side; NULL: closed, or not made yet (side 1) */
    domi_net_socket *sockets[2];
    domi_net_pipe pipes[2]; /* pipes[side]: the bytes that go to that side */
    domi_net_events held;   /* events that wait while nothing passes on the connection */
    /* delay before the next try of a connect that got no answer */
    uint64_t retry_ns;
    /* number of this connection's events, in the heap or in `held` */
    uint32_t events;
    domus_endpoint ends[2]; /* address of each side */
    bool is_held;           /* domus_peer_hold() was called: nothing passes in either direction */
    /* a test's peer reads the counts of the connection, so it stays until the network is freed */
    bool is_kept;
    bool has_reset[2]; /* has_reset[side]: that side has sent a reset */
    bool was_reset[2]; /* was_reset[side]: that side has got a reset */
    bool is_cut;       /* a fault has reset both sides */
};

DOMI_FIFO(domi_net_waiting, domi_net_connection, next_waiting);

typedef enum domi_net_state {
    DOMI_NET_FRESH,
    DOMI_NET_CONNECTING,
    DOMI_NET_CONNECTED, /* connected, also after one or both directions have ended */
    DOMI_NET_LISTENING,
    DOMI_NET_DATAGRAMS, /* a datagram socket, in this state from its beginning */
    DOMI_NET_WAKE,      /* the descriptor by which a thread is woken */
} domi_net_state;

/* Kind of an operation that waits for input; the names are those of the io_uring and epoll
 * backends. */
typedef enum domi_net_input {
    DOMI_NET_ACCEPT,
    DOMI_NET_RECEIVE,
    DOMI_NET_RECEIVE_ONCE,
    DOMI_NET_RECEIVE_DATAGRAMS,
    DOMI_NET_POLL,
} domi_net_input;

/* A one-shot poll operation. */
struct domi_net_poll {
    domi_net_poll *next;
    uint64_t user_data; /* number that comes back with the completion */
    uint32_t events;    /* the events of poll(2) that end the poll */
};

/* The bytes that a send operation writes. */
typedef struct domi_net_output {
    struct iovec pieces[DOMI_PIECES_MAX];
    uint32_t count; /* number of entries of `pieces` in use */
    /* the operation is send_message, which may end with -EAGAIN once there is room again */
    bool is_gathered;
} domi_net_output;

/* The additional state of a datagram socket. */
typedef struct domi_net_mail {
    domi_net_datagrams inbox; /* datagrams that have arrived and were not received yet */
    uint32_t inbox_count;     /* number of datagrams in `inbox` */
    uint32_t inbox_bytes;     /* bytes that `inbox` takes in the receive buffer */
    /* number of datagrams for which the receive buffer had no room (SO_MEMINFO) */
    uint32_t dropped;
    /* time at which the wire has taken all datagrams sent so far, by its bandwidth */
    uint64_t clear_ns;
    domus_endpoint peer; /* address of the connected peer; family 0: not connected */
    /* number of the connected peer of a Unix socket; 0: not connected */
    uint64_t peer_number;
} domi_net_mail;

struct domi_net_socket {
    domi_net *net; /* the network of the socket */
    /* unique number of the socket in its network, from 1 on; never used again */
    uint64_t number;
    domi_net_socket *next_bound;     /* next socket in the list of bound sockets */
    domi_net_connection *connection; /* connection of the socket; NULL: none */
    domi_net_ring *ring;             /* the ring that has operations on this socket; NULL: none */
    domi_net_ready *listed_in;       /* the list of ready sockets that contains this socket */
    domi_net_socket *next_ready;     /* next socket in the list `listed_in` */
    /* callback for when the socket may be readable or writable; NULL: none */
    void (*changed)(domi_net_socket *socket);
    void *owner;              /* the scripted peer to which this socket belongs; NULL: none */
    uint64_t input_data;      /* user_data of the operation that waits for input; 0: none */
    uint64_t output_data;     /* user_data of the send that waits for room; 0: none */
    domi_net_output output;   /* the bytes that the waiting send writes */
    domi_net_poll *polls;     /* list of the waiting one-shot polls */
    domi_net_mail mail;       /* used only by datagram sockets */
    domi_net_waiting waiting; /* connections of a listener that were not accepted yet */
    uint32_t waiting_count;   /* number of connections in `waiting` */
    uint32_t backlog;         /* backlog of a listener, which bounds `waiting_count` */
    uint32_t wakes;           /* number of wake-ups that no poll has reported yet */
    uint32_t send_max;        /* size of the send buffer in bytes */
    uint32_t receive_max;     /* size of the receive buffer in bytes */
    int fd;                   /* the descriptor of the socket; -1: none */
    int error;                /* pending error for SO_ERROR, a positive errno; 0: none */
    domus_endpoint local;     /* the socket's own address; its family is set from the beginning */
    uint8_t state;            /* a domi_net_state */
    uint8_t input;            /* a domi_net_input: the kind of the operation that waits for input */
    uint8_t side;             /* the side (0 or 1) of `connection` that this socket is */
    bool is_bound;            /* the socket has a name, and is in the list of bound sockets */
    bool shares_port;         /* SO_REUSEPORT is set */
    bool sets_send_max;       /* SO_SNDBUF was set; accepted connections inherit the size */
    bool sets_receive_max;    /* SO_RCVBUF was set; accepted connections inherit the size */
    bool aborts;              /* closing the socket resets the connection (SO_LINGER with time 0) */
    bool reads_no_more;       /* shutdown(SHUT_RD) was called */
    bool is_dead;             /* the connection was reset, or the connect has failed */
    bool is_listed;           /* the socket is in the list `listed_in` */
};

/* List of sockets on which an operation of a ring can go on. */
DOMI_FIFO(domi_net_ready, domi_net_socket, next_ready);

/* A broken link: nothing passes between the two machines. */
typedef struct domi_net_partition {
    domus_endpoint one;   /* address of one machine, with port 0; family 0: every machine */
    domus_endpoint other; /* address of the other machine, with port 0; family 0: every machine */
} domi_net_partition;

#define DOMI_NET_PARTITIONS_MAX 16u

/* An entry of the network for the trace of a test kit. */
typedef struct domi_net_note {
    const char *what; /* name of the entry, such as "bytes" or "reset" */
    uint64_t number;  /* number of the connection or the datagram */
    uint64_t amount;  /* number of bytes, or the port; 0: neither */
    uint8_t side;     /* side that the bytes or the reset reach */
    bool is_datagram; /* the entry is about a datagram, not about a connection */
} domi_net_note;

struct domi_net {
    domi_random random;         /* source of all random numbers of the network */
    uint64_t now_ns;            /* the present time of the network */
    domus_net_faults faults;    /* faults that may happen, and their probabilities */
    domi_net_event **heap;      /* heap of events; the first one is due first */
    uint32_t heap_count;        /* number of events in `heap` */
    uint32_t heap_capacity;     /* number of events for which `heap` has room */
    uint64_t event_count;       /* number of events made so far */
    uint64_t connection_count;  /* number of connections begun so far */
    uint64_t socket_number;     /* number of sockets made so far */
    domi_net_connection *first; /* list of all connections, the youngest first */
    /* socket of each descriptor, from DOMI_NET_FIRST_FD on; NULL: the descriptor is free */
    domi_net_socket **sockets;
    uint32_t socket_capacity; /* number of entries of `sockets` */
    uint32_t socket_count;    /* number of descriptors in use */
    domi_net_socket *bound;   /* list of all bound sockets, the youngest first */
    uint16_t next_port;       /* next port to try for a socket that is bound to port 0 */
    domi_net_partition partitions[DOMI_NET_PARTITIONS_MAX]; /* broken links */
    /* number of entries of `partitions` in use */
    uint32_t partition_count;
    /* counts of the bytes of all connections */
    domus_net_totals totals;
    domus_net_datagrams datagrams; /* counts of all datagrams */
    /* carries out an event that is due (life.c) */
    void (*carry_out)(domi_net *net, const domi_net_event *event);
    /* Callback for each entry of a trace; NULL: no trace is written. */
    void (*note)(void *context, const domi_net_note *note);
    void *note_context; /* argument of the callback `note` */
    /* no test kit drives the network: an enter that waits moves the time itself */
    bool is_alone;
    bool is_out_of_memory; /* an allocation has failed; the test kit reports that */
};

#endif
