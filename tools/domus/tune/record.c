/* Computes views of the runs of a search for its report (record.h). */
#include "tools/domus/tune/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const tune_axes[3] = {"rate", "p99", "cpu"};

static bool is_same_candidate(const tune_point *one, const tune_point *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

/* Returns the median of a figure over the runs of a candidate; NAN if there is none. */
static double get_median_of_runs(const tune_records *records, const tune_point *point,
                                 const char *name, double *room)
{
    size_t count = 0;

    for (size_t i = 0; i < records->count; i++) {
        const tune_record *record = &records->each[i];
        const tune_figure *figure = tune_figures_find_by_name(&record->figures, name);
        if (!record->has_failed && !record->is_check && figure != NULL &&
            is_same_candidate(&record->point, point))
            room[count++] = figure->value;
    }
    return count > 0 ? tune_sort_and_get_median(room, count) : NAN;
}

/* Returns whether a run counts and has this figure, which `ret_value` gets. */
static bool get_figure_of_run_that_counts(const tune_record *record, const char *name,
                                          double *ret_value)
{
    const tune_figure *figure = tune_figures_find_by_name(&record->figures, name);

    if (record->has_failed || record->is_check || figure == NULL)
        return false;
    *ret_value = figure->value;
    return true;
}

/* Returns the candidate with which a run is compared: today's in the duel; in a stage the one that
 * differs only in the stage's key. */
static tune_point candidate_to_which_run_is_compared(const tune_record *record)
{
    tune_point base = {{0}};

    /* a run of the duel has no base, because the duel is about no single key */
    if (!record->is_duel) {
        base = record->point;
        base.choice[record->key] = 0;
    }
    return base;
}

/* Get the ratio of a run's figure to the figure of the base with which it is compared, in the same
 * round. Returns whether there is one. */
static bool get_ratio_to_base(const tune_records *records, const tune_record *record,
                              const char *name, double *ret_ratio)
{
    tune_point base = candidate_to_which_run_is_compared(record);
    double value, other;

    if (!get_figure_of_run_that_counts(record, name, &value))
        return false;
    for (size_t i = 0; i < records->count; i++) {
        const tune_record *one = &records->each[i];
        if (one->is_duel != record->is_duel || one->round != record->round ||
            (!one->is_duel && one->key != record->key) || !is_same_candidate(&one->point, &base) ||
            !get_figure_of_run_that_counts(one, name, &other) || !(other > 0))
            continue;
        *ret_ratio = value / other;
        return true;
    }
    return false;
}

/* Returns the figure of a candidate: its base's figure times the median of their ratios in the same
 * rounds, so that drift between rounds does not matter. The runs of the duel count, or else those
 * of the last stage in which it was a rival; without any, the result is the median of its runs. */
static double figure_of_candidate_without_drift(const tune_records *records,
                                                const tune_point *point, const char *name,
                                                double *room)
{
    const tune_record *last = NULL;
    double ratio;
    size_t count = 0;

    for (size_t i = 0; i < records->count; i++) {
        const tune_record *record = &records->each[i];
        tune_point base = candidate_to_which_run_is_compared(record);
        if (is_same_candidate(&record->point, point) && !is_same_candidate(&base, point) &&
            get_ratio_to_base(records, record, name, &ratio))
            last = record;
    }
    if (last == NULL)
        return get_median_of_runs(records, point, name, room);
    for (size_t i = 0; i < records->count; i++) {
        const tune_record *record = &records->each[i];
        if (record->is_duel == last->is_duel && (record->is_duel || record->key == last->key) &&
            is_same_candidate(&record->point, point) &&
            get_ratio_to_base(records, record, name, &ratio))
            room[count++] = ratio;
    }
    ratio = tune_sort_and_get_median(room, count);
    tune_point base = candidate_to_which_run_is_compared(last);
    /* this recursion ends, because each base differs from today's values in fewer keys */
    return ratio * figure_of_candidate_without_drift(records, &base, name, room);
}

static tune_spot *find_spot_of_candidate(tune_spot *spots, size_t count, const tune_point *point)
{
    for (size_t i = 0; i < count; i++) {
        if (is_same_candidate(&spots[i].point, point))
            return &spots[i];
    }
    return NULL;
}

/* Returns whether one candidate is at least as good as the other in all figures of the front, and
 * better in one. */
static bool does_candidate_dominate(const tune_spot *one, const tune_spot *other)
{
    bool is_better = false;

    for (int axis = 0; axis < 3; axis++) {
        double gain = one->values[axis] - other->values[axis];
        gain = axis == 0 ? gain : -gain;
        if (gain < 0)
            return false;
        is_better |= gain > 0;
    }
    return is_better;
}

static void mark_candidates_that_none_dominates(tune_spot *spots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spots[i].is_front = true;
        for (size_t j = 0; j < count; j++)
            spots[i].is_front &= !does_candidate_dominate(&spots[j], &spots[i]);
    }
}

