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

/* A part of the grains, in the table that the warden writes and the gateways read. Under the
 * cluster's lock. */
typedef struct domi_part {
    uint64_t holder; /* id of the node that has the part; 0: no node has it */
    uint64_t wanted; /* id of the node that should have the part; 0: no node should */
    bool is_open;    /* the holder of the part is this node, and accepts messages for it */
    /* a gateway doubts the holder of the part, because messages wait for it or were returned: the
     * warden must read the part's entry in the store */
    bool is_doubted;
    uint32_t users; /* number of gateways here that pass the part's messages to grains here */
} domi_part;

struct domi_parts {
    domi_part parts[DOMUS_REMOTE_PARTS];
    bool has_doubts; /* `is_doubted` of some part is set; under the cluster's lock */
    /* the errno because of which no node can have parts: -EOPNOTSUPP; 0: none */
    _Atomic int error;
    domus_address warden; /* address of this node's warden, constant once the cluster is open */
    /* addresses of the two buckets of the store; nobody: they are not open yet */
    domus_address leases, entries;
    /* Time at which this node's lease ends, or its last one has ended, by the clock of
     * domus_now_ns(); 0: the node had none yet. */
    _Atomic uint64_t lease_until_ns;
    /* True once this node has left the cluster, or was replaced by another node with its name: its
     * lease must not be renewed any more. */
    _Atomic bool ends_lease;
    _Atomic uint32_t losses; /* how often the lease of this node has ended */
    /* counts of parts that this node holds, and has taken, given and lost, for
     * domus_cluster_count_grains() */
    _Atomic uint64_t held, taken, given, lost;
    /* counts of messages to grains that wait for a part, or were returned */
    _Atomic uint64_t waiting, returned;
};

/* Returns how often the lease of this node in the store has ended. */
static inline uint32_t domi_cluster_count_lost_leases(const domus_cluster *cluster)
{
    return atomic_load_explicit(&cluster->parts->losses, memory_order_relaxed);
}

/* Returns whether this node holds its lease in the store now. */
static inline bool domi_cluster_holds_lease(const domus_cluster *cluster, const domus_stack *stack)
{
    return atomic_load_explicit(&cluster->parts->lease_until_ns, memory_order_relaxed) >
           domus_now_ns(stack);
}

/* Multiple of down_after_ns for which a node may be without its lease and still should have parts.
 * All nodes lose their leases while the store has no leader, which takes some seconds with
 * nats-server 2.9: the first node that gets its lease back must not take the parts of all. */
#define DOMI_LEASELESS_MAX 5u

/* Returns whether this node should have parts of the grains. A node that was without its lease for
 * too long cannot take parts, so it leaves them to other nodes. */
static inline bool domi_cluster_should_have_parts(const domus_cluster *cluster,
                                                  const domus_stack *stack)
{
    uint64_t until_ns = atomic_load_explicit(&cluster->parts->lease_until_ns, memory_order_relaxed);

    return cluster->options.grains != NULL && !cluster->options.hosts_no_grains && until_ns != 0 &&
           domus_now_ns(stack) < until_ns + DOMI_LEASELESS_MAX * cluster->options.down_after_ns;
}

/* Tell the warden to read in the store who has a part, because what this node knows of it may be
 * out of date. */
static inline void domi_part_let_warden_check_holder(domus_cluster *cluster, uint32_t index)
{
    domi_lock_take(&cluster->lock);
    cluster->parts->parts[index].is_doubted = cluster->parts->has_doubts = true;
    domi_lock_release(&cluster->lock);
}

/* --- routes of a gateway ---------------------------------------------------------------------- */

typedef enum domi_route_state {
    DOMI_ROUTE_WAITS, /* no node is known to have the part, so messages to its grains wait */
    DOMI_ROUTE_HERE,  /* this node has the part: messages are passed to grains here */
    /* another node has the part: messages are sent to that node, `node` of the route */
    DOMI_ROUTE_THERE,
    /* `node` has or had the part, and must answer a fence, which says that it has returned all
     * messages that it did not accept */
    DOMI_ROUTE_FENCES,
} domi_route_state;

/* A message to a grain that waits in a gateway until a node has the grain's part, in the form in
 * which it travels. */
typedef struct domi_held {
    struct domi_held *next;
    uint64_t since_ns;
    uint64_t deadline_ns; /* deadline of the waiting message, if it is an ask; 0: none */
    domus_kept kept;      /* the ask that waits, kept until its answer comes */
    bool is_ask;
    domus_remote_name from; /* name of the sender, if the waiting message is a notice */
    uint32_t size;
    /* bytes of the grain's name and of the message, as they travel in an envelope */
    unsigned char bytes[];
} domi_held;

typedef struct domi_held_list {
    domi_held *first, *last;
} domi_held_list;

typedef struct domi_route {
    domi_route_state state;
    /* while the state is HERE: actors of this thread put messages to the grains themselves */
    bool is_opened;
    bool is_sent; /* while the state is THERE: messages were sent to `node` since the last fence */
    uint64_t node;
    /* time before which `node` gets no more messages, because it has returned some */
    uint64_t retry_ns;
    /* messages that `node` has returned; they wait before those in `waiting` */
    domi_held_list returned;
    domi_held_list waiting; /* messages that have come while the route could not send them */
} domi_route;

