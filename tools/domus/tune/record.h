/* All runs of a search, and the views of them that a report shows. */
#ifndef DOMUS_TOOL_TUNE_RECORD_H
#define DOMUS_TOOL_TUNE_RECORD_H

#include "tools/domus/tune/figures.h"
#include "tools/domus/tune/keys.h"
#include "tools/domus/tune/search.h"

#define TUNE_WHY_SIZE 256
#define TUNE_TRIES    2 /* most tries of a run that fails */

typedef struct tune_record {
    tune_point point;
    /* kind of the run: the check before all others, or a run of the duel; otherwise a run of a
     * stage */
    bool is_check, is_duel;
    size_t key;   /* index of the key that the run's stage tries; unused in the duel */
    size_t round; /* number of the stage's round, or of the run's pair in the duel */
    bool has_failed;
    bool is_first_try;       /* the run has failed at its first try, and was repeated */
    char why[TUNE_WHY_SIZE]; /* the reason why the run has failed */
    double seconds;
    tune_figures figures; /* figures that the run has measured, if it has not failed */
} tune_record;

typedef struct tune_records {
    const tune_keys *keys;
    const tune_search *search;
    const char *goal;
    bool is_more_better; /* a larger figure of the search's goal is better */
    size_t count;
    /* the runs of the search; there is room for TUNE_TRIES of each, and for the check */
    tune_record *each;
} tune_records;

/* A candidate with its figures. A figure is that of its base, times the median of the ratios of the
 * two in the same rounds; without a base, it is the median of the runs of today. */
typedef struct tune_spot {
    tune_point point;
    size_t runs;
    /* figures of the candidate, one for each of tune_axes; NAN: it has no such figure */
    double values[3];
    /* the candidate is on the front: no other one is as good in all figures and better in one */
    bool is_front;
} tune_spot;

/* The figures by which candidates are compared for the front: the rate, which should be large, and
 * others, which should be small. */
extern const char *const tune_axes[3];

/* Returns the candidates that have run, today's first, in an array that the caller owns, with their
 * number; NULL without memory. */
tune_spot *tune_records_make_list_of_candidates(const tune_records *records, size_t *ret_count);

/* Get the interval of the ratio of the best candidate to today's, as the duel has measured it, for
 * any figure. Returns whether there are enough pairs. */
bool tune_records_get_interval_of_duel_ratio(const tune_records *records, const char *name,
                                             tune_interval *ret_ratio);

/* Returns the best candidate of the search if it is better than today's configuration; otherwise
 * today's. */
tune_point tune_records_get_winner_or_today(const tune_records *records);

#endif
