/* This file reads the counters of threads into a profile; profile_table.c prints them.
 *
 * A thread measures the wall time that it was in enters of its ring, and the time elsewhere. How
 * long it worked inside enters is its CPU time minus the time elsewhere, and the rest of the
 * time in enters was sleep. So no enter has to read the CPU clock, and the times of the phases
 * add up to the wall time exactly. */
#include "runtime/system/system.h"

#include "base/spinlock.h"
#include "runtime/outside/detached.h"
#include "runtime/pools/runners.h"

#include <errno.h>
#include <time.h>

static const char *const phase_names[DOMUS_PHASES] = {
    [DOMUS_PHASE_SUBMIT] = "submit",
    [DOMUS_PHASE_SLEEP] = "sleep",
    [DOMUS_PHASE_COMPLETIONS] = "completions",
    [DOMUS_PHASE_CHANNELS] = "channels",
    [DOMUS_PHASE_EVENTS] = "events",
    [DOMUS_PHASE_STATE] = "state",
    [DOMUS_PHASE_OTHER] = "other",
};

const char *domus_phase_name(domus_phase phase)
{
    return (unsigned)phase < DOMUS_PHASES ? phase_names[phase] : NULL;
}

/* Returns the CPU time of a thread since its loop began. While the thread runs, this reads the
 * thread's CPU clock. */
static uint64_t read_cpu_time_of_thread(const domi_thread *thread)
{
    uint64_t end_ns = domi_counter_read(&thread->counters.cpu_end_ns);
    uint64_t start_ns = domi_counter_read(&thread->counters.cpu_start_ns);

    if (end_ns == 0) {
        if (start_ns == 0)
            return 0;
        end_ns = domi_clock_read_cpu_ns((clockid_t)domi_counter_read(&thread->counters.cpu_clock));
    }
    return end_ns > start_ns ? end_ns - start_ns : 0;
}

static uint64_t read_counter_with_acquire(const domi_counter *counter)
{
    return atomic_load_explicit((domi_counter *)(uintptr_t)counter, memory_order_acquire);
}

/* A thread that wakes reads the clock some time before others can see that it has woken. So in the
 * profile of a sleeping thread its sleep ends this much before now (in nanoseconds), and the next
 * profile never shows less. */
#define WAKE_NS UINT64_C(100000)
/* most times that the spans of a thread are read again because the thread is just changing them */
#define READS_MAX 100000

/* Read the spans of a thread up to its newest stamp, or, if the thread has slept since then, up to
 * WAKE_NS before now. Returns the time since the newest stamp that is no sleep, which no span has
 * yet. */
static uint64_t read_ns_of_thread_in_each_span(const domi_thread *thread,
                                               uint64_t span_ns[DOMI_SPANS])
{
    const domi_counter *stamp = &thread->counters.stamp_ns;
    uint64_t stamp_ns;
    uint64_t now_ns;

    for (int reads = 1;; reads++) {
        now_ns = domi_clock_now(thread->clock);
        stamp_ns = read_counter_with_acquire(stamp);
        for (int i = 0; i < DOMI_SPANS; i++)
            span_ns[i] = read_counter_with_acquire(&thread->counters.span_ns[i]);
        bool same = stamp_ns != DOMI_STAMP_MOVING && read_counter_with_acquire(stamp) == stamp_ns;
        if (same || reads == READS_MAX)
            break;
        domi_pause();
    }
    bool asleep = (stamp_ns & DOMI_STAMP_ASLEEP) != 0;
    stamp_ns &= ~DOMI_STAMP_ASLEEP;
    if (stamp_ns == 0 || now_ns <= stamp_ns)
        return 0;
    if (asleep && now_ns - stamp_ns > WAKE_NS)
        span_ns[DOMI_SPAN_ENTER] += now_ns - stamp_ns - WAKE_NS;
    return asleep ? 0 : now_ns - stamp_ns;
}

