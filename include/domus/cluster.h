/* Clusters: systems on several machines whose actors send to each other by the verbs that they use
 * anyway (libdomus-cluster). docs/cluster.md shows how.
 *
 *     static const domus_pickler picklers[] = {{.type = &hello_type, .version = 1, ...}, {0}};
 *     domus_cluster_options options = {.name = "shop", .servers = "127.0.0.1:4222",
 *                                      .picklers = picklers};
 *     domus_cluster_open(system, &options, error, sizeof error, &cluster);
 *
 * Each system is a *node*. Nodes meet at a NATS server, or a cluster of these: they name the same
 * one, and the same cluster. Without servers the program is a cluster of one node, with the same
 * verbs.
 *
 * **Addresses.** A domus_address may be that of an actor on another node: a message has brought it
 * (in its payload, or as its sender), or it was spawned or found there. It is used as any other:
 * domus_notice(), domus_ask() with its time-out, domus_reply(), domus_forward(), domus_cancel(),
 * domus_watch_actor(), domus_watch_room(), domus_stop(). domus_link_actor() returns -EOPNOTSUPP.
 *
 * **Messages.** A type travels if it has a pickler (domus/pickle.h), on both nodes. An ask of any
 * other type fails with -ENOENT on the way out, and with -EOPNOTSUPP if only the other node does
 * not know it; such a notice is lost, counted, and told in the log once for each type.
 *
 * **The promise.** For each pair of actors, messages of a kind come in the order in which they
 * were sent, each at most once. They come as long as the nodes hear each other, also over other
 * servers: what a connection has lost is sent again. When a node is silent for down_after_ns it is
 * *down*: what was on the way to it counts as lost (it may have come all the same), asks to it fail
 * with -EHOSTDOWN, and who watches one of its actors hears -EHOSTDOWN. It may be heard again later;
 * then its addresses are as good as before. When a node has ended, or its program has begun anew,
 * the addresses of its actors answer -ESTALE for ever.
 *
 * **At the limit.** Up to queued_max bytes may be on the way to one node, sent and not confirmed;
 * from then on messages to it are refused with -ENOBUFS, as by a full mailbox, and
 * domus_watch_room() tells when there is room again. At twice as much answers are refused, too:
 * who has asked gets -ENOBUFS.
 *
 * **Trust.** All nodes of a cluster trust each other: one that knows the servers' secrets may send
 * anything to any actor. Their messages are read as if strangers had sent them, all the same: wrong
 * bytes are counted, and do no harm. */
#ifndef DOMUS_CLUSTER_H
#define DOMUS_CLUSTER_H

#include <domus/conversation.h>
#include <domus/front.h>
#include <domus/grain.h>
#include <domus/group.h>
#include <domus/pickle.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;
struct domus_pipeline_stage;

/* A handle of a cluster: the membership of a system in it as one of its nodes. */
typedef struct domus_cluster domus_cluster;

/* most bytes of the name of a cluster, of a node or of an export */
#define DOMUS_CLUSTER_NAME_MAX 63u
/* most other nodes of the cluster that a node knows at a time */
#define DOMUS_CLUSTER_NODES_MAX 1024u
/* most groups over the cluster that a node knows at a time */
#define DOMUS_CLUSTER_GROUPS_MAX 65536u

/* Defaults of fields of domus_cluster_options: a 0 in the field means this value. */
#define DOMUS_CLUSTER_HEARTBEAT  UINT64_C(500000000)
#define DOMUS_CLUSTER_DOWN_AFTER UINT64_C(2000000000)
#define DOMUS_CLUSTER_QUEUED_MAX (UINT64_C(8) * 1024 * 1024)
#define DOMUS_CLUSTER_ASKS_MAX   65536u

/* A behaviour that other nodes may spawn here. */
typedef struct domus_cluster_export {
    /* name of the export: 1..63 printable ASCII bytes without space; NULL ends a list */
    const char *name;
    const domus_behaviour *behaviour; /* the behaviour of a state actor */
    /* type of the input of a spawn, which has a pickler; NULL: there is no input */
    const domus_type *input;
    /* Fill the state of a new actor from its input; `self` has behaviour->state_size bytes, which
     * are zeros. It must neither block nor call domus_*. Returns 0; a negative errno, with which
     * the spawn fails. NULL: the state begins with zeros. */
    int (*make)(const void *input, void *self);
    /* options of each such spawn, as of domus_spawn_with(), without `detached` */
    domus_spawn_options options;
} domus_cluster_export;

