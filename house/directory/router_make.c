/* Makes routers and their routees, and uses stopped routers again. */
#include "house/directory/router.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/directory/name_table.h"
#include "house/directory/router_check.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/message/pooled.h"

#include <errno.h>

void domi_routers_init(domi_routers *routers, uint32_t max, uint32_t routees_max)
{
    *routers = (domi_routers){.max = max, .routees_max = routees_max};
    domi_spinlock_init(&routers->lock);
}

void domi_routers_fini(domi_routers *routers)
{
    while (routers->made != NULL) {
        domi_router *router = routers->made;

        routers->made = router->made;
        domi_memory_free(router);
    }
}

uint32_t domi_router_get_number(const domi_house *face)
{
    return ((const domi_router *)(const void *)face)->number;
}

domi_house *domi_router_at_number(domi_routers *routers, uint32_t number)
{
    domi_router *router;

    if (routers == NULL)
        return NULL;
    domi_spinlock_lock(&routers->lock);
    for (router = routers->made; router != NULL && router->number != number;)
        router = router->made;
    domi_spinlock_unlock(&routers->lock);
    return router != NULL ? &router->face : NULL;
}

/* --- open ------------------------------------------------------------------------------------- */

/* Returns the smallest size class of routers with room for `count` routees. */
static uint16_t find_size_class_of_router(uint32_t count)
{
    uint16_t size_class = 0;

    while ((1u << size_class) < count)
        size_class++;
    return size_class;
}

/* Make a router in new memory. Its first lease is 1, because a lease of 0 names nobody. */
static domi_router *make_router_in_new_memory(const domi_manager *manager, uint16_t size_class,
                                              bool borrows)
{
    size_t routees = (size_t)1 << size_class;
    domi_router *router = domi_memory_new_cache_lines(
        sizeof *router + routees * sizeof(domi_routee) + manager->count * sizeof(domi_router_turn));

    if (router == NULL)
        return NULL;
    router->size_class = size_class;
    router->borrows = borrows;
    router->turns = (domi_router_turn *)(void *)(router->routees + routees);
    atomic_store_explicit(&router->face.life, UINT64_C(1) << 32 | DOMI_LIFE_CLOSED,
                          memory_order_relaxed);
    return router;
}

/* Returns the list of free routers of this size class that borrow their routees, or that do not. */
static domi_router **get_list_of_free_routers(domi_routers *routers, uint16_t size_class,
                                              bool borrows)
{
    return borrows ? &routers->free_borrowing[size_class] : &routers->free[size_class];
}

static int take_free_or_new_router(domi_manager *manager, uint32_t count, bool borrows,
                                   domi_router **ret_router)
{
    domi_routers *routers = manager->directory.routers;
    uint16_t size_class = find_size_class_of_router(count);
    domi_router **list = get_list_of_free_routers(routers, size_class, borrows);
    domi_router *router = NULL;

    domi_spinlock_lock(&routers->lock);
    bool full = routers->count >= routers->max;
    if (!full) {
        routers->count++;
        router = *list;
        if (router != NULL)
            *list = router->next;
    }
    domi_spinlock_unlock(&routers->lock);
    if (full)
        return -ENOSPC;
    if (router == NULL) {
        router = make_router_in_new_memory(manager, size_class, borrows);
        domi_spinlock_lock(&routers->lock);
        if (router == NULL) {
            routers->count--;
        } else {
            router->number = routers->made != NULL ? routers->made->number + 1 : 0;
            router->made = routers->made;
            routers->made = router;
        }
        domi_spinlock_unlock(&routers->lock);
    }
    *ret_router = router;
    return router != NULL ? 0 : -ENOMEM;
}

void domi_router_give_back_to_free_list(domi_manager *manager, domi_router *router)
{
    domi_routers *routers = manager->directory.routers;
    uint64_t life = atomic_load_explicit(&router->face.life, memory_order_relaxed);

    DOMI_CHECK((life & (DOMI_LIFE_CLOSED | DOMI_ROUTER_STOPPING)) == DOMI_LIFE_CLOSED);
    DOMI_CHECK_SLOW(domi_router_check_before_give_back(manager, router));
    atomic_store_explicit(&router->face.life, life & ~DOMI_ROUTER_ORPHAN, memory_order_relaxed);
    domi_spinlock_lock(&routers->lock);
    routers->count--;
    if (DOMI_LIFE_LEASE(life) != 0) { /* lease 0: this router's leases are used up (M10) */
        domi_router **list = get_list_of_free_routers(routers, router->size_class, router->borrows);
        router->next = *list;
        *list = router;
    }
    domi_spinlock_unlock(&routers->lock);
}

