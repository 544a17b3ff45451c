/* Counts the forks of this process (fork.h), by a handler of pthread_atfork, which runs in the
 * child before fork() returns there. */
#include "runtime/os/fork.h"

#include <errno.h>
#include <pthread.h>

_Atomic uint32_t domi_fork_count;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int result;

/* Count a fork in the child process; it is called there right after fork(2). */
static void count_fork_in_child_process(void)
{
    atomic_fetch_add_explicit(&domi_fork_count, 1, memory_order_relaxed);
}

static void register_fork_handler(void)
{
    result = pthread_atfork(NULL, NULL, count_fork_in_child_process);
}

int domi_fork_begin_to_count_forks(void)
{
    (void)pthread_once(&once, register_fork_handler);
    return result == 0 ? 0 : -ENOMEM;
}
