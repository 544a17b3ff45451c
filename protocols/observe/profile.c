/* /profile of the observation port: all counters as one JSON object, with times in nanoseconds.
 *
 *   {"now_ns": 1, "pid": 1, "program": "shop", "version": "0.3.0", "uptime_ns": 1,
 *    "level": "counters",
 *    "threads": [{"thread": 0, "counters": {...}}, ...], "outside": {...},
 *    "runners": [{"pool": "work", "runner": 0, "times": {...}, "counters": {...}}, ...],
 *    "listeners": [{"listener": "127.0.0.1:7005", "name": "web", "served": true, "accepted": 1,
 *    "refused": 0, "open": 1, "closed": 0, "reset": 0}, ...],
 *    "sets": ["cluster"], "memory": {...}, "usage": {...},
 *    "behaviours": [{"thread": 0, "name": "shard", "kind": "state", "runs": 1, ...}, ...]}
 *
 * now_ns is of CLOCK_MONOTONIC, the version is that of domus, and the time up is that since the
 * port was opened, when the program starts. A source has those counters that it counts; all names
 * are those of domus/profile.h and domus/memory.h. */
#include "protocols/observe/looking.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/pages.h"
#include "protocols/observe/rows.h"
#include "protocols/observe/sets.h"
#include "protocols/observe/sources.h"
#include "protocols/observe/texts.h"
#include "protocols/observe/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

static void write_number_member(domus_appender *json, const char *before, const char *name,
                                uint64_t value)
{
    (void)domus_append_text(json, "%s\"%s\":%" PRIu64, before, name, value);
}

static void write_phases_of_thread(domus_appender *json, const domus_profile *counters)
{
    (void)domus_append_text(json, ",\"phase_ns\":");
    for (int i = 0; i < DOMUS_PHASES; i++)
        write_number_member(json, i == 0 ? "{" : ",", domus_phase_name((domus_phase)i),
                            counters->phase_ns[i]);
    (void)domus_append_text(json, "}");
}

static void write_stalls_of_thread(domus_appender *json, const domus_profile *counters)
{
    write_number_member(json, ",", "stalls", counters->stalls);
    write_number_member(json, ",", "stalled_ns", counters->stalled_ns);
    (void)domus_append_text(json, ",\"stall_lengths\":");
    for (int i = 0; i < DOMUS_STALL_LENGTHS; i++)
        (void)domus_append_text(json, "%s%" PRIu64, i == 0 ? "[" : ",", counters->stall_lengths[i]);
    (void)domus_append_text(json, "]");
}

static void write_counters_of_source(domus_appender *json, const domi_source *source)
{
    const char *before = "{";

    for (const domi_row *row = domi_rows; row->name != NULL; row++) {
        if ((int)source->kind > (int)row->counted_by)
            continue;
        write_number_member(json, before, row->field,
                            domi_row_read_its_counter(row, &source->counters));
        before = ",";
    }
    if (source->kind == DOMI_SOURCE_THREAD)
        write_phases_of_thread(json, &source->counters);
    if (source->kind != DOMI_SOURCE_OUTSIDE)
        write_stalls_of_thread(json, &source->counters);
    (void)domus_append_text(json, "}");
}

static void write_profile_of_runner(domus_appender *json, const domi_source *source)
{
    const domus_runner_profile *runner = &source->runner;

    (void)domus_append_text(json, "{\"pool\":\"%s\",\"runner\":%" PRIu32 ",\"spare\":%s,\"times\":",
                            source->pool, source->number, source->is_spare ? "true" : "false");
    write_number_member(json, "{", "wall_ns", runner->wall_ns);
    write_number_member(json, ",", "run_ns", runner->run_ns);
    write_number_member(json, ",", "search_ns", runner->search_ns);
    write_number_member(json, ",", "park_ns", runner->park_ns);
    write_number_member(json, ",", "turns", runner->turns);
    write_number_member(json, ",", "messages", runner->messages);
    write_number_member(json, ",", "steals", runner->steals);
    write_number_member(json, ",", "stolen", runner->stolen);
    write_number_member(json, ",", "global_takes", runner->global_takes);
    write_number_member(json, ",", "parks", runner->parks);
    write_number_member(json, ",", "begun", runner->begun);
    (void)domus_append_text(json, "},\"counters\":");
    write_counters_of_source(json, source);
    (void)domus_append_text(json, "}");
}

