/* Chooses a routee for each message of a router, and stops routers with their routees. */
#include "house/directory/router.h"

#include "house/conversation/stack.h"
#include "house/directory/name_table.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <errno.h>
#include <string.h>

/* index that is no routee's, because every routee of the router is gone */
#define NOBODY UINT32_MAX

/* A view of a router: a copy of those of its fields that belong to one lease. */
typedef struct view {
    domi_router *router; /* the router whose fields were copied */
    uint32_t lease;      /* the lease of the router to which the fields below belong */
    uint32_t route;      /* way in which the router chooses a routee, a domus_route */
    uint32_t count;      /* number of the router's routees in use */
    /* the router's function that reads the key of a message, for DOMUS_ROUTE_HASH; NULL: none */
    domi_router_key *key;
} view;

static domi_router *get_router_of_face(domi_house *face)
{
    return (domi_router *)(void *)face;
}

/* Relaxed: the loads of the router's fields before this one acquire, so this load of the life word
 * comes after them. */
static bool has_router_still_lease(const domi_router *router, uint32_t lease)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&router->face.life,
                                memory_order_relaxed) == (uint64_t)lease << 32;
}

static bool read_view_of_router(domi_router *router, uint32_t lease, view *ret_view)
{
    /* acquire: pairs with the releases in open_router_with_name_and_lease(). An address that came
     * by a message brings the router's fields of its lease with it. */
    *ret_view = (view){
        .router = router,
        .lease = lease,
        .route = atomic_load_explicit(&router->route, memory_order_acquire),
        .count = atomic_load_explicit(&router->count, memory_order_acquire),
        .key = atomic_load_explicit(&router->key, memory_order_acquire),
    };
    return has_router_still_lease(router, lease);
}

/* Read the address of a routee from a router. Returns false if the lease of the router has
 * ended. */
static bool read_address_of_routee(const view *now, uint32_t index, domus_address *ret_address)
{
    *ret_address = domi_router_routee_at_index(now->router, index);
    return has_router_still_lease(now->router, now->lease);
}

/* True if the routee still takes messages. An outdated view of the router may name any address, but
 * the memory of any house may be read. */
static bool does_actor_take_messages(domus_address address)
{
    if (address.house == NULL)
        return false;
    uint64_t life = domi_house_life_word(address.house);
    return DOMI_LIFE_LEASE(life) == address.lease &&
           (life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP)) == 0;
}

/* --- robin, near ------------------------------------------------------------------------------ */

/* Returns the next number that this thread counts at a router, by which the next routee is chosen.
 * Each thread begins with another number. */
static uint32_t get_next_routing_count_of_thread(const domi_manager *manager, const view *now)
{
    return now->router->turns[manager->index].next++ + manager->index;
}

/* Returns the index of a routee on the sender's own thread; a thread on which none lives always
 * gets the same index, and a manager that is no thread's gets all in turn. With DOMUS_ROUTE_NEAR
 * the routees are spread over the threads in turn: thread 1 of 4 has the routees 1, 5, 9 and so
 * on. */
static uint32_t pick_routee_on_own_thread(const domi_manager *manager, const view *now)
{
    uint32_t threads = manager->threads;
    uint32_t index = manager->index;

    /* the manager is the outside's, a detached actor's or a runner's, which have no routees of
     * their own */
    if (index >= threads)
        return get_next_routing_count_of_thread(manager, now) % now->count;
    if (index >= now->count)
        return index % now->count;
    uint32_t own = (now->count - index + threads - 1) / threads;
    return own == 1 ? index
                    : index + threads * (get_next_routing_count_of_thread(manager, now) % own);
}

/* Put the message to the router's routees one after the other, from `first` on, until one takes it.
 * A routee that has ended is passed over; with `passes_full` a routee that refuses is passed over,
 * too. */
static inline __attribute__((always_inline)) int
put_to_first_routee_that_takes_it(domi_manager *manager, const view *now, domi_node *node,
                                  uint32_t first, bool passes_full)
{
    int error = -ESTALE;

    for (uint32_t i = 0; i < now->count; i++) {
        domus_address to;
        if (!read_address_of_routee(now, (first + i) % now->count, &to))
            return -ESTALE;
        int result = domi_mailbox_put(manager, to, node, node->kind);
        if (result == 0)
            return 0;
        if (result != -ESTALE && !passes_full)
            return result;
        if (result != -ESTALE)
            error = result;
    }
    return error;
}

/* --- least, hash ------------------------------------------------------------------------------ */

void domi_router_record_load_of_routee(domi_house *house)
{
    /* Relaxed: the routee's load is only a hint. */
    atomic_store_explicit(house->family->load,
                          house->mail + domi_house_count_parked_conversations(house),
                          memory_order_relaxed);
}

