/* A dump: what actors are doing, as text for people.
 *
 * The text is for people: it may change.
 *
 * Each thread describes its own actors, between two of their turns, while the others go on: so what
 * is said of one actor is true of one moment, and the world does not stop. A thread whose handler
 * does not return within a second is said to be stuck, and where. Of each actor: its behaviour,
 * name, state and marks; its mail by kind; parent, children, timers, watches; and for each
 * conversation what it began with and what it waits for: an ask (which type, to whom, since when,
 * until when), a sleep, a receive, blocking work; and who holds the barrier. Of long lists the
 * beginning, and how much more there is.
 *
 * An actor is told by its thread, the number of its place there and its lease, as in "0/35.2", and
 * by its address in memory only with log.addresses.
 *
 * Detached actors (domus/detached.h) are not described, only counted.
 *
 * Thread-safety: any foreign thread. Memory for the text is needed once more meanwhile. */
#ifndef DOMUS_DUMP_H
#define DOMUS_DUMP_H

#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How long a thread has to answer, and the least of a text for each thread. */
#define DOMUS_DUMP_WAIT_NS   UINT64_C(1000000000)
#define DOMUS_DUMP_BYTES_MIN 1024u

/* Describe all actors into `text` (NUL-terminated), each thread's in an equal share of `size`;
 * those that do not fit are counted in the text.
 *
 * Returns 0; -EINVAL for less than DOMUS_DUMP_BYTES_MIN a thread; -ESHUTDOWN when the system does
 * not run; -EDEADLK on one of its threads; -ENOMEM; -ECHILD. */
DOMUS_API int domus_dump(domus_system *system, char *text, size_t size);

/* Describe one actor. Also -ESTALE when it is gone; -ETIMEDOUT when its thread is stuck;
 * -EOPNOTSUPP for a detached one,
 * and for an address that stands for several; -EMSGSIZE when `size` (at least DOMUS_DUMP_BYTES_MIN)
 * is too small. */
DOMUS_API int domus_dump_actor(domus_system *system, domus_address address, char *text,
                               size_t size);

#ifdef __cplusplus
}
#endif

#endif
