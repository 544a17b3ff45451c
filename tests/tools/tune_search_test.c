/* The search of `domus tune` with simulated loads, and its statistics.
 *
 * The loads have three keys with four values each, besides today's: a sweep of all combinations,
 * with ten rounds of each, takes 1,250 runs. Each claim is checked for 100 seeds. */
#include "tools/domus/tune/search.h"

#include "tests/support/suite.h"
#include "tests/tools/simulated_load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEEDS 100

static tune_plan make_plan_of_keys(size_t keys, size_t values)
{
    tune_plan plan = {.keys = keys, .is_more_better = true, .least = log(1.02), .pairs = 9};

    for (size_t i = 0; i < keys; i++)
        plan.values[i] = values;
    plan.runs_max = tune_plan_usual_number_of_runs(&plan);
    return plan;
}

/* Results of the searches with one load, summed over all seeds. */
struct tally {
    uint32_t near;   /* number of searches whose winner has a rate within 5 % of the best */
    uint32_t broken; /* number of searches whose winner exceeds the limit */
    uint32_t verdicts[TUNE_VERDICTS];
    double runs; /* mean number of runs that a search takes */
    size_t runs_most;
};

static struct tally search_with_all_seeds(const domt_simulated_load *model, tune_plan plan)
{
    double best = domt_simulated_best_rate_of_plan(model, &plan);
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        domt_simulated_load load = *model;
        tune_search search;
        plan.seed = seed;
        domt_simulated_run_search(&load, &plan, &search);
        bool is_changed = search.verdict == TUNE_BETTER || search.verdict == TUNE_KEEPS;
        tune_point point = is_changed ? search.best : (tune_point){{0}};
        tally.near += domt_simulated_rate_of_candidate(&load, &point) >= 0.95 * best;
        tally.broken +=
            domt_simulated_latency_of_candidate(&load, &point) > load.p99_most && load.p99_most > 0;
        tally.verdicts[search.verdict]++;
        tally.runs += (double)search.runs / SEEDS;
        tally.runs_most = search.runs > tally.runs_most ? search.runs : tally.runs_most;
        ck_assert_uint_le(search.runs, plan.runs_max);
    }
    printf("near %u, better %u, same %u, keeps %u, broken %u, runs %.1f, most %zu\n", tally.near,
           tally.verdicts[TUNE_BETTER], tally.verdicts[TUNE_SAME], tally.verdicts[TUNE_KEEPS],
           tally.verdicts[TUNE_BROKEN], tally.runs, tally.runs_most);
    return tally;
}

/* --- results of searches ---------------------------------------------------------------------- */

/* Loads in which one key changes the rate much, one a little, and one not at all. */
static const domt_simulated_load loads_with_a_best[] = {
    {.percents = {{{0, -8, -3, 6, 12}, {0}, {0, -20, 3, 5, -2}}}, .noise = 1, .drift = 0.5},
    {.percents = {{{0, -8, -3, 6, 12}, {0}, {0, -20, 3, 5, -2}}}, .noise = 2, .drift = 1},
    {.percents = {{{0}, {0, -1, -2, -3, -4}, {0, -8, 8, 2, -2}}},
     .noise = 1,
     .drift = 1,
     .wild = 2},
    {.percents = {{{0, 30, 20, 2, -60}, {0, -50, 0, 0, 1}, {0}}},
     .noise = 3,
     .drift = 2,
     .wild = 2},
    /* In this load today's values are the best. */
    {.percents = {{{0, -30, -10, -2, -2}, {0, -1, -2, -3, -4}, {0, -5, 0, 0, 0}}}, .noise = 2},
};

DOMT_TEST(best_is_found_in_a_tenth_of_sweep_runs)
{
    tune_plan plan = make_plan_of_keys(3, 4);

    ck_assert_double_eq(tune_plan_number_of_runs_of_full_sweep(&plan), 1250);
    for (size_t i = 0; i < sizeof loads_with_a_best / sizeof loads_with_a_best[0]; i++) {
        struct tally tally = search_with_all_seeds(&loads_with_a_best[i], plan);
        ck_assert_uint_ge(tally.near, 95);
        ck_assert_double_le((double)tally.runs_most,
                            tune_plan_number_of_runs_of_full_sweep(&plan) / 10);
    }
}

