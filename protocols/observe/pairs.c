/* Reads the pairs of threads of which one has run actors of the other. The number of pairs only
 * grows, so a list with memory for the number seen before gets at least so many. */
#include "protocols/observe/writers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Read the pairs of threads into memory that the caller frees. Returns how many there are; 0 if
 * there is no memory. */
static size_t read_pairs_of_threads(const domus_system *system, domus_pair **ret_pairs)
{
    size_t count = domus_system_pairs(system, NULL, 0);

    *ret_pairs = NULL;
    if (count > DOMI_PAIRS_MAX)
        count = DOMI_PAIRS_MAX;
    if (count == 0)
        return 0;
    *ret_pairs = calloc(count, sizeof **ret_pairs);
    if (*ret_pairs == NULL)
        return 0;
    (void)domus_system_pairs(system, *ret_pairs, count);
    return count;
}

static void write_metric_family_of_thread_pairs(domi_metrics *to, const char *name,
                                                const char *help, const domus_pair *pairs,
                                                size_t count, bool stand_ins)
{
    char labels[DOMI_LABELS_SIZE];

    domi_begin_metric_family(to, name, DOMI_COUNTER, help);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = stand_ins ? pairs[i].stand_ins : pairs[i].steals;
        if (value == 0)
            continue;
        snprintf(labels, sizeof labels, "thief=\"%" PRIu32 "\",victim=\"%" PRIu32 "\"",
                 pairs[i].thief, pairs[i].victim);
        domi_write_metric_name_and_labels(to, name, "_total", labels);
        domi_write_metric_count_and_line_end(to, value);
    }
}

void domi_thread_pairs_write_metrics(domi_metrics *to, const domus_system *system)
{
    domus_pair *pairs;
    size_t count = read_pairs_of_threads(system, &pairs);

    if (count == 0)
        return; /* a family of metrics without samples is left out */
    write_metric_family_of_thread_pairs(to, "domus_pair_steals",
                                        "Actors of a thread that another one stole and ran.", pairs,
                                        count, false);
    write_metric_family_of_thread_pairs(to, "domus_pair_stand_ins",
                                        "Actors of a thread that another one ran while it slept.",
                                        pairs, count, true);
    free(pairs);
}

void domi_thread_pairs_write_json(domus_appender *json, const domus_system *system)
{
    domus_pair *pairs;
    size_t count = read_pairs_of_threads(system, &pairs);

    (void)domus_append_text(json, "[");
    for (size_t i = 0; i < count; i++)
        (void)domus_append_text(json,
                                "%s{\"thief\":%" PRIu32 ",\"victim\":%" PRIu32
                                ",\"steals\":%" PRIu64 ",\"stand_ins\":%" PRIu64 "}",
                                i == 0 ? "" : ",", pairs[i].thief, pairs[i].victim, pairs[i].steals,
                                pairs[i].stand_ins);
    (void)domus_append_text(json, "]");
    free(pairs);
}