static void read_times_of_phases(const domi_thread *thread, domus_profile *profile)
{
    uint64_t span_ns[DOMI_SPANS];

    /* relaxed: the thread may change at this moment whether it measures times */
    if (!atomic_load_explicit((_Atomic bool *)(uintptr_t)&thread->timed, memory_order_relaxed))
        return;
    bool ended = domi_counter_read(&thread->counters.cpu_end_ns) != 0;
    uint64_t open_ns = read_ns_of_thread_in_each_span(thread, span_ns);
    /* The CPU clock of a thread that runs also counts the time since its newest stamp. */
    uint64_t elsewhere_ns = ended ? 0 : open_ns;
    for (int i = 0; i < DOMI_SPANS; i++) {
        profile->wall_ns += span_ns[i];
        if (i != DOMI_SPAN_ENTER)
            elsewhere_ns += span_ns[i];
    }
    uint64_t cpu_ns = read_cpu_time_of_thread(thread);
    uint64_t submit_ns = cpu_ns > elsewhere_ns ? cpu_ns - elsewhere_ns : 0;
    if (submit_ns > span_ns[DOMI_SPAN_ENTER])
        submit_ns = span_ns[DOMI_SPAN_ENTER];
    profile->phase_ns[DOMUS_PHASE_SUBMIT] = submit_ns;
    profile->phase_ns[DOMUS_PHASE_SLEEP] = span_ns[DOMI_SPAN_ENTER] - submit_ns;
    profile->phase_ns[DOMUS_PHASE_COMPLETIONS] = span_ns[DOMI_SPAN_COMPLETIONS];
    profile->phase_ns[DOMUS_PHASE_CHANNELS] = span_ns[DOMI_SPAN_CHANNELS];
    profile->phase_ns[DOMUS_PHASE_EVENTS] = span_ns[DOMI_SPAN_EVENTS];
    profile->phase_ns[DOMUS_PHASE_STATE] = span_ns[DOMI_SPAN_STATE];
    profile->phase_ns[DOMUS_PHASE_OTHER] = span_ns[DOMI_SPAN_OTHER];
}

static void copy_house_counters_to_profile(const domi_counters *from, domus_profile *profile)
{
    profile->runs = domi_counter_read(&from->runs);
    profile->replies = domi_counter_read(&from->handled[DOMI_REPLY]);
    profile->exceptions = domi_counter_read(&from->handled[DOMI_EXCEPTION]);
    profile->asks = domi_counter_read(&from->handled[DOMI_ASK]);
    profile->notices = domi_counter_read(&from->handled[DOMI_NOTICE]);
    profile->events = domi_counter_read(&from->handled[DOMI_EVENT]);
    profile->failures = domi_counter_read(&from->failures);
    profile->belted = domi_counter_read(&from->belted);
    profile->wakeups_sent = domi_counter_read(&from->wakeups_sent);
    profile->dead_letters = domi_counter_read(&from->dead_letters);
    profile->refusals = domi_counter_read(&from->refusals);
    profile->busy = domi_counter_read(&from->busy);
    profile->trimmed_bytes = domi_counter_read(&from->trimmed_bytes);
    profile->asks_expired = domi_counter_read(&from->asks_expired);
    profile->late_replies = domi_counter_read(&from->late_replies);
    profile->cancels = domi_counter_read(&from->cancels);
    profile->circles = domi_counter_read(&from->circles);
    profile->restarts = domi_counter_read(&from->restarts);
    profile->escalations = domi_counter_read(&from->escalations);
    profile->passivations = domi_counter_read(&from->passivations);
    profile->letters_missed = domi_counter_read(&from->letters_missed);
    profile->spawns = domi_counter_read(&from->spawns);
    profile->stops = domi_counter_read(&from->stops);
    profile->exposed = domi_counter_read(&from->exposed);
    profile->timers_fired = domi_counter_read(&from->timers_fired);
    profile->waits_lost = domi_counter_read(&from->waits_lost);
    profile->results_unknown = domi_counter_read(&from->results_unknown);
    profile->conversations_full = domi_counter_read(&from->conversations_full);
    profile->timers_refused = domi_counter_read(&from->timers_refused);
    profile->thread_max_refusals = domi_counter_read(&from->thread_max_refusals);
}