static const domt_simulated_load loads_without_difference[] = {
    {.noise = 0.3, .drift = 0.3},
    {.noise = 2, .drift = 1},
    {.noise = 5, .drift = 5, .wild = 5},
};

DOMT_TEST(equal_values_give_verdict_of_no_difference)
{
    for (size_t i = 0; i < sizeof loads_without_difference / sizeof loads_without_difference[0];
         i++) {
        struct tally tally =
            search_with_all_seeds(&loads_without_difference[i], make_plan_of_keys(3, 4));
        ck_assert_uint_ge(tally.verdicts[TUNE_SAME], 95);
    }
}

/* With little noise two rounds of each stage are enough, and there is no duel. */
DOMT_TEST(search_ends_early_without_noise_or_difference)
{
    domt_simulated_load load = {.noise = 0.1};

    ck_assert_double_le(search_with_all_seeds(&load, make_plan_of_keys(3, 4)).runs, 31);
}

/* Value 4 of the only key has the best rate, and exceeds the limit of the latency. */
DOMT_TEST(winner_keeps_limit_of_latency)
{
    domt_simulated_load load = {.percents = {{{0, -8, 8, 12, 25}}},
                                .p99s = {{{0, 0, 5, 10, 60}}},
                                .p99_most = 1.3,
                                .noise = 2};

    struct tally tally = search_with_all_seeds(&load, make_plan_of_keys(2, 4));
    ck_assert_uint_ge(tally.near, 95);
    ck_assert_uint_eq(tally.broken, 0);
}

/* Today's values exceed the limit of the latency; the value that keeps it has a smaller rate. */
DOMT_TEST(slower_value_wins_if_today_breaks_limit)
{
    domt_simulated_load load = {.percents = {{{0, -10, 8, 12, 25}}},
                                .p99s = {{{0, -40, 5, 10, 60}}},
                                .p99_most = 0.8,
                                .noise = 2};

    ck_assert_uint_ge(search_with_all_seeds(&load, make_plan_of_keys(1, 4)).verdicts[TUNE_KEEPS],
                      99);
    load.p99_most = 0.3;
    ck_assert_uint_ge(search_with_all_seeds(&load, make_plan_of_keys(1, 4)).verdicts[TUNE_BROKEN],
                      99);
}

/* --- single searches -------------------------------------------------------------------------- */

/* Count the runs of each value of one key, for a load whose values 1 to `bad` have a fifth less
 * rate; the other values are equal to today's. */
static void count_runs_of_each_value(size_t values, size_t bad, uint64_t seed, size_t *ret_runs)
{
    tune_plan plan = make_plan_of_keys(1, values);
    domt_simulated_load load = {.noise = 2, .chance = seed};
    tune_search search;
    tune_point point;

    plan.seed = seed;
    for (size_t i = 1; i <= bad; i++)
        load.percents.at[0][i] = -20;
    tune_search_begin_first_stage(&search, &plan);
    while (tune_search_get_candidate_of_next_run(&search, &point) && search.state == TUNE_STAGE) {
        ret_runs[point.choice[0]]++;
        tune_outcome outcome = domt_simulated_run_candidate(&load, &point);
        tune_search_use_outcome_of_run(&search, &outcome);
    }
}

/* Two of four values are bad, and are dropped after the second round. The worse half of 16 values
 * is dropped after the first round. */
DOMT_TEST(worse_half_of_values_is_dropped)
{
    size_t few[5] = {0}, many[17] = {0};

    for (uint64_t seed = 0; seed < 10; seed++) {
        count_runs_of_each_value(4, 2, seed, few);
        count_runs_of_each_value(16, 8, seed, many);
    }
    ck_assert_uint_eq(few[1], 20);
    ck_assert_uint_eq(few[2], 20);
    ck_assert_uint_ge(few[0], 40);
    for (size_t i = 1; i <= 8; i++)
        ck_assert_uint_eq(many[i], 10);
    ck_assert_uint_ge(many[0], 30);
}

/* The best value of the key has one bad round, and is not dropped. */
DOMT_TEST(one_bad_round_drops_no_value)
{
    tune_plan plan = make_plan_of_keys(1, 4);
    tune_search search;
    tune_point point;
    size_t runs[5] = {0};

    tune_search_begin_first_stage(&search, &plan);
    while (tune_search_get_candidate_of_next_run(&search, &point)) {
        size_t value = point.choice[0];
        tune_outcome outcome = {.goal = value == 4 ? 120 : 100 + (double)value};
        if (++runs[value] == 2 && value == 4)
            outcome.goal = 60;
        tune_search_use_outcome_of_run(&search, &outcome);
    }
    ck_assert_int_eq(search.verdict, TUNE_BETTER);
    ck_assert_uint_eq(search.best.choice[0], 4);
}