/* --- spawn ------------------------------------------------------------------------------------ */

/* An order for a new router and its routees: what they are to be. */
struct order {
    domi_manager *manager;            /* the manager of the thread that makes the router */
    domi_house *parent;               /* the actor that makes the router */
    const domus_behaviour *behaviour; /* the behaviour that each routee gets */
    const void *state;           /* first state that each routee gets; NULL: all bytes are zero */
    uint32_t count;              /* number of routees of the new router */
    domus_routing routing;       /* way in which the new router chooses a routee for a message */
    domus_spawn_options options; /* options for the spawn of each routee */
    const char *name;            /* name of the router in the registry; NULL: none */
    /* addresses of the routees, if they exist already; NULL: they are spawned */
    const domus_address *borrowed;
};

/* True if the routees may live in the pool that the options name, or the options name none. In a
 * pool no routee could be near to a thread. */
static bool may_routees_live_in_pool(const struct order *order, bool per_thread)
{
    const struct domus_pool *pool = order->options.pool;

    return pool == NULL ||
           (!per_thread && order->routing.route != DOMUS_ROUTE_NEAR &&
            domi_pooled_home_for_spawn(order->manager, pool, order->behaviour) != NULL);
}

static int complete_and_check_router_order(struct order *order, const domus_routing *routing)
{
    uint32_t threads = order->manager->threads;
    bool per_thread = order->count == DOMUS_PER_THREAD;
    bool on_thread = order->options.placement == DOMUS_ON_THREAD;

    if (per_thread)
        order->count = threads;
    if (routing != NULL)
        order->routing = *routing;
    else
        order->routing.route = per_thread ? DOMUS_ROUTE_NEAR : DOMUS_ROUTE_ROBIN;
    if (order->count == 0 || order->routing.route > DOMUS_ROUTE_HASH ||
        (order->routing.route == DOMUS_ROUTE_HASH && order->routing.key == NULL) ||
        (on_thread && (per_thread || order->options.thread >= threads)) ||
        !may_routees_live_in_pool(order, per_thread))
        return -EINVAL;
    if (order->options.detached)
        return -EOPNOTSUPP;
    if (order->manager->directory.routers == NULL)
        return -ENOSPC;
    return order->count <= order->manager->directory.routers->routees_max ? 0 : -EINVAL;
}

/* Returns the home on which the routee with this index is spawned. */
static domi_manager *choose_home_of_routee(const struct order *order, uint32_t index)
{
    domi_manager *manager = order->manager;
    uint32_t threads = manager->threads;

    if (order->options.pool != NULL)
        return domi_pooled_part_of_pool(order->options.pool)->home;
    if (order->options.placement == DOMUS_ON_THREAD)
        return manager->managers[order->options.thread];
    if (order->routing.route == DOMUS_ROUTE_NEAR)
        /* pick_routee_on_own_thread() relies on this order of the threads */
        return manager->managers[index % threads];
    return manager->managers[manager->births.next_home++ % threads];
}

static void stop_routees(const struct order *order, const domi_router *router, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)domi_house_ask_to_stop(order->manager, domi_router_routee_at_index(router, i));
}

/* Spawn all routees of a new router. If one spawn fails, stop those that were spawned. */
static int spawn_routees(const struct order *order, domi_router *router)
{
    int error = 0;
    uint32_t made = 0;

    for (; made < order->count && error == 0; made++) {
        domi_routee *routee = &router->routees[made];
        bool tells = order->routing.route == DOMUS_ROUTE_LEAST;
        domus_address address = {NULL, 0};

        atomic_store_explicit(&routee->load, 0, memory_order_relaxed);
        const domi_birth birth = {.load = &routee->load};
        error = domi_house_spawn_for_directory(
            order->manager, order->parent, choose_home_of_routee(order, made), order->behaviour,
            order->state, &order->options, tells ? &birth : NULL, &address);
        /* release: a sender with an earlier lease of the router that reads this house then sees
         * that its lease has ended. */
        atomic_store_explicit(&routee->house, address.house, memory_order_release);
        atomic_store_explicit(&routee->lease, address.lease, memory_order_release);
    }
    if (error != 0)
        stop_routees(order, router, made);
    return error;
}

