/* The data of the simulated network: sockets, connections, and the bytes that travel between them.
 *
 * One network stands for all machines that a service under test talks to, and for the machine of
 * the service too. It runs in one OS thread, and everything in it happens in one order: an action
 * that takes time is an event in a heap, and domi_net_advance_time() carries the event out when the
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

/* first descriptor that the simulated network gives out; descriptors of the kernel are lower */
#define DOMI_NET_FIRST_FD (1 << 20)
/* first of the ports from which the network chooses; the last one is 65,535 */
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
    DOMI_NET_SYN, /* event: a connect reaches the listener's machine */
    /* event: the answer to a connect reaches the side that opened the connection */
    DOMI_NET_ANSWER,
    DOMI_NET_ARRIVAL,  /* event: bytes or the end of the stream reach `side` */
    DOMI_NET_RESET,    /* event: a reset reaches `side` */
    DOMI_NET_CUT,      /* event: a fault resets both sides of a connection */
    DOMI_NET_DATAGRAM, /* event: a datagram reaches the receiver's machine */
    /* event: the news that a datagram has no receiver reaches the sender's machine */
    DOMI_NET_REFUSAL,
    DOMI_NET_ROOM, /* event: the send buffer of a datagram socket has room again */
} domi_net_event_kind;

struct domi_net_event {
    /* next of the events that wait while nothing passes on their connection */
    domi_net_event *next;
    uint64_t due_ns; /* time at which the event is due, in simulated nanoseconds */
    /* number of the event; events with one due time happen in the order of their numbers */
    uint64_t number;
    /* connection to which the event happens; NULL: it happens to a datagram or a datagram socket */
    domi_net_connection *connection;
    /* datagram of an event DATAGRAM or REFUSAL, which the event owns */
    domi_net_datagram *datagram;
    uint64_t socket; /* number of the socket of an event ROOM */
    uint32_t size;   /* number of bytes that an event ARRIVAL brings */
    /* result that an event ANSWER brings: 0, or the negative errno of the connect */
    int error;
    uint8_t kind; /* kind of the event, a domi_net_event_kind */
    uint8_t side; /* side of the connection that the event reaches */
    bool is_end;  /* true: behind the bytes of this event ARRIVAL the stream ends */
};

DOMI_FIFO(domi_net_events, domi_net_event, next);

/* A datagram that is under way, or has arrived and waits to be received. */
struct domi_net_datagram {
    domi_net_datagram *next; /* next datagram in the queue of the receiving socket */
    /* datagram's number in a trace; both copies of a doubled datagram have the same one */
    uint64_t number;
    /* address of the datagram's sender; size 0: a Unix socket without a name */
    domus_endpoint from;
    domus_endpoint to; /* address to which the datagram was sent by its sender */
    uint32_t size;     /* number of bytes of the datagram in `bytes` */
    char bytes[];
};

DOMI_FIFO(domi_net_datagrams, domi_net_datagram, next);

struct domi_net_connection {
    /* links of the connection in the network's list of all connections */
    domi_net_connection *next;
    domi_net_connection *previous;
    /* next connection in the queue of a listener, behind this one */
    domi_net_connection *next_waiting;
    domi_net *net;   /* network to which the connection belongs */
    uint64_t number; /* connection's number in a trace */
    /* socket of each side of the connection; NULL: it is closed, or (side 1) not made yet */
    domi_net_socket *sockets[2];
    /* pipes of the connection: pipes[side] has the bytes that go to that side */
    domi_net_pipe pipes[2];
    domi_net_events held; /* events of the connection that wait while nothing passes on it */
    /* delay before the connect is tried again, if it gets no answer */
    uint64_t retry_ns;
    /* number of events of the connection, those in the heap and those in `held` */
    uint32_t events;
    domus_endpoint ends[2]; /* address of each side of the connection */
    /* true: a test has called domus_peer_hold(), so nothing passes in either direction */
    bool is_held;
    /* true: a peer of a test reads the connection's counts, so it stays until the network is
     * freed */
    bool is_kept;
    bool has_reset[2]; /* has_reset[side]: that side of the connection has sent a reset */
    bool was_reset[2]; /* was_reset[side]: a reset has reached that side of the connection */
    bool is_cut;       /* true: a fault has reset both sides of the connection */
};

