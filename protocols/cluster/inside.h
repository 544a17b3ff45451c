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

#define DOMI_GATEWAYS_MAX 1024u /* gateways of one node, at most; each of its threads has one */

/* --- data that gateways share ----------------------------------------------------------------- */

/* A node of the cluster in the shared table. `id` is constant, `name` and `gateways` are once it
 * was heard (before, `gateways` is 0); members up to `holders` are under the cluster's lock. */
typedef struct domi_node_record {
    uint64_t id;
    uint64_t incarnation;
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    uint16_t gateways;
    uint16_t slot; /* index of this record in the table of nodes */

    bool hosts_grains; /* grains may live on the node; constant once the node was heard */
    domus_node_state state;
    bool is_leaving;
    bool is_full;      /* more than queued_max bytes are on the way to the node */
    uint64_t since_ns; /* time at which the node's current `state` began */
    uint64_t heard_ns; /* time of the node's last heartbeat */
    uint64_t hears_ns; /* time of the node's last heartbeat that listed this node as heard */
    uint32_t holders;  /* number of gateways here that still hold addresses or links of the node */
    /* one bit for each gateway here, set once it holds nothing of the node any more */
    uint64_t let_go[DOMI_GATEWAYS_MAX / 64];

    domus_node_state said; /* the state of the node that was logged last; HEARD: none was */
    uint64_t said_ns;      /* time at which the node's state in `said` began */

    /* Members that any gateway here reads and changes without the lock. */
    _Atomic uint32_t downs; /* how often the other node has gone down or ended */
    _Atomic uint64_t queued_bytes, sent, received, refused, lost, resent, rtt_ns;
} domi_node_record;

typedef struct domi_parts domi_parts;

struct domus_cluster {
    struct domus_system *system;
    domus_cluster_options options; /* the cluster's options; it owns copies of their texts */
    char texts[6][256]; /* copies of the options' texts, except of the servers and the jwt */
    char *servers, *jwt;
    domus_picklers *picklers;
    uint64_t id, incarnation;
    uint32_t gateways;
    _Atomic int failed; /* the errno with which a gateway of this node could not begin; 0: none */
    _Atomic uint32_t ended; /* number of gateways here that could not begin, and have ended */
    uint32_t missed; /* number of gateways in `ended` whose end domus_cluster_open() has noticed */
    /* True once `addresses` is filled in: domus_cluster_open() sets it last, gateways check it. */
    _Atomic bool is_open;
    domus_address *addresses; /* addresses of this node's gateways */
    domus_address registrar;
    domi_parts *parts;   /* the parts of grains (parts.h, which tells who uses each member) */
    domus_grains *kinds; /* the kinds of grains that are spread over the cluster */
    uint32_t kinds_count;
    domi_wide wide; /* the groups over the cluster */

    domi_lock lock; /* guards members from here to `has_rival`, and some of each node record */
    domi_node_record *nodes[DOMUS_CLUSTER_NODES_MAX]; /* the table of nodes; NULL: a free place */
    uint32_t nodes_used;      /* number of places of the table of nodes that were ever used */
    bool is_connected;        /* gateway 0's client is connected to a server */
    domus_address client;     /* address of gateway 0's client of NATS; nobody: it has none yet */
    uint64_t connected_ns;    /* time at which `is_connected` last changed */
    bool is_rival, has_rival; /* a newer, or an older, node has this node's name */
    domi_said said;           /* news on this node and its servers logged last; gateway 0's */

    bool is_shown; /* figures show the cluster (observed.c), so it must not be freed */

    domi_lock names_lock;      /* guards `listed` and the two members behind it (listed.c) */
    struct domi_name **listed; /* the registered names of this node's actors */
    uint32_t listed_count, listed_room;
    /* counts of messages, summed over all nodes */
    _Atomic uint64_t sent, received, refused, lost, resent, dropped;
    _Atomic uint64_t wrong; /* number of server messages that were invalid, or for no actor here */
};