/* Options of domus_cluster_open(). All fields may be 0, except `name`. Texts and numbers are
 * copied; what `picklers`, `exports` and `front` point to has to stay valid until the system is
 * freed. */
typedef struct domus_cluster_options {
    const char *name; /* name of the cluster: 1..63 letters, digits, '-' and '_' */
    /* name of this node, unique in the cluster: 1..63 letters, digits, '-', '_' and '.'; NULL or
     * "auto": one is made of the host's name and a random number */
    const char *node;
    /* addresses of the NATS servers, as in domus_nats_options; NULL or "": this machine alone */
    const char *servers;

    /* Credentials of this node at the servers, with the meaning that they have in
     * domus_nats_options. */
    const char *user, *password, *token, *nkey_seed, *jwt;
    /* TLS for the node's connections to the servers; NULL: none */
    const struct domus_pipeline_stage *front;

    /* time between two signs of life of this node; 10 ms..10 s; 0 means 500 ms */
    uint64_t heartbeat_ns;
    /* silence after which a node is down; twice the heartbeat..1 min; 0 means 2 s, or four times
     * the heartbeat if that is more */
    uint64_t down_after_ns;
    /* Duration of this node's lease in the key-value store: when it is over, other nodes take over
     * the names and parts of a node that has ended. All nodes of a cluster need the same, because
     * the time belongs to the bucket of leases. 500 ms..1 min; 0: as down_after_ns, but at least
     * 500 ms. */
    uint64_t lease_ns;
    uint64_t queued_max; /* most bytes on the way to one other node, 64 KiB..1 GiB; 0 means 8 MiB */
    uint32_t replicas;   /* servers that hold a copy of the key-value store, 1..5; 0 means 1 */
    /* most asks to other nodes that are under way on each thread, and most asks of one other node
     * that are under way here; 1..1048576; 0 means 65,536. One more fails with -ENOBUFS */
    uint32_t asks_max;
    /* most addresses of remote actors in use at a time, 256..16,777,216; 0 means 262,144 */
    uint32_t addresses_max;
    /* most bytes of one message as it travels, 1 KiB..512 KiB; 0 means 512 KiB */
    uint32_t message_max;

    /* picklers of the types that travel between nodes, as for domus_picklers_new(); NULL: none */
    const domus_pickler *picklers;
    /* behaviours that other nodes may spawn on this node; NULL: none */
    const domus_cluster_export *exports;
    /* The kinds of grains that are spread over the nodes ("grains" below), a list that a kind with
     * a NULL name ends; NULL: none. */
    const domus_grain_kind *grains;
    bool hosts_no_grains; /* true: this node sends to grains, but none live on it */

    /* A replacement of domus_nats_open() for tests: it makes the client of each gateway, on the
     * thread of the gateway. The running actor is the client's `events`. NULL:
     * domus_nats_open(). */
    int (*open_client)(domus_stack *stack, void *context, uint32_t gateway,
                       domus_address *ret_client);
    void *context;
    uint64_t seed; /* seed of the random numbers of nodes, for runs that repeat; 0: a random seed */
} domus_cluster_options;

/* Check the options of a node, all at once: names, numbers, types, and the texts of servers.
 * Thread-safety: any thread.
 * Returns 0; -EINVAL, -EBADMSG for an nkey seed that is none, and -E2BIG for too many servers:
 * `error` has one line, which begins with the key of the configuration where there is one
 * ("servers: ..."); -ENOMEM. */
DOMUS_API int domus_cluster_check(const domus_cluster_options *options, char *error,
                                  size_t error_size);

/* Make a running system a node. It begins to connect at once, and goes on for its local actors
 * whether it finds a server or not.
 *
 * Ownership: the caller's; domus_cluster_close() is called once.
 * Thread-safety: a foreign thread, after domus_system_start().
 * Returns 0; as domus_cluster_check(); -EEXIST when the system is a node; -EBUSY when grains of a
 * kind that is to be spread live already; -ENOMEM; and as domus_outside_spawn(). */
DOMUS_API int domus_cluster_open(struct domus_system *system, const domus_cluster_options *options,
                                 char *error, size_t error_size, domus_cluster **ret_cluster);

/* Leave the cluster: the grains of this node stop behind their mail and go to others, and these are
 * told that this node ends. It blocks for as long as that takes, at most `down_after_ns` and
 * `heartbeat_ns`. Thread-safety: a foreign thread, before domus_system_stop(). */
DOMUS_API void domus_cluster_leave(domus_cluster *cluster);

