/* A thread applies profile.level, which may change while the program runs. While the level is
 * histograms or spans, the thread measures its iterations and phases.
 *
 * A thread looks for a new level at its ticks, so nothing else has to ask for it. The histograms
 * lie in memory that the thread takes when it first measures, and that is freed with the thread,
 * so that readers find them at any time. */
#ifndef DOMI_RUNTIME_LOOP_OBSERVING_H
#define DOMI_RUNTIME_LOOP_OBSERVING_H

#include "runtime/loop/run_observer.h"
#include "runtime/system/thread.h"

/* The histograms of a thread and its observer of runs. Only the thread itself writes them; any
 * thread reads them. */
typedef struct domi_observing {
    domi_run_observer runs;
    /* histogram of the lengths of iterations, without the time in enters */
    domi_histogram iterations;
    /* for each span, the histogram of the times that single iterations spent in it */
    domi_histogram spans[DOMI_SPANS];
    /* thread's counters of spans (`span_ns`) at the end of the last iteration */
    uint64_t seen_ns[DOMI_SPANS];
    /* recorder of the thread; NULL: the thread has never recorded */
    struct domi_recorder *recorder;
} domi_observing;

/* Apply the level of the profile if it has changed. Called by the thread itself, at its ticks. */
void domi_observing_apply_profile_level(domi_thread *thread);

/* Add the iteration that is over to the histograms of iterations and spans. Called by the thread
 * when its next iteration begins, only while it measures. */
void domi_observing_record_iteration(domi_thread *thread);

/* Free the histograms of a thread. The caller knows that no thread reads them any more. */
void domi_observing_free_histograms(domi_thread *thread);

#endif
