/* Counts the connections of each address in a hash table under a spinlock. Memory is allocated and
 * freed outside of the lock, because an allocator may be slow or may be the user's own. */
#include "io/resources/peers.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/siphash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS_MIN 16u /* number of buckets of the smallest table of addresses */

/* number of entries in a bucket of the table, on average, if every connection has another
 * address */
#define CONNECTIONS_PER_BUCKET 4u

static uint32_t get_share_of_max_connections(uint32_t connections_max, uint32_t percent)
{
    uint64_t share = (uint64_t)connections_max * percent / 100;

    if (percent >= 100)
        return UINT32_MAX;
    return share != 0 ? (uint32_t)share : 1;
}

/* Set the most connections of one address. Relaxed: domi_peers_max_connections_of_address() reads
 * them at any time. */
static void set_bounds_of_one_address(domi_peers *peers, uint32_t connections_max)
{
    __atomic_store_n(&peers->foreign_max,
                     get_share_of_max_connections(connections_max, peers->share_percent),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&peers->local_max,
                     get_share_of_max_connections(connections_max, peers->local_share_percent),
                     __ATOMIC_RELAXED);
}

/* Returns the number of buckets that the table needs for `connections_max` connections. */
static uint32_t get_bucket_count_for_connections(uint32_t connections_max)
{
    uint32_t count = BUCKETS_MIN;

    while (count < connections_max / CONNECTIONS_PER_BUCKET)
        count *= 2;
    return count;
}

int domi_peers_init(domi_peers *peers, const domi_peers_limits *limits, const uint64_t hash_key[2])
{
    uint32_t count = get_bucket_count_for_connections(limits->connections_max);

    *peers = (domi_peers){
        .share_percent = limits->share_percent,
        .local_share_percent = limits->local_share_percent,
        .hash_key = {hash_key[0], hash_key[1]},
    };
    domi_spinlock_init(&peers->lock);
    set_bounds_of_one_address(peers, limits->connections_max);
    if (peers->foreign_max == UINT32_MAX && peers->local_max == UINT32_MAX)
        return 0;
    peers->buckets_bytes = count * sizeof(domi_peer *);
    peers->buckets = domi_memory_map_pages(peers->buckets_bytes);
    if (peers->buckets == NULL)
        return -ENOMEM;
    peers->buckets_count = count;
    peers->is_bounded = true;
    return 0;
}

/* Free the entries that are left in the table, because of connections whose thread ended without
 * closing them. */
static void free_entries_of_table(domi_peers *peers)
{
    for (uint32_t i = 0; i < peers->buckets_count; i++) {
        while (peers->buckets[i] != NULL) {
            domi_peer *peer = peers->buckets[i];
            peers->buckets[i] = peer->next;
            domi_memory_free(peer);
        }
    }
}

void domi_peers_fini(domi_peers *peers)
{
    if (peers->count != 0)
        free_entries_of_table(peers);
    if (peers->buckets != NULL)
        domi_memory_unmap_pages(peers->buckets, peers->buckets_bytes);
    *peers = (domi_peers){0};
}

static void get_key_of_ipv4_address(uint32_t address, domi_peer_key *ret_key)
{
    *ret_key = (domi_peer_key){
        .network = address,
        .family = AF_INET,
        .is_local = address >> 24 == IN_LOOPBACKNET,
    };
}

void domi_peer_get_key_of_address(const struct sockaddr_storage *address, domi_peer_key *ret_key)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    if (address->ss_family == AF_INET) {
        get_key_of_ipv4_address(ntohl(v4->sin_addr.s_addr), ret_key);
    } else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
        uint32_t mapped;
        memcpy(&mapped, v6->s6_addr + 12, sizeof mapped);
        get_key_of_ipv4_address(ntohl(mapped), ret_key);
    } else if (address->ss_family == AF_INET6) {
        uint64_t network;
        memcpy(&network, v6->s6_addr, sizeof network);
        *ret_key = (domi_peer_key){
            .network = network,
            .family = AF_INET6,
            .is_local = IN6_IS_ADDR_LOOPBACK(v6) != 0,
        };
    } else {
        *ret_key = (domi_peer_key){
            .family = address->ss_family,
            .is_local = address->ss_family == AF_UNIX,
        };
    }
}

static uint32_t hash_address_to_bucket(const domi_peers *peers, const domi_peer_key *key)
{
    const uint64_t words[2] = {key->network, (uint64_t)key->family << 1 | key->is_local};

    return (uint32_t)domi_siphash(peers->hash_key, words, sizeof words) &
           (peers->buckets_count - 1);
}

/* Move the entries to other buckets, of which there are more. Called with the lock held. Returns
 * the former buckets. */
