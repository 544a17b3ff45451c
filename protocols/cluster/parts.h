/* Grains over nodes (domus/cluster.h), as the files that make them see each other.
 *
 * Grains fall into parts (domus/remote.h). Each part belongs to the node whose name stands in its
 * entry `g.PART` of the bucket of names, as long as that node has its lease. The *warden*, an actor
 * of each node, watches these entries, and takes and gives parts (warden.c): it writes who has them
 * into the table that the gateways read. Each gateway has a *route* for each part (routes.c): where
 * messages to its grains go now. */
#ifndef DOMI_CLUSTER_PARTS_H
#define DOMI_CLUSTER_PARTS_H

#include "protocols/cluster/inside.h"

/* --- the table that warden and gateways share --------------------------------------------------
 */

/* The holder of a part. Under the cluster's lock. */
typedef struct domi_part {
    uint64_t holder; /* id of a node; 0: nobody */
    uint64_t wanted; /* id of the node that is to have it; 0: none */
    bool is_open;    /* the holder is this node, and takes messages for it */
    bool is_doubted; /* messages wait for it, or came back: the warden is to look at its entry */
    uint32_t users;  /* gateways that let messages for it go to the grains here */
} domi_part;

struct domi_parts {
    domi_part parts[DOMUS_REMOTE_PARTS];
    bool has_doubts;               /* one of these is doubted; under the lock */
    _Atomic int error;             /* why no node can have a part: -EOPNOTSUPP; 0: it can */
    domus_address warden;          /* constant once the cluster is open */
    domus_address leases, entries; /* the buckets; nobody: they are not open yet */
    /* When the lease of this node ends, on the clock of domus_now_ns(); 0: it has none. */
    _Atomic uint64_t lease_until_ns;
    /* This node has left, or was replaced by another one of its name: its lease is to run out. */
    _Atomic bool ends_lease;
    _Atomic uint32_t losses;                   /* how often the lease was over */
    _Atomic uint64_t held, taken, given, lost; /* parts; what domus_cluster_grain_counts says */
    _Atomic uint64_t waiting, returned;        /* messages */
};

/* How often the lease of this node was over. */
static inline uint32_t domi_losses(const domus_cluster *cluster)
{
    return atomic_load_explicit(&cluster->parts->losses, memory_order_relaxed);
}

/* True if this node has its lease now. */
static inline bool domi_has_lease(const domus_cluster *cluster, const domus_stack *stack)
{
    return atomic_load_explicit(&cluster->parts->lease_until_ns, memory_order_relaxed) >
           domus_now_ns(stack);
}

/* Times down_after_ns that a node may be without its lease, and still is to have parts. All nodes
 * lose their leases while the store has no leader, some seconds with nats-server 2.9: the first one
 * that has it again must not take the parts of all. */
#define DOMI_LEASELESS_MAX 5u

/* True if this node is to have parts. One that has been without its lease for too long, so that it
 * cannot take any, leaves them to others. */
static inline bool domi_hosts_grains(const domus_cluster *cluster, const domus_stack *stack)
{
    uint64_t until_ns = atomic_load_explicit(&cluster->parts->lease_until_ns, memory_order_relaxed);

    return cluster->options.grains != NULL && !cluster->options.hosts_no_grains && until_ns != 0 &&
           domus_now_ns(stack) < until_ns + DOMI_LEASELESS_MAX * cluster->options.down_after_ns;
}

/* Let the warden look who has a part: what this node knows may be out of date. */
static inline void domi_part_doubt(domus_cluster *cluster, uint32_t index)
{
    domi_lock_take(&cluster->lock);
    cluster->parts->parts[index].is_doubted = cluster->parts->has_doubts = true;
    domi_lock_give(&cluster->lock);
}

/* --- routes of a gateway -----------------------------------------------------------------------
 */

typedef enum domi_route_state {
    DOMI_ROUTE_WAITS,  /* nobody is known to have the part */
    DOMI_ROUTE_HERE,   /* messages are passed on to the grains of this system */
    DOMI_ROUTE_THERE,  /* they are sent to `node` */
    DOMI_ROUTE_FENCES, /* `node` has or had the part, and is to say that it has returned all that it
                          did not take */
} domi_route_state;

/* A message that waits, as it travels. */
typedef struct domi_held {
    struct domi_held *next;
    uint64_t since_ns;
    uint64_t deadline_ns; /* of an ask; 0: none */
    domus_kept kept;      /* of an ask */
    bool is_ask;
    domus_remote_name from; /* of a notice */
    uint32_t size;
    unsigned char bytes[]; /* the grain and the message, as in an envelope */
} domi_held;

