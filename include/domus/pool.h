/* Pools: one address for several connections to a service.
 *
 *     static const domus_pool_options options = {.behaviour = &line_channel, .connections_min = 4};
 *
 *     domus_pool_open(stack, "10.0.0.1:6379, 10.0.0.2:6379", &options, &service);
 *     ...
 *     return domus_ask(stack, service, &domus_packet_type, &line, answered);
 *
 * A pool is an actor that connects, and connects again. Asks to its address go on to that one of
 * its connections which has the fewest asks under way, as a forward, without a copy; its channel
 * encodes them, and the answer goes straight to the asker (domus/pipeline.h, "Mail to the peer").
 * So does a notice; one that finds no room is thrown away, and counted.
 *
 * While nothing is connected, up to `queue_max` messages wait, but none longer than `wait_ns` from
 * the loss of the last connection: then those that wait fail with -ENOTCONN, and so does every
 * further one until there is a connection again. One ask more than may wait fails with -ENOBUFS.
 *
 * When a connection ends, its asks come back to the pool. Unsent ones go to another
 * connection. One that was sent may have been done; if its type is `repeatable`, it is sent again,
 * up to `tries_max` times in all, and otherwise it fails with -EPIPE, whatever ended it in the end.
 * An ask is never sent after its deadline. A request that leaves in pieces (domus/stream.h) is an
 * ask here; once it has begun it is never sent again, and while its body leaves, other asks prefer
 * other connections.
 *
 * **Addresses.** Each connection is to one of the addresses; those with fewer connections come
 * first. An address that fails (no connection, or one that has ended within `backoff_max_ns`) is
 * left out for a time, which doubles with each failure in a row, from `backoff_min_ns` to
 * `backoff_max_ns`. Each time is drawn between a half and the whole of that, so that many clients
 * do not come back at the same moment. A connection that lives for longer than `backoff_max_ns`
 * ends the row.
 *
 * **Size.** The pool keeps `connections_min` connections. It opens further ones, one at a time and
 * up to `connections_max`, while each connection has as many asks as may be with its peer. Idle
 * ones are closed by channel.idleTimeout.
 *
 * **On demand.** For clients of servers that close idle connections, and protocols with one request
 * at a time on a connection (HTTP/1.1). With `on_demand` the pool makes a connection only when
 * asks wait, one for each of them up to `connections_max`. An ask waits in the pool, not in a
 * connection, and goes to the first one that has room; so none waits behind a slow answer while
 * another connection is free. Up to `queue_max` asks wait, for as long as their deadlines allow.
 * They fail with the error of the connect, or of the byte stages (TLS: -EACCES for a server that is
 * not accepted), when there is no connection, and every address has failed; and so do further ones,
 * until the first back-off is over. The end of a connection that has sent an ask is no failure of
 * its address. Connections that take many asks at a time (domus/lend.h) are made one by one, when
 * those before are full. A connection with an ask under way is not idle (channel.idleTimeout), and
 * is reset when the deadline of the ask has passed, so nobody waits for an answer that nobody
 * wants; one that takes many asks ends its part of the ask alone. `wait_ns` has no meaning.
 *
 * A pool is stopped as any actor is (domus_stop()): its connections close, and what is under way
 * fails as if it had not come from a pool. To let that end first, send it a notice of
 * domus_pool_drain_type: it takes no further asks (-ESHUTDOWN), and stops when nothing is under
 * way. Its connections are its children. */
#ifndef DOMUS_POOL_H
#define DOMUS_POOL_H

#include <domus/channel_options.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_POOL_CONNECTIONS_MAX 64u  /* most connections that one pool has at a time */
#define DOMUS_POOL_ADDRESSES_MAX   16u  /* most addresses of the service of one pool */
#define DOMUS_POOL_ADDRESS_SIZE    300u /* size in bytes of one address, with a zero at its end */

