/* A cluster as its own files see it: what all gateways of a system share, and what one gateway
 * has.
 *
 * Gateway 0 hears the heartbeats of all nodes and keeps the table of nodes, under a lock that is
 * held for a few fields. Each gateway has links of its own to the gateways of the others, and is
 * told of changes by a notice; it also looks at the table with each heartbeat, so that a notice
 * that was refused is only late. */
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

#define DOMI_GATEWAYS_MAX 1024u /* gateways of one node, one on each thread of its system */

/* --- what gateways share ---------------------------------------------------------------------- */

/* A node in the table. `id` is constant while it is there, `name` and `gateways` once it was heard
 * (before, `gateways` is 0); the rest up to `holders` is under the lock. */
typedef struct domi_node_record {
    uint64_t id;
    uint64_t incarnation;
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    uint16_t gateways;
    uint16_t slot; /* its place in the table */

    bool hosts_grains; /* constant as these */
    domus_node_state state;
    bool is_leaving;
    bool is_full;                            /* more than queued_max bytes are on the way */
    uint64_t since_ns;                       /* when the state began */
    uint64_t heard_ns;                       /* its last heartbeat */
    uint64_t hears_ns;                       /* its last heartbeat that names this node */
    uint32_t holders;                        /* gateways that have not let go of it yet */
    uint64_t let_go[DOMI_GATEWAYS_MAX / 64]; /* a bit for each that has */

    domus_node_state said; /* the last state of which the log was told; HEARD: none */
    uint64_t said_ns;      /* when that began */

    /* Any gateway. */
    _Atomic uint32_t downs; /* how often it went down, or ended */
    _Atomic uint64_t queued_bytes, sent, received, refused, lost, resent, rtt_ns;
} domi_node_record;

typedef struct domi_parts domi_parts;

struct domus_cluster {
    struct domus_system *system;
    domus_cluster_options options; /* texts are copies that belong to the cluster */
    char texts[6][256];            /* these copies, but the servers and the jwt */
    char *servers, *jwt;
    domus_picklers *picklers;
    uint64_t id, incarnation;
    uint32_t gateways;
    _Atomic int failed;     /* the errno with which a gateway could not begin; 0: none */
    _Atomic uint32_t ended; /* gateways that could not begin, and have let go of the cluster */
    uint32_t missed;        /* gateways of `ended` of which the opener has heard */
    /* The addresses below are there: the opener sets it last, and gateways look at it. */
    _Atomic bool is_open;
    domus_address *addresses; /* of the gateways */
    domus_address registrar;
    domi_parts *parts;   /* of grains (parts.h); its fields say who touches them */
    domus_grains *kinds; /* the kinds that are spread */
    uint32_t kinds_count;
    domi_wide wide; /* groups over the cluster */

    domi_lock lock; /* guards the fields below, and those of records that say so */
    domi_node_record *nodes[DOMUS_CLUSTER_NODES_MAX]; /* NULL: free */
    uint32_t nodes_used;                              /* entries that were ever used */
    bool is_connected;                                /* gateway 0 has a server */
    domus_address client;     /* of gateway 0; nobody: it has none, or none yet */
    uint64_t connected_ns;    /* when that began, or ended */
    bool is_rival, has_rival; /* another node has the same name: a newer one, or an older one */
    domi_said said;           /* of gateway 0 alone */

    bool is_shown; /* its tables are with the system, which is not freed */

    domi_lock names_lock;      /* guards the next three (listed.c) */
    struct domi_name **listed; /* the names of actors here */
    uint32_t listed_count, listed_room;
    _Atomic uint64_t sent, received, refused, lost, resent, dropped; /* over all nodes */
    _Atomic uint64_t wrong; /* messages of the server that could not be read, or were for nobody */
};

/* --- one gateway ------------------------------------------------------------------------------ */

typedef struct domi_peer domi_peer;
typedef struct domi_cluster_gateway domi_cluster_gateway;

