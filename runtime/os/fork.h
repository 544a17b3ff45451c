/* fork: in the child there are no threads, only copies of what they worked on, and the parent's
 * rings. What knows that is one number of the process, which the child counts up before fork
 * returns there; a system remembers the number it was started under. So it costs a load to ask, and
 * no system call. (A clone() by hand does not count.) */
#ifndef DOMI_RUNTIME_OS_FORK_H
#define DOMI_RUNTIME_OS_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint32_t domi_fork_count;

/* Count from now on. Any thread, as often as one likes. Returns 0; -ENOMEM. */
int domi_fork_watch(void);

/* Which number it is now. */
static inline uint32_t domi_fork_number(void)
{
    /* Relaxed: it changes only in a process that has one thread. */
    return atomic_load_explicit(&domi_fork_count, memory_order_relaxed);
}

#endif