/* --- one gateway ------------------------------------------------------------------------------ */

typedef struct domi_peer domi_peer;
typedef struct domi_cluster_gateway domi_cluster_gateway;

/* Another node, as one gateway of this node sees it. */
struct domi_peer {
    domi_node_record *record;
    uint64_t id;
    uint32_t downs;   /* the value of the record's `downs` up to which this gateway has acted */
    uint32_t asks;    /* number of asks from this gateway to the node that are not answered yet */
    uint32_t watched; /* number of actors of the node that actors here watch */
    uint32_t idle_cursor; /* cursor for domus_remote_idle() over addresses of the node */
    /* Numbers of changes of groups sent and received (interest.c); only gateway 0 uses them. */
    uint64_t told; /* last change of this node's groups sent to the node; set back to resend */
    uint64_t held; /* last change of this node's groups that the other node has confirmed */
    uint64_t held_before; /* value of `held`, the confirmed changes, at the last heartbeat */
    uint64_t holds;       /* last change of the other node's groups that has come to this node */
    domi_link **links;    /* links to the gateways of the node, made when they are first used */
    uint64_t *counted;    /* queued_bytes of each link, as counted in the node's record */
    /* For each gateway of the node, a bit for each part of the grains whose messages are returned
     * to that gateway until it sends a fence. */
    unsigned char (*returns)[DOMUS_REMOTE_PARTS / 8];
    domi_peer *next_in_bucket, *next; /* next peer of the hash bucket, next peer of all */
};

/* An ask of an actor on this node to an actor of another node. */
typedef struct domi_ask {
    domus_kept kept;
    domi_peer *peer;      /* the peer that was asked; NULL: this entry of the table is free */
    uint64_t deadline_ns; /* deadline of the ask; 0: none */
    uint32_t generation;
    uint32_t next_free;
    bool spawns;    /* the ask is a spawn: its answer is the address of the new actor */
    bool for_grain; /* the ask is to a grain, so the peer may return it undone (routes.c) */
} domi_ask;

/* An ask of an actor on another node to an actor here. */
typedef struct domi_served {
    domi_peer *peer;  /* the peer that has asked; NULL: nobody waits for the answer any more */
    uint64_t id;      /* id that the asking node has given to the ask */
    uint16_t gateway; /* index of the gateway from which the ask has come */
    bool is_used;
    uint32_t generation;
    uint32_t next; /* the next free entry of the table, or the next one in the bucket of its id */
    domus_remote_asked asked;
} domi_served;

#define DOMI_TOLD_MAX      16u /* types remembered as logged because pickling failed, at most */
#define DOMI_NO_INDEX      UINT32_MAX
#define DOMI_PEERS_BUCKETS 256u

/* A remote actor that actors here watch, or an actor here that another node watches. */
typedef struct domi_watched {
    domus_remote_name name; /* name of the remote actor, or of the actor here (with node HERE) */
    domus_address address;  /* address of the actor here that another node watches */
    domi_peer *peer; /* the peer on which the remote actor lives, or which watches the actor here */
    uint16_t gateway; /* index of the other node's gateway that watches the actor here */
    bool room;
    domus_watch watch; /* this node's watch on the actor here: one, however many nodes watch it */
    struct domi_watched *next;
} domi_watched;

#define DOMI_WATCHED_BUCKETS 4096u

/* ns that the conversation behind a gateway's asks sleeps: only to keep the conversation alive */
#define DOMI_LONG_NS (UINT64_C(3600) * 1000000000)

