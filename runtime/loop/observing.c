/* This file applies the level of the profile (profile.level) to a thread, and fills the
 * histograms of its iterations and phases; observing.h tells more. */
#include "runtime/loop/observing.h"

#include "base/memory.h"
#include "runtime/loop/spans.h"
#include "runtime/system/system.h"
#include "runtime/trace/recorder.h"

#include <inttypes.h>
#include <stdio.h>

/* Begin or stop to count how long the thread is in each span. Meanwhile the CPU clock goes on,
 * and the time without counting would look like submitting (control/profile.c), so that time is
 * taken off the thread's CPU time. */
static void begin_or_stop_counting_spans(domi_thread *thread, bool counts)
{
    domi_thread_counters *counters = &thread->counters;
    clockid_t cpu_clock = (clockid_t)domi_counter_read(&counters->cpu_clock);

    if (thread->timed == counts)
        return;
    /* relaxed: a thread that reads the profile sees either the old or the new value. */
    atomic_store_explicit((_Atomic bool *)&thread->timed, counts, memory_order_relaxed);
    /* A simulated thread has no CPU clock: its `cpu_clock` is 0, which the kernel would take for
     * CLOCK_REALTIME. */
    uint64_t cpu_ns = cpu_clock != 0 ? domi_clock_read_cpu_ns(cpu_clock) : 0;
    if (counts)
        domi_counter_add(&counters->cpu_start_ns, cpu_ns - thread->uncounted_from_ns);
    else
        thread->uncounted_from_ns = cpu_ns;
}

static void remember_counters_of_spans(domi_thread *thread, domi_observing *observing)
{
    for (int i = 0; i < DOMI_SPANS; i++)
        observing->seen_ns[i] = domi_counter_read(&thread->counters.span_ns[i]);
}

/* Begin to measure iterations and runs. Returns false if there is no memory for the histograms;
 * the next tick tries again. */
static bool begin_measuring_runs(domi_thread *thread)
{
    domi_observing *observing =
        /* relaxed: only this thread writes `observing` */
        atomic_load_explicit(&thread->observing, memory_order_relaxed);

    if (observing == NULL) {
        observing = domi_memory_new(sizeof *observing);
        if (observing == NULL)
            return false;
        domi_run_observer_init(&observing->runs, thread->clock, thread->manager.index);
        /* release: a thread that reads the pointer sees the zeros in the histograms. */
        atomic_store_explicit(&thread->observing, observing, memory_order_release);
    }
    if (thread->manager.observer == &observing->runs.waiting.functions)
        return true;
    remember_counters_of_spans(thread, observing);
    domi_run_observer_begin(&observing->runs, &thread->manager);
    return true;
}

/* Let the thread write its records to `recorder` from now on; NULL: it writes none. */
static void set_recorder_of_thread(domi_thread *thread, domi_recorder *recorder)
{
    domi_observing *observing = atomic_load_explicit(&thread->observing, memory_order_relaxed);

    /* release: the monitor, which reads the pointer, finds the recorder complete. */
    atomic_store_explicit(&thread->recorder, recorder, memory_order_release);
    if (observing == NULL)
        return;
    if (observing->recorder != NULL)
        observing->recorder->phase = NULL;
    observing->runs.recorder = recorder;
    observing->runs.flows =
        recorder != NULL ? atomic_load_explicit(&thread->flows, memory_order_relaxed) : NULL;
}

/* Begin to record spans. Returns false if there is no memory for a recorder; the next tick tries
 * again. */
static bool begin_recording_spans(domi_thread *thread)
{
    domi_observing *observing = atomic_load_explicit(&thread->observing, memory_order_relaxed);
    char name[DOMI_RECORDER_NAME];

    if (observing->recorder == NULL) {
        snprintf(name, sizeof name, "thread %" PRIu32, thread->manager.index);
        if (domi_recorder_new(thread->system, name, thread->config->profile.records,
                              &observing->recorder) != 0)
            return false;
        domi_spans_begin_recording(thread, observing->recorder);
    }
    if (atomic_load_explicit(&thread->flows, memory_order_relaxed) == NULL &&
        domi_flows_new(thread, observing->recorder) == NULL)
        return false;
    domi_spans_forget_stall(observing->recorder);
    set_recorder_of_thread(thread, observing->recorder);
    return true;
}

