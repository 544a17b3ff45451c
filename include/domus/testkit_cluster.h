/* A simulated cluster: several test kits (domus/testkit.h), each one node, and servers of NATS
 * between them, on one time line and with the faults that a seed draws.
 *
 *     domus_testkit_cluster_options options = {.servers = 3};
 *     domus_testkit_cluster *cluster;
 *     domus_testkit_cluster_new(seed, &options, &cluster);
 *     for (uint32_t i = 0; i < 3; i++) {
 *         domus_testkit_node_options node = {.name = names[i], .clock_drift_ppm = 50 * i};
 *         domus_testkit_cluster_add_node(cluster, &node, &nodes[i]);
 *         ... spawn in domus_testkit_system(domus_testkit_cluster_kit(cluster, nodes[i])) ...
 *     }
 *     domus_testkit_cluster_advance(cluster, SECOND);
 *     domus_testkit_cluster_cut(cluster, nodes[0], DOMUS_EVERY, DOMUS_BOTH_WAYS, DOMUS_CUT_HOLDS);
 *     domus_testkit_cluster_advance(cluster, 10 * SECOND);
 *
 * **The clients** are actors that take the verbs of domus/nats.h and send its notices, as those of
 * domus_nats_open() do, and are made by domus_testkit_cluster_open_client(). They have no bytes and
 * no sockets: what they say goes as messages over simulated connections to the servers.
 *
 * **A connection** has two legs, one to the server and one from it. Each leg is a queue: a message
 * takes the latency of the leg and a part of its jitter, and never overtakes another one of its
 * leg. Between different pairs there is no order, as in a real network.
 *
 * **The servers** know the subscriptions of each other by routes, which are legs too. They deliver
 * with wildcards and queue groups, answer "no responders", drop clients that are slow or silent,
 * and have buckets of JetStream (domus/nats_kv.h): one of them is the leader of all buckets, as
 * long as it reaches more than half of the servers. Its state survives restarts. The
 * API of JetStream has what buckets need: STREAM.CREATE, INFO, DELETE and MSG.GET, DIRECT.GET,
 * CONSUMER.CREATE, INFO and DELETE; anything else is answered as a wrong request (10003).
 *
 * **Order** is kept between two connections. A client that comes back at another server may
 * overtake what it has said before, and may hear a message again that has waited on the route to
 * that server: nats-server does the same, and whoever needs more numbers his messages.
 *
 * **Chance** comes from the seed alone, so the same seed and the same calls give the same run, byte
 * for byte in its trace. Faults that are set as probabilities are drawn for each message.
 *
 * **No loss is silent.** Each copy of a message is delivered, or counted in one of the fields
 * `lost_*` of domus_testkit_cluster_counts, and told to the observer.
 *
 * Thread-safety of all functions here: one thread at a time for each cluster, and never from a
 * handler (-EBUSY), except domus_testkit_cluster_open_client(). */
#ifndef DOMUS_TESTKIT_CLUSTER_H
#define DOMUS_TESTKIT_CLUSTER_H

#include <domus/nats.h>
#include <domus/testkit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A simulated cluster: several kits that share one time line and simulated servers. */
typedef struct domus_testkit_cluster domus_testkit_cluster;

/* The greatest numbers of things in a simulated cluster. */
#define DOMUS_TESTKIT_NODES_MAX   64u
#define DOMUS_TESTKIT_SERVERS_MAX 8u
/* most clients over the whole run, with those of crashed kits */
#define DOMUS_TESTKIT_CLIENTS_MAX 65536u
#define DOMUS_TESTKIT_BUCKETS_MAX 64u
/* most entries of a bucket with its history; beyond it a change fails with the server's error
 * 10077 */
#define DOMUS_TESTKIT_ENTRIES_MAX 65536u
/* most consumers of a bucket; beyond it a further one fails with the server's error 10026 */
#define DOMUS_TESTKIT_CONSUMERS_MAX 4096u
/* the probability 1, in parts of a million */
#define DOMUS_TESTKIT_PPM 1000000u