/* Give back those routers that this actor has made and another actor or thread has stopped. */
static void give_back_stopped_routers_of_actor(domi_manager *manager, domi_family *family)
{
    domi_router **link = &family->routers;

    while (*link != NULL) {
        domi_router *router = *link;
        /* acquire: pairs with the last change of `life` in domi_router_stop(). */
        uint64_t life = atomic_load_explicit(&router->face.life, memory_order_acquire);

        if ((life & (DOMI_LIFE_CLOSED | DOMI_ROUTER_STOPPING)) == DOMI_LIFE_CLOSED) {
            *link = router->next;
            domi_router_give_back_to_free_list(manager, router);
        } else {
            link = &router->next;
        }
    }
}

/* Give a new router its name and its lease: from here on other threads may learn its address. */
static int open_router_with_name_and_lease(const struct order *order, domi_router *router,
                                           domus_address *ret_address)
{
    uint64_t closed = atomic_load_explicit(&router->face.life, memory_order_relaxed);
    domus_address address = {&router->face, DOMI_LIFE_LEASE(closed)};
    int error = 0;

    router->owned = order->parent != NULL;
    router->name_slot = DOMI_NAMELESS;
    /* release: the comment in spawn_routees() says why. */
    atomic_store_explicit(&router->route, order->routing.route, memory_order_release);
    atomic_store_explicit(&router->count, order->count, memory_order_release);
    atomic_store_explicit(&router->key, order->routing.key, memory_order_release);
    if (order->name != NULL)
        error = order->manager->directory.names == NULL
                    ? -ENOSPC
                    : domi_names_register_address(order->manager->directory.names, order->name,
                                                  address, &router->name_slot);
    if (error != 0)
        return error;
    DOMI_CHECK_SLOW(domi_router_check_before_open(router));
    /* release: pairs with the acquire in domi_router_stop(). */
    atomic_store_explicit(&router->face.life, (uint64_t)address.lease << 32, memory_order_release);
    if (order->parent != NULL) {
        router->next = order->parent->family->routers;
        order->parent->family->routers = router;
    }
    *ret_address = address;
    return 0;
}

static int spawn_routee_by_router_order(struct order *order, domus_address *ret_address)
{
    order->options.name = order->name;
    domi_manager *home = choose_home_of_routee(order, 0);
    if (order->options.pool == NULL && order->options.placement == DOMUS_NEAR &&
        order->parent != NULL && order->parent->home->index < order->manager->threads)
        home = order->parent->home;
    return domi_house_spawn_child(order->manager, order->parent, home, order->behaviour,
                                  order->state, &order->options, ret_address);
}

int domi_router_spawn_with_routees(domi_manager *manager, domi_house *parent,
                                   const domus_behaviour *behaviour, const void *state,
                                   uint32_t count, const domus_routing *routing,
                                   const domus_spawn_options *options, domus_address *ret_address)
{
    struct order order = {manager, parent, behaviour, state, count, {0}, {0}, NULL, NULL};
    domi_router *router;

    if (options != NULL) {
        order.options = *options;
        order.name = options->name;
        order.options.name = NULL;
    }
    int error = complete_and_check_router_order(&order, routing);
    if (error != 0)
        return error;
    if (order.count == 1)
        return spawn_routee_by_router_order(&order, ret_address);
    if (parent != NULL) {
        if (domi_family_get_or_make(parent) == NULL)
            return -ENOMEM;
        give_back_stopped_routers_of_actor(manager, parent->family);
    }
    error = take_free_or_new_router(manager, order.count, false, &router);
    if (error != 0)
        return error;
    error = spawn_routees(&order, router);
    if (error == 0) {
        error = open_router_with_name_and_lease(&order, router, ret_address);
        if (error != 0)
            stop_routees(&order, router, order.count);
    }
    if (error != 0)
        domi_router_give_back_to_free_list(manager, router);
    return error;
}