struct domi_cluster_gateway {
    domus_cluster *cluster;
    uint32_t index;
    domus_address client; /* the client of NATS; nobody: this machine is alone, without servers */
    bool is_connected;
    bool is_due;   /* domus_later() was called, so the links are flushed at the end of the phase */
    bool has_torn; /* a link has lost messages for want of memory, so it must be broken */
    bool ticks;    /* the timer runs whose event (domi_tick_type) resends unconfirmed batches */
    bool has_unconfirmed;     /* the last walk over the links has found unconfirmed batches */
    bool is_leaving;          /* this node gives away its parts of grains, before it leaves */
    bool has_left;            /* the other nodes were told that this node has ended */
    uint64_t beat_ns;         /* time of this node's last heartbeat; only for gateway 0 */
    uint32_t beats;           /* number of beats of the heartbeat timer since this gateway began */
    uint32_t wide_cursor;     /* number of the group that is checked next (wide.h); gateway 0's */
    domus_conversation asker; /* the conversation that asks actors here for remote actors */
    domi_peer *peers_by_id[DOMI_PEERS_BUCKETS], *peers;
    domi_ask *asks;
    uint32_t asks_room, asks_free, asks_used;
    domi_served *served;
    uint32_t served_room, served_free, served_used;
    uint32_t *served_buckets; /* hash table with `served_room` buckets: from an id into `served` */
    bool has_rooms;           /* an actor here waits until the way to a remote actor has room */
    domi_watched *watched[DOMI_WATCHED_BUCKETS]; /* remote actors that actors here watch, by name */
    domi_watched *watching[DOMI_WATCHED_BUCKETS]; /* actors here watched by other nodes */
    struct domi_route *routes; /* the route for each part of grains; NULL: no kind is spread */
    uint32_t unopened;         /* number of HERE routes that actors of this thread cannot use yet */
    uint64_t waiting_bytes; /* bytes of messages to grains that wait until a node has their part */
    unsigned char *payload; /* memory for the payload of a message that is being read */
    unsigned char *message; /* memory for a written message, with its grain's or group's name */
    domus_pickle_context pickling;
    domus_stack *stack; /* stack of the gateway's current turn, which picklers use */
    const domus_type *told[DOMI_TOLD_MAX]; /* types whose failed pickling was logged already */
};

/* Add `by` to a count of one node, and to the same count of the whole cluster. */
#define DOMI_COUNT(gateway, record, count, by)                                                     \
    (atomic_fetch_add_explicit(&(record)->count, (by), memory_order_relaxed),                      \
     (void)atomic_fetch_add_explicit(&(gateway)->cluster->count, (by), memory_order_relaxed))

/* Count a message from a server that was invalid, or whose receiver is not on this node. */
static inline void domi_count_wrong_message_of_server(domi_cluster_gateway *gateway)
{
    atomic_fetch_add_explicit(&gateway->cluster->wrong, 1, memory_order_relaxed);
}

/* Returns whether the cluster is this machine alone, because no servers were named. */
static inline bool domi_cluster_has_no_servers(const domus_cluster *cluster)
{
    return cluster->options.servers == NULL && cluster->options.open_client == NULL;
}

/* Returns whether the addresses of all gateways of this node are known. */
static inline bool domi_cluster_is_open(const domus_cluster *cluster)
{
    /* acquire: pairs with the release store in domus_cluster_open(), so `addresses` is seen */
    return atomic_load_explicit((_Atomic bool *)(uintptr_t)&cluster->is_open, memory_order_acquire);
}

/* --- nodes.c ---------------------------------------------------------------------------------- */

/* Find a node in the table of nodes by its id; NULL if it is missing. The caller holds the lock. */
domi_node_record *domi_node_find(domus_cluster *cluster, uint64_t id);

/* The changes of the table of nodes that one heartbeat, or one check for silent nodes, has made. */
typedef struct domi_nodes_news {
    bool has_changed; /* all gateways of this node must be told that the table has changed */
    bool is_new; /* a node was heard for the first time, so a heartbeat should be sent to it soon */
} domi_nodes_news;

/* Change the table of nodes by a heartbeat of another node that has come. Gateway 0. */
domi_nodes_news domi_nodes_update_by_heartbeat(domi_cluster_gateway *gateway,
                                               const domi_heartbeat *beat);

