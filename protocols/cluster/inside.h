/* The inside of a cluster: the data that all gateways of a system share, and the data of one
 * gateway.
 *
 * Gateway 0 receives the heartbeats of all nodes and keeps the table of nodes, under a lock that is
 * held only briefly. Each gateway has its own links to the gateways of other nodes, and is told of
 * changes by a notice; it also reads the table with each heartbeat, so a notice that was refused
 * only delays it. */
#ifndef DOMI_CLUSTER_INSIDE_H
#define DOMI_CLUSTER_INSIDE_H

#include "protocols/cluster/link.h"
#include "protocols/cluster/lock.h"
#include "protocols/cluster/said.h"
#include "protocols/cluster/wide.h"

#include <domus/remote.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#include <stdatomic.h>

#define DOMI_GATEWAYS_MAX 1024u /* gateways of one node, one on each of its threads */

/* --- data that gateways share ----------------------------------------------------------------- */

/* A node in the table. `id` is constant; `name` and `gateways` are constant once the node was heard
 * (before, `gateways` is 0); the members from there up to `holders` are under the lock. */
typedef struct domi_node_record {
    uint64_t id;
    uint64_t incarnation;
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    uint16_t gateways;
    uint16_t slot; /* index of this record in the table */

    bool hosts_grains; /* the node has grains; constant once the node was heard */
    domus_node_state state;
    bool is_leaving;
    bool is_full;                            /* more than queued_max bytes are on the way */
    uint64_t since_ns;                       /* time at which the current state began */
    uint64_t heard_ns;                       /* time of the node's last heartbeat */
    uint64_t hears_ns;                       /* time of its last heartbeat to name this node */
    uint32_t holders;                        /* gateways that still hold something of this node */
    uint64_t let_go[DOMI_GATEWAYS_MAX / 64]; /* a bit for each gateway that has released the node */

    domus_node_state said; /* the last state that the log was told; HEARD: none */
    uint64_t said_ns;      /* time at which the state in `said` began */

    /* Members that any gateway uses. */
    _Atomic uint32_t downs; /* how often the node went down or ended */
    _Atomic uint64_t queued_bytes, sent, received, refused, lost, resent, rtt_ns;
} domi_node_record;

typedef struct domi_parts domi_parts;

struct domus_cluster {
    struct domus_system *system;
    domus_cluster_options options; /* the options; their texts are copies owned by the cluster */
    char texts[6][256];            /* the copies of those texts, except the servers and the jwt */
    char *servers, *jwt;
    domus_picklers *picklers;
    uint64_t id, incarnation;
    uint32_t gateways;
    _Atomic int failed;     /* the errno with which a gateway could not begin; 0: none */
    _Atomic uint32_t ended; /* gateways that could not begin, and do not use the cluster any more */
    uint32_t missed;        /* gateways of `ended` that the opener has counted */
    /* True once the addresses below are set: the opener sets it last, and gateways check it. */
    _Atomic bool is_open;
    domus_address *addresses; /* addresses of the gateways */
    domus_address registrar;
    domi_parts *parts;   /* the parts of grains (parts.h, which tells who uses each member) */
    domus_grains *kinds; /* the kinds of grains that are spread over the cluster */
    uint32_t kinds_count;
    domi_wide wide; /* the groups over the cluster */

    domi_lock lock; /* guards the members below, and those of records that say so */
    domi_node_record *nodes[DOMUS_CLUSTER_NODES_MAX]; /* the table of nodes; NULL: a free place */
    uint32_t nodes_used;                              /* entries that were ever used */
    bool is_connected;                                /* gateway 0 has a server */
    domus_address client;     /* address of gateway 0's client; nobody: it has none yet */
    uint64_t connected_ns;    /* time at which `is_connected` last changed */
    bool is_rival, has_rival; /* another node has the same name, and is newer, or is older */
    domi_said said;           /* the last news that the log was told; only for gateway 0 */

    bool is_shown; /* the system shows tables of the cluster, so the cluster must stay */