DOMI_FIFO(domi_net_waiting, domi_net_connection, next_waiting);

typedef enum domi_net_state {
    DOMI_NET_FRESH,
    DOMI_NET_CONNECTING,
    /* state of a stream socket that is connected, also after one or both directions have ended */
    DOMI_NET_CONNECTED,
    DOMI_NET_LISTENING,
    DOMI_NET_DATAGRAMS, /* state of a datagram socket, which it has from its beginning */
    DOMI_NET_WAKE, /* state of a socket that stands for the descriptor by which a thread is woken */
} domi_net_state;

/* Kind of an operation that waits at a socket for input; the names are those of the io_uring and
 * epoll backends. */
typedef enum domi_net_input {
    DOMI_NET_ACCEPT,
    DOMI_NET_RECEIVE,
    DOMI_NET_RECEIVE_ONCE,
    DOMI_NET_RECEIVE_DATAGRAMS,
    DOMI_NET_POLL,
} domi_net_input;

/* A one-shot poll operation that waits at a socket. */
struct domi_net_poll {
    domi_net_poll *next;
    uint64_t user_data; /* number that the completion of the poll brings back */
    uint32_t events;    /* events of poll(2) that complete the poll */
};

/* The bytes that a send operation has to write. */
typedef struct domi_net_output {
    struct iovec pieces[DOMI_PIECES_MAX];
    uint32_t count; /* number of pieces that the send has in `pieces` */
    /* true: the operation is send_message, which may end with -EAGAIN once there is room again */
    bool is_gathered;
} domi_net_output;

/* The part of a socket's state that only datagram sockets use. */
typedef struct domi_net_mail {
    /* datagrams that have arrived at the socket and were not received yet */
    domi_net_datagrams inbox;
    uint32_t inbox_count; /* number of datagrams that wait in `inbox` */
    /* bytes for which the datagrams in `inbox` count in the receive buffer */
    uint32_t inbox_bytes;
    /* number of datagrams that were dropped because the receive buffer had no room (SO_MEMINFO) */
    uint32_t dropped;
    /* time at which the wire will have taken all datagrams that were sent so far, by its
     * bandwidth */
    uint64_t clear_ns;
    /* address of the peer to which the socket is connected; family 0: not connected */
    domus_endpoint peer;
    /* number of the Unix socket to which this one is connected; 0: not connected */
    uint64_t peer_number;
} domi_net_mail;

struct domi_net_socket {
    domi_net *net; /* network to which the socket belongs */
    /* socket's number, unique in its network, from 1 on; never used again */
    uint64_t number;
    domi_net_socket *next_bound;     /* next socket in the network's list of bound sockets */
    domi_net_connection *connection; /* connection of the socket; NULL: it has none */
    domi_net_ring *ring;             /* ring that has operations on this socket; NULL: none has */
    domi_net_ready *listed_in;       /* list of ready sockets in which this socket is listed */
    domi_net_socket *next_ready;     /* next socket in the list of ready sockets (`listed_in`) */
    /* function that is called when the socket may have become readable or writable; NULL: nobody
     * wants to know */
    void (*changed)(domi_net_socket *socket);
    /* scripted peer of a test to which this socket belongs; NULL: it belongs to the service
     * under test */
    void *owner;
    /* user_data of the operation that waits at the socket for input; 0: none waits */
    uint64_t input_data;
    /* user_data of the send that waits at the socket for room; 0: none waits */
    uint64_t output_data;
    domi_net_output output; /* bytes that the waiting send of the socket writes */
    domi_net_poll *polls;   /* one-shot polls that wait at the socket */
    domi_net_mail mail;     /* part of the state that only datagram sockets use */
    /* connections in the queue of a listener, which it has not accepted yet */
    domi_net_waiting waiting;
    uint32_t waiting_count; /* number of connections that wait in `waiting` */
    uint32_t backlog;       /* backlog of a listener, which limits `waiting_count` */
    /* number of wake-ups of a wake descriptor that no poll has reported yet */
    uint32_t wakes;
    uint32_t send_max;    /* size of the socket's send buffer in bytes */
    uint32_t receive_max; /* size of the socket's receive buffer in bytes */
    int fd;               /* socket's descriptor; -1: it has none */
    int error;            /* pending error that SO_ERROR tells, a positive errno; 0: none */
    domus_endpoint local; /* own address of the socket; its family is set from the beginning */
    uint8_t state;        /* state of the socket, a domi_net_state */
    uint8_t input;        /* kind of the operation that waits for input, a domi_net_input */
    uint8_t side;         /* side (0 or 1) of `connection` that this socket is */
    bool is_bound;        /* true: the socket has a name, and is in the list of bound sockets */
    /* true: SO_REUSEPORT is set, so others may be bound to the socket's port */
    bool shares_port;
    /* true: SO_SNDBUF was set; connections that this listener accepts inherit the size */
    bool sets_send_max;
    /* true: SO_RCVBUF was set; connections that this listener accepts inherit the size */
    bool sets_receive_max;
    /* true: closing the socket resets its connection (SO_LINGER with time 0) */
    bool aborts;
    bool reads_no_more; /* true: shutdown(SHUT_RD) was called on the socket */
    /* true: the socket's connection was reset, or its connect has failed */
    bool is_dead;
    bool is_listed; /* true: the socket is in the list `listed_in` */
};