/* The goal is a figure that should be small, and value 1 of the key has a smaller one. */
DOMT_TEST(goal_may_be_a_small_figure)
{
    tune_plan plan = make_plan_of_keys(1, 2);
    tune_search search;
    tune_point point;

    plan.is_more_better = false;
    tune_search_begin_first_stage(&search, &plan);
    while (tune_search_get_candidate_of_next_run(&search, &point)) {
        tune_outcome outcome = {.goal = point.choice[0] == 1 ? 9 : 10};
        tune_search_use_outcome_of_run(&search, &outcome);
    }
    ck_assert_int_eq(search.verdict, TUNE_BETTER);
    ck_assert_uint_eq(search.best.choice[0], 1);
    ck_assert_double_eq_tol(search.interval.middle, log(10.0 / 9), 1e-9);
}

/* The best value of the key fails in every run; the second best fails from its second run on. */
DOMT_TEST(failing_candidate_is_dropped)
{
    tune_plan plan = make_plan_of_keys(1, 3);
    tune_search search;
    tune_point point;
    size_t runs[4] = {0};

    tune_search_begin_first_stage(&search, &plan);
    while (tune_search_get_candidate_of_next_run(&search, &point)) {
        size_t value = point.choice[0];
        runs[value]++;
        tune_outcome outcome = {.has_failed = value == 3 || (value == 2 && runs[2] > 1),
                                .goal = 10 + (double)value};
        tune_search_use_outcome_of_run(&search, &outcome);
    }
    ck_assert_uint_eq(runs[3], 1);
    ck_assert_uint_eq(runs[2], 2);
    ck_assert_int_eq(search.verdict, TUNE_BETTER);
    ck_assert_uint_eq(search.best.choice[0], 1);
}

/* Search with a load in which today's value fails after `good` runs, and check that the search
 * ends. */
static void search_until_today_fails(size_t good)
{
    tune_plan plan = make_plan_of_keys(1, 1);
    tune_search search;
    tune_point point;
    size_t runs = 0;

    tune_search_begin_first_stage(&search, &plan);
    while (tune_search_get_candidate_of_next_run(&search, &point)) {
        bool is_today = tune_point_has_only_todays_values(&point);
        runs += is_today;
        tune_outcome outcome = {.has_failed = is_today && runs > good, .goal = is_today ? 10 : 12};
        tune_search_use_outcome_of_run(&search, &outcome);
    }
    ck_assert_int_eq(search.verdict, TUNE_BASE_LOST);
    ck_assert_uint_eq(runs, good + 1);
}

DOMT_TEST(search_ends_if_todays_value_fails)
{
    search_until_today_fails(1); /* today's value fails in the second round of the stage */
    search_until_today_fails(8); /* today's value fails in the duel at the end of the search */
}

/* Search with a key whose best value has a rate that is a fifth larger in its stage, and whose runs
 * in the duel have the outcome `in_duel`. Returns the verdict. */
static tune_verdict search_with_outcome_of_duel(tune_outcome in_duel, size_t *ret_pairs)
{
    tune_plan plan = make_plan_of_keys(1, 1);
    tune_search search;
    tune_point point;

    tune_search_begin_first_stage(&search, &plan);
    while (tune_search_get_candidate_of_next_run(&search, &point)) {
        bool is_today = tune_point_has_only_todays_values(&point);
        tune_outcome outcome = {.goal = is_today ? 10 : 12};
        if (!is_today && search.state == TUNE_DUEL)
            outcome = in_duel;
        tune_search_use_outcome_of_run(&search, &outcome);
    }
    *ret_pairs = search.pairs;
    return search.verdict;
}

/* A value that was the best and loses the duel does not win, and there is a verdict for each way to
 * lose. */
