/* Tells a child process after a fork from its parent.
 *
 * After a fork the child has none of the parent's threads, only copies of their memory, and it
 * shares the parent's rings. A number tells the two apart: the child increments it before fork()
 * returns there, and a system remembers the number under which it was started. So the question
 * whether this process is a child costs a load and no system call. A clone() that the program
 * calls itself does not increment the number. */
#ifndef DOMI_RUNTIME_OS_FORK_H
#define DOMI_RUNTIME_OS_FORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint32_t domi_fork_count;

/* Count forks of this process from now on. Returns 0; -ENOMEM. Any thread may call this, also
 * repeatedly. */
int domi_fork_begin_to_count_forks(void);

/* Returns the number of this process: how many counted forks lie between the first process and
 * this one. */
static inline uint32_t domi_fork_number_of_process(void)
{
    /* Relaxed: the number changes only in a child process that has one thread. */
    return atomic_load_explicit(&domi_fork_count, memory_order_relaxed);
}

#endif
