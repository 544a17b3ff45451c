/* This file prints the profile as a table: the phases, and then the counters in groups, with a
 * column for each thread, one for the sum of all threads, and the sum's rate. Counters that are 0
 * have no row, unless profile.zeros asks for them: of 80 counters a service moves some twenty, and
 * a reader looks for these. Each counter is in one group. */
#include "house/dispatch/describe.h"
#include "runtime/control/figures.h"
#include "runtime/policies/pool.h"
#include "runtime/system/system.h"

#include <assert.h>
#include <stdio.h>

/* Most threads that have a column of their own; the column for all threads counts the others,
 * too. */
#define COLUMNS_MAX 16u

static_assert(sizeof(domus_profile) % sizeof(uint64_t) == 0, "it consists of numbers");

typedef enum row_group {
    SCHEDULING,
    MESSAGES,
    IO,
    CONNECTIONS,
    MEMORY,
    TROUBLE, /* group of the counters of troubles, which should be rare */
    GROUPS,
} row_group;

static const char *const group_names[GROUPS] = {
    [SCHEDULING] = "scheduling",   [MESSAGES] = "messages", [IO] = "io",
    [CONNECTIONS] = "connections", [MEMORY] = "memory",     [TROUBLE] = "trouble",
};

static const struct {
    row_group group;
    const char *name; /* text at the head of the counter's row */
    size_t offset;    /* offset of the row's counter in domus_profile */
} rows[] = {
    {SCHEDULING, "iterations", offsetof(domus_profile, iterations)},
    {SCHEDULING, "houses run", offsetof(domus_profile, runs)},
    {SCHEDULING, "deadline expiries", offsetof(domus_profile, deadline_expiries)},
    {SCHEDULING, "ready ns", offsetof(domus_profile, ready_ns)},
    {SCHEDULING, "deadline overrun ns", offsetof(domus_profile, deadline_overrun_ns)},
    {SCHEDULING, "io behind ns", offsetof(domus_profile, io_behind_ns)},
    {SCHEDULING, "parks", offsetof(domus_profile, parks)},
    {SCHEDULING, "wake-ups sent", offsetof(domus_profile, wakeups_sent)},
    {SCHEDULING, "wake-ups received", offsetof(domus_profile, wakeups_received)},
    {SCHEDULING, "wake-ups empty", offsetof(domus_profile, wakeups_empty)},
    {SCHEDULING, "wake poll re-armed", offsetof(domus_profile, wake_rearms)},
    {SCHEDULING, "woke by cap with work", offsetof(domus_profile, cap_wakeups_with_work)},
    {SCHEDULING, "steals wanted", offsetof(domus_profile, steals_wanted)},
    {SCHEDULING, "steals", offsetof(domus_profile, steals)},
    {SCHEDULING, "timers fired", offsetof(domus_profile, timers_fired)},
    {SCHEDULING, "spawns", offsetof(domus_profile, spawns)},
    {SCHEDULING, "stops", offsetof(domus_profile, stops)},
    {SCHEDULING, "exposed", offsetof(domus_profile, exposed)},
    {SCHEDULING, "passivations", offsetof(domus_profile, passivations)},
    {MESSAGES, "replies", offsetof(domus_profile, replies)},
    {MESSAGES, "exceptions", offsetof(domus_profile, exceptions)},
    {MESSAGES, "asks", offsetof(domus_profile, asks)},
    {MESSAGES, "notices", offsetof(domus_profile, notices)},
    {MESSAGES, "events", offsetof(domus_profile, events)},
    {MESSAGES, "notices by belts", offsetof(domus_profile, belted)},
    {MESSAGES, "cancels", offsetof(domus_profile, cancels)},
    {IO, "enters", offsetof(domus_profile, enters)},
    {IO, "completions", offsetof(domus_profile, completions)},
    {IO, "reads", offsetof(domus_profile, reads)},
    {IO, "received bytes", offsetof(domus_profile, received_bytes)},
    {IO, "sent bytes", offsetof(domus_profile, sent_bytes)},
    {IO, "sends", offsetof(domus_profile, sends)},
    {IO, "files kept", offsetof(domus_profile, files_kept)},
    {CONNECTIONS, "accepted", offsetof(domus_profile, accepted)},
    {CONNECTIONS, "connects", offsetof(domus_profile, connects)},
    {CONNECTIONS, "channels opened", offsetof(domus_profile, channels_opened)},
    {CONNECTIONS, "channels closed", offsetof(domus_profile, channels_closed)},
    {CONNECTIONS, "channels silent", offsetof(domus_profile, channels_silent)},
    {CONNECTIONS, "channels aged", offsetof(domus_profile, channels_aged)},
    {CONNECTIONS, "answered in drain", offsetof(domus_profile, drained_answered)},
    {CONNECTIONS, "idle in drain", offsetof(domus_profile, drained_idle)},
    {MEMORY, "buffers used", offsetof(domus_profile, buffers_used)},
    {MEMORY, "houses used", offsetof(domus_profile, houses_used)},
    {MEMORY, "queued bytes", offsetof(domus_profile, queued_bytes)},
    {MEMORY, "trimmed bytes", offsetof(domus_profile, trimmed_bytes)},
    {MEMORY, "refused for memory", offsetof(domus_profile, busy)},
    {MEMORY, "paused for memory", offsetof(domus_profile, pressed)},
    {MEMORY, "reset for memory", offsetof(domus_profile, channels_shed)},
    {TROUBLE, "failures", offsetof(domus_profile, failures)},
    {TROUBLE, "restarts", offsetof(domus_profile, restarts)},
    {TROUBLE, "escalations", offsetof(domus_profile, escalations)},
    {TROUBLE, "refusals", offsetof(domus_profile, refusals)},
    {TROUBLE, "refusals at threadMax", offsetof(domus_profile, thread_max_refusals)},
    {TROUBLE, "dead letters", offsetof(domus_profile, dead_letters)},
    {TROUBLE, "letters missed", offsetof(domus_profile, letters_missed)},
    {TROUBLE, "asks expired", offsetof(domus_profile, asks_expired)},
    {TROUBLE, "late replies", offsetof(domus_profile, late_replies)},
    {TROUBLE, "circles of asks", offsetof(domus_profile, circles)},
    {TROUBLE, "conversations full", offsetof(domus_profile, conversations_full)},
    {TROUBLE, "timers refused", offsetof(domus_profile, timers_refused)},
    {TROUBLE, "waits lost", offsetof(domus_profile, waits_lost)},
    {TROUBLE, "results unknown", offsetof(domus_profile, results_unknown)},
    {TROUBLE, "enters refused", offsetof(domus_profile, enters_refused)},
    {TROUBLE, "receivers starved", offsetof(domus_profile, receivers_starved)},
    {TROUBLE, "spells no buffer", offsetof(domus_profile, buffer_spells)},
    {TROUBLE, "accept pauses", offsetof(domus_profile, accept_pauses)},
    {TROUBLE, "spells no descriptor", offsetof(domus_profile, accept_spells)},
    {TROUBLE, "spells at most places", offsetof(domus_profile, full_spells)},
    {TROUBLE, "refused by address", offsetof(domus_profile, refused_by_address)},
    {TROUBLE, "spells by address", offsetof(domus_profile, address_spells)},
    {TROUBLE, "refused as no proxy", offsetof(domus_profile, proxies_refused)},
    {TROUBLE, "connects failed", offsetof(domus_profile, connects_failed)},
    {TROUBLE, "requests failed", offsetof(domus_profile, requests_failed)},
    {TROUBLE, "channels refused", offsetof(domus_profile, channels_refused)},
    {TROUBLE, "channels busy", offsetof(domus_profile, channels_busy)},
    {TROUBLE, "channels late", offsetof(domus_profile, channels_late)},
    {TROUBLE, "channels slow", offsetof(domus_profile, channels_slow)},
    {TROUBLE, "channels reset", offsetof(domus_profile, channels_reset)},
    {TROUBLE, "channels cut", offsetof(domus_profile, channels_cut)},
    {TROUBLE, "cut bytes", offsetof(domus_profile, cut_bytes)},
    {TROUBLE, "discarded bytes", offsetof(domus_profile, discarded_bytes)},
    {TROUBLE, "cut in drain", offsetof(domus_profile, drained_cut)},
    {TROUBLE, "datagrams dropped", offsetof(domus_profile, datagrams_dropped)},
    {TROUBLE, "datagrams lost", offsetof(domus_profile, datagrams_lost)},
    {TROUBLE, "datagrams unsent", offsetof(domus_profile, datagrams_unsent)},
    {TROUBLE, "log lines dropped", offsetof(domus_profile, log_lines_dropped)},
    {TROUBLE, "stalls", offsetof(domus_profile, stalls)},
    {TROUBLE, "stalled ns", offsetof(domus_profile, stalled_ns)},
};

