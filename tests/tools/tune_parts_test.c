/* Parts of `domus tune`: the keys whose values it tries, the summaries of its runs, and the shell
 * commands of services. */
#include "tests/support/suite.h"
#include "tools/domus/tune/keys.h"
#include "tools/domus/tune/parts.h"
#include "tools/domus/tune/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The keys whose values `domus tune` tries: their names, their values, and how a candidate is
 * written. */

static tune_keys keys;

static const tune_key *key_of_number(size_t number)
{
    ck_assert_uint_lt(number, keys.count);
    return &keys.each[number];
}

DOMT_TEST(keys_are_found_by_end_of_path)
{
    keys.count = 0;
    ck_assert_msg(
        tune_keys_add_comma_list_of_names(&keys, "ioRatio,idle.spin,scheduler.steal.floor"), "%s",
        keys.error);
    ck_assert_msg(tune_keys_add_comma_list_of_names(&keys, "pools.work.throughput"), "%s",
                  keys.error);
    ck_assert_str_eq(key_of_number(0)->path, "scheduler.ioRatio");
    ck_assert_uint_eq(key_of_number(0)->count, 4);
    ck_assert_str_eq(key_of_number(0)->values[0], "20");
    ck_assert_str_eq(key_of_number(1)->path, "scheduler.idle.spin");
    ck_assert_str_eq(key_of_number(2)->path, "scheduler.steal.floor");
    ck_assert_str_eq(key_of_number(3)->path, "pools.work.throughput");
    ck_assert_str_eq(key_of_number(3)->values[3], "256");
}

DOMT_TEST(given_values_replace_default_values)
{
    keys.count = 0;
    ck_assert(tune_keys_add_comma_list_of_names(&keys, "ioRatio"));
    ck_assert(tune_keys_set_values_to_try(&keys, "ioRatio=30,70"));
    ck_assert(tune_keys_set_values_to_try(&keys, "web.shards=1,8"));
    ck_assert(tune_keys_set_values_to_try(&keys, "pools.work.throughput=9"));
    ck_assert_uint_eq(keys.count, 3);
    ck_assert_uint_eq(key_of_number(0)->count, 2);
    ck_assert_str_eq(key_of_number(0)->path, "scheduler.ioRatio");
    ck_assert_str_eq(key_of_number(0)->values[1], "70");
    ck_assert_str_eq(key_of_number(1)->path, "web.shards");
    ck_assert_str_eq(key_of_number(2)->values[0], "9");
}

DOMT_TEST(all_keys_but_pools_are_tried_by_default)
{
    keys.count = 0;
    tune_keys_add_all_of_table(&keys);
    ck_assert_uint_eq(keys.count, 13);
    for (size_t i = 0; i < keys.count; i++)
        ck_assert_ptr_null(strstr(keys.each[i].path, "pools"));
}

