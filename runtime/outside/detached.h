/* Detached actors: each has a manager and a thread without a ring. The thread sleeps on its
 * manager's park word itself (a futex); the thread that exchanges the word to NOTIFIED wakes it.
 *
 * Threads are made on demand and stay until the system ends, because a manager has to live as long
 * as any address of its houses, and mail that comes late needs a thread that answers it. */
#ifndef DOMI_RUNTIME_OUTSIDE_DETACHED_H
#define DOMI_RUNTIME_OUTSIDE_DETACHED_H

#include "runtime/system/system.h"

#include <domus/spawn.h>

typedef struct domi_detached {
    domi_manager manager; /* the manager of this thread */
    domus_system *system; /* the system that the thread belongs to */
    uint32_t orders; /* the orders that this thread has followed (orders.h); only it uses them */
    bool busy;       /* the thread has an actor, or was chosen for one; under the system's mutex */
    bool joined;     /* the thread was joined */
    uint32_t chosen; /* actors for which it was chosen so far; under the system's mutex */
    _Atomic uint32_t mounted; /* the number of mounted actors among these; its thread writes it */
    /* The object is a seat (seat.h): a foreign thread uses the manager, and no thread was made for
     * it. */
    bool foreign;
    size_t bytes;      /* the size of the object, which may be part of a larger one */
    pthread_t pthread; /* the thread */
} domi_detached;

/* The hooks of the managers of detached actors. */
extern const domi_runtime_hooks domi_hooks_of_detached;

/* Spawn an actor on a thread of its own. `parent` is NULL for a child of nobody. This
 * is domi_runtime_hooks.spawn_detached. */
int domi_detached_spawn(domi_manager *manager, domi_house *parent, const domus_behaviour *behaviour,
                        const void *state, const domus_spawn_options *options,
                        domus_address *ret_address);

/* Forbid spawns from now on: detached actors spawn nothing any more, and no detached actor is made.
 * Any thread. */
void domi_detached_close(domus_system *system);

/* Wake each detached thread, so that it follows the step that the system wants. Under
 * outside_mutex, after detached actors were closed. */
void domi_detached_notify_all(domus_system *system);

/* True if each detached thread has mounted the actors for which it was chosen. Under the system's
 * mutex. */
bool domi_detached_have_mounted(const domus_system *system);

/* domi_detached_houses() returns how many detached threads have an actor or were chosen for one.
 * domi_detached_has_ended() returns true if all detached threads have left their loops. */
uint64_t domi_detached_houses(const domus_system *system);
bool domi_detached_has_ended(const domus_system *system);

/* These functions end all detached threads, in this order: they tell the threads to leave their
 * loops, join them, and end their managers and free everything. */
void domi_detached_end(domus_system *system);
void domi_detached_join(domus_system *system);
void domi_detached_fini(domus_system *system);

#endif
