/* The handler of SIGPROF, which takes samples; backtrace_samples.h says what they are.
 *
 * The handler is called only where a timer of domus has interrupted a thread, which may be within
 * any function. It calls backtrace(), which is async-signal-safe after a first call, and stores
 * words. */
#include "runtime/system/backtrace_samples.h"

#include "runtime/os/fork.h"
#include "runtime/system/backtrace.h"

#include <assert.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WEIGHT_MAX 0xffffffu

static_assert(DOMI_SAMPLE_DEPTH <= 0xff, "a head has 8 bits for it");

/* The set of samples that is active; NULL: none is. A handler adds itself to `inside` before it
 * reads `active`, and domi_samples_end_active_set() reads `inside` after it has set `active` to
 * NULL. These four accesses are seq_cst, so either the handler reads NULL, or
 * domi_samples_end_active_set() sees the handler and waits for it. */
static _Atomic(domi_samples *) active;
static _Atomic uint32_t inside;

/* The fork number of the process that has begun a set of samples, plus 1; 0: no set was begun. A
 * child made by fork() has another number, so that the set of its parent does not keep the child
 * from beginning its own. */
static _Atomic uint64_t begun_under;

/* manager of the calling thread; NULL on a thread that has not called
 * domi_samples_enable_thread() */
static _Thread_local const domi_manager *own;

/* --- in the handler --------------------------------------------------------------------------- */

/* Returns the weight of a sample, which is how many times its timer had run out before the handler
 * was called. */
static uint64_t weight_of_sample(const siginfo_t *info)
{
    uint64_t missed = info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0;

    return missed < WEIGHT_MAX ? missed + 1 : WEIGHT_MAX;
}

/* Claim `count` words of a set's memory for one sample. Returns NULL if the set has no room. */
static uint64_t *claim_words_for_sample(domi_samples *samples, uint64_t count)
{
    /* Relaxed: no other handler uses the claimed words, and domi_samples_end_active_set() orders
     * what is written there. */
    uint64_t at = atomic_fetch_add_explicit(&samples->claimed, count, memory_order_relaxed);

    return at + count <= samples->capacity ? samples->words + at : NULL;
}

static void write_sample_of_stack(domi_samples *samples, const domi_manager *manager,
                                  const siginfo_t *info, const void *context)
{
    void *frames[DOMI_SAMPLE_DEPTH + 1 + DOMI_BACKTRACE_OWN_MAX];
    uint32_t first;
    uint32_t depth =
        domi_backtrace_take_in_handler(frames, sizeof frames / sizeof frames[0], context, &first) -
        first;
    uint64_t weight = weight_of_sample(info);
    uint64_t head = weight << 8;

    if (depth > DOMI_SAMPLE_DEPTH) {
        depth = DOMI_SAMPLE_DEPTH;
        head |= DOMI_SAMPLE_CUT;
    }
    if (manager->pooled != NULL)
        head |= DOMI_SAMPLE_RUNNER;
    uint64_t *words = claim_words_for_sample(samples, DOMI_SAMPLE_WORDS + depth);
    atomic_fetch_add_explicit(words != NULL ? &samples->taken : &samples->dropped, weight,
                              memory_order_relaxed);
    if (words == NULL)
        return;
    words[0] = head | depth;
    words[1] = (uintptr_t)domi_manager_running_behaviour(manager);
    for (uint32_t i = 0; i < depth; i++)
        words[DOMI_SAMPLE_WORDS + i] = (uintptr_t)frames[first + i];
}

static void handle_signal_of_timer(int number, siginfo_t *info, void *context)
{
    int error = errno;
    const domi_manager *manager = own;

    (void)number;
    /* A signal that no timer has sent is ignored, because any process may send this signal to any
     * thread. */
    if (manager == NULL || info->si_code != SI_TIMER)
        return;
    atomic_fetch_add_explicit(&inside, 1, memory_order_seq_cst);
    domi_samples *samples = atomic_load_explicit(&active, memory_order_seq_cst);
    if (samples != NULL && samples->system == manager->system)
        write_sample_of_stack(samples, manager, info, context);
    /* release, as a part of seq_cst: domi_samples_end_active_set() sees all words of the sample. */
    atomic_fetch_sub_explicit(&inside, 1, memory_order_seq_cst);
    errno = error;
}

/* --- its installation ------------------------------------------------------------------------- */

/* True if the handler of SIGPROF is the library's own. */
static bool is_own_sampling_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle_signal_of_timer;
}

static bool is_sampling_handler_installed(void)
{
    struct sigaction action;

    return sigaction(SIGPROF, NULL, &action) == 0 && is_own_sampling_handler(&action);
}

int domus_cpu_profile_signal(void)
{
    struct sigaction action;
    void *frames[2];

    if (sigaction(SIGPROF, NULL, &action) != 0)
        return -errno;
    if (is_own_sampling_handler(&action))
        return 0;
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL)
        return -EBUSY;
    /* backtrace() is called once in advance, because its first call loads the library that unwinds,
     * which is not safe in a handler */
    (void)backtrace(frames, 2);
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    action.sa_sigaction = handle_signal_of_timer;
    return sigaction(SIGPROF, &action, NULL) == 0 ? 0 : -errno;
}

/* --- threads ---------------------------------------------------------------------------------- */

void domi_samples_enable_thread(domi_sampled *self, const domi_manager *manager)
{
    clockid_t cpu_clock;
    sigset_t only;

    if (!is_sampling_handler_installed() || pthread_getcpuclockid(pthread_self(), &cpu_clock) != 0)
        return;
    own = manager;
    sigemptyset(&only);
    sigaddset(&only, SIGPROF);
    if (pthread_sigmask(SIG_UNBLOCK, &only, NULL) != 0)
        return;
    atomic_store_explicit(&self->cpu_clock, (uint64_t)cpu_clock, memory_order_relaxed);
    /* release: a thread that reads this number also sees the `cpu_clock` that was stored before. */
    atomic_store_explicit(&self->tid, (uint64_t)gettid(), memory_order_release);
}

void domi_samples_disable_thread(domi_sampled *self)
{
    /* Relaxed: a timer that is made for this thread at the same time does not find it any more, or
     * never runs out. */
    atomic_store_explicit(&self->tid, 0, memory_order_relaxed);
}

/* --- a set of samples ------------------------------------------------------------------------- */

int domi_samples_make_set_active(domi_samples *samples)
{
    uint64_t mine = (uint64_t)domi_fork_number_of_process() + 1;
    uint64_t before = atomic_load_explicit(&begun_under, memory_order_relaxed);

    if (!is_sampling_handler_installed())
        return -ENOENT;
    /* acquire: pairs with the release of the set in domi_samples_end_active_set(). */
    if (before == mine ||
        !atomic_compare_exchange_strong_explicit(&begun_under, &before, mine, memory_order_acquire,
                                                 memory_order_relaxed))
        return -EBUSY;
    /* no handler can be inside, because the threads of the parent are not in this child process */
    if (before != 0)
        atomic_store_explicit(&inside, 0, memory_order_seq_cst);
    atomic_store_explicit(&active, samples, memory_order_seq_cst);
    return 0;
}

void domi_samples_end_active_set(domi_samples *samples)
{
    (void)samples;
    atomic_store_explicit(&active, NULL, memory_order_seq_cst);
    /* Let other threads run while a handler finishes: it takes microseconds, but its thread may
     * have been taken off its CPU. */
    while (atomic_load_explicit(&inside, memory_order_seq_cst) != 0)
        (void)sched_yield();
    atomic_store_explicit(&begun_under, 0, memory_order_release);
}
