/* Grains over nodes (domus/cluster.h): the data and functions that the files for them share.
 *
 * Grains are divided into parts (domus/remote.h). Each part belongs to the node that its entry
 * `g.PART` in the bucket of names contains, as long as that node has its lease. The *warden*, an
 * actor of each node, watches these entries, and takes and gives parts (warden.c): it writes their
 * holders into the table that the gateways read. Each gateway has a *route* for each part
 * (routes.c), which tells where messages to its grains go now. */
#ifndef DOMI_CLUSTER_PARTS_H
#define DOMI_CLUSTER_PARTS_H

#include "protocols/cluster/inside.h"

/* --- the table that the warden and the gateways share ----------------------------------------- */

/* The holder of a part of the grains. Under the cluster's lock. */
typedef struct domi_part {
    uint64_t holder; /* id of the node that has the part; 0: none */
    uint64_t wanted; /* id of the node that should have the part; 0: none */
    bool is_open;    /* the holder is this node, and accepts messages for the part */
    /* messages wait for the part, or were returned, so the warden must check its entry */
    bool is_doubted;
    uint32_t users; /* gateways that pass messages for the part to grains here */
} domi_part;

struct domi_parts {
    domi_part parts[DOMUS_REMOTE_PARTS];
    bool has_doubts; /* `is_doubted` of a part is set; under the lock */
    /* reason why no node can have parts: -EOPNOTSUPP; 0: there is none */
    _Atomic int error;
    domus_address warden;          /* address of the warden, constant once the cluster is open */
    domus_address leases, entries; /* addresses of the buckets; nobody: they are not open yet */
    /* Time at which the lease of this node ends, as domus_now_ns() tells time; 0: it has none. */
    _Atomic uint64_t lease_until_ns;
    /* True once this node has left, or was replaced by another one with its name: its lease must
     * not be renewed. */
    _Atomic bool ends_lease;
    _Atomic uint32_t losses; /* how often the lease of this node has ended */
    /* counts of parts, as domus_cluster_count_grains() returns them */
    _Atomic uint64_t held, taken, given, lost;
    _Atomic uint64_t waiting, returned; /* counts of messages */
};

/* Returns how often the lease of this node has ended. */
static inline uint32_t domi_losses(const domus_cluster *cluster)
{
    return atomic_load_explicit(&cluster->parts->losses, memory_order_relaxed);
}

/* Returns whether this node has its lease now. */
static inline bool domi_has_lease(const domus_cluster *cluster, const domus_stack *stack)
{
    return atomic_load_explicit(&cluster->parts->lease_until_ns, memory_order_relaxed) >
           domus_now_ns(stack);
}

/* Multiple of down_after_ns for which a node may be without its lease and still should have parts.
 * All nodes lose their leases while the store has no leader, which takes some seconds with
 * nats-server 2.9: the first node that gets its lease back must not take the parts of all. */
#define DOMI_LEASELESS_MAX 5u

/* Returns whether this node should have parts. A node that was without its lease for too long, so
 * that it cannot take parts, leaves them to others. */
static inline bool domi_hosts_grains(const domus_cluster *cluster, const domus_stack *stack)
{
    uint64_t until_ns = atomic_load_explicit(&cluster->parts->lease_until_ns, memory_order_relaxed);

    return cluster->options.grains != NULL && !cluster->options.hosts_no_grains && until_ns != 0 &&
           domus_now_ns(stack) < until_ns + DOMI_LEASELESS_MAX * cluster->options.down_after_ns;
}

/* Tell the warden to check who has a part, because what this node knows may be out of date. */
static inline void domi_part_doubt(domus_cluster *cluster, uint32_t index)
{
    domi_lock_take(&cluster->lock);
    cluster->parts->parts[index].is_doubted = cluster->parts->has_doubts = true;
    domi_lock_give(&cluster->lock);
}

/* --- routes of a gateway ---------------------------------------------------------------------- */

typedef enum domi_route_state {
    DOMI_ROUTE_WAITS, /* no node is known to have the part, so messages wait */
    DOMI_ROUTE_HERE,  /* the part is here: messages are passed to the grains of this system */
    DOMI_ROUTE_THERE, /* messages are sent to `node`, which has the part */
    /* `node` has or had the part, and must confirm that it has returned all messages that it did
     * not accept */
    DOMI_ROUTE_FENCES,
} domi_route_state;

/* A message that waits, in the form in which it travels. */
typedef struct domi_held {
    struct domi_held *next;
    uint64_t since_ns;
    uint64_t deadline_ns; /* deadline of an ask; 0: none */
    domus_kept kept;      /* the ask, kept */
    bool is_ask;
    domus_remote_name from; /* sender of a notice */
    uint32_t size;
    unsigned char bytes[]; /* the grain and the message, as in an envelope */
} domi_held;

