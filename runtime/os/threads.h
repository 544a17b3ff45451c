/* Helpers for threads that the library makes: the signals that they block, the alternate stacks for
 * their signal handlers, and threads that are not pinned. */
#ifndef DOMI_RUNTIME_OS_THREADS_H
#define DOMI_RUNTIME_OS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

/* ---- signals ----------------------------------------------------------------------------------*/

/* Signals are handled by the program's own threads, so domus makes each thread with its signals
 * blocked.
 *
 * A new thread has the signal mask of its maker. So the maker blocks the signals, makes the thread,
 * and restores its own mask. Signals that a fault raises are not blocked. */

static inline void domi_signals_block_for_new_thread(sigset_t *ret_before)
{
    sigset_t all;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

/* ---- alternate_stack.c ------------------------------------------------------------------------*/

/* The alternate stack of a thread, on which the handler of a crash runs, because the crash may be
 * an overflow of the thread's own stack. */

typedef struct domi_alternate_stack {
    void *memory; /* mapped memory of the alternate stack; NULL: the library gave the thread none */
    size_t bytes;
} domi_alternate_stack;

/* Give the calling thread an alternate stack for its signal handlers, unless it has one already,
 * for instance from a sanitizer. If there is no memory, it gets none. */
void domi_alternate_stack_begin(domi_alternate_stack *stack);

/* Let all threads that the library makes from now on have an alternate stack for their signal
 * handlers. */
void domi_alternate_stacks_want_for_threads(void);

/* Give the calling thread an alternate stack, as domi_alternate_stack_begin() does, but only if
 * domi_alternate_stacks_want_for_threads() was called before. */
void domi_alternate_stack_begin_if_wanted(domi_alternate_stack *stack);

/* Remove and free the alternate stack that domi_alternate_stack_begin() has given to the calling
 * thread. Nothing happens if the thread was given none. */
void domi_alternate_stack_end(domi_alternate_stack *stack);

/* ---- unpinned ---------------------------------------------------------------------------------*/

/* Threads of the library that are not pinned: they run on any CPU of the process, with signals
 * blocked. */

/* Make a thread that is not pinned and runs `run(argument)`. Its name is `name` (at most 15 bytes).
 * It may run on the CPUs `cpus`; otherwise it would inherit the affinity mask of its maker, which
 * may be one CPU. Returns 0; a negative errno. */
static inline int domi_unpinned_start_thread(pthread_t *ret_thread, void *(*run)(void *argument),
                                             void *argument, const char *name,
                                             const cpu_set_t *cpus)
{
    sigset_t before;

    domi_signals_block_for_new_thread(&before);
    int result = pthread_create(ret_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0)
        return -result;
    (void)pthread_setname_np(*ret_thread, name);
    (void)pthread_setaffinity_np(*ret_thread, sizeof *cpus, cpus);
    return 0;
}

#endif