/* The number of lines that the trace of a cluster keeps, which are the newest ones, and the most
 * bytes of a line. */
#define DOMUS_TESTKIT_CLUSTER_TRACE_MAX  4096u
#define DOMUS_TESTKIT_CLUSTER_LINE_BYTES 192u

/* A value for the number of a node or a server that means every one of them. */
#define DOMUS_EVERY UINT32_MAX

/* Options of a simulated cluster. All fields may be 0, which means the default. */
typedef struct domus_testkit_cluster_options {
    uint32_t servers; /* number of the cluster's servers, 1..DOMUS_TESTKIT_SERVERS_MAX; 0 means 1 */

    /* Times of legs between clients and servers, of routes, and of the store of the leader, each
     * with a jitter that is drawn for each message. At least 1 us, at most 1 h. */
    uint64_t latency_ns; /* time that a message takes on a leg; 0 means 100 us */
    /* greatest jitter of a leg; 0 means 100 us; DOMUS_TESTKIT_NO_JITTER: none */
    uint64_t jitter_ns;
    /* time that a message takes on a route between servers; 0 means 50 us */
    uint64_t route_latency_ns;
    /* time that the store of the leader takes to make a change; 0 means 200 us */
    uint64_t store_latency_ns;

    /* Settings of clients, with the meanings of domus_nats_options. */
    uint64_t buffer_max; /* most bytes that wait in a client; 0: DOMUS_NATS_BUFFER_MAX */
    /* most requests of a client under way; 0: DOMUS_NATS_INFLIGHT_MAX */
    uint32_t inflight_max;
    /* most subscriptions of a client; 0: DOMUS_NATS_SUBSCRIPTIONS_MAX */
    uint32_t subscriptions_max;
    uint32_t pings_missed_max;   /* most pings of a client without an answer; 0 means 2 */
    uint64_t ping_interval_ns;   /* time between two pings of a client; 0 means 2 s */
    uint64_t request_timeout_ns; /* longest time of a request; 0 means 5 s */
    uint64_t connect_timeout_ns; /* longest time of one connect of a client; 0 means 2 s */
    uint64_t drain_timeout_ns;   /* longest time of a drain of a client; 0 means 30 s */
    /* first wait of a client before a further attempt to connect; 0 means 100 ms */
    uint64_t backoff_min_ns;
    uint64_t backoff_max_ns; /* longest such wait; 0 means 2 s */
    bool no_echo; /* whether a client's own subscriptions without a group do not get its messages */
    uint64_t wire_max; /* bytes that a leg takes before a client's buffer fills; 0 means 1 MiB */

    /* Settings of servers. */
    /* most bytes of headers and payload that a server takes (max_payload of INFO); 0 means 1 MiB */
    uint32_t payload_max;
    /* bytes on the way to a client at which its server drops it as slow; 0 means 64 MiB */
    uint64_t pending_max;
    uint64_t stale_ns; /* silence after which a server drops a client; 0 means 6 s */
    /* time after which a route that is cut counts as broken; 0 means 4 s */
    uint64_t route_stale_ns;
    /* least time without a leader of the buckets, the greatest is twice this; 0 means 1 s */
    uint64_t election_ns;

    /* Whether there is no trace, whose digest is then 0, too: long sweeps are faster by a fifth. A
     * seed that failed fails with a trace as well. */
    bool untraced;
} domus_testkit_cluster_options;

#define DOMUS_TESTKIT_NO_JITTER UINT64_MAX

/* Make a cluster without nodes. All servers run, and know each other; the buckets have a leader.
 * `options` is copied; NULL: all defaults.
 *
 * Ownership: the caller's, until domus_testkit_cluster_free().
 * Returns 0; -EINVAL for an option out of range; -ENOMEM. */
