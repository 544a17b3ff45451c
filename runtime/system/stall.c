/* This file finds and reports stalls: runs of a thread that last longer than the threshold.
 *
 * If two looks at a thread find the same beat, the thread was in one run at least from the end of
 * the first look to the start of the second. So a reported stall is never shorter than the
 * threshold, and a monitor that is late itself makes no stall longer. While a stall goes on, the
 * monitor looks every eighth of its length, so its end is known with that precision. */
#include "runtime/system/stall.h"

#include "base/probe.h"
#include "house/dispatch/loan.h"
#include "house/message/types.h"
#include "runtime/system/logs.h"
#include "runtime/system/stall_trace.h"
#include "runtime/system/system.h"
#include "runtime/trace/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define MS     UINT64_C(1000000) /* nanoseconds in a millisecond */
#define SECOND (1000 * MS)

/* Nanoseconds for which the monitor waits for a backtrace. A thread that is interrupted by a signal
 * handles it at once, but a sanitizer delays it. */
#define TRACE_WAIT_NS (50 * MS)

/* The value of `beat` for a thread that is in no run; no thread ever counts its beats up to this
 * value. */
#define NO_BEAT UINT64_MAX

/* Most houses with arrivals that are counted behind a stall. */
#define ARRIVALS_MAX 10000u

void domi_stall_record_in_interrupted_thread(void *thread_)
{
    domi_thread *thread = thread_;

    thread->stall.traced_queued = domi_thread_count_ready_houses(thread);
    thread->stall.traced_beat = domi_thread_count_beats(thread);
}

/* Count the houses that have got messages from other threads since the stalled thread last took its
 * arrivals. */
static uint32_t count_houses_with_arrivals(domi_manager *manager)
{
    /* acquire: pairs with the put that has linked the newest house, so the links behind that house
     * are seen. The links are right only while home takes no arrivals; the caller checks whether
     * home took any meanwhile. Slots stay slots for ever, so each link leads to a house or to NULL
     * in any case. */
    const domi_house *house = atomic_load_explicit(&manager->mail.arrivals, memory_order_acquire);
    uint32_t count = 0;

    for (; house != NULL && count < ARRIVALS_MAX; count++)
        house = atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&house->arrival_next,
                                     memory_order_relaxed);
    return count;
}

/* --- the report ------------------------------------------------------------------------------- */

static const char *explain_missing_backtrace(const domi_stall *stall)
{
    switch (stall->no_trace) {
    case -EOPNOTSUPP:
        return "stall.signal is 0";
    case -ENOENT:
        return "the program has not called domus_stall_signal()";
    case -EACCES:
        return "domus_stall_signal() was called after the start";
    case -ENOBUFS:
        return "there were too many in this second";
    case -EAGAIN:
        return "it went on before it could be asked";
    default:
        return "it does not take the signal";
    }
}

/* Write into `text` whose handler runs in a stall, and which type of message it handles. */
static void describe_handler_in_stall(const domi_stall *stall, char *text, size_t size)
{
    if (stall->behaviour == NULL)
        snprintf(text, size, "in no handler");
    else if (stall->type == NULL)
        snprintf(text, size, "in %.64s, which was resumed without a message",
                 domi_behaviour_name(stall->behaviour));
    else
        snprintf(text, size, "in %.64s, handling %.64s", domi_behaviour_name(stall->behaviour),
                 domi_type_name(stall->type));
}

/* Write into `text` how many houses wait behind a stall. Without a backtrace this is the number
 * that the thread has published last, at the beginning of its phase 3 or some houses ago. */
static void describe_houses_behind_stall(domi_thread *thread, bool traced, char *text, size_t size)
{
    uint32_t arrived = count_houses_with_arrivals(&thread->manager);
    uint32_t count = arrived + (traced ? thread->stall.traced_queued
                                       : domi_thread_read_published_ready_count(thread));

    if (domi_thread_count_beats(thread) != thread->stall.beat)
        snprintf(text, size, "it has just gone on");
    else
        snprintf(text, size, "%s%" PRIu32 " actors wait behind it",
                 arrived == ARRIVALS_MAX ? "more than "
                 : traced                ? ""
                                         : "about ",
                 count);
}

