/* Pools: threads without rings that share a population of actors.
 *
 * A thread of the loop is right for services: its actors stay where they are, and io has its share
 * of each iteration. It is wrong for work that computes for long, and for work that spreads itself
 * over many short actors. For such work a system may have pools (`pools` in the YAML, or
 * domus_config.pools). A pool has runners, which are threads that wait for work, not for io, and a
 * policy by which they share its actors (domus/policy.h).
 *
 * An actor is in a pool if it is spawned with domus_spawn_options.pool, or by an actor of the pool
 * with DOMUS_NEAR. It is a state actor in all else: its behaviour and all verbs are the same, and
 * it runs on any runner of its pool, on one at a time, for `throughput` messages at most before
 * others have their turns. Actors of pools, of threads and of other pools send to each other and
 * ask each other as any actors.
 *
 * A ring is not to be had in a pool: an actor there has no channels, opens no files and
 * connects to nothing (-EOPNOTSUPP, and the log says so once). It asks an actor of a thread to do
 * so. Timers and time-outs come as late as the actor's turn, and at least up to 2 ms late.
 *
 * Runners are not pinned. They keep off the CPUs of the loop's threads if the process may use as
 * many others as the pool has runners.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_POOLS_H
#define DOMUS_POOLS_H

#include <domus/policy.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* Returns the pool of this name, or NULL if there is none. It is constant for the life of the
 * system, so a program looks once. */
DOMUS_API const domus_pool *domus_pool_find(domus_stack *stack, const char *name);
DOMUS_API const domus_pool *domus_outside_pool_find(struct domus_system *system, const char *name);

#ifdef __cplusplus
}
#endif

#endif
