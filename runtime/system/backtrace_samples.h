/* Samples of call stacks, for a CPU profile (domus/cpu_profile.h). Timers on the CPU clocks of
 * threads interrupt them, and the handler of the signal writes down where each of them is.
 *
 * One set of samples in the process is active at a time. Handlers on all threads write into its
 * memory, each into a part that it has claimed by one atomic addition. When the set is made
 * inactive, the last handler is waited for; from then on the samples are constant. */
#ifndef DOMI_RUNTIME_SYSTEM_BACKTRACE_SAMPLES_H
#define DOMI_RUNTIME_SYSTEM_BACKTRACE_SAMPLES_H

#include "house/message/manager.h"

#include <domus/cpu_profile.h>

#include <stdbool.h>

struct domus_system;

/* The data by which a thread can be sampled. The thread itself writes them, and any thread may read
 * them. */
typedef struct domi_sampled {
    domi_counter cpu_clock; /* clockid_t of the sampled thread's CPU clock */
    /* kernel's number of the thread (tid); 0: the thread cannot be sampled */
    domi_counter tid;
} domi_sampled;

/* A sample in a set: a head, the behaviour, and addresses, the innermost first, in words of 8
 * bytes. The head is never 0, so a word of zeros ends the samples. */
#define DOMI_SAMPLE_WORDS 2u /* number of words that a sample has in front of its addresses */
#define DOMI_SAMPLE_DEPTH DOMUS_CPU_PROFILE_DEPTH_MAX
/* bit of a sample's head: the sampled thread is a runner of a pool */
#define DOMI_SAMPLE_RUNNER (UINT64_C(1) << 32)
/* bit of a sample's head: the stack had more frames than were stored */
#define DOMI_SAMPLE_CUT (UINT64_C(1) << 33)

/* The lower bits of a sample's head: how many addresses the sample has, and its weight (for how
 * many samples it counts). */
static inline uint32_t domi_sample_depth(uint64_t head)
{
    return (uint32_t)(head & 0xff);
}

static inline uint32_t domi_sample_weight(uint64_t head)
{
    return (uint32_t)(head >> 8 & 0xffffff);
}

typedef struct domi_samples {
    /* system whose threads are sampled; the threads of other systems write no samples */
    const struct domus_system *system;
    /* memory for the samples of the set: `capacity` words, zeroed at first */
    uint64_t *words;
    uint64_t capacity;
    /* number of words that handlers have claimed; more than `capacity` if samples were dropped */
    _Atomic uint64_t claimed;
    /* number of samples that were written, each counted with its weight */
    _Atomic uint64_t taken;
    /* number of samples for which there was no room, each counted with its weight */
    _Atomic uint64_t dropped;
} domi_samples;

/* Let the calling thread, which owns `manager`, be sampled from now on, if the program has
 * installed the handler of SIGPROF. */
void domi_samples_enable_thread(domi_sampled *self, const domi_manager *manager);

/* Let the calling thread, which is about to end, be sampled no more. */
void domi_samples_disable_thread(domi_sampled *self);

/* Make a set of samples the active one, into which handlers write. Returns 0; -ENOENT if there is
 * no handler; -EBUSY if another set is active. */
int domi_samples_make_set_active(domi_samples *samples);

/* End the active set of samples: when this returns, no handler writes into it any more. */
void domi_samples_end_active_set(domi_samples *samples);

#endif