/* List of sockets on which an operation of a ring can go on. */
DOMI_FIFO(domi_net_ready, domi_net_socket, next_ready);

/* A broken link of the network: nothing passes between the two machines. */
typedef struct domi_net_partition {
    /* address of the link's one machine, with port 0; family 0: every machine */
    domus_endpoint one;
    /* address of the link's other machine, with port 0; family 0: every machine */
    domus_endpoint other;
} domi_net_partition;

#define DOMI_NET_PARTITIONS_MAX 16u

/* An entry about the network in the trace of a test kit. */
typedef struct domi_net_note {
    const char *what; /* text of the trace's entry, such as "bytes" or "reset" */
    /* number of the connection or the datagram to which the trace's entry belongs */
    uint64_t number;
    uint64_t amount; /* number of bytes that the trace's entry is about, or a port; 0: neither */
    /* side of the connection that the bytes or the reset of the trace's entry reach */
    uint8_t side;
    bool is_datagram; /* true: the trace's entry is about a datagram, and not about a connection */
} domi_net_note;

struct domi_net {
    domi_random random;      /* source of all random draws of the network */
    uint64_t now_ns;         /* present time of the network, in simulated nanoseconds */
    domus_net_faults faults; /* probabilities of the faults that may happen in the network */
    /* heap of the events in the future; the one that is due first is heap[0] */
    domi_net_event **heap;
    uint32_t heap_count;        /* number of events that are in `heap` */
    uint32_t heap_capacity;     /* number of events for which `heap` has room now */
    uint64_t event_count;       /* number of events that were made in the network so far */
    uint64_t connection_count;  /* number of connections that were begun in the network so far */
    uint64_t socket_number;     /* number of sockets that were made in the network so far */
    domi_net_connection *first; /* list of all connections of the network, the youngest first */
    /* sockets by their descriptors, from DOMI_NET_FIRST_FD on; NULL: the descriptor is free */
    domi_net_socket **sockets;
    uint32_t socket_capacity; /* number of entries of `sockets`, used or not */
    uint32_t socket_count;    /* number of descriptors of the network that are in use */
    domi_net_socket *bound;   /* list of all bound sockets of the network, the youngest first */
    uint16_t next_port;       /* port that is tried next for a socket that is bound to port 0 */
    /* links of the network that are broken */
    domi_net_partition partitions[DOMI_NET_PARTITIONS_MAX];
    /* number of broken links in `partitions` */
    uint32_t partition_count;
    /* sums of the bytes of all connections of the network */
    domus_net_totals totals;
    domus_net_datagrams datagrams; /* counts of all datagrams of the network */
    /* function that carries out an event which is due (life.c) */
    void (*carry_out)(domi_net *net, const domi_net_event *event);
    /* Called with each entry for a trace; NULL: no trace is written. */
    void (*note)(void *context, const domi_net_note *note);
    void *note_context; /* argument that the function `note` gets */
    /* true: no test kit drives the network, so an enter that waits moves the time itself */
    bool is_alone;
    /* true: an allocation of the network has failed, which the test kit reports */
    bool is_out_of_memory;
};

#endif
