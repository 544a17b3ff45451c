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

/* An ask that a thread watches, from the asker's side or from the side of the asked actor. */
typedef struct domi_flow {
    _Atomic(const domi_house *) house; /* house whose runs are watched for the ask; NULL: none */
    uint32_t lease;                    /* lease of the actor that lives in the watched house */
    /* serial of the asker's promise when the ask was made; it changes with the answer */
    uint32_t serial;
    struct domi_promise *promise; /* promise by which the asker waits */
    const domus_type *type;       /* type of the watched ask */
    uint64_t number;              /* number of the flow in the trace */
    uint64_t since_ns;            /* time at which the watched ask was made */
    /* true: the actor that was asked has begun to handle the ask; set only in the flow on its
     * side */
    bool is_taken;
} domi_flow;

typedef struct domi_flows {
    domi_recorder *recorder; /* recorder of the thread that has these flows; constant */
    domi_flow asking;        /* flow of an ask that an actor of this thread has made */
    /* number of flows that have begun on this thread, for numbers of new flows */
    uint64_t count;
    /* Flow of an ask to an actor of this thread. The asker's thread changes `claimed` from 0 to
     * 1, writes the other fields, and `house` last; this thread sets `claimed` to 0 again. */
    alignas(64) _Atomic uint32_t claimed;
    domi_flow asked;
} domi_flows;

/* The state of a house before its run, to be compared with its state after that run. */
typedef struct domi_flowing {
    uint32_t lease;
    const domus_stack
        *newest; /* The house's first parked conversation before the run: the barrier's holder, else
                    the newest. NULL: there is none, or it waits for no promise. */
    /* promise for which that conversation waited before the run */
    const struct domi_promise *waits_for;
    uint32_t serial; /* serial of that promise before the run */
    /* true: the house is watched because its actor was asked */
    bool is_asked;
    /* true: the house is watched because its actor was asked, and the ask waited in its mailbox
     * before the run */
    bool has_ask;
    bool is_asking; /* true: the house is watched because its actor has asked */
    /* true: the house is watched because its actor has asked, and its answer was handled
     * elsewhere before the run */
    bool is_answered;
} domi_flowing;

/* Make the flows of a thread that records; they belong to it until it has ended. Returns NULL if
 * there is no memory. */
domi_flows *domi_flows_new(domi_thread *thread, domi_recorder *recorder);

/* Free the flows of a recording thread that has ended. */
void domi_flows_free(domi_thread *thread);

/* True if the thread watches any house for a flow. `flows` may be NULL. */
static inline bool domi_flows_is_any_house_watched(const domi_flows *flows)
{
    /* Relaxed: this is only a hint, and domi_flows_note_state_before_run() reads the words again.
     */
    return flows != NULL &&
           (atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asked.house,
                                 memory_order_relaxed) != NULL ||
            atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asking.house,
                                 memory_order_relaxed) != NULL);
}

/* True if the thread watches this house for a flow. `flows` may be NULL. */
static inline bool domi_flows_is_house_watched(const domi_flows *flows, const domi_house *house)
{
    if (flows == NULL)
        return false;
    /* Relaxed: this is only a hint, and domi_flows_note_state_before_run() reads the words again.
     */
    return atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asked.house,
                                memory_order_relaxed) == house ||
           atomic_load_explicit((_Atomic(const domi_house *) *)(uintptr_t)&flows->asking.house,
                                memory_order_relaxed) == house;
}

/* Look at a house before its run, and again after the run, which began at `begin_ns`: record
 * what has happened to watched asks, and, if `may_begin`, begin to watch an ask that the run has
 * made. domi_flows_record_after_run() returns whether it has recorded something about this run. */
void domi_flows_note_state_before_run(const domi_flows *flows, const domi_house *house,
                                      domi_flowing *ret_flowing);
bool domi_flows_record_after_run(domi_flows *flows, const domi_manager *manager,
                                 const domi_house *house, const domi_flowing *flowing,
                                 uint64_t begin_ns, bool may_begin);

#endif
