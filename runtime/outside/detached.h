/* Detached actors. Each has a thread without a ring, and a manager of its own. The thread sleeps on
 * the park word of its manager (a futex); another thread that exchanges the word to NOTIFIED wakes
 * it.
 *
 * Threads are made on demand and stay until the system ends. A manager has to exist as long as any
 * address of its houses, and late mail needs a thread that answers it. */
#ifndef DOMI_RUNTIME_OUTSIDE_DETACHED_H
#define DOMI_RUNTIME_OUTSIDE_DETACHED_H

#include "runtime/system/system.h"

#include <domus/spawn.h>

typedef struct domi_detached {
    domi_manager manager; /* manager of the detached thread */
    domus_system *system; /* system to which the detached thread belongs */
    /* orders of the system (orders.h) that this thread has followed; only this thread uses the
     * field */
    uint32_t orders;
    /* true: the thread has an actor, or is reserved for one; under the system's mutex */
    bool busy;
    bool joined; /* true: pthread_join() was done for the thread */
    /* number of actors for which the thread was reserved so far; read and written under the
     * system's mutex */
    uint32_t chosen;
    /* number of actors that the detached thread has mounted so far; only that thread writes it */
    _Atomic uint32_t mounted;
    /* True if the object is part of a seat (seat.h): a foreign thread uses the manager, and the
     * library has made no thread. */
    bool foreign;
    size_t bytes;      /* size of the whole object in bytes, which is larger for a seat */
    pthread_t pthread; /* handle of the detached thread */
} domi_detached;

/* The functions of runtime that managers of detached actors call. */
extern const domi_runtime_hooks domi_hooks_of_detached;

/* Spawn an actor on a thread of its own. `parent` is NULL for an actor without a parent. It is
 * called as domi_runtime_hooks.spawn_detached. */
int domi_detached_spawn_actor(domi_manager *manager, domi_house *parent,
                              const domus_behaviour *behaviour, const void *state,
                              const domus_spawn_options *options, domus_address *ret_address);

/* Close detached actors for spawns: from now on they spawn nothing, and no new one is made. Any
 * thread. */
void domi_detached_close_for_spawns(domus_system *system);

/* Wake all detached threads, so that they follow a new step of the system's stop. Called under
 * outside_mutex, after domi_detached_close_for_spawns(). */
void domi_detached_wake_all_threads(domus_system *system);

/* True if each detached thread has mounted all actors for which it was reserved. Called under the
 * system's mutex. */
bool domi_detached_have_all_mounted(const domus_system *system);

/* domi_detached_count_busy_threads() returns how many detached threads have an actor or are
 * reserved for one. domi_detached_have_all_ended() returns true if all detached threads have left
 * their loops. */
uint64_t domi_detached_count_busy_threads(const domus_system *system);
bool domi_detached_have_all_ended(const domus_system *system);

/* End all detached threads. The system calls these three functions in this order:
 * domi_detached_tell_to_end() tells the threads to leave their loops, domi_detached_join_threads()
 * joins them, and domi_detached_fini() ends their managers and frees everything. */
void domi_detached_tell_to_end(domus_system *system);
void domi_detached_join_threads(domus_system *system);
void domi_detached_fini(domus_system *system);

#endif
