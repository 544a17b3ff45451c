/* Checks routers in each of their states. The life word of a router tells its state:
 *
 *   open      the lease alone;
 *   closing   CLOSED and STOPPING, perhaps ORPHAN: a thread stops the routees;
 *   closed    CLOSED, perhaps ORPHAN: the router waits for its owner, which gives it back, or a
 *             thread makes it anew;
 *   free      CLOSED. The lease is 0 if the leases are used up, and then the router is in no list.
 */
#include "house/directory/router_check.h"

#include "base/check.h"
#include "house/message/family.h"
#include "house/message/remote.h"

#define WALKED_MAX  1024u /* most routers of one list that are checked one by one */
#define ROUTEES_MAX 64u   /* most routees of an open router that are checked */

static uint64_t get_life_word_of_router(const domi_router *router)
{
    /* Relaxed: no thread changes the router during the check. */
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&router->face.life,
                                memory_order_relaxed);
}

static uint64_t get_router_marks(const domi_router *router)
{
    return get_life_word_of_router(router) & UINT32_MAX;
}

static uint32_t get_routee_count(const domi_router *router)
{
    /* Relaxed: no thread changes the router during the check. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&router->count,
                                memory_order_relaxed);
}

/* Check those properties of a router's memory that hold in all states. */
static void check_memory_of_router(const domi_router *router)
{
    /* the face has no home: otherwise a put would take the router for an actor */
    DOMI_CHECK(router->face.home == NULL);
    DOMI_CHECK(router->face.state == DOMI_CREATED && router->face.marks == 0);
    DOMI_CHECK(router->face.stacks == NULL && router->face.family == NULL);
    DOMI_CHECK(router->size_class < DOMI_ROUTER_CLASSES);
    DOMI_CHECK((const void *)router->turns ==
               (const void *)&router->routees[(size_t)1 << router->size_class]);
}

/* Check a routee: it is or was an actor, and the slot of the actor has reached its lease. */
static void check_routee_of_router(domus_address who)
{
    DOMI_CHECK(who.house != NULL && (who.house->home != NULL || domi_house_is_remote(who.house)));
    DOMI_CHECK(who.lease != 0);
    uint32_t reached = DOMI_LIFE_LEASE(domi_house_life_word(who.house));
    /* a lease of 0 means that the slot of the routee has used up its leases */
    DOMI_CHECK(reached == 0 || reached >= who.lease);
}

/* Check the fields that senders read from an open router. */
static void check_fields_of_open_router(const domi_router *router, uint32_t most)
{
    uint32_t count = get_routee_count(router);
    /* Relaxed: no thread changes the router during the check. */
    uint32_t route =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&router->route, memory_order_relaxed);
    bool has_key = atomic_load_explicit((_Atomic(domi_router_key *) *)(uintptr_t)&router->key,
                                        memory_order_relaxed) != NULL;

    DOMI_CHECK(DOMI_LIFE_LEASE(get_life_word_of_router(router)) != 0);
    DOMI_CHECK(count >= 2 || (count == 1 && router->borrows));
    DOMI_CHECK(count <= 1u << router->size_class);
    /* the router has the smallest size class with room for its routees */
    DOMI_CHECK(count > 1u << router->size_class >> 1);
    DOMI_CHECK(route <= DOMUS_ROUTE_HASH);
    DOMI_CHECK(route != DOMUS_ROUTE_NEAR || !router->borrows);
    DOMI_CHECK(has_key || route != DOMUS_ROUTE_HASH);
    for (uint32_t i = 0; i < count && i < most; i++)
        check_routee_of_router(domi_router_routee_at_index(router, i));
}

bool domi_router_check_before_open(const domi_router *router)
{
    check_memory_of_router(router);
    DOMI_CHECK(get_router_marks(router) == DOMI_LIFE_CLOSED);
    check_fields_of_open_router(router, UINT32_MAX);
    return true;
}

/* True if this routee takes no more messages, or was never spawned. */
static bool does_routee_take_no_more_messages(domus_address who)
{
    if (who.house == NULL)
        return true; /* the spawn of this routee has failed, so there is no actor */
    uint64_t life = domi_house_life_word(who.house);
    return DOMI_LIFE_LEASE(life) != who.lease || (life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP)) != 0;
}