    domi_lock names_lock;      /* guards the next three members (listed.c) */
    struct domi_name **listed; /* the registered names of actors here */
    uint32_t listed_count, listed_room;
    _Atomic uint64_t sent, received, refused, lost, resent, dropped; /* counts over all nodes */
    _Atomic uint64_t wrong; /* messages from servers that were invalid, or for no actor here */
};

/* --- one gateway ------------------------------------------------------------------------------ */

typedef struct domi_peer domi_peer;
typedef struct domi_cluster_gateway domi_cluster_gateway;

/* Another node, from the view of one gateway. */
struct domi_peer {
    domi_node_record *record;
    uint64_t id;
    uint32_t downs;       /* `downs` of the record, up to which this gateway has acted */
    uint32_t asks;        /* asks to the node that are under way */
    uint32_t watched;     /* actors of the node that are watched here */
    uint32_t idle_cursor; /* cursor of domus_remote_idle() */
    /* Numbers of changes of groups; only for gateway 0 (interest.c). */
    uint64_t told;        /* last change of this node that was sent there since the node was down */
    uint64_t held;        /* last change that the node has confirmed since then */
    uint64_t held_before; /* `held` at the last heartbeat */
    uint64_t holds;       /* last change of the other node that has come here */
    domi_link **links;    /* links to the gateways of the node, made when they are first used */
    uint64_t *counted;    /* queued_bytes of each link, as counted in the record */
    /* For each gateway of the node, bits of the parts whose messages are returned to it until it
     * sends a fence. */
    unsigned char (*returns)[DOMUS_REMOTE_PARTS / 8];
    domi_peer *next_in_bucket, *next; /* the next peer in the bucket, and of all peers */
};

/* An ask of an actor here to another node. */
typedef struct domi_ask {
    domus_kept kept;
    domi_peer *peer;      /* the peer that was asked; NULL: the entry is free */
    uint64_t deadline_ns; /* deadline of the ask; 0: none */
    uint32_t generation;
    uint32_t next_free;
    bool spawns;    /* the answer is the address of a spawned actor */
    bool for_grain; /* the ask may be returned by the peer (routes.c) */
} domi_ask;

/* An ask of another node to an actor here. */
typedef struct domi_served {
    domi_peer *peer;  /* the peer that has asked; NULL: nobody waits for the answer any more */
    uint64_t id;      /* id of the ask at the other node */
    uint16_t gateway; /* gateway of the other node that has asked */
    bool is_used;
    uint32_t generation;
    uint32_t next; /* the next free entry, or the next one in the bucket of its id */
    domus_remote_asked asked;
} domi_served;

#define DOMI_TOLD_MAX      16u /* types that could not travel and were logged, at most */
#define DOMI_NO_INDEX      UINT32_MAX
#define DOMI_PEERS_BUCKETS 256u

/* A remote actor that is watched here, or an actor here that another node watches. */
typedef struct domi_watched {
    domus_remote_name name; /* name of the remote actor; or of the local one, with the node HERE */
    domus_address address;  /* address of the local actor */
    domi_peer *peer;        /* the peer on which the actor lives, or which watches the actor */
    uint16_t gateway;       /* gateway of the node that watches */
    bool room;
    domus_watch watch; /* the watch on the local actor: one, however many nodes watch it */
    struct domi_watched *next;
} domi_watched;

#define DOMI_WATCHED_BUCKETS 4096u

/* ns that the conversation with all asks of a gateway sleeps; the sleep only keeps it alive. */
#define DOMI_LONG_NS (UINT64_C(3600) * 1000000000)

