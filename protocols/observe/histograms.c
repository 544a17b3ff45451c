/* Histograms of the threads, as metrics and as JSON.
 *
 * JSON shows each place with times. Metrics have only the powers of two from 64 ns to 34 s, so that
 * a thread has 33 samples of a kind and not 2,000; and they always have all of these, because a
 * bucket that appears later would look like a jump. A time that is exactly such a bound is counted
 * in the next bucket. */
#include "protocols/observe/writers.h"

#include "protocols/observe/texts.h"

#include <domus/http_query.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PLACES_PER_POWER 64u
#define NAME_SIZE        16
#define BUCKET_SIZE      (DOMI_LABELS_SIZE + DOMI_LABEL_SIZE + 32)

int domi_histograms_read_kinds_from_query(domus_slice query, int *ret_kinds)
{
    char name[NAME_SIZE];
    int64_t size = domus_http_query_value(query, "histograms", name, sizeof name - 1);

    if (size == -ENOENT) {
        *ret_kinds = DOMI_HISTOGRAMS_NONE;
        return 0;
    }
    if (size <= 0 || memchr(name, '\0', (size_t)size) != NULL)
        return -EINVAL;
    name[size] = '\0';
    if (strcmp(name, "1") == 0) {
        *ret_kinds = DOMI_HISTOGRAMS_ALL;
        return 0;
    }
    for (int kind = 0; kind < DOMUS_HISTOGRAMS; kind++) {
        if (strcmp(name, domus_histogram_name((domus_histogram_kind)kind)) != 0)
            continue;
        *ret_kinds = kind;
        return 0;
    }
    return -EINVAL;
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* A family of metrics, and the kinds of histograms that it contains. All phases of a thread are one
 * family, and a label tells them apart. */
typedef struct family {
    const char *name, *help;
    domus_histogram_kind first, last;
} family;

static const family families[] = {
    {"domus_iteration_seconds", "Iterations of the loop, without submitting and sleeping.",
     DOMUS_HISTOGRAM_ITERATION, DOMUS_HISTOGRAM_ITERATION},
    {"domus_phase_length_seconds",
     "Time of one iteration in a phase, if it had any; enter is submit and sleep together.",
     DOMUS_HISTOGRAM_ENTER, DOMUS_HISTOGRAM_OTHER},
    {"domus_run_seconds", "Runs of actors.", DOMUS_HISTOGRAM_RUN, DOMUS_HISTOGRAM_RUN},
    {"domus_mailbox_wait_seconds", "Time of messages in the mailboxes of state actors; samples.",
     DOMUS_HISTOGRAM_WAIT, DOMUS_HISTOGRAM_WAIT},
    {"domus_delivery_seconds", "Time of messages from one thread to another; samples.",
     DOMUS_HISTOGRAM_DELIVERY, DOMUS_HISTOGRAM_DELIVERY},
    {"domus_reaction_seconds", "Time from a completion to the run of its actor.",
     DOMUS_HISTOGRAM_REACTION, DOMUS_HISTOGRAM_REACTION},
};

static void write_samples_of_histogram(domi_metrics *to, const char *name, const char *labels,
                                       const domus_histogram *histogram)
{
    char bucket[BUCKET_SIZE];
    uint64_t count = 0;

    for (uint32_t place = 0; place < DOMUS_HISTOGRAM_PLACES;) {
        for (uint32_t i = 0; i < PLACES_PER_POWER; i++)
            count += histogram->places[place++];
        uint64_t end_ns = domus_histogram_bound_ns(place);
        /* the last bucket has no upper bound, because the last place of a histogram also counts all
         * longer times */
        if (place < DOMUS_HISTOGRAM_PLACES)
            snprintf(bucket, sizeof bucket, "%s,le=\"%" PRIu64 ".%09" PRIu64 "\"", labels,
                     end_ns / 1000000000, end_ns % 1000000000);
        else
            snprintf(bucket, sizeof bucket, "%s,le=\"+Inf\"", labels);
        domi_write_metric_name_and_labels(to, name, "_bucket", bucket);
        domi_write_metric_count_and_line_end(to, count);
    }
    domi_write_metric_name_and_labels(to, name, "_sum", labels);
    domi_write_metric_time_and_line_end(to, histogram->sum_ns);
    domi_write_metric_name_and_labels(to, name, "_count", labels);
    domi_write_metric_count_and_line_end(to, count);
}

static bool has_any_thread_measured_kind(const domus_system *system, domus_histogram_kind kind)
{
    domus_histogram histogram;

    for (uint32_t i = 0; i < domus_system_threads(system); i++)
        if (domus_system_histogram(system, i, kind, &histogram) == 0 && histogram.count > 0)
            return true;
    return false;
}

static void write_histograms_of_kind(domi_metrics *to, const family *of, domus_histogram_kind kind,
                                     const domus_system *system)
{
    char labels[DOMI_LABELS_SIZE];
    domus_histogram histogram;

    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        int length = snprintf(labels, sizeof labels, "thread=\"%" PRIu32 "\"", i);
        if (of->first != of->last)
            snprintf(labels + length, sizeof labels - (size_t)length, ",phase=\"%s\"",
                     domus_histogram_name(kind));
        (void)domus_system_histogram(system, i, kind, &histogram);
        write_samples_of_histogram(to, of->name, labels, &histogram);
    }
}

