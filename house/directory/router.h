/* Routers: a router is one address that stands for several actors, its routees.
 *
 * A router begins with a house (its `face`), to which its address points, but this house has no
 * home. So a put to it never takes the short way for houses of the own thread: the slow half of the
 * put sees that there is no home, and calls domi_router_put_to_one_or_all_routees(). Messages to
 * other actors pay nothing for this.
 *
 * A router's memory stays a router for the life of the system, as a slot stays a slot, and its life
 * word has a lease. A router that was stopped is used again, for a spawn with as many routees. All
 * fields that senders read are atomic. A sender may trust the fields that it has read if the life
 * word still has the sender's lease afterwards: a writer changes the life word first and writes the
 * fields by release stores, and a reader acquires the fields and then reads the life word again
 * (compare P2 in name_table.c).
 *
 * Senders of one thread count in a cache line of that thread. Each routee has a cache line that
 * holds its address and, for DOMUS_ROUTE_LEAST, its load, which the thread that runs the routee
 * records there. */
#ifndef DOMI_HOUSE_DIRECTORY_ROUTER_H
#define DOMI_HOUSE_DIRECTORY_ROUTER_H

#include "house/directory/router_layout.h"
#include "house/message/remote.h"

void domi_routers_init(domi_routers *routers, uint32_t max, uint32_t routees_max);

/* Free all routers of a system, when no thread uses them any more. Zeroed or finished routers are
 * accepted. */
void domi_routers_fini(domi_routers *routers);

static inline bool domi_address_is_router(domus_address address)
{
    return address.house != NULL && address.house->home == NULL &&
           !domi_house_is_remote(address.house);
}

/* Translate between a router and its number, which no other router of the system ever has:
 * domi_router_get_number() returns the number, domi_router_at_number() the face; NULL: there is
 * none. Any thread; domi_router_at_number() takes time in proportion to the number of routers. */
uint32_t domi_router_get_number(const domi_house *face);
domi_house *domi_router_at_number(domi_routers *routers, uint32_t number);

/* Put `node`, whose lease and kind are set, to one routee of a router; a message for all routees is
 * put to each of them. Returns as domi_mailbox_put(). */
int domi_router_put_to_one_or_all_routees(domi_manager *manager, domi_house *face, domi_node *node);

/* Stop a router and its routees. Returns as domi_house_ask_to_stop(). */
int domi_router_stop(domi_manager *manager, domus_address address);

/* Record the load of a routee, for a router with DOMUS_ROUTE_LEAST. Called by the thread that runs
 * the routee, and by its home. */
void domi_router_record_load_of_routee(domi_house *house);

/* --- making and giving back (router_make.c) --------------------------------------------------- */

/* Spawn a router with its routees as domus_spawn_many() does, from the thread of `manager`.
 * `parent` may be NULL: then the root is the parent. */
int domi_router_spawn_with_routees(domi_manager *manager, domi_house *parent,
                                   const domus_behaviour *behaviour, const void *state,
                                   uint32_t count, const domus_routing *routing,
                                   const domus_spawn_options *options, domus_address *ret_address);

/* Give a closed router back to the free routers, so that it may be used again. */
void domi_router_give_back_to_free_list(domi_manager *manager, domi_router *router);

/* Stop all routers that an actor has made, because the actor ends or restarts. */
void domi_router_stop_all_of_actor(domi_manager *manager, domi_house *house);

#endif