struct domi_cluster_gateway {
    domus_cluster *cluster;
    uint32_t index;
    domus_address client; /* the client of NATS; nobody: this machine is alone */
    bool is_connected;
    bool is_due;              /* domus_later() was called for a flush */
    bool has_torn;            /* a link has lost messages for want of memory */
    bool ticks;               /* the timer of domi_tick_type runs */
    bool has_unconfirmed;     /* a walk over the links has found unconfirmed batches */
    bool is_leaving;          /* this node gives its parts of grains to others, and leaves then */
    bool has_left;            /* the other nodes were told that this one has ended */
    uint64_t beat_ns;         /* time of the last heartbeat; only for gateway 0 */
    uint32_t beats;           /* heartbeats since the gateway began */
    uint32_t wide_cursor;     /* group that is checked next; only for gateway 0 */
    domus_conversation asker; /* the conversation that makes the asks of remote actors */
    domi_peer *peers_by_id[DOMI_PEERS_BUCKETS], *peers;
    domi_ask *asks;
    uint32_t asks_room, asks_free, asks_used;
    domi_served *served;
    uint32_t served_room, served_free, served_used;
    uint32_t *served_buckets; /* `served_room` buckets of `served`, by id */
    bool has_rooms;           /* an actor here waits for room at a remote actor */
    domi_watched *watched[DOMI_WATCHED_BUCKETS];  /* remote actors watched here, by name */
    domi_watched *watching[DOMI_WATCHED_BUCKETS]; /* local actors watched elsewhere */
    struct domi_route *routes; /* routes to grains, by part; NULL: no kind is spread */
    uint32_t unopened;         /* routes to this node that its thread has not opened yet */
    uint64_t waiting_bytes;    /* bytes of messages that wait for parts */
    unsigned char *payload;    /* memory for a payload that is being read */
    unsigned char *message;    /* memory to write a message, and a grain's or group's name */
    domus_pickle_context pickling;
    domus_stack *stack;                    /* stack of the current turn, for picklers */
    const domus_type *told[DOMI_TOLD_MAX]; /* types that could not travel, and were logged */
};

/* Add to a count of a node, and to the same count of the whole cluster. */
#define DOMI_COUNT(gateway, record, count, by)                                                     \
    (atomic_fetch_add_explicit(&(record)->count, (by), memory_order_relaxed),                      \
     (void)atomic_fetch_add_explicit(&(gateway)->cluster->count, (by), memory_order_relaxed))

/* Count bytes that were invalid, or for no actor here. */
static inline void domi_count_wrong(domi_cluster_gateway *gateway)
{
    atomic_fetch_add_explicit(&gateway->cluster->wrong, 1, memory_order_relaxed);
}

/* Returns whether this machine is alone, because no server was named. */
static inline bool domi_is_alone(const domus_cluster *cluster)
{
    return cluster->options.servers == NULL && cluster->options.open_client == NULL;
}

/* Returns whether the addresses of all gateways are set. */
static inline bool domi_cluster_is_open(const domus_cluster *cluster)
{
    /* acquire: pairs with the store in domus_cluster_open() */
    return atomic_load_explicit((_Atomic bool *)(uintptr_t)&cluster->is_open, memory_order_acquire);
}

/* --- nodes.c ---------------------------------------------------------------------------------- */

/* Find a node in the table; NULL if it is not there. The caller holds the lock. */
domi_node_record *domi_node_find(domus_cluster *cluster, uint64_t id);

/* The changes that a heartbeat, or a check for silent nodes, has made. */
typedef struct domi_nodes_news {
    bool has_changed; /* gateways must be told of a change */
    bool is_new;      /* a node was heard for the first time, so it should hear this one soon */
} domi_nodes_news;

/* Handle a heartbeat. Gateway 0. */
domi_nodes_news domi_nodes_hear(domi_cluster_gateway *gateway, const domi_heartbeat *beat);

/* Tell the runtime that a node exists, because an address of one of its actors has come. Returns 0;
 * -ESTALE when the node has ended; -ENOSPC. Any gateway. */
int domi_nodes_mention(domi_cluster_gateway *gateway, uint64_t id);

/* Record that a batch has come from a node. Any gateway. */
void domi_nodes_hear_batch(domi_cluster_gateway *gateway, domi_node_record *record);

/* Find nodes that are silent for too long, and remove ended ones without holders. Gateway 0. */
domi_nodes_news domi_nodes_look(domi_cluster_gateway *gateway);

/* Write this node's heartbeat. Returns its bytes. Gateway 0. */
uint32_t domi_nodes_write_beat(domi_cluster_gateway *gateway, uint8_t state, unsigned char *bytes);

/* Tell the runtime the current state of a node. Any gateway. */
void domi_node_apply(domi_cluster_gateway *gateway, domi_node_record *record);

