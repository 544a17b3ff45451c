/* Detached actors: a manager and a thread for each, without a ring. The thread sleeps on the
 * manager's park word itself (a futex); whoever exchanges it to NOTIFIED wakes it.
 *
 * Threads are made on demand and stay until the system ends: a manager has to live as long as any
 * address of its houses, and late mail wants somebody to answer it. */
#ifndef DOMI_RUNTIME_OUTSIDE_DETACHED_H
#define DOMI_RUNTIME_OUTSIDE_DETACHED_H

#include "runtime/system/system.h"

#include <domus/spawn.h>

typedef struct domi_detached {
    domi_manager manager;
    domus_system *system;
    _Atomic uint32_t wanted; /* domi_wanted: run, stop, end */
    domi_wanted doing;
    bool busy;   /* it has an actor, or is about to; under the system's mutex */
    bool joined; /* nobody runs it any more */
    pthread_t pthread;
} domi_detached;

/* domi_manager.spawn_detached; `parent` is NULL for one of the root. */
int domi_detached_spawn(domi_manager *manager, domi_house *parent, const domus_behaviour *behaviour,
                        const void *state, const domus_spawn_options *options,
                        domus_address *ret_address);

/* From here on they spawn nothing, and no more are made. Any thread. */
void domi_detached_close(domus_system *system);

/* The system stops: they stop their actors that have no parent. From a foreign thread. */
void domi_detached_stop(domus_system *system);

/* How many actors they have; whether all threads have left their loops. */
uint64_t domi_detached_houses(const domus_system *system);
bool domi_detached_ended(const domus_system *system);

/* Let the threads leave their loops; join those that have, end what is left, free all. */
void domi_detached_end(domus_system *system);
void domi_detached_join(domus_system *system);
void domi_detached_fini(domus_system *system);

#endif
