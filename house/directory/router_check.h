/* The invariants of routers: what is true of a router in each state of its life.
 *
 * A check that fails is a bug of domus, and it ends the process (base/check.h). The functions that
 * return something always return true, so that they can stand in DOMI_CHECK_SLOW. */
#ifndef DOMI_HOUSE_DIRECTORY_ROUTER_CHECK_H
#define DOMI_HOUSE_DIRECTORY_ROUTER_CHECK_H

#include "house/directory/router_layout.h"

/* Check a router that is made, with all its routees, just before it opens. Called by the thread
 * that makes it. */
bool domi_router_may_open(const domi_router *router);

/* Check a router that is about to be given back, with all its routees. Called by the thread that
 * gives it back. */
bool domi_router_may_be_given_back(const domi_manager *manager, const domi_router *router);

/* Check a router in any state. No thread may make or stop it meanwhile. */
void domi_router_check(const domi_router *router);

/* Check the counts of a system's routers, and up to 1024 of them one by one. No thread may make or
 * stop a router meanwhile. */
void domi_routers_check(domi_routers *routers);

/* Check what an actor knows of the routers that it made, and, if it is a routee that tells its
 * load, where it tells it. Called by whoever runs the house; no thread may make or stop a
 * router meanwhile. */
void domi_house_check_routers(const domi_manager *manager, const domi_house *house);

#endif
