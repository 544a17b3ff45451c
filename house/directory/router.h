/* Routers: an address that stands for several.
 *
 * A router has the face of a house, but no home, so no put takes it for its own: each falls through
 * to the slow half of the put, which finds it out and comes here. The message path pays nothing.
 *
 * A router's memory stays a router for the life of the system, as a slot stays a slot, and its life
 * word has a lease; one that was stopped is used again, by who has as many routees. All that
 * senders read of it is atomic, and belongs to the lease that they came with if the life word is
 * still the same after: writers change that first, and write what follows by release; readers
 * acquire, then look again (compare P2 in name_table.c).
 *
 * What senders of one thread count stands in a line of that thread's. Each routee has a line that
 * holds its address and, for LEAST, its load, which who runs it notes. */
#ifndef DOMI_HOUSE_DIRECTORY_ROUTER_H
#define DOMI_HOUSE_DIRECTORY_ROUTER_H

#include "base/spinlock.h"
#include "house/message/manager.h"

#include <domus/router.h>

typedef uint64_t domi_router_key(const domus_type *type, const void *payload);

/* One of those it stands for. */
typedef struct domi_routee {
    alignas(64) _Atomic(domi_house *) house;
    _Atomic uint32_t lease;
    _Atomic uint32_t load; /* LEAST: what it had when it last looked */
} domi_routee;

/* What senders of one manager count; its own. */
typedef struct domi_router_turn {
    alignas(64) uint32_t next;
} domi_router_turn;

typedef struct domi_router domi_router;

/* Control bits beside the lease of a router, with CLOSED. */
#define DOMI_ROUTER_STOPPING DOMI_LIFE_STOP    /* somebody is about to stop its routees */
#define DOMI_ROUTER_ORPHAN   DOMI_LIFE_BOUNDED /* ... and gives it back, because its actor ended */

struct domi_router {
    domi_house face; /* what an address points to: `life` counts, `home` is NULL */
    _Atomic uint32_t route;
    _Atomic uint32_t count; /* at most its capacity, which is constant */
    _Atomic(domi_router_key *) key;
    domi_router_turn *turns; /* by manager; behind the routees; constant */

    uint32_t name_slot;  /* in the registry, or none; its maker's, then its stopper's */
    uint16_t size_class; /* it has 1 << size_class routees at most; constant */
    bool owned;          /* in the list of an actor, which gives it back */
    domi_router *next;   /* in that list, or among the free */
    domi_router *made;   /* among all; constant */
    domi_routee routees[];
};

#define DOMI_ROUTER_CLASSES     17
#define DOMI_ROUTER_ROUTEES_MAX 65536u

/* All routers of a system. */
typedef struct domi_routers {
    domi_spinlock lock;
    uint32_t max;
    uint32_t routees_max;
    uint32_t count; /* in use */
    domi_router *free[DOMI_ROUTER_CLASSES];
    domi_router *made;
} domi_routers;

void domi_routers_init(domi_routers *routers, uint32_t max, uint32_t routees_max);

/* When no thread uses them any more. Zeroed or finished ones are taken. */
void domi_routers_fini(domi_routers *routers);

static inline bool domi_address_is_router(domus_address address)
{
    return address.house != NULL && address.house->home == NULL;
}

/* Put `node` (lease and kind are set) to one of them, or what is for all to all. Returns as
 * domi_mailbox_put(). */
int domi_router_put(domi_manager *manager, domi_house *face, domi_node *node);

/* As domi_house_stop(), for a router. */
int domi_router_stop(domi_manager *manager, domus_address address);

/* A routee of a router that looks at loads. Whoever runs it, and home. */
void domi_router_note_load(domi_house *house);

/* Routee number `index`, of whatever lease the router has now. */
static inline domus_address domi_router_routee(const domi_router *router, uint32_t index)
{
    domi_routee *routee = (domi_routee *)(uintptr_t)&router->routees[index];

    /* acquire: pairs with the releases of who makes them, see above. */
    return (domus_address){atomic_load_explicit(&routee->house, memory_order_acquire),
                           atomic_load_explicit(&routee->lease, memory_order_acquire)};
}

/* --- making and giving back (router_make.c) --------------------------------------------------- */

/* As domus_spawn_many(), from the thread of `manager`; `parent` NULL: of the root. */
int domi_router_spawn(domi_manager *manager, domi_house *parent, const domus_behaviour *behaviour,
                      const void *state, uint32_t count, const domus_routing *routing,
                      const domus_spawn_options *options, domus_address *ret_address);

/* One that is closed may be used again. */
void domi_router_give_back(domi_manager *manager, domi_router *router);

/* The actor ends: so do its routers. */
void domi_router_stop_owned(domi_manager *manager, domi_house *house);

#endif
