/* Records of a thread beside its phases and runs, while profile.level is spans: its sleeps, the
 * houses that it runs for others, and what it runs just now. While it records nothing, each of
 * these functions is one look at a word.
 *
 * The thread calls them. */
#ifndef DOMI_RUNTIME_LOOP_SPANS_H
#define DOMI_RUNTIME_LOOP_SPANS_H

#include "base/check.h"
#include "runtime/system/thread.h"

struct domi_recorder;

/* The thread writes to this recorder from now on; readers find there what the thread runs. */
void domi_spans_enter(domi_thread *thread, struct domi_recorder *recorder);

/* Forget a stall that the monitor has told while the thread did not record. */
void domi_spans_forget_stall(struct domi_recorder *recorder);

/* The functions below, of a thread that records. */
void domi_spans_note_park(domi_thread *thread, bool begins);
void domi_spans_note_loan(domi_thread *thread, const domus_behaviour *behaviour, uint32_t victim,
                          bool stands_in);
void domi_spans_note_loan_end(domi_thread *thread, bool stands_in);

/* The thread falls asleep at its newest stamp. */
static inline void domi_spans_begin_park(domi_thread *thread)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_note_park(thread, true);
}

/* End the record of a park: the thread has woken, and has not stamped the time yet. */
static inline void domi_spans_end_park(domi_thread *thread)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_note_park(thread, false);
}

/* At its newest stamp it begins to run a house of the thread `victim`. */
static inline void domi_spans_begin_loan(domi_thread *thread, const domus_behaviour *behaviour,
                                         uint32_t victim, bool stands_in)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_note_loan(thread, behaviour, victim, stands_in);
}

/* End the record of a loan: the thread has run that house, and has not stamped the time yet. */
static inline void domi_spans_end_loan(domi_thread *thread, bool stands_in)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_note_loan_end(thread, stands_in);
}

#endif