DOMUS_API int domus_testkit_cluster_new(uint64_t seed, const domus_testkit_cluster_options *options,
                                        domus_testkit_cluster **ret_cluster);

/* Free the cluster with its kits, whose systems are stopped one after the other; messages that they
 * send then reach nobody. NULL is allowed. */
DOMUS_API void domus_testkit_cluster_free(domus_testkit_cluster *cluster);

/* --- nodes ------------------------------------------------------------------------------------ */

typedef struct domus_testkit_node_options {
    /* name of the node in the trace; copied, cut off at 31 bytes; NULL: the node's number */
    const char *name;
    /* configuration of the node's kit, as for domus_testkit_new(); copied; NULL: all defaults */
    const domus_config *config;
    /* Time by which the node's clock is behind that of the cluster at its begin, up to 100
     * years. */
    uint64_t clock_offset_ns;
    /* Difference of the rates of the clocks: nanoseconds that the node's clock goes on more, or
     * less, than the cluster's in a million: -500,000..500,000. */
    int32_t clock_drift_ppm;
    /* A function that is called when the system of a kit has stopped, before it is freed: at a
     * crash, and at the end of the cluster. It frees what the test has for that system, as
     * domus_cluster_close() does. NULL: nothing. */
    void (*on_stopped)(void *context, uint32_t node);
    void *context;
} domus_testkit_node_options;

/* Add a node: a kit of its own, with a seed that is drawn. `ret_node` gets its number; nodes are
 * numbered from 0. Returns 0; -EINVAL; -ENOSPC at DOMUS_TESTKIT_NODES_MAX; -ENOMEM. */
DOMUS_API int domus_testkit_cluster_add_node(domus_testkit_cluster *cluster,
                                             const domus_testkit_node_options *options,
                                             uint32_t *ret_node);

/* Returns the kit of a node; NULL while the node has crashed. The cluster alone moves the time of a
 * kit: within a kit, expect with a `within_ns` of 0.
 * Ownership: the cluster's. */
DOMUS_API domus_testkit *domus_testkit_cluster_kit(domus_testkit_cluster *cluster, uint32_t node);

/* Returns the context of a node for domus_testkit_cluster_open_client(). It stays valid, also over
 * crashes, as long as the cluster. NULL for a number that is no node. */
DOMUS_API void *domus_testkit_cluster_context(domus_testkit_cluster *cluster, uint32_t node);

/* Make a simulated client, as the child of the running actor and on its thread: the verbs of
 * domus/nats.h. The running actor gets its events. `context` is that of
 * domus_testkit_cluster_context() for the node, whose kit the actor must be in. `gateway` is a
 * number for the trace.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -ENOSPC at DOMUS_TESTKIT_CLIENTS_MAX; as domus_spawn(). */
DOMUS_API int domus_testkit_cluster_open_client(domus_stack *stack, void *context, uint32_t gateway,
                                                domus_address *ret_client);

/* Let a node crash: all connections of its clients end, its messages reach nobody any more, and its
 * kit is freed. (The actors' on_stop runs, because their memory has to be freed.) If it is
 * `silent`, as of a machine without power, no server is told; they notice after `stale_ns`.
 * Returns 0; -EINVAL; -EALREADY. */
DOMUS_API int domus_testkit_cluster_crash(domus_testkit_cluster *cluster, uint32_t node,
                                          bool silent);

/* Make a new kit for a node that has crashed, with its name and configuration. Its clock has gone
 * on. Returns 0; -EINVAL; -EALREADY for one that runs; as domus_testkit_new(). */
DOMUS_API int domus_testkit_cluster_start(domus_testkit_cluster *cluster, uint32_t node);

/* Suspend a node, as SIGSTOP does: it takes no step until it is resumed. Bytes of servers wait in
 * its sockets. Returns 0; -EINVAL; -EALREADY. */
DOMUS_API int domus_testkit_cluster_suspend(domus_testkit_cluster *cluster, uint32_t node);