/* Defaults of fields of domus_pool_options: a 0 in the field means this value. */
#define DOMUS_POOL_QUEUE_MAX   1024u
#define DOMUS_POOL_WAIT_NS     UINT64_C(1000000000)
#define DOMUS_POOL_BACKOFF_MIN UINT64_C(100000000)
#define DOMUS_POOL_BACKOFF_MAX UINT64_C(10000000000)
#define DOMUS_POOL_TRIES_MAX   2u

/* Options of a pool. All fields but `behaviour` may be 0. */
typedef struct domus_pool_options {
    /* The behaviour of the connections, with a pipeline whose peer answers. Its shares_state must
     * be false. */
    const struct domus_behaviour *behaviour;
    /* connections that are always kept, 1..64; 0 means 1, or with `on_demand`, which wants 0,
     * none */
    uint32_t connections_min;
    /* most connections at a time, connections_min..64; 0: connections_min, or 1 */
    uint32_t connections_max;
    uint32_t queue_max; /* most messages that wait for a connection; 0 means 1,024 */
    uint64_t wait_ns;   /* longest wait of a message for a connection; 0 means 1 s */
    /* longest time of one connect; 0: as the key connect.timeout says */
    uint64_t connect_timeout_ns;
    /* first time for which a failed address is left out, 1 ms..1 h; 0 means 100 ms */
    uint64_t backoff_min_ns;
    /* longest such time, backoff_min_ns..1 h; 0 means 10 s, or backoff_min_ns if that is more */
    uint64_t backoff_max_ns;
    /* Types of asks that may be done twice, up to a NULL; the list stays valid. NULL: none. */
    const domus_type *const *repeatable;
    uint32_t tries_max; /* most times that a repeatable ask is sent in all, 1..255; 0 means 2 */
    /* Whether to make a pool on each thread, and one address for all of them: an ask goes to the
     * pool on its own thread (domus/router.h). */
    bool per_thread;
    bool on_demand; /* whether connections are made only when asks wait ("On demand" above) */
    /* options of the pool's connections that differ from the configuration; copied; NULL: none */
    const domus_channel_options *channel;
    /* Byte stages in front of the pipeline of each connection, as in domus_connect_options. */
    const struct domus_pipeline_stage *front;
} domus_pool_options;

/* Make a pool, an actor on the thread of the running one and its child. `to` has one address or
 * several, with "," between them, as domus_connect() takes them. `options` is copied.
 *
 * Thread-safety: only from within a handler, with its stack.
 * Returns 0; -EINVAL for a wrong text or option; what `check` of a stage returned; -E2BIG
 * for too many or too long addresses; and as domus_spawn(), with `per_thread` as
 * domus_spawn_many(). */
DOMUS_API int domus_pool_open(domus_stack *stack, const char *to, const domus_pool_options *options,
                              domus_address *ret_address);

/* The state of a pool, which it answers to an ask of domus_pool_look_type. */
typedef struct domus_pool_status {
    uint32_t connected; /* connections that the pool has now */
    /* connections that are being made now, or wait for the end of a back-off */
    uint32_t connecting;
    uint32_t addresses; /* number of addresses of the service */
    /* addresses of the service that are left out now, because they have failed */
    uint32_t left_out;
    uint64_t under_way; /* asks that the connections have now, sent or not */
    uint64_t waiting;   /* messages that wait in the pool for a connection */
    uint64_t connects;  /* connections that the pool has made so far */
    uint64_t failures;  /* connects that have failed, and connections that have ended too soon */
    uint64_t repeated;  /* asks that were sent again, though they may have been done */
    uint64_t refused; /* messages that have failed or were thrown away, for lack of a connection */
} domus_pool_status;

/* the type of an ask without payload for the state of a pool */
DOMUS_API extern const domus_type domus_pool_look_type;
/* the type of the answer to an ask for the state of a pool; payload: a domus_pool_status */
DOMUS_API extern const domus_type domus_pool_status_type;
/* the type of a notice without payload by which a pool drains, and then stops */
DOMUS_API extern const domus_type domus_pool_drain_type;

#ifdef __cplusplus
}
#endif

#endif