/* Enter a node of which only an address has come so far into the table, and tell the runtime that
 * the node exists. Returns 0; -ESTALE when it has ended; -ENOSPC. Any gateway. */
int domi_nodes_add_mentioned_node(domi_cluster_gateway *gateway, uint64_t id);

/* Record that a batch has come from a node, so that node hears this one. Any gateway. */
void domi_nodes_mark_node_up_after_batch(domi_cluster_gateway *gateway, domi_node_record *record);

/* End or mark down nodes that are silent too long; remove ended ones without holders. Gateway 0. */
domi_nodes_news domi_nodes_check_for_silence(domi_cluster_gateway *gateway);

/* Write this node's heartbeat. Returns its bytes. Gateway 0. */
uint32_t domi_nodes_write_own_heartbeat(domi_cluster_gateway *gateway, uint8_t state,
                                        unsigned char *bytes);

/* Tell the runtime whether a node's actors can get messages, by the node's state. Any gateway. */
void domi_node_tell_runtime_if_it_is_up(domi_cluster_gateway *gateway, domi_node_record *record);

/* Add `delta` to the count of bytes that are on the way to a node. Any gateway. */
void domi_node_count_queued_bytes(domi_cluster_gateway *gateway, domi_node_record *record,
                                  int64_t delta);

/* --- peers.c ---------------------------------------------------------------------------------- */

/* Returns the gateway's peer for a node, made at the first call; NULL if no such node is known. */
domi_peer *domi_peer_find_or_make(domi_cluster_gateway *gateway, uint64_t id);
/* Returns this gateway's peer for a node; NULL if none was made. */
domi_peer *domi_peer_find(domi_cluster_gateway *gateway, uint64_t id);

/* Free a peer with its links; free all peers of the gateway. */
void domi_peer_unlink_and_free(domi_cluster_gateway *gateway, domi_peer *peer);
void domi_peers_free_all(domi_cluster_gateway *gateway);

/* Returns the link to the peer's gateway `index`, made at the first call; NULL without memory. */
domi_link *domi_peer_link_to_gateway(domi_cluster_gateway *gateway, domi_peer *peer,
                                     uint16_t index);

/* Return whether the peer's node is up in the table; whether the way to the node is not full. */
bool domi_peer_is_up(domi_cluster_gateway *gateway, const domi_peer *peer);
bool domi_peer_has_room_on_way(domi_cluster_gateway *gateway, const domi_peer *peer);

/* --- batches.c -------------------------------------------------------------------------------- */

/* Add an envelope to the link to the peer's gateway `index`, which publishes it at the end of this
 * phase. Returns 0; -ENOMEM; -EMSGSIZE; -EHOSTDOWN; -ENOBUFS. */
int domi_add_envelope_to_batch_of_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                       uint16_t index, const domi_wire_envelope *envelope);
/* Send as domi_add_envelope_to_batch_of_link() does, for an envelope that the node must not miss:
 * without memory the link is broken at the next flush, so that both nodes know that everything
 * under way is lost.
 */
void domi_add_envelope_or_mark_link_torn(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t index, const domi_wire_envelope *envelope);

/* Returns the index of the peer's gateway to which this gateway sends everything but answers. */
static inline uint16_t domi_gateway_index_at_peer(const domi_cluster_gateway *gateway,
                                                  const domi_peer *peer)
{
    return (uint16_t)(gateway->index % peer->record->gateways);
}

/* Publish the batches of all links; resend unconfirmed batches, those that are due or `all`. */
void domi_links_publish_all_batches(domi_cluster_gateway *gateway, bool probes);
void domi_links_resend_unconfirmed(domi_cluster_gateway *gateway, bool all);
/* Send a batch without envelopes on each link that owes a confirmation and has nothing else. */
void domi_links_send_owed_confirmations(domi_cluster_gateway *gateway);
/* Returns whether a link of this gateway has batches that are unconfirmed, in either direction. */
bool domi_links_have_unconfirmed_batches(domi_cluster_gateway *gateway);
/* Returns whether batches on a link are unconfirmed for so long that the link counts as broken. */
bool domi_link_is_unconfirmed_too_long(const domi_cluster_gateway *gateway, const domi_link *link);
/* Start the timer that checks for unconfirmed batches (domi_tick_type), unless it runs. */
void domi_start_resend_timer_if_none(domi_cluster_gateway *gateway);
/* Make sure that domi_links_publish_all_batches() runs at the end of this phase, and
 * domi_links_resend_unconfirmed() later. */
