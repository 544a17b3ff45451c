/* /metrics: the profile as Prometheus reads it (text format 0.0.4). metrics_rows.c has the names.
 *
 * Each counter has a sample for each thread. Counters that only foreign threads write
 * are in the sample of the thread "outside". */
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS_MAX KV_THREADS_MAX
#define SECOND_NS   UINT64_C(1000000000)

/* --- requests --------------------------------------------------------------------------------- */

/* Requests, each thread's on a line of its own. Relaxed: counts that order nothing; only the thread
 * that owns one writes it. */
static struct {
    _Alignas(64) _Atomic uint64_t requests;
} counts[THREADS_MAX];
static _Atomic uint32_t counts_used;
static _Thread_local uint32_t mine; /* the place of this thread, from 1 on; 0: it has none yet */

void web_count_request(void)
{
    if (mine == 0)
        mine = atomic_fetch_add_explicit(&counts_used, 1, memory_order_relaxed) % THREADS_MAX + 1;
    _Atomic uint64_t *count = &counts[mine - 1].requests;
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

uint64_t web_requests(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < THREADS_MAX && i < atomic_load(&counts_used); i++)
        sum += atomic_load_explicit(&counts[i].requests, memory_order_relaxed);
    return sum;
}

/* --- the text --------------------------------------------------------------------------------- */

static void write_head(domus_appender *text, const char *name, const char *type, const char *help)
{
    (void)domus_append_text(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_seconds(domus_appender *text, uint64_t time_ns)
{
    (void)domus_append_text(text, " %" PRIu64 ".%09" PRIu64 "\n", time_ns / SECOND_NS,
                            time_ns % SECOND_NS);
}

static uint64_t field_of(const domus_profile *profile, const struct web_metric *row)
{
    return *(const uint64_t *)(const void *)((const char *)profile + row->offset);
}

/* Write a row for all threads; the last profile is that of the outside. */
static void write_row(domus_appender *text, const struct web_metric *row,
                      const domus_profile *profiles, uint32_t threads)
{
    write_head(text, row->name, row->is_gauge ? "gauge" : "counter", row->help);
    for (uint32_t i = 0; i < threads; i++) {
        (void)domus_append_text(text, "%s{thread=\"%" PRIu32 "\"}", row->name, i);
        if (row->is_time)
            write_seconds(text, field_of(&profiles[i], row));
        else
            (void)domus_append_text(text, " %" PRIu64 "\n", field_of(&profiles[i], row));
    }
    if (row->has_outside)
        (void)domus_append_text(text, "%s{thread=\"outside\"} %" PRIu64 "\n", row->name,
                                field_of(&profiles[threads], row));
}

static void write_phases(domus_appender *text, const domus_profile *profiles, uint32_t threads)
{
    static const char name[] = "domus_phase_seconds_total";

    write_head(text, name, "counter", "Time that a thread was in a phase of its loop.");
    for (uint32_t i = 0; i < threads; i++) {
        for (int phase = 0; phase < DOMUS_PHASES; phase++) {
            (void)domus_append_text(text, "%s{thread=\"%" PRIu32 "\",phase=\"%s\"}", name, i,
                                    domus_phase_name((domus_phase)phase));
            write_seconds(text, profiles[i].phase_ns[phase]);
        }
    }
}

/* Write the stalls as a histogram. The last length has no upper bound. */
static void write_stalls(domus_appender *text, const domus_profile *profiles, uint32_t threads)
{
    static const char name[] = "domus_stall_seconds";

    write_head(text, name, "histogram", "Runs of actors that were longer than stall.threshold.");
    for (uint32_t i = 0; i < threads; i++) {
        uint64_t sum = 0;
        for (int length = 0; length < DOMUS_STALL_LENGTHS - 1; length++) {
            sum += profiles[i].stall_lengths[length];
            (void)domus_append_text(
                text, "%s_bucket{thread=\"%" PRIu32 "\",le=\"%u.%03u\"} %" PRIu64 "\n", name, i,
                (2u << length) / 1000, (2u << length) % 1000, sum);
        }
        sum += profiles[i].stall_lengths[DOMUS_STALL_LENGTHS - 1];
        (void)domus_append_text(text, "%s_bucket{thread=\"%" PRIu32 "\",le=\"+Inf\"} %" PRIu64 "\n",
                                name, i, sum);
        (void)domus_append_text(text, "%s_sum{thread=\"%" PRIu32 "\"}", name, i);
        write_seconds(text, profiles[i].stalled_ns);
        (void)domus_append_text(text, "%s_count{thread=\"%" PRIu32 "\"} %" PRIu64 "\n", name, i,
                                sum);
    }
}

static int write_metrics(domus_appender *text)
{
    uint32_t threads = domus_system_threads(web_system);
    domus_profile *profiles = calloc(threads + 1, sizeof *profiles);

    if (profiles == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < threads; i++)
        (void)domus_system_profile(web_system, i, &profiles[i]);
    (void)domus_outside_profile(web_system, &profiles[threads]);
    write_head(text, "web_requests_total", "counter", "Requests of HTTP that were read.");
    (void)domus_append_text(text, "web_requests_total %" PRIu64 "\n", web_requests());
    write_phases(text, profiles, threads);
    write_stalls(text, profiles, threads);
    for (const struct web_metric *row = web_metrics; row->name != NULL; row++)
        write_row(text, row, profiles, threads);
    free(profiles);
    return 0;
}

int web_answer_metrics(domus_stack *stack, void *self, const void *payload)
{
    domus_appender text = {0};
    domus_slice body;
    int error = write_metrics(&text);

    (void)self, (void)payload;
    if (error == 0)
        error = domus_append_end(&text, &body);
    return error != 0 ? error : web_answer(stack, WEB_METRICS, body);
}

/* It takes some time to write them, so that is work for the meter. */
static int forward(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_forward(stack, web_meter);
}

const domus_call web_serve_metrics = {forward, 0};
