/* Signals stay with the program's own threads: what domus makes is made with them blocked.
 *
 * A new thread has the mask of its maker, so the maker blocks them, makes it, and takes its own
 * mask back. What a fault raises stays deliverable. */
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
