/* /metrics: the profiles for Prometheus, as OpenMetrics 1.0 or in the text format 0.0.4.
 *
 * The two differ in three points. A family of counters has the name without "_total" in
 * OpenMetrics, and with it in the older format. Units have a line of their own only in OpenMetrics.
 * And only there does the text end with "# EOF". Labels are bounded: threads, pools and their
 * runners, phases. */
#include "protocols/observe/observe.h"
#include "protocols/observe/rows.h"
#include "protocols/observe/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS   UINT64_C(1000000000)
#define LABELS_SIZE 128 /* bytes of the labels of a source; a name has up to 63 */

typedef struct text {
    domus_appender out;
    bool is_open; /* it is OpenMetrics */
} text;

typedef enum sort { COUNTER, GAUGE, HISTOGRAM } sort;

/* --- lines ------------------------------------------------------------------------------------ */

static void write_unit(text *to, const char *name, const char *unit)
{
    size_t length = strlen(name), end = strlen(unit);

    if (to->is_open && length > end && name[length - end - 1] == '_' &&
        strcmp(name + length - end, unit) == 0)
        (void)domus_append_text(&to->out, "# UNIT %s %s\n", name, unit);
}

/* Begin a family, whose name is without "_total". */
static void begin_family(text *to, const char *name, sort kind, const char *help)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const char *end = kind == COUNTER && !to->is_open ? "_total" : "";

    (void)domus_append_text(&to->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name,
                            end, kinds[kind]);
    write_unit(to, name, "seconds");
    write_unit(to, name, "bytes");
}

/* Write the name of a sample and its labels, up to the value. */
static void begin_sample(text *to, const char *name, const char *end, const char *labels)
{
    (void)domus_append_text(&to->out, labels[0] != '\0' ? "%s%s{%s} " : "%s%s%s ", name, end,
                            labels);
}

static void write_count(text *to, uint64_t count)
{
    (void)domus_append_text(&to->out, "%" PRIu64 "\n", count);
}

static void write_seconds(text *to, uint64_t time_ns)
{
    (void)domus_append_text(&to->out, "%" PRIu64 ".%09" PRIu64 "\n", time_ns / SECOND_NS,
                            time_ns % SECOND_NS);
}

static void write_labels(const domi_source *source, char labels[LABELS_SIZE])
{
    if (source->kind == DOMI_SOURCE_THREAD)
        snprintf(labels, LABELS_SIZE, "thread=\"%" PRIu32 "\"", source->number);
    else if (source->kind == DOMI_SOURCE_OUTSIDE)
        snprintf(labels, LABELS_SIZE, "thread=\"outside\"");
    else
        snprintf(labels, LABELS_SIZE, "pool=\"%s\",runner=\"%" PRIu32 "\"", source->pool,
                 source->number);
}

/* --- families --------------------------------------------------------------------------------- */

/* Returns whether a source counts a row. The kinds of sources are in the order of the words. */
static bool counts(const domi_source *source, const domi_row *row)
{
    return (int)source->kind <= (int)row->counted_by;
}

static void write_row(text *to, const domi_row *row, const domi_sources *sources)
{
    char labels[LABELS_SIZE];

    begin_family(to, row->name, row->is_gauge ? GAUGE : COUNTER, row->help);
    for (size_t i = 0; i < sources->count; i++) {
        const domi_source *source = &sources->each[i];
        if (!counts(source, row))
            continue;
        write_labels(source, labels);
        begin_sample(to, row->name, row->is_gauge ? "" : "_total", labels);
        if (row->is_time)
            write_seconds(to, domi_row_value(row, &source->counters));
        else
            write_count(to, domi_row_value(row, &source->counters));
    }
}

static void write_phases(text *to, const domi_sources *sources)
{
    static const char name[] = "domus_phase_seconds";
    char labels[LABELS_SIZE];

    begin_family(to, name, COUNTER, "Time that a thread was in a phase of its loop.");
    for (size_t i = 0; i < sources->count; i++) {
        const domi_source *source = &sources->each[i];
        for (int phase = 0; source->kind == DOMI_SOURCE_THREAD && phase < DOMUS_PHASES; phase++) {
            snprintf(labels, sizeof labels, "thread=\"%" PRIu32 "\",phase=\"%s\"", source->number,
                     domus_phase_name((domus_phase)phase));
            begin_sample(to, name, "_total", labels);
            write_seconds(to, source->counters.phase_ns[phase]);
        }
    }
}

/* Write the stalls of a source as a histogram. Its last length has no upper bound. */
static void write_stalls_of(text *to, const char *name, const domi_source *source)
{
    const domus_profile *counters = &source->counters;
    char labels[LABELS_SIZE], bucket[LABELS_SIZE + 32];
    uint64_t sum = 0;

    write_labels(source, labels);
    for (int length = 0; length < DOMUS_STALL_LENGTHS; length++) {
        unsigned bound_ms = 2u << length;
        sum += counters->stall_lengths[length];
        if (length + 1 < DOMUS_STALL_LENGTHS)
            snprintf(bucket, sizeof bucket, "%s,le=\"%u.%03u\"", labels, bound_ms / 1000,
                     bound_ms % 1000);
        else
            snprintf(bucket, sizeof bucket, "%s,le=\"+Inf\"", labels);
        begin_sample(to, name, "_bucket", bucket);
        write_count(to, sum);
    }
    begin_sample(to, name, "_sum", labels);
    write_seconds(to, counters->stalled_ns);
    begin_sample(to, name, "_count", labels);
    write_count(to, sum);
}

