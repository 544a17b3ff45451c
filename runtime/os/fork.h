/* Recognition of a child process after a fork.
 *
 * After a fork the child has none of the threads, only copies of their memory, and it shares the
 * parent's rings. A number of the process tells parent and child apart: the child increments the
 * number before fork() returns there, and a system remembers the number under which it was started.
 * So the question whether this process is a child costs a load and no system call. A clone() that
 * the program calls itself does not increment the number. */
#ifndef DOMI_RUNTIME_OS_FORK_H
#define DOMI_RUNTIME_OS_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint32_t domi_fork_count;

/* Count forks from now on. Returns 0; -ENOMEM. Any thread may call this, also repeatedly. */
int domi_fork_watch(void);

/* Returns the number of forks that lie between the first process and this one. */
static inline uint32_t domi_fork_number(void)
{
    /* Relaxed: the number changes only in a process that has one thread. */
    return atomic_load_explicit(&domi_fork_count, memory_order_relaxed);
}

#endif
