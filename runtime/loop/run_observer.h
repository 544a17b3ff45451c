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
    /* part that measures waits, with the functions that the manager calls; must be the first
     * field */
    domi_wait_observer waiting;
    uint64_t seen_runs; /* thread's count of runs at the last measured run */
    uint64_t next_run;  /* thread's count of runs at which the next run is measured */
    /* no wait is measured up to this count of runs; while a wait is measured: the count of runs
     * at its begin */
    uint64_t rest_runs;
    uint64_t average_ns; /* average length of the measured runs, in nanoseconds */
    uint64_t reaped_ns;  /* time at which the completions of this iteration were reaped */
    domi_random chance;
    /* recorder that gets a record of each measured run; NULL: none */
    struct domi_recorder *recorder;
    domi_answer_observer answers; /* part that measures how long requests of peers take */
    /* asks whose way to the answer is recorded (flows.h); NULL: none are recorded */
    domi_flows *flows;
    domi_histogram runs;
    domi_histogram waits;
    /* histogram of the times from a put on another thread until this thread has sorted it */
    domi_histogram deliveries;
    /* histogram of the times from the reaping of completions to the run of a channels actor */
    domi_histogram reactions;
} domi_run_observer;

/* Let an observer observe a manager from now on. The observer may have observed it before. */
void domi_run_observer_begin(domi_run_observer *observer, domi_manager *manager);

/* Make an observer of runs; domi_run_observer_begin() lets a manager use it. */
void domi_run_observer_init(domi_run_observer *observer, const domi_clock *clock, uint64_t seed);

/* Returns the run observer of a manager, which must have one. */
static inline domi_run_observer *domi_run_observer_of_manager(const domi_manager *manager)
{
    return (domi_run_observer *)(void *)manager->observer;
}

#endif