static domi_peer **move_entries_to_more_buckets(domi_peers *peers, domi_peer **buckets,
                                                uint32_t count)
{
    domi_peer **former = peers->buckets;
    uint32_t former_count = peers->buckets_count;

    peers->buckets = buckets;
    peers->buckets_count = count;
    for (uint32_t i = 0; i < former_count; i++) {
        for (domi_peer *peer = former[i], *next; peer != NULL; peer = next) {
            next = peer->next;
            peer->bucket = hash_address_to_bucket(peers, &peer->key);
            peer->next = buckets[peer->bucket];
            buckets[peer->bucket] = peer;
        }
    }
    return former;
}

void domi_peers_set_max_connections(domi_peers *peers, uint32_t connections_max)
{
    uint32_t count = get_bucket_count_for_connections(connections_max);
    size_t bytes = count * sizeof(domi_peer *);
    bool grows = peers->is_bounded && count > peers->buckets_count;
    domi_peer **buckets = grows ? domi_memory_map_pages(bytes) : NULL;

    domi_spinlock_lock(&peers->lock);
    set_bounds_of_one_address(peers, connections_max);
    if (buckets != NULL)
        buckets = move_entries_to_more_buckets(peers, buckets, count);
    domi_spinlock_unlock(&peers->lock);
    if (buckets == NULL)
        return;
    domi_memory_unmap_pages(buckets, peers->buckets_bytes);
    peers->buckets_bytes = bytes;
}

/* Find the entry of the address `key`. Called with the lock held. Returns NULL when there is
 * none. */
static domi_peer *find_entry_of_address(const domi_peers *peers, uint32_t bucket,
                                        const domi_peer_key *key)
{
    domi_peer *peer = peers->buckets[bucket];

    while (peer != NULL && (peer->key.network != key->network || peer->key.family != key->family ||
                            peer->key.is_local != key->is_local))
        peer = peer->next;
    return peer;
}

/* Count a connection on the entry of its address. If there is no entry yet, `*made` becomes
 * the entry and is set to NULL. Returns 0; -EDQUOT at the bound; -ENOENT if there is no entry
 * and no `*made`. */
static int count_connection_on_entry(domi_peers *peers, const domi_peer_key *key, domi_peer **made,
                                     domi_peer **ret_peer)
{
    int result = 0;

    domi_spinlock_lock(&peers->lock);
    /* the bucket is computed under the lock, because the table may have grown */
    uint32_t bucket = hash_address_to_bucket(peers, key);
    domi_peer *peer = find_entry_of_address(peers, bucket, key);
    if (peer == NULL && *made != NULL) {
        peer = *made;
        *made = NULL;
        *peer = (domi_peer){.next = peers->buckets[bucket], .key = *key, .bucket = bucket};
        peers->buckets[bucket] = peer;
        peers->count++;
    }
    if (peer == NULL)
        result = -ENOENT;
    else if (peer->count >= domi_peers_max_connections_of_address(peers, key))
        result = -EDQUOT;
    else
        peer->count++;
    domi_spinlock_unlock(&peers->lock);
    if (result == 0)
        *ret_peer = peer;
    return result;
}

int domi_peers_count_connection(domi_peers *peers, const domi_peer_key *key, domi_peer **ret_peer)
{
    domi_peer *made = NULL;

    if (domi_peers_max_connections_of_address(peers, key) == UINT32_MAX) {
        *ret_peer = NULL;
        return 0;
    }
    int result = count_connection_on_entry(peers, key, &made, ret_peer);
    if (result != -ENOENT)
        return result;
    made = domi_memory_new(sizeof *made);
    if (made == NULL)
        return -ENOMEM;
    result = count_connection_on_entry(peers, key, &made, ret_peer);
    /* `made` is not NULL if another thread has added an entry for the address first */
    domi_memory_free(made);
    return result;
}

void domi_peers_uncount_connection(domi_peers *peers, domi_peer *peer)
{
    if (peer == NULL)
        return;
    domi_spinlock_lock(&peers->lock);
    DOMI_CHECK(peer->count != 0);
    bool is_last = --peer->count == 0;
    if (is_last) {
        domi_peer **link = &peers->buckets[peer->bucket];
        while (*link != peer)
            link = &(*link)->next;
        *link = peer->next;
        peers->count--;
    }
    domi_spinlock_unlock(&peers->lock);
    if (is_last)
        domi_memory_free(peer);
}

void domi_peer_write_key_as_text(const domi_peer_key *key, char *text, size_t size)
{
    char shown[INET6_ADDRSTRLEN] = "?";
    struct in6_addr v6 = {0};
    struct in_addr v4 = {.s_addr = htonl((uint32_t)key->network)};

    if (key->family == AF_INET) {
        snprintf(text, size, "%s", inet_ntop(AF_INET, &v4, shown, sizeof shown));
    } else if (key->family == AF_INET6) {
        memcpy(v6.s6_addr, &key->network, sizeof key->network);
        snprintf(text, size, "%s/64", inet_ntop(AF_INET6, &v6, shown, sizeof shown));
    } else {
        snprintf(text, size, "%s", key->family == AF_UNIX ? "a Unix socket" : "an unknown address");
    }
}
