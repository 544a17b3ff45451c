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

/* The data by which a thread can be sampled. The thread itself writes them, and any thread reads
 * them. */
typedef struct domi_sampled {
    domi_counter cpu_clock; /* the clockid_t of the thread's CPU clock */
    domi_counter tid;       /* the kernel's number of the thread; 0: the thread cannot be sampled */
} domi_sampled;

/* A sample is a head, the behaviour, and addresses, the innermost first, in words of 8 bytes. The
 * head is never 0, so a word of zeros ends the samples. */
#define DOMI_SAMPLE_WORDS 2u /* words of a sample in front of its addresses */
#define DOMI_SAMPLE_DEPTH DOMUS_CPU_PROFILE_DEPTH_MAX
/* bit of the head of a sample: its thread is a runner of a pool */
#define DOMI_SAMPLE_RUNNER (UINT64_C(1) << 32)
/* bit of the head of a sample: the stack had more frames than were stored */
#define DOMI_SAMPLE_CUT (UINT64_C(1) << 33)

/* The lower bits of the head of a sample: how many addresses it has, and its weight (for how many
 * samples it counts). */
static inline uint32_t domi_sample_depth(uint64_t head)
{
    return (uint32_t)(head & 0xff);
}

static inline uint32_t domi_sample_weight(uint64_t head)
{
    return (uint32_t)(head >> 8 & 0xffffff);
}

typedef struct domi_samples {
    /* the system whose threads are sampled; the threads of other systems write nothing */
    const struct domus_system *system;
    /* memory for the samples: `capacity` words, zeroed at first */
    uint64_t *words;
    uint64_t capacity;
    /* words that handlers have claimed; more than `capacity` if samples were dropped */
    _Atomic uint64_t claimed;
    _Atomic uint64_t taken;   /* samples that were written, by their weights */
    _Atomic uint64_t dropped; /* samples for which there was no room, by their weights */
} domi_samples;

/* Let the calling thread, which owns `manager`, be sampled from now on, if the program has
 * installed the handler. */
void domi_samples_enable_thread(domi_sampled *self, const domi_manager *manager);

/* Let the calling thread, which is about to end, not be sampled any more. */
void domi_samples_disable_thread(domi_sampled *self);

/* Make `samples` active. Returns 0; -ENOENT if there is no handler; -EBUSY if another set is
 * active. */
int domi_samples_begin(domi_samples *samples);

/* End the active set of samples: when this returns, no handler writes samples any more. */
void domi_samples_end(domi_samples *samples);

#endif
