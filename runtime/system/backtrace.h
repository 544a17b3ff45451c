/* A backtrace tells where a thread is that does not come back from a handler. The thread itself
 * takes it, in a signal handler.
 *
 * One thread at a time asks (the monitor). The handler stores addresses into the thread's own
 * buffer, and calls a function that notes other values that only the thread can read without a
 * race. The asking thread does everything else. */
#ifndef DOMI_RUNTIME_SYSTEM_BACKTRACE_H
#define DOMI_RUNTIME_SYSTEM_BACKTRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* most frames of a thread's stack that a backtrace stores */
#define DOMI_BACKTRACE_FRAMES_MAX 32u
/* most frames of the signal handler and the signal trampoline, which a backtrace leaves out */
#define DOMI_BACKTRACE_OWN_MAX 8u

typedef enum domi_backtrace_state {
    DOMI_BACKTRACE_NONE,
    DOMI_BACKTRACE_WANTED,
    DOMI_BACKTRACE_TAKING, /* state of a backtrace: the signal handler is storing the frames */
    DOMI_BACKTRACE_TAKEN,
} domi_backtrace_state;

typedef struct domi_backtrace {
    _Atomic uint32_t state; /* state in which the backtrace is, a domi_backtrace_state */
    /* true: the thread of the backtrace takes the signal; constant once the thread runs */
    bool admitted;
    /* Called in the signal handler, after the frames were stored, to read other things that only
     * the thread itself can read without a race. */
    void (*note)(void *context);
    void *context; /* argument that the function `note` gets */

    /* The signal handler writes the next fields; the asking thread reads them once the state is
     * TAKEN. */
    uint32_t count;
    uint32_t first; /* index in `frames` of the frame that the signal has interrupted */
    /* frames of the stack as return addresses, the innermost first */
    void *frames[DOMI_BACKTRACE_FRAMES_MAX + DOMI_BACKTRACE_OWN_MAX];
} domi_backtrace;

/* Let the calling thread, which owns `trace`, take `signal` from now on, if the program has
 * installed the handler. The handler calls `note` with `context`; what `note` writes may be read
 * once the state is TAKEN. */
void domi_backtrace_enable_thread(domi_backtrace *trace, int signal, void (*note)(void *context),
                                  void *context);

/* Ask the thread `who`, which owns `trace`, for a backtrace. Returns 0 if the signal was sent (the
 * state becomes TAKEN if the thread takes it); -ENOENT if there is no handler; -EACCES if the
 * thread was started before there was one; -EBUSY if an earlier request is not finished. */
int domi_backtrace_request_of_thread(domi_backtrace *trace, pthread_t who, int signal);

/* True if a requested backtrace is complete and may be read. */
static inline bool domi_backtrace_is_complete(domi_backtrace *trace)
{
    /* acquire: pairs with the release in the signal handler, so the reader sees what the handler
     * has written. */
    return atomic_load_explicit(&trace->state, memory_order_acquire) == DOMI_BACKTRACE_TAKEN;
}

/* Drop a backtrace that was read, or withdraw a request for one. */
void domi_backtrace_drop_or_withdraw(domi_backtrace *trace);

/* Take the call stack of the calling thread, in a handler of a signal that got `context`. `frames`
 * gets up to `size` return addresses, the innermost first; the frames before `*ret_first`, at most
 * DOMI_BACKTRACE_OWN_MAX, belong to the handler itself. Returns the number of frames. */
uint32_t domi_backtrace_take_in_handler(void **frames, uint32_t size, const void *context,
                                        uint32_t *ret_first);

/* Write frame `index` of a backtrace (0: the innermost) as text (base/symbol.h). Returns false if
 * it has no such frame. */
bool domi_backtrace_write_frame(const domi_backtrace *trace, uint32_t index, bool addresses,
                                char *text, size_t size);

#endif