/* Free the handle of a cluster, after domus_system_stop(). NULL is allowed, and does nothing. */
DOMUS_API void domus_cluster_close(domus_cluster *cluster);

/* The cluster of a program of domus_main(), for `joiner` of a domus_cluster_member (domus/front.h):
 *
 *     static domus_cluster *cluster;
 *     static const domus_cluster_options options = {.picklers = picklers, .exports = exports};
 *     static const domus_cluster_member member = {&domus_cluster_front, &options, &cluster};
 *     static const domus_program program = {.name = "shop", .start = start, .cluster = &member};
 *
 * All fields up to `message_max` are those of the section `cluster` of the configuration, except
 * that `name` counts only if the section has none; `front` is that of the program
 * (domus_tls_front), by `cluster.tls`. The other fields are the program's. Without
 * `cluster.servers` it is a cluster of this machine alone, with the same verbs. */
DOMUS_API extern const domus_joiner domus_cluster_front;

/* --- nodes ------------------------------------------------------------------------------------ */

/* A node of a cluster. It is used by value, and compared by `id`. */
typedef struct domus_node {
    domus_cluster *cluster;
    uint64_t id; /* number of this start of the node's program; another start has another number */
} domus_node;

/* The state of another node, as this node sees it. */
typedef enum domus_node_state {
    DOMUS_NODE_HEARD, /* this node hears the other node, which has not heard this node yet */
    DOMUS_NODE_UP,
    DOMUS_NODE_DOWN, /* the node has been silent for down_after_ns */
    /* the node has left, or has begun anew; it is listed until nothing is left of it */
    DOMUS_NODE_ENDED,
} domus_node_state;

/* Facts about a node of the cluster, as this node sees it. */
typedef struct domus_node_info {
    domus_node node;
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    domus_node_state state;
    /* whether the entry is this node itself; then its state says whether it has a server */
    bool is_here;
    /* whether the node gives its parts of grains to other nodes, and will leave the cluster then */
    bool is_leaving;
    uint16_t threads; /* number of threads of the node, each of which has a gateway */
    /* time at which the node came into this state, on the clock of domus_now_ns() */
    uint64_t since_ns;
    /* round-trip time of the last batch that the node has confirmed; 0: none yet */
    uint64_t rtt_ns;
    uint64_t queued_bytes; /* bytes sent to the node that it has not confirmed */
    uint64_t sent;         /* messages that went to the node (sent), or came from it (received) */
    uint64_t received;
    uint64_t refused; /* messages to the node that were refused, or could not be written */
    uint64_t lost;    /* messages that were on the way to the node when it went down */
    uint64_t resent;  /* batches that were sent to the node a second time */
} domus_node_info;

/* Counts since this node was opened, over all nodes that it has known. */
typedef struct domus_cluster_counts {
    uint64_t sent;     /* messages that have left this node for other nodes */
    uint64_t received; /* messages that have come to this node from other nodes */
    /* messages to other nodes that could not be written, or whose node is down */
    uint64_t refused;
    /* messages that were on the way when their node went down; they may have come all the same */
    uint64_t lost;
    uint64_t resent;  /* batches that were sent to another node again */
    uint64_t dropped; /* notices from other nodes that found no actor here, or a full mailbox */
    /* batches and messages from other nodes that could not be read, or were for nobody */
    uint64_t wrong;
} domus_cluster_counts;

/* Return the counts of this node. Thread-safety: any thread; so it is for the next three
 * functions. */
DOMUS_API domus_cluster_counts domus_cluster_count(const domus_cluster *cluster);

/* Return the handle of this node, as others see it. */
DOMUS_API domus_node domus_cluster_here(domus_cluster *cluster);

/* Write what is known of up to `room` nodes, this one first. Returns how many nodes are known,
 * which may be more than `room`. */
DOMUS_API uint32_t domus_cluster_nodes(domus_cluster *cluster, domus_node_info *ret_nodes,
                                       uint32_t room);

/* Find the node that is up, or this one, by its name. Returns 0; -ENOENT. */
DOMUS_API int domus_cluster_find_node(domus_cluster *cluster, const char *name,
                                      domus_node *ret_node);

