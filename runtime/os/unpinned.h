/* Threads of the library that are not pinned: on any CPU, with signals blocked (signals.h). */
#ifndef DOMI_RUNTIME_OS_UNPINNED_H
#define DOMI_RUNTIME_OS_UNPINNED_H

#include "runtime/os/signals.h"

#include <sched.h>

/* Make a thread that runs `run(argument)`. It is called `name` (15 bytes at most) and may run on
 * `cpus`: it would inherit the affinity mask of its maker, which may be one CPU. Returns 0; the
 * kernel's error. */
static inline int domi_unpinned_start(pthread_t *ret_thread, void *(*run)(void *argument),
                                      void *argument, const char *name, const cpu_set_t *cpus)
{
    sigset_t before;

    domi_signals_block(&before);
    int result = pthread_create(ret_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0)
        return -result;
    (void)pthread_setname_np(*ret_thread, name);
    (void)pthread_setaffinity_np(*ret_thread, sizeof *cpus, cpus);
    return 0;
}

#endif
