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

/* The histograms of a thread, which alone writes them; any thread reads them. */
typedef struct domi_observing {
    domi_run_observer runs;
    domi_histogram iterations;        /* lengths of iterations, without the time in enters */
    domi_histogram spans[DOMI_SPANS]; /* for each span, the time that one iteration spent in it */
    /* `span_ns` of the counters at the end of the last iteration */
    uint64_t seen_ns[DOMI_SPANS];
    struct domi_recorder *recorder; /* recorder of the thread; NULL: it has never recorded */
} domi_observing;

/* Apply a new profile.level. Called by the thread itself. */
void domi_observing_apply_level(domi_thread *thread);

/* Add the iteration that is over to the histograms, because the next one begins. Called only while
 * the thread measures. */
void domi_observing_record_iteration(domi_thread *thread);

/* Free the histograms of the thread. The caller knows that no thread reads them any more. */
void domi_observing_free(domi_thread *thread);

#endif