/* --- names -------------------------------------------------------------------------------------
 *
 * Names of actors that are unique in the cluster, by the key-value store of JetStream, which the
 * servers have to offer. A node holds a lease there, which it renews three times in its time. An
 * actor that has a name keeps it until it ends, or gives it back, or its node could not renew the
 * lease in time: then the name may be that of another actor already, and the actor is sent a notice
 * of domus_cluster_lost_type. A name of a node whose lease is over is free.
 *
 * Without servers names are unique in this system, by the same verbs. (They are others than those
 * of domus/name.h, which stay each system's own.)
 *
 * A name is as one of domus/name.h. All verbs return DOMUS_PARKED; -EINVAL for a wrong name; and as
 * domus_ask_within(). Thread-safety: only from within a handler. */

/* Give the running actor a name. The answer has no payload (domus_cluster_done_type). Errors:
 * -EEXIST when another actor has it; -EALREADY when this actor has it; -EHOSTDOWN when this node
 * has no lease, because no server with JetStream was found; -EOPNOTSUPP when the servers have no
 * JetStream; -ENOSPC when this node has 65,536 names; and those of domus/nats_kv.h. */
DOMUS_API int domus_cluster_register(domus_stack *stack, domus_cluster *cluster, const char *name,
                                     uint64_t timeout_ns, domus_resumed *then);

/* Give a name of the running actor back. Errors: -ENOENT when it is not this actor's; -EHOSTDOWN
 * when this node has no lease; -EOPNOTSUPP when the servers have no JetStream; and those of
 * domus/nats_kv.h. */
DOMUS_API int domus_cluster_unregister(domus_stack *stack, domus_cluster *cluster, const char *name,
                                       uint64_t timeout_ns, domus_resumed *then);

/* Find the actor that has a name. The answer is a domus_cluster_found. Errors: -ENOENT; -EHOSTDOWN
 * when no server answers; -EOPNOTSUPP when the servers have no JetStream; and those of
 * domus/nats_kv.h. */
DOMUS_API int domus_cluster_find(domus_stack *stack, domus_cluster *cluster, const char *name,
                                 uint64_t timeout_ns, domus_resumed *then);

/* A name that an actor of this node has, and that actor. */
typedef struct domus_cluster_name {
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    domus_address actor; /* the actor that has the name, and that may have ended meanwhile */
} domus_cluster_name;

/* Write the names that actors of this node have, in no order, from number `from` on and at most
 * `room`; what is left of the room gets empty names. Returns how many there are in all. A name that
 * comes or goes while others are listed may move them, so that one is missed, or there twice.
 * Thread-safety: any thread. */
DOMUS_API uint32_t domus_cluster_names(domus_cluster *cluster, uint32_t from,
                                       domus_cluster_name *ret_names, uint32_t room);

typedef struct domus_cluster_found {
    /* the actor that was found by its name, and that may have ended meanwhile */
    domus_address address;
} domus_cluster_found;

/* The payload of a notice of domus_cluster_lost_type: the name that the actor has lost. */
typedef struct domus_cluster_lost {
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
} domus_cluster_lost;

DOMUS_API extern const domus_type domus_cluster_done_type;
DOMUS_API extern const domus_type domus_cluster_found_type;
DOMUS_API extern const domus_type domus_cluster_lost_type;

/* --- groups ------------------------------------------------------------------------------------
 *
 * A group over the cluster is a group (domus/group.h) that has members on any nodes. All verbs of
 * that header work with its handle: actors join and leave the group of their own system, and what
 * they publish reaches the members on all nodes, as one message to each node that has members.
 * domus_group_members() counts those of this node. Groups that were opened by domus_group_open()
 * alone stay each system's own; a group of one name is one group in a system, however it is opened.
 *
 * Order: the publications of one actor to one group come to each member, on whatever node, in the
 * order in which they were published, each at most once. They come as messages to other nodes do:
 * the types need picklers, and publications that cannot be sent do not reach the members of that
 * node. They are counted as `refused` (no pickler, or a node that is down, or has queued_max bytes
 * on the way), `lost` (the node went down meanwhile) or `dropped` (that node had no room for it),
 * or, when the gateway of the publisher's thread has a full mailbox, as a refusal of the thread;
 * and the publisher does not hear of it.
 *
 * A node tells the others when a group gets its first member there. Publications of other nodes
 * reach that member from when they know it, about a round trip later; so a member that is the first
 * on its node, and tells a publisher elsewhere by a message that it has joined, may miss some. The
 * next members of that node do not: what domus/group.h promises holds for them. When a node is
 * down the others go on to know its groups until it has ended. */

