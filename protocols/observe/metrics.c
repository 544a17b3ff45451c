/* /metrics of the observation port: the profiles of the observed system for Prometheus, as
 * OpenMetrics 1.0 or in the text format 0.0.4.
 *
 * Both formats differ in how families are written (families.h), and only the first ends with "#
 * EOF". The number of labels is bounded: threads, pools and their runners, phases. */
#include "protocols/observe/families.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/rows.h"
#include "protocols/observe/sets.h"
#include "protocols/observe/sources.h"
#include "protocols/observe/writers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- families --------------------------------------------------------------------------------- */

/* Returns whether a source (thread, runner or outside) counts the counter of a row. The kinds of
 * sources have the same numbers as the values of domi_counted_by. */
static bool does_source_have_counter_of_row(const domi_source *source, const domi_row *row)
{
    return (int)source->kind <= (int)row->counted_by;
}

static void write_family_of_counter(domi_metrics *to, const domi_row *row,
                                    const domi_sources *sources)
{
    char labels[DOMI_LABELS_SIZE];

    domi_begin_metric_family(to, row->name, row->is_gauge ? DOMI_GAUGE : DOMI_COUNTER, row->help);
    for (size_t i = 0; i < sources->count; i++) {
        const domi_source *source = &sources->each[i];
        if (!does_source_have_counter_of_row(source, row))
            continue;
        domi_format_metric_labels_of_source(source, labels);
        domi_write_metric_name_and_labels(to, row->name, row->is_gauge ? "" : "_total", labels);
        if (row->is_time)
            domi_write_metric_time_and_line_end(to,
                                                domi_row_read_its_counter(row, &source->counters));
        else
            domi_write_metric_count_and_line_end(to,
                                                 domi_row_read_its_counter(row, &source->counters));
    }
}

static void write_metric_family_of_phases(domi_metrics *to, const domi_sources *sources)
{
    static const char name[] = "domus_phase_seconds";
    char labels[DOMI_LABELS_SIZE];

    domi_begin_metric_family(to, name, DOMI_COUNTER,
                             "Time that a thread was in a phase of its loop.");
    for (size_t i = 0; i < sources->count; i++) {
        const domi_source *source = &sources->each[i];
        for (int phase = 0; source->kind == DOMI_SOURCE_THREAD && phase < DOMUS_PHASES; phase++) {
            snprintf(labels, sizeof labels, "thread=\"%" PRIu32 "\",phase=\"%s\"", source->number,
                     domus_phase_name((domus_phase)phase));
            domi_write_metric_name_and_labels(to, name, "_total", labels);
            domi_write_metric_time_and_line_end(to, source->counters.phase_ns[phase]);
        }
    }
}

/* Write the stalls of a source as a histogram by length, whose last bucket has no upper bound. */
static void write_stalls_of(domi_metrics *to, const char *name, const domi_source *source)
{
    const domus_profile *counters = &source->counters;
    char labels[DOMI_LABELS_SIZE], bucket[DOMI_LABELS_SIZE + 32];
    uint64_t sum = 0;

    domi_format_metric_labels_of_source(source, labels);
    for (int length = 0; length < DOMUS_STALL_LENGTHS; length++) {
        unsigned bound_ms = 2u << length;
        sum += counters->stall_lengths[length];
        if (length + 1 < DOMUS_STALL_LENGTHS)
            snprintf(bucket, sizeof bucket, "%s,le=\"%u.%03u\"", labels, bound_ms / 1000,
                     bound_ms % 1000);
        else
            snprintf(bucket, sizeof bucket, "%s,le=\"+Inf\"", labels);
        domi_write_metric_name_and_labels(to, name, "_bucket", bucket);
        domi_write_metric_count_and_line_end(to, sum);
    }
    domi_write_metric_name_and_labels(to, name, "_sum", labels);
    domi_write_metric_time_and_line_end(to, counters->stalled_ns);
    domi_write_metric_name_and_labels(to, name, "_count", labels);
    domi_write_metric_count_and_line_end(to, sum);
}

static void write_metric_family_of_stalls(domi_metrics *to, const domi_sources *sources)
{
    static const char name[] = "domus_stall_seconds";

    domi_begin_metric_family(to, name, DOMI_HISTOGRAM,
                             "Runs of actors that were longer than stall.threshold.");
    for (size_t i = 0; i < sources->count; i++)
        if (sources->each[i].kind != DOMI_SOURCE_OUTSIDE)
            write_stalls_of(to, name, &sources->each[i]);
}

/* --- runners of pools ------------------------------------------------------------------------- */

#define RUNNER(field, text)                                                                        \
    {                                                                                              \
        "domus_runner_" #field, text, offsetof(domus_runner_profile, field)                        \
    }

static const struct runner_row {
    const char *name, *help;
    size_t offset; /* offset of the count, a uint64_t, in domus_runner_profile */
} runner_counts[] = {
    RUNNER(turns, "Turns that a runner of a pool gave to actors."),
    RUNNER(messages, "Messages that were handled in these turns."),
    RUNNER(steals, "Jobs that a runner has taken from others."),
    RUNNER(stolen, "Jobs that others have taken from a runner."),
    RUNNER(global_takes, "Jobs that a runner has taken from a queue of the whole pool."),
    RUNNER(parks, "Sleeps of a runner."),
    RUNNER(begun, "Times that the thread of a runner has begun."),
};

static uint64_t value_of_runner_count(const domi_source *source, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)&source->runner + offset);
}

