/* Scripted peers: sockets of the simulated network that the test drives (domus/testkit_net.h). */
#ifndef DOMI_RUNTIME_TESTKIT_PEER_H
#define DOMI_RUNTIME_TESTKIT_PEER_H

#include "runtime/testkit/kit.h"

/* A buffer of the bytes that a peer has received, or that wait to be sent. The bytes before `begin`
 * were used. */
typedef struct domi_peer_bytes {
    char *data;      /* memory of the buffer; NULL: none yet */
    size_t begin;    /* offset of the first byte that was not used */
    size_t end;      /* offset behind the last byte */
    size_t capacity; /* size of the memory at `data` in bytes */
} domi_peer_bytes;

static inline size_t domi_peer_bytes_count(const domi_peer_bytes *bytes)
{
    return bytes->end - bytes->begin;
}

struct domus_peer {
    domus_testkit *kit;      /* the kit that the peer belongs to */
    domus_peer *next;        /* next peer in the kit's list, made before this one */
    uint32_t number;         /* number of the peer in error texts */
    domi_net_socket *socket; /* socket of the peer; NULL: closed */
    /* connection of the peer, for its counts; NULL: none was begun */
    domi_net_connection *connection;
    uint8_t side; /* the peer's side (0 or 1) of the connection */
    /* bytes that were received and that the test has not expected yet */
    domi_peer_bytes got;
    domi_peer_bytes out; /* bytes that wait until the socket accepts them */
    int error;           /* first error of the peer, a negative errno; 0: none */
    /* the peer's connect was answered, or a listener has accepted the peer */
    bool is_connected;
    bool is_paused;   /* the test has paused the peer, which does not read */
    bool has_end;     /* the peer has read the end of the stream */
    bool is_finished; /* the test has finished, closed or reset the peer */
    bool closes;      /* the socket is closed when all bytes are sent */
};

struct domus_datagram_peer {
    domus_testkit *kit;        /* the kit that the peer belongs to */
    domus_datagram_peer *next; /* next datagram peer in the kit's list, made before this one */
    uint32_t number;           /* number of the peer in error texts */
    domi_net_socket *socket;   /* socket of the peer; NULL: closed */
    domus_endpoint at;         /* address at which the peer is, or was, open */
    /* datagrams that were received and that the test has not taken yet */
    domi_net_datagrams got;
    /* error of a refusal that was not reported to the test yet; 0: none */
    int error;
    bool is_paused; /* the test has paused the peer, which does not receive */
};

struct domus_peer_listener {
    domus_testkit *kit;        /* the kit that the listener belongs to */
    domus_peer_listener *next; /* next listener in the kit's list, made before this one */
    domi_net_socket *socket;   /* socket of the listener; NULL: closed */
};

/* Prepare an act of the test on the network: move the network's time to the kit's. Returns 0;
 * -EBUSY in a step. */
int domi_peer_prepare_act(domus_testkit *kit);

/* Take steps until `is_done` returns true or `within_ns` has passed. Returns 0 when `is_done`
 * returned true; -ETIME when the time has passed; -EBUSY; -ENOMEM; -ETIMEDOUT as
 * domus_testkit_run() does. */
int domi_peer_run_until(domus_testkit *kit, bool (*is_done)(const void *), const void *context,
                        uint64_t within_ns);

#define DOMI_PEER_SHOWN_MAX 40u /* most received bytes that an error text shows */
/* most bytes of DOMI_PEER_SHOWN_MAX bytes as escaped text */
#define DOMI_PEER_TEXT_MAX (4 * DOMI_PEER_SHOWN_MAX + 8)

/* Write bytes as text in quotes, escaped, and cut after DOMI_PEER_SHOWN_MAX bytes. */
void domi_peer_format_bytes(const char *data, size_t size, char *text, size_t text_size);

/* Make a socket of an address family, for datagrams if `state` is DOMI_NET_DATAGRAMS, and bind it
 * to the address `from` unless that is NULL. Returns 0; -EINVAL; -EADDRINUSE; -ENOMEM. */
int domi_peer_make_socket(domus_testkit *kit, uint16_t family, domi_net_state state,
                          const char *from, domi_net_socket **ret_socket);

/* Write to the kit's error what a peer could not do. Returns `result`. */
int domi_peer_write_error(domus_testkit *kit, const char *what, const char *where, int result);

/* Make a peer for a connection that a test's listener has accepted. Returns 0; -ENOMEM. */
int domi_peer_make_accepted(domus_testkit *kit, domi_net_socket *socket, domus_peer **ret_peer);

/* Free all peers and listeners of the kit, and all its datagram peers. */
void domi_kit_peers_free(domus_testkit *kit);
void domi_datagram_peers_free(domus_testkit *kit);

#endif
