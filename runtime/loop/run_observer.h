/* Measures runs of houses, while profile.level is histograms or spans: how long a run takes, how
 * long mail waits for it, how long it is under way between threads, and how late the handler of a
 * channel is.
 *
 * Two reads of the clock take as long as a short run, so not each run is measured: one of so many
 * that this takes 2 % of the time, and each one when runs are long. A measured run stands for all
 * since the one before, so it counts as many times. Waits and deliveries are samples.
 *
 * Nobody stamps a message when it is put, because that would cost each put something. A measured
 * run looks at its end which house has just become ready, and notes the newest message there: it
 * was put within this run. It has waited when as many messages were handled there as were before
 * it.
 *
 * The runner calls all of this; any thread may read the histograms. */
#ifndef DOMI_RUNTIME_LOOP_RUN_OBSERVER_H
#define DOMI_RUNTIME_LOOP_RUN_OBSERVER_H

#include "base/clock.h"
#include "base/histogram.h"
#include "base/random.h"
#include "house/message/manager.h"
#include "house/message/observer.h"

/* A message that was seen when it was put, and waits. */
typedef struct domi_waiter {
    const domi_house *house; /* NULL: none */
    uint32_t lease;          /* of the actor that has it */
    uint32_t ahead;          /* messages that are handled up to its own, at most */
    uint64_t since_ns;
} domi_waiter;

typedef struct domi_run_observer {
    domi_observer functions; /* what the manager calls; the first field */
    const domi_clock *clock;
    uint32_t countdown;  /* runs up to the next one that is measured */
    uint32_t weight;     /* runs for which that one stands */
    uint64_t average_ns; /* of measured runs */
    uint64_t reaped_ns;  /* when the completions of this iteration were reaped */
    domi_random chance;
    domi_waiter waiter;
    struct domi_recorder *recorder; /* of runs, too; NULL: none */
    domi_histogram runs;
    domi_histogram waits;
    domi_histogram deliveries; /* from a put on another thread to the sorting here */
    domi_histogram reactions;  /* from the reaping of completions to the run of a channels actor */
} domi_run_observer;

/* Make an observer, whose `functions` are for `manager->observer`. */
void domi_run_observer_init(domi_run_observer *observer, const domi_clock *clock, uint64_t seed);

/* The observer of a manager that has one. */
static inline domi_run_observer *domi_run_observer_of(const domi_manager *manager)
{
    return (domi_run_observer *)(void *)manager->observer;
}

#endif
