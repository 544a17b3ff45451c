/* Counts of each behaviour, as metrics and as JSON.
 *
 * The number of labels is bounded: a program has at most 128 names of behaviours, and as many
 * threads and pools as it is configured with. A behaviour that never ran on a thread has no
 * sample for that thread. */
#include "protocols/observe/writers.h"

#include "protocols/observe/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONE_PLACE (DOMUS_BEHAVIOURS_MAX + 1u)

/* A place where actors run: a thread, a pool, or the outside (all foreign threads and detached
 * actors). */
typedef struct domi_place {
    /* number of the thread; for the outside, the number behind that of the last thread */
    uint32_t thread;
    const char *pool; /* name of the pool; NULL: this place is a thread or the outside */
    uint32_t count;
    domus_behaviour_profile each[AT_ONE_PLACE];
} domi_place;

static void read_behaviours_of_thread_or_pool(domus_system *system, domi_place *at)
{
    if (at->pool != NULL)
        (void)domus_pool_behaviours(domus_outside_pool_find(system, at->pool), at->each,
                                    AT_ONE_PLACE, &at->count);
    else if (domus_system_behaviours(system, at->thread, at->each, AT_ONE_PLACE, &at->count) != 0)
        (void)domus_outside_behaviours(system, at->each, AT_ONE_PLACE, &at->count);
}

int domi_places_read_behaviours(domus_system *system, domi_places *ret_places)
{
    const domus_config *config = domus_system_config(system);
    uint32_t threads = domus_system_threads(system);

    ret_places->threads = threads;
    ret_places->count = threads + 1 + (uint32_t)config->pool_count;
    ret_places->each = calloc(ret_places->count, sizeof(domi_place));
    if (ret_places->each == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < ret_places->count; i++) {
        domi_place *at = &ret_places->each[i];
        at->thread = i;
        at->pool = i > threads ? config->pools[i - threads - 1].name : NULL;
        read_behaviours_of_thread_or_pool(system, at);
    }
    return 0;
}

void domi_places_free_behaviours(domi_places *places)
{
    free(places->each);
}

/* --- metrics ---------------------------------------------------------------------------------- */

typedef struct family {
    const char *name, *help;
    size_t offset; /* offset of the count, a uint64_t, in domus_behaviour_profile */
    bool is_gauge;
    bool is_time;
} family;

#define COUNT(field_, text)                                                                        \
    {                                                                                              \
        .name = "domus_behaviour_" #field_, .help = (text),                                        \
        .offset = offsetof(domus_behaviour_profile, field_)                                        \
    }
#define TIME(field_, name_, text)                                                                  \
    {                                                                                              \
        .name = "domus_behaviour_" name_, .help = (text),                                          \
        .offset = offsetof(domus_behaviour_profile, field_), .is_time = true                       \
    }
#define GAUGE(field_, name_, text)                                                                 \
    {                                                                                              \
        .name = "domus_behaviour_" name_, .help = (text),                                          \
        .offset = offsetof(domus_behaviour_profile, field_), .is_gauge = true                      \
    }

static const family families[] = {
    TIME(run_ns, "run_seconds", "Time of the runs of a behaviour; sampled 100 times a second."),
    COUNT(runs, "Runs of a behaviour."),
    COUNT(messages, "Messages that a behaviour has handled."),
    COUNT(failures, "Failures of notices, events and mounts of a behaviour."),
    COUNT(waits, "Messages whose wait in a mailbox was measured."),
    TIME(wait_ns, "wait_seconds", "Time that these messages waited, together."),
    GAUGE(alive, "actors", "Actors of a behaviour that live."),
    GAUGE(bytes, "bytes", "Bytes of their houses and states."),
};

static uint64_t read_count_at_offset_of_profile(const domus_behaviour_profile *profile,
                                                size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)profile + offset);
}

static void write_labels_of_behaviour(const domi_places *all, const domi_place *at,
                                      const char *name, char *labels, size_t size)
{
    char label[DOMI_LABEL_SIZE];

    domi_escape_name_for_label(name, label);
    if (at->pool != NULL)
        snprintf(labels, size, "pool=\"%s\",behaviour=\"%s\"", at->pool, label);
    else if (at->thread == all->threads)
        snprintf(labels, size, "thread=\"outside\",behaviour=\"%s\"", label);
    else
        snprintf(labels, size, "thread=\"%" PRIu32 "\",behaviour=\"%s\"", at->thread, label);
}

static void write_family_of_behaviours(domi_metrics *to, const family *one, const domi_places *all)
{
    char labels[DOMI_LABELS_SIZE + DOMI_LABEL_SIZE];

    domi_begin_metric_family(to, one->name, one->is_gauge ? DOMI_GAUGE : DOMI_COUNTER, one->help);
    for (uint32_t i = 0; i < all->count; i++) {
        const domi_place *at = &all->each[i];
        for (uint32_t k = 0; k < at->count; k++) {
            write_labels_of_behaviour(all, at, at->each[k].name, labels, sizeof labels);
            domi_write_metric_name_and_labels(to, one->name, one->is_gauge ? "" : "_total", labels);
            if (one->is_time)
                domi_write_metric_time_and_line_end(
                    to, read_count_at_offset_of_profile(&at->each[k], one->offset));
            else
                domi_write_metric_count_and_line_end(
                    to, read_count_at_offset_of_profile(&at->each[k], one->offset));
        }
    }
}

void domi_behaviours_write_metrics(domi_metrics *to, const domi_places *places)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        write_family_of_behaviours(to, &families[i], places);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_behaviour_as_json(domus_appender *json, const domi_places *all,
                                    const domi_place *at, const domus_behaviour_profile *one)
{
    if (at->pool != NULL)
        (void)domus_append_text(json, "{\"pool\":\"%s\",\"name\":", at->pool);
    else if (at->thread == all->threads)
        (void)domus_append_text(json, "{\"thread\":\"outside\",\"name\":");
    else
        (void)domus_append_text(json, "{\"thread\":%" PRIu32 ",\"name\":", at->thread);
    domi_json_append_string(json, one->name);
    (void)domus_append_text(
        json,
        ",\"kind\":\"%s\",\"runs\":%" PRIu64 ",\"run_ns\":%" PRIu64 ",\"messages\":%" PRIu64
        ",\"waits\":%" PRIu64 ",\"wait_ns\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"alive\":%" PRIu64
        ",\"bytes\":%" PRIu64 "}",
        one->is_channels ? "channels" : "state", one->runs, one->run_ns, one->messages, one->waits,
        one->wait_ns, one->failures, one->alive, one->bytes);
}

void domi_behaviours_write_json(domus_appender *json, const domi_places *places)
{
    const char *before = "[";

    for (uint32_t i = 0; i < places->count; i++) {
        const domi_place *at = &places->each[i];
        for (uint32_t k = 0; k < at->count; k++) {
            (void)domus_append_text(json, "%s", before);
            before = ",";
            write_behaviour_as_json(json, places, at, &at->each[k]);
        }
    }
    (void)domus_append_text(json, before[0] == '[' ? "[]" : "]");
}
