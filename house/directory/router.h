/* Routers: a router is one address that stands for several actors, its routees.
 *
 * A router begins with a house (its `face`), to which its address points, but this house has no
 * home. So a put to it never takes the short way for houses of the own thread: the slow half of the
 * put sees that there is no home, and calls domi_router_put(). Messages to other actors pay nothing
 * for this.
 *
 * A router's memory stays a router for the life of the system, as a slot stays a slot, and its life
 * word has a lease. A router that was stopped is used again, for a spawn with as many routees. All
 * fields that senders read are atomic. A sender may believe what it read if the life word still has
 * the sender's lease afterwards: a writer changes the life word first and writes the fields by
 * release stores, and a reader acquires the fields and then looks at the life word again (compare
 * P2 in name_table.c).
 *
 * Senders of one thread count in a cache line of that thread. Each routee has a cache line that
 * holds its address and, for DOMUS_ROUTE_LEAST, its load, which is noted by the thread that runs
 * it. */
#ifndef DOMI_HOUSE_DIRECTORY_ROUTER_H
#define DOMI_HOUSE_DIRECTORY_ROUTER_H

#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/router.h>

typedef uint64_t domi_router_key(const domus_type *type, const void *payload);

/* One of the actors that a router stands for. */
typedef struct domi_routee {
    alignas(64) _Atomic(domi_house *) house;
    _Atomic uint32_t lease;
    _Atomic uint32_t load; /* for DOMUS_ROUTE_LEAST: the load that the routee noted last */
} domi_routee;

/* The count of the senders of one manager, which alone touches it. */
typedef struct domi_router_turn {
    alignas(64) uint32_t next;
} domi_router_turn;

typedef struct domi_router domi_router;

/* Control bits beside the lease of a router. DOMI_LIFE_CLOSED is used, too. */
#define DOMI_ROUTER_STOPPING DOMI_LIFE_STOP /* a thread is stopping the routees */
/* The actor that made the router has ended, so the thread that stops the routees gives it back. */
#define DOMI_ROUTER_ORPHAN DOMI_LIFE_BOUNDED

struct domi_router {
    domi_house face; /* what an address points to; only `life` is used, and `home` is NULL */
    _Atomic uint32_t route;
    _Atomic uint32_t count; /* routees in use, at most 1 << size_class */
    _Atomic(domi_router_key *) key;
    domi_router_turn *turns; /* one for each manager, in the memory behind the routees; constant */

    /* the router's name in the registry, or DOMI_NAMELESS; used by the thread that makes the
     * router, then by the one that stops it */
    uint32_t name_slot;
    uint16_t size_class; /* there is room for 1 << size_class routees; constant */
    bool owned; /* the router is in the list of the actor that made it, which gives it back */
    domi_router *next; /* next in that list, or among the free routers */
    domi_router *made; /* next among all routers of the system; constant */
    domi_routee routees[];
};

#define DOMI_ROUTER_CLASSES     17
#define DOMI_ROUTER_ROUTEES_MAX 65536u

/* All routers of a system. */
typedef struct domi_routers {
    domi_spinlock lock;
    uint32_t max;
    uint32_t routees_max;
    uint32_t count; /* routers in use */
    domi_router *free[DOMI_ROUTER_CLASSES];
    domi_router *made;
} domi_routers;

void domi_routers_init(domi_routers *routers, uint32_t max, uint32_t routees_max);

/* Free all routers. No thread may use them any more. Zeroed or finished ones are accepted. */
void domi_routers_fini(domi_routers *routers);

static inline bool domi_address_is_router(domus_address address)
{
    return address.house != NULL && address.house->home == NULL;
}

/* Put `node`, whose lease and kind are set, to one routee, or, if the message is for all, to each
 * of them. Returns as domi_mailbox_put(). */
int domi_router_put(domi_manager *manager, domi_house *face, domi_node *node);

/* Stop a router and its routees. Returns as domi_house_stop(). */
int domi_router_stop(domi_manager *manager, domus_address address);

/* Note the load of a routee, for a router with DOMUS_ROUTE_LEAST. Called by the thread that runs
 * the routee, and by its home. */
void domi_router_note_load(domi_house *house);

/* Returns the address of routee number `index`, which may belong to another lease than the caller
 * expects. */
static inline domus_address domi_router_routee(const domi_router *router, uint32_t index)
{
    domi_routee *routee = (domi_routee *)(uintptr_t)&router->routees[index];

    /* acquire: pairs with the releases in spawn_routees(); the comment at the top of this file says
     * why. */
    return (domus_address){atomic_load_explicit(&routee->house, memory_order_acquire),
                           atomic_load_explicit(&routee->lease, memory_order_acquire)};
}

/* --- making and giving back (router_make.c) --------------------------------------------------- */

/* As domus_spawn_many(), from the thread of `manager`. `parent` may be NULL: then the root is the
 * parent. */
int domi_router_spawn(domi_manager *manager, domi_house *parent, const domus_behaviour *behaviour,
                      const void *state, uint32_t count, const domus_routing *routing,
                      const domus_spawn_options *options, domus_address *ret_address);

/* Give a closed router back, so that it may be used again. */
void domi_router_give_back(domi_manager *manager, domi_router *router);

/* Stop the routers that the actor made, because it ends or restarts. */
void domi_router_stop_owned(domi_manager *manager, domi_house *house);

#endif
