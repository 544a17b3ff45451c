/* This file reads the counters of threads, and prints them as a table.
 *
 * A thread measures how long it was in enters of its ring and how long elsewhere. The time that it
 * worked inside enters is its CPU time minus the time that it spent elsewhere; the rest of the time
 * in enters was sleep. So no enter has to read the CPU clock, and the phases add up to the wall
 * time exactly. */
#include "runtime/system/system.h"

#include "base/spinlock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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
static uint64_t thread_cpu_ns(const domi_thread *thread)
{
    uint64_t end_ns = domi_counter_read(&thread->counters.cpu_end_ns);
    uint64_t start_ns = domi_counter_read(&thread->counters.cpu_start_ns);

    if (end_ns == 0) {
        if (start_ns == 0)
            return 0;
        end_ns = domi_clock_cpu_ns((clockid_t)domi_counter_read(&thread->counters.cpu_clock));
    }
    return end_ns > start_ns ? end_ns - start_ns : 0;
}

static uint64_t read_acquire(const domi_counter *counter)
{
    return atomic_load_explicit((domi_counter *)(uintptr_t)counter, memory_order_acquire);
}

/* A thread that wakes reads the clock some time before others can see that it has woken. So the
 * sleep that is reported ends this much before now, and the next snapshot never goes back. */
#define WAKE_NS   UINT64_C(100000)
#define READS_MAX 100000 /* bounds the wait for a thread that is interrupted within a stamp */

/* Read the spans up to the newest stamp, or, if the thread sleeps since then, up to WAKE_NS before
 * now. Time after the newest stamp that is not a sleep is in no span yet; it is returned. */
