/* How far the stop of a system has come: one enum, and one name for the words that hold it,
 * `stop_step`.
 *
 * The system has the step that is wanted. The thread that stops the system writes it and wakes
 * every thread (stop.c). Each thread has the step that it has begun: a thread of the loop follows
 * at its next phase 2 (follow.c), a detached thread between two runs (detached.c).
 *
 * The thread that stops the system goes on to the next step when the words of all threads of the
 * loop, and the counters, say that the step is done, or when the time of the step is over. So a
 * thread may miss a step; later it does the part of that step which still matters.
 *
 * Two fields of the system look alike and mean something else. `stage` says what foreign threads
 * may still do. It changes under outside_mutex before the step does: to DRAINING before DRAIN, to
 * ENDING before END; and to STOPPED when all threads have been joined. `detached_closed` keeps
 * detached actors from spawning, under the system's mutex; it is set before CLOSE. */
#ifndef DOMI_RUNTIME_SYSTEM_STOP_STEP_H
#define DOMI_RUNTIME_SYSTEM_STOP_STEP_H

typedef enum domi_stop_step {
    /* No stop of the system is wanted. */
    DOMI_STOP_NONE,

    /* A thread of the loop stops accepting, answers everything that has come, and closes the
     * channels that it has accepted when they owe nothing. Done when nobody listens and no
     * accepted connection is open; together with UPSTREAM it has shutdown.drainTimeout. Detached
     * threads do nothing. */
    DOMI_STOP_DRAIN,

    /* A thread of the loop closes in the same way the channels that it has connected, which the
     * accepted ones have used, and connects to nothing any more. Done when no connection is
     * open. */
    DOMI_STOP_UPSTREAM,

    /* A thread of the loop resets the channels that are left. This step is left out if the drain
     * was done in time. Done when no connection is open; the step has 5 seconds. Detached threads
     * do nothing. */
    DOMI_STOP_ABORT,

    /* A thread of the loop spawns nothing any more, and resets channels that have come after the
     * drain, or that it has still because it missed ABORT. Done when all threads of the loop have
     * begun it. Detached actors were closed before. */
    DOMI_STOP_CLOSE,

    /* A thread of either kind stops its actors that have no parent, and these their children. Done
     * when no actor lives; together with CLOSE it has shutdown.actorTimeout. */
    DOMI_STOP_ACTORS,

    /* A thread of either kind leaves its loop. This step comes at once if the start of the
     * system fails. */
    DOMI_STOP_END,
} domi_stop_step;

#endif
