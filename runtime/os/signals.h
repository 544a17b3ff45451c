/* Signals go to the program's own threads: each thread that domus makes is made with signals
 * blocked.
 *
 * A new thread has the signal mask of its maker. So the maker blocks the signals, makes the thread,
 * and restores its own mask. Signals that a fault raises are not blocked. */
#ifndef DOMI_RUNTIME_OS_SIGNALS_H
#define DOMI_RUNTIME_OS_SIGNALS_H

#include <pthread.h>
#include <signal.h>

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

#endif