bool domi_router_check_before_give_back(const domi_manager *manager, const domi_router *router)
{
    check_memory_of_router(router);
    DOMI_CHECK((get_router_marks(router) & ~DOMI_ROUTER_ORPHAN) == DOMI_LIFE_CLOSED);
    if (manager->ending.closing || manager->ending.has_stopped)
        return true; /* the system stops, and ends the routees itself */
    if (router->borrows)
        return true;
    for (uint32_t i = 0; i < get_routee_count(router); i++)
        DOMI_CHECK(does_routee_take_no_more_messages(domi_router_routee_at_index(router, i)));
    return true;
}

void domi_router_check(const domi_router *router)
{
    check_memory_of_router(router);
    switch (get_router_marks(router)) {
    case 0:
        check_fields_of_open_router(router, ROUTEES_MAX);
        break;
    case DOMI_LIFE_CLOSED:
    case DOMI_LIFE_CLOSED | DOMI_ROUTER_ORPHAN:
    case DOMI_LIFE_CLOSED | DOMI_ROUTER_STOPPING:
    case DOMI_LIFE_CLOSED | DOMI_ROUTER_STOPPING | DOMI_ROUTER_ORPHAN:
        break;
    default:
        DOMI_NEVER("a router is in no state");
    }
}

/* --- all routers ------------------------------------------------------------------------------ */

/* Check the routers in a free list, at most `most` of them. Returns their number. */
static uint32_t check_list_of_free_routers(const domi_router *router, uint32_t size_class,
                                           bool borrows, uint32_t most)
{
    uint32_t count = 0;

    for (; router != NULL && count < most; router = router->next) {
        DOMI_CHECK(router->size_class == size_class && router->borrows == borrows);
        DOMI_CHECK(get_router_marks(router) == DOMI_LIFE_CLOSED);
        DOMI_CHECK(DOMI_LIFE_LEASE(get_life_word_of_router(router)) != 0);
        count++;
    }
    return count;
}

/* Check the free routers of the system, at most `most` of them. Returns their number. */
static uint32_t check_free_routers(const domi_routers *routers, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t size_class = 0; size_class < DOMI_ROUTER_CLASSES; size_class++) {
        count +=
            check_list_of_free_routers(routers->free[size_class], size_class, false, most - count);
        count += check_list_of_free_routers(routers->free_borrowing[size_class], size_class, true,
                                            most - count);
    }
    return count;
}

static void check_all_routers(const domi_routers *routers)
{
    uint32_t free = check_free_routers(routers, WALKED_MAX);
    uint32_t used_up = 0;
    uint32_t made = 0;

    DOMI_CHECK(routers->count <= routers->max);
    for (const domi_router *router = routers->made; router != NULL; router = router->made) {
        if (made == WALKED_MAX)
            /* the list of routers is longer than what was checked, so the counts cannot be
             * compared */
            return;
        domi_router_check(router);
        used_up += DOMI_LIFE_LEASE(get_life_word_of_router(router)) == 0;
        made++;
    }
    DOMI_CHECK(routers->count + free <= made);
    DOMI_CHECK(routers->count + free + used_up >= made);
}

void domi_routers_check(domi_routers *routers)
{
    domi_spinlock_lock(&routers->lock);
    check_all_routers(routers);
    domi_spinlock_unlock(&routers->lock);
}

/* --- the actors ------------------------------------------------------------------------------- */

/* Check that the load of a routee stands beside its address in the router. If the router was made
 * anew before the routee has ended, the address there is that of another routee. */
static void check_load_stands_beside_routee(const domi_house *house)
{
    const char *load = (const char *)house->family->load;
    const domi_routee *routee =
        (const domi_routee *)(const void *)(load - offsetof(domi_routee, load));
    domus_address self = domi_house_get_address(house);
    /* Relaxed: no thread changes the router during the check. */
    const domi_house *told = atomic_load_explicit(
        (_Atomic(domi_house *) *)(uintptr_t)&routee->house, memory_order_relaxed);
    uint32_t lease =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&routee->lease, memory_order_relaxed);

    DOMI_CHECK((told == house && lease == self.lease) || does_routee_take_no_more_messages(self));
}

void domi_house_check_routers(const domi_manager *manager, const domi_house *house)
{
    uint32_t count = 0;

    if (house->family == NULL)
        return;
    if (house->family->load != NULL)
        check_load_stands_beside_routee(house);
    for (const domi_router *router = house->family->routers; router != NULL && count < WALKED_MAX;
         router = router->next) {
        DOMI_CHECK(router->owned);
        /* the router has its owner, which is the actor of this house */
        DOMI_CHECK((get_router_marks(router) & DOMI_ROUTER_ORPHAN) == 0);
        count++;
    }
    DOMI_CHECK(count == 0 || count <= manager->directory.routers->count);
}
