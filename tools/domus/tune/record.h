/* All runs of a search, and the views of them that a report shows. */
#ifndef DOMUS_TOOL_TUNE_RECORD_H
#define DOMUS_TOOL_TUNE_RECORD_H

#include "tools/domus/tune/figures.h"
#include "tools/domus/tune/keys.h"
#include "tools/domus/tune/search.h"

#define TUNE_WHY_SIZE 256
#define TUNE_TRIES    2 /* of a run that fails */

typedef struct tune_record {
    tune_point point;
    bool is_check, is_duel; /* the first run; one of the duel; otherwise one of a stage */
    size_t key, round;      /* of a stage, or the pair of the duel */
    bool has_failed;
    bool is_first_try;       /* the run has failed, and was done once more */
    char why[TUNE_WHY_SIZE]; /* the reason why the run has failed */
    double seconds;
    tune_figures figures; /* if it has not failed */
} tune_record;

typedef struct tune_records {
    const tune_keys *keys;
    const tune_search *search;
    const char *goal;
    bool is_more_better; /* of the goal */
    size_t count;
    tune_record *each; /* room for TUNE_TRIES of each run, and of the check */
} tune_records;

/* A candidate with its figures: the medians of today's runs, times the medians of the ratios to its
 * base in the same rounds. */
typedef struct tune_spot {
    tune_point point;
    size_t runs;
    double values[3]; /* of tune_axes; NAN: there is no such figure */
    bool is_front;    /* no other candidate is as good in all of them and better in one */
} tune_spot;

/* The figures of the front: the rate, of which more is better, and the others, of which less is. */
extern const char *const tune_axes[3];

/* Returns the candidates that have run, today's first, in an array that is the caller's, with their
 * number; NULL: there was no memory. */
tune_spot *tune_records_spots(const tune_records *records, size_t *ret_count);

/* Get the interval of the ratio of the best to today's, as the duel measured it, for any figure.
 * Returns whether it has enough pairs. */
bool tune_records_effect(const tune_records *records, const char *name, tune_interval *ret_ratio);

/* Returns the best, if it is better than today's configuration, and today's otherwise. */
tune_point tune_records_winner(const tune_records *records);

#endif