static void log_backtrace_of_stall(domus_system *system, const domi_thread *thread)
{
    char text[256];

    bool addresses = DOMI_LIVE(system, log.addresses);

    for (uint32_t i = 0;
         domi_backtrace_write_frame(&thread->stall.backtrace, i, addresses, text, sizeof text); i++)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "thread %" PRIu32 " #%" PRIu32 " %s", thread->manager.index, i, text);
}

static uint64_t read_thread_cpu_ns(const domi_thread *thread)
{
    return domi_clock_read_cpu_ns((clockid_t)domi_counter_read(&thread->counters.cpu_clock));
}

/* Write into `text` for how much of the stall the thread was on the CPU, which tells whether it
 * worked or waited. */
static void describe_cpu_time_of_stall(const domi_thread *thread, uint64_t now_ns, char *text,
                                       size_t size)
{
    const domi_stall *stall = &thread->stall;
    uint64_t used_ns = read_thread_cpu_ns(thread);
    uint64_t over_ns = now_ns - stall->cpu_since_ns;

    if (over_ns < MS || used_ns < stall->cpu_ns)
        text[0] = '\0';
    else
        snprintf(text, size, " %" PRIu64 " of the last %" PRIu64 " ms on the CPU;",
                 (used_ns - stall->cpu_ns) / MS, over_ns / MS);
}

/* Add the stall of a thread to the history of stalls, which viewers read. */
static void add_stall_to_history(domus_system *system, domi_thread *thread, bool traced)
{
    domi_stall *stall = &thread->stall;
    domi_stall_record record = {.began_ns = stall->from_ns, .index = thread->manager.index};

    if (stall->behaviour != NULL)
        domi_stall_record_set_name(record.behaviour, domi_behaviour_name(stall->behaviour));
    if (stall->behaviour != NULL && stall->type != NULL)
        domi_stall_record_set_name(record.type, domi_type_name(stall->type));
    if (traced)
        domi_stall_record_set_frames(&record, &stall->backtrace);
    stall->number = domi_stall_history_add_stall(&system->stall_history, &system->clock, &record);
}

/* Report a stall of a thread in the log and the history; called once for each stall, while it goes
 * on or when it is over. */
static void report_stall_of_thread(domus_system *system, domi_thread *thread, uint64_t now_ns,
                                   bool traced)
{
    domi_stall *stall = &thread->stall;
    char where[192], cpu[64], waiting[64];

    stall->stage = DOMI_STALL_TOLD;
    describe_handler_in_stall(stall, where, sizeof where);
    describe_cpu_time_of_stall(thread, now_ns, cpu, sizeof cpu);
    describe_houses_behind_stall(thread, traced, waiting, sizeof waiting);
    domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                  "thread %" PRIu32 " is stuck for %" PRIu64 " ms %s;%s %s%s%s",
                  thread->manager.index, (now_ns - stall->from_ns) / MS, where, cpu, waiting,
                  traced ? "" : "; no backtrace: ", traced ? "" : explain_missing_backtrace(stall));
    if (traced)
        log_backtrace_of_stall(system, thread);
    add_stall_to_history(system, thread, traced);
    domi_backtrace_drop_or_withdraw(&stall->backtrace);
    domi_stall_trace_write_file(system, now_ns);
}

/* --- one thread ------------------------------------------------------------------------------- */

/* True if the thread sleeps, or is at a place of its loop where it may stay without a beat. */
static bool is_thread_at_rest(const domi_thread *thread, const domus_behaviour *running)
{
    uint32_t park = domi_park_read_word(&thread->manager.park);

    if (domi_counter_read(&thread->counters.stamp_ns) == 0)
        return true;
    if (park == DOMI_PARK_RUNNING || park == DOMI_PARK_SPINNING)
        return running == NULL &&
               (park == DOMI_PARK_SPINNING || domi_counter_read(&thread->counters.cpu_end_ns) != 0);
    return true;
}

/* Begin to watch a thread anew, because it is not in the same run as at the last look. */
static void begin_new_stall_watch_of_thread(domi_thread *thread, uint64_t beat,
                                            const domi_clock *clock)
{
    domi_stall *stall = &thread->stall;
    uint64_t stamp_ns = domi_counter_read(&thread->counters.stamp_ns);

    stall->stage = DOMI_STALL_NONE;
    stall->beat = beat;
    stall->cpu_since_ns = 0;
    /* the clock is read after the beat, so the run was already under way at this time */
    stall->since_ns = domi_clock_now(clock);
    stall->from_ns = stall->looked_ns != 0 ? stall->looked_ns : stall->since_ns;
    /* The thread stamps the time when it wakes and after each phase, so a stamp newer than the last
     * look is nearer to the run's begin. */
    stamp_ns &= ~DOMI_STAMP_ASLEEP;
    if (stamp_ns > stall->looked_ns && stamp_ns <= stall->since_ns)
        stall->from_ns = stamp_ns;
}

