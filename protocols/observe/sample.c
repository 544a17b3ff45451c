/* Reads samples of all counters, and writes the events of /live (sample.h). */
#include "protocols/observe/sample.h"

#include "protocols/observe/observe.h"
#include "protocols/observe/rows.h"
#include "protocols/observe/texts.h"

#include <domus/http_event.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define DIGITS_MAX 20

/* Rows for the counters of stalls, which are not in domi_rows. */
static const domi_row stall_rows[] = {
    {.field = "stalls", .offset = offsetof(domus_profile, stalls)},
    {.field = "stalled_ns", .offset = offsetof(domus_profile, stalled_ns)},
    {0}};

static const struct {
    const char *name;
    size_t offset;
} times[] = {{"wall_ns", offsetof(domus_runner_profile, wall_ns)},
             {"run_ns", offsetof(domus_runner_profile, run_ns)},
             {"search_ns", offsetof(domus_runner_profile, search_ns)},
             {"park_ns", offsetof(domus_runner_profile, park_ns)},
             {"turns", offsetof(domus_runner_profile, turns)},
             {"messages", offsetof(domus_runner_profile, messages)},
             {"steals", offsetof(domus_runner_profile, steals)},
             {"stolen", offsetof(domus_runner_profile, stolen)},
             {"parks", offsetof(domus_runner_profile, parks)}};

#define TIMES (sizeof times / sizeof times[0])

/* --- reading ---------------------------------------------------------------------------------- */

static bool does_level_include_histograms(domus_profile_level level)
{
    return level == DOMUS_PROFILE_HISTOGRAMS || level == DOMUS_PROFILE_SPANS;
}

static void read_histogram_of_iterations(domus_system *system, domi_sample *sample)
{
    domus_histogram histogram;

    memset(sample->iterations, 0, sizeof sample->iterations);
    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        if (domus_system_histogram(system, i, DOMUS_HISTOGRAM_ITERATION, &histogram) != 0)
            continue;
        for (uint32_t place = 0; place < DOMUS_HISTOGRAM_PLACES; place++)
            sample->iterations[place / DOMI_SAMPLE_FOLD] += histogram.places[place];
    }
}

int domi_sample_read_counters(domus_system *system, uint64_t now_ns, domi_sample *sample)
{
    domi_sources sources;
    domi_sums behaviours;
    int error = domi_sources_read_profiles(system, &sources);

    if (error == 0 && (error = domi_sums_read_behaviours(system, &behaviours)) != 0)
        domi_sources_free_profiles(&sources);
    if (error != 0)
        return error;
    domi_sample_free_counters(sample);
    sample->sources = sources;
    sample->behaviours = behaviours;
    sample->serial++;
    sample->now_ns = now_ns;
    sample->level = domus_system_profile_level(system);
    sample->has_histograms = does_level_include_histograms(sample->level);
    if (sample->has_histograms)
        read_histogram_of_iterations(system, sample);
    domus_system_memory(system, &sample->memory);
    return 0;
}

