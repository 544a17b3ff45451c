/* The way of an ask to its answer over two threads, as a flow of a trace: where the ask was made,
 * where it was handled, where it was answered, and where the answer was handled.
 *
 * A message has no field for the number of a flow, and looking for one would cost each message
 * something. So both threads watch a house instead. At the end of a recorded run the thread looks
 * whether the run has made an ask to an actor of another thread. Then it tells that thread which
 * house was asked by which promise, and notes the same about its own house. From then on each run
 * of these two houses is measured: before and after the run their thread looks whether the ask
 * still waits, is still held, or is still unanswered. A change is recorded with the time of the
 * run's begin: then the times of a flow are in order on all threads.
 *
 * A thread watches one ask that it has made and one that it was asked, for a second at most. An ask
 * that is passed on or stashed looks like an answered one.
 *
 * The thread that runs the houses calls all of these functions. Another thread writes only `asked`,
 * after it has claimed that field. */
#ifndef DOMI_RUNTIME_LOOP_FLOWS_H
#define DOMI_RUNTIME_LOOP_FLOWS_H

#include "runtime/system/thread.h"
#include "runtime/trace/recorder.h"

struct domi_promise;

/* An ask that is watched. */
typedef struct domi_flow {
    _Atomic(const domi_house *) house; /* the house whose runs are watched; NULL: none */
    uint32_t lease;                    /* the lease of the actor that lives in the house */
    uint32_t serial;                   /* the serial of the promise when the ask was made */
    struct domi_promise *promise;      /* the promise of the asker */
    const domus_type *type;            /* the type of the ask */
    uint64_t number;                   /* the number of the flow */
    uint64_t since_ns;                 /* time at which the ask was made */
    bool is_taken; /* the ask was handled; set only in the flow of an actor that was asked */
} domi_flow;

typedef struct domi_flows {
    domi_recorder *recorder; /* the recorder of the thread; constant */
    domi_flow asking;        /* an ask that an actor of this thread has made */
    uint64_t count;          /* number of flows that have begun on this thread */
    /* An ask to an actor of this thread. The asker's thread changes `claimed` from 0 to 1, writes
     * the other fields, and `house` last; this thread sets `claimed` to 0 again. */
    alignas(64) _Atomic uint32_t claimed;
    domi_flow asked;
} domi_flows;

/* The state of a house before its run, to be compared with the state after the run. */
typedef struct domi_flowing {
    uint32_t lease;
    const domus_stack *newest; /* the first parked conversation of the house; NULL: none */
    const struct domi_promise *waits_for; /* the promise for which `newest` waits */
    uint32_t serial;                      /* the serial of `waits_for` */
    bool is_asked;                        /* the house is watched, because it was asked */
    /* the house is watched as one that was asked, and the ask waits in its mailbox */
    bool has_ask;
    bool is_asking; /* the house is watched, because it has asked */
    /* the house is watched as one that has asked, and its answer was handled elsewhere */
    bool is_answered;
} domi_flowing;

/* Make the flows of a thread that records; the thread owns them. Returns NULL if there is no
 * memory. */
domi_flows *domi_flows_new(domi_thread *thread, domi_recorder *recorder);

/* Free the flows of a thread that has ended. */
void domi_flows_free(domi_thread *thread);

/* True if runs of any house are watched. `flows` may be NULL. */
static inline bool domi_flows_is_any_watched(const domi_flows *flows)
{
    /* Relaxed: domi_flows_begin_run() reads the words again. */
    return flows != NULL &&
           (atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asked.house,
                                 memory_order_relaxed) != NULL ||
            atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asking.house,
                                 memory_order_relaxed) != NULL);
}

/* True if runs of this house are watched. `flows` may be NULL. */
static inline bool domi_flows_is_watched(const domi_flows *flows, const domi_house *house)
{
    if (flows == NULL)
        return false;
    /* Relaxed: domi_flows_begin_run() reads the words again. */
    return atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asked.house,
                                memory_order_relaxed) == house ||
           atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asking.house,
                                memory_order_relaxed) == house;
}

/* Look at the house that is about to run, and again after its run, which began at `begin_ns`:
 * record what has happened to watched asks, and, if `may_begin`, begin to watch an ask that the run
 * has made. domi_flows_end_run() returns whether it has recorded something about this run. */
void domi_flows_begin_run(const domi_flows *flows, const domi_house *house,
                          domi_flowing *ret_flowing);
bool domi_flows_end_run(domi_flows *flows, const domi_manager *manager, const domi_house *house,
                        const domi_flowing *flowing, uint64_t begin_ns, bool may_begin);

#endif
