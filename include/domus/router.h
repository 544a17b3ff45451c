/* Routers: one address that stands for several actors (its routees), which it has made
 * (domus_spawn_many()), or which exist already, here or on other nodes (domus_route_to()).
 *
 * A router's address is used as any address: domus_notice(), domus_ask() and their like send to one
 * of the routees, which the sender's thread chooses when the message is sent. domus_stop() and
 * domus_stop_after_mail() reach all routees that it has made. Routees that are gone are passed
 * over; when all are gone, the answer is -ESTALE. A router cannot be watched or linked: watch its
 * routees (domus_routees()).
 *
 * Routees that were made are children of the actor that spawned them, and each has its own state
 * and mailbox. Order is kept for one sender and one routee. If a conversation that has asked a
 * router is cancelled, all routees are told.
 *
 * The address is valid until domus_stop() is called for it, or until the actor that made it
 * ends. From then on it answers -ESTALE for ever. */
#ifndef DOMUS_ROUTER_H
#define DOMUS_ROUTER_H

#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The rule by which a router chooses the routee that gets a message. */
typedef enum domus_route {
    /* Each sending thread takes the routees one after the other. A routee whose mailbox is full is
     * passed over. */
    DOMUS_ROUTE_ROBIN,

    /* Affinity: the routee on the sending thread, or, where none lives, always the same one. */
    DOMUS_ROUTE_NEAR,

    /* The routee that has the fewest waiting messages and conversations. This looks at all routees,
     * so it is for tens of them, not for thousands. For a routee on another thread the number is
     * that of its last run. */
    DOMUS_ROUTE_LEAST,

    /* The routee that belongs to the `key` of the message: the same key goes to the same routee
     * while that routee lives, from every sender. When a routee is gone, its keys spread over the
     * others, and no other key moves. (This is rendezvous hashing: the routee whose hash with the
     * key is the highest. It looks at all routees, about 1 ns for each.) */
    DOMUS_ROUTE_HASH,
} domus_route;

/* Settings by which a router chooses a routee. All zeros is DOMUS_ROUTE_ROBIN. */
typedef struct domus_routing {
    domus_route route;

    /* A function that returns the key of a message, for DOMUS_ROUTE_HASH. It is called on any
     * thread, and the result must depend only on the type and the payload. Keys need not be evenly
     * spread. */
    uint64_t (*key)(const domus_type *type, const void *payload);
} domus_routing;

#define DOMUS_PER_THREAD UINT32_MAX /* a count of this value means one routee on each thread */

/* Make `count` actors (1..routers.routeesMax) and one address for all of them. Each state begins as
 * a copy of `state`. The actors live on the threads in turn; if `options` has DOMUS_ON_THREAD, all
 * on that thread; if it has a pool, all in that. Other placements have no effect. options->name
 * names the router. If `routing` is NULL, the route is DOMUS_ROUTE_ROBIN, or with DOMUS_PER_THREAD
 * DOMUS_ROUTE_NEAR. A count of 1 (or DOMUS_PER_THREAD in a system of one thread) makes a plain
 * actor with its own address.
 *
 * Returns as domus_spawn_with(); -EINVAL for a wrong count or routing, and for DOMUS_PER_THREAD or
 * DOMUS_ROUTE_NEAR with a pool, which has no thread of its own; -EOPNOTSUPP for detached actors;
 * -ENOSPC when there are routers.max routers. After an error, actors that were made already are
 * stopped. */
DOMUS_API int domus_spawn_many(domus_stack *stack, const domus_behaviour *behaviour,
                               const void *state, uint32_t count, const domus_routing *routing,
                               const domus_spawn_options *options, domus_address *ret_address);

/* Make one address for `count` actors (1..routers.routeesMax) that exist: of any behaviour,
 * anywhere in this system, and on other nodes (domus/cluster.h). They are not children of the
 * running actor, and stay when the router is stopped: domus_stop() and domus_stop_after_mail() of
 * its address end the router alone, and so does the end or restart of the actor that made it. An
 * address may be there more than once, and then counts as often. `addresses` is copied. If
 * `routing` is NULL, the route is DOMUS_ROUTE_ROBIN.
 *
 * Routees that are gone are passed over. For one on another node that means that the node has
 * ended, or has told that the actor has; while its node is down or full (-EHOSTDOWN, -ENOBUFS), it
 * is passed over too, but not with DOMUS_ROUTE_HASH: then the sender gets that error, and no key
 * moves. If no routee takes the message, the answer is the error of the last one that is not gone.
 *
 *   DOMUS_ROUTE_NEAR    one on the sender's thread, else one of this system, else one of another
 *                       node; of several that are as near, the one that has the fewest messages, as
 *                       far as that is known. One that is full is passed over. It looks at all
 *                       routees, as DOMUS_ROUTE_LEAST does.
 *   DOMUS_ROUTE_LEAST   a routee on another node counts as one with 64 waiting messages, so it gets
 *                       messages while each one here has more, or is full. For one on another
 *                       thread only those count that have not come to its thread yet.
 *   DOMUS_ROUTE_HASH    the place in `addresses` counts, not the address: with the same list in the
 *                       same order, all nodes choose the same routee for a key.
 *
 * Returns 0; -EINVAL for a wrong count or routing, for nobody, and for the address of a router of
 * this system; -ENOSPC when there are routers.max routers; -ENOMEM. */
DOMUS_API int domus_route_to(domus_stack *stack, const domus_address *addresses, uint32_t count,
                             const domus_routing *routing, domus_address *ret_address);

/* Write up to `room` addresses of a router's routees that are not gone into `ret_addresses`, in the
 * order in which they were made. For the address of a plain actor, that is the address itself.
 *
 * Returns how many there are that are not gone, which may be more than `room`. */
DOMUS_API uint32_t domus_routees(const domus_stack *stack, domus_address address,
                                 domus_address *ret_addresses, uint32_t room);

#ifdef __cplusplus
}
#endif

#endif