/* --- routes.c --------------------------------------------------------------------------------- */

/* Handle a message of an actor here to a grain, which has come to the gateway. */
int domi_route_send_or_hold_grain_message(domi_cluster_gateway *gateway,
                                          const domus_remote_message *message, const void *payload);

/* Bring the gateway's routes in line with the table of parts, which the warden has changed. */
void domi_routes_follow_table_of_parts(domi_cluster_gateway *gateway);

/* Let actors of this thread put messages to grains of this node by themselves, for each part for
 * which no message waits in the gateway. Returns whether there is a part for which they may not
 * yet. */
bool domi_routes_let_local_actors_put_directly(domi_cluster_gateway *gateway);

/* Handle that the link to a peer is lost: messages that were sent to the peer will not be returned
 * any more. */
void domi_routes_leave_lost_peer(domi_cluster_gateway *gateway, const domi_peer *peer);

void domi_routes_free(domi_cluster_gateway *gateway);

/* Handle a peer's answer to a FENCE; and handle a message that a peer has returned. */
void domi_route_end_fence_of_part(domi_cluster_gateway *gateway, const domi_peer *peer,
                                  uint64_t part);
void domi_route_hold_returned_message(domi_cluster_gateway *gateway, domi_peer *peer,
                                      const domi_wire_envelope *envelope);

/* --- held.c ----------------------------------------------------------------------------------- */

/* Make a waiting message from the bytes of a message to a grain. Returns 0; -ENOBUFS if the gateway
 * would hold more than queued_max bytes; -ENOMEM. */
int domi_held_make_message(domi_cluster_gateway *gateway, const unsigned char *bytes, uint32_t size,
                           domi_held **ret_held);
void domi_held_free_message(domi_cluster_gateway *gateway, domi_held *held);

/* Fail a waiting message that cannot be delivered: its ask fails, or its notice is counted as lost.
 * Frees the message. */
void domi_held_fail_message(domi_cluster_gateway *gateway, domi_held *held, int error);

void domi_held_append_message(domi_held_list *list, domi_held *held);

/* Put a message that was taken from a route back to the route's front. Messages that are returned
 * later go before it, because they were sent before it. */
void domi_held_put_message_back_first(domi_route *route, domi_held *held);

/* Remove and return the first waiting message of a route: first those that were returned, then
 * those that have come since. Returns NULL if there is none. */
domi_held *domi_held_take_first_message(domi_route *route);

/* Fail the messages to grains that have waited in the gateway for longer than down_after_ns. */
void domi_routes_fail_old_messages(domi_cluster_gateway *gateway);

/* Cancel an ask that waits in the gateway until a node has its grain's part. Returns whether there
 * was one. */
bool domi_routes_cancel_waiting_ask(domi_cluster_gateway *gateway, domus_kept kept);

/* --- grains.c --------------------------------------------------------------------------------- */

/* The grain to which an envelope is addressed, read from the bytes behind the envelope. */
typedef struct domi_grain_name {
    domus_grains grains;
    char key[DOMUS_GRAIN_KEY_MAX + 1];
    uint32_t part;
    uint32_t bytes; /* bytes that the grain's kind and key take before the message */
} domi_grain_name;

/* Read the grain's kind and key, with which the rest of an envelope begins. Returns 0; -EBADMSG;
 * -ENOENT when the kind is not spread over the cluster here. */
int domi_grain_name_read(const domi_cluster_gateway *gateway, const unsigned char *bytes,
                         uint32_t size, domi_grain_name *ret_name);

/* bytes of a grain's kind and key with their lengths, at most */
#define DOMI_GRAIN_NAME_MAX (2u + 2u * DOMUS_GRAIN_KEY_MAX)

/* Write the kind and key of a grain before a message. Returns how many bytes they take. */
uint32_t domi_grain_name_write(const domus_remote_grain *grain, unsigned char *bytes);

/* Returns whether a message of a peer's gateway may go to the grain on this node; if not, the
 * message was returned to the peer. */
bool domi_grain_accept_or_return_message(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t from_gateway, uint32_t part,
                                         const domi_wire_envelope *envelope);

/* Handle a fence: the peer has sent all its messages for a part that it had before, so this node
 * accepts messages for the part again, and answers. */
void domi_grain_confirm_fence_of_part(domi_cluster_gateway *gateway, domi_peer *peer,
                                      uint16_t from_gateway, uint64_t part);

/* Forget for which parts this node returns the messages of a peer's gateway, because the link to
 * that gateway begins anew. */
void domi_grain_forget_returned_parts(domi_peer *peer, uint16_t from_gateway);

/* --- warden.c --------------------------------------------------------------------------------- */

/* The behaviour of the warden, the actor that takes and gives parts (wards.h). Its state begins as
 * domi_warden_set_cluster_of_state() makes it from zeros. */
extern const domus_behaviour domi_warden_behaviour;
void domi_warden_set_cluster_of_state(void *state, domus_cluster *cluster);
/* an ask to the warden of a leaving node: give all parts to other nodes */
extern const domus_type domi_give_all_type;

#endif
