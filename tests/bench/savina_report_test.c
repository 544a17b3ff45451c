/* The page, the JSON and the figures that the Savina bench writes. */
#include "tests/support/suite.h"

#include "bench/savina_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct savina_outcome make_outcome_of_row(const char *row, uint64_t size, uint32_t threads)
{
    struct savina_outcome made = {
        .row = savina_find_row_by_name(row),
        .size = size,
        .threads = threads,
        .of_limit = NAN,
        .of_ring = NAN,
    };

    for (int side = 0; side < SAVINA_SIDES; side++)
        made.of[side] = (struct savina_figures){NAN, NAN, NAN, NAN};
    for (int side = 0; side < SAVINA_PLACEMENTS; side++)
        made.ratio[side] = NAN;
    return made;
}

/* Make a row of each kind, with contenders that are not installed, and a row with two threads whose
 * goal is met by the limit. */
static size_t make_outcomes_of_rows(struct savina_outcome *outcomes)
{
    outcomes[0] = make_outcome_of_row("pingpong", 1000000, 1);
    outcomes[0].of[SAVINA_NEAR] = (struct savina_figures){40.06e6, 51.26e6, NAN, NAN};
    outcomes[0].of[SAVINA_CAF_SHARING] = (struct savina_figures){5e6, 5.126e6, NAN, NAN};
    outcomes[0].ratio[SAVINA_NEAR] = 10;
    outcomes[1] = make_outcome_of_row("wake", 2000, 1);
    outcomes[1].of[SAVINA_NEAR] = (struct savina_figures){NAN, 12345, 20000, 999500};
    outcomes[1].of[SAVINA_ERLANG] = (struct savina_figures){NAN, 20000, 30000, 40000};
    outcomes[1].ratio[SAVINA_NEAR] = 1.62;
    outcomes[2] = make_outcome_of_row("idle", 10, 1);
    outcomes[2].of[SAVINA_NEAR] = (struct savina_figures){NAN, 4.4e-5, NAN, NAN};
    outcomes[3] = make_outcome_of_row("big", 20000, 2);
    outcomes[3].of[SAVINA_NEAR] = (struct savina_figures){30e6, 31e6, NAN, NAN};
    outcomes[3].of[SAVINA_SPREAD] = (struct savina_figures){20e6, 21e6, NAN, NAN};
    outcomes[3].of[SAVINA_CAF_SHARING] = (struct savina_figures){7e6, 7.5e6, NAN, NAN};
    outcomes[3].ratio[SAVINA_NEAR] = 4.13;
    outcomes[3].ratio[SAVINA_SPREAD] = 2.8;
    outcomes[3].of_limit = 0.52;
    outcomes[3].of_ring = 0.41;
    return 4;
}

static void read_text_of_file(const char *directory, const char *name, char *text, size_t size)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

static void expect_line_in_text(const char *text, const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "no %s in %s", line, text);
}