/* The behaviour of the clock of a node that is resumed after a suspension. */
typedef enum domus_testkit_clock {
    /* The node goes on with its old time, with the messages that have come, and then its clock
     * jumps to where it would be (SIGCONT). */
    DOMUS_CLOCK_JUMPS = 0,
    /* The clock goes on with the old time: the node never hears of the time that has passed (a
     * virtual machine that was paused). */
    DOMUS_CLOCK_STOOD,
} domus_testkit_clock;

/* Resume a node that was suspended. Returns 0; -EINVAL; -EALREADY; -ETIMEDOUT as
 * domus_testkit_run(). */
DOMUS_API int domus_testkit_cluster_resume(domus_testkit_cluster *cluster, uint32_t node,
                                           domus_testkit_clock clock);

/* --- time ------------------------------------------------------------------------------------- */

/* Let all nodes do what they have to do, until nothing is left but what needs time to pass.
 * Returns 0; -ETIMEDOUT as domus_testkit_run(): domus_testkit_cluster_error() says which node. */
DOMUS_API int domus_testkit_cluster_run(domus_testkit_cluster *cluster);

/* Let `by_ns` pass on the clock of the cluster. Returns as domus_testkit_cluster_run(); -ERANGE
 * when time would end. */
DOMUS_API int domus_testkit_cluster_advance(domus_testkit_cluster *cluster, uint64_t by_ns);

/* Let time pass until `is_done` returns true, which is called whenever something has happened.
 * Returns 0; -ETIME when `within_ns` has passed before; as domus_testkit_cluster_run(). */
DOMUS_API int domus_testkit_cluster_until(domus_testkit_cluster *cluster,
                                          bool (*is_done)(void *context), void *context,
                                          uint64_t within_ns);

/* Returns the time of the cluster, which begins as DOMUS_TESTKIT_START_NS. */
DOMUS_API uint64_t domus_testkit_cluster_now_ns(const domus_testkit_cluster *cluster);

/* --- faults ----------------------------------------------------------------------------------- */

/* The directions of the messages that a fault concerns. */
typedef enum domus_testkit_ways {
    DOMUS_TO_SERVER = 1,   /* the fault is for messages from a node to a server */
    DOMUS_FROM_SERVER = 2, /* the fault is for messages from a server to a node */
    DOMUS_BOTH_WAYS = 3,
} domus_testkit_ways;

/* Settings of a leg between a node and a server. */
typedef struct domus_testkit_leg {
    /* time that a message takes, 1 us..1 h; 0: the latency of the cluster's options */
    uint64_t latency_ns;
    /* greatest jitter of the leg; 0: the jitter of the cluster's options; DOMUS_TESTKIT_NO_JITTER:
     * none */
    uint64_t jitter_ns;
    /* Probability that a message is lost though the connection stays, 0..DOMUS_TESTKIT_PPM. TCP
     * does not do that; a server that drops messages does. */
    uint32_t loss_ppm;
} domus_testkit_leg;

/* Set the legs between a node and a server, of which each may be DOMUS_EVERY. Messages that are
 * under way keep their times. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_set_leg(domus_testkit_cluster *cluster, uint32_t node,
                                            uint32_t server, domus_testkit_ways ways,
                                            const domus_testkit_leg *leg);

/* The fate of bytes on a connection that is cut. */
typedef enum domus_testkit_cut {
    /* messages wait, as TCP lets them, and come when the cut is healed, unless the connection is
     * given up before */
    DOMUS_CUT_HOLDS = 1,
    DOMUS_CUT_LOSES, /* messages on the cut connection are lost */
} domus_testkit_cut;