/* Another node, as one gateway has it. */
struct domi_peer {
    domi_node_record *record;
    uint64_t id;
    uint32_t downs;       /* of the record, as far as this gateway has acted on them */
    uint32_t asks;        /* asks to it under way */
    uint32_t watched;     /* actors of it that are watched here */
    uint32_t idle_cursor; /* of domus_remote_idle() */
    /* Changes of groups, by their numbers; of gateway 0 (interest.c). */
    uint64_t told;        /* the last of this node that was sent there since it was down */
    uint64_t held;        /* the last that is confirmed since then */
    uint64_t held_before; /* the same at the last heartbeat */
    uint64_t holds;       /* the last of the other node that has come */
    domi_link **links;    /* to its gateways, made when they are used */
    uint64_t *counted;    /* queued_bytes of each link, as the record counts them */
    /* For each of its gateways a bit for each part whose messages are returned to it until it
     * fences them. */
    unsigned char (*returns)[DOMUS_REMOTE_PARTS / 8];
    domi_peer *next_in_bucket, *next; /* `next` of all */
};

/* An ask to another node. */
typedef struct domi_ask {
    domus_kept kept;
    domi_peer *peer;      /* NULL: the entry is free */
    uint64_t deadline_ns; /* 0: none */
    uint32_t generation;
    uint32_t next_free;
    bool spawns;    /* its answer is the address of a new actor */
    bool for_grain; /* the ask may be returned by the peer (routes.c) */
} domi_ask;

/* An ask of another node that an actor here answers. */
typedef struct domi_served {
    domi_peer *peer;  /* NULL: nobody waits for the answer any more */
    uint64_t id;      /* the id that the other node has given to the ask */
    uint16_t gateway; /* the gateway of the other node */
    bool is_used;
    uint32_t generation;
    uint32_t next; /* free, or in the bucket of its id */
    domus_remote_asked asked;
} domi_served;

#define DOMI_TOLD_MAX      16u /* types that did not travel, of which the log is told */
#define DOMI_NO_INDEX      UINT32_MAX
#define DOMI_PEERS_BUCKETS 256u

/* A remote actor that is watched here, and an actor here that other nodes watch. */
typedef struct domi_watched {
    domus_remote_name name; /* of the remote actor; or of the local one, with the node HERE */
    domus_address address;  /* the local one */
    domi_peer *peer;        /* the peer on which the actor lives, or which watches the actor */
    uint16_t gateway;       /* of the node that watches */
    bool room;
    domus_watch watch; /* on the local actor: one, however many nodes watch it */
    struct domi_watched *next;
} domi_watched;

#define DOMI_WATCHED_BUCKETS 4096u

/* The sleep of the conversation that has all asks of a gateway: it only keeps it waiting. */
#define DOMI_LONG_NS (UINT64_C(3600) * 1000000000)

struct domi_cluster_gateway {
    domus_cluster *cluster;
    uint32_t index;
    domus_address client; /* of NATS; nobody: this machine alone */
    bool is_connected;
    bool is_due;              /* domus_later() was called */
    bool has_torn;            /* a link has lost something for want of memory */
    bool ticks;               /* the timer of domi_tick_type runs */
    bool has_unconfirmed;     /* a look over the links has found something */
    bool is_leaving;          /* this node gives its parts to others, and then leaves */
    bool has_left;            /* the others were told that it has ended */
    uint64_t beat_ns;         /* when the last heartbeat was sent; of gateway 0 */
    uint32_t beats;           /* heartbeats since the begin */
    uint32_t wide_cursor;     /* the group that is looked at next; of gateway 0 */
    domus_conversation asker; /* has the asks in the name of remote actors */
    domi_peer *peers_by_id[DOMI_PEERS_BUCKETS], *peers;
    domi_ask *asks;
    uint32_t asks_room, asks_free, asks_used;
    domi_served *served;
    uint32_t served_room, served_free, served_used;
    uint32_t *served_buckets;                     /* served_room of them, by id */
    bool has_rooms;                               /* somebody waits for room at a remote actor */
    domi_watched *watched[DOMI_WATCHED_BUCKETS];  /* remote actors, by name */
    domi_watched *watching[DOMI_WATCHED_BUCKETS]; /* local actors, by address */
    struct domi_route *routes;                    /* of grains, by part; NULL: no kind is spread */
    uint32_t unopened;      /* routes that lead here, and that this thread has not opened yet */
    uint64_t waiting_bytes; /* of messages that wait for parts */
    unsigned char *payload; /* room for a payload that is read */
    /* room for a message that is written: message_max bytes, and the name of a grain or a group */
    unsigned char *message;
    domus_pickle_context pickling;
    domus_stack *stack;                    /* of the turn, for the callbacks of picklers */
    const domus_type *told[DOMI_TOLD_MAX]; /* types that did not travel, as the log knows */
};