static void write_memory_profile(domus_appender *json, domus_system *system)
{
    domus_memory memory;

    domus_system_memory(system, &memory);
    write_number_member(json, ",\"memory\":{", "level", memory.level);
    write_number_member(json, ",", "used_bytes", memory.used_bytes);
    write_number_member(json, ",", "limit_bytes", memory.limit_bytes);
    write_number_member(json, ",", "highs", memory.highs);
    write_number_member(json, ",", "criticals", memory.criticals);
    write_number_member(json, ",", "fulls", memory.fulls);
    write_number_member(json, ",", "looks", memory.looks);
    write_number_member(json, ",", "own_level", memory.own_level);
    write_number_member(json, ",", "own_bytes", memory.own_bytes);
    write_number_member(json, ",", "foreign_bytes", memory.foreign_bytes);
    write_number_member(json, ",", "budget_bytes", memory.budget_bytes);
    write_number_member(json, ",", "last_budget_bytes", memory.last_budget_bytes);
    write_number_member(json, ",", "channels_reset", memory.channels_reset);
    write_number_member(json, ",", "channels_reset_bytes", memory.channels_reset_bytes);
    (void)domus_append_text(json, "}");
}

/* Write the members of /profile that identify this program, and the time of this reading. */
static void write_members_of_program(domus_appender *json, const domus_system *system)
{
    uint64_t now_ns = domi_observe_clock_ns();

    write_number_member(json, "{", "now_ns", now_ns);
    (void)domus_append_text(json, ",\"pid\":%ld,\"program\":", (long)getpid());
    domi_json_append_string(json, program_invocation_short_name);
    (void)domus_append_text(json, ",\"version\":\"%s\"", DOMI_VERSION);
    write_number_member(json, ",", "uptime_ns", now_ns - domi_observed.opened_ns);
    (void)domus_append_text(json, ",\"level\":\"%s\"",
                            domi_observe_word_of_level(domus_system_profile_level(system)));
}

static void write_usage_profile(domus_appender *json, domus_system *system)
{
    domus_usage usage;

    domus_system_usage(system, &usage);
    write_number_member(json, ",\"usage\":{", "helpers", usage.helpers);
    write_number_member(json, ",", "helpers_busy", usage.helpers_busy);
    write_number_member(json, ",", "jobs_queued", usage.jobs_queued);
    write_number_member(json, ",", "detached_threads", usage.detached_threads);
    write_number_member(json, ",", "detached_busy", usage.detached_busy);
    (void)domus_append_text(json, "}");
}

/* Write all threads, and then the outside, which follows the threads in the list of sources.
 * Returns the index of the first runner. */
static size_t write_threads_and_outside(domus_appender *json, const domus_system *system,
                                        const domi_sources *sources, int histograms)
{
    size_t i = 0;

    (void)domus_append_text(json, ",\"threads\":[");
    for (; sources->each[i].kind == DOMI_SOURCE_THREAD; i++) {
        (void)domus_append_text(json, "%s{\"thread\":%" PRIu32 ",\"counters\":", i == 0 ? "" : ",",
                                sources->each[i].number);
        write_counters_of_source(json, &sources->each[i]);
        if (histograms != DOMI_HISTOGRAMS_NONE) {
            (void)domus_append_text(json, ",\"histograms\":");
            domi_histograms_write_json(json, system, sources->each[i].number, histograms);
        }
        if (histograms == DOMI_HISTOGRAMS_ALL) {
            (void)domus_append_text(json, ",\"answers\":");
            domi_answer_times_write_json(json, system, sources->each[i].number);
        }
        (void)domus_append_text(json, "}");
    }
    (void)domus_append_text(json, "],\"outside\":");
    write_counters_of_source(json, &sources->each[i]);
    return i + 1;
}

int domi_observe_write_profile_json(domus_system *system, int histograms, bool has_machine,
                                    domus_slice *ret_text)
{
    domus_appender json = {0};
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
    write_members_of_program(&json, system);
    size_t first = write_threads_and_outside(&json, system, &sources, histograms);
    (void)domus_append_text(&json, ",\"runners\":[");
    for (size_t i = first; i < sources.count; i++) {
        (void)domus_append_text(&json, "%s", i == first ? "" : ",");
        write_profile_of_runner(&json, &sources.each[i]);
    }
    (void)domus_append_text(&json, "],\"listeners\":");
    domi_listeners_write_json(&json, system);
    (void)domus_append_text(&json, ",\"pairs\":");
    domi_thread_pairs_write_json(&json, system);
    (void)domus_append_text(&json, ",\"sets\":");
    domi_write_names_of_figure_sets(&json, system);
    write_memory_profile(&json, system);
    write_usage_profile(&json, system);
    if (has_machine)
        domi_write_look_as_json(&json, system);
    (void)domus_append_text(&json, ",\"behaviours\":");
    domi_behaviours_write_json(&json, &places);
    (void)domus_append_text(&json, "}\n");
    domi_places_free_behaviours(&places);
    domi_sources_free_profiles(&sources);
    return domus_append_end(&json, ret_text);
}