/* Cut the legs between a node and a server (each may be DOMUS_EVERY) in the directions `ways`.
 * Nobody is told: clients notice by their pings, servers after `stale_ns`. Connections cannot be
 * made either. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_cut(domus_testkit_cluster *cluster, uint32_t node,
                                        uint32_t server, domus_testkit_ways ways,
                                        domus_testkit_cut cut);

/* Heal legs that were cut. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_heal(domus_testkit_cluster *cluster, uint32_t node,
                                         uint32_t server, domus_testkit_ways ways);

/* Cut the routes between a server and another one (or DOMUS_EVERY other), or heal them. After
 * `route_stale_ns` a route that is cut is broken: what was under way on it is lost, and the servers
 * forget the subscriptions of each other until it is healed. Return 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_cut_route(domus_testkit_cluster *cluster, uint32_t server,
                                              uint32_t other);
DOMUS_API int domus_testkit_cluster_heal_route(domus_testkit_cluster *cluster, uint32_t server,
                                               uint32_t other);

/* Stop a server, as by a kill: its connections and routes break, and what was under way on them is
 * lost. The buckets stay. Then start it again. Return 0; -EINVAL; -EALREADY. */
DOMUS_API int domus_testkit_cluster_stop_server(domus_testkit_cluster *cluster, uint32_t server);
DOMUS_API int domus_testkit_cluster_start_server(domus_testkit_cluster *cluster, uint32_t server);

/* Break the connections of a node's clients at once, which connect again by their back-off; not
 * before `for_ns` has passed. Messages under way are lost. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_disconnect(domus_testkit_cluster *cluster, uint32_t node,
                                               uint64_t for_ns);

/* Drop the clients of a node as slow consumers: what was under way to them is lost, and the
 * connections end. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_drop_slow(domus_testkit_cluster *cluster, uint32_t node);

/* Faults of the simulated store of buckets. */
typedef struct domus_testkit_store_faults {
    uint64_t late_max_ns; /* greatest time for which an entry stays beyond its time to live */
    /* probability that a request to the store is lost before anything is done */
    uint32_t request_loss_ppm;
    /* number + 1 of the node whose requests are lost; 0: the requests of all nodes */
    uint32_t request_loss_of;
    /* probability that an answer of the store is lost, when the change is made */
    uint32_t answer_loss_ppm;
} domus_testkit_store_faults;

/* Set the faults of the store, for requests that come from now on. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_set_store(domus_testkit_cluster *cluster,
                                              const domus_testkit_store_faults *faults);

/* --- what happened ---------------------------------------------------------------------------- */

/* Counts of what happened to messages. When nothing is under way:
 *
 *   published = lost_waiting + lost_up + arrived
 *   copies = delivered + lost_down + lost_mailbox + ended */
typedef struct domus_testkit_cluster_counts {
    uint64_t published; /* messages, with requests, that clients have taken from actors */
    uint64_t refused;   /* messages that clients have refused: full, too large, wrong, draining */
    uint64_t arrived;   /* messages of clients that have come to a server */
    /* messages that came to a server (`arrived`), and to which nobody had subscribed */
    uint64_t unheard;
    /* requests to which nobody had subscribed (`unheard`), whose askers were told so */
    uint64_t no_responders;
    /* messages that the buckets have sent: answers, and entries of watches */
    uint64_t served;
    uint64_t copies; /* copies of messages that servers have sent to subscribers */
    /* copies of messages that subscribers, and actors that have asked, got */
    uint64_t delivered;
    uint64_t ended;        /* copies for subscriptions, or requests, that had ended */
    uint64_t lost_waiting; /* messages that were lost in the buffer of a client that ended */
    /* messages lost on the way to a server: connection broken, cut, lossy leg */
    uint64_t lost_up;
    uint64_t lost_route; /* copies of messages that were lost between servers */
    /* copies lost on the way to a client: connection broken, slow, cut, lossy leg */
    uint64_t lost_down;
    uint64_t lost_mailbox; /* copies that were lost at a subscriber: mailbox full, no memory */
    uint64_t
        /* requests to buckets that were lost by request_loss_ppm, or with a leader that ended */
        lost_requests;
    uint64_t lost_answers; /* answers of buckets that were lost by answer_loss_ppm */
    uint64_t connects;     /* connections that servers have accepted */
    uint64_t disconnects;  /* connections that clients have lost */
    uint64_t slow;         /* clients that servers have dropped as slow */
    uint64_t elections;    /* elections of a leader of the buckets, the first included */
    uint64_t expired;      /* entries of buckets that went because their time to live was over */
} domus_testkit_cluster_counts;

