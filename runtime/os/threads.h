/* Threads that the library makes: the signals that they block, the stack on which they handle one,
 * and those that are not pinned. */
#ifndef DOMI_RUNTIME_OS_THREADS_H
#define DOMI_RUNTIME_OS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

/* ---- signals ----------------------------------------------------------------------------------*/

/* Signals go to the program's own threads: each thread that domus makes is made with signals
 * blocked.
 *
 * A new thread has the signal mask of its maker. So the maker blocks the signals, makes the thread,
 * and restores its own mask. Signals that a fault raises are not blocked. */

static inline void domi_signals_block(sigset_t *ret_before)
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

/* The alternate stack of a thread, on which the handler of a crash runs: the thread's own stack may
 * be what has overflowed. */

typedef struct domi_alternate_stack {
    void *memory; /* NULL: the thread has none of ours */
    size_t bytes;
} domi_alternate_stack;

/* Give the calling thread an alternate stack, unless it has one, as with a sanitizer. Without
 * memory it gets none. */
void domi_alternate_stack_begin(domi_alternate_stack *stack);

/* From now on threads that the library makes shall have one. */
void domi_alternate_stacks_want(void);

/* Do the same as domi_alternate_stack_begin() if the threads of the system have to have such a
 * stack. */
void domi_alternate_stack_begin_wanted(domi_alternate_stack *stack);

/* Take it back, on the same thread. Nothing happens if none was given. */
void domi_alternate_stack_end(domi_alternate_stack *stack);

/* ---- unpinned ---------------------------------------------------------------------------------*/

/* Threads of the library that are not pinned: on any CPU, with signals blocked. */

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