void domi_sample_free_counters(domi_sample *sample)
{
    domi_sources_free_profiles(&sample->sources);
    domi_sums_free_behaviours(&sample->behaviours);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void append_text(domus_appender *json, const char *text)
{
    (void)domus_append(json, text, strlen(text));
}

/* Write the character `before` and a number behind it. This is faster than printf(), which matters
 * because the text for 64 threads has thousands of numbers. */
static void write_character_and_number(domus_appender *json, char before, uint64_t number)
{
    char text[DIGITS_MAX + 1];
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    text[--at] = before;
    (void)domus_append(json, text + at, sizeof text - at);
}

static void write_names_of_counters(domus_appender *json, const domi_row *rows, const char *before)
{
    for (; rows->field != NULL; rows++, before = ",")
        (void)domus_append_text(json, "%s\"%s\"", before, rows->field);
}

static void write_names_of_runners(domus_appender *json, domus_system *system)
{
    const domus_config *config = domus_system_config(system);
    const char *before = "";

    for (size_t i = 0; i < config->pool_count; i++) {
        const char *name = config->pools[i].name;
        uint32_t count = domus_pool_runners(domus_outside_pool_find(system, name));
        for (uint32_t runner = 0; runner < count; runner++, before = ",")
            (void)domus_append_text(json, "%s[\"%s\",%" PRIu32 "]", before, name, runner);
    }
}

/* End the JSON text of an event with a zero byte, and make the event of it. */
static int close_json_and_make_sse_event(domus_appender *json, const char *name,
                                         domus_slice *ret_event)
{
    domus_appender event = {0};
    domus_slice text;

    (void)domus_append(json, "}", sizeof "}");
    int error = domus_append_end(json, &text);
    if (error != 0)
        return error;
    (void)domus_http_add_event(&event,
                               &(domus_http_event){.name = name, .data = domus_slice_data(text)});
    domus_slice_free(text);
    return domus_append_end(&event, ret_event);
}

int domi_sample_make_event_with_all_names(domus_system *system, domus_slice *ret_event)
{
    domus_appender json = {0};

    append_text(&json, "{\"program\":");
    domi_json_append_string(&json, program_invocation_short_name);
    (void)domus_append_text(&json, ",\"pid\":%ld,\"opened_ns\":%" PRIu64, (long)getpid(),
                            domi_observed.opened_ns);
    (void)domus_append_text(&json, ",\"interval_ms\":%" PRIu64, DOMI_LIVE_TICK_NS / 1000000);
    append_text(&json, ",\"levels\":[\"off\",\"counters\",\"histograms\",\"spans\"],\"phases\":");
    for (int i = 0; i < DOMUS_PHASES; i++)
        (void)domus_append_text(&json, "%s\"%s\"", i == 0 ? "[" : ",",
                                domus_phase_name((domus_phase)i));
    append_text(&json, "],\"counters\":[");
    write_names_of_counters(&json, domi_rows, "");
    write_names_of_counters(&json, stall_rows, ",");
    (void)domus_append_text(&json,
                            "],\"threads\":%" PRIu32 ",\"times\":", domus_system_threads(system));
    for (size_t i = 0; i < TIMES; i++)
        (void)domus_append_text(&json, "%s\"%s\"", i == 0 ? "[" : ",", times[i].name);
    append_text(&json, "],\"runners\":[");
    write_names_of_runners(&json, system);
    append_text(&json, "],\"bounds\":");
    for (uint32_t i = 0; i < DOMI_SAMPLE_PLACES; i++)
        write_character_and_number(&json, i == 0 ? '[' : ',',
                                   domus_histogram_bound_ns(i * DOMI_SAMPLE_FOLD));
    append_text(&json, "]");
    return close_json_and_make_sse_event(&json, "names", ret_event);
}

static void write_phases_of_threads(domus_appender *json, const domi_source *thread)
{
    for (int i = 0; i < DOMUS_PHASES; i++)
        write_character_and_number(json, i == 0 ? '[' : ',', thread->counters.phase_ns[i]);
    append_text(json, "]");
}

/* Returns how many of the sources are threads of the loop; these are the first ones. */
static size_t count_threads_of_sources(const domi_sources *sources)
{
    size_t count = 0;

    while (count < sources->count && sources->each[count].kind == DOMI_SOURCE_THREAD)
        count++;
    return count;
}

/* Returns whether the counter of a row has changed on any thread since the sample before; without
 * such a sample, whether it is not 0. */
static bool has_counter_changed_on_any_thread(const domi_row *row, const domi_sources *now,
                                              const domi_sources *before, size_t threads)
{
    for (size_t i = 0; i < threads; i++) {
        uint64_t old =
            before != NULL ? domi_row_read_its_counter(row, &before->each[i].counters) : 0;
        if (domi_row_read_its_counter(row, &now->each[i].counters) != old)
            return true;
    }
    return false;
}

/* Write those rows of a table whose counters have changed. Returns the number of the row behind the
 * table. */
static uint64_t write_changed_rows(domus_appender *json, const domi_row *rows, uint64_t number,
                                   const domi_sources *now, const domi_sources *before)
{
    size_t threads = count_threads_of_sources(now);

    for (; rows->field != NULL; rows++, number++) {
        if (!has_counter_changed_on_any_thread(rows, now, before, threads))
            continue;
        write_character_and_number(json, '[', number);
        for (size_t i = 0; i < threads; i++)
            write_character_and_number(json, ',',
                                       domi_row_read_its_counter(rows, &now->each[i].counters));
        append_text(json, "],");
    }
    return number;
}

static void write_counts_of_runner(domus_appender *json, const domus_runner_profile *runner)
{
    for (size_t i = 0; i < TIMES; i++)
        write_character_and_number(
            json, i == 0 ? '[' : ',',
            *(const uint64_t *)(const void *)((const char *)runner + times[i].offset));
    append_text(json, "]");
}

static void write_counters_of_sources(domus_appender *json, const domi_sources *now,
                                      const domi_sources *before)
{
    size_t threads = count_threads_of_sources(now);

    append_text(json, ",\"phases\":[");
    for (size_t i = 0; i < threads; i++) {
        append_text(json, i == 0 ? "" : ",");
        write_phases_of_threads(json, &now->each[i]);
    }
    append_text(json, "],\"counters\":[");
    uint64_t stalls = write_changed_rows(json, domi_rows, 0, now, before);
    (void)write_changed_rows(json, stall_rows, stalls, now, before);
    /* each row ends with a comma, so an empty row ends the list */
    append_text(json, "[]],\"runners\":[");
    for (size_t i = threads + 1; i < now->count; i++) {
        append_text(json, i == threads + 1 ? "" : ",");
        write_counts_of_runner(json, &now->each[i].runner);
    }
    append_text(json, "]");
}

static void write_histogram_of_iterations(domus_appender *json, const domi_sample *sample,
                                          const domi_sample *before)
{
    const char *comma = "";

    if (before != NULL && !before->has_histograms)
        before = NULL;
    append_text(json, ",\"iteration\":[");
    for (uint32_t i = 0; i < DOMI_SAMPLE_PLACES; i++) {
        if (sample->iterations[i] == (before != NULL ? before->iterations[i] : 0))
            continue;
        append_text(json, comma);
        write_character_and_number(json, '[', i);
        write_character_and_number(json, ',', sample->iterations[i]);
        append_text(json, "]");
        comma = ",";
    }
    append_text(json, "]");
}

int domi_sample_make_event_with_changes(const domi_sample *sample, const domi_sample *before,
                                        domus_slice *ret_event)
{
    domus_appender json = {0};

    (void)domus_append_text(&json, "{\"serial\":%" PRIu64 ",\"now_ns\":%" PRIu64 ",\"level\":%d",
                            sample->serial, sample->now_ns, (int)sample->level);
    write_counters_of_sources(&json, &sample->sources, before != NULL ? &before->sources : NULL);
    (void)domus_append_text(&json, ",\"memory\":[%" PRIu64 ",%" PRIu64 ",%d]",
                            (uint64_t)sample->memory.used_bytes,
                            (uint64_t)sample->memory.limit_bytes, (int)sample->memory.level);
    if (sample->has_histograms)
        write_histogram_of_iterations(&json, sample, before);
    append_text(&json, ",\"behaviours\":");
    domi_sums_write_changed_json(&json, &sample->behaviours,
                                 before != NULL ? &before->behaviours : NULL);
    return close_json_and_make_sse_event(&json, "sample", ret_event);
}