DOMUS_API domus_testkit_cluster_counts
domus_testkit_cluster_count(const domus_testkit_cluster *cluster);

/* The fate of a message. */
typedef enum domus_testkit_fate {
    DOMUS_FATE_PUBLISHED = 1, /* a client has taken the message from an actor */
    DOMUS_FATE_UNHEARD,       /* nobody had subscribed to the message */
    DOMUS_FATE_DELIVERED,     /* a copy of the message was handed to a subscriber on `node` */
    DOMUS_FATE_ENDED,         /* a copy of the message came for a subscription that had ended */
    DOMUS_FATE_LOST_WAITING,  /* the message was lost, as the count of this name says */
    DOMUS_FATE_LOST_UP,
    DOMUS_FATE_LOST_ROUTE,
    DOMUS_FATE_LOST_DOWN,
    DOMUS_FATE_LOST_MAILBOX,
    DOMUS_FATE_LOST_REQUEST,
    DOMUS_FATE_LOST_ANSWER,
} domus_testkit_fate;

/* A message, or a copy of one, and its fate. */
typedef struct domus_testkit_happening {
    domus_testkit_fate fate;
    /* node of the publisher for PUBLISHED, WAITING and UP; of the receiver for copies; else
     * DOMUS_EVERY */
    uint32_t node;
    /* number of the message, from 1 on in the order of publishing; a copy has the number of its
     * message */
    uint64_t number;
    /* subject of the message, with a zero at its end; valid during the call, as the payload is */
    const char *subject;
    const void *payload;
    uint32_t payload_size;
} domus_testkit_happening;

typedef void domus_testkit_observer(void *context, const domus_testkit_happening *happening);

/* Let `observer` be told of the fate of each message from now on. It must not call the cluster.
 * NULL: nobody. */
DOMUS_API void domus_testkit_cluster_observe(domus_testkit_cluster *cluster,
                                             domus_testkit_observer *observer, void *context);

/* Returns the trace: one line for each message that is published, arrives, is delivered or lost,
 * each fault and each change of a connection:
 *
 *     17 1.000250000 a/0 publishes 12 to dm.shop.b, 64 bytes of 1f2e3d4c
 *
 * A line begins with its number and the cluster's time in seconds. A client is the name of its node
 * with its gateway, and a message has its number. Payloads are shown by a hash. Only the newest
 * DOMUS_TESTKIT_CLUSTER_TRACE_MAX lines are kept; if there were more, the first line says how many
 * are gone. Ownership: the cluster's; valid until the next call of this function.
 * Returns "" without memory. */
DOMUS_API const char *domus_testkit_cluster_trace(domus_testkit_cluster *cluster);

/* Returns a hash of all lines of the trace so far, also of those that are gone: equal for equal
 * runs. 0: no line. */
DOMUS_API uint64_t domus_testkit_cluster_digest(const domus_testkit_cluster *cluster);

/* Returns one line about the last call that failed; "" at first. Ownership: the cluster's. */
DOMUS_API const char *domus_testkit_cluster_error(const domus_testkit_cluster *cluster);

/* Returns the number of the server that leads the buckets; DOMUS_EVERY while there is none. */
DOMUS_API uint32_t domus_testkit_cluster_leader(const domus_testkit_cluster *cluster);

/* Returns whether a subject matches a pattern with "*" and ">", as servers decide it. */
DOMUS_API bool domus_testkit_cluster_matches(const char *pattern, const char *subject);

#ifdef __cplusplus
}
#endif

#endif
