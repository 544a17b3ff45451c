/* Spawning and stopping: where an actor lives, its limits, and how it ends.
 *
 * An actor is the child of the actor that spawned it (domus/supervise.h), and stops before its
 * parent does.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given.
 * Foreign threads use domus_outside_* (domus/system.h). */
#ifndef DOMUS_SPAWN_H
#define DOMUS_SPAWN_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The rule by which the thread of a new actor is chosen. */
typedef enum domus_placement {
    /* the new actor lives on the thread of the actor that spawns it; a foreign thread spawns as by
     * DOMUS_SPREAD */
    DOMUS_NEAR,
    DOMUS_SPREAD,    /* the new actor lives on the next thread, round robin */
    DOMUS_ON_THREAD, /* the new actor lives on the thread that the option `thread` names */
} domus_placement;

/* Options of a spawn. All zeros are the defaults. The structure grows only at its end, with
 * a minor version. */
typedef struct domus_spawn_options {
    domus_placement placement;
    uint32_t thread; /* number of the thread for DOMUS_ON_THREAD, 0..threads-1 */
    /* Whether the actor never runs on another thread. False: other threads may run it, for one run
     * at a time (scheduler.steal and scheduler.idle.standIn of domus/config.h). */
    bool pinned;
    /* most asks and notices that wait in the mailbox, 1..65,535; 0: scheduler.mailboxMax */
    uint32_t mailbox_max;
    const char *name; /* name of the actor in the registry (domus/name.h), copied; NULL: none */

    /* Time without a message after which the actor stops (rounded up to ticks of 1 ms); 0: it never
     * does. Bytes that its channels get count as a message. */
    uint64_t passivate_after_ns;

    /* whether the actor has a thread of its own (domus/detached.h); placement does not count
     * then */
    bool detached;

    /* Pool of the system (domus/pools.h) whose runners run the actor; then placement does not
     * count. NULL: the actor lives on a thread of the loop. An actor of a pool that spawns
     * DOMUS_NEAR spawns in its pool. */
    const struct domus_pool *pool;
} domus_spawn_options;

/* Make an actor. Its state begins as a copy of `state` (behaviour->state_size bytes), or zeroed
 * when that is NULL. It lives on the thread of the actor that makes it; on_mount runs there before
 * its first message, which may be sent at once.
 *
 * Returns 0; -EINVAL for a wrong behaviour; for one with a pipeline (its own, or that of its
 * channels) what `check` of a stage returned; -EOPNOTSUPP for a channels actor in the pool of the
 * actor that makes it; -ENOMEM; -ESHUTDOWN when the system or this actor stops, or this actor is
 * about to restart. */
DOMUS_API int domus_spawn(domus_stack *stack, const domus_behaviour *behaviour, const void *state,
                          domus_address *ret_address);

/* Do what domus_spawn() does, with options (NULL: none). It also returns -EINVAL for a thread that
 * does not exist, a bound out of range, a pool of another system, or a channels actor in the pool
 * that the options name; -EEXIST when the name is taken; -ENOSPC at names.max; and for a detached
 * actor -EAGAIN when detached.threadsMax threads are in use, or the kernel's error when it cannot
 * make a thread. */
DOMUS_API int domus_spawn_with(domus_stack *stack, const domus_behaviour *behaviour,
                               const void *state, const domus_spawn_options *options,
                               domus_address *ret_address);

/* Stop an actor (also oneself): the actor handles at most one more ask or notice, counted from the
 * moment when its thread sees the stop. Its conversations are cancelled (-ECANCELED), its timers
 * and watches are taken back, its channels closed, and its children stopped. When all that is done,
 * on_stop runs, and the actor is gone. Asks that it did not handle fail with -ESTALE, and other
 * mail becomes dead letters.
 *
 * An actor in another system is told to stop, too, by its system (domus/remote.h), which may not be
 * reached any more: a watch tells when it is gone.
 *
 * Returns 0, also when the actor stops already; -ESTALE when it is gone; for an actor in another
 * system also -ENOMEM, and -EHOSTDOWN when no gateway is there. */
DOMUS_API int domus_stop(domus_stack *stack, domus_address address);

/* Stop an actor once it has handled the notices that wait for it now (and the asks before them).
 * Returns as domus_notice(). */
DOMUS_API int domus_stop_after_mail(domus_stack *stack, domus_address address);

/* Pause the passivation of this actor, or resume it. While it is paused, the actor does not stop
 * for lack of messages; resuming begins the idle time anew. Returns 0; -EINVAL when it was spawned
 * without passivate_after_ns. */
DOMUS_API int domus_passivation_pause(domus_stack *stack);
DOMUS_API int domus_passivation_resume(domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
