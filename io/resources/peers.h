/* How many connections each address has, so that one address cannot take all places.
 *
 * One table for the whole system, because listeners accept on several threads and connections end
 * on all of them. Only accepting and closing touch it, never a message, so one spinlock is enough.
 * An IPv6 address counts by its first 64 bits, which is what one subscriber is given; an IPv4
 * address that is mapped into IPv6 counts as the IPv4 address, and all Unix sockets count as one
 * address. The buckets are found by a keyed hash, so that nobody who chooses addresses can make
 * them collide. An entry is made with an address's first connection and freed with its last one:
 * there are never more entries than connections. */
#ifndef DOMI_IO_RESOURCES_PEERS_H
#define DOMI_IO_RESOURCES_PEERS_H

#include "base/spinlock.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* What counts as one address. */
typedef struct domi_peer_key {
    uint64_t network; /* the IPv4 address, or the first 64 bits of the IPv6 address */
    sa_family_t family;
    bool is_local; /* loopback or a Unix socket */
} domi_peer_key;

/* An address that has connections. Each pointer to it belongs to one connection that it counts. */
typedef struct domi_peer {
    struct domi_peer *next; /* in its bucket */
    domi_peer_key key;
    uint32_t bucket;
    uint32_t count; /* connections of this address; under the lock */
} domi_peer;

typedef struct domi_peers {
    domi_peer **buckets;
    size_t buckets_bytes;
    uint32_t buckets_count; /* a power of two; 0: nothing is bounded */
    uint32_t foreign_max;   /* connections of one address; UINT32_MAX: no bound */
    uint32_t local_max;     /* the same for a local address */
    uint64_t hash_key[2];
    domi_spinlock lock; /* for the entries, and the buckets' contents */
    uint32_t count;     /* entries in the buckets; under the lock */
} domi_peers;

typedef struct domi_peers_limits {
    uint32_t connections_max;
    uint32_t share_percent;       /* of connections_max for one address; 100: no bound */
    uint32_t local_share_percent; /* the same for one local address */
} domi_peers_limits;

/* `hash_key` is to be secret and random. Returns 0; -ENOMEM. */
int domi_peers_init(domi_peers *peers, const domi_peers_limits *limits, const uint64_t hash_key[2]);

/* Free the table with all entries in it. No thread may use it any more, not even for
 * domi_peers_leave(). Zeroed peers are taken. */
void domi_peers_fini(domi_peers *peers);

/* Whether any address has a bound: if none has, nobody needs to know where a connection is from. */
static inline bool domi_peers_are_bounded(const domi_peers *peers)
{
    return peers->buckets_count != 0;
}

/* What `address` counts as. A family that is not known counts as one address, which is not local.
 */
void domi_peer_key_of(const struct sockaddr_storage *address, domi_peer_key *ret_key);

/* Count one more connection from `key`. `ret_peer` gets what domi_peers_leave() takes, which is
 * NULL if the address has no bound.
 *
 * Thread-safety: any thread; a spinlock.
 * Returns 0; -EDQUOT when the address has all connections that it may have; -ENOMEM. */
int domi_peers_enter(domi_peers *peers, const domi_peer_key *key, domi_peer **ret_peer);

/* Count one connection less; NULL is taken. Thread-safety: any thread; a spinlock. */
void domi_peers_leave(domi_peers *peers, domi_peer *peer);

/* How many connections one address may have: UINT32_MAX when there is no bound. */
static inline uint32_t domi_peers_max(const domi_peers *peers, const domi_peer_key *key)
{
    return key->is_local ? peers->local_max : peers->foreign_max;
}

/* Print what counts as one address, as "192.0.2.1", "2001:db8::/64" or "a Unix socket". */
#define DOMI_PEER_TEXT_SIZE 64
void domi_peer_print(const domi_peer_key *key, char *text, size_t size);

#endif
