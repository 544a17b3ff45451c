/* Scripted peers: sockets of the network that the test drives (domus/testkit_net.h). */
#ifndef DOMI_RUNTIME_TESTKIT_PEER_H
#define DOMI_RUNTIME_TESTKIT_PEER_H

#include "runtime/testkit/kit.h"

/* Bytes that a peer has received, or that wait to be sent. The first `begin` were used. */
typedef struct domi_peer_bytes {
    char *data;      /* NULL while there is no room */
    size_t begin;    /* offset of the first byte */
    size_t end;      /* offset behind the last byte */
    size_t capacity; /* bytes at `data` */
} domi_peer_bytes;

static inline size_t domi_peer_bytes_count(const domi_peer_bytes *bytes)
{
    return bytes->end - bytes->begin;
}

struct domus_peer {
    domus_testkit *kit;              /* the kit that the peer belongs to */
    domus_peer *next;                /* the peer that was made before it */
    uint32_t number;                 /* names the peer in error lines */
    domi_net_socket *socket;         /* NULL: closed */
    domi_net_connection *connection; /* the connection, for the counts; NULL: none was begun */
    uint8_t side;                    /* the peer's side (0 or 1) of the connection */
    domi_peer_bytes got;             /* received, and not expected yet */
    domi_peer_bytes out;             /* waits until the socket takes it */
    int error;                       /* a negative errno; 0: none */
    bool is_connected;               /* the connect was answered, or the peer was accepted */
    bool is_paused;                  /* the peer does not read */
    bool has_end;                    /* the peer has read the end of the stream */
    bool is_finished;                /* the test has finished or closed it */
    bool closes;                     /* the peer closes when all bytes are sent */
};

struct domus_datagram_peer {
    domus_testkit *kit;        /* the kit that the peer belongs to */
    domus_datagram_peer *next; /* the peer that was made before it */
    uint32_t number;           /* names the peer in error lines */
    domi_net_socket *socket;   /* NULL: closed */
    domus_endpoint at;         /* where it is, or was, open */
    domi_net_datagrams got;    /* received, and not taken yet */
    int error;                 /* a refusal that the test was not told of; 0: none */
    bool is_paused;            /* the peer does not receive */
};

struct domus_peer_listener {
    domus_testkit *kit;        /* the kit that it belongs to */
    domus_peer_listener *next; /* the listener that was made before it */
    domi_net_socket *socket;   /* NULL: closed */
};

/* Let the network see the kit's present time, before the test acts. Returns 0; -EBUSY in a step. */
int domi_peer_act(domus_testkit *kit);

/* Take steps until `is_done`, or this time has passed. Returns 0; -ETIME when it has passed;
 * -EBUSY; -ENOMEM; -ETIMEDOUT as of domus_testkit_run(). */
int domi_peer_wait(domus_testkit *kit, bool (*is_done)(const void *), const void *context,
                   uint64_t within_ns);

#define DOMI_PEER_SHOWN_MAX 40u /* bytes of what came that an error line shows */
#define DOMI_PEER_TEXT_MAX  (4 * DOMI_PEER_SHOWN_MAX + 8) /* room for them */

/* Write bytes in quotes and in a form that can be read, cut where they are many. */
void domi_peer_show(const char *data, size_t size, char *text, size_t text_size);

/* Make a socket of `family`, named `from` if that is not NULL, and one of datagrams if `state` is
 * DOMI_NET_DATAGRAMS. Returns 0; -EINVAL; -EADDRINUSE; -ENOMEM. */
int domi_peer_make_socket(domus_testkit *kit, uint16_t family, domi_net_state state,
                          const char *from, domi_net_socket **ret_socket);

/* Write to the kit's error what a peer could not do. Returns `result`. */
int domi_peer_fail(domus_testkit *kit, const char *what, const char *where, int result);

/* Make a peer for a connection that a listener of the test has accepted. Returns 0; -ENOMEM. */
int domi_peer_of_accepted(domus_testkit *kit, domi_net_socket *socket, domus_peer **ret_peer);

/* Free all peers and listeners of the kit. */
void domi_kit_peers_free(domus_testkit *kit);
void domi_datagram_peers_free(domus_testkit *kit);

#endif