/* Add to a count of a node, and to that of the whole cluster. */
#define DOMI_COUNT(gateway, record, count, by)                                                     \
    (atomic_fetch_add_explicit(&(record)->count, (by), memory_order_relaxed),                      \
     (void)atomic_fetch_add_explicit(&(gateway)->cluster->count, (by), memory_order_relaxed))

/* Count bytes that could not be read, or were for nobody. */
static inline void domi_count_wrong(domi_cluster_gateway *gateway)
{
    atomic_fetch_add_explicit(&gateway->cluster->wrong, 1, memory_order_relaxed);
}

/* True if this machine is alone: no server was named. */
static inline bool domi_is_alone(const domus_cluster *cluster)
{
    return cluster->options.servers == NULL && cluster->options.open_client == NULL;
}

/* True if the addresses of all gateways are there. */
static inline bool domi_cluster_is_open(const domus_cluster *cluster)
{
    /* acquire: pairs with the store in domus_cluster_open(). */
    return atomic_load_explicit((_Atomic bool *)(uintptr_t)&cluster->is_open, memory_order_acquire);
}

/* --- nodes.c ---------------------------------------------------------------------------------- */

/* Find a node in the table; NULL: it is not there. The caller holds the lock. */
domi_node_record *domi_node_find(domus_cluster *cluster, uint64_t id);

/* The changes by a heartbeat, or by a look. */
typedef struct domi_nodes_news {
    bool has_changed; /* gateways are to be told */
    bool is_new;      /* a node was heard for the first time, and wants to hear this one soon */
} domi_nodes_news;

/* A heartbeat has come. Gateway 0. */
domi_nodes_news domi_nodes_hear(domi_cluster_gateway *gateway, const domi_heartbeat *beat);

/* An address of an actor of a node has come: see that the runtime knows the node. Returns 0;
 * -ESTALE when it has ended; -ENOSPC. Any gateway. */
int domi_nodes_mention(domi_cluster_gateway *gateway, uint64_t id);

/* A batch has come from a node. Any gateway. */
void domi_nodes_hear_batch(domi_cluster_gateway *gateway, domi_node_record *record);

/* Look which nodes are silent, and which have no holder any more. Gateway 0. */
domi_nodes_news domi_nodes_look(domi_cluster_gateway *gateway);

/* Write this node's heartbeat. Returns its bytes. Gateway 0. */
uint32_t domi_nodes_write_beat(domi_cluster_gateway *gateway, uint8_t state, unsigned char *bytes);

/* Tell the runtime the state of a node, as it is now. Any gateway. */
void domi_node_apply(domi_cluster_gateway *gateway, domi_node_record *record);

/* The bytes on the way to a node have grown by `delta`. Any gateway. */
void domi_node_count_queued(domi_cluster_gateway *gateway, domi_node_record *record, int64_t delta);

/* --- peers.c ---------------------------------------------------------------------------------- */