static uint64_t read_spans(const domi_thread *thread, uint64_t span_ns[DOMI_SPANS])
{
    const domi_counter *stamp = &thread->counters.stamp_ns;
    uint64_t stamp_ns;
    uint64_t now_ns;

    for (int reads = 1;; reads++) {
        now_ns = domi_clock_now(thread->clock);
        stamp_ns = read_acquire(stamp);
        for (int i = 0; i < DOMI_SPANS; i++)
            span_ns[i] = read_acquire(&thread->counters.span_ns[i]);
        bool same = stamp_ns != DOMI_STAMP_MOVING && read_acquire(stamp) == stamp_ns;
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

static void read_phases(const domi_thread *thread, domus_profile *profile)
{
    uint64_t span_ns[DOMI_SPANS];

    if (!thread->timed)
        return;
    bool ended = domi_counter_read(&thread->counters.cpu_end_ns) != 0;
    uint64_t open_ns = read_spans(thread, span_ns);
    /* The CPU clock of a running thread counts the time since its last stamp, too. */
    uint64_t elsewhere_ns = ended ? 0 : open_ns;
    for (int i = 0; i < DOMI_SPANS; i++) {
        profile->wall_ns += span_ns[i];
        if (i != DOMI_SPAN_ENTER)
            elsewhere_ns += span_ns[i];
    }
    uint64_t cpu_ns = thread_cpu_ns(thread);
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

static void read_house_counters(const domi_counters *from, domus_profile *profile)
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
}

static void read_io_counters(const domi_io_counters *from, domus_profile *profile)
{
    profile->enters = domi_counter_read(&from->enters);
    profile->channels_refused = domi_counter_read(&from->channels_refused);
    profile->enters_refused = domi_counter_read(&from->enters_refused);
    profile->completions = domi_counter_read(&from->completions);
    profile->reads = domi_counter_read(&from->reads);
    profile->received_bytes = domi_counter_read(&from->received_bytes);
    profile->sent_bytes = domi_counter_read(&from->sent_bytes);
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

static void read_cut(const domi_io *io, domus_profile *profile)
{
    profile->channels_cut =
        domi_counter_read(&io->counters.channels_cut) + domi_counter_read(&io->turned_away);
    profile->cut_bytes =
        domi_counter_read(&io->counters.cut_bytes) + domi_counter_read(&io->turned_away_bytes);
    profile->discarded_bytes = domi_counter_read(&io->counters.discarded_bytes);
}

static void read_thread_counters(const domi_thread_counters *from, domus_profile *profile)
{
    profile->iterations = domi_counter_read(&from->iterations);
    profile->deadline_expiries = domi_counter_read(&from->deadline_expiries);
    profile->deadline_overrun_ns = domi_counter_read(&from->deadline_overrun_ns);
    profile->parks = domi_counter_read(&from->parks);
    profile->wakeups_received = domi_counter_read(&from->wakeups_received);
    profile->wakeups_empty = domi_counter_read(&from->wakeups_empty);
    profile->wake_rearms = domi_counter_read(&from->wake_rearms);
    profile->steals_wanted = domi_counter_read(&from->steals_wanted);
    profile->steals = domi_counter_read(&from->steals);
    profile->cap_wakeups_with_work = domi_counter_read(&from->cap_wakeups_with_work);
    profile->files_kept = domi_counter_read(&from->files_kept);
}

static void read_stalls(const domi_stall *from, domus_profile *profile)
{
    profile->stalls = domi_counter_read(&from->count);
    profile->stalled_ns = domi_counter_read(&from->total_ns);
    for (int i = 0; i < DOMUS_STALL_LENGTHS; i++)
        profile->stall_lengths[i] = domi_counter_read(&from->lengths[i]);
}

static uint64_t read_dropped(const domi_log_bound *bound)
{
    return domi_counter_read(&bound->dropped);
}

int domus_outside_profile(const domus_system *system, domus_profile *ret_profile)
{
    domus_profile profile = {0};

    read_house_counters(&system->outside.counters, &profile);
    profile.busy += domi_counter_read(&system->pressure.outside_refused);
    profile.log_lines_dropped = read_dropped(&system->log_bound);
    if (system->hooks.log_dropped != NULL)
        profile.log_lines_dropped += system->hooks.log_dropped(system->hooks.log_context);
    *ret_profile = profile;
    return 0;
}

int domus_system_profile(const domus_system *system, uint32_t index, domus_profile *ret_profile)
{
    if (index >= system->count)
        return -EINVAL;
    const domi_thread *thread = &system->threads[index];
    domus_profile profile = {0};

    read_phases(thread, &profile);
    read_house_counters(&thread->manager.counters, &profile);
    read_io_counters(&thread->io.counters, &profile);
    read_cut(&thread->io, &profile);
    profile.queued_bytes = domi_counter_read(&thread->io.queued);
    read_thread_counters(&thread->counters, &profile);
    read_stalls(&thread->stall, &profile);
    profile.log_lines_dropped = read_dropped(&thread->log_bound);
    *ret_profile = profile;
    return 0;
}

/* --- the table ----------------------------------------------------------------------------- */

typedef struct text {
    char *at;      /* start of the text; NUL-terminated */
    size_t size;   /* bytes at `at` */
    size_t length; /* bytes that the whole text takes, also if they do not fit */
} text;

__attribute__((format(printf, 2, 3))) static void add_text(text *to, const char *format, ...)
{
    bool room = to->length < to->size;
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(room ? to->at + to->length : NULL, room ? to->size - to->length : 0,
                           format, arguments);
    va_end(arguments);
    if (length > 0)
        to->length += (size_t)length;
}

static const struct {
    const char *name; /* the head of a row in the table */
    size_t offset;    /* where the counter is in domus_profile */
} rows[] = {
    {"iterations", offsetof(domus_profile, iterations)},
    {"enters", offsetof(domus_profile, enters)},
    {"enters refused", offsetof(domus_profile, enters_refused)},
    {"completions", offsetof(domus_profile, completions)},
    {"houses run", offsetof(domus_profile, runs)},
    {"replies", offsetof(domus_profile, replies)},
    {"exceptions", offsetof(domus_profile, exceptions)},
    {"asks", offsetof(domus_profile, asks)},
    {"notices", offsetof(domus_profile, notices)},
    {"events", offsetof(domus_profile, events)},
    {"reads", offsetof(domus_profile, reads)},
    {"received bytes", offsetof(domus_profile, received_bytes)},
    {"sent bytes", offsetof(domus_profile, sent_bytes)},
    {"failures", offsetof(domus_profile, failures)},
    {"deadline expiries", offsetof(domus_profile, deadline_expiries)},
    {"deadline overrun ns", offsetof(domus_profile, deadline_overrun_ns)},
    {"parks", offsetof(domus_profile, parks)},
    {"notices by belts", offsetof(domus_profile, belted)},
    {"wake-ups sent", offsetof(domus_profile, wakeups_sent)},
    {"wake-ups received", offsetof(domus_profile, wakeups_received)},
    {"wake-ups empty", offsetof(domus_profile, wakeups_empty)},
    {"wake poll re-armed", offsetof(domus_profile, wake_rearms)},
    {"woke by cap with work", offsetof(domus_profile, cap_wakeups_with_work)},
    {"steals wanted", offsetof(domus_profile, steals_wanted)},
    {"steals", offsetof(domus_profile, steals)},
    {"dead letters", offsetof(domus_profile, dead_letters)},
    {"refusals", offsetof(domus_profile, refusals)},
    {"refused for memory", offsetof(domus_profile, busy)},
    {"paused for memory", offsetof(domus_profile, pressed)},
    {"trimmed bytes", offsetof(domus_profile, trimmed_bytes)},
    {"queued bytes", offsetof(domus_profile, queued_bytes)},
    {"reset for memory", offsetof(domus_profile, channels_shed)},
    {"spawns", offsetof(domus_profile, spawns)},
    {"stops", offsetof(domus_profile, stops)},
    {"exposed", offsetof(domus_profile, exposed)},
    {"accepted", offsetof(domus_profile, accepted)},
    {"accept pauses", offsetof(domus_profile, accept_pauses)},
    {"refused by address", offsetof(domus_profile, refused_by_address)},
    {"refused as no proxy", offsetof(domus_profile, proxies_refused)},
    {"spells of that", offsetof(domus_profile, address_spells)},
    {"spells at most places", offsetof(domus_profile, full_spells)},
    {"spells no descriptor", offsetof(domus_profile, accept_spells)},
    {"spells no buffer", offsetof(domus_profile, buffer_spells)},
    {"connects", offsetof(domus_profile, connects)},
    {"connects failed", offsetof(domus_profile, connects_failed)},
    {"channels opened", offsetof(domus_profile, channels_opened)},
    {"channels closed", offsetof(domus_profile, channels_closed)},
    {"channels reset", offsetof(domus_profile, channels_reset)},
    {"channels silent", offsetof(domus_profile, channels_silent)},
    {"channels slow", offsetof(domus_profile, channels_slow)},
    {"channels aged", offsetof(domus_profile, channels_aged)},
    {"channels cut", offsetof(domus_profile, channels_cut)},
    {"cut bytes", offsetof(domus_profile, cut_bytes)},
    {"discarded bytes", offsetof(domus_profile, discarded_bytes)},
    {"channels refused", offsetof(domus_profile, channels_refused)},
    {"datagrams dropped", offsetof(domus_profile, datagrams_dropped)},
    {"datagrams lost", offsetof(domus_profile, datagrams_lost)},
    {"datagrams unsent", offsetof(domus_profile, datagrams_unsent)},
    {"answered in drain", offsetof(domus_profile, drained_answered)},
    {"idle in drain", offsetof(domus_profile, drained_idle)},
    {"cut in drain", offsetof(domus_profile, drained_cut)},
    {"channels busy", offsetof(domus_profile, channels_busy)},
    {"channels late", offsetof(domus_profile, channels_late)},
    {"files kept", offsetof(domus_profile, files_kept)},
    {"receivers starved", offsetof(domus_profile, receivers_starved)},
    {"timers fired", offsetof(domus_profile, timers_fired)},
    {"asks expired", offsetof(domus_profile, asks_expired)},
    {"late replies", offsetof(domus_profile, late_replies)},
    {"cancels", offsetof(domus_profile, cancels)},
    {"circles of asks", offsetof(domus_profile, circles)},
    {"restarts", offsetof(domus_profile, restarts)},
    {"escalations", offsetof(domus_profile, escalations)},
    {"passivations", offsetof(domus_profile, passivations)},
    {"conversations full", offsetof(domus_profile, conversations_full)},
    {"waits lost", offsetof(domus_profile, waits_lost)},
    {"results unknown", offsetof(domus_profile, results_unknown)},
    {"letters missed", offsetof(domus_profile, letters_missed)},
    {"log lines dropped", offsetof(domus_profile, log_lines_dropped)},
    {"stalls", offsetof(domus_profile, stalls)},
    {"stalled ns", offsetof(domus_profile, stalled_ns)},
};

static uint64_t field(const domus_system *system, uint32_t thread, size_t offset)
{
    domus_profile profile = {0};

    (void)domus_system_profile(system, thread, &profile);
    return *(const uint64_t *)(const void *)((const char *)&profile + offset);
}

/* Threads beyond this have no column; the last column is the sum of all threads. */
#define COLUMNS_MAX 16u

static void add_row(text *to, const domus_system *system, const char *name, size_t offset)
{
    uint64_t sum = 0;

    if (offset == offsetof(domus_profile, log_lines_dropped)) {
        domus_profile outside;
        (void)domus_outside_profile(system, &outside);
        /* the sum also counts the lines that belong to no thread */
        sum = outside.log_lines_dropped;
    }

    add_text(to, "%-22s", name);
    for (uint32_t i = 0; i < system->count; i++) {
        uint64_t value = field(system, i, offset);
        sum += value;
        if (i < COLUMNS_MAX)
            add_text(to, " %15llu", (unsigned long long)value);
    }
    add_text(to, " %15llu\n", (unsigned long long)sum);
}

static void add_phase_row(text *to, const domus_system *system, const char *name, size_t offset)
{
    double wall_ns = 0;
    double sum_ns = 0;

    add_text(to, "%-22s", name);
    for (uint32_t i = 0; i < system->count; i++) {
        double value = (double)field(system, i, offset);
        double wall = (double)field(system, i, offsetof(domus_profile, wall_ns));
        sum_ns += value;
        wall_ns += wall;
        if (i < COLUMNS_MAX)
            add_text(to, " %7.1f ms %4.1f%%", value / 1e6, wall > 0 ? value / wall * 100 : 0);
    }
    add_text(to, " %7.1f ms %4.1f%%\n", sum_ns / 1e6, wall_ns > 0 ? sum_ns / wall_ns * 100 : 0);
}

/* Add a row for each length of stalls that has occurred. */
static void add_stalls(text *to, const domus_system *system)
{
    char name[32];

    for (size_t i = 0; i < DOMUS_STALL_LENGTHS; i++) {
        size_t offset = offsetof(domus_profile, stall_lengths) + i * sizeof(uint64_t);
        uint64_t sum = 0;
        for (uint32_t thread = 0; thread < system->count; thread++)
            sum += field(system, thread, offset);
        snprintf(name, sizeof name, "stalls of %lu ms..", 1ul << i);
        if (sum != 0)
            add_row(to, system, name, offset);
    }
}

/* Memory belongs to the system and not to a thread, so only the last column has it. */
static void add_memory_row(text *to, const domus_system *system, const char *name, uint64_t value)
{
    uint32_t columns = system->count < COLUMNS_MAX ? system->count : COLUMNS_MAX;

    add_text(to, "%-22s%*s %15llu\n", name, (int)columns * 16, "", (unsigned long long)value);
}

/* Add the last measurement of memory; no rows if nothing is measured. */
static void add_memory(text *to, const domus_system *system)
{
    domus_memory memory;

    domus_system_memory(system, &memory);
    if (memory.limit_bytes == 0)
        return;
    add_memory_row(to, system, "memory limit", memory.limit_bytes);
    add_memory_row(to, system, "memory used", memory.used_bytes);
    add_memory_row(to, system, "memory foreign", memory.foreign_bytes);
    add_memory_row(to, system, "memory own", memory.own_bytes);
    add_memory_row(to, system, "memory budget", memory.budget_bytes);
    add_memory_row(to, system, "memory last budget", memory.last_budget_bytes);
}

size_t domus_system_profile_table(const domus_system *system, char *at, size_t size)
{
    text to = {.at = at, .size = size};

    char head[32] = "thread";

    if (system->count != 0 && system->threads[0].io.backend != NULL)
        snprintf(head, sizeof head, "thread (%s)", system->threads[0].io.backend->name);
    add_text(&to, "%-22s", head);
    for (uint32_t i = 0; i < system->count && i < COLUMNS_MAX; i++)
        add_text(&to, " %15u", i);
    add_text(&to, " %15s\n", "all");
    for (int i = 0; i < DOMUS_PHASES; i++)
        add_phase_row(&to, system, phase_names[i],
                      offsetof(domus_profile, phase_ns) + (size_t)i * sizeof(uint64_t));
    add_phase_row(&to, system, "wall", offsetof(domus_profile, wall_ns));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        add_row(&to, system, rows[i].name, rows[i].offset);
    add_stalls(&to, system);
    add_memory(&to, system);
    return to.length;
}
