/* The invariants of routers: what is true of a router in each state of its life.
 *
 * A check that fails is a bug of domus, and it ends the process (base/check.h). The functions that
 * return something always return true, so that they can stand in DOMI_CHECK_SLOW. */
#ifndef DOMI_HOUSE_DIRECTORY_ROUTER_CHECK_H
#define DOMI_HOUSE_DIRECTORY_ROUTER_CHECK_H

#include "house/directory/router_layout.h"

/* Check a new router with all its routees, just before it opens. The thread that makes the router
 * calls it. */
bool domi_router_check_before_open(const domi_router *router);

/* Check a router with all its routees, just before it is given back. The thread that gives it back
 * calls it. */
bool domi_router_check_before_give_back(const domi_manager *manager, const domi_router *router);

/* Check a router in any state. No thread may make or stop the router during the call. */
void domi_router_check(const domi_router *router);

/* Check the counts of a system's routers, and up to 1024 of the routers one by one. No thread may
 * make or stop a router during the call. */
void domi_routers_check(domi_routers *routers);

/* Check the list of routers that an actor has made, and, if the actor is a routee that records its
 * load, the place of that load. Called by the thread that runs the house; no thread may make or
 * stop a router during the call. */
void domi_house_check_routers(const domi_manager *manager, const domi_house *house);

#endif
