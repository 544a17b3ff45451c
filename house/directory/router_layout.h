/* How a router and its routees lie in memory. router.h says who reads and writes the fields, and in
 * which order. */
#ifndef DOMI_HOUSE_DIRECTORY_ROUTER_LAYOUT_H
#define DOMI_HOUSE_DIRECTORY_ROUTER_LAYOUT_H

#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/router.h>

typedef uint64_t domi_router_key(const domus_type *type, const void *payload);

/* A routee: one of the actors for which a router stands. */
typedef struct domi_routee {
    /* the actor that is the routee; NULL: the routee is gone */
    alignas(64) _Atomic(domi_house *) house;
    _Atomic uint32_t lease; /* lease of the actor that is the routee */
    _Atomic uint32_t load;  /* the load that the routee recorded last, for DOMUS_ROUTE_LEAST */
} domi_routee;

/* The counter of one manager's messages to a router, which only this manager touches. */
typedef struct domi_router_turn {
    alignas(64) uint32_t next;
} domi_router_turn;

typedef struct domi_router domi_router;

/* Basic loads of borrowed routees, which do not record a load of their own; the messages in their
 * inboxes are added. DOMI_LOAD_ are for DOMUS_ROUTE_LEAST, as domus/router.h says. DOMI_DISTANCE_
 * are for DOMUS_ROUTE_NEAR, which chooses by the same code with a load for each distance. The load
 * of an actor on the sender's own thread is counted, and is less than these distances. */
#define DOMI_LOAD_ELSEWHERE     0u
#define DOMI_LOAD_REMOTE        64u
#define DOMI_DISTANCE_ELSEWHERE (1u << 24)
#define DOMI_DISTANCE_REMOTE    (1u << 25)

/* Control bits beside the lease of a router. DOMI_LIFE_CLOSED is used, too. */
/* control bit: a thread is stopping the routees of the router */
#define DOMI_ROUTER_STOPPING DOMI_LIFE_STOP
/* control bit: the actor that made the router has ended, so the thread that stops the routees gives
 * the router back */
#define DOMI_ROUTER_ORPHAN DOMI_LIFE_BOUNDED

struct domi_router {
    /* the house to which the router's address points; only `life` is used, and `home` is NULL */
    domi_house face;
    _Atomic uint32_t route; /* way in which the router chooses a routee, a domus_route */
    _Atomic uint32_t count; /* number of the router's routees in use, at most 1 << size_class */
    /* function that reads the key of a message to the router, for DOMUS_ROUTE_HASH; NULL: none */
    _Atomic(domi_router_key *) key;
    /* counters of the router, one for each manager, behind the routees in memory; constant */
    domi_router_turn *turns;

    /* slot of the router's name in the table of names, or DOMI_NAMELESS; used by the thread that
     * makes the router, then by the one that stops it */
    uint32_t name_slot;
    uint32_t number; /* the router's index among all routers that were made; constant */
    /* size class of the router: it has room for 1 << size_class routees; constant */
    uint16_t size_class;
    /* whether the routees are borrowed, so that the router does not stop them; constant */
    bool borrows;
    /* whether the router is in the list of the actor that made it, and that actor gives it back */
    bool owned;
    /* next router in the list of the actor that made it, or among the free routers */
    domi_router *next;
    domi_router *made; /* next router among all routers of the system; constant */
    /* array of the router's routees, of which the first `count` are in use */
    domi_routee routees[];
};

/* size classes of routers: room for 1 << class routees, up to 65,536 */
#define DOMI_ROUTER_CLASSES 17

/* All routers of a system. */
typedef struct domi_routers {
    domi_spinlock lock;   /* lock that guards the fields of the table of routers that follow */
    uint32_t max;         /* most routers of the system; constant, as is `routees_max` */
    uint32_t routees_max; /* most routees of one router */
    uint32_t count;       /* number of routers in use */
    /* free routers that spawn their routees, to be used again, by size class */
    domi_router *free[DOMI_ROUTER_CLASSES];
    /* Free routers that borrow their routees, by size class. They have lists of their own: a
     * routee that a router has spawned records its load in the router's memory until the routee
     * has ended. */
    domi_router *free_borrowing[DOMI_ROUTER_CLASSES];
    domi_router *made; /* the newest router ever made; the others follow by their `made` */
} domi_routers;

/* Returns the address of the routee with this index, which may belong to another lease of the
 * router than the caller expects. */
static inline domus_address domi_router_routee_at_index(const domi_router *router, uint32_t index)
{
    domi_routee *routee = (domi_routee *)(uintptr_t)&router->routees[index];

    /* acquire: pairs with the releases in spawn_routees(); the comment at the top of
     * router.h says why. */
    return (domus_address){atomic_load_explicit(&routee->house, memory_order_acquire),
                           atomic_load_explicit(&routee->lease, memory_order_acquire)};
}

#endif