/* The peer of a node; NULL: the table has no such node. It is made when it is looked for first. */
domi_peer *domi_peer_of(domi_cluster_gateway *gateway, uint64_t id);
/* The peer of a node, if it was made; NULL: it was not. */
domi_peer *domi_peer_find(domi_cluster_gateway *gateway, uint64_t id);

/* Free a peer; free all. */
void domi_peer_forget(domi_cluster_gateway *gateway, domi_peer *peer);
void domi_peers_forget_all(domi_cluster_gateway *gateway);

/* The link to a gateway of the peer; NULL without memory. */
domi_link *domi_peer_link(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index);

/* True if the table says that the node is up; that it is not full. */
bool domi_peer_is_up(domi_cluster_gateway *gateway, const domi_peer *peer);
bool domi_peer_has_room(domi_cluster_gateway *gateway, const domi_peer *peer);

/* --- batches.c -------------------------------------------------------------------------------- */

/* Add an envelope to the link to the gateway `index` of the peer, which is sent at the end of this
 * phase. Returns 0; -ENOMEM; -EMSGSIZE; -EHOSTDOWN, -ENOBUFS. */
int domi_send(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index,
              const domi_wire_envelope *envelope);

/* As domi_send() for what the other side must not miss: without memory for it the link is given up
 * at the next flush, and both sides know that what was under way is over. */
void domi_send_surely(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index,
                      const domi_wire_envelope *envelope);

/* The gateway of a peer to which this one sends what is no answer. */
static inline uint16_t domi_gateway_at(const domi_cluster_gateway *gateway, const domi_peer *peer)
{
    return (uint16_t)(gateway->index % peer->record->gateways);
}

/* Send what the links hold. With `all`, what is not confirmed, too. */
void domi_flush_all(domi_cluster_gateway *gateway, bool probes);
void domi_resend(domi_cluster_gateway *gateway, bool all);

/* Confirm what has come, where nothing is sent that does it. */
void domi_confirm_all(domi_cluster_gateway *gateway);

/* True if something is not confirmed, on either side. */
bool domi_has_unconfirmed(domi_cluster_gateway *gateway);

/* True if nothing was confirmed over the link for so long that it counts as broken. */
bool domi_link_is_stuck(const domi_cluster_gateway *gateway, const domi_link *link);

/* Begin the timer of domi_tick_type, unless it runs. */
void domi_tick_again(domi_cluster_gateway *gateway);

/* See that domi_flush_all() is called at the end of this phase, and domi_resend() later. */
void domi_flush_soon(domi_cluster_gateway *gateway);

/* Publish bytes on a subject below that of the cluster. Consumes the slice. */
void domi_publish(domi_cluster_gateway *gateway, const char *subject, domus_slice bytes);

/* The name of an address, with this node's id in place of HERE; a lease of 0 for nobody. */
void domi_name_of(domi_cluster_gateway *gateway, domus_address address,
                  domus_remote_name *ret_name);

/* The name of the sender of the message in hand. An asker without an address, such as a foreign
 * thread, has that of this gateway, which gets the answer all the same. */
void domi_sender_name(domi_cluster_gateway *gateway, bool is_ask, domus_remote_name *ret_name);

/* The address of a name that has come from another node. */
int domi_address_of(domi_cluster_gateway *gateway, const domus_remote_name *name,
                    domus_address *ret_address);

/* Write a message into gateway->message. Returns its bytes, or a negative errno. */
int domi_pickle_message(domi_cluster_gateway *gateway, const domus_type *type, const void *payload);

/* Read a message into gateway->payload. Returns 0; a negative errno. */
int domi_unpickle_message(domi_cluster_gateway *gateway, domus_slice message,
                          const domus_type **ret_type);

/* --- send.c ----------------------------------------------------------------------------------- */

/* A message to a remote actor has come to the gateway (domus/remote.h). */
int domi_take_message(domus_stack *stack, void *self, const void *payload);