int domus_spawn_many(domus_stack *stack, const domus_behaviour *behaviour, const void *state,
                     uint32_t count, const domus_routing *routing,
                     const domus_spawn_options *options, domus_address *ret_address)
{
    return domi_router_spawn_with_routees(stack->manager, domi_stack_get_house(stack), behaviour,
                                          state, count, routing, options, ret_address);
}

/* --- actors that exist ------------------------------------------------------------------------ */

/* Returns 0 if these addresses can be routees of a router: they are of actors here or elsewhere,
 * but of no routers of this system, because a put might then go in a circle. */
static int check_borrowed_routees(const struct order *order)
{
    const domi_routers *routers = order->manager->directory.routers;

    if (routers == NULL)
        return -ENOSPC;
    if (order->borrowed == NULL || order->count == 0 || order->count > routers->routees_max ||
        order->routing.route > DOMUS_ROUTE_HASH ||
        (order->routing.route == DOMUS_ROUTE_HASH && order->routing.key == NULL))
        return -EINVAL;
    for (uint32_t i = 0; i < order->count; i++) {
        domus_address who = order->borrowed[i];
        if (who.house == NULL || who.lease == 0 || domi_address_is_router(who))
            return -EINVAL;
    }
    return 0;
}

/* Returns the basic load of a borrowed routee, which counts for senders that are not on its
 * thread. */
static uint32_t get_load_of_borrowed_routee(const struct order *order, const domi_house *house)
{
    bool is_near = order->routing.route == DOMUS_ROUTE_NEAR;

    if (domi_house_is_remote(house))
        return is_near ? DOMI_DISTANCE_REMOTE : DOMI_LOAD_REMOTE;
    return is_near ? DOMI_DISTANCE_ELSEWHERE : DOMI_LOAD_ELSEWHERE;
}

static void store_borrowed_routees(const struct order *order, domi_router *router)
{
    for (uint32_t i = 0; i < order->count; i++) {
        domi_routee *routee = &router->routees[i];
        domus_address who = order->borrowed[i];

        atomic_store_explicit(&routee->load, get_load_of_borrowed_routee(order, who.house),
                              memory_order_relaxed);
        /* release: the comment in spawn_routees() says why. */
        atomic_store_explicit(&routee->house, who.house, memory_order_release);
        atomic_store_explicit(&routee->lease, who.lease, memory_order_release);
    }
}

int domus_route_to(domus_stack *stack, const domus_address *addresses, uint32_t count,
                   const domus_routing *routing, domus_address *ret_address)
{
    domi_manager *manager = stack->manager;
    domi_house *parent = domi_stack_get_house(stack);
    struct order order = {
        .manager = manager, .parent = parent, .count = count, .borrowed = addresses};
    domi_router *router;

    if (routing != NULL)
        order.routing = *routing;
    int error = check_borrowed_routees(&order);
    if (error != 0)
        return error;
    if (domi_family_get_or_make(parent) == NULL)
        return -ENOMEM;
    give_back_stopped_routers_of_actor(manager, parent->family);
    error = take_free_or_new_router(manager, count, true, &router);
    if (error != 0)
        return error;
    store_borrowed_routees(&order, router);
    /* distances stand in the loads of borrowed routees, so the nearest one is the least loaded */
    if (order.routing.route == DOMUS_ROUTE_NEAR)
        order.routing.route = DOMUS_ROUTE_LEAST;
    error = open_router_with_name_and_lease(&order, router, ret_address);
    if (error != 0)
        domi_router_give_back_to_free_list(manager, router);
    return error;
}

void domi_router_stop_all_of_actor(domi_manager *manager, domi_house *house)
{
    while (house->family != NULL && house->family->routers != NULL) {
        domi_router *router = house->family->routers;
        house->family->routers = router->next;
        (void)domi_router_stop(manager, domi_house_get_address(&router->face));
        /* acq_rel: the comment on the same change in domi_router_stop() says why. If another thread
         * is stopping the router at this moment, that thread frees the router. */
        uint64_t life =
            atomic_fetch_or_explicit(&router->face.life, DOMI_ROUTER_ORPHAN, memory_order_acq_rel);
        if ((life & DOMI_ROUTER_STOPPING) == 0)
            domi_router_give_back_to_free_list(manager, router);
    }
}
