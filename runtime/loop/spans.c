/* This file writes the records of sleeps and loans. A record is written when its sleep or loan
 * ends; the record of the phase around it is cut at the begin. So the clock is read once more at
 * each end. */
#include "runtime/loop/spans.h"

#include "runtime/trace/recorder.h"

/* Find the run that goes on just now on a thread; called by readers of its recorder
 * (domi_recorder.find_run). The thread may change its words meanwhile, so the result
 * may be the run before or after, or name another message, but it is always a run of this thread at
 * this moment. */
static bool find_run_that_goes_on(const void *thread_, domi_record *ret_record)
{
    const domi_thread *thread = thread_;
    const domus_behaviour *running = domi_manager_running_behaviour(&thread->manager);
    uint64_t stamp_ns = domi_counter_read(&thread->counters.stamp_ns);

    if (running == NULL)
        return false;
    *ret_record = (domi_record){
        .begin_ns = stamp_ns != DOMI_STAMP_MOVING ? stamp_ns & ~DOMI_STAMP_ASLEEP : 0,
        .name = running,
        .value = (uintptr_t)domi_manager_type_being_handled(&thread->manager),
    };
    return true;
}

void domi_spans_begin_recording(domi_thread *thread, domi_recorder *recorder)
{
    recorder->runner = thread;
    /* release: other threads know the recorder already, and may call `find_run`, which
     * reads `runner`. */
    atomic_store_explicit(&recorder->find_run, find_run_that_goes_on, memory_order_release);
    domi_recorder_set_writing_thread(recorder);
}

void domi_spans_forget_stall(domi_recorder *recorder)
{
    /* relaxed: the monitor writes no stall to a recorder that the thread does not use. */
    atomic_store_explicit(&recorder->open[domi_record_depth_of(DOMI_RECORD_STALL)].kind_length, 0,
                          memory_order_relaxed);
}

void domi_spans_write_record_of_park(domi_thread *thread, bool begins)
{
    domi_recorder *recorder = domi_thread_recorder(thread);

    if (begins)
        domi_recorder_note_begin_of_thing(recorder, DOMI_RECORD_PARK, thread->stamp_ns, NULL, 0);
    else
        domi_recorder_end_begun_thing(recorder, DOMI_RECORD_PARK, 0, domi_clock_now(thread->clock));
}

static domi_record_kind kind_of_record_of_loan(bool stands_in)
{
    return stands_in ? DOMI_RECORD_STAND_IN : DOMI_RECORD_STEAL;
}

void domi_spans_write_begin_of_loan(domi_thread *thread, const domus_behaviour *behaviour,
                                    uint32_t victim, bool stands_in)
{
    domi_recorder_note_begin_of_thing(domi_thread_recorder(thread),
                                      kind_of_record_of_loan(stands_in), thread->stamp_ns,
                                      behaviour, victim);
}

void domi_spans_write_end_of_loan(domi_thread *thread, bool stands_in)
{
    domi_recorder *recorder = domi_thread_recorder(thread);
    const domi_recorder_place *open =
        &recorder->open[domi_record_depth_of(kind_of_record_of_loan(stands_in))];
    uint64_t now_ns = domi_clock_now(thread->clock);

    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_STALL, thread->stamp_ns, now_ns);
    /* relaxed: only the thread itself writes this word of its recorder. */
    domi_recorder_write_ended_thing(
        recorder, DOMI_RECORD_RUN, thread->stamp_ns, now_ns,
        atomic_load_explicit((_Atomic(const void *) *)(uintptr_t)&open->name, memory_order_relaxed),
        (uintptr_t)domi_manager_type_being_handled(&thread->manager));
    domi_recorder_end_begun_thing(recorder, kind_of_record_of_loan(stands_in), 0, now_ns);
}
