/* Records of a thread beside its phases and runs, while profile.level is spans: its sleeps, the
 * houses that it runs for others, and the run that goes on just now. While the thread records
 * nothing, each of these functions only reads one word. The thread itself calls these functions. */
#ifndef DOMI_RUNTIME_LOOP_SPANS_H
#define DOMI_RUNTIME_LOOP_SPANS_H

#include "base/check.h"
#include "runtime/system/thread.h"

struct domi_recorder;

/* Let the thread write to this recorder from now on. Whoever reads the recorder also finds the
 * run that goes on just now. */
void domi_spans_begin_recording(domi_thread *thread, struct domi_recorder *recorder);

/* Forget a stall that the monitor has reported to this recorder while the thread did not record. */
void domi_spans_forget_stall(struct domi_recorder *recorder);

/* These three functions write the records of sleeps and loans; call them only for a thread that
 * records. */
void domi_spans_write_record_of_park(domi_thread *thread, bool begins);
void domi_spans_write_begin_of_loan(domi_thread *thread, const domus_behaviour *behaviour,
                                    uint32_t victim, bool stands_in);
void domi_spans_write_end_of_loan(domi_thread *thread, bool stands_in);

/* Record that the thread falls asleep; the sleep begins at the thread's newest stamp. */
static inline void domi_spans_record_begin_of_park(domi_thread *thread)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_write_record_of_park(thread, true);
}

/* End the record of the thread's sleep: the thread has woken, and has not stamped the time yet. */
static inline void domi_spans_record_end_of_park(domi_thread *thread)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_write_record_of_park(thread, false);
}

/* Record that the thread begins to run a house of the thread `victim`, at its newest stamp. */
static inline void domi_spans_record_begin_of_loan(domi_thread *thread,
                                                   const domus_behaviour *behaviour,
                                                   uint32_t victim, bool stands_in)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_write_begin_of_loan(thread, behaviour, victim, stands_in);
}

/* End the record of a loan: the thread has run another thread's house, and has not stamped the time
 * yet. */
static inline void domi_spans_record_end_of_loan(domi_thread *thread, bool stands_in)
{
    if (DOMI_UNLIKELY(domi_thread_recorder(thread) != NULL))
        domi_spans_write_end_of_loan(thread, stands_in);
}

#endif