static const struct {
    const char *name;
    size_t offset; /* offset of the row's counter in domus_runner_profile */
} runner_rows[] = {
    {"turns", offsetof(domus_runner_profile, turns)},
    {"messages", offsetof(domus_runner_profile, messages)},
    {"steals", offsetof(domus_runner_profile, steals)},
    {"stolen", offsetof(domus_runner_profile, stolen)},
    {"global takes", offsetof(domus_runner_profile, global_takes)},
    {"parks", offsetof(domus_runner_profile, parks)},
    {"begun", offsetof(domus_runner_profile, begun)},
};

/* --- what is printed ----------------------------------------------------------------------------
 */

typedef struct snapshot {
    domus_profile columns[COLUMNS_MAX];
    uint32_t count; /* number of threads or runners that have a column */
    domus_profile all;
    /* profiles of the pool's runners, in the snapshot of a pool; else unused */
    domus_runner_profile runners[COLUMNS_MAX];
    domus_runner_profile all_runners;
    double seconds; /* seconds since the first thread has begun; 0: times are not measured */
    bool has_zeros;
} snapshot;

static uint64_t *get_number_of_profile_at_offset(domus_profile *profile, size_t offset)
{
    return (uint64_t *)(void *)((char *)profile + offset);
}

/* Add to each number of a profile in `sum` the same number of `profile`; both have `size` bytes. */
static void add_numbers_of_profile_to_sum(void *sum, const void *profile, size_t size)
{
    for (size_t k = 0; k < size; k += sizeof(uint64_t))
        *(uint64_t *)(void *)((char *)sum + k) +=
            *(const uint64_t *)(const void *)((const char *)profile + k);
}