static void write_family_of_runner_count(domi_metrics *to, const struct runner_row *row,
                                         const domi_sources *sources)
{
    char labels[DOMI_LABELS_SIZE];

    domi_begin_metric_family(to, row->name, DOMI_COUNTER, row->help);
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->each[i].kind != DOMI_SOURCE_RUNNER)
            continue;
        domi_format_metric_labels_of_source(&sources->each[i], labels);
        domi_write_metric_name_and_labels(to, row->name, "_total", labels);
        domi_write_metric_count_and_line_end(to,
                                             value_of_runner_count(&sources->each[i], row->offset));
    }
}

static void write_family_of_runner_times(domi_metrics *to, const domi_sources *sources)
{
    static const struct {
        const char *what;
        size_t offset;
    } times[] = {{"run", offsetof(domus_runner_profile, run_ns)},
                 {"search", offsetof(domus_runner_profile, search_ns)},
                 {"park", offsetof(domus_runner_profile, park_ns)}};
    static const char name[] = "domus_runner_seconds";
    char labels[DOMI_LABELS_SIZE], all[DOMI_LABELS_SIZE + 32];

    domi_begin_metric_family(to, name, DOMI_COUNTER,
                             "Time that a runner of a pool ran, searched, or was parked.");
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->each[i].kind != DOMI_SOURCE_RUNNER)
            continue;
        domi_format_metric_labels_of_source(&sources->each[i], labels);
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
            snprintf(all, sizeof all, "%s,state=\"%s\"", labels, times[k].what);
            domi_write_metric_name_and_labels(to, name, "_total", all);
            domi_write_metric_time_and_line_end(
                to, value_of_runner_count(&sources->each[i], times[k].offset));
        }
    }
}

static void write_families_of_runners(domi_metrics *to, const domi_sources *sources)
{
    if (sources->each[sources->count - 1].kind != DOMI_SOURCE_RUNNER)
        /* without pools these families of metrics would have no samples, so they are left out */
        return;
    write_family_of_runner_times(to, sources);
    for (size_t i = 0; i < sizeof runner_counts / sizeof runner_counts[0]; i++)
        write_family_of_runner_count(to, &runner_counts[i], sources);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void write_family_of_gauge(domi_metrics *to, const char *name, uint64_t value,
                                  const char *help)
{
    domi_begin_metric_family(to, name, DOMI_GAUGE, help);
    domi_write_metric_name_and_labels(to, name, "", "");
    domi_write_metric_count_and_line_end(to, value);
}

static void write_families_of_memory(domi_metrics *to, domus_system *system)
{
    domus_memory memory;

    domus_system_memory(system, &memory);
    if (memory.limit_bytes == 0)
        return; /* no memory limit is set, so memory is not measured and not shown */
    write_family_of_gauge(to, "domus_memory_used_bytes", memory.used_bytes,
                          "Memory that is in use.");
    write_family_of_gauge(to, "domus_memory_limit_bytes", memory.limit_bytes,
                          "The limit of that memory.");
    write_family_of_gauge(to, "domus_memory_own_bytes", memory.own_bytes,
                          "The part of it that the library holds.");
    write_family_of_gauge(to, "domus_memory_foreign_bytes", memory.foreign_bytes,
                          "The part that it does not.");
    write_family_of_gauge(to, "domus_memory_budget_bytes", memory.budget_bytes,
                          "Own memory beyond which nothing is let in from outside.");
    write_family_of_gauge(to, "domus_memory_last_budget_bytes", memory.last_budget_bytes,
                          "Own memory beyond which asks and notices are refused.");
    write_family_of_gauge(to, "domus_memory_level", memory.level,
                          "0: normal; 1: high; 2: critical.");
    write_family_of_gauge(to, "domus_memory_own_level", memory.own_level,
                          "0: normal; 1: above the budget; 2: above the last one.");
}

static void write_families_of_usage(domi_metrics *to, domus_system *system)
{
    domus_usage usage;

    domus_system_usage(system, &usage);
    write_family_of_gauge(to, "domus_helpers", usage.helpers, "Helper threads for blocking work.");
    write_family_of_gauge(to, "domus_helpers_busy", usage.helpers_busy,
                          "Those that run a function.");
    write_family_of_gauge(to, "domus_helper_jobs_queued", usage.jobs_queued,
                          "Functions that wait for a helper.");
    write_family_of_gauge(to, "domus_detached_threads", usage.detached_threads,
                          "Threads of detached actors, and outsiders.");
    write_family_of_gauge(to, "domus_detached_busy", usage.detached_busy,
                          "Those that have an actor.");
}

int domi_observe_write_metrics(domus_system *system, bool is_open, domus_slice *ret_text)
{
    domi_metrics to = {.is_open = is_open};
    domi_sources sources;
    domi_places places;
    int error = domi_sources_read_profiles(system, &sources);

    if (error != 0)
        return error;
    error = domi_places_read_behaviours(system, &places);
    if (error != 0) {
        domi_sources_free_profiles(&sources);
        return error;
    }
    write_metric_family_of_phases(&to, &sources);
    write_metric_family_of_stalls(&to, &sources);
    domi_histograms_write_metrics(&to, system);
    domi_thread_pairs_write_metrics(&to, system);
    for (const domi_row *row = domi_rows; row->name != NULL; row++)
        write_family_of_counter(&to, row, &sources);
    write_families_of_runners(&to, &sources);
    domi_listeners_write_metrics(&to, system);
    write_families_of_memory(&to, system);
    domi_behaviours_write_metrics(&to, &places);
    write_families_of_usage(&to, system);
    domi_write_metrics_of_figure_sets(&to, system);
    if (is_open)
        (void)domus_append_text(&to.out, "# EOF\n");
    domi_places_free_behaviours(&places);
    domi_sources_free_profiles(&sources);
    return domus_append_end(&to.out, ret_text);
}