DOMT_TEST(savina_page_has_table_for_each_thread_count)
{
    static char text[16384];
    char directory[] = "/tmp/domt-savina-XXXXXX";
    struct savina_outcome outcomes[4];
    struct savina_run run = {.rounds = 5, .processes = 7, .limit = 40.4e6};
    size_t count = make_outcomes_of_rows(outcomes);

    ck_assert_ptr_nonnull(mkdtemp(directory));
    /* If gnuplot or its script is missing, the Savina bench writes the page without pictures, and
     * returns an error. */
    ck_assert_int_lt(savina_report(directory, "/nonexistent.gp", &run, outcomes, count), 0);
    read_text_of_file(directory, "performance.md", text, sizeof text);
    expect_line_in_text(text, " 5 rounds in a process,");
    expect_line_in_text(text, " median of 7 processes.");
    expect_line_in_text(
        text, "\n| pingpong | 1,000,000 round trips | 1 | 40.1 | 51.3 | 5.00 | 5.13 | - | - | "
              "10.0 | 10, met |\n");
    expect_line_in_text(text, " | domus | 12.3 us | 20.0 us | 1000 us | | 1.62 | 2, missed |\n");
    expect_line_in_text(text, " | Erlang | 20.0 us | 30.0 us | 40.0 us | | | |\n");
    expect_line_in_text(text, " | domus | | | | 0.04 ms/s | - | |\n");
    expect_line_in_text(text, "takes them, 40.4 million a second.");
    expect_line_in_text(
        text, " | 120 | **near** | 30.0 | 31.0 | 7.00 | 7.50 | - | - | 4.13 |  |  | 5, missed |\n");
    expect_line_in_text(text,
                        "\n| | | | spread | 20.0 | 21.0 | | | | | 2.80 | 0.52 | 0.41 | 5, met |\n");
    read_text_of_file(directory, "performance.json", text, sizeof text);
    expect_line_in_text(
        text, "[\n  {\"rounds\": 5, \"processes\": 7, \"limit_messages_s\": 40400000},\n"
              "  {\"row\": \"pingpong\", \"size\": 1000000, \"threads\": 1, \"who\": \"near\", "
              "\"figure\": \"first\", \"value\": 40060000, \"unit\": \"messages/s\"},\n");
    expect_line_in_text(text, "\"threads\": 2, \"who\": \"\", \"figure\": \"goal\", \"value\": 5, "
                              "\"unit\": \"ratio\"}\n]\n");
    ck_assert_ptr_null(strstr(text, "nan"));
    rmdir(directory);
}

static struct savina_outcome set_rate_of_side(struct savina_outcome made, enum savina_side side,
                                              double value, double ratio)
{
    made.of[side].value = value;
    if (side < SAVINA_PLACEMENTS)
        made.ratio[side] = ratio;
    return made;
}

/* Make the outcomes of pools: two rows with goals, one missed and one met; a row with one runner;
 * and the row that sorts. */
static size_t make_outcomes_of_pools(struct savina_outcome *outcomes)
{
    outcomes[0] = set_rate_of_side(make_outcome_of_row("fib", 25, 1), SAVINA_NEAR, 2e6, 4);
    outcomes[0] = set_rate_of_side(outcomes[0], SAVINA_SHARING, 1e6, 2);
    outcomes[1] = set_rate_of_side(make_outcome_of_row("fib", 25, 2), SAVINA_NEAR, 2e6, 4);
    outcomes[1] = set_rate_of_side(outcomes[1], SAVINA_RINGS, 2.58e6, 5.16);
    outcomes[1] = set_rate_of_side(outcomes[1], SAVINA_SHARING, 1.5e6, 3);
    outcomes[2] = set_rate_of_side(make_outcome_of_row("big", 20000, 2), SAVINA_NEAR, 40e6, 10);
    outcomes[2] = set_rate_of_side(outcomes[2], SAVINA_DEQUES, 12e6, 3);
    outcomes[2] = set_rate_of_side(outcomes[2], SAVINA_CAF_STEALING, 4e6, 0);
    outcomes[2] = set_rate_of_side(outcomes[2], SAVINA_CAF_SHARING, 3e6, 0);
    outcomes[3] =
        set_rate_of_side(make_outcome_of_row("quicksort", 1000000, 2), SAVINA_STEALING, 33.5e3, 1);
    outcomes[3] = set_rate_of_side(outcomes[3], SAVINA_THREADS, 35e3, 0);
    return 4;
}