void domi_links_plan_publish_at_phase_end(domi_cluster_gateway *gateway);
/* Publish bytes in NATS on a subject that begins with the cluster's name. Consumes the slice. */
void domi_publish_on_cluster_subject(domi_cluster_gateway *gateway, const char *subject,
                                     domus_slice bytes);
/* Write an address as a name for other nodes: HERE becomes this node's id; nobody, a lease of 0. */
void domi_name_of_address_on_wire(domi_cluster_gateway *gateway, domus_address address,
                                  domus_remote_name *ret_name);
/* Write the name of the current message's sender. An asker without an address, such as a foreign
 * thread, is given the name of this gateway, which receives the answer in its place. */
void domi_name_of_current_sender_on_wire(domi_cluster_gateway *gateway, bool is_ask,
                                         domus_remote_name *ret_name);
/* Find the address for a name that has come from another node. Returns 0; a negative errno. */
int domi_address_of_remote_name(domi_cluster_gateway *gateway, const domus_remote_name *name,
                                domus_address *ret_address);
/* Pickle a message into the gateway's buffer `message`. Returns its bytes, or a negative errno. */
int domi_gateway_pickle_message(domi_cluster_gateway *gateway, const domus_type *type,
                                const void *payload);
/* Unpickle a message into the gateway's buffer `payload`. Returns 0; a negative errno. */
int domi_gateway_unpickle_message(domi_cluster_gateway *gateway, domus_slice message,
                                  const domus_type **ret_type);

/* --- send.c ----------------------------------------------------------------------------------- */

/* Handle a message to a remote actor, which has come to the gateway (domus/remote.h). */
int domi_send_message_to_remote_actor(domus_stack *stack, void *self, const void *payload);

/* --- follow.c --------------------------------------------------------------------------------- */

/* Give up what the gateway has of nodes that, by the table of nodes, have gone down or ended. */
void domi_peers_follow_downs_of_nodes(domi_cluster_gateway *gateway);

/* Break the link with one gateway of a peer: asks of that gateway are cancelled, and its watches
 * end. If this gateway sends its own asks and watches to that gateway, they fail. `is_told`: the
 * other side has broken the link first. */
void domi_peer_end_session_of_link(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index,
                                   bool is_told);

/* Break the links to all gateways of a peer, because its node is down or has ended. */
void domi_peer_end_sessions_of_all_links(domi_cluster_gateway *gateway, domi_peer *peer);

/* --- beats.c ---------------------------------------------------------------------------------- */

/* Publish a heartbeat of this node, with a state of enum domi_heartbeat_state. Gateway 0. */
void domi_heartbeat_publish(domi_cluster_gateway *gateway, uint8_t state);

/* Publish a heartbeat of this node now, unless one was sent just before. Gateway 0. */
void domi_heartbeat_publish_unless_recent(domi_cluster_gateway *gateway);

/* Send each gateway of this node a notice that the table of nodes has changed. Gateway 0. */
void domi_tell_gateways_that_nodes_changed(domi_cluster_gateway *gateway);

/* --- receive.c -------------------------------------------------------------------------------- */

/* Handle bytes that have come on a subject of NATS: they are a heartbeat or a batch. */
void domi_receive_heartbeat_or_batch(domi_cluster_gateway *gateway, domus_slice bytes);

/* --- interest.c ------------------------------------------------------------------------------- */