DOMT_TEST(lost_duel_has_its_verdict)
{
    size_t pairs;

    ck_assert_int_eq(search_with_outcome_of_duel((tune_outcome){.has_failed = true}, &pairs),
                     TUNE_FAILS);
    ck_assert_uint_eq(pairs, 0);
    ck_assert_int_eq(search_with_outcome_of_duel((tune_outcome){.goal = 12, .broken = 0.1}, &pairs),
                     TUNE_BREAKS);
    ck_assert_uint_eq(pairs, 9);
    ck_assert_int_eq(search_with_outcome_of_duel((tune_outcome){.goal = 9}, &pairs), TUNE_WORSE);
    ck_assert_int_eq(search_with_outcome_of_duel((tune_outcome){.goal = 10}, &pairs), TUNE_SAME);
    ck_assert_int_eq(search_with_outcome_of_duel((tune_outcome){.goal = 12}, &pairs), TUNE_BETTER);
}

/* With the smallest allowed number of runs each value runs once, and the duel still has all its
 * pairs. */
DOMT_TEST(limit_of_runs_leaves_room_for_duel)
{
    domt_simulated_load load = {.percents = {{{0, 20, 1}, {0, 1, 20}}}, .noise = 1};
    tune_plan plan = make_plan_of_keys(2, 2);
    tune_search search;

    plan.runs_max = tune_plan_least_number_of_runs(&plan);
    ck_assert_uint_eq(plan.runs_max, 6 + 18);
    domt_simulated_run_search(&load, &plan, &search);
    ck_assert_int_eq(search.verdict, TUNE_BETTER);
    ck_assert_uint_eq(search.runs, plan.runs_max);
    ck_assert_uint_eq(search.best.choice[0], 1);
    ck_assert_uint_eq(search.best.choice[1], 2);
}

DOMT_TEST(same_seed_repeats_order_of_runs)
{
    tune_search searches[3];
    tune_point points[3][40];
    const uint64_t seeds[3] = {7, 7, 8};

    for (size_t i = 0; i < 3; i++) {
        tune_plan plan = make_plan_of_keys(2, 16);
        plan.seed = seeds[i];
        tune_search_begin_first_stage(&searches[i], &plan);
        for (size_t run = 0; run < 40; run++) {
            ck_assert(tune_search_get_candidate_of_next_run(&searches[i], &points[i][run]));
            tune_search_use_outcome_of_run(&searches[i],
                                           &(tune_outcome){.goal = 1 + points[i][run].choice[0]});
        }
    }
    ck_assert_mem_eq(points[0], points[1], sizeof points[0]);
    ck_assert_mem_ne(points[0], points[2], sizeof points[0]);
}

/* --- statistics ------------------------------------------------------------------------------- */

DOMT_TEST(medians_and_intervals_are_computed)
{
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    const double nine[] = {9, 1, 8, 2, 7, 3, 6, 4, -100};

    ck_assert_double_eq(tune_sort_and_get_median(odd, 3), 3);
    ck_assert_double_eq(tune_sort_and_get_median(even, 4), 2.5);
    /* The confidence interval of the median of six values reaches from the least to the
     * greatest. */
    tune_interval interval = tune_95_percent_interval_of_median(nine, 6);
    ck_assert_double_eq(interval.low, 1);
    ck_assert_double_eq(interval.high, 9);
    /* The confidence interval of the median of nine values leaves out one value at each end. */
    interval = tune_95_percent_interval_of_median(nine, 9);
    ck_assert_double_eq(interval.low, 1);
    ck_assert_double_eq(interval.middle, 4);
    ck_assert_double_eq(interval.high, 8);
}

/* The interval misses the median with at most 2.5 % on each side, by the binomial distribution, and
 * with more if one more value were left out. */
DOMT_TEST(intervals_contain_median_in_95_percent)
{
    for (size_t count = TUNE_PAIRS_MIN; count <= TUNE_PAIRS_MAX; count++) {
        double values[TUNE_PAIRS_MAX], way = pow(0.5, (double)count), missed = 0;
        for (size_t i = 0; i < count; i++)
            values[i] = (double)i;
        tune_interval interval = tune_95_percent_interval_of_median(values, count);
        size_t out = (size_t)interval.low;
        ck_assert_double_eq(interval.high, (double)(count - 1 - out));
        for (size_t i = 0; i <= out; i++) {
            missed += way;
            way *= (double)(count - i) / (double)(i + 1);
        }
        ck_assert_double_le(missed, 0.025);
        ck_assert_double_gt(missed + way, 0.025);
    }
}

DOMT_SUITE(60)