DOMT_TEST(savina_page_compares_all_schedulers)
{
    static char text[16384];
    char directory[] = "/tmp/domt-savina-XXXXXX";
    struct savina_outcome outcomes[4];
    struct savina_run run = {.rounds = 5, .processes = 1, .limit = NAN, .is_long = true};
    size_t count = make_outcomes_of_pools(outcomes);

    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_lt(savina_report(directory, "/nonexistent.gp", &run, outcomes, count), 0);
    read_text_of_file(directory, "performance.md", text, sizeof text);
    expect_line_in_text(text, "`./dev bench savina --long --out docs` wrote");
    expect_line_in_text(
        text, "\n| fib | 1 | 2.00 | - | - | - | - | **1.00** | - | - | - | 0.50 | 2.00 | |\n"
              "| fib | 2 | 2.00 | - | **2.58** | - | - | 1.50 | - | - | - | 1.29 | 5.16 | "
              "1.3 near, missed |\n");
    expect_line_in_text(
        text, "\n| big | 2 | 40.0 | - | - | **12.0** | - | - | 4.00 | 3.00 | - | 0.30 | 3.00 | "
              "3 peer, met |\n");
    /* The ratio compares domus with CAF, because that is the better peer. */
    expect_line_in_text(text, "| 120 | near | - | 40.0 | - | 4.00 |");
    expect_line_in_text(
        text, "2 threads and a stack of parts: 35.0 k a second. The best pool reaches 0.96\n"
              "of that (goal 0.95, met).\n");
    read_text_of_file(directory, "performance.json", text, sizeof text);
    expect_line_in_text(text, "\"who\": \"pool\", \"figure\": \"of_near\", \"value\": 1.29, ");
    expect_line_in_text(text, "\"who\": \"pool\", \"figure\": \"of_peer\", \"value\": 3, ");
    expect_line_in_text(text,
                        "\"who\": \"pool\", \"figure\": \"of_threads\", \"value\": 0.957142857, ");
    rmdir(directory);
}

DOMT_TEST(savina_best_pool_is_the_fastest_pool)
{
    struct savina_outcome of = make_outcome_of_row("fib", 25, 2);

    ck_assert_int_eq((int)savina_best_pool_of_row(&of), SAVINA_SIDES);
    ck_assert(isnan(savina_ratio_of_best_pool_to_near(&of)) &&
              isnan(savina_ratio_of_best_pool_to_peer(&of)));
    of = set_rate_of_side(of, SAVINA_NEAR, 9e6, 9);
    ck_assert_int_eq((int)savina_best_pool_of_row(&of), SAVINA_SIDES);
    of = set_rate_of_side(of, SAVINA_SHARING, 2e6, 2);
    of = set_rate_of_side(of, SAVINA_RINGS, 1e6, 1);
    ck_assert_int_eq((int)savina_best_pool_of_row(&of), SAVINA_SHARING);
    ck_assert(savina_ratio_of_best_pool_to_peer(&of) == 2 &&
              isnan(savina_ratio_of_best_pool_to_threads(&of)));
}

/* A new page of the Savina bench keeps the section that the web bench has written. */
DOMT_TEST(savina_page_keeps_the_section_of_the_web_bench)
{
    static char text[16384];
    char directory[] = "/tmp/domt-savina-XXXXXX";
    char path[64];
    struct savina_outcome outcomes[4];
    struct savina_run run = {.rounds = 3, .processes = 1, .limit = NAN};

    (void)make_outcomes_of_rows(outcomes);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/performance.md", directory);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs("# Old\n\nold\n\n## The web bench\n\nfigures\n", file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_lt(savina_report(directory, "/nonexistent.gp", &run, outcomes, 3), 0);
    read_text_of_file(directory, "performance.md", text, sizeof text);
    ck_assert_ptr_null(strstr(text, "# Old"));
    expect_line_in_text(text, "bounds the ratio.\n\n## The web bench\n\nfigures\n");
    read_text_of_file(directory, "performance.json", text, sizeof text);
    rmdir(directory);
}

DOMT_TEST(savina_page_of_one_thread_has_one_table)
{
    static char text[16384];
    char directory[] = "/tmp/domt-savina-XXXXXX";
    struct savina_outcome outcomes[4];
    struct savina_run run = {.rounds = 3, .processes = 1, .limit = NAN};

    (void)make_outcomes_of_rows(outcomes);
    outcomes[1] = make_outcome_of_row("quicksort", 1000000, 1);
    outcomes[1].of[SAVINA_NEAR] = (struct savina_figures){99.9e3, 18.2e3, NAN, NAN};
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_lt(savina_report(directory, "/nonexistent.gp", &run, outcomes, 3), 0);
    read_text_of_file(directory, "performance.md", text, sizeof text);
    expect_line_in_text(text, " median of 1 process.");
    expect_line_in_text(text, " | no bound | 99.9 k | 18.2 k | - |");
    ck_assert_ptr_null(strstr(text, "## Two threads"));
    ck_assert_ptr_null(strstr(text, "**"));
    read_text_of_file(directory, "performance.json", text, sizeof text);
    ck_assert_ptr_null(strstr(text, "limit"));
    rmdir(directory);
}

