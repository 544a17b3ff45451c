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

/* Several kits that share one time line and simulated servers. */
typedef struct domus_testkit_cluster domus_testkit_cluster;

/* Bounds of a simulated cluster. */
#define DOMUS_TESTKIT_NODES_MAX     64u
#define DOMUS_TESTKIT_SERVERS_MAX   8u
#define DOMUS_TESTKIT_CLIENTS_MAX   65536u /* over the whole run, with those of crashed kits */
#define DOMUS_TESTKIT_BUCKETS_MAX   64u
#define DOMUS_TESTKIT_ENTRIES_MAX   65536u   /* of a bucket, with its history; beyond: 10077 */
#define DOMUS_TESTKIT_CONSUMERS_MAX 4096u    /* of a bucket; beyond: 10026 */
#define DOMUS_TESTKIT_PPM           1000000u /* a probability of 1 */

/* The trace keeps this many lines, the newest ones, each of this many bytes at most. */
#define DOMUS_TESTKIT_CLUSTER_TRACE_MAX  4096u
#define DOMUS_TESTKIT_CLUSTER_LINE_BYTES 192u

/* Every node, or every server, of a call. */
#define DOMUS_EVERY UINT32_MAX

/* Options of a cluster. All fields may be 0, which means the value behind it. */
typedef struct domus_testkit_cluster_options {
    uint32_t servers; /* 1..DOMUS_TESTKIT_SERVERS_MAX; 0: 1 */

    /* Legs between clients and servers, routes, and the store of the leader, each with a jitter
     * that is drawn for each message. At least 1 us, at most 1 h. */
    uint64_t latency_ns;       /* 100 us */
    uint64_t jitter_ns;        /* 100 us; DOMUS_TESTKIT_NO_JITTER: none */
    uint64_t route_latency_ns; /* 50 us */
    uint64_t store_latency_ns; /* 200 us, until the store has made a change */

    /* Clients. The meanings are those of domus_nats_options. */
    uint64_t buffer_max;         /* DOMUS_NATS_BUFFER_MAX */
    uint32_t inflight_max;       /* DOMUS_NATS_INFLIGHT_MAX */
    uint32_t subscriptions_max;  /* DOMUS_NATS_SUBSCRIPTIONS_MAX */
    uint32_t pings_missed_max;   /* 2 */
    uint64_t ping_interval_ns;   /* 2 s */
    uint64_t request_timeout_ns; /* 5 s */
    uint64_t connect_timeout_ns; /* 2 s */
    uint64_t drain_timeout_ns;   /* 30 s */
    uint64_t backoff_min_ns;     /* 100 ms */
    uint64_t backoff_max_ns;     /* 2 s */
    bool no_echo; /* messages of a client do not come to its own subscriptions without a group */
    uint64_t wire_max; /* bytes that a leg takes before a client's buffer fills; 1 MiB */

    /* Servers. */
    uint32_t payload_max;    /* max_payload of INFO: bytes of headers and payload; 1 MiB */
    uint64_t pending_max;    /* bytes on the way to a client that is then dropped as slow; 64 MiB */
    uint64_t stale_ns;       /* a client that says nothing so long is dropped; 6 s */
    uint64_t route_stale_ns; /* a route that is cut so long is broken; 4 s */
    uint64_t election_ns;    /* without a leader, at least; twice of it at most. 1 s */

    /* Without a trace, whose digest is then 0 too: long sweeps are faster by a fifth. A seed that
     * failed fails with a trace as well. */
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

/* Free the cluster with its kits, whose systems are stopped one after the other: nothing that they
 * say then is heard. NULL is allowed. */
DOMUS_API void domus_testkit_cluster_free(domus_testkit_cluster *cluster);

/* --- nodes ------------------------------------------------------------------------------------ */

typedef struct domus_testkit_node_options {
    const char *name;           /* in the trace; copied, cut off at 31 bytes. NULL: its number */
    const domus_config *config; /* of its kit, as of domus_testkit_new(); copied. NULL: defaults */
    /* The clock of the node begins later by so much than that of the cluster. Up to 100 years. */
    uint64_t clock_offset_ns;
    /* In a million ns of the cluster the node's clock goes on by so much more, or less:
     * -500,000..500,000. */
    int32_t clock_drift_ppm;
    /* Called when the system of a kit has stopped, before it is freed: at a crash, and at the end
     * of the cluster. It frees what the test has for that system, as domus_cluster_close() does.
     * NULL: nothing. */
    void (*on_stopped)(void *context, uint32_t node);
    void *context;
} domus_testkit_node_options;

/* Add a node: a kit of its own, with a seed that is drawn. `ret_node` gets its number; nodes are
 * numbered from 0. Returns 0; -EINVAL; -ENOSPC at DOMUS_TESTKIT_NODES_MAX; -ENOMEM. */
DOMUS_API int domus_testkit_cluster_add_node(domus_testkit_cluster *cluster,
                                             const domus_testkit_node_options *options,
                                             uint32_t *ret_node);

/* The kit of a node; NULL while it has crashed. Its time is moved by the cluster alone: within a
 * kit, expect with a `within_ns` of 0.
 * Ownership: the cluster's. */
DOMUS_API domus_testkit *domus_testkit_cluster_kit(domus_testkit_cluster *cluster, uint32_t node);

/* The context of a node for domus_testkit_cluster_open_client(). It stays valid, also over crashes,
 * as long as the cluster. NULL for a number that is no node. */
DOMUS_API void *domus_testkit_cluster_context(domus_testkit_cluster *cluster, uint32_t node);

/* Make a simulated client, as the child of the running actor and on its thread: the verbs of
 * domus/nats.h. The running actor gets its events. `context` is that of the node, whose kit the
 * actor must be in. `gateway` is a number for the trace.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -ENOSPC at DOMUS_TESTKIT_CLIENTS_MAX; as domus_spawn(). */
DOMUS_API int domus_testkit_cluster_open_client(domus_stack *stack, void *context, uint32_t gateway,
                                                domus_address *ret_client);

/* Let a node crash: all connections of its clients end, nothing that it says is heard any more, and
 * its kit is freed. (The actors' on_stop runs, because their memory has to be freed.) If it is
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

/* The clock of a node that goes on after a suspension. */
typedef enum domus_testkit_clock {
    /* The node goes on with its old time, with the messages that have come, and then its clock
     * jumps to where it would be (SIGCONT). */
    DOMUS_CLOCK_JUMPS = 0,
    /* It never hears of the time (a virtual machine that was paused). */
    DOMUS_CLOCK_STOOD,
} domus_testkit_clock;

/* Let a node go on that was suspended. Returns 0; -EINVAL; -EALREADY; -ETIMEDOUT as
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

/* Let time pass until `is_done` returns true, which is asked whenever something has happened.
 * Returns 0; -ETIME when `within_ns` has passed before; as domus_testkit_cluster_run(). */
DOMUS_API int domus_testkit_cluster_until(domus_testkit_cluster *cluster,
                                          bool (*is_done)(void *context), void *context,
                                          uint64_t within_ns);

/* The time of the cluster, which begins as DOMUS_TESTKIT_START_NS. */
DOMUS_API uint64_t domus_testkit_cluster_now_ns(const domus_testkit_cluster *cluster);

/* --- faults ----------------------------------------------------------------------------------- */

/* The directions of what a fault concerns. */
typedef enum domus_testkit_ways {
    DOMUS_TO_SERVER = 1,   /* what a node says */
    DOMUS_FROM_SERVER = 2, /* what it would hear */
    DOMUS_BOTH_WAYS = 3,
} domus_testkit_ways;

/* How a leg between a node and a server is. */
typedef struct domus_testkit_leg {
    uint64_t latency_ns; /* 1 us..1 h; 0: that of the options */
    uint64_t jitter_ns;  /* 0: that of the options; DOMUS_TESTKIT_NO_JITTER: none */
    /* Messages of which a part is lost though the connection stays. TCP does not do that; a server
     * that drops messages does. 0..DOMUS_TESTKIT_PPM */
    uint32_t loss_ppm;
} domus_testkit_leg;

/* Set the legs between a node, or every one that there is, and a server, or every one. Messages
 * that are under way keep their times. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_set_leg(domus_testkit_cluster *cluster, uint32_t node,
                                            uint32_t server, domus_testkit_ways ways,
                                            const domus_testkit_leg *leg);

/* The fate of bytes on a connection that is cut. */
typedef enum domus_testkit_cut {
    DOMUS_CUT_HOLDS = 1, /* what is said waits, as TCP does, and comes when the cut is healed,
                            unless the connection is given up before */
    DOMUS_CUT_LOSES,     /* what is said is lost */
} domus_testkit_cut;

/* Cut the legs between a node and a server (each may be DOMUS_EVERY) in these ways. Nobody is told:
 * clients notice by their pings, servers after `stale_ns`. Connections cannot be made either.
 * Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_cut(domus_testkit_cluster *cluster, uint32_t node,
                                        uint32_t server, domus_testkit_ways ways,
                                        domus_testkit_cut cut);

/* Heal what was cut. Returns 0; -EINVAL. */
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

/* Faults of the buckets. */
typedef struct domus_testkit_store_faults {
    uint64_t late_max_ns;      /* an entry stays longer than its time to live by up to so much */
    uint32_t request_loss_ppm; /* requests that are lost before anything was done */
    uint32_t request_loss_of;  /* those of this node alone, its number + 1; 0: those of all */
    uint32_t answer_loss_ppm;  /* answers that are lost, when the change was made */
} domus_testkit_store_faults;

/* Set them, for what comes from now on. Returns 0; -EINVAL. */
DOMUS_API int domus_testkit_cluster_set_store(domus_testkit_cluster *cluster,
                                              const domus_testkit_store_faults *faults);

/* --- what happened ---------------------------------------------------------------------------- */

/* Counts of what happened to messages. When nothing is under way:
 *
 *   published = lost_waiting + lost_up + arrived
 *   copies = delivered + lost_down + lost_mailbox + ended */
typedef struct domus_testkit_cluster_counts {
    uint64_t published; /* messages that clients have taken from actors, with requests */
    uint64_t refused;   /* messages that they have not taken: full, too large, wrong, draining */
    uint64_t arrived;   /* messages of clients that have come to a server */
    uint64_t unheard;   /* of these, those to which nobody had subscribed */
    uint64_t no_responders; /* requests of these, which were told so */
    uint64_t served;        /* messages that the buckets have sent: answers, entries of watches */
    uint64_t copies;        /* copies for subscribers that servers have sent */
    uint64_t delivered;     /* copies that subscribers, and those who have asked, got */
    uint64_t ended;         /* copies for subscriptions, and requests, that had ended */
    uint64_t lost_waiting;  /* in the buffer of a client that ended */
    uint64_t lost_up;       /* on the way to a server: connection broken, cut, lossy leg */
    uint64_t lost_route;    /* between servers */
    uint64_t lost_down;     /* on the way to a client: connection broken, slow, cut, lossy leg */
    uint64_t lost_mailbox;  /* the subscriber's mailbox was full, or there was no memory */
    uint64_t
        lost_requests;     /* of the buckets: by request_loss_ppm, and at a leader that has ended */
    uint64_t lost_answers; /* of the buckets: by answer_loss_ppm */
    uint64_t connects;     /* connections that servers have accepted */
    uint64_t disconnects;  /* those that clients have lost */
    uint64_t slow;         /* clients that were dropped as slow */
    uint64_t elections;    /* leaders of the buckets, with the first */
    uint64_t expired;      /* entries whose time was over */
} domus_testkit_cluster_counts;

DOMUS_API domus_testkit_cluster_counts
domus_testkit_cluster_count(const domus_testkit_cluster *cluster);

/* The fate of a message. */
typedef enum domus_testkit_fate {
    DOMUS_FATE_PUBLISHED = 1, /* a client has taken it */
    DOMUS_FATE_UNHEARD,       /* nobody had subscribed */
    DOMUS_FATE_DELIVERED,     /* a copy was handed to `node`'s subscriber */
    DOMUS_FATE_ENDED,         /* a copy came for a subscription that had ended */
    DOMUS_FATE_LOST_WAITING,  /* as the fields of domus_testkit_cluster_counts */
    DOMUS_FATE_LOST_UP,
    DOMUS_FATE_LOST_ROUTE,
    DOMUS_FATE_LOST_DOWN,
    DOMUS_FATE_LOST_MAILBOX,
    DOMUS_FATE_LOST_REQUEST,
    DOMUS_FATE_LOST_ANSWER,
} domus_testkit_fate;

/* A message, or a copy of one, and what became of it. */
typedef struct domus_testkit_happening {
    domus_testkit_fate fate;
    uint32_t node; /* the publisher's for PUBLISHED, WAITING and UP; the receiver's for copies; else
                      DOMUS_EVERY */
    uint64_t number; /* of the message, from 1 on in the order in which they were published; copies
                        have that of their message */
    const char *subject; /* ends with a zero; valid during the call, as the payload is */
    const void *payload;
    uint32_t payload_size;
} domus_testkit_happening;

typedef void domus_testkit_observer(void *context, const domus_testkit_happening *happening);

/* Tell `observer` of each message from now on. It must not call the cluster. NULL: nobody. */
DOMUS_API void domus_testkit_cluster_observe(domus_testkit_cluster *cluster,
                                             domus_testkit_observer *observer, void *context);

/* The trace: one line for each message that is published, arrives, is delivered or lost, each fault
 * and each change of a connection:
 *
 *     17 1.000250000 a/0 publishes 12 to dm.shop.b, 64 bytes of 1f2e3d4c
 *
 * A line begins with its number and the cluster's time in seconds. A client is the name of its node
 * with its gateway, and a message has its number. Payloads are shown by a hash. Only the newest
 * DOMUS_TESTKIT_CLUSTER_TRACE_MAX lines are kept; if there were more, the first line says how many
 * are gone. Ownership: the cluster's; valid until the next call of this function.
 * Returns "" without memory. */
DOMUS_API const char *domus_testkit_cluster_trace(domus_testkit_cluster *cluster);

/* A hash of all lines so far, also of those that are gone: equal for equal runs. 0: no line. */
DOMUS_API uint64_t domus_testkit_cluster_digest(const domus_testkit_cluster *cluster);

/* One line about the last call that failed; "" at first. Ownership: the cluster's. */
DOMUS_API const char *domus_testkit_cluster_error(const domus_testkit_cluster *cluster);

/* Returns the server that leads the buckets; DOMUS_EVERY while there is none. */
DOMUS_API uint32_t domus_testkit_cluster_leader(const domus_testkit_cluster *cluster);

/* Returns whether a subject matches a pattern with "*" and ">", as servers decide it. */
DOMUS_API bool domus_testkit_cluster_matches(const char *pattern, const char *subject);

#ifdef __cplusplus
}
#endif

#endif
