/* Summaries of the runs of `domus tune`: medians of candidates, the Pareto front, and the ratios of
 * the duel. */
#include "tools/domus/tune/record.h"

#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>

#define RECORDS_MAX 32

static tune_record each[RECORDS_MAX];
static tune_search search;
static tune_records records;

static void set_up(void)
{
    search = (tune_search){.verdict = TUNE_SAME};
    records = (tune_records){.search = &search, .goal = "rate", .each = each};
}

/* Add a run with a value of the only key. Returns the record. */
static tune_record *add_record(uint8_t value, double rate, double p99)
{
    ck_assert_uint_lt(records.count, RECORDS_MAX);
    tune_record *record = &each[records.count++];
    *record = (tune_record){.point = {{value}}};
    ck_assert(tune_figures_set(&record->figures, "rate", rate));
    if (!isnan(p99))
        ck_assert(tune_figures_set(&record->figures, "p99", p99));
    return record;
}

DOMT_TEST(candidates_have_the_medians_of_their_runs)
{
    size_t count;

    set_up();
    add_record(0, 1, 9)->is_check = true;
    (void)add_record(0, 10, 3);
    add_record(1, 20, NAN)->round = 1; /* no other run belongs to this round */
    (void)add_record(0, 30, 4);
    (void)add_record(0, 11, 5);
    add_record(0, 90, 90)->has_failed = true;
    add_record(2, 90, 90)->has_failed = true;
    tune_spot *spots = tune_records_spots(&records, &count);
    ck_assert_ptr_nonnull(spots);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(spots[0].runs, 3);
    ck_assert_double_eq(spots[0].values[0], 11);
    ck_assert_double_eq(spots[0].values[1], 4);
    ck_assert_uint_eq(spots[1].point.choice[0], 1);
    ck_assert_uint_eq(spots[1].runs, 1);
    ck_assert(isnan(spots[1].values[1]) && isnan(spots[1].values[2]));
    free(spots);
}

/* The machine becomes faster from round to round, and value 2 has only early runs: it still counts
 * as better than today's value. The best value of key 0 is used while key 1 is tried. */
DOMT_TEST(figures_are_compared_within_rounds)
{
    size_t count;

    set_up();
    for (size_t round = 0; round < 3; round++) {
        double drift = (double)(1 + round);
        add_record(0, 10 * drift, NAN)->round = round;
        add_record(1, 12 * drift, NAN)->round = round;
        if (round == 0)
            add_record(2, 11 * drift, NAN)->round = round;
    }
    for (uint8_t value = 0; value < 2; value++) {
        tune_record *record = add_record(1, 50 + 5 * value, NAN);
        record->key = 1;
        record->point.choice[1] = value;
    }
    tune_spot *spots = tune_records_spots(&records, &count);
    ck_assert_ptr_nonnull(spots);
    ck_assert_uint_eq(count, 4);
    ck_assert_double_eq_tol(spots[0].values[0], 20, 1e-9);
    ck_assert_double_eq_tol(spots[1].values[0], 24, 1e-9);
    ck_assert_double_eq_tol(spots[2].values[0], 22, 1e-9);
    ck_assert_double_eq_tol(spots[3].values[0], 26.4, 1e-9);
    free(spots);
}

/* Value 1 is the fastest, value 2 has the least latency, value 3 is worse than today's in both, and
 * value 4 is the same as today's. */
DOMT_TEST(the_front_has_those_that_none_surpasses)
{
    static const bool wanted[] = {true, true, true, false, true};
    size_t count;

    set_up();
    (void)add_record(0, 10, 5);
    (void)add_record(1, 12, 6);
    (void)add_record(2, 8, 4);
    (void)add_record(3, 9, 6);
    (void)add_record(4, 10, 5);
    tune_spot *spots = tune_records_spots(&records, &count);
    ck_assert_ptr_nonnull(spots);
    ck_assert_uint_eq(count, 5);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(spots[i].is_front == wanted[i], "value %zu", i);
    free(spots);
}

/* The ratio is computed from pairs of runs in either order; runs of earlier stages do not count. */
DOMT_TEST(effects_are_those_of_the_duel)
{
    tune_interval ratio;

    set_up();
    search.best = (tune_point){{1}};
    search.pairs = 6;
    for (size_t pair = 0; pair < 6; pair++) {
        double drift = (double)(pair + 1);
        for (int i = 0; i < 2; i++) {
            bool is_best = (pair % 2 == 0) == (i == 0);
            tune_record *record =
                is_best ? add_record(1, 12 * drift, NAN) : add_record(0, 10 * drift, 1);
            record->is_duel = true;
            record->round = pair;
        }
    }
    (void)add_record(1, 500, 1);
    ck_assert(tune_records_effect(&records, "rate", &ratio));
    ck_assert_double_eq_tol(ratio.low, 1.2, 1e-9);
    ck_assert_double_eq_tol(ratio.high, 1.2, 1e-9);
    ck_assert(!tune_records_effect(&records, "p99", &ratio));
    search.pairs = 5;
    ck_assert(!tune_records_effect(&records, "rate", &ratio));
}

DOMT_TEST(the_best_wins_only_if_the_duel_says_so)
{
    set_up();
    search.best = (tune_point){{1}};
    for (int verdict = TUNE_OPEN; verdict < TUNE_VERDICTS; verdict++) {
        search.verdict = (tune_verdict)verdict;
        tune_point winner = tune_records_winner(&records);
        ck_assert_uint_eq(winner.choice[0], verdict == TUNE_BETTER || verdict == TUNE_KEEPS);
    }
}

DOMT_SUITE(20)