/* Add `delta` to the bytes on the way to a node. Any gateway. */
void domi_node_count_queued(domi_cluster_gateway *gateway, domi_node_record *record, int64_t delta);

/* --- peers.c ---------------------------------------------------------------------------------- */

/* Returns the peer of a node, made at the first call; NULL if the table has no such node. */
domi_peer *domi_peer_of(domi_cluster_gateway *gateway, uint64_t id);
/* Returns the peer of a node; NULL if it was not made. */
domi_peer *domi_peer_find(domi_cluster_gateway *gateway, uint64_t id);

/* Free a peer, and free all peers. */
void domi_peer_forget(domi_cluster_gateway *gateway, domi_peer *peer);
void domi_peers_forget_all(domi_cluster_gateway *gateway);

/* Returns the link to a gateway of the peer; NULL without memory. */
domi_link *domi_peer_link(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index);

/* Return whether the node is up according to the table, and whether the way to it has room. */
bool domi_peer_is_up(domi_cluster_gateway *gateway, const domi_peer *peer);
bool domi_peer_has_room(domi_cluster_gateway *gateway, const domi_peer *peer);

/* --- batches.c -------------------------------------------------------------------------------- */

/* Add an envelope to the link to the peer's gateway `index`, which sends it at the end of this
 * phase. Returns 0; -ENOMEM; -EMSGSIZE; -EHOSTDOWN, -ENOBUFS. */
int domi_send(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index,
              const domi_wire_envelope *envelope);

/* Send as domi_send() does, for what the other side must not miss: without memory the link is given
 * up at the next flush, so that both sides know that everything under way is lost. */
void domi_send_surely(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index,
                      const domi_wire_envelope *envelope);

/* Returns the gateway of a peer to which this gateway sends everything but answers. */
static inline uint16_t domi_gateway_at(const domi_cluster_gateway *gateway, const domi_peer *peer)
{
    return (uint16_t)(gateway->index % peer->record->gateways);
}

/* Publish the batches of all links; resend unconfirmed ones that are due, or `all` of them. */
void domi_flush_all(domi_cluster_gateway *gateway, bool probes);
void domi_resend(domi_cluster_gateway *gateway, bool all);

/* Send confirmations of what has come on links that send nothing else. */
void domi_confirm_all(domi_cluster_gateway *gateway);

/* Returns whether anything is unconfirmed on either side of a link. */
bool domi_has_unconfirmed(domi_cluster_gateway *gateway);

/* Returns whether nothing was confirmed over the link for so long that it counts as broken. */
bool domi_link_is_stuck(const domi_cluster_gateway *gateway, const domi_link *link);

/* Start the timer of domi_tick_type, unless it runs. */
void domi_tick_again(domi_cluster_gateway *gateway);

/* Make sure that domi_flush_all() is called at the end of this phase, and domi_resend() later. */
void domi_flush_soon(domi_cluster_gateway *gateway);

/* Publish bytes on a subject below the cluster's. Consumes the slice. */
void domi_publish(domi_cluster_gateway *gateway, const char *subject, domus_slice bytes);

/* Write an address as a name, with this node's id in place of HERE; nobody becomes a lease of 0. */
void domi_name_of(domi_cluster_gateway *gateway, domus_address address,
                  domus_remote_name *ret_name);

/* Write the name of the current message's sender. An asker without an address, such as a foreign
 * thread, gets the name of this gateway, which receives the answer for it. */
void domi_sender_name(domi_cluster_gateway *gateway, bool is_ask, domus_remote_name *ret_name);

/* Returns 0 and the address for a name that has come from another node; or a negative errno. */
int domi_address_of(domi_cluster_gateway *gateway, const domus_remote_name *name,
                    domus_address *ret_address);

/* Write a message into gateway->message. Returns its bytes, or a negative errno. */
int domi_pickle_message(domi_cluster_gateway *gateway, const domus_type *type, const void *payload);

/* Read a message into gateway->payload. Returns 0; a negative errno. */
int domi_unpickle_message(domi_cluster_gateway *gateway, domus_slice message,
                          const domus_type **ret_type);