/* domi_interest_send_changes_to_all_nodes() sends changes of groups to the nodes that are up.
 * domi_interest_check_groups_at_heartbeat() also checks whether groups still have members here, and
 * sends unconfirmed changes again. */
void domi_interest_send_changes_to_all_nodes(domi_cluster_gateway *gateway);
void domi_interest_check_groups_at_heartbeat(domi_cluster_gateway *gateway);

/* Forget which changes of groups a peer has, because the peer is down. */
void domi_interest_forget_what_peer_knows(domi_peer *peer);

/* Handle that a group has got its first member on this node (domus_remote_joined). */
int domi_tell_nodes_of_first_group_member(domus_stack *stack, void *self, const void *payload);

/* Handle changes of a peer's groups; or that a peer confirms this node's changes up to `held`. */
void domi_interest_store_changes_of_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t from_gateway, const domi_wire_envelope *envelope);
void domi_interest_store_confirmed_by_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                           uint64_t held);

/* --- publish.c -------------------------------------------------------------------------------- */

/* Make outlets for the groups that were opened before the gateway began. Returns 0; an error of
 * domus_remote_join(). */
int domi_wide_make_outlets_of_groups(domi_cluster_gateway *gateway);

/* Send a publication of an actor here, which the group's outlet has got, to the other nodes. */
void domi_publication_send_to_nodes(domi_cluster_gateway *gateway,
                                    const domus_remote_message *message, const void *payload);

/* Find the group of a publication that has come from another node, and cut the group's name off
 * `message`. Returns 0; -EBADMSG; -ENOENT when the group was not opened on this node. */
int domi_publication_cut_off_group_name(domi_cluster_gateway *gateway, domus_slice *message,
                                        domus_group *ret_group);

/* --- asks.c ----------------------------------------------------------------------------------- */

/* Enter an ask to a peer into the table of asks: the envelope gets the ask's id, and the time left
 * until `deadline_ns` (0: no deadline). Returns 0; -ENOBUFS at asks_max; -ENOMEM. */
int domi_ask_enter_into_table(domi_cluster_gateway *gateway, domi_peer *peer, domus_kept kept,
                              uint64_t deadline_ns, domi_wire_envelope *envelope,
                              domi_ask **ret_ask);
/* Find an ask to this peer by its id; NULL if the ask is over, or went to another peer. */
domi_ask *domi_ask_find_by_id(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id);
domi_ask *domi_ask_find_by_kept_ask(domi_cluster_gateway *gateway, domus_kept kept,
                                    uint64_t *ret_id);
void domi_ask_free_entry(domi_cluster_gateway *gateway, domi_ask *ask);
/* Fail all asks to a peer; and free the entries of asks whose deadlines have passed. */
void domi_asks_fail_all_of_peer(domi_cluster_gateway *gateway, const domi_peer *peer, int error);
void domi_asks_forget_after_deadline(domi_cluster_gateway *gateway);
/* Enter a peer's ask to an actor here into its table. Returns 0, and a tag; -ENOBUFS; -ENOMEM. */
int domi_served_enter_ask_into_table(domi_cluster_gateway *gateway, domi_peer *peer,
                                     uint16_t from_gateway, uint64_t id, uint64_t *ret_tag);
domi_served *domi_served_find_ask_by_tag(domi_cluster_gateway *gateway, uint64_t tag);
void domi_served_free_entry_of_ask(domi_cluster_gateway *gateway, domi_served *served);
/* Cancel an ask that a peer has sent, by its id; or all asks that a gateway of a peer has sent. */
void domi_served_cancel_ask_by_id(domi_cluster_gateway *gateway, const domi_peer *peer,
                                  uint64_t id);
void domi_served_cancel_asks_of_peer_gateway(domi_cluster_gateway *gateway, const domi_peer *peer,
                                             uint16_t from_gateway);
/* Tell a peer that its ask has failed with `error`. */
void domi_send_failure_of_ask_to_node(domi_cluster_gateway *gateway, domi_peer *peer,
                                      uint16_t to_gateway, uint64_t id, int error);