struct told {
    char text[2048];
    size_t used;
};

static void record_told_figure(void *told_, const struct savina_outcome *of, const char *who,
                               const char *name, double value, const char *unit)
{
    struct told *told = told_;
    size_t room = sizeof told->text - told->used;

    told->used +=
        (size_t)snprintf(told->text + told->used, room, "%s %s %g %s\n", who, name, value, unit);
}

DOMT_TEST(savina_figures_depend_on_kind_of_row)
{
    struct savina_outcome outcomes[4];
    struct told told[4] = {0};

    (void)make_outcomes_of_rows(outcomes);
    for (size_t i = 0; i < 4; i++)
        savina_call_for_each_figure(&outcomes[i], record_told_figure, &told[i]);
    ck_assert_str_eq(told[0].text, "near first 4.006e+07 messages/s\n"
                                   "near median 5.126e+07 messages/s\n"
                                   "caf_sharing first 5e+06 messages/s\n"
                                   "caf_sharing median 5.126e+06 messages/s\n"
                                   "near ratio 10 ratio\n"
                                   " goal 10 ratio\n");
    ck_assert_str_eq(told[1].text, "near p50 12345 ns\n"
                                   "near p99 20000 ns\n"
                                   "near p999 999500 ns\n"
                                   "erlang p50 20000 ns\n"
                                   "erlang p99 30000 ns\n"
                                   "erlang p999 40000 ns\n"
                                   "near ratio 1.62 ratio\n"
                                   " goal 2 ratio\n");
    ck_assert_str_eq(told[2].text, "near cpu 0.044 ms/s\n");
    expect_line_in_text(told[3].text, "spread of_near 0.677419 ratio\nspread of_limit 0.52 ratio\n"
                                      "spread of_ring 0.41 ratio\n goal 5 ratio\n");
}

/* The goal of two threads is also met by the limit, in the placement "spread", where messages cross
 * threads, and not in "near". */
DOMT_TEST(savina_goal_is_met_by_ratio_or_limit)
{
    struct savina_outcome of = make_outcome_of_row("pingpong", 1, 1);

    ck_assert(savina_ratio_goal_of_row(&of) == 10 && !savina_is_goal_met(&of, SAVINA_NEAR));
    of.ratio[SAVINA_NEAR] = 9.9;
    ck_assert(!savina_is_goal_met(&of, SAVINA_NEAR));
    of.threads = 2;
    ck_assert(savina_ratio_goal_of_row(&of) == 5 && savina_is_goal_met(&of, SAVINA_NEAR));
    of.ratio[SAVINA_NEAR] = of.ratio[SAVINA_SPREAD] = 4.9;
    of.of_limit = 0.5;
    ck_assert(!savina_is_goal_met(&of, SAVINA_NEAR) && savina_is_goal_met(&of, SAVINA_SPREAD));
    of.of_limit = 0.49;
    ck_assert(!savina_is_goal_met(&of, SAVINA_SPREAD));
    of.row = savina_find_row_by_name("fib");
    ck_assert(savina_ratio_goal_of_row(&of) == 2);
}

DOMT_TEST(unwritable_savina_page_is_an_error)
{
    struct savina_outcome one = make_outcome_of_row("pingpong", 1, 1);
    struct savina_run run = {.rounds = 1, .processes = 1, .limit = NAN};

    ck_assert_int_eq(savina_report("/nonexistent", "bench/savina.gp", &run, &one, 1), -ENOENT);
}

DOMT_SUITE(60)
