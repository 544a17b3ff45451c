/* The counts of connections of each address, so that one address cannot take all places.
 *
 * The whole system has one table, because listeners accept on several threads and connections end
 * on all of them. One spinlock is enough, because only accepting and closing use the table, never a
 * message. An IPv6 address counts by its first 64 bits, which is the range of one subscriber. An
 * IPv4 address that is mapped into IPv6 counts as the IPv4 address, and all Unix sockets count as
 * one address. The hash of the buckets has a secret key, so that an attacker who chooses addresses
 * cannot make them collide. An entry is made with the first connection of an address and freed with
 * its last one, so there are never more entries than connections. */
#ifndef DOMI_IO_RESOURCES_PEERS_H
#define DOMI_IO_RESOURCES_PEERS_H

#include "base/spinlock.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The key of a table entry: a range of addresses that counts as one address. */
typedef struct domi_peer_key {
    /* of an address: the IPv4 address, or the first 64 bits of the IPv6 address */
    uint64_t network;
    sa_family_t family; /* family of the address: AF_INET, AF_INET6 or AF_UNIX */
    bool is_local;      /* the address is a loopback address or a Unix socket */
} domi_peer_key;

/* The entry of an address that has connections. Each of these connections holds a pointer
 * to the entry. */
typedef struct domi_peer {
    struct domi_peer *next; /* the next entry of the same bucket of the table */
    domi_peer_key key;      /* the address whose connections the entry counts */
    uint32_t bucket;        /* index of the bucket that holds the entry */
    uint32_t count;         /* number of connections of this address; under the lock */
} domi_peer;

typedef struct domi_peers {
    domi_peer **buckets;  /* buckets of the hash table: lists of domi_peer, linked by `next` */
    size_t buckets_bytes; /* number of bytes that are mapped for `buckets` */
    /* number of buckets of the table, a power of two; it may grow, under the lock */
    uint32_t buckets_count;
    /* at least one kind of address has a bound on its connections; this never changes */
    bool is_bounded;
    /* most connections of one address that is not local; UINT32_MAX: no bound; atomic */
    uint32_t foreign_max;
    /* most connections of one local address; UINT32_MAX: no bound; atomic */
    uint32_t local_max;
    /* percent of all connections that an address may have which is not local */
    uint32_t share_percent;
    uint32_t local_share_percent;
    /* secret random numbers of the hash, so that peers cannot choose their buckets */
    uint64_t hash_key[2];
    domi_spinlock lock; /* lock that guards the entries and the contents of the buckets */
    uint32_t count;     /* number of entries in the table's buckets; under the lock */
} domi_peers;

typedef struct domi_peers_limits {
    /* most connections that the system may have (channel.maxConnections) */
    uint32_t connections_max;
    /* percent of connections_max for one address that is not local; 100: no bound */
    uint32_t share_percent;
    /* percent of connections_max that one local address may have; 100: no bound */
    uint32_t local_share_percent;
} domi_peers_limits;

/* Make an empty table of the connections by address. `hash_key` has to be secret and random.
 * Returns 0; -ENOMEM. */
int domi_peers_init(domi_peers *peers, const domi_peers_limits *limits, const uint64_t hash_key[2]);

/* Free the table of addresses with all its entries. No thread may use it any more, not even for
 * domi_peers_uncount_connection(). A zeroed table that was never initialized is accepted. */
void domi_peers_fini(domi_peers *peers);

/* Set the bounds of one address anew, because channel.maxConnections has changed, and let the table
 * grow as it needs. Connections beyond the new bounds stay. One thread at a time; others may use
 * the table. */
void domi_peers_set_max_connections(domi_peers *peers, uint32_t connections_max);

/* True if any address has a bound on its connections. If none has, the address of a connection need
 * not be found. */
static inline bool domi_peers_is_any_address_bounded(const domi_peers *peers)
{
    return peers->is_bounded;
}

/* Set `ret_key` to the key by which the connections of `address` are counted. All addresses of a
 * family that is not known count as one, which is not local. */
void domi_peer_get_key_of_address(const struct sockaddr_storage *address, domi_peer_key *ret_key);

/* Count one more connection from `key`. `ret_peer` gets the pointer for
 * domi_peers_uncount_connection(); it is NULL if the address has no bound.
 *
 * Thread-safety: any thread; a spinlock.
 *
 * Returns 0; -EDQUOT when the address has as many connections as it may have; -ENOMEM. */
int domi_peers_count_connection(domi_peers *peers, const domi_peer_key *key, domi_peer **ret_peer);

/* Count one connection less from the address of `peer`. NULL is allowed. Thread-safety: any thread;
 * a spinlock. */
void domi_peers_uncount_connection(domi_peers *peers, domi_peer *peer);

/* Returns the most connections that one address like `key` may have; UINT32_MAX: no bound. */
static inline uint32_t domi_peers_max_connections_of_address(const domi_peers *peers,
                                                             const domi_peer_key *key)
{
    const uint32_t *max = key->is_local ? &peers->local_max : &peers->foreign_max;

    /* Relaxed: domi_peers_set_max_connections() may change the bound at this moment. */
    return __atomic_load_n(max, __ATOMIC_RELAXED);
}

/* Write the key of an address as text: "192.0.2.1", "2001:db8::/64" or "a Unix socket". */
#define DOMI_PEER_TEXT_SIZE 64
void domi_peer_write_key_as_text(const domi_peer_key *key, char *text, size_t size);

#endif
