/* The texts of /live: the names, which do not change, and one sample of all counters.
 *
 *   names   {"program": "web", "pid": 7, "opened_ns": 1, "interval_ms": 250,
 *            "levels": ["off", ...], "phases": ["submit", ...], "counters": ["wall_ns", ...],
 *            "threads": 2, "times": ["wall_ns", "run_ns", ...], "runners": [["work", 0], ...],
 *            "bounds": [0, 16, 32, ...]}
 *   sample  {"serial": 5, "now_ns": 1, "level": 1, "phases": [[1, 2, ...], ...],
 *            "counters": [[0, 10, 11], ...], "runners": [[1, 2, ...], ...],
 *            "memory": [used_bytes, limit_bytes, level], "iteration": [[17, 100], ...],
 *            "behaviours": [["shard", "state", 1, 2, ...], ...]}
 *
 * `phases` has the times of each thread in ns, and `runners` those of each runner and then its
 * counts, both in the order of the names. A row of `counters` is the index of a name, followed by a
 * number for each thread. `iteration` is the histogram of all threads together, if the level
 * includes histograms: the index of the bound from which on an entry counts, and the count. All
 * numbers are sums since the start of the program (for behaviours: domi_sums_write_changed_json()),
 * so a viewer that misses samples loses only moments. A sample in step has only the rows that have
 * changed since the sample before, and a full one has all rows that are not 0. */
#ifndef DOMI_PROTOCOLS_OBSERVE_SAMPLE_H
#define DOMI_PROTOCOLS_OBSERVE_SAMPLE_H

#include "protocols/observe/sources.h"
#include "protocols/observe/sums.h"

#define DOMI_LIVE_TICK_NS UINT64_C(250000000)
/* Places of a histogram in a sample: 16 places of domus/histogram.h are joined to one, so there are
 * 4 for each power of two. */
#define DOMI_SAMPLE_FOLD   16u
#define DOMI_SAMPLE_PLACES (DOMUS_HISTOGRAM_PLACES / DOMI_SAMPLE_FOLD)

typedef struct domi_sample {
    uint64_t serial; /* number of the sample, from 1 on; 0: no sample was read */
    uint64_t now_ns;
    domus_profile_level level;
    domi_sources sources;
    domi_sums behaviours;
    domus_memory memory;
    bool has_histograms;
    uint64_t iterations[DOMI_SAMPLE_PLACES];
} domi_sample;

/* Read all counters of a system into the next sample. Returns 0; -ENOMEM, and the sample is
 * unchanged. Ownership: domi_sample_free_counters() frees what the sample holds. */
int domi_sample_read_counters(domus_system *system, uint64_t now_ns, domi_sample *sample);
void domi_sample_free_counters(domi_sample *sample);

/* Write the event with the names for /live. Returns 0; -ENOMEM. Ownership: the slice is the
 * caller's. */
int domi_sample_make_event_with_all_names(domus_system *system, domus_slice *ret_event);

/* Write the event of a sample: only what has changed since the sample `before`, or all counts that
 * are not 0 if `before` is NULL. Returns 0; -ENOMEM. Ownership: the slice is the caller's. */
int domi_sample_make_event_with_changes(const domi_sample *sample, const domi_sample *before,
                                        domus_slice *ret_event);

#endif
