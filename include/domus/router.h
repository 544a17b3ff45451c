/* Routers: one address that stands for several actors of one behaviour (its routees).
 *
 * It is used as any address: domus_notice(), domus_ask() and their like send to one of the routees,
 * chosen by the sender's thread when the message is sent; domus_stop() and domus_stop_after_mail()
 * reach them all. Routees that are gone are passed over; when all are, the answer is -ESTALE. It
 * cannot be watched or linked: watch its routees (domus_routees()).
 *
 * Routees are children of the actor that spawned them, each as any child, and have its own state
 * and mailbox. Order is kept per sender and routee. Cancelling a conversation tells all routees of
 * an asked router.
 *
 * The address is good until domus_stop() on it, or until the actor that spawned the routees ends;
 * then, and for ever, it answers -ESTALE. */
#ifndef DOMUS_ROUTER_H
#define DOMUS_ROUTER_H

#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which routee gets a message. */
typedef enum domus_route {
    /* One after the other, by each sending thread. Who is full is passed over too. */
    DOMUS_ROUTE_ROBIN,

    /* Affinity: the routee on the sending thread, or, where none lives, always the same one. */
    DOMUS_ROUTE_NEAR,

    /* Who has the fewest messages and conversations waiting. It looks at all of them: for tens, not
     * thousands. What another thread's routee has taken in is known as of its last run. */
    DOMUS_ROUTE_LEAST,

    /* By `key`: the same key goes to the same routee while that lives, whoever sends. When one
     * goes, its keys spread over the others, and no other key moves. (Rendezvous hashing: the
     * routee whose hash with the key is the highest. It looks at all, about 1 ns each.) */
    DOMUS_ROUTE_HASH,
} domus_route;

/* How a router chooses. All zero is robin. */
typedef struct domus_routing {
    domus_route route;

    /* The key of a message, with DOMUS_ROUTE_HASH. Any thread; must depend on nothing but the type
     * and the payload. Need not be evenly spread. */
    uint64_t (*key)(const domus_type *type, const void *payload);
} domus_routing;

#define DOMUS_PER_THREAD UINT32_MAX /* as a count: one routee on each thread */

/* Make `count` actors (1..routers.routeesMax) and one address for all. Each state begins as a copy
 * of `state`. They live on the threads in turn, or all where `options` says DOMUS_ON_THREAD; other
 * placements are not looked at. options->name names the router. `routing` NULL: robin, and with
 * DOMUS_PER_THREAD near. A count of 1, or one thread, makes a plain actor with its own address.
 *
 * Returns as domus_spawn_with(), and then those that were made already are stopped; -EINVAL for a
 * wrong count or routing; -EOPNOTSUPP for detached ones; -ENOSPC at routers.max. */
DOMUS_API int domus_spawn_many(domus_stack *stack, const domus_behaviour *behaviour,
                               const void *state, uint32_t count, const domus_routing *routing,
                               const domus_spawn_options *options, domus_address *ret_address);

/* Whom an address stands for: up to `room` of them in `ret_addresses`, in the order of their
 * making; of a plain one, itself. Returns how many there are that are not gone. */
DOMUS_API uint32_t domus_routees(const domus_stack *stack, domus_address address,
                                 domus_address *ret_addresses, uint32_t room);

#ifdef __cplusplus
}
#endif

#endif