typedef struct domi_held_list {
    domi_held *first, *last;
} domi_held_list;

typedef struct domi_route {
    domi_route_state state;
    bool is_opened; /* HERE: actors of this thread put to the grains themselves */
    bool is_sent;   /* THERE: messages were sent since the last fence */
    uint64_t node;
    uint64_t retry_ns;       /* `node` has returned messages, and gets none before then */
    domi_held_list returned; /* what `node` has returned */
    domi_held_list waiting;  /* what has come since */
} domi_route;

/* --- routes.c ----------------------------------------------------------------------------------
 */

/* A message to a grain has come to the gateway. */
int domi_route_take(domi_cluster_gateway *gateway, const domus_remote_message *message,
                    const void *payload);

/* Act on what the table of parts says now. */
void domi_routes_follow(domi_cluster_gateway *gateway);

/* Let actors of this thread put to grains here themselves, where nothing waits. Returns whether
 * some part is still to be opened. */
bool domi_routes_open(domi_cluster_gateway *gateway);

/* Nothing that was sent to a peer comes back any more. */
void domi_routes_lose(domi_cluster_gateway *gateway, const domi_peer *peer);

void domi_routes_free(domi_cluster_gateway *gateway);

/* A peer has answered a FENCE, and has returned a message. */
void domi_route_fenced(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t part);
void domi_route_returned(domi_cluster_gateway *gateway, domi_peer *peer,
                         const domi_wire_envelope *envelope);

/* --- held.c ------------------------------------------------------------------------------------
 */

/* Make a message that waits, of its bytes. Returns 0; -ENOBUFS at queued_max bytes; -ENOMEM. */
int domi_held_make(domi_cluster_gateway *gateway, const unsigned char *bytes, uint32_t size,
                   domi_held **ret_held);
void domi_held_free(domi_cluster_gateway *gateway, domi_held *held);

/* The message will not get there: its ask fails, and it is counted. Frees it. */
void domi_held_fail(domi_cluster_gateway *gateway, domi_held *held, int error);

void domi_held_append(domi_held_list *list, domi_held *held);

/* Put one in front again that was taken from a route. Messages that come back later were sent
 * before it, and go before it. */
void domi_held_put_back(domi_route *route, domi_held *held);

/* Take the first one of a route: behind the messages that were returned come those that wait. NULL:
 * there is none. */
domi_held *domi_held_take(domi_route *route);

/* Let messages fail that have waited for too long. */
void domi_routes_sweep(domi_cluster_gateway *gateway);

/* An ask that waits for a part was cancelled. Returns whether there was one. */
bool domi_routes_cancel(domi_cluster_gateway *gateway, domus_kept kept);

/* --- grains.c ----------------------------------------------------------------------------------
 */

/* The grain that an envelope is for. */
typedef struct domi_grain_name {
    domus_grains grains;
    char key[DOMUS_GRAIN_KEY_MAX + 1];
    uint32_t part;
    uint32_t bytes; /* before the message */
} domi_grain_name;

/* Read it from the rest of an envelope. Returns 0; -EBADMSG; -ENOENT when the kind is not spread
 * here. */
int domi_grain_name_read(const domi_cluster_gateway *gateway, const unsigned char *bytes,
                         uint32_t size, domi_grain_name *ret_name);

#define DOMI_GRAIN_NAME_MAX (2u + 2u * DOMUS_GRAIN_KEY_MAX) /* bytes */

/* Write it. Returns its bytes. */
uint32_t domi_grain_name_write(const domus_remote_grain *grain, unsigned char *bytes);

/* True if a message of a gateway of the peer may go to the grain; else it was returned. */
bool domi_grain_is_taken(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                         uint32_t part, const domi_wire_envelope *envelope);

/* The peer has sent all that it had sent for a part: it may send again. */
void domi_grain_fence(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                      uint64_t part);

/* The link to a gateway of the peer begins anew. */
void domi_grain_forget_returns(domi_peer *peer, uint16_t from_gateway);

/* --- warden.c ----------------------------------------------------------------------------------
 */

/* Its state begins as domi_warden_prepare() makes it from zeros. */
extern const domus_behaviour domi_warden_behaviour;
void domi_warden_prepare(void *state, domus_cluster *cluster);
extern const domus_type domi_give_all_type; /* an ask: give all parts to other nodes */

#endif
