/* A thread follows profile.level, which changes while the program runs, and measures its iterations
 * and phases while that is histograms or spans.
 *
 * A thread looks for a new level at its ticks, so nothing is asked anywhere else. The histograms
 * lie in memory that it takes when it first measures, and that is freed with the thread, so that
 * readers find them at any time. */
#ifndef DOMI_RUNTIME_LOOP_OBSERVING_H
#define DOMI_RUNTIME_LOOP_OBSERVING_H

#include "runtime/loop/run_observer.h"
#include "runtime/system/thread.h"

/* The histograms of a thread, which writes them; any thread reads them. */
typedef struct domi_observing {
    domi_run_observer runs;
    domi_histogram iterations;        /* times of iterations, without their enters */
    domi_histogram spans[DOMI_SPANS]; /* the time of one iteration in each span */
    uint64_t seen_ns[DOMI_SPANS];     /* the counters of spans at the end of the last iteration */
    struct domi_recorder *recorder;   /* recorder of the thread; NULL: it has never recorded */
} domi_observing;

/* Apply a new level of profile.level. The thread itself. */
void domi_observing_follow(domi_thread *thread);

/* An iteration begins: the one before it is over. Called only while the thread measures. */
void domi_observing_note_iteration(domi_thread *thread);

/* Free what the thread measured. Nobody reads it any more. */
void domi_observing_free(domi_thread *thread);

#endif