/* Send the answer of an actor here back to the node that has asked. */
int domi_asks_on_answer_send_it_to_node(domus_stack *stack, void *self, const domus_answer *answer);

void domi_asks_free_tables(domi_cluster_gateway *gateway);

/* --- watches.c -------------------------------------------------------------------------------- */

/* Handle the runtime's notice that an actor here watches a remote actor (domus_remote_watch). */
int domi_watched_begin_watch_for_local(domus_stack *stack, void *self, const void *payload);
/* Report the end of a remote actor to the actors here that watch it. */
void domi_watched_report_end(domi_cluster_gateway *gateway, const domus_remote_name *name,
                             int reason);
/* Report the ends of all watched actors of a peer as lost, because the peer is down. */
void domi_watched_report_all_lost(domi_cluster_gateway *gateway, domi_peer *peer);
/* Tell the actors here that wait for room on the way to a peer that there is room now. */
void domi_watched_report_room(domi_cluster_gateway *gateway);
/* Begin to watch a local actor for a peer, which has sent the actor's name. */
void domi_watching_add_for_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                uint16_t from_gateway, const domus_remote_name *name);
/* Tell the peers that watch a local actor that the actor has ended (domus_down_type). */
int domi_watching_tell_peers_of_end(domus_stack *stack, void *self, const void *payload);
/* End the watches that one gateway of a peer has on local actors. */
void domi_watching_end_for_gateway(domi_cluster_gateway *gateway, const domi_peer *peer,
                                   uint16_t from_gateway);

void domi_watches_free_all(domi_cluster_gateway *gateway);

/* --- spawn.c ---------------------------------------------------------------------------------- */

/* Send the ask of domus_cluster_spawn() to its node; spawn here as another node has asked. */
int domi_spawn_here_or_ask_peer_to(domus_stack *stack, void *self, const void *payload);
void domi_spawn_for_peer_and_answer(domi_cluster_gateway *gateway, domi_peer *peer,
                                    uint16_t from_gateway, const domi_wire_envelope *envelope,
                                    domus_slice rest);

/* --- say.c: lines in the log ------------------------------------------------------------------ */

/* Log the changes since the last call: a line for each node that is up, down or has ended, for this
 * node's connection to servers, and for another node with its name. A change that has been undone
 * meanwhile is not logged. Gateway 0. */
void domi_log_changes_of_nodes(domi_cluster_gateway *gateway);

/* Log that a message of this type could not be pickled, once for each type. */
void domi_log_type_without_pickling_once(domi_cluster_gateway *gateway, const domus_type *type,
                                         int error);

/* --- observed.c ------------------------------------------------------------------------------- */

/* Begin, and end, to show tables of the cluster to observers of the system (domus/figures.h). */
void domi_cluster_show_figures(domus_cluster *cluster);
void domi_cluster_hide_figures(domus_cluster *cluster);

/* --- registrar.c ------------------------------------------------------------------------------ */

/* The behaviour of the registrar, the actor that holds the node's lease and its names (registry.h).
 * Its state begins as a pointer to the cluster. */
extern const domus_behaviour domi_registrar_behaviour;

/* --- gateway.c -------------------------------------------------------------------------------- */

extern const domus_behaviour domi_gateway_behaviour;
/* Fill in the options of a gateway's client of NATS, without the actor that gets its events. */
struct domus_nats_options;
void domi_cluster_fill_client_options(const domus_cluster_options *options,
                                      struct domus_nats_options *ret_options);
extern const domus_type domi_tick_type;   /* timer event: check for unconfirmed batches */
extern const domus_type domi_follow_type; /* notice to gateways: act on the table of nodes */
extern const domus_type domi_begun_type; /* ask of an opener: answered when the gateway has begun */
extern const domus_type domi_leave_type; /* ask of domus_cluster_leave(): this node leaves */
extern const domus_type domi_spawn_type; /* the ask of domus_cluster_spawn() to a gateway */

#endif
