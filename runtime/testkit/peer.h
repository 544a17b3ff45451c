/* Scripted peers: sockets of the simulated network that the test drives (domus/testkit_net.h). */
#ifndef DOMI_RUNTIME_TESTKIT_PEER_H
#define DOMI_RUNTIME_TESTKIT_PEER_H

#include "runtime/testkit/kit.h"

/* A buffer of bytes that a peer has received, or that wait to be sent. The bytes before `begin`
 * were used already. */
typedef struct domi_peer_bytes {
    char *data;      /* memory of the buffer; NULL: it has none yet */
    size_t begin;    /* offset in the buffer of the first byte that was not used yet */
    size_t end;      /* offset in the buffer behind the last byte that was put into it */
    size_t capacity; /* size of the buffer's memory in bytes */
} domi_peer_bytes;

static inline size_t domi_peer_bytes_count(const domi_peer_bytes *bytes)
{
    return bytes->end - bytes->begin;
}

struct domus_peer {
    domus_testkit *kit;      /* kit to which the peer belongs */
    domus_peer *next;        /* next peer in the kit's list, which was made before this one */
    uint32_t number;         /* number by which error texts call the peer */
    domi_net_socket *socket; /* socket of the peer; NULL: it is closed */
    /* connection of the peer, for its counts; NULL: the peer has begun none */
    domi_net_connection *connection;
    uint8_t side; /* side of the connection that the peer is (0 or 1) */
    /* bytes that the peer has received and the test has not expected yet */
    domi_peer_bytes got;
    /* bytes that the peer has to send, and that wait until the socket accepts them */
    domi_peer_bytes out;
    int error; /* first error of the peer, as a negative errno; 0: none */
    /* true: the peer's connect was answered, or a listener has accepted the peer */
    bool is_connected;
    bool is_paused;   /* true: the test has paused the peer, which does not read */
    bool has_end;     /* true: the peer has read the end of the stream */
    bool is_finished; /* true: the test has finished, closed or reset the peer */
    bool closes;      /* true: the peer's socket is closed when all its bytes are sent */
};

struct domus_datagram_peer {
    domus_testkit *kit; /* kit to which the datagram peer belongs */
    /* next datagram peer in the kit's list, which was made before this one */
    domus_datagram_peer *next;
    uint32_t number;         /* number by which error texts call the datagram peer */
    domi_net_socket *socket; /* socket of the datagram peer; NULL: it is closed */
    domus_endpoint at;       /* address at which the datagram peer is open, or was */
    /* datagrams that the peer has received and the test has not taken yet */
    domi_net_datagrams got;
    /* error of a refused datagram that was not reported to the test yet; 0: none */
    int error;
    bool is_paused; /* true: the test has paused the datagram peer, which does not receive */
};

struct domus_peer_listener {
    domus_testkit *kit;        /* kit to which the listener belongs */
    domus_peer_listener *next; /* next listener in the kit's list, which was made before this one */
    domi_net_socket *socket;   /* socket of the test's listener; NULL: it is closed */
};

/* Prepare the network for something that the test does between steps: move the network's time to
 * the kit's. Returns 0; -EBUSY in a step. */
int domi_peer_move_network_time_to_kit(domus_testkit *kit);

/* Take steps of the kit until `is_done` returns true or `within_ns` has passed. Returns 0 when
 * `is_done` returned true; -ETIME when the time has passed; -EBUSY; -ENOMEM; -ETIMEDOUT as
 * domus_testkit_run() does. */
int domi_peer_take_steps_until(domus_testkit *kit, bool (*is_done)(const void *),
                               const void *context, uint64_t within_ns);

#define DOMI_PEER_SHOWN_MAX 40u /* most of the received bytes that an error text shows */
/* most bytes of an error text's part with DOMI_PEER_SHOWN_MAX bytes, escaped */
#define DOMI_PEER_TEXT_MAX (4 * DOMI_PEER_SHOWN_MAX + 8)

/* Write bytes into an error text: in quotes, escaped, and cut after DOMI_PEER_SHOWN_MAX bytes. */
void domi_peer_format_bytes(const char *data, size_t size, char *text, size_t text_size);

/* Make a socket of an address family for a peer, for datagrams if `state` is DOMI_NET_DATAGRAMS,
 * and bind it to the address `from` unless that is NULL. Returns 0; -EINVAL; -EADDRINUSE;
 * -ENOMEM. */
int domi_peer_make_and_bind_socket(domus_testkit *kit, uint16_t family, domi_net_state state,
                                   const char *from, domi_net_socket **ret_socket);

/* Write into the kit's error text what a peer could not do, and why. Returns `result`. */
int domi_peer_write_error(domus_testkit *kit, const char *what, const char *where, int result);

/* Make a peer for a connection that a test's listener has accepted. Returns 0; -ENOMEM. */
int domi_peer_make_for_accepted_socket(domus_testkit *kit, domi_net_socket *socket,
                                       domus_peer **ret_peer);

/* Free all peers, listeners and datagram peers of a kit. */
void domi_kit_peers_free(domus_testkit *kit);
void domi_datagram_peers_free(domus_testkit *kit);

#endif