/* --- send.c ----------------------------------------------------------------------------------- */

/* Handle a message to a remote actor, which has come to the gateway (domus/remote.h). */
int domi_take_message(domus_stack *stack, void *self, const void *payload);

/* --- follow.c --------------------------------------------------------------------------------- */

/* Act on the current states of all nodes in the table. */
void domi_peers_follow(domi_cluster_gateway *gateway);

/* Break the link with one gateway of a peer: asks of that gateway are cancelled, and its watches
 * end. If it is the one to which this gateway sends its asks and watches, these fail. `is_told`:
 * the other side has broken the link, and otherwise this side does. */
void domi_link_lose(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index, bool is_told);

/* Break the links to all gateways of a peer. */
void domi_peer_lose(domi_cluster_gateway *gateway, domi_peer *peer);

/* --- beats.c ---------------------------------------------------------------------------------- */

/* Send this node's heartbeat, with a state of enum domi_heartbeat_state. Gateway 0. */
void domi_beat(domi_cluster_gateway *gateway, uint8_t state);

/* Send a heartbeat now, unless one was sent just before. Gateway 0. */
void domi_beat_now(domi_cluster_gateway *gateway);

/* Tell all gateways that the table of nodes has changed. Gateway 0. */
void domi_tell_all(domi_cluster_gateway *gateway);

/* --- receive.c -------------------------------------------------------------------------------- */

/* Handle a message of NATS: a heartbeat or a batch. */
void domi_take_batch(domi_cluster_gateway *gateway, domus_slice bytes);

/* --- interest.c ------------------------------------------------------------------------------- */

/* Send changes of groups to nodes that have come up; resend unconfirmed ones. Gateway 0 acts. */
void domi_interest_follow(domi_cluster_gateway *gateway);
void domi_interest_beat(domi_cluster_gateway *gateway);

/* Forget which changes a peer has, because it is down. */
void domi_interest_lose(domi_peer *peer);

/* Handle that a group has got its first member here (domus_remote_joined). */
int domi_take_joined(domus_stack *stack, void *self, const void *payload);

/* Handle changes of a peer's groups, or its confirmation of this node's changes up to `held`. */
void domi_interest_hear(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                        const domi_wire_envelope *envelope);
void domi_interest_held(domi_cluster_gateway *gateway, domi_peer *peer, uint64_t held);

/* --- publish.c -------------------------------------------------------------------------------- */

/* Give outlets to the groups that were opened before the gateway began. Returns 0; as
 * domus_remote_join(). */
int domi_wide_begin(domi_cluster_gateway *gateway);

/* Send a publication of an actor here, which has come by the group's outlet, to the other nodes. */
void domi_publish_to_nodes(domi_cluster_gateway *gateway, const domus_remote_message *message,
                           const void *payload);

/* Find the group of a publication that has come, and cut its name off `message`. Returns 0;
 * -EBADMSG; -ENOENT when the group was not opened here. */
int domi_publication_group(domi_cluster_gateway *gateway, domus_slice *message,
                           domus_group *ret_group);

/* --- asks.c ----------------------------------------------------------------------------------- */

/* Record an ask to a peer: the envelope gets the ask's id, and the time left until `deadline_ns`
 * (0: no deadline). Returns 0; -ENOBUFS at asks_max; -ENOMEM. */
int domi_ask_note(domi_cluster_gateway *gateway, domi_peer *peer, domus_kept kept,
                  uint64_t deadline_ns, domi_wire_envelope *envelope, domi_ask **ret_ask);

/* Find an ask by its id, if it went to this peer; NULL if it is over. */
domi_ask *domi_ask_find(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id);
domi_ask *domi_ask_find_kept(domi_cluster_gateway *gateway, domus_kept kept, uint64_t *ret_id);
void domi_ask_forget(domi_cluster_gateway *gateway, domi_ask *ask);

/* Fail all asks to a peer; and remove the asks whose deadlines have passed. */
void domi_asks_fail(domi_cluster_gateway *gateway, const domi_peer *peer, int error);
void domi_asks_sweep(domi_cluster_gateway *gateway);

