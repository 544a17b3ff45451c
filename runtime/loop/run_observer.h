/* Measures runs of houses, while profile.level is histograms or spans: how long a run takes, how
 * long mail waits for it, how long it is under way between threads, and how late the handler of a
 * channel is.
 *
 * Two reads of the clock take as long as a short run, so not each run is measured: one of so many
 * that this takes 2 % of the time, and each one when runs are long. A measured run stands for all
 * since the one before, so it counts as many times. Runs that are far from the next one that is
 * measured are not looked at, one by one. Waits and deliveries are samples.
 *
 * A measured run looks at its end whether it has made another house ready, whose newest message is
 * then followed (wait_observer.h).
 *
 * The runner calls all of this; any thread may read the histograms. */
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
    /* up to this count of runs no wait is measured; while one is, the count when it began */
    uint64_t rest_runs;
    uint64_t average_ns; /* the average length of the measured runs */
    uint64_t reaped_ns;  /* when the completions of this iteration were reaped */
    domi_random chance;
    struct domi_recorder *recorder; /* gets records of runs, too; NULL: no recorder */
    domi_answer_observer answers;   /* measures the answers to requests of peers */
    domi_flows *flows;              /* asks whose way is recorded; NULL: nothing is recorded */
    domi_histogram runs;
    domi_histogram waits;
    domi_histogram deliveries; /* times from a put on another thread to the sorting here */
    /* times from the reaping of completions to the run of a channels actor */
    domi_histogram reactions;
} domi_run_observer;

/* Begin to measure, now or again: an observer that was made observes the manager. */
void domi_run_observer_begin(domi_run_observer *observer, domi_manager *manager);

/* Make an observer, whose functions are for `manager->observer`. */
void domi_run_observer_init(domi_run_observer *observer, const domi_clock *clock, uint64_t seed);

/* The observer of a manager that has one. */
static inline domi_run_observer *domi_run_observer_of(const domi_manager *manager)
{
    return (domi_run_observer *)(void *)manager->observer;
}

#endif