/* --- follow.c --------------------------------------------------------------------------------- */

/* Act on what the table says of all nodes now. */
void domi_peers_follow(domi_cluster_gateway *gateway);

/* Nothing comes from a gateway of a peer, or goes there, any more: the link is broken, asks of that
 * gateway are cancelled, and it hears of no watches. If it is the one to which this gateway sends
 * its asks and watches, they fail. `is_told`: the other side has said so; else this side gives up.
 */
void domi_link_lose(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index, bool is_told);

/* Lose the links to all gateways of a peer. */
void domi_peer_lose(domi_cluster_gateway *gateway, domi_peer *peer);

/* --- beats.c ---------------------------------------------------------------------------------- */

/* Send this node's heartbeat, with an enum domi_heartbeat_state. Gateway 0. */
void domi_beat(domi_cluster_gateway *gateway, uint8_t state);

/* Send one now, unless one was sent just before. Gateway 0. */
void domi_beat_now(domi_cluster_gateway *gateway);

/* Tell all gateways that the table of nodes has changed. Gateway 0. */
void domi_tell_all(domi_cluster_gateway *gateway);

/* --- receive.c -------------------------------------------------------------------------------- */

/* A message of NATS has come. */
void domi_take_batch(domi_cluster_gateway *gateway, domus_slice bytes);

/* --- interest.c ------------------------------------------------------------------------------- */

/* A node may have come up; a heartbeat. Any gateway, but only gateway 0 does something. */
void domi_interest_follow(domi_cluster_gateway *gateway);
void domi_interest_beat(domi_cluster_gateway *gateway);

/* A peer is down: what it holds is not known any more. */
void domi_interest_lose(domi_peer *peer);

/* A group has its first member (domus_remote_joined). */
int domi_take_joined(domus_stack *stack, void *self, const void *payload);

/* A peer has told changes of its groups, or holds those of this node up to `held`. */
void domi_interest_hear(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                        const domi_wire_envelope *envelope);
void domi_interest_held(domi_cluster_gateway *gateway, domi_peer *peer, uint64_t held);

/* --- publish.c -------------------------------------------------------------------------------- */

/* A gateway begins: groups that were opened before can have their outlets. Returns 0; as
 * domus_remote_join(). */
int domi_wide_begin(domi_cluster_gateway *gateway);

/* An actor here has published to the group of this outlet. */
void domi_publish_to_nodes(domi_cluster_gateway *gateway, const domus_remote_message *message,
                           const void *payload);

/* The group of a publication that has come, which is cut off from `message`. Returns 0; -EBADMSG;
 * -ENOENT when it was not opened here. */
int domi_publication_group(domi_cluster_gateway *gateway, domus_slice *message,
                           domus_group *ret_group);

/* --- asks.c ----------------------------------------------------------------------------------- */

/* Note that an ask goes to a peer: the envelope gets its id, and the rest of the time until
 * `deadline_ns` (0: it has none). Returns 0; -ENOBUFS at asks_max; -ENOMEM. */
int domi_ask_note(domi_cluster_gateway *gateway, domi_peer *peer, domus_kept kept,
                  uint64_t deadline_ns, domi_wire_envelope *envelope, domi_ask **ret_ask);

/* Find an ask by its id, if it went to this peer; NULL: it is over. */
domi_ask *domi_ask_find(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id);
domi_ask *domi_ask_find_kept(domi_cluster_gateway *gateway, domus_kept kept, uint64_t *ret_id);
void domi_ask_forget(domi_cluster_gateway *gateway, domi_ask *ask);

/* Let all asks to a peer fail; forget those whose deadlines have passed. */
void domi_asks_fail(domi_cluster_gateway *gateway, const domi_peer *peer, int error);
void domi_asks_sweep(domi_cluster_gateway *gateway);