static void write_stalls(text *to, const domi_sources *sources)
{
    static const char name[] = "domus_stall_seconds";

    begin_family(to, name, HISTOGRAM, "Runs of actors that were longer than stall.threshold.");
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
    size_t offset; /* in domus_runner_profile, of a uint64_t */
} runner_counts[] = {
    RUNNER(turns, "Turns that a runner of a pool gave to actors."),
    RUNNER(messages, "Messages that were handled in these turns."),
    RUNNER(steals, "Jobs that a runner has taken from others."),
    RUNNER(stolen, "Jobs that others have taken from a runner."),
    RUNNER(global_takes, "Jobs that a runner has taken from a queue of the whole pool."),
    RUNNER(parks, "Sleeps of a runner."),
    RUNNER(begun, "Times that the thread of a runner has begun."),
};

static uint64_t runner_value(const domi_source *source, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)&source->runner + offset);
}

static void write_runner_row(text *to, const struct runner_row *row, const domi_sources *sources)
{
    char labels[LABELS_SIZE];

    begin_family(to, row->name, COUNTER, row->help);
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->each[i].kind != DOMI_SOURCE_RUNNER)
            continue;
        write_labels(&sources->each[i], labels);
        begin_sample(to, row->name, "_total", labels);
        write_count(to, runner_value(&sources->each[i], row->offset));
    }
}

static void write_runner_times(text *to, const domi_sources *sources)
{
    static const struct {
        const char *what;
        size_t offset;
    } times[] = {{"run", offsetof(domus_runner_profile, run_ns)},
                 {"search", offsetof(domus_runner_profile, search_ns)},
                 {"park", offsetof(domus_runner_profile, park_ns)}};
    static const char name[] = "domus_runner_seconds";
    char labels[LABELS_SIZE], all[LABELS_SIZE + 32];

    begin_family(to, name, COUNTER, "Time that a runner of a pool ran, searched, or was parked.");
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->each[i].kind != DOMI_SOURCE_RUNNER)
            continue;
        write_labels(&sources->each[i], labels);
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
            snprintf(all, sizeof all, "%s,state=\"%s\"", labels, times[k].what);
            begin_sample(to, name, "_total", all);
            write_seconds(to, runner_value(&sources->each[i], times[k].offset));
        }
    }
}

static void write_runners(text *to, const domi_sources *sources)
{
    if (sources->each[sources->count - 1].kind != DOMI_SOURCE_RUNNER)
        return; /* there are no pools, and a family without samples says nothing */
    write_runner_times(to, sources);
    for (size_t i = 0; i < sizeof runner_counts / sizeof runner_counts[0]; i++)
        write_runner_row(to, &runner_counts[i], sources);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void write_gauge(text *to, const char *name, uint64_t value, const char *help)
{
    begin_family(to, name, GAUGE, help);
    begin_sample(to, name, "", "");
    write_count(to, value);
}

static void write_memory(text *to, domus_system *system)
{
    domus_memory memory;

    domus_system_memory(system, &memory);
    if (memory.limit_bytes == 0)
        return; /* nothing is measured */
    write_gauge(to, "domus_memory_used_bytes", memory.used_bytes, "Memory that is in use.");
    write_gauge(to, "domus_memory_limit_bytes", memory.limit_bytes, "The limit of that memory.");
    write_gauge(to, "domus_memory_own_bytes", memory.own_bytes,
                "The part of it that the library holds.");
    write_gauge(to, "domus_memory_foreign_bytes", memory.foreign_bytes,
                "The part that it does not.");
    write_gauge(to, "domus_memory_budget_bytes", memory.budget_bytes,
                "Own memory beyond which nothing is let in from outside.");
    write_gauge(to, "domus_memory_last_budget_bytes", memory.last_budget_bytes,
                "Own memory beyond which asks and notices are refused.");
    write_gauge(to, "domus_memory_level", memory.level, "0: normal; 1: high; 2: critical.");
    write_gauge(to, "domus_memory_own_level", memory.own_level,
                "0: normal; 1: above the budget; 2: above the last one.");
}

int domi_observe_metrics(domus_system *system, bool is_open, domus_slice *ret_text)
{
    text to = {.is_open = is_open};
    domi_sources sources;
    int error = domi_sources_init(system, &sources);

    if (error != 0)
        return error;
    write_phases(&to, &sources);
    write_stalls(&to, &sources);
    for (const domi_row *row = domi_rows; row->name != NULL; row++)
        write_row(&to, row, &sources);
    write_runners(&to, &sources);
    write_memory(&to, system);
    if (is_open)
        (void)domus_append_text(&to.out, "# EOF\n");
    domi_sources_fini(&sources);
    return domus_append_end(&to.out, ret_text);
}