static void read_snapshot_of_threads(const domus_system *system, snapshot *shot)
{
    domus_profile outside, one;

    *shot = (snapshot){.has_zeros = DOMI_LIVE(system, profile.zeros)};
    for (uint32_t i = 0; i < system->count; i++) {
        (void)domus_system_profile(system, i, &one);
        add_numbers_of_profile_to_sum(&shot->all, &one, sizeof one);
        if ((double)one.wall_ns / 1e9 > shot->seconds)
            shot->seconds = (double)one.wall_ns / 1e9;
        if (i < COLUMNS_MAX)
            shot->columns[shot->count++] = one;
    }
    /* the sum also counts the dropped log lines that belong to no thread */
    (void)domus_outside_profile(system, &outside);
    shot->all.log_lines_dropped += outside.log_lines_dropped;
}

static void read_snapshot_of_pool(const domus_pool *pool, snapshot *shot)
{
    domus_runner_profile one;
    domus_profile counters;

    *shot = (snapshot){.has_zeros = DOMI_LIVE(pool->system, profile.zeros)};
    for (uint32_t i = 0; domus_pool_profile(pool, i, &one, &counters) == 0; i++) {
        add_numbers_of_profile_to_sum(&shot->all_runners, &one, sizeof one);
        add_numbers_of_profile_to_sum(&shot->all, &counters, sizeof counters);
        if ((double)one.wall_ns / 1e9 > shot->seconds)
            shot->seconds = (double)one.wall_ns / 1e9;
        if (i >= COLUMNS_MAX || one.begun == 0)
            continue; /* a spare that has never begun has no column */
        shot->runners[shot->count] = one;
        shot->columns[shot->count++] = counters;
    }
}

/* --- rows ---------------------------------------------------------------------------------------
 */

/* Add the line above the columns, which names each of them. */
static void add_line_above_columns(domi_text *to, const char *head, uint32_t count)
{
    domi_text_append_formatted(to, "%-22.64s", head);
    for (uint32_t i = 0; i < count; i++)
        domi_text_append_formatted(to, " %15u", i);
    domi_text_append_formatted(to, " %15s %14s\n", "all", "all a second");
}

