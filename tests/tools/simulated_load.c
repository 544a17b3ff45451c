/* A simulated load for `domus tune`, and searches with it; simulated_load.h describes them. */
#include "tests/tools/simulated_load.h"

#include <math.h>

/* Returns a random deviation from -1 to 1, roughly of the normal distribution. */
static double draw_random_deviation(domt_simulated_load *load)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (double)(tune_next_random_number(&load->chance) >> 11) / (double)(1ull << 53);
    return sum - 6;
}

static double multiply_changes_of_candidate(const domt_percents *percents, const tune_point *point)
{
    double all = 1;

    for (size_t key = 0; key < TUNE_KEYS_MAX; key++)
        all *= 1 + percents->at[key][point->choice[key]] / 100;
    return all;
}

double domt_simulated_rate_of_candidate(const domt_simulated_load *load, const tune_point *point)
{
    return multiply_changes_of_candidate(&load->percents, point);
}

double domt_simulated_latency_of_candidate(const domt_simulated_load *load, const tune_point *point)
{
    return multiply_changes_of_candidate(&load->p99s, point);
}

/* Go to the next combination of values of a plan. Returns whether there is one. */
static bool advance_to_next_combination(const tune_plan *plan, tune_point *point)
{
    for (size_t key = 0; key < plan->keys; key++) {
        if (point->choice[key]++ < plan->values[key])
            return true;
        point->choice[key] = 0;
    }
    return false;
}

double domt_simulated_best_rate_of_plan(const domt_simulated_load *load, const tune_plan *plan)
{
    tune_point point = {{0}};
    double best = 0;

    do {
        if (load->p99_most == 0 ||
            multiply_changes_of_candidate(&load->p99s, &point) <= load->p99_most)
            best = fmax(best, domt_simulated_rate_of_candidate(load, &point));
    } while (advance_to_next_combination(plan, &point));
    return best;
}

tune_outcome domt_simulated_run_candidate(domt_simulated_load *load, const tune_point *point)
{
    double p99 = multiply_changes_of_candidate(&load->p99s, point) *
                 exp(draw_random_deviation(load) * load->noise / 100);

    load->drifted += draw_random_deviation(load) * load->drift / 100;
    tune_outcome outcome = {
        .goal = domt_simulated_rate_of_candidate(load, point) *
                exp(load->drifted + draw_random_deviation(load) * load->noise / 100)};
    if (tune_next_random_number(&load->chance) % 100 < load->wild)
        outcome.goal *= 0.8;
    if (load->p99_most > 0)
        outcome.broken = fmax(0, log(p99 / load->p99_most));
    return outcome;
}

void domt_simulated_run_search(domt_simulated_load *load, const tune_plan *plan,
                               tune_search *search)
{
    tune_point point;

    load->chance = ~plan->seed;
    tune_search_begin_first_stage(search, plan);
    while (tune_search_get_candidate_of_next_run(search, &point)) {
        tune_outcome outcome = domt_simulated_run_candidate(load, &point);
        tune_search_use_outcome_of_run(search, &outcome);
    }
}