/* Open a group over the cluster. Call this once, and keep the handle. Without servers the group is
 * that of domus_group_open().
 *
 * Thread-safety: only from within a handler.
 * Returns 0; as domus_group_open(); -ENOSPC when this node knows DOMUS_CLUSTER_GROUPS_MAX groups
 * over the cluster, or has no address left (addresses_max); -ESHUTDOWN when the system stops. */
DOMUS_API int domus_cluster_group_open(domus_stack *stack, domus_cluster *cluster, const char *name,
                                       domus_group *ret_group);

/* --- spawn ------------------------------------------------------------------------------------ */

/* The payload of the answer to domus_cluster_spawn(). */
typedef struct domus_cluster_spawned {
    domus_address address;
} domus_cluster_spawned;

DOMUS_API extern const domus_type domus_cluster_spawned_type;

/* Spawn an actor on a node, of a behaviour that is exported there, and suspend the conversation:
 * write `return domus_cluster_spawn(...)`. The actor is a child of nobody. `input` is of the
 * export's type, and stays the caller's; NULL if there is none.
 *
 * Errors of the answer: -ENOENT when no behaviour of this name is exported there; -EINVAL for an
 * input of another type; what `make` or the spawn returned there; -EHOSTDOWN, -ESTALE, -ETIMEDOUT,
 * -ENOBUFS and -ECANCELED as of any ask to an actor there.
 * Thread-safety: only from within a handler.
 * Returns DOMUS_PARKED; -EINVAL for a wrong name; what domus_pickle() returned for the input; and
 * as domus_ask_within(). */
DOMUS_API int domus_cluster_spawn(domus_stack *stack, domus_node node, const char *behaviour,
                                  const domus_type *input_type, const void *input,
                                  uint64_t timeout_ns, domus_resumed *then);

/* --- grains ------------------------------------------------------------------------------------
 *
 * The kinds of grains that the options name are spread over the nodes: domus_grain_ask(),
 * domus_grain_notice() and their like (domus/grain.h) find the one life of a kind and a key in the
 * cluster, or let one begin. Actors get the handle of a kind by domus_grain_open() with the same
 * name and behaviour. Messages to grains, and their answers, need picklers.
 *
 * Grains fall into 256 parts by a hash of kind and key. Which node has a part follows from the
 * names of the nodes that are up, so the parts are spread evenly, and a node that comes or goes
 * moves only its own. A node holds its parts by entries in the key-value store, which are worth as
 * much as its lease: of a node that has died they are free when the lease is over. The revision of
 * the entry is the domus_grain_fence() of the lives.
 *
 * When a part goes to another node in order, because a node has come or leaves, its grains stop
 * behind their mail, and the next lives begin on the other node; messages that come meanwhile wait
 * at their senders. When a node could not renew its lease in time, its grains are stopped at once:
 * others may live elsewhere by then, and a store behind grains has to refuse what has a smaller
 * fence than it has seen. Where there is no such store, two lives may do something at the same
 * time for as long as it takes the first one to notice.
 *
 * The promises of domus/grain.h hold with these additions. Messages of one sender to one grain stay
 * in order while a part moves; what was on the way to a node that goes down is lost. An
 * ask also fails with
 *
 *   -EHOSTDOWN   its node went down; or no node had the part for down_after_ns
 *   -ESTALE      its life was stopped meanwhile, for another node: it may have done a part of it
 *   -ENOBUFS     too much is on the way to its node, or waits for parts (queued_max, each)
 *   -EOPNOTSUPP  the servers have no JetStream; or the node does not know the type
 *   -ENOENT      the type has no pickler; or the node has no such kind
 *
 * A notice to a grain elsewhere is counted as refused or dropped in such a case, and
 * domus_grain_notice() returns 0. All nodes that host grains have to name the same kinds.
 *
 * Without servers all grains live here, as those of domus/grain.h, and have no fence. */

/* Counts of the parts of grains that this node has or had. */
typedef struct domus_cluster_grain_counts {
    uint64_t parts;   /* parts of the 256 that this node has now */
    uint64_t taken;   /* parts that this node has taken over */
    uint64_t given;   /* parts that this node has handed over to another node in order */
    uint64_t lost;    /* parts that this node has lost because its lease was over */
    uint64_t waiting; /* messages that wait at this node now until some node has their part */
    /* messages that came back because the other node did not have their part any more */
    uint64_t returned;
} domus_cluster_grain_counts;

/* Return the counts of grains of this node. Thread-safety: any thread. */
DOMUS_API domus_cluster_grain_counts domus_cluster_count_grains(const domus_cluster *cluster);

#ifdef __cplusplus
}
#endif

#endif