static void add_line_above_threads(domi_text *to, const domus_system *system, const snapshot *shot)
{
    char head[32] = "thread";

    if (system->count != 0 && system->threads[0].io.backend != NULL)
        snprintf(head, sizeof head, "thread (%s)", system->threads[0].io.backend->name);
    add_line_above_columns(to, head, shot->count);
}

static void add_time_with_share(domi_text *to, uint64_t ns, uint64_t wall_ns)
{
    double wall = (double)wall_ns;

    domi_text_append_formatted(to, " %7.1f ms %4.1f%%", (double)ns / 1e6,
                               wall > 0 ? (double)ns / wall * 100 : 0);
}

static void add_row_of_phase(domi_text *to, snapshot *shot, const char *name, size_t offset)
{
    domi_text_append_formatted(to, "%-22s", name);
    for (uint32_t i = 0; i <= shot->count; i++) {
        domus_profile *column = i < shot->count ? &shot->columns[i] : &shot->all;
        add_time_with_share(to, *get_number_of_profile_at_offset(column, offset), column->wall_ns);
    }
    domi_text_append_formatted(to, "\n");
}

static void add_rows_of_phases(domi_text *to, snapshot *shot)
{
    for (int i = 0; i < DOMUS_PHASES; i++)
        add_row_of_phase(to, shot, domus_phase_name((domus_phase)i),
                         offsetof(domus_profile, phase_ns) + (size_t)i * sizeof(uint64_t));
    add_row_of_phase(to, shot, "wall", offsetof(domus_profile, wall_ns));
}

/* Add the row of a counter, with its rate since the start. The queued bytes go up and down, and
 * have no rate. */
static void add_row_of_counter(domi_text *to, snapshot *shot, const char *name, size_t offset)
{
    uint64_t sum = *get_number_of_profile_at_offset(&shot->all, offset);

    domi_text_append_formatted(to, "%-22s", name);
    for (uint32_t i = 0; i < shot->count; i++)
        domi_text_append_formatted(
            to, " %15llu",
            (unsigned long long)*get_number_of_profile_at_offset(&shot->columns[i], offset));
    domi_text_append_formatted(to, " %15llu", (unsigned long long)sum);
    if (shot->seconds > 0 && offset != offsetof(domus_profile, queued_bytes))
        domi_text_append_formatted(to, " %12.1f/s", (double)sum / shot->seconds);
    domi_text_append_formatted(to, "\n");
}

/* Add a row for each range of lengths in which a stall has occurred. */
static void add_rows_of_stalls(domi_text *to, snapshot *shot)
{
    char name[32];

    for (size_t i = 0; i < DOMUS_STALL_LENGTHS; i++) {
        snprintf(name, sizeof name, "stalls of %lu ms..", 1ul << i);
        if (shot->all.stall_lengths[i] != 0)
            add_row_of_counter(to, shot, name,
                               offsetof(domus_profile, stall_lengths) + i * sizeof(uint64_t));
    }
}

/* Add a row for a figure of memory. Memory belongs to the system and not to a thread, so only the
 * column for all threads has the value. */
static void add_row_of_memory(domi_text *to, const snapshot *shot, const char *name, uint64_t value)
{
    domi_text_append_formatted(to, "%-22s%*s %15llu\n", name, (int)shot->count * 16, "",
                               (unsigned long long)value);
}

/* Add the rows of the last measurement of memory; none if memory is not measured. */
static void add_rows_of_memory(domi_text *to, const domus_system *system, const snapshot *shot)
{
    domus_memory memory;

    domus_system_memory(system, &memory);
    if (memory.limit_bytes == 0)
        return;
    add_row_of_memory(to, shot, "memory limit", memory.limit_bytes);
    add_row_of_memory(to, shot, "memory used", memory.used_bytes);
    add_row_of_memory(to, shot, "memory foreign", memory.foreign_bytes);
    add_row_of_memory(to, shot, "memory own", memory.own_bytes);
    add_row_of_memory(to, shot, "memory budget", memory.budget_bytes);
    add_row_of_memory(to, shot, "memory last budget", memory.last_budget_bytes);
}

