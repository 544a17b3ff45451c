/* How long requests of peers take from their first handler to the end of their answer, for each
 * pipeline, measured for one request at a time.
 *
 * A request has no field for a time. So at the end of a measured run of a channel's actor the
 * runner looks whether the run has begun a request. From then on it looks at each run of that
 * actor, until the pipeline has gone on beyond that request. The number of a pipeline is the number
 * of its behaviour (tally.h). The runner calls all of these functions; any thread may read the
 * histograms. */
#ifndef DOMI_RUNTIME_LOOP_ANSWER_OBSERVER_H
#define DOMI_RUNTIME_LOOP_ANSWER_OBSERVER_H

#include "base/histogram.h"
#include "house/message/manager.h"

/* The histogram of the answers of one pipeline; `tally` is the constant number by which the
 * pipeline is known. */
typedef struct domi_answered {
    uint32_t tally;
    domi_histogram times;
} domi_answered;

typedef struct domi_answer_observer {
    /* house of the actor whose request is followed; NULL: no request is followed */
    const domi_house *house;
    uint32_t lease;  /* lease of the actor whose request is followed */
    uint32_t tally;  /* number of that actor's behaviour (tally.h) when the request began */
    uint32_t number; /* number of the followed request in its pipeline */
    uint64_t since_ns;
    uint64_t noted_runs; /* thread's count of runs when the followed request began */
    uint64_t rest_runs;  /* no new request is followed before the thread's count of runs is this */
    /* entries of pipelines, which are made one after the other and freed only at the end; NULL:
     * not made yet */
    _Atomic(domi_answered *) each[DOMUS_PIPELINES_MAX];
} domi_answer_observer;

/* Returns the number that the next request of an actor's channel will have; 0 also if the
 * channel has no pipeline. */
uint32_t domi_answer_number_of_next_request(const domi_house *house);

/* Look at a house after its run from `begin_ns` to `end_ns`, in which its actor had `lease`. `next`
 * is what domi_answer_number_of_next_request() returned before the run. `may_begin`: follow a
 * request that the run has begun. `is_short`: runs are so short that looking at them costs much. */
void domi_answer_measure_after_run(domi_answer_observer *observer, domi_manager *manager,
                                   const domi_house *house, uint32_t lease, uint32_t next,
                                   uint64_t begin_ns, uint64_t end_ns, bool may_begin,
                                   bool is_short);

/* Free the histograms of the observer. The caller knows that no thread reads them any more. */
void domi_answer_observer_fini(domi_answer_observer *observer);

#endif