const char *domus_histogram_name(domus_histogram_kind kind)
{
    static const char *const names[DOMUS_HISTOGRAMS] = {
        [DOMUS_HISTOGRAM_ITERATION] = "iteration",
        [DOMUS_HISTOGRAM_ENTER] = "enter",
        [DOMUS_HISTOGRAM_COMPLETIONS] = "completions",
        [DOMUS_HISTOGRAM_CHANNELS] = "channels",
        [DOMUS_HISTOGRAM_EVENTS] = "events",
        [DOMUS_HISTOGRAM_STATE] = "state",
        [DOMUS_HISTOGRAM_OTHER] = "other",
        [DOMUS_HISTOGRAM_RUN] = "run",
        [DOMUS_HISTOGRAM_WAIT] = "wait",
        [DOMUS_HISTOGRAM_DELIVERY] = "delivery",
        [DOMUS_HISTOGRAM_REACTION] = "reaction",
    };

    return (unsigned)kind < DOMUS_HISTOGRAMS ? names[kind] : NULL;
}

/* Stamps between two runs of phase 3 end a span, too, so each look makes a record of its own. */
void domi_thread_record_span(domi_thread *thread, domi_span span, uint64_t now_ns)
{
    domi_recorder *recorder = domi_thread_recorder(thread);

    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_STALL, thread->stamp_ns, now_ns);
    domi_recorder_note_ended_phase(recorder, thread->stamp_ns, now_ns,
                                   domus_histogram_name(DOMUS_HISTOGRAM_ENTER + span));
}

/* At level counters, measure now and then how long a message waits, if there is memory for the
 * observer of waits. */
static void measure_waits_at_level_counters(domi_thread *thread)
{
    if (thread->waiting == NULL) {
        thread->waiting = domi_memory_new(sizeof *thread->waiting);
        if (thread->waiting == NULL)
            return;
        domi_wait_observer_init(thread->waiting, thread->clock);
    }
    domi_wait_begin_or_end_measurement(thread->waiting, &thread->manager);
}

void domi_observing_apply_profile_level(domi_thread *thread)
{
    uint32_t level = atomic_load_explicit(&thread->system->profile_level, memory_order_relaxed);

    if (level == thread->level) {
        if (level == DOMUS_PROFILE_COUNTERS)
            measure_waits_at_level_counters(thread);
        return;
    }
    begin_or_stop_counting_spans(thread, level != DOMUS_PROFILE_OFF);
    if (level < DOMUS_PROFILE_SPANS)
        set_recorder_of_thread(thread, NULL);
    if (level < DOMUS_PROFILE_HISTOGRAMS)
        thread->manager.observer = NULL;
    else if (!begin_measuring_runs(thread))
        level = DOMUS_PROFILE_COUNTERS;
    else if (level == DOMUS_PROFILE_SPANS && !begin_recording_spans(thread))
        level = DOMUS_PROFILE_HISTOGRAMS;
    /* the level that the thread really applies: if it is lower than the wanted one, the next
     * tick tries again */
    thread->level = level;
}

void domi_observing_record_iteration(domi_thread *thread)
{
    domi_observing *observing = atomic_load_explicit(&thread->observing, memory_order_relaxed);
    uint64_t sum_ns = 0;

    for (int i = 0; i < DOMI_SPANS; i++) {
        uint64_t now_ns = domi_counter_read(&thread->counters.span_ns[i]);
        uint64_t passed_ns = now_ns - observing->seen_ns[i];
        if (passed_ns == 0)
            continue;
        observing->seen_ns[i] = now_ns;
        domi_histogram_add_time(&observing->spans[i], passed_ns);
        sum_ns += i != DOMI_SPAN_ENTER ? passed_ns : 0;
    }
    if (sum_ns != 0)
        domi_histogram_add_time(&observing->iterations, sum_ns);
    observing->runs.reaped_ns = 0;
    domi_recorder *recorder = domi_thread_recorder(thread);
    if (recorder == NULL)
        return;
    domi_recorder_end_phase(recorder);
    if (sum_ns != 0)
        domi_recorder_write_ended_thing(recorder, DOMI_RECORD_ITERATION, thread->io_start_ns,
                                        thread->stamp_ns, NULL, thread->completions);
}

void domi_observing_free_histograms(domi_thread *thread)
{
    domi_observing *observing = atomic_load_explicit(&thread->observing, memory_order_relaxed);

    domi_memory_free(thread->waiting);
    thread->waiting = NULL;
    if (observing == NULL)
        return;
    domi_flows_free(thread);
    domi_recorder_free(observing->recorder);
    domi_answer_observer_fini(&observing->runs.answers);
    domi_memory_free(observing);
    atomic_store_explicit(&thread->observing, NULL, memory_order_relaxed);
}
