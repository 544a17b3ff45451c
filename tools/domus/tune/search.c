/* The search for the best values of keys (search.h). */
#include "tools/domus/tune/search.h"

#include "tools/domus/tune/parts.h"

#include <math.h>
#include <string.h>

bool tune_point_is_today(const tune_point *point)
{
    for (size_t key = 0; key < TUNE_KEYS_MAX; key++) {
        if (point->choice[key] != 0)
            return false;
    }
    return true;
}

/* --- counting the runs of a plan -------------------------------------------------------------- */

/* Returns how many runs one round of each stage of the search takes together. */
static size_t count_runs_of_round(const tune_plan *plan)
{
    size_t runs = 0;

    for (size_t key = 0; key < plan->keys; key++)
        runs += plan->values[key] + 1;
    return runs;
}

size_t tune_plan_least_runs(const tune_plan *plan)
{
    return count_runs_of_round(plan) + 2 * plan->pairs;
}

size_t tune_plan_usual_runs(const tune_plan *plan)
{
    return 4 * count_runs_of_round(plan) + 2 * plan->pairs;
}

double tune_plan_sweep_runs(const tune_plan *plan)
{
    double runs = TUNE_SWEEP;

    for (size_t key = 0; key < plan->keys; key++)
        runs *= (double)plan->values[key] + 1;
    return runs;
}

/* --- the duel --------------------------------------------------------------------------------- */

static void begin_duel_of_search(tune_search *search)
{
    search->state = TUNE_DUEL;
    search->is_today_first = (tune_next_random_number(&search->chance) & 1) != 0;
}

static void end_search_with_verdict(tune_search *search, tune_verdict verdict)
{
    search->state = TUNE_DONE;
    search->verdict = verdict;
}

/* End the duel of a search, and decide the verdict. Bounds are judged by the median, as in the
 * stages. */
static void end_duel_with_verdict(tune_search *search)
{
    double today = tune_sort_and_get_median(search->pair_brokens[0], search->pairs);
    double best = tune_sort_and_get_median(search->pair_brokens[1], search->pairs);

    search->interval = tune_interval_of_median(search->pair_logs, search->pairs);
    if (best > 0) {
        end_search_with_verdict(search, today > 0 ? TUNE_BROKEN : TUNE_BREAKS);
    } else if (today > 0) {
        end_search_with_verdict(search, TUNE_KEEPS);
    } else {
        end_search_with_verdict(search, search->interval.low > 0    ? TUNE_BETTER
                                        : search->interval.high < 0 ? TUNE_WORSE
                                                                    : TUNE_SAME);
    }
}

static void record_pair_of_duel(tune_search *search, const tune_outcome *today,
                                const tune_outcome *best)
{
    double log_ratio = log(best->goal / today->goal);

    search->pair_logs[search->pairs] = search->plan.is_more_better ? log_ratio : -log_ratio;
    search->pair_brokens[0][search->pairs] = today->broken;
    search->pair_brokens[1][search->pairs] = best->broken;
    search->is_today_first = !search->is_today_first;
    if (++search->pairs == search->plan.pairs)
        end_duel_with_verdict(search);
}

/* Handle the outcome of a run in the duel. If the best candidate fails in it, it is no better than
 * today's configuration. */
static void record_duel_run(tune_search *search, const tune_outcome *outcome)
{
    bool is_today = search->has_first != search->is_today_first;

    if (outcome->has_failed) {
        end_search_with_verdict(search, is_today ? TUNE_BASE_LOST : TUNE_FAILS);
        return;
    }
    if (!search->has_first) {
        search->first = *outcome;
        search->has_first = true;
        return;
    }
    search->has_first = false;
    if (is_today)
        record_pair_of_duel(search, outcome, &search->first);
    else
        record_pair_of_duel(search, &search->first, outcome);
}

/* --- the stages ------------------------------------------------------------------------------- */

/* Continue the search after a stage: with the next key, with the duel, or with nothing. */
static void continue_after_stage(tune_search *search)
{
    bool is_broken = tune_stage_end(search);

    if (search->verdict != TUNE_OPEN)
        end_search_with_verdict(search, search->verdict);
    else if (++search->key < search->plan.keys)
        tune_stage_begin(search);
    else if (!tune_point_is_today(&search->best))
        begin_duel_of_search(search);
    else
        end_search_with_verdict(search, is_broken ? TUNE_BROKEN : TUNE_SAME);
}

/* Returns whether the runs that are still allowed are enough for another round and the duel. */
static bool has_runs_left_for_round(const tune_search *search)
{
    size_t later = 0;

    for (size_t key = search->key + 1; key < search->plan.keys; key++)
        later += search->plan.values[key] + 1;
    return search->runs + search->order_count + later + 2 * search->plan.pairs <=
           search->plan.runs_max;
}

static void record_stage_run(tune_search *search, const tune_outcome *outcome)
{
    search->outcomes[search->order[search->at]] = *outcome;
    if (++search->at < search->order_count)
        return;
    bool goes_on = tune_stage_end_round(search);
    if (!goes_on || !has_runs_left_for_round(search))
        continue_after_stage(search);
}

/* --- the functions for callers ---------------------------------------------------------------- */

void tune_search_begin(tune_search *search, const tune_plan *plan)
{
    memset(search, 0, sizeof *search);
    search->plan = *plan;
    search->chance = plan->seed;
    search->noise = -1;
    tune_stage_begin(search);
}

bool tune_search_get_next_run(tune_search *search, tune_point *ret_point)
{
    if (search->state == TUNE_DONE)
        return false;
    if (search->state == TUNE_STAGE) {
        *ret_point = search->best;
        ret_point->choice[search->key] = search->rivals[search->order[search->at]].choice;
    } else {
        *ret_point = search->has_first != search->is_today_first ? (tune_point){{0}} : search->best;
    }
    return true;
}

void tune_search_record_outcome(tune_search *search, const tune_outcome *outcome)
{
    search->runs++;
    if (search->state == TUNE_STAGE)
        record_stage_run(search, outcome);
    else if (search->state == TUNE_DUEL)
        record_duel_run(search, outcome);
}

tune_point tune_search_get_best(const tune_search *search, double *ret_log, double *ret_noise)
{
    tune_point point = search->best;

    *ret_log = 0;
    *ret_noise = INFINITY;
    if (search->state == TUNE_STAGE) {
        const tune_rival *best = tune_stage_get_best_rival(search);
        point.choice[search->key] = best->choice;
        *ret_log = best->log;
        *ret_noise = tune_stage_get_noise(search);
    } else if (search->pairs >= TUNE_PAIRS_MIN) {
        tune_interval interval = tune_interval_of_median(search->pair_logs, search->pairs);
        *ret_log = interval.middle;
        *ret_noise = (interval.high - interval.low) / 2;
    }
    return point;
}
