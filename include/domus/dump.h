/* A dump: what actors are doing, as text for people.
 *
 * The text is for people: its form may change in any version.
 *
 * Each thread describes its own actors, between two of their runs, while the other threads go on.
 * So all that the text says of one actor is true at one moment, and the system does not stop. If a
 * handler does not return within a second, the text says that its thread is stuck, and where. For
 * each actor the text has its behaviour, name, state and marks; its mail by kind; its parent,
 * children, timers and watches; which conversation holds a barrier; and for each conversation the
 * message that it began with and the things that it waits for: an ask (its type, to which actor,
 * since when, until when), a sleep, a receive, blocking work. A long list is cut, and the text says
 * how much more there is.
 *
 * An actor is named by its thread, the number of its slot there and its lease, as in "0/35.2". Its
 * address in memory is added only if log.addresses is set.
 *
 * An actor of a pool is described if it is idle just then, and else only named; of a runner the
 * text says in whose handler it is. Detached actors (domus/detached.h) are only counted.
 *
 * Thread-safety of all functions here: any foreign thread. While it runs, a dump needs memory for a
 * second copy of the text. */
#ifndef DOMUS_DUMP_H
#define DOMUS_DUMP_H

#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest time in ns that a dump waits for a thread to describe its actors, and the least bytes
 * of text that a dump needs for each thread and pool. */
#define DOMUS_DUMP_WAIT_NS   UINT64_C(1000000000)
#define DOMUS_DUMP_BYTES_MIN 1024u

/* Describe all actors in `text` (NUL-terminated). The actors of each thread and pool have an equal
 * share of `size`, in which channels come last; actors that do not fit are counted in the text.
 *
 * Returns 0; -EINVAL if `size` is less than DOMUS_DUMP_BYTES_MIN for each of these; -ESHUTDOWN
 * when the system does not run; -EDEADLK on one of its own threads; -ENOMEM; -ECHILD in a child
 * made by fork(). */
DOMUS_API int domus_dump(domus_system *system, char *text, size_t size);

/* The choice of the actors that domus_dump_some() describes. All fields may be 0. */
typedef struct domus_dump_filter {
    /* Only actors whose behaviour has this name; NULL: all. At most 63 bytes of it count. */
    const char *behaviour;
    /* number of matching actors of each thread and pool that are passed over first */
    uint32_t from;
    /* most actors of each thread and pool that the dump describes; 0: as many as fit */
    uint32_t count;
} domus_dump_filter;

/* Describe some actors, in the order of their places in memory, channels last: so `from` and
 * `count` lead from page to page, although actors that come and go meanwhile may be missed or seen
 * twice. The text counts all actors of the name. `filter` may be NULL. Returns as domus_dump(). */
DOMUS_API int domus_dump_some(domus_system *system, const domus_dump_filter *filter, char *text,
                              size_t size);

/* Describe one actor. `size` is at least DOMUS_DUMP_BYTES_MIN.
 *
 * Returns as domus_dump(); -ESTALE when the actor is gone; -ETIMEDOUT when its thread is stuck, or
 * its runner is in its handler for DOMUS_DUMP_WAIT_NS;
 * -EOPNOTSUPP for a detached actor, and for the address of a router; -EMSGSIZE when the text does
 * not fit into `size` bytes. */
DOMUS_API int domus_dump_actor(domus_system *system, domus_address address, char *text,
                               size_t size);

#ifdef __cplusplus
}
#endif

#endif