DOMT_TEST(wrong_tune_keys_and_values_are_refused)
{
    static const struct {
        const char *names, *values, *error;
    } wrong[] = {
        {"ratio", NULL, "'ratio' is no key with values of its own: name them by --values"},
        {"Ratio", NULL, "'Ratio' is no key with values of its own: name them by --values"},
        {"oRatio", NULL, "'oRatio' is no key with values of its own: name them by --values"},
        {"", NULL, "'' is no key"},
        {"ioRatio,", NULL, "'' is no key"},
        {"a b", NULL, "'a b' is no key"},
        {"ioRatio,ioRatio", NULL, "'scheduler.ioRatio' is there twice"},
        {"pools..throughput", NULL, "'pools..throughput' is no key"},
        {NULL, "ioRatio", "'ioRatio' is not KEY=VALUE,VALUE"},
        {NULL, "=5", "'=5' is not KEY=VALUE,VALUE"},
        {NULL, "a.b=", "'' has a value that is empty, too long or there twice"},
        {NULL, "a.b=1,,2", "'1,,2' has a value that is empty, too long or there twice"},
        {NULL, "a.b=1,2,1", "'1,2,1' has a value that is empty, too long or there twice"},
        {NULL, "a.b=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "'a.b' has more than 16 values"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        keys.count = 0;
        ck_assert(wrong[i].names != NULL ? !tune_keys_add_comma_list_of_names(&keys, wrong[i].names)
                                         : !tune_keys_set_values_to_try(&keys, wrong[i].values));
        ck_assert_str_eq(keys.error, wrong[i].error);
    }
}

DOMT_TEST(number_of_tuned_keys_is_limited)
{
    char text[16];

    keys.count = 0;
    for (int i = 0; i < 16; i++) {
        snprintf(text, sizeof text, "a.k%d=1", i);
        ck_assert(tune_keys_set_values_to_try(&keys, text));
    }
    ck_assert(!tune_keys_set_values_to_try(&keys, "a.k16=1"));
    ck_assert_str_eq(keys.error, "'a.k16' is one key more than 16");
    ck_assert(tune_keys_set_values_to_try(&keys, "a.k15=2"));
}

/* Write a candidate with the last value of each of these keys as YAML. */
static void write_last_values_as_yaml(const char *const *texts, char *ret_text, size_t size)
{
    tune_point point = {{0}};
    FILE *out = fmemopen(ret_text, size, "w");

    keys.count = 0;
    for (; *texts != NULL; texts++)
        ck_assert_msg(tune_keys_set_values_to_try(&keys, *texts), "%s", keys.error);
    for (size_t i = 0; i < keys.count; i++)
        point.choice[i] = (uint8_t)keys.each[i].count;
    ck_assert_ptr_nonnull(out);
    tune_keys_write_yaml(&keys, &point, out);
    ck_assert_int_eq(fclose(out), 0);
}

DOMT_TEST(yaml_groups_keys_with_common_prefix)
{
    char text[512];

    write_last_values_as_yaml((const char *const[]){"ioRatio=30,70", "io.buffers.size=8KiB",
                                                    "steal.floor=8", "io.buffers.count=256",
                                                    "idle.spin=0", NULL},
                              text, sizeof text);
    ck_assert_str_eq(text, "scheduler:\n"
                           "  ioRatio: 70\n"
                           "  steal:\n"
                           "    floor: 8\n"
                           "  idle:\n"
                           "    spin: 0\n"
                           "io:\n"
                           "  buffers:\n"
                           "    size: 8KiB\n"
                           "    count: 256\n");
}

/* YAML of a candidate has no elements of lists, because a list in one file replaces the whole list
 * of another file. */
DOMT_TEST(yaml_contains_no_list_elements)
{
    char text[512];

    write_last_values_as_yaml((const char *const[]){"pools.work.throughput=8", "poolsize.a=1",
                                                    "ioRatio=30", "listeners.web.backlog=9", NULL},
                              text, sizeof text);
    ck_assert_str_eq(text, "poolsize:\n"
                           "  a: 1\n"
                           "scheduler:\n"
                           "  ioRatio: 30\n");
    ck_assert(tune_keys_is_key_of_pool_or_listener(&keys, 0) &&
              !tune_keys_is_key_of_pool_or_listener(&keys, 1));
    ck_assert(tune_keys_is_key_of_pool_or_listener(&keys, 3) &&
              !tune_keys_is_key_of_pool_or_listener(&keys, 2));
}

DOMT_TEST(yaml_quotes_odd_values)
{
    char text[512];

    write_last_values_as_yaml((const char *const[]){"a.b=it's: #1", NULL}, text, sizeof text);
    ck_assert_str_eq(text, "a:\n  b: 'it''s: #1'\n");
}

DOMT_TEST(candidates_are_shown_as_text)
{
    char text[128];
    tune_point point = {{2, 0, 1}};

    keys.count = 0;
    ck_assert(tune_keys_set_values_to_try(&keys, "ioRatio=30,70") &&
              tune_keys_set_values_to_try(&keys, "a.b=1") &&
              tune_keys_set_values_to_try(&keys, "io.buffers.size=8KiB"));
    tune_keys_describe_candidate(&keys, &point, text, sizeof text);
    ck_assert_str_eq(text, "ioRatio=70 io.buffers.size=8KiB");
    tune_keys_describe_candidate(&keys, &point, text, 10);
    ck_assert_str_eq(text, "ioRatio=7");
    tune_keys_write_key_equals_value(&keys, &point, 2, text, sizeof text);
    ck_assert_str_eq(text, "io.buffers.size=8KiB");
    tune_keys_describe_candidate(&keys, &(tune_point){{0}}, text, sizeof text);
    ck_assert_str_eq(text, "today's values");
}

/* --- tune record ------------------------------------------------------------------------------ */

/* Summaries of the runs of `domus tune`: medians of candidates, the Pareto front, and the ratios of
 * the duel. */

#define RECORDS_MAX 32

static tune_record each[RECORDS_MAX];
static tune_search search;
static tune_records records;

static void begin_empty_records(void)
{
    search = (tune_search){.verdict = TUNE_SAME};
    records = (tune_records){.search = &search, .goal = "rate", .each = each};
}

/* Add a run with this value of the only key. Returns the record of the run. */
static tune_record *add_record_of_run(uint8_t value, double rate, double p99)
{
    ck_assert_uint_lt(records.count, RECORDS_MAX);
    tune_record *record = &each[records.count++];
    *record = (tune_record){.point = {{value}}};
    ck_assert(tune_figures_set_figure(&record->figures, "rate", rate));
    if (!isnan(p99))
        ck_assert(tune_figures_set_figure(&record->figures, "p99", p99));
    return record;
}

DOMT_TEST(candidate_has_medians_of_its_runs)
{
    size_t count;

    begin_empty_records();
    add_record_of_run(0, 1, 9)->is_check = true;
    (void)add_record_of_run(0, 10, 3);
    add_record_of_run(1, 20, NAN)->round = 1; /* no other run belongs to the round of this one */
    (void)add_record_of_run(0, 30, 4);
    (void)add_record_of_run(0, 11, 5);
    add_record_of_run(0, 90, 90)->has_failed = true;
    add_record_of_run(2, 90, 90)->has_failed = true;
    tune_spot *spots = tune_records_make_list_of_candidates(&records, &count);
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
DOMT_TEST(figures_are_compared_within_one_round)
{
    size_t count;

    begin_empty_records();
    for (size_t round = 0; round < 3; round++) {
        double drift = (double)(1 + round);
        add_record_of_run(0, 10 * drift, NAN)->round = round;
        add_record_of_run(1, 12 * drift, NAN)->round = round;
        if (round == 0)
            add_record_of_run(2, 11 * drift, NAN)->round = round;
    }
    for (uint8_t value = 0; value < 2; value++) {
        tune_record *record = add_record_of_run(1, 50 + 5 * value, NAN);
        record->key = 1;
        record->point.choice[1] = value;
    }
    tune_spot *spots = tune_records_make_list_of_candidates(&records, &count);
    ck_assert_ptr_nonnull(spots);
    ck_assert_uint_eq(count, 4);
    ck_assert_double_eq_tol(spots[0].values[0], 20, 1e-9);
    ck_assert_double_eq_tol(spots[1].values[0], 24, 1e-9);
    ck_assert_double_eq_tol(spots[2].values[0], 22, 1e-9);
    ck_assert_double_eq_tol(spots[3].values[0], 26.4, 1e-9);
    free(spots);
}

/* Value 1 is the fastest, value 2 has the least latency, value 3 is worse than today's in both, and
 * value 4 is equal to today's. */
DOMT_TEST(pareto_front_has_unsurpassed_candidates)
{
    static const bool wanted[] = {true, true, true, false, true};
    size_t count;

    begin_empty_records();
    (void)add_record_of_run(0, 10, 5);
    (void)add_record_of_run(1, 12, 6);
    (void)add_record_of_run(2, 8, 4);
    (void)add_record_of_run(3, 9, 6);
    (void)add_record_of_run(4, 10, 5);
    tune_spot *spots = tune_records_make_list_of_candidates(&records, &count);
    ck_assert_ptr_nonnull(spots);
    ck_assert_uint_eq(count, 5);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(spots[i].is_front == wanted[i], "value %zu", i);
    free(spots);
}

/* The ratio of the duel is computed from pairs of runs in either order; runs of earlier stages do
 * not count. */
DOMT_TEST(ratios_come_from_pairs_of_the_duel)
{
    tune_interval ratio;

    begin_empty_records();
    search.best = (tune_point){{1}};
    search.pairs = 6;
    for (size_t pair = 0; pair < 6; pair++) {
        double drift = (double)(pair + 1);
        for (int i = 0; i < 2; i++) {
            bool is_best = (pair % 2 == 0) == (i == 0);
            tune_record *record = is_best ? add_record_of_run(1, 12 * drift, NAN)
                                          : add_record_of_run(0, 10 * drift, 1);
            record->is_duel = true;
            record->round = pair;
        }
    }
    (void)add_record_of_run(1, 500, 1);
    ck_assert(tune_records_get_interval_of_duel_ratio(&records, "rate", &ratio));
    ck_assert_double_eq_tol(ratio.low, 1.2, 1e-9);
    ck_assert_double_eq_tol(ratio.high, 1.2, 1e-9);
    ck_assert(!tune_records_get_interval_of_duel_ratio(&records, "p99", &ratio));
    search.pairs = 5;
    ck_assert(!tune_records_get_interval_of_duel_ratio(&records, "rate", &ratio));
}

DOMT_TEST(best_wins_only_by_the_duel)
{
    begin_empty_records();
    search.best = (tune_point){{1}};
    for (int verdict = TUNE_OPEN; verdict < TUNE_VERDICTS; verdict++) {
        search.verdict = (tune_verdict)verdict;
        tune_point winner = tune_records_get_winner_or_today(&records);
        ck_assert_uint_eq(winner.choice[0], verdict == TUNE_BETTER || verdict == TUNE_KEEPS);
    }
}

/* --- tune shell ------------------------------------------------------------------------------- */

/* Shell commands of services, to which `domus tune` appends words. */

DOMT_TEST(commands_that_drop_words_are_detected)
{
    static const struct {
        const char *command, *why;
    } cases[] = {
        {"./web --config web.yaml", NULL},
        {"A=1 exec ./web >log 2>&1", NULL},
        {"./web &>log", NULL},
        {"./web >&2", NULL},
        {"./web >|log", NULL},
        {"cd shop && ./web", NULL},
        {"cat a | sort >b; ./web", NULL},
        {"false | true || ./web", NULL},
        {"./web --name '# | ;' \"a \\\" #\" b#c \\#d", NULL},
        {"./web --name $(hostname | cut -c1-3) `a | b`", NULL},
        {"./web --name $(hostname) | tee log", "has a pipe in its last command"},
        {"./web # for now", "has a comment"},
        {"#./web", "has a comment"},
        {"cd shop;#./web", "has a comment"},
        {"./web | tee log", "has a pipe in its last command"},
        {"cd shop && ./web 2>&1 |tee log", "has a pipe in its last command"},
        {"./web;", "ends with ';', '&' or a line break"},
        {"./web & ", "ends with ';', '&' or a line break"},
        {"./web\n", "ends with ';', '&' or a line break"},
        {"", "ends with ';', '&' or a line break"},
        {"./web 'a", "ends within a quoted part"},
        {"./web \"a\\\"", "ends within a quoted part"},
        {"./web \\", "ends within a quoted part"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *why = tune_shell_why_added_words_are_dropped(cases[i].command);
        ck_assert_msg((why == NULL) == (cases[i].why == NULL), "%s: %s", cases[i].command, why);
        if (why != NULL)
            ck_assert_str_eq(why, cases[i].why);
    }
}

DOMT_SUITE(20)