static void write_histograms_of_answer_times(domi_metrics *to, const domus_system *system)
{
    static const char name[] = "domus_answer_seconds";
    char behaviour[DOMUS_BEHAVIOUR_NAME_SIZE], label[DOMI_LABEL_SIZE];
    char labels[DOMI_LABEL_SIZE + DOMI_LABELS_SIZE];
    domus_histogram histogram;
    bool has_begun = false;

    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        for (uint32_t k = 0; domus_system_answers(system, i, k, behaviour, &histogram) == 0; k++) {
            if (!has_begun)
                domi_begin_metric_family(
                    to, name, DOMI_HISTOGRAM,
                    "Time from a request of a peer to the end of its answer; samples.");
            has_begun = true;
            domi_escape_name_for_label(behaviour, label);
            snprintf(labels, sizeof labels, "thread=\"%" PRIu32 "\",behaviour=\"%s\"", i, label);
            write_samples_of_histogram(to, name, labels, &histogram);
        }
    }
}

void domi_histograms_write_metrics(domi_metrics *to, const domus_system *system)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const family *of = &families[i];
        bool has_begun = false;

        for (int kind = (int)of->first; kind <= (int)of->last; kind++) {
            if (!has_any_thread_measured_kind(system, (domus_histogram_kind)kind))
                continue;
            if (!has_begun)
                domi_begin_metric_family(to, of->name, DOMI_HISTOGRAM, of->help);
            has_begun = true;
            write_histograms_of_kind(to, of, (domus_histogram_kind)kind, system);
        }
    }
    write_histograms_of_answer_times(to, system);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_histogram_as_json(domus_appender *json, const domus_histogram *histogram)
{
    const char *before = "";
    uint64_t max_ns = 0;

    (void)domus_append_text(json, "{\"count\":%" PRIu64 ",\"sum_ns\":%" PRIu64 ",\"buckets\":[",
                            histogram->count, histogram->sum_ns);
    for (uint32_t place = 0; place < DOMUS_HISTOGRAM_PLACES; place++) {
        if (histogram->places[place] == 0)
            continue;
        uint64_t end_ns = domus_histogram_bound_ns(place + 1);
        (void)domus_append_text(json, "%s[%" PRIu64 ",%" PRIu64 "]", before, end_ns,
                                histogram->places[place]);
        before = ",";
        max_ns = end_ns - 1;
    }
    (void)domus_append_text(json, "],\"max_ns\":%" PRIu64 "}", max_ns);
}

void domi_histograms_write_json(domus_appender *json, const domus_system *system, uint32_t thread,
                                int kinds)
{
    domus_histogram histogram;
    int from = kinds == DOMI_HISTOGRAMS_ALL ? 0 : kinds;
    int to = kinds == DOMI_HISTOGRAMS_ALL ? DOMUS_HISTOGRAMS : kinds + 1;

    (void)domus_append_text(json, "{");
    for (int kind = from; kind < to; kind++) {
        (void)domus_system_histogram(system, thread, (domus_histogram_kind)kind, &histogram);
        (void)domus_append_text(json, "%s\"%s\":", kind == from ? "" : ",",
                                domus_histogram_name((domus_histogram_kind)kind));
        write_histogram_as_json(json, &histogram);
    }
    (void)domus_append_text(json, "}");
}

void domi_answer_times_write_json(domus_appender *json, const domus_system *system, uint32_t thread)
{
    char behaviour[DOMUS_BEHAVIOUR_NAME_SIZE];
    domus_histogram histogram;

    (void)domus_append_text(json, "[");
    for (uint32_t i = 0; domus_system_answers(system, thread, i, behaviour, &histogram) == 0; i++) {
        (void)domus_append_text(json, "%s[", i == 0 ? "" : ",");
        domi_json_append_string(json, behaviour);
        (void)domus_append_text(json, ",");
        write_histogram_as_json(json, &histogram);
        (void)domus_append_text(json, "]");
    }
    (void)domus_append_text(json, "]");
}