static uint32_t get_load_of_routee(const domi_manager *manager, const view *now, uint32_t index,
                                   domus_address who)
{
    const domi_house *house = who.house;
    uint32_t depth = domi_mailbox_depth_of_inbox(house);

    if ((domi_house_life_word(house) & DOMI_LIFE_FULL) != 0)
        return UINT32_MAX;
    /* The home of the routee can read its mailboxes. Elsewhere the load is the one that the routee
     * recorded last, plus the messages in its inbox. */
    if (house->home == manager && !domi_house_is_exposed(house))
        return house->mail + domi_house_count_parked_conversations(house) + depth;
    return atomic_load_explicit(&now->router->routees[index].load, memory_order_relaxed) + depth;
}

static uint32_t pick_least_loaded_routee(const domi_manager *manager, const view *now,
                                         uint32_t start)
{
    uint32_t best = NOBODY;
    uint32_t best_load = 0;

    for (uint32_t i = 0; i < now->count; i++) {
        uint32_t index = (start + i) % now->count;
        domus_address who = domi_router_routee_at_index(now->router, index);
        if (!does_actor_take_messages(who))
            continue;
        uint32_t load = get_load_of_routee(manager, now, index, who);
        if (best == NOBODY || load < best_load) {
            best = index;
            best_load = load;
        }
        if (load == 0)
            break;
    }
    return best;
}

/* The finalizer of MurmurHash3: every bit of the result depends on every bit of `x`. */
static uint64_t mix_bits_of_hash(uint64_t x)
{
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* Rendezvous hashing: take the routee with the highest weight among those alive. The life word of a
 * routee is read only if the routee would win. */
static uint32_t pick_routee_with_highest_weight(const view *now, uint64_t key)
{
    uint64_t mixed = mix_bits_of_hash(key ^ UINT64_C(0x9e3779b97f4a7c15));
    uint32_t best = NOBODY;
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < now->count; i++) {
        uint64_t weight = mix_bits_of_hash(mixed + i * UINT64_C(0x9e3779b97f4a7c15));
        if ((best == NOBODY || weight > best_weight) &&
            does_actor_take_messages(domi_router_routee_at_index(now->router, i))) {
            best = i;
            best_weight = weight;
        }
    }
    return best;
}

/* Try the other routees of a router, because the chosen one has refused the message. Only a router
 * that borrows its routees does this, and not where a key decides: such a routee may be remote, and
 * the state of its node is not part of its load. */
static __attribute__((noinline, cold)) int
put_to_another_routee(domi_manager *manager, const view *now, domi_node *node, int error)
{
    if (now->route == DOMUS_ROUTE_HASH || !now->router->borrows)
        return error;
    return put_to_first_routee_that_takes_it(
        manager, now, node, get_next_routing_count_of_thread(manager, now) % now->count, true);
}

/* Put the message to a routee that is chosen among those alive. If the chosen one has just ended,
 * choose again. `by_key` is a constant in each call. */
static inline __attribute__((always_inline)) int
put_to_chosen_routee(domi_manager *manager, const view *now, domi_node *node, bool by_key)
{
    domi_envelope *message = (domi_envelope *)(void *)node;
    uint64_t key = by_key ? now->key(message->type, domi_envelope_get_payload(message)) : 0;
    uint32_t start = by_key ? 0 : get_next_routing_count_of_thread(manager, now);

    for (uint32_t i = 0; i <= now->count; i++) {
        uint32_t index = by_key ? pick_routee_with_highest_weight(now, key)
                                : pick_least_loaded_routee(manager, now, start);
        domus_address to;
        if (index == NOBODY || !read_address_of_routee(now, index, &to))
            return -ESTALE;
        int error = domi_mailbox_put(manager, to, node, node->kind);
        if (DOMI_LIKELY(error == 0))
            return 0;
        if (error != -ESTALE)
            return put_to_another_routee(manager, now, node, error);
    }
    return -ESTALE;
}

/* --- all -------------------------------------------------------------------------------------- */

/* True if a message is for all routees of a router: for a cancel, because only the routee that
 * has the ask knows it, and for the message of domus_stop_after_mail(), because it stops every
 * routee. */
static bool is_message_for_all_routees(const domi_node *node)
{
    const domus_type *type = ((const domi_envelope *)(const void *)node)->type;

    return type == &domi_cancel_type || type == &domi_last_type;
}

/* Stop a router that borrows its routees at the message of domus_stop_after_mail(). Earlier
 * messages are in the mailboxes of the routees already. */
static __attribute__((noinline, cold)) int
stop_router_with_borrowed_routees(domi_manager *manager, const view *now, domi_node *node)
{
    int error = domi_router_stop(manager, (domus_address){&now->router->face, now->lease});

    if (error == 0)
        domi_pool_free_object(manager, node);
    return error;
}

