/* A span: the changes between two looks at a program, as differences and shares.
 *
 * A counter that went back counts as 0, so that no figure is absurd; two looks at different runs of
 * a program make no span at all. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_SPAN_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_SPAN_H

#include "protocols/observe/doctor/look.h"

/* The shortest and the longest time between two looks, in seconds. In a shorter one a single
 * wake-up would matter; the longest is a year, so that sums of rates stay finite. */
#define DOMI_SPAN_LEAST 0.1
#define DOMI_SPAN_MOST  (366.0 * 86400)

/* Behaviours of a span, at most: a system has 128 names on threads, and as many in each pool.
 * Further ones, which no program has, are ignored. */
#define DOMI_SPAN_ACTORS_MAX 2304u

/* A thread in a span. The shares are parts of its wall time, from 0 to 1. */
typedef struct domi_span_thread {
    domi_look_counters counters; /* differences; queued_bytes is the smaller value of both looks */
    double submit, sleep, completions, channels, events, state, other;
    double busy; /* share of the span: 1 less `asleep` */
    /* Shares of the span, whose clocks also run within a phase: on a CPU (-1: unknown); ready to
     * run but without a CPU (0 if unknown); in enters, beyond their CPU time; and in a run that has
     * not ended, which no phase contains yet. */
    double cpu, denied, asleep, open;
    bool tells_denied; /* the kernel reports `denied` */
    double had_cpu;    /* share of the time with a CPU while the thread wanted one; 1 if unknown */
    double ready;      /* mean number of actors that were ready and waited while state actors ran */
} domi_span_thread;

/* A behaviour in a span, summed over all threads, or over one pool. */
typedef struct domi_span_actors {
    const char *name;
    const char *pool; /* name of the pool; "": the behaviour is on threads */
    bool is_channels;
    uint64_t alive; /* now */
    uint64_t runs, messages, run_ns, waits, wait_ns, failures;
    uint32_t busiest;        /* number of the thread that spent most time in it */
    uint64_t busiest_run_ns; /* time that thread spent in it */
} domi_span_actors;

typedef struct domi_span {
    const domi_look *before, *after;
    double seconds;
    uint32_t thread_count, actors_count;
    domi_span_thread *threads;
    domi_span_actors *actors;
    domi_look_counters all;    /* counters of all threads, runners and the outside together */
    domi_look_machine machine; /* differences of the machine's counters */
    double cpus_used;          /* CPU seconds of the process for each second */
    uint64_t steals;           /* steals in `all` that were not made for a sleeping thread */
    /* numbers of the busiest and the least busy thread, if there are threads */
    uint32_t busiest, idlest;
} domi_span;

/* Make the span between two looks, which must stay as long as it does. Returns NULL; or a sentence
 * that tells why there is none, and then domi_span_fini() is not needed. */
const char *domi_span_init(const domi_look *before, const domi_look *after, domi_span *ret_span);
void domi_span_fini(domi_span *span);

/* Returns the difference of two values of a counter; 0 if it went back. */
static inline uint64_t domi_span_less(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

/* Returns the quotient of two counts; 0 if the divisor is 0. */
static inline double domi_span_ratio(uint64_t part, uint64_t whole)
{
    return whole != 0 ? (double)part / (double)whole : 0;
}

/* Returns the rate of a count in events a second. */
static inline double domi_span_rate(const domi_span *span, uint64_t count)
{
    return (double)count / span->seconds;
}

#endif
