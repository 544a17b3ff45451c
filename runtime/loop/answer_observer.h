/* How long requests of peers take from their first handler to the end of their answer, for each
 * pipeline, measured for one request at a time.
 *
 * A request has no room for a time. So a measured run of a channel's actor looks at its end whether
 * it has begun a request, and from then on each run of that actor is looked at, until its pipeline
 * has gone on beyond that request. The number of a pipeline is that of its behaviour (tally.h). The
 * runner calls all of this; any thread may read the histograms. */
#ifndef DOMI_RUNTIME_LOOP_ANSWER_OBSERVER_H
#define DOMI_RUNTIME_LOOP_ANSWER_OBSERVER_H

#include "base/histogram.h"
#include "house/message/manager.h"

/* The histogram of one pipeline; `tally` is constant. */
typedef struct domi_answered {
    uint32_t tally;
    domi_histogram times;
} domi_answered;

typedef struct domi_answer_observer {
    const domi_house *house; /* the house whose request is followed; NULL: none */
    uint32_t lease;          /* the lease of that house's actor */
    uint32_t tally;          /* the tally of the actor's behaviour when the request began */
    uint32_t number;         /* the number of the request in its pipeline */
    uint64_t since_ns;
    uint64_t noted_runs; /* the count of runs when it began */
    uint64_t rest_runs;  /* up to this count no request is followed */
    /* Entries are made one after the other, and stay; NULL: not made. */
    _Atomic(domi_answered *) each[DOMUS_PIPELINES_MAX];
} domi_answer_observer;

/* The number of the next request that an actor's channel gets; 0 also if it has no pipeline. */
uint32_t domi_answer_next(const domi_house *house);

/* A house that had this lease has run, from `begin_ns` to `end_ns`. `next` is what
 * domi_answer_next() said before the run; `may_begin`: follow a request that it has begun.
 * `is_short`: runs are so short that looking at them costs something. */
void domi_answer_end_run(domi_answer_observer *observer, domi_manager *manager,
                         const domi_house *house, uint32_t lease, uint32_t next, uint64_t begin_ns,
                         uint64_t end_ns, bool may_begin, bool is_short);

/* Free the histograms. Nobody reads them any more. */
void domi_answer_observer_fini(domi_answer_observer *observer);

#endif