static void add_rows_of_group(domi_text *to, snapshot *shot, row_group group)
{
    bool is_first = true;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].group != group ||
            (!shot->has_zeros && *get_number_of_profile_at_offset(&shot->all, rows[i].offset) == 0))
            continue;
        if (is_first)
            domi_text_append_formatted(to, "-- %s\n", group_names[group]);
        is_first = false;
        add_row_of_counter(to, shot, rows[i].name, rows[i].offset);
    }
}

/* --- pools ------------------------------------------------------------------------------------ */

static uint64_t get_number_of_runner(const snapshot *shot, uint32_t column, size_t offset)
{
    const domus_runner_profile *runner =
        column < shot->count ? &shot->runners[column] : &shot->all_runners;

    return *(const uint64_t *)(const void *)((const char *)runner + offset);
}

static void add_row_of_runner_times(domi_text *to, const snapshot *shot, const char *name,
                                    size_t offset)
{
    domi_text_append_formatted(to, "%-22s", name);
    for (uint32_t i = 0; i <= shot->count; i++)
        add_time_with_share(to, get_number_of_runner(shot, i, offset),
                            get_number_of_runner(shot, i, offsetof(domus_runner_profile, wall_ns)));
    domi_text_append_formatted(to, "\n");
}

static void add_row_of_runner_counter(domi_text *to, const snapshot *shot, const char *name,
                                      size_t offset)
{
    uint64_t sum = get_number_of_runner(shot, shot->count, offset);

    if (!shot->has_zeros && sum == 0)
        return;
    domi_text_append_formatted(to, "%-22s", name);
    for (uint32_t i = 0; i <= shot->count; i++)
        domi_text_append_formatted(to, " %15llu",
                                   (unsigned long long)get_number_of_runner(shot, i, offset));
    if (shot->seconds > 0)
        domi_text_append_formatted(to, " %12.1f/s", (double)sum / shot->seconds);
    domi_text_append_formatted(to, "\n");
}

static void add_table_of_pool(domi_text *to, const domus_pool *pool)
{
    char head[96];
    snapshot shot;

    read_snapshot_of_pool(pool, &shot);
    snprintf(head, sizeof head, "pool %.63s (%.20s)", pool->settings->name, pool->policy->name);
    add_line_above_columns(to, head, shot.count);
    add_row_of_runner_times(to, &shot, "run", offsetof(domus_runner_profile, run_ns));
    add_row_of_runner_times(to, &shot, "search", offsetof(domus_runner_profile, search_ns));
    add_row_of_runner_times(to, &shot, "park", offsetof(domus_runner_profile, park_ns));
    add_row_of_runner_times(to, &shot, "lived", offsetof(domus_runner_profile, wall_ns));
    for (size_t i = 0; i < sizeof runner_rows / sizeof runner_rows[0]; i++)
        add_row_of_runner_counter(to, &shot, runner_rows[i].name, runner_rows[i].offset);
    /* counters that are 0 are left out, because runners never move most counters of threads */
    shot.has_zeros = false;
    for (int group = 0; group < GROUPS; group++)
        add_rows_of_group(to, &shot, (row_group)group);
    add_rows_of_stalls(to, &shot);
}

/* --- tables of others --------------------------------------------------------------------------
 */

static void add_tables_of_figures(domi_text *to, const domus_system *system)
{
    bool room = to->length < to->size;

    to->length += domi_figures_print_all_tables((domus_system *)(uintptr_t)system,
                                                room ? to->at + to->length : NULL,
                                                room ? to->size - to->length : 0);
}

size_t domus_system_profile_table(const domus_system *system, char *at, size_t size)
{
    domi_text to = {.at = at, .size = size};
    snapshot shot;

    read_snapshot_of_threads(system, &shot);
    add_line_above_threads(&to, system, &shot);
    add_rows_of_phases(&to, &shot);
    for (int group = 0; group < GROUPS; group++) {
        add_rows_of_group(&to, &shot, (row_group)group);
        if (group == MEMORY)
            add_rows_of_memory(&to, system, &shot);
    }
    add_rows_of_stalls(&to, &shot);
    for (uint32_t i = 0; i < system->pool_count; i++)
        add_table_of_pool(&to, system->pools[i]);
    add_tables_of_figures(&to, system);
    return to.length;
}
