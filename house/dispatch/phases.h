/* The parts of an iteration that concern houses: arrivals, mounts, timers, runs of channels actors,
 * and the question whether any work is left. The loop of a thread calls these functions in its
 * phases; only the owner of the manager may (contract: Time and order). */
#ifndef DOMI_HOUSE_DISPATCH_PHASES_H
#define DOMI_HOUSE_DISPATCH_PHASES_H

#include "house/message/manager.h"

/* True if another thread has given this thread something: a loan, mail, or a belt that it has
 * turned on. Relaxed: a change that is missed now is seen in the next iteration. The owner, also
 * while a stand-in may hold the manager. */
static inline bool domi_manager_has_foreign_puts(domi_manager *manager)
{
    return atomic_load_explicit(&manager->mail.arrivals, memory_order_relaxed) != NULL ||
           atomic_load_explicit(&manager->loans.returns, memory_order_relaxed) != NULL ||
           atomic_load_explicit(&manager->belts.linked, memory_order_relaxed) != NULL;
}

/* True if a thief has returned a loan, mail has arrived, or a belt is on. Owner. */
static inline bool domi_manager_has_arrivals(domi_manager *manager)
{
    return domi_manager_has_foreign_puts(manager) || manager->belts.on != NULL;
}

/* Settle the loans that thieves have returned, then take the arrivals and sort their inboxes,
 * except those of exposed houses. Returns the number of returned loans and arrivals together.
 * Without any, this costs two relaxed loads. Owner. */
uint32_t domi_manager_take_arrivals(domi_manager *manager);

/* Settle the returned loans and sort the arrivals as a stand-in (base/park.h), each only if they
 * are few state actors with little mail that watch no descriptor. So this takes little time and
 * does not use io. */
void domi_manager_take_arrivals_as_stand_in(domi_manager *manager);

/* Mount the actors that wait for their mount. Returns their number. Owner. */
uint32_t domi_manager_mount_actors(domi_manager *manager);

/* Put the events of due timers, and let promises fail whose time is over. Returns how many of these
 * there were. If more are due than one call handles, the rest waits for the next call, and
 * domi_wheel_next_ns() of their wheel answers 0 until then. Owner. */
uint32_t domi_manager_fire_timers(domi_manager *manager);

/* Run ready channels actors: as many runs as actors are ready at the call, and up to
 * `channels_runs_per_iteration` more. Actors that are ready after that wait for the next phase 2.
 * Returns the number of runs. Owner. */
uint32_t domi_manager_run_channels_actors(domi_manager *manager);

/* True if any house waits for a run, a mount, a sort or a settle, or is to be taken back; io and
 * timers are not examined. The stacks to which other threads push are read seq_cst, because this is
 * step 3 of falling asleep (contract: Park and wake). Owner. */
bool domi_manager_has_work(const domi_manager *manager);

#endif