typedef struct domi_held_list {
    domi_held *first, *last;
} domi_held_list;

typedef struct domi_route {
    domi_route_state state;
    bool is_opened; /* HERE: actors of this thread put messages to the grains themselves */
    bool is_sent;   /* THERE: messages were sent since the last fence */
    uint64_t node;
    uint64_t retry_ns;       /* `node` has returned messages, and gets no more before this time */
    domi_held_list returned; /* messages that `node` has returned */
    domi_held_list waiting;  /* messages that have come since */
} domi_route;

/* --- routes.c --------------------------------------------------------------------------------- */

/* Handle a message to a grain, which has come to the gateway. */
int domi_route_take(domi_cluster_gateway *gateway, const domus_remote_message *message,
                    const void *payload);

/* Change the routes as the table of parts says now. */
void domi_routes_follow(domi_cluster_gateway *gateway);

/* Let actors of this thread put messages to grains here themselves, for parts for which no message
 * waits. Returns whether some part is still to be opened. */
bool domi_routes_open(domi_cluster_gateway *gateway);

/* Handle that a peer is lost: what was sent to it is not returned any more. */
void domi_routes_lose(domi_cluster_gateway *gateway, const domi_peer *peer);

void domi_routes_free(domi_cluster_gateway *gateway);

/* Handle the answer of a peer to a FENCE, and a message that a peer has returned. */
void domi_route_fenced(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t part);
void domi_route_returned(domi_cluster_gateway *gateway, domi_peer *peer,
                         const domi_wire_envelope *envelope);

/* --- held.c ----------------------------------------------------------------------------------- */

/* Make a message that waits, from its bytes. Returns 0; -ENOBUFS if it exceeds queued_max bytes;
 * -ENOMEM. */
int domi_held_make(domi_cluster_gateway *gateway, const unsigned char *bytes, uint32_t size,
                   domi_held **ret_held);
void domi_held_free(domi_cluster_gateway *gateway, domi_held *held);

/* Fail a message that cannot be delivered: its ask fails, and it is counted. Frees the message. */
void domi_held_fail(domi_cluster_gateway *gateway, domi_held *held, int error);

void domi_held_append(domi_held_list *list, domi_held *held);

/* Put back a message, as the first one, that was taken from a route. Messages that are returned
 * later were sent before it, and go before it. */
void domi_held_put_back(domi_route *route, domi_held *held);

/* Remove and return the first message of a route: first those that were returned, then those that
 * wait. NULL: there is none. */
domi_held *domi_held_take(domi_route *route);

/* Fail the messages that have waited for too long. */
void domi_routes_sweep(domi_cluster_gateway *gateway);

/* Cancel an ask that waits for a part. Returns whether there was one. */
bool domi_routes_cancel(domi_cluster_gateway *gateway, domus_kept kept);

/* --- grains.c --------------------------------------------------------------------------------- */

/* The grain to which an envelope is addressed. */
typedef struct domi_grain_name {
    domus_grains grains;
    char key[DOMUS_GRAIN_KEY_MAX + 1];
    uint32_t part;
    uint32_t bytes; /* bytes of the grain's name before the message */
} domi_grain_name;

/* Read the grain's name from the rest of an envelope. Returns 0; -EBADMSG; -ENOENT when the kind is
 * not spread here. */
int domi_grain_name_read(const domi_cluster_gateway *gateway, const unsigned char *bytes,
                         uint32_t size, domi_grain_name *ret_name);

#define DOMI_GRAIN_NAME_MAX (2u + 2u * DOMUS_GRAIN_KEY_MAX) /* bytes of a grain's name, at most */

/* Write a grain's name. Returns its bytes. */
uint32_t domi_grain_name_write(const domus_remote_grain *grain, unsigned char *bytes);

/* Returns whether a message of a peer's gateway may go to the grain here; otherwise it was
 * returned. */
bool domi_grain_is_taken(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                         uint32_t part, const domi_wire_envelope *envelope);

/* Handle a fence: the peer has sent all that it had for a part before, so later messages are
 * accepted again. */
void domi_grain_fence(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                      uint64_t part);

/* Forget which parts are being returned to a peer's gateway, because the link to it begins anew. */
void domi_grain_forget_returns(domi_peer *peer, uint16_t from_gateway);

/* --- warden.c --------------------------------------------------------------------------------- */

/* The behaviour of the warden. Its state begins as domi_warden_prepare() makes it from zeros. */
extern const domus_behaviour domi_warden_behaviour;
void domi_warden_prepare(void *state, domus_cluster *cluster);
/* an ask to the warden: give all parts to other nodes */
extern const domus_type domi_give_all_type;

#endif