/* Put a copy of the message to each routee of the router; one that has ended needs no copy. Returns
 * 0; -ESTALE when the router, or each routee, has ended; else the first error of another kind. */
static int put_to_all_routees(domi_manager *manager, const view *now, domi_node *node)
{
    const domi_envelope *message = (domi_envelope *)(void *)node;
    uint32_t alive = 0;
    int error = 0;

    if (message->type == &domi_last_type && now->router->borrows &&
        has_router_still_lease(now->router, now->lease))
        return stop_router_with_borrowed_routees(manager, now, node);
    for (uint32_t i = 0; i < now->count; i++) {
        domus_address to;
        if (!read_address_of_routee(now, i, &to))
            return -ESTALE;
        domi_envelope *copy = domi_envelope_new(manager, sizeof *copy);
        int result = -ENOMEM;
        if (copy != NULL) {
            copy->type = message->type;
            copy->sender = message->sender;
            copy->sender_lease = message->sender_lease;
            memcpy(copy->payload, message->payload, sizeof copy->payload);
            result = domi_mailbox_put(manager, to, &copy->node, node->kind);
            if (result != 0)
                domi_pool_free_object(manager, &copy->node);
        }
        alive += result != -ESTALE;
        if (error == 0 && result != -ESTALE)
            error = result;
    }
    if (alive == 0)
        return -ESTALE;
    if (error == 0)
        domi_pool_free_object(manager, node);
    return error;
}

int domi_router_put_to_one_or_all_routees(domi_manager *manager, domi_house *face, domi_node *node)
{
    view now;

    if (!read_view_of_router(get_router_of_face(face), node->lease, &now) ||
        node->kind >= DOMI_MAILBOXES)
        return -ESTALE;
    if (is_message_for_all_routees(node))
        return put_to_all_routees(manager, &now, node);
    switch (now.route) {
    case DOMUS_ROUTE_ROBIN:
        return put_to_first_routee_that_takes_it(
            manager, &now, node, get_next_routing_count_of_thread(manager, &now) % now.count, true);
    case DOMUS_ROUTE_NEAR:
        return put_to_first_routee_that_takes_it(manager, &now, node,
                                                 pick_routee_on_own_thread(manager, &now), false);
    case DOMUS_ROUTE_LEAST:
        return put_to_chosen_routee(manager, &now, node, false);
    default:
        return put_to_chosen_routee(manager, &now, node, true);
    }
}

int domi_router_stop(domi_manager *manager, domus_address address)
{
    domi_router *router = get_router_of_face(address.house);
    uint64_t life = (uint64_t)address.lease << 32;
    uint64_t closed = (uint64_t)(address.lease + 1) << 32 | DOMI_LIFE_CLOSED;

    /* acquire: pairs with the release in open_router_with_name_and_lease(). */
    if (!atomic_compare_exchange_strong_explicit(&router->face.life, &life,
                                                 closed | DOMI_ROUTER_STOPPING,
                                                 memory_order_acquire, memory_order_relaxed))
        return -ESTALE;
    uint32_t count = atomic_load_explicit(&router->count, memory_order_relaxed);
    if (router->borrows)
        count = 0;
    for (uint32_t i = 0; i < count && !manager->ending.has_stopped; i++)
        (void)domi_house_ask_to_stop(manager, domi_router_routee_at_index(router, i));
    if (router->name_slot != DOMI_NAMELESS)
        domi_names_remove_name(manager->directory.names, router->name_slot, address);
    bool owned = router->owned;
    /* acq_rel: the thread that gives the router back does so after everything that this thread has
     * done to it, and after the end of the actor that made the router. */
    life =
        atomic_fetch_and_explicit(&router->face.life, ~DOMI_ROUTER_STOPPING, memory_order_acq_rel);
    if (!owned || (life & DOMI_ROUTER_ORPHAN) != 0)
        domi_router_give_back_to_free_list(manager, router);
    return 0;
}

uint32_t domus_routees(const domus_stack *stack, domus_address address,
                       domus_address *ret_addresses, uint32_t room)
{
    uint32_t found = 0;
    view now = {.count = 1};

    (void)stack;
    if (domi_address_is_router(address) &&
        !read_view_of_router(get_router_of_face(address.house), address.lease, &now))
        return 0;
    for (uint32_t i = 0; i < now.count; i++) {
        domus_address who = address;
        if (now.router != NULL && !read_address_of_routee(&now, i, &who))
            return 0;
        if (!does_actor_take_messages(who))
            continue;
        if (found < room)
            ret_addresses[found] = who;
        found++;
    }
    return found;
}