static void end_stall_of_thread(domus_system *system, domi_thread *thread, uint64_t now_ns)
{
    domi_stall *stall = &thread->stall;
    uint64_t length_ns = now_ns - stall->from_ns;

    if (stall->stage == DOMI_STALL_FOUND) {
        stall->no_trace = stall->no_trace != 0 ? stall->no_trace : -EAGAIN;
        report_stall_of_thread(system, thread, now_ns, false);
    }
    domi_stall_history_end_stall(&system->stall_history, stall->number, length_ns);
    stall->number = 0;
    domi_stall_counts_add_length(&stall->counts, length_ns);
}

/* Ask a stalled thread for a backtrace. Returns 0 if it was asked, otherwise a negative errno (see
 * explain_missing_backtrace()). */
static int ask_thread_for_backtrace(domus_system *system, domi_thread *thread, uint64_t now_ns)
{
    domi_stall_bound *bound = &system->monitor.traces;
    uint64_t second = now_ns / SECOND;

    if (system->config.stall.signal == 0)
        return -EOPNOTSUPP;
    if (bound->second != second)
        *bound = (domi_stall_bound){.second = second};
    if (bound->count >= DOMI_STALL_TRACES_MAX)
        return -ENOBUFS;
    int result = domi_backtrace_request_of_thread(&thread->stall.backtrace, thread->pthread,
                                                  (int)system->config.stall.signal);
    bound->count += result == 0;
    return result;
}

/* Show the stall in the trace of its thread: the thread writes the record when it goes on
 * (loop/observing.c). If it has gone on just now, it writes the record at the end of its next
 * phase, as a stall of no length. The stall begins after everything that the thread has
 * recorded. */
static void show_stall_in_trace(domi_thread *thread)
{
    const domi_stall *stall = &thread->stall;
    uint64_t stamp_ns = domi_counter_read(&thread->counters.stamp_ns) & ~DOMI_STAMP_ASLEEP;
    /* acquire: pairs with the release by which the thread has published its recorder, so the
     * recorder is complete. */
    domi_recorder *recorder = atomic_load_explicit(&thread->recorder, memory_order_acquire);

    if (recorder == NULL)
        return;
    uint64_t begin_ns = domi_recorder_end_of_newest_record(recorder);
    if (begin_ns < stall->from_ns)
        begin_ns = stall->from_ns;
    if (begin_ns < stamp_ns && stamp_ns <= stall->found_ns)
        begin_ns = stamp_ns;
    domi_recorder_note_begin_of_thing(recorder, DOMI_RECORD_STALL, begin_ns, stall->behaviour,
                                      (uintptr_t)stall->type);
}

static void count_stall_and_ask_for_backtrace(domus_system *system, domi_thread *thread,
                                              uint64_t now_ns)
{
    domi_stall *stall = &thread->stall;

    stall->behaviour = domi_manager_running_behaviour(&thread->manager);
    stall->type = domi_manager_type_being_handled(&thread->manager);
    if (domi_thread_count_beats(thread) != stall->beat)
        return; /* the thread is in another run by now, and the next look decides about that */
    domi_counter_add(&stall->counts.count, 1);
    DOMI_PROBE_4(stall, thread->manager.index, stall->behaviour, stall->type, stall->from_ns);
    stall->stage = DOMI_STALL_FOUND;
    stall->found_ns = now_ns;
    show_stall_in_trace(thread);
    domi_backtrace_drop_or_withdraw(&stall->backtrace);
    stall->no_trace = ask_thread_for_backtrace(system, thread, now_ns);
    if (stall->no_trace != 0)
        report_stall_of_thread(system, thread, now_ns, false);
}

/* Go on with the watch of a thread that is still in the same run as at the last look, which may be
 * a stall by now. */
