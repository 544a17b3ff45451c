/* A span: what happened between two looks at a program, as differences and shares.
 *
 * Counters that went back count as 0, so that no figure is absurd; two looks that are not of one
 * run of one program make no span at all. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_SPAN_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_SPAN_H

#include "protocols/observe/doctor/look.h"

/* The least and the longest time between two looks, in seconds: with less, one wake-up more or less
 * counts; the longest is a year, so that sums of rates stay finite. */
#define DOMI_SPAN_LEAST 0.1
#define DOMI_SPAN_MOST  (366.0 * 86400)

/* Behaviours of a span: a system has 128 names of them on threads, and as many in each pool. More,
 * which no program has, are passed over. */
#define DOMI_SPAN_ACTORS_MAX 2304u

/* A thread in a span. The shares are parts of its wall time, 0..1. */
typedef struct domi_span_thread {
    domi_look_counters counters; /* differences; queued_bytes is the less of both looks */
    double submit, sleep, completions, channels, events, state, other;
    double busy; /* share of the span: 1 less `asleep` */
    /* Shares of the span, since these clocks go on within a phase: on a CPU (-1: not told); ready
     * to run, without a CPU (0 also if it is not told); in enters, beyond their CPU time; and in a
     * run that has not ended, so that no phase has it yet. */
    double cpu, denied, asleep, open;
    bool tells_denied; /* whether the kernel tells `denied` */
    double had_cpu;    /* share of the time in which it wanted a CPU; 1 if it is not told */
    double ready; /* mean number of actors that were ready and waited, while state actors ran */
} domi_span_thread;

/* A behaviour in a span, over all threads; those in pools are others. */
typedef struct domi_span_actors {
    const char *name;
    const char *pool; /* "": on threads */
    bool is_channels;
    uint64_t alive; /* now */
    uint64_t runs, messages, run_ns, waits, wait_ns, failures;
    uint32_t busiest;        /* the thread that it took the most of */
    uint64_t busiest_run_ns; /* its time there */
} domi_span_actors;

typedef struct domi_span {
    const domi_look *before, *after;
    double seconds;
    uint32_t thread_count, actors_count;
    domi_span_thread *threads;
    domi_span_actors *actors;
    domi_look_counters all;    /* of all threads, runners and the outside */
    domi_look_machine machine; /* differences */
    double cpus_used;          /* CPU time of the process in a second */
    uint64_t steals;           /* those of `all` that were no stand-ins for a sleeping thread */
    uint32_t busiest, idlest;  /* threads, if there are any */
} domi_span;

/* Make the span between two looks, which have to last as long. Returns NULL; a sentence that says
 * why there is none, and then domi_span_fini() need not follow. */
const char *domi_span_init(const domi_look *before, const domi_look *after, domi_span *ret_span);
void domi_span_fini(domi_span *span);

/* The difference of two values of a counter; 0 if it went back. */
static inline uint64_t domi_span_less(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

/* The quotient of two counts; 0 if there is nothing to divide by. */
static inline double domi_span_ratio(uint64_t part, uint64_t whole)
{
    return whole != 0 ? (double)part / (double)whole : 0;
}

/* How often a second. */
static inline double domi_span_rate(const domi_span *span, uint64_t count)
{
    return (double)count / span->seconds;
}

#endif
