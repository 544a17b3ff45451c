/* This file takes a backtrace. The handler calls only functions that are async-signal-safe.
 * backtrace() is safe after a first call, which loads the library that unwinds; that first call is
 * made when the handler is installed. The asking thread looks up the symbols, because that takes
 * the loader's lock. */
#include "runtime/system/backtrace.h"

#include "base/check.h"
#include "base/symbol.h"

#include <domus/stall.h>

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

/* Returns the address of the instruction at which a signal has interrupted the thread; NULL on
 * machines whose context the library does not know. */
static void *get_interrupted_address(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void *)(uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

/* backtrace that belongs to the calling thread; NULL on a thread that has not called
 * domi_backtrace_enable_thread() */
static _Thread_local domi_backtrace *own;

uint32_t domi_backtrace_take_in_handler(void **frames, uint32_t size, const void *context,
                                        uint32_t *ret_first)
{
    const void *at = get_interrupted_address(context);
    int got = backtrace(frames, (int)size);
    uint32_t count = got > 0 ? (uint32_t)got : 0;

    *ret_first = 0;
    for (uint32_t i = 0; i < count && i <= DOMI_BACKTRACE_OWN_MAX && at != NULL; i++) {
        if (frames[i] == at)
            *ret_first = i;
    }
    return count;
}

static void store_frames_in_backtrace(domi_backtrace *trace, const void *context)
{
    trace->count = domi_backtrace_take_in_handler(
        trace->frames, DOMI_BACKTRACE_FRAMES_MAX + DOMI_BACKTRACE_OWN_MAX, context, &trace->first);
    trace->note(trace->context);
}

static void handle_signal_for_backtrace(int number, siginfo_t *info, void *context)
{
    int error = errno;
    domi_backtrace *trace = own;
    uint32_t wanted = DOMI_BACKTRACE_WANTED;

    (void)number, (void)info;
    /* A signal that was not asked for is ignored: any process may send this signal to any thread,
     * also to one without a backtrace. */
    if (trace == NULL)
        return;
    /* acquire: pairs with the release in domi_backtrace_request_of_thread(), so the prepared buffer
     * is seen. It is an exchange, because the request may be withdrawn at the same time
     * (domi_backtrace_drop_or_withdraw). */
    if (atomic_compare_exchange_strong_explicit(&trace->state, &wanted, DOMI_BACKTRACE_TAKING,
                                                memory_order_acquire, memory_order_relaxed)) {
        store_frames_in_backtrace(trace, context);
        /* release: pairs with the acquire in domi_backtrace_is_complete(), so the asking thread
         * sees the frames. */
        atomic_store_explicit(&trace->state, DOMI_BACKTRACE_TAKEN, memory_order_release);
    }
    errno = error;
}

/* True if the handler of a signal is the library's own. */
static bool is_own_backtrace_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 &&
           action->sa_sigaction == handle_signal_for_backtrace;
}

int domus_stall_signal(int number)
{
    struct sigaction action;
    void *frames[2];

    if (number < SIGRTMIN || number > SIGRTMAX)
        return -EINVAL;
    if (sigaction(number, NULL, &action) != 0)
        return -errno;
    if (is_own_backtrace_handler(&action))
        return 0;
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL)
        return -EBUSY;
    (void)backtrace(frames, 2);
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    action.sa_sigaction = handle_signal_for_backtrace;
    return sigaction(number, &action, NULL) == 0 ? 0 : -errno;
}

/* True if the library's handler of a signal is still installed: the program may have installed its
 * own instead. */
static bool is_backtrace_handler_installed(int number)
{
    struct sigaction action;

    return number >= SIGRTMIN && number <= SIGRTMAX && sigaction(number, NULL, &action) == 0 &&
           is_own_backtrace_handler(&action);
}

void domi_backtrace_enable_thread(domi_backtrace *trace, int number, void (*note)(void *context),
                                  void *context)
{
    sigset_t only;

    trace->note = note;
    trace->context = context;
    own = trace;
    trace->admitted = false;
    if (!is_backtrace_handler_installed(number))
        return;
    sigemptyset(&only);
    sigaddset(&only, number);
    trace->admitted = pthread_sigmask(SIG_UNBLOCK, &only, NULL) == 0;
}

int domi_backtrace_request_of_thread(domi_backtrace *trace, pthread_t who, int number)
{
    uint32_t none = DOMI_BACKTRACE_NONE;

    if (!is_backtrace_handler_installed(number))
        return -ENOENT;
    if (!trace->admitted)
        return -EACCES;
    /* release: the signal handler that finds this request sees the buffer as the asking thread has
     * prepared it. */
    if (!atomic_compare_exchange_strong_explicit(&trace->state, &none, DOMI_BACKTRACE_WANTED,
                                                 memory_order_release, memory_order_relaxed))
        return -EBUSY;
    int error = pthread_kill(who, number); // NOLINT(cert-pos44-c)
    if (error != 0)
        domi_backtrace_drop_or_withdraw(trace);
    return -error;
}

void domi_backtrace_drop_or_withdraw(domi_backtrace *trace)
{
    uint32_t state = atomic_load_explicit(&trace->state, memory_order_relaxed);

    /* Withdraw the request for a backtrace, unless the handler is just storing frames: then the
     * state becomes TAKEN, and the next request drops that backtrace. Relaxed: no data is handed
     * over. */
    while (state != DOMI_BACKTRACE_TAKING &&
           !atomic_compare_exchange_weak_explicit(&trace->state, &state, DOMI_BACKTRACE_NONE,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

bool domi_backtrace_write_frame(const domi_backtrace *trace, uint32_t index, bool addresses,
                                char *text, size_t size)
{
    uint32_t place = trace->first + index;

    if (place >= trace->count || index >= DOMI_BACKTRACE_FRAMES_MAX)
        return false;
    /* All frames but 0 hold return addresses, which lie behind the call; frame 0 holds the
     * interrupted instruction. */
    domi_symbol_describe_address(trace->frames[place], index != 0, addresses, text, size);
    return true;
}