static void continue_stall_watch_of_thread(domus_system *system, domi_thread *thread,
                                           uint64_t now_ns)
{
    domi_stall *stall = &thread->stall;

    if (stall->cpu_since_ns == 0) {
        stall->cpu_ns = read_thread_cpu_ns(thread);
        stall->cpu_since_ns = now_ns;
    }
    if (stall->stage == DOMI_STALL_NONE &&
        now_ns - stall->since_ns >= DOMI_LIVE(system, stall.threshold_ns))
        count_stall_and_ask_for_backtrace(system, thread, now_ns);
    if (stall->stage != DOMI_STALL_FOUND)
        return;
    if (domi_backtrace_is_complete(&stall->backtrace) && stall->traced_beat == stall->beat)
        report_stall_of_thread(system, thread, now_ns, true);
    else if (now_ns - stall->found_ns >= TRACE_WAIT_NS) {
        stall->no_trace = -ETIMEDOUT;
        report_stall_of_thread(system, thread, now_ns, false);
    }
}

/* Look whether a thread is in a stall. Returns the nanoseconds until the next look at this
 * thread. */
static uint64_t look_at_thread_for_stall(domus_system *system, domi_thread *thread,
                                         uint64_t often_ns)
{
    domi_stall *stall = &thread->stall;
    /* the clock is read before the beat, so a run is never taken for longer than it is */
    uint64_t now_ns = domi_clock_now(&system->clock);
    const domus_behaviour *running = domi_manager_running_behaviour(&thread->manager);
    uint64_t beat = is_thread_at_rest(thread, running) ? NO_BEAT : domi_thread_count_beats(thread);

    if (beat != stall->beat || beat == NO_BEAT) {
        if (stall->stage != DOMI_STALL_NONE)
            end_stall_of_thread(system, thread, now_ns);
        begin_new_stall_watch_of_thread(thread, beat, &system->clock);
    } else {
        continue_stall_watch_of_thread(system, thread, now_ns);
    }
    stall->looked_ns = now_ns;
    if (stall->stage == DOMI_STALL_NONE)
        return often_ns;
    uint64_t soon_ns = stall->stage == DOMI_STALL_FOUND ? 0 : (now_ns - stall->from_ns) / 8;
    if (soon_ns < DOMI_STALL_LOOK_MIN_NS)
        soon_ns = DOMI_STALL_LOOK_MIN_NS;
    return soon_ns < often_ns ? soon_ns : often_ns;
}

/* --- all threads ------------------------------------------------------------------------------ */

void domi_stalls_forget_last_looks(domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        domi_stall *stall = &system->threads[i].stall;
        DOMI_CHECK(stall->stage == DOMI_STALL_NONE);
        stall->beat = NO_BEAT;
        stall->looked_ns = 0;
    }
}

bool domi_stalls_is_any_open(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        if (system->threads[i].stall.stage != DOMI_STALL_NONE)
            return true;
    }
    return false;
}

/* End all stalls that were found, because stalls are not watched any more. */
static void end_all_stalls(domus_system *system)
{
    uint64_t now_ns = domi_clock_now(&system->clock);

    for (uint32_t i = 0; i < system->count; i++) {
        domi_thread *thread = &system->threads[i];
        if (thread->stall.stage == DOMI_STALL_NONE)
            continue;
        end_stall_of_thread(system, thread, now_ns);
        begin_new_stall_watch_of_thread(thread, NO_BEAT, &system->clock);
    }
}

uint64_t domi_stalls_look_at_all_threads(domus_system *system)
{
    uint64_t often_ns = DOMI_LIVE(system, stall.threshold_ns) / 4;

    if (often_ns == 0) { /* stall.threshold is 0, so stalls are not watched */
        end_all_stalls(system);
        return UINT64_MAX;
    }
    if (often_ns < DOMI_STALL_LOOK_MIN_NS)
        often_ns = DOMI_STALL_LOOK_MIN_NS;
    if (often_ns > DOMI_STALL_LOOK_MAX_NS)
        often_ns = DOMI_STALL_LOOK_MAX_NS;
    uint64_t next_ns = often_ns;
    for (uint32_t i = 0; i < system->count; i++) {
        uint64_t wanted_ns = look_at_thread_for_stall(system, &system->threads[i], often_ns);
        if (wanted_ns < next_ns)
            next_ns = wanted_ns;
    }
    return next_ns;
}
