/* Measures runs of houses, while profile.level is histograms or spans: how long a run takes, how
 * long messages wait for it, how long messages are under way between threads, and how late the
 * handler of a channel is.
 *
 * Two reads of the clock take as long as a short run, so not every run is measured: only so many
 * that measuring takes 2 % of the time; if runs are long, that is every run. A measured run stands
 * for all runs since the last measured one, and counts as many times. Runs that are far from the
 * next measured one are not looked at singly. Waits and deliveries are samples.
 *
 * At the end of a measured run the runner looks whether the run has made another house ready, and
 * then follows the newest message of that house (wait_observer.h).
 *
 * The runner calls all of these functions; any thread may read the histograms. */
#ifndef DOMI_RUNTIME_LOOP_RUN_OBSERVER_H
#define DOMI_RUNTIME_LOOP_RUN_OBSERVER_H

#include "base/histogram.h"
#include "base/random.h"
#include "runtime/loop/answer_observer.h"
#include "runtime/loop/flows.h"
#include "runtime/loop/wait_observer.h"

typedef struct domi_run_observer {
    domi_wait_observer waiting; /* the functions that the manager calls; must be the first field */
    uint64_t seen_runs;         /* count of runs at the last measured run */
    uint64_t next_run;          /* count of runs at which the next run is measured */
    /* no wait is measured up to this count of runs; while a wait is measured, the count of runs at
     * its begin */
    uint64_t rest_runs;
    uint64_t average_ns; /* the average length of the measured runs */
    uint64_t reaped_ns;  /* when the completions of this iteration were reaped */
    domi_random chance;
    struct domi_recorder *recorder; /* recorder that also gets records of runs; NULL: none */
    domi_answer_observer answers;   /* measures the answers to requests of peers */
    domi_flows *flows;              /* asks whose way is recorded; NULL: nothing is recorded */
    domi_histogram runs;
    domi_histogram waits;
    domi_histogram deliveries; /* times from a put on another thread until this thread sorts it */
    /* times from the reaping of completions to the run of a channels actor */
    domi_histogram reactions;
} domi_run_observer;

/* Begin to measure, or continue with an observer that was made before: from now on it observes the
 * manager. */
void domi_run_observer_begin(domi_run_observer *observer, domi_manager *manager);

/* Make an observer, whose functions the caller sets as `manager->observer` with
 * domi_run_observer_begin(). */
void domi_run_observer_init(domi_run_observer *observer, const domi_clock *clock, uint64_t seed);

/* Returns the observer of a manager that has a run observer. */
static inline domi_run_observer *domi_run_observer_of(const domi_manager *manager)
{
    return (domi_run_observer *)(void *)manager->observer;
}

#endif
