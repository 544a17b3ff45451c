/* Where a thread is that does not come back: told by itself, in a signal handler.
 *
 * One thread at a time asks (the monitor). The handler only stores addresses into the thread's own
 * buffer, and what else only the thread can read without a race; all else is done by who asked. */
#ifndef DOMI_RUNTIME_SYSTEM_BACKTRACE_H
#define DOMI_RUNTIME_SYSTEM_BACKTRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_BACKTRACE_FRAMES_MAX 32u

/* The handler's own frames, which are left out, and the trampoline's. */
#define DOMI_BACKTRACE_OWN_MAX 8u

typedef enum domi_backtrace_state {
    DOMI_BACKTRACE_NONE,
    DOMI_BACKTRACE_WANTED,
    DOMI_BACKTRACE_TAKING, /* the handler is at it */
    DOMI_BACKTRACE_TAKEN,
} domi_backtrace_state;

typedef struct domi_backtrace {
    _Atomic uint32_t state; /* domi_backtrace_state */
    bool admitted;          /* the thread takes the signal; constant once it runs */

    /* The handler's, until TAKEN. */
    uint64_t beat;   /* as of domi_thread_beat() */
    uint32_t queued; /* houses that are ready here */
    uint32_t count;
    uint32_t first; /* of what was interrupted */
    void *frames[DOMI_BACKTRACE_FRAMES_MAX + DOMI_BACKTRACE_OWN_MAX];
} domi_backtrace;

/* The calling thread, which has `trace`, takes `signal` from now on, if there is a handler. */
void domi_backtrace_admit(domi_backtrace *trace, int signal);

/* Let `who`, whose trace it is, take one. Returns 0: it will soon be TAKEN, if the thread takes the
 * signal; -ENOENT: there is no handler; -EACCES: the thread was started before there was one;
 * -EBUSY: it is at the one before. */
int domi_backtrace_want(domi_backtrace *trace, pthread_t who, int signal);

/* It is there. */
static inline bool domi_backtrace_is_taken(domi_backtrace *trace)
{
    /* acquire: pairs with the handler's release; what it wrote is seen. */
    return atomic_load_explicit(&trace->state, memory_order_acquire) == DOMI_BACKTRACE_TAKEN;
}

/* It is read, or wanted no more. */
void domi_backtrace_drop(domi_backtrace *trace);

/* Frame `index`, the innermost is 0, in words (base/symbol.h); false behind the last. */
bool domi_backtrace_frame(const domi_backtrace *trace, uint32_t index, bool addresses, char *text,
                          size_t size);

#endif