static void copy_io_counters_to_profile(const domi_io_counters *from, domus_profile *profile)
{
    profile->enters = domi_counter_read(&from->enters);
    profile->channels_refused = domi_counter_read(&from->channels_refused);
    profile->requests_failed = domi_counter_read(&from->requests_failed);
    profile->enters_refused = domi_counter_read(&from->enters_refused);
    profile->completions = domi_counter_read(&from->completions);
    profile->reads = domi_counter_read(&from->reads);
    profile->received_bytes = domi_counter_read(&from->received_bytes);
    profile->sent_bytes = domi_counter_read(&from->sent_bytes);
    profile->sends = domi_counter_read(&from->sends);
    profile->accepted = domi_counter_read(&from->accepted);
    profile->accept_pauses = domi_counter_read(&from->accept_pauses);
    profile->channels_opened = domi_counter_read(&from->channels_opened);
    profile->channels_closed = domi_counter_read(&from->channels_closed);
    profile->channels_reset = domi_counter_read(&from->channels_reset);
    profile->receivers_starved = domi_counter_read(&from->receivers_starved);
    profile->pressed = domi_counter_read(&from->memory_pauses);
    profile->refused_by_address = domi_counter_read(&from->refused_by_address);
    profile->address_spells = domi_counter_read(&from->address_spells);
    profile->full_spells = domi_counter_read(&from->full_spells);
    profile->accept_spells = domi_counter_read(&from->accept_spells);
    profile->buffer_spells = domi_counter_read(&from->buffer_spells);
    profile->channels_silent = domi_counter_read(&from->channels_silent);
    profile->channels_shed = domi_counter_read(&from->channels_shed);
    profile->connects = domi_counter_read(&from->connects);
    profile->connects_failed = domi_counter_read(&from->connects_failed);
    profile->datagrams_dropped = domi_counter_read(&from->datagrams_dropped);
    profile->datagrams_lost = domi_counter_read(&from->datagrams_lost);
    profile->datagrams_unsent = domi_counter_read(&from->datagrams_unsent);
    profile->channels_aged = domi_counter_read(&from->channels_aged);
    profile->channels_slow = domi_counter_read(&from->channels_slow);
    profile->proxies_refused = domi_counter_read(&from->proxies_refused);
    profile->drained_answered = domi_counter_read(&from->drained_answered);
    profile->drained_idle = domi_counter_read(&from->drained_idle);
    profile->drained_cut = domi_counter_read(&from->drained_cut);
    profile->channels_busy = domi_counter_read(&from->channels_busy);
    profile->channels_late = domi_counter_read(&from->channels_late);
}

static void copy_counts_of_cut_to_profile(const domi_io *io, domus_profile *profile)
{
    profile->channels_cut =
        domi_counter_read(&io->counters.channels_cut) + domi_counter_read(&io->turned_away);
    profile->cut_bytes =
        domi_counter_read(&io->counters.cut_bytes) + domi_counter_read(&io->turned_away_bytes);
    profile->discarded_bytes = domi_counter_read(&io->counters.discarded_bytes);
}

static void copy_thread_counters_to_profile(const domi_thread_counters *from,
                                            domus_profile *profile)
{
    profile->iterations = domi_counter_read(&from->iterations);
    profile->deadline_expiries = domi_counter_read(&from->deadline_expiries);
    profile->deadline_overrun_ns = domi_counter_read(&from->deadline_overrun_ns);
    profile->parks = domi_counter_read(&from->parks);
    profile->wakeups_received = domi_counter_read(&from->wakeups_received);
    profile->wakeups_empty = domi_counter_read(&from->wakeups_empty);
    profile->wake_rearms = domi_counter_read(&from->wake_rearms);
    profile->ready_ns = domi_counter_read(&from->ready_ns);
    profile->io_behind_ns = domi_counter_read(&from->io_behind_ns);
    profile->steals_wanted = domi_counter_read(&from->steals_wanted);
    profile->steals = domi_counter_read(&from->steals);
    profile->cap_wakeups_with_work = domi_counter_read(&from->cap_wakeups_with_work);
    profile->files_kept = domi_counter_read(&from->files_kept);
}