/* Note an ask of a peer. Returns 0, and its tag; -ENOBUFS; -ENOMEM. */
int domi_served_note(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                     uint64_t id, uint64_t *ret_tag);
domi_served *domi_served_at(domi_cluster_gateway *gateway, uint64_t tag);
void domi_served_forget(domi_cluster_gateway *gateway, domi_served *served);

/* Cancel an ask of a peer by its id; cancel all of one gateway of a peer, which gets no answers. */
void domi_served_cancel(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id);
void domi_served_drop(domi_cluster_gateway *gateway, const domi_peer *peer, uint16_t from_gateway);

/* Tell a peer that its ask has failed. */
void domi_served_fail(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t to_gateway,
                      uint64_t id, int error);

/* An actor here has answered an ask of another node. */
int domi_hear_answer(domus_stack *stack, void *self, const domus_answer *answer);

void domi_asks_free(domi_cluster_gateway *gateway);

/* --- watches.c -------------------------------------------------------------------------------- */

/* A remote actor is watched here (domus_remote_watch). */
int domi_take_watch(domus_stack *stack, void *self, const void *payload);

/* A remote actor has ended. */
void domi_watched_end(domi_cluster_gateway *gateway, const domus_remote_name *name, int reason);

/* A peer is down: tell all watches of its actors. */
void domi_watched_down(domi_cluster_gateway *gateway, domi_peer *peer);

/* There is room on the way to peers: tell who waits for that. */
void domi_watched_room(domi_cluster_gateway *gateway);

/* A peer watches a local actor, whose name it has given. */
void domi_watching_add(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                       const domus_remote_name *name);

/* A local actor that peers watch has ended (domus_down_type). */
int domi_take_down(domus_stack *stack, void *self, const void *payload);

/* One gateway of a peer does not wait for such news any more. */
void domi_watching_drop(domi_cluster_gateway *gateway, const domi_peer *peer,
                        uint16_t from_gateway);

void domi_watches_free(domi_cluster_gateway *gateway);

/* --- spawn.c ---------------------------------------------------------------------------------- */

/* An ask of an actor here to spawn on another node, and one of another node to spawn here. */
int domi_take_spawn(domus_stack *stack, void *self, const void *payload);
void domi_spawn_here(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                     const domi_wire_envelope *envelope, domus_slice rest);

/* --- say.c ------------------------------------------------------------------------------------ */

/* Tell the log of the changes since the last call: a line for each node that is up, down or has
 * ended, for the servers of this node, and for another node of its name. A change that was undone
 * since is not told. Gateway 0. */
void domi_say_news(domi_cluster_gateway *gateway);

/* Tell the log that a message could not be written, once for each type. */
void domi_say_type(domi_cluster_gateway *gateway, const domus_type *type, int error);

/* --- observed.c ------------------------------------------------------------------------------- */

/* Let whoever looks at the system see the cluster (domus/figures.h), and end that. */
void domi_observed_begin(domus_cluster *cluster);
void domi_observed_end(domus_cluster *cluster);

/* --- registrar.c ------------------------------------------------------------------------------ */

/* The actor that has the node's lease, and its names. Its state begins with the cluster. */
extern const domus_behaviour domi_registrar_behaviour;

/* --- gateway.c -------------------------------------------------------------------------------- */

extern const domus_behaviour domi_gateway_behaviour;
/* Fill in the options of the clients of gateways, without the receiver of their events. */
struct domus_nats_options;
void domi_cluster_client_options(const domus_cluster_options *options,
                                 struct domus_nats_options *ret_options);
extern const domus_type domi_tick_type;   /* the event of a timer: look at what is not confirmed */
extern const domus_type domi_follow_type; /* a notice between gateways: look at the table */
extern const domus_type domi_begun_type;  /* an ask from outside, of a gateway that has begun */
extern const domus_type domi_leave_type;  /* an ask from outside: tell the others */
extern const domus_type domi_spawn_type;  /* the ask of domus_cluster_spawn() */

#endif