/* Record an ask of a peer. Returns 0, and its tag; -ENOBUFS; -ENOMEM. */
int domi_served_note(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                     uint64_t id, uint64_t *ret_tag);
domi_served *domi_served_at(domi_cluster_gateway *gateway, uint64_t tag);
void domi_served_forget(domi_cluster_gateway *gateway, domi_served *served);

/* Cancel an ask of a peer by its id; or cancel all asks of one gateway of a peer. */
void domi_served_cancel(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id);
void domi_served_drop(domi_cluster_gateway *gateway, const domi_peer *peer, uint16_t from_gateway);

/* Send a peer the failure of its ask. */
void domi_served_fail(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t to_gateway,
                      uint64_t id, int error);

/* Handle the answer of an actor here to an ask of another node. */
int domi_hear_answer(domus_stack *stack, void *self, const domus_answer *answer);

void domi_asks_free(domi_cluster_gateway *gateway);

/* --- watches.c -------------------------------------------------------------------------------- */

/* Handle that a remote actor is watched here (domus_remote_watch). */
int domi_take_watch(domus_stack *stack, void *self, const void *payload);

/* End the watches on a remote actor that has ended. */
void domi_watched_end(domi_cluster_gateway *gateway, const domus_remote_name *name, int reason);

/* Report all watched actors of a peer that is down as lost. */
void domi_watched_down(domi_cluster_gateway *gateway, domi_peer *peer);

/* Tell the actors that wait for room on the way to peers that there is some. */
void domi_watched_room(domi_cluster_gateway *gateway);

/* Watch a local actor for a peer, which has sent the actor's name. */
void domi_watching_add(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                       const domus_remote_name *name);

/* Handle the end of a local actor that peers watch (domus_down_type). */
int domi_take_down(domus_stack *stack, void *self, const void *payload);

/* End the watches of one gateway of a peer. */
void domi_watching_drop(domi_cluster_gateway *gateway, const domi_peer *peer,
                        uint16_t from_gateway);

void domi_watches_free(domi_cluster_gateway *gateway);

/* --- spawn.c ---------------------------------------------------------------------------------- */

/* Handle an ask of an actor here to spawn on another node, and an ask to spawn here. */
int domi_take_spawn(domus_stack *stack, void *self, const void *payload);
void domi_spawn_here(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                     const domi_wire_envelope *envelope, domus_slice rest);

/* --- say.c: lines in the log ------------------------------------------------------------------ */

/* Log the changes since the last call: a line for each node that is up, down or has ended, for this
 * node's connection to servers, and for another node with its name. A change that was undone since
 * is not logged. Gateway 0. */
void domi_say_news(domi_cluster_gateway *gateway);

/* Log that a message could not be written, once for each type. */
void domi_say_type(domi_cluster_gateway *gateway, const domus_type *type, int error);

/* --- observed.c ------------------------------------------------------------------------------- */

/* Show tables of the cluster to observers of the system (domus/figures.h), and end that. */
void domi_observed_begin(domus_cluster *cluster);
void domi_observed_end(domus_cluster *cluster);

/* --- registrar.c ------------------------------------------------------------------------------ */

/* The actor that holds the node's lease and its names. Its state begins as a pointer to the
 * cluster. */
extern const domus_behaviour domi_registrar_behaviour;

/* --- gateway.c -------------------------------------------------------------------------------- */

extern const domus_behaviour domi_gateway_behaviour;
/* Fill in the options of a gateway's client, without the receiver of its events. */
struct domus_nats_options;
void domi_cluster_client_options(const domus_cluster_options *options,
                                 struct domus_nats_options *ret_options);
extern const domus_type domi_tick_type;   /* the event of a timer: check for unconfirmed batches */
extern const domus_type domi_follow_type; /* a notice between gateways: read the table of nodes */
extern const domus_type domi_begun_type;  /* an ask from outside, answered by a begun gateway */
extern const domus_type domi_leave_type;  /* an ask from outside: this node leaves */
extern const domus_type domi_spawn_type;  /* the ask of domus_cluster_spawn() */

#endif