static uint64_t read_count_of_dropped_log_lines(const domi_log_bound *bound)
{
    return domi_counter_read(&bound->dropped);
}

int domus_outside_profile(const domus_system *system, domus_profile *ret_profile)
{
    domus_profile profile = {0};

    copy_house_counters_to_profile(&system->outside.counters, &profile);
    profile.busy += domi_counter_read(&system->pressure.outside_refused);
    profile.log_lines_dropped = read_count_of_dropped_log_lines(&system->log_bound);
    if (system->hooks.log_dropped != NULL)
        profile.log_lines_dropped += system->hooks.log_dropped(system->hooks.log_context);
    *ret_profile = profile;
    return 0;
}

static uint64_t sum_messages_of_all_kinds(const domi_counters *from)
{
    uint64_t sum = 0;

    for (int i = 0; i < DOMI_MAILBOXES; i++)
        sum += domi_counter_read(&from->handled[i]);
    return sum;
}

int domus_pool_profile(const domus_pool *pool, uint32_t index, domus_runner_profile *ret_profile,
                       domus_profile *ret_counters)
{
    if (index >= pool->count)
        return -EINVAL;
    const domus_runner *runner = pool->runners[index];
    const domi_runner_counters *from = &runner->counters;
    const domi_spans spans = domi_span_read_times(runner);

    *ret_profile = (domus_runner_profile){
        .wall_ns = spans.lived_ns,
        .run_ns = spans.lived_ns - spans.search_ns - spans.park_ns,
        .search_ns = spans.search_ns,
        .park_ns = spans.park_ns,
        .turns = domi_counter_read(&from->turns),
        .messages = sum_messages_of_all_kinds(&runner->manager.counters),
        .steals = domi_counter_read(&from->events[DOMUS_RUNNER_STEALS]),
        .stolen = domi_counter_read(&from->events[DOMUS_RUNNER_STOLEN]),
        .global_takes = domi_counter_read(&from->events[DOMUS_RUNNER_GLOBAL]),
        .parks = domi_counter_read(&from->events[DOMUS_RUNNER_PARKS]),
        .begun = domi_counter_read(&from->begun),
    };
    if (ret_counters == NULL)
        return 0;
    *ret_counters = (domus_profile){.wall_ns = spans.lived_ns};
    copy_house_counters_to_profile(&runner->manager.counters, ret_counters);
    domi_stall_counts_read(&from->stalls, ret_counters);
    return 0;
}

int domus_system_profile(const domus_system *system, uint32_t index, domus_profile *ret_profile)
{
    if (index >= system->count)
        return -EINVAL;
    const domi_thread *thread = &system->threads[index];
    domus_profile profile = {0};

    read_times_of_phases(thread, &profile);
    copy_house_counters_to_profile(&thread->manager.counters, &profile);
    copy_io_counters_to_profile(&thread->io.counters, &profile);
    copy_counts_of_cut_to_profile(&thread->io, &profile);
    profile.buffers_used = domi_counter_read(&thread->io.buffers_used);
    profile.houses_used = domi_counter_read(&thread->manager.births.houses);
    profile.queued_bytes = domi_counter_read(&thread->io.queued);
    copy_thread_counters_to_profile(&thread->counters, &profile);
    domi_stall_counts_read(&thread->stall.counts, &profile);
    profile.log_lines_dropped = read_count_of_dropped_log_lines(&thread->log_bound);
    *ret_profile = profile;
    return 0;
}

void domus_system_usage(domus_system *system, domus_usage *ret_usage)
{
    const domi_workers_counters *helpers = &system->workers->counters;

    *ret_usage = (domus_usage){.helpers = domi_counter_read(&helpers->threads),
                               .helpers_busy = domi_counter_read(&helpers->running),
                               .jobs_queued = domi_counter_read(&helpers->queued)};
    pthread_mutex_lock(&system->mutex);
    ret_usage->detached_threads = system->detached_count;
    ret_usage->detached_busy = domi_detached_count_busy_threads(system);
    pthread_mutex_unlock(&system->mutex);
}
