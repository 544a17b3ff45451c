/* A span: the changes between two looks at a program, as differences and shares.
 *
 * A counter that went back counts as 0, so that no figure is absurd; two looks at different runs of
 * a program make no span at all. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_SPAN_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_SPAN_H

#include "protocols/observe/doctor/look.h"

/* The shortest and the longest time between two looks that make a span, in seconds. In a shorter
 * time a single wake-up would matter; the longest is a year, so that sums of rates stay finite. */
#define DOMI_SPAN_LEAST 0.1
#define DOMI_SPAN_MOST  (366.0 * 86400)

/* Behaviours of a span, at most: a system has 128 names of behaviours on its threads, and as many
 * in each pool. Further ones, which no program has, are ignored. */
#define DOMI_SPAN_ACTORS_MAX 2304u

/* The figures of one thread in a span. The shares are parts of the thread's wall time, from 0 to
 * 1. */
typedef struct domi_span_thread {
    /* differences between both looks, but queued_bytes is the smaller of both values */
    domi_look_counters counters;
    double submit, sleep, completions, channels, events, state, other;
    double busy; /* share of the span in which the thread did not sleep: 1 less `asleep` */
    /* Shares of the span by clocks that also run within a phase: `cpu` on a CPU (-1: unknown);
     * `denied` ready to run but without a CPU (0 if unknown); `asleep` in enters of the ring,
     * beyond their CPU time; and `open` in a run that has not ended, which no phase contains
     * yet. */
    double cpu, denied, asleep, open;
    bool tells_denied; /* the kernel tells how long this thread was denied a CPU */
    /* share of the time in which the thread wanted a CPU, during which it had one; 1 if unknown */
    double had_cpu;
    double ready; /* mean number of ready actors that waited while state actors of the thread ran */
} domi_span_thread;

/* The figures of one behaviour in a span, summed over all threads, or over one pool. */
typedef struct domi_span_actors {
    const char *name;
    const char *pool; /* name of the pool; "": the behaviour is on threads, or outside */
    bool is_channels;
    uint64_t alive; /* number of actors of this behaviour that live at the later look */
    uint64_t runs, messages, run_ns, waits, wait_ns, failures;
    uint32_t busiest;        /* number of the thread that spent most time in this behaviour */
    uint64_t busiest_run_ns; /* ns that the busiest thread spent in this behaviour */
} domi_span_actors;

typedef struct domi_span {
    const domi_look *before, *after;
    double seconds;
    uint32_t thread_count, actors_count;
    domi_span_thread *threads;
    domi_span_actors *actors;
    domi_look_counters all;    /* counters of all threads, all runners and the outside together */
    domi_look_machine machine; /* counters of the machine, as differences between both looks */
    double cpus_used; /* CPUs that the process used on average: CPU seconds for each second */
    uint64_t steals;  /* number of steals in `all`, without the runs made for a sleeping thread */
    /* numbers of the busiest and the least busy thread, if there are threads */
    uint32_t busiest, idlest;
} domi_span;

/* Make the span between two looks, which must stay as long as the span does. Returns NULL; or a
 * sentence that tells why there is no span, and then domi_span_fini() is not needed. */
const char *domi_span_init(const domi_look *before, const domi_look *after, domi_span *ret_span);
void domi_span_fini(domi_span *span);

/* Returns by how much a counter has grown between two looks; 0 if it went back. */
static inline uint64_t domi_span_growth_of_counter(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

/* Returns the quotient of two counts; 0 if the divisor is 0. */
static inline double domi_span_quotient_of_counts(uint64_t part, uint64_t whole)
{
    return whole != 0 ? (double)part / (double)whole : 0;
}

/* Returns the rate of a count over a span in events a second. */
static inline double domi_span_count_to_events_a_second(const domi_span *span, uint64_t count)
{
    return (double)count / span->seconds;
}

#endif
