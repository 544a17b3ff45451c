/* The search for the best values of keys (search.h). */
#include "tools/domus/tune/search.h"

#include "tools/domus/tune/parts.h"

#include <math.h>
#include <string.h>

bool tune_point_has_only_todays_values(const tune_point *point)
{
    for (size_t key = 0; key < TUNE_KEYS_MAX; key++) {
        if (point->choice[key] != 0)
            return false;
    }
    return true;
}

/* --- counting the runs of a plan -------------------------------------------------------------- */

/* Returns how many runs one round of each stage of the search takes together. */
static size_t count_runs_of_one_round_per_stage(const tune_plan *plan)
{
    size_t runs = 0;

    for (size_t key = 0; key < plan->keys; key++)
        runs += plan->values[key] + 1;
    return runs;
}

size_t tune_plan_least_number_of_runs(const tune_plan *plan)
{
    return count_runs_of_one_round_per_stage(plan) + 2 * plan->pairs;
}

size_t tune_plan_usual_number_of_runs(const tune_plan *plan)
{
    return 4 * count_runs_of_one_round_per_stage(plan) + 2 * plan->pairs;
}

double tune_plan_number_of_runs_of_full_sweep(const tune_plan *plan)
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
static void decide_verdict_of_duel_and_end_search(tune_search *search)
{
    double today = tune_sort_and_get_median(search->pair_brokens[0], search->pairs);
    double best = tune_sort_and_get_median(search->pair_brokens[1], search->pairs);

    search->interval = tune_95_percent_interval_of_median(search->pair_logs, search->pairs);
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

static void record_duel_pair_and_end_after_last(tune_search *search, const tune_outcome *today,
                                                const tune_outcome *best)
{
    double log_ratio = log(best->goal / today->goal);

    search->pair_logs[search->pairs] = search->plan.is_more_better ? log_ratio : -log_ratio;
    search->pair_brokens[0][search->pairs] = today->broken;
    search->pair_brokens[1][search->pairs] = best->broken;
    search->is_today_first = !search->is_today_first;
    if (++search->pairs == search->plan.pairs)
        decide_verdict_of_duel_and_end_search(search);
}

/* Handle the outcome of a run in the duel. If the best candidate fails in it, it is no better than
 * today's configuration. */
static void use_outcome_of_run_in_duel(tune_search *search, const tune_outcome *outcome)
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
        record_duel_pair_and_end_after_last(search, outcome, &search->first);
    else
        record_duel_pair_and_end_after_last(search, &search->first, outcome);
}

/* --- the stages ------------------------------------------------------------------------------- */

/* Continue the search after a stage: with the next key, with the duel, or with nothing. */
static void end_stage_and_begin_what_follows(tune_search *search)
{
    bool is_broken = tune_stage_choose_value_for_key(search);

    if (search->verdict != TUNE_OPEN)
        end_search_with_verdict(search, search->verdict);
    else if (++search->key < search->plan.keys)
        tune_stage_begin_with_values_of_key(search);
    else if (!tune_point_has_only_todays_values(&search->best))
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

static void use_outcome_of_run_in_stage(tune_search *search, const tune_outcome *outcome)
{
    search->outcomes[search->order[search->at]] = *outcome;
    if (++search->at < search->order_count)
        return;
    bool goes_on = tune_stage_rate_rivals_after_round(search);
    if (!goes_on || !has_runs_left_for_round(search))
        end_stage_and_begin_what_follows(search);
}

/* --- the functions for callers ---------------------------------------------------------------- */

void tune_search_begin_first_stage(tune_search *search, const tune_plan *plan)
{
    memset(search, 0, sizeof *search);
    search->plan = *plan;
    search->chance = plan->seed;
    search->noise = -1;
    tune_stage_begin_with_values_of_key(search);
}

bool tune_search_get_candidate_of_next_run(tune_search *search, tune_point *ret_point)
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

void tune_search_use_outcome_of_run(tune_search *search, const tune_outcome *outcome)
{
    search->runs++;
    if (search->state == TUNE_STAGE)
        use_outcome_of_run_in_stage(search, outcome);
    else if (search->state == TUNE_DUEL)
        use_outcome_of_run_in_duel(search, outcome);
}

tune_point tune_search_get_best_candidate_so_far(const tune_search *search, double *ret_log,
                                                 double *ret_noise)
{
    tune_point point = search->best;

    *ret_log = 0;
    *ret_noise = INFINITY;
    if (search->state == TUNE_STAGE) {
        const tune_rival *best = tune_stage_get_best_rival(search);
        point.choice[search->key] = best->choice;
        *ret_log = best->log;
        *ret_noise = tune_stage_noise_of_rival_figure(search);
    } else if (search->pairs >= TUNE_PAIRS_MIN) {
        tune_interval interval =
            tune_95_percent_interval_of_median(search->pair_logs, search->pairs);
        *ret_log = interval.middle;
        *ret_noise = (interval.high - interval.low) / 2;
    }
    return point;
}