tune_spot *tune_records_make_list_of_candidates(const tune_records *records, size_t *ret_count)
{
    tune_spot *spots = calloc(records->count + 1, sizeof *spots);
    double *room = calloc(records->count + 1, sizeof *room);
    size_t count = 1; /* today's values are the first candidate */

    if (spots == NULL || room == NULL) {
        free(spots);
        free(room);
        return NULL;
    }
    for (size_t i = 0; i < records->count; i++) {
        const tune_record *record = &records->each[i];
        if (record->has_failed || record->is_check)
            continue;
        tune_spot *spot = find_spot_of_candidate(spots, count, &record->point);
        if (spot == NULL) {
            spot = &spots[count++];
            spot->point = record->point;
        }
        spot->runs++;
    }
    for (size_t i = 0; i < count; i++) {
        for (int axis = 0; axis < 3; axis++)
            spots[i].values[axis] =
                figure_of_candidate_without_drift(records, &spots[i].point, tune_axes[axis], room);
    }
    mark_candidates_that_none_dominates(spots, count);
    free(room);
    *ret_count = count;
    return spots;
}

/* Get the same figure of both runs of a pair in the duel. Returns whether both have it. */
static bool get_figure_of_both_runs_of_duel_pair(const tune_records *records, size_t pair,
                                                 const char *name, double *ret_values)
{
    unsigned found = 0;

    for (size_t i = 0; i < records->count; i++) {
        const tune_record *record = &records->each[i];
        const tune_figure *figure = tune_figures_find_by_name(&record->figures, name);
        if (!record->is_duel || record->has_failed || record->round != pair || figure == NULL)
            continue;
        bool is_best = !tune_point_has_only_todays_values(&record->point);
        ret_values[is_best] = figure->value;
        found |= 1u << is_best;
    }
    return found == 3 && ret_values[0] > 0 && ret_values[1] > 0;
}

bool tune_records_get_interval_of_duel_ratio(const tune_records *records, const char *name,
                                             tune_interval *ret_ratio)
{
    double logs[TUNE_PAIRS_MAX], values[2];
    size_t count = 0;

    for (size_t pair = 0; pair < records->search->pairs; pair++) {
        if (get_figure_of_both_runs_of_duel_pair(records, pair, name, values))
            logs[count++] = log(values[1] / values[0]);
    }
    if (count < TUNE_PAIRS_MIN)
        return false;
    tune_interval interval = tune_95_percent_interval_of_median(logs, count);
    *ret_ratio = (tune_interval){exp(interval.low), exp(interval.middle), exp(interval.high)};
    return true;
}

tune_point tune_records_get_winner_or_today(const tune_records *records)
{
    tune_verdict verdict = records->search->verdict;

    return verdict == TUNE_BETTER || verdict == TUNE_KEEPS ? records->search->best
                                                           : (tune_point){{0}};
}
