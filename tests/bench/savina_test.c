/* The Savina bench: its rows on domus are checked against formulas, and contenders that are shell
 * scripts show which figures it believes. */
#include "bench/savina_rows.h"
#include "bench/support/command.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* The Savina bench runs contenders that are shell scripts: the tests show which figures it
 * believes, which it refuses, and what it computes from them. The bench looks for contenders in
 * its own directory, so it is copied into a directory of scripts; files beside the scripts hold
 * their output, and `erl` is a script too. */

#define BENCH DOMT_BIN_DIR "/bench_savina"

static char directory[] = "/tmp/domt-savina-XXXXXX";
static char output[65536];

static int run_shell_in_folder(const char *command)
{
    int status = system(command);

    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Write a contender: a shell script that prints `figures` and appends its command line to the file
 * `calls`. */
static void write_contender_script(const char *name, const char *figures)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\necho %s $* >>%s/calls\n%s\n", name, directory, figures);
    fclose(file);
    snprintf(path, sizeof path, "chmod +x %s/%s", directory, name);
    ck_assert_int_eq(run_shell_in_folder(path), 0);
}

static void make_folder_of_contenders(void)
{
    char command[512];

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(command, sizeof command, "cp '%s' %s", BENCH, directory);
    ck_assert_int_eq(run_shell_in_folder(command), 0);
    snprintf(command, sizeof command, "%s:%s", directory, getenv("PATH"));
    setenv("PATH", command, 1);
}

static void remove_folder_of_contenders(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(run_shell_in_folder(command), 0);
}

static void read_file_of_folder(const char *name, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* Run the Savina bench on one CPU, so that it measures one number of threads only. Returns the exit
 * status. */
static int run_savina_bench(const char *arguments)
{
    char command[512];

    snprintf(command, sizeof command,
             "taskset -c \"$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')\" %s/bench_savina %s "
             ">%s/output 2>%s/errors",
             directory, arguments, directory, directory);
    int status = run_shell_in_folder(command);
    read_file_of_folder("output", output, sizeof output);
    return status;
}

static void expect_line_was_printed(const char *text)
{
    ck_assert_msg(strstr(output, text) != NULL, "no %s in %s", text, output);
}

/* The output of a contender with three rounds of 400,000 messages, the size of pingpong in its
 * short form. */
#define ROUNDS(a, b, c) "printf 'round_seconds %s\\n' " #a " " #b " " #c
#define PINGPONG        "; echo messages 400000; echo result 200000"

DOMT_TEST(savina_prints_median_and_ratio_to_better_peer)
{
    static char calls[4096];

    make_folder_of_contenders();
    write_contender_script("savina_domus", ROUNDS(0.4, 0.01, 0.02) PINGPONG);
    write_contender_script("savina_caf", ROUNDS(0.2, 0.2, 0.2) PINGPONG);
    write_contender_script("savina.beam", "");
    write_contender_script("erl", "[ $# -lt 9 ] && exit; " ROUNDS(0.1, 0.1, 0.1) PINGPONG);
    ck_assert_int_eq(run_savina_bench("pingpong"), 0);
    ck_assert_str_eq(output, "savina.pingpong.1.near.first 1e+06 messages/s\n"
                             "savina.pingpong.1.near.median 2e+07 messages/s\n"
                             "savina.pingpong.1.rings.first 1e+06 messages/s\n"
                             "savina.pingpong.1.rings.median 2e+07 messages/s\n"
                             "savina.pingpong.1.deques.first 1e+06 messages/s\n"
                             "savina.pingpong.1.deques.median 2e+07 messages/s\n"
                             "savina.pingpong.1.stealing.first 1e+06 messages/s\n"
                             "savina.pingpong.1.stealing.median 2e+07 messages/s\n"
                             "savina.pingpong.1.sharing.first 1e+06 messages/s\n"
                             "savina.pingpong.1.sharing.median 2e+07 messages/s\n"
                             "savina.pingpong.1.caf_stealing.first 2e+06 messages/s\n"
                             "savina.pingpong.1.caf_stealing.median 2e+06 messages/s\n"
                             "savina.pingpong.1.caf_sharing.first 2e+06 messages/s\n"
                             "savina.pingpong.1.caf_sharing.median 2e+06 messages/s\n"
                             "savina.pingpong.1.erlang.first 4e+06 messages/s\n"
                             "savina.pingpong.1.erlang.median 4e+06 messages/s\n"
                             "savina.pingpong.1.near.ratio 5 ratio\n"
                             "savina.pingpong.1.rings.ratio 5 ratio\n"
                             "savina.pingpong.1.deques.ratio 5 ratio\n"
                             "savina.pingpong.1.stealing.ratio 5 ratio\n"
                             "savina.pingpong.1.sharing.ratio 5 ratio\n"
                             "savina.pingpong.1.pool.of_near 1 ratio\n"
                             "savina.pingpong.1.pool.of_peer 5 ratio\n"
                             "savina.pingpong.1.goal 10 ratio\n");
    read_file_of_folder("calls", calls, sizeof calls);
    ck_assert_ptr_nonnull(strstr(calls, "savina_domus pingpong 200000 1 3 near\n"));
    ck_assert_ptr_nonnull(strstr(calls, "savina_domus pingpong 200000 1 3 deques\n"));
    ck_assert_ptr_null(strstr(calls, "spread"));
    ck_assert_ptr_nonnull(strstr(calls, "savina_caf pingpong 200000 1 3 stealing\n"));
    ck_assert_ptr_nonnull(strstr(calls, "savina_caf pingpong 200000 1 3 sharing\n"));
    ck_assert_ptr_nonnull(strstr(calls, "-run savina main pingpong 200000 1 3\n"));
    remove_folder_of_contenders();
}

DOMT_TEST(savina_latency_ratio_uses_the_lower_peer)
{
    make_folder_of_contenders();
    write_contender_script("savina_domus",
                           "echo round_seconds 1; echo latency_ns 10 20 30; echo messages 0; "
                           "echo result 200");
    write_contender_script("savina_caf",
                           "echo round_seconds 1; echo latency_ns 25 50 60; echo messages 400; "
                           "echo result 200");
    write_contender_script("savina.beam", "");
    write_contender_script("erl",
                           "[ $# -lt 9 ] && exit; echo round_seconds 1; echo latency_ns 1 2 3; "
                           "echo messages 400; echo result 200");
    ck_assert_int_eq(run_savina_bench("wake"), 0);
    /* In Erlang no foreign thread sends the ask, so its latency is not compared. */
    expect_line_was_printed("savina.wake.1.erlang.p50 1 ns\n");
    expect_line_was_printed("savina.wake.1.near.p999 30 ns\n");
    expect_line_was_printed("savina.wake.1.caf_sharing.p50 25 ns\n");
    expect_line_was_printed("savina.wake.1.near.ratio 2.5 ratio\n");
    remove_folder_of_contenders();
}

/* The program of plain threads runs only the row of sorting, and is not counted among the peers. */
DOMT_TEST(savina_compares_sort_with_plain_threads)
{
    static char calls[4096];
    const struct savina_row *row = savina_find_row_by_name("quicksort");
    char figures[2][256];

    for (int i = 0; i < 2; i++)
        snprintf(
            figures[i], sizeof figures[i],
            "printf 'round_seconds %s\\n' 0.%d 0.%d 0.%d; echo messages 4000; echo result %" PRIu64,
            "%s", 2 - i, 2 - i, 2 - i, savina_expected_result_of_round(row, row->size_short));
    make_folder_of_contenders();
    write_contender_script("savina_domus", figures[0]);
    write_contender_script("savina_threads", figures[1]);
    ck_assert_int_eq(run_savina_bench("quicksort"), 0);
    expect_line_was_printed("savina.quicksort.1.threads.median 4e+04 messages/s\n");
    expect_line_was_printed("savina.quicksort.1.pool.of_threads 0.5 ratio\n");
    ck_assert_ptr_null(strstr(output, ".ratio"));
    ck_assert_int_eq(run_savina_bench("pingpong"), 1);
    read_file_of_folder("calls", calls, sizeof calls);
    ck_assert_ptr_nonnull(strstr(calls, "savina_threads quicksort 200000 1 3\n"));
    ck_assert_ptr_null(strstr(calls, "savina_threads pingpong"));
    remove_folder_of_contenders();
}

DOMT_TEST(savina_continues_without_missing_contenders)
{
    make_folder_of_contenders();
    write_contender_script("savina_domus", ROUNDS(0.4, 0.01, 0.02) PINGPONG);
    write_contender_script("savina_caf", "exit 1");
    ck_assert_int_eq(run_savina_bench("pingpong"), 0);
    expect_line_was_printed("savina.pingpong.1.near.median 2e+07 messages/s\n");
    ck_assert_ptr_null(strstr(output, ".caf_"));
    ck_assert_ptr_null(strstr(output, ".ratio"));
    write_contender_script("savina_domus", "exit 1");
    ck_assert_int_eq(run_savina_bench("pingpong"), 1);
    remove_folder_of_contenders();
}

/* The bench refuses a wrong result, a wrong number of messages, too few rounds, and a failed
 * program, from any contender. */
DOMT_TEST(savina_refuses_wrong_results)
{
    static const char *const wrong[] = {
        ROUNDS(1, 1, 1) "; echo messages 400000; echo result 199999",
        ROUNDS(1, 1, 1) "; echo messages 399999; echo result 200000",
        ROUNDS(1, 1, 1) "; echo messages 400000",
        ("echo round_seconds 1" PINGPONG),
        "exit 3",
    };
    static const char right[] = ROUNDS(1, 1, 1) PINGPONG;

    make_folder_of_contenders();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_contender_script("savina_domus", right);
        write_contender_script("savina_caf", wrong[i]);
        ck_assert_int_eq(run_savina_bench("pingpong"), 1);
        write_contender_script("savina_domus", wrong[i]);
        write_contender_script("savina_caf", right);
        ck_assert_int_eq(run_savina_bench("pingpong"), 1);
        ck_assert_str_eq(output, "");
    }
    remove_folder_of_contenders();
}

DOMT_TEST(savina_accepts_its_options_and_row_names)
{
    make_folder_of_contenders();
    ck_assert_int_eq(run_savina_bench("none"), 2);
    ck_assert_int_eq(run_savina_bench("--nothing"), 2);
    ck_assert_int_eq(run_savina_bench("pingpong none"), 2);
    write_contender_script("savina_domus", ROUNDS(1, 1, 1) PINGPONG);
    ck_assert_int_eq(run_savina_bench("--out /nonexistent pingpong"), 1);
    remove_folder_of_contenders();
}

/* --- savina rows ------------------------------------------------------------------------------ */

/* The rows of the Savina benches on domus, with small sizes, are checked against their formulas,
 * and the formulas against known numbers. Only few messages cross threads, because on a loaded
 * machine each of these may wait until its thread gets the CPU. */

#define PROGRAM DOMT_BIN_DIR "/savina_domus"
#define THREADS DOMT_BIN_DIR "/savina_threads"

static struct command_result run_row_of_savina(const char *name, uint64_t size, uint32_t threads,
                                               uint32_t rounds, const char *placement)
{
    char row[32];
    char number[32];
    char threads_text[32];
    char rounds_text[32];
    char placement_text[32];
    char *const arguments[] = {(char[]){PROGRAM}, row, number, threads_text, rounds_text,
                               placement_text,    NULL};
    struct command command = {.arguments = arguments, .cpus = threads, .seconds_max = 60};
    struct command_result result;

    snprintf(row, sizeof row, "%s", name);
    snprintf(number, sizeof number, "%" PRIu64, size);
    snprintf(threads_text, sizeof threads_text, "%" PRIu32, threads);
    snprintf(rounds_text, sizeof rounds_text, "%" PRIu32, rounds);
    snprintf(placement_text, sizeof placement_text, "%s", placement);
    ck_assert_msg(command_run_and_read_figures(&command, &result) == 0, "%s of %" PRIu64 ", %s",
                  name, size, placement);
    return result;
}

/* Check that a row prints, for each round, the messages and the result that its formulas give. */
static void check_run_against_formulas(const char *name, uint64_t size, uint32_t threads,
                                       const char *placement)
{
    const struct savina_row *row = savina_find_row_by_name(name);
    uint32_t rounds = row->kind == SAVINA_MESSAGES ? 2 : 1;
    struct command_result result = run_row_of_savina(name, size, threads, rounds, placement);
    double seconds[3];
    double messages = command_first_figure_of_name(&result, "messages");

    ck_assert_uint_eq(command_copy_figures_of_name(&result, "round_seconds", seconds, 3), rounds);
    ck_assert_msg(command_first_figure_of_name(&result, "result") ==
                      (double)savina_expected_result_of_round(row, size),
                  "%s, %s", name, placement);
    ck_assert_msg(savina_message_count_of_round(row, size) == 0 ||
                      messages == (double)savina_message_count_of_round(row, size),
                  "%s, %s", name, placement);
}

/* Check a row with one thread and with two, and with two threads also in the placement "spread". */
static void check_row_in_all_placements(const char *name, uint64_t size)
{
    ck_assert_ptr_nonnull(savina_find_row_by_name(name));
    check_run_against_formulas(name, size, 1, "near");
    check_run_against_formulas(name, size, 2, "near");
    check_run_against_formulas(name, size, 2, "spread");
}

DOMT_TEST(rows_of_two_actors_match_formulas)
{
    check_row_in_all_placements("pingpong", 1);
    check_row_in_all_placements("pingpong", 300);
    check_row_in_all_placements(
        "counting", 1000); /* The counts are less than one window of messages, and more. */
    check_row_in_all_placements("counting", 2000);
    check_row_in_all_placements("counting", 20000);
}

DOMT_TEST(rows_of_one_and_many_actors_match_formulas)
{
    check_row_in_all_placements("fjthrput", 100);
    check_row_in_all_placements("fjthrput", 300);
    /* The numbers of actors are less than may be alive at a time, and more. */
    check_row_in_all_placements("fjcreate", 1);
    check_row_in_all_placements("fjcreate", 3001);
    check_row_in_all_placements("mailbox", 10000);
    check_row_in_all_placements("mailbox", 40000);
    check_row_in_all_placements("chameneos", 1);
    check_row_in_all_placements("chameneos", 300);
}

DOMT_TEST(rows_of_many_actors_match_formulas)
{
    check_row_in_all_placements("threadring", 5);
    check_row_in_all_placements("threadring", 1234);
    check_row_in_all_placements("big", 1);
    check_row_in_all_placements("big", 10);
    check_row_in_all_placements("bndbuffer", 1);
    check_row_in_all_placements("bndbuffer", 10);
}

DOMT_TEST(row_of_transfers_keeps_the_sum_of_money)
{
    check_row_in_all_placements("banking", 1);
    check_row_in_all_placements("banking", 999);
    check_row_in_all_placements("banking", 1500);
}

DOMT_TEST(rows_of_trees_match_formulas)
{
    check_row_in_all_placements("fib", 1);
    check_row_in_all_placements("fib", 15);
    check_row_in_all_placements("skynet", 1);
    check_row_in_all_placements("skynet", 1000);
}

/* Run each row in a pool with two runners, for each policy, and once with one runner. */
DOMT_TEST(savina_rows_match_formulas_in_pools)
{
    static const char *const policies[] = {"rings", "deques", "stealing", "sharing", "rings"};
    static const struct {
        const char *name;
        uint64_t size;
    } rows[] = {
        {"pingpong", 300},   {"counting", 20000}, {"fjthrput", 300}, {"fjcreate", 3001},
        {"threadring", 123}, {"chameneos", 300},  {"big", 10},       {"bndbuffer", 10},
        {"banking", 1500},   {"fib", 15},         {"skynet", 1000},  {"quicksort", 50000},
        {"mailbox", 40000},  {"wake", 10},        {"fair", 30},
    };

    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++)
            check_run_against_formulas(rows[j].name, rows[j].size, i < 4 ? 2 : 1, policies[i]);
    }
}

/* The program of plain threads prints the same result and the same number of messages as the
 * actors. */
DOMT_TEST(plain_threads_sort_like_actors)
{
    static const uint64_t sizes[] = {1, 2048, 2049, 50000};
    char *const arguments[] = {(char[]){THREADS}, (char[]){"quicksort"}, (char[32]){""},
                               (char[]){"2"},     (char[]){"2"},         NULL};
    struct command command = {.arguments = arguments, .cpus = 2, .seconds_max = 60};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct command_result result;
        double seconds[3];
        snprintf(arguments[2], 32, "%" PRIu64, sizes[i]);
        ck_assert_int_eq(command_run_and_read_figures(&command, &result), 0);
        struct command_result actors = run_row_of_savina("quicksort", sizes[i], 1, 1, "near");
        ck_assert_uint_eq(command_copy_figures_of_name(&result, "round_seconds", seconds, 3), 2);
        ck_assert(command_first_figure_of_name(&result, "result") ==
                  command_first_figure_of_name(&actors, "result"));
        ck_assert(command_first_figure_of_name(&result, "messages") ==
                  command_first_figure_of_name(&actors, "messages"));
    }
}

DOMT_TEST(row_of_sorting_sorts_its_numbers)
{
    /* The sizes are the largest that one actor sorts alone, the smallest that three actors sort,
     * and a large one. */
    check_row_in_all_placements("quicksort", 2048);
    check_row_in_all_placements("quicksort", 2049);
    check_row_in_all_placements("quicksort", 50000);
    struct command_result result = run_row_of_savina("quicksort", 2048, 1, 1, "near");
    ck_assert(command_first_figure_of_name(&result, "messages") == 2);
    result = run_row_of_savina("quicksort", 2049, 1, 1, "near");
    ck_assert(command_first_figure_of_name(&result, "messages") == 6);
    /* This size is halved five times, so 63 actors sort. */
    result = run_row_of_savina("quicksort", 50000, 1, 1, "near");
    ck_assert(command_first_figure_of_name(&result, "messages") == 2 * 63);
}

DOMT_TEST(rows_of_latency_print_their_figures)
{
    struct command_result result = run_row_of_savina("wake", 20, 2, 1, "near");
    double latencies[4];

    ck_assert(command_first_figure_of_name(&result, "result") == 20);
    ck_assert_uint_eq(command_copy_figures_of_name(&result, "latency_ns", latencies, 4), 3);
    ck_assert(latencies[0] > 0 && latencies[0] <= latencies[1] && latencies[1] <= latencies[2]);
    result = run_row_of_savina("idle", 1, 1, 1, "near");
    ck_assert(command_first_figure_of_name(&result, "result") == 1000);
    ck_assert(command_first_figure_of_name(&result, "cpu_seconds") >= 0);
    ck_assert(command_first_figure_of_name(&result, "round_seconds") >= 1);
}

DOMT_TEST(row_of_fairness_answers_each_visit)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct command_result result = run_row_of_savina("fair", 30, threads, 1, "near");
        double latencies[3];
        ck_assert(command_first_figure_of_name(&result, "result") == 30);
        ck_assert_uint_eq(command_copy_figures_of_name(&result, "latency_ns", latencies, 3), 3);
    }
}

DOMT_TEST(savina_formulas_give_known_numbers)
{
    ck_assert_uint_eq(savina_expected_result_of_round(savina_find_row_by_name("fib"), 25), 75025);
    ck_assert_uint_eq(savina_message_count_of_round(savina_find_row_by_name("fib"), 25),
                      2 * 150049);
    ck_assert_uint_eq(savina_expected_result_of_round(savina_find_row_by_name("skynet"), 1000000),
                      UINT64_C(499999500000));
    ck_assert_uint_eq(savina_message_count_of_round(savina_find_row_by_name("skynet"), 1000000),
                      2 * 1111111);
    ck_assert_uint_eq(
        savina_expected_result_of_round(savina_find_row_by_name("threadring"), 1000042), 42);
    ck_assert_uint_eq(savina_expected_result_of_round(savina_find_row_by_name("banking"), 7),
                      1000000000);
    ck_assert_ptr_null(savina_find_row_by_name("none"));
}

DOMT_TEST(unknown_row_placement_or_number_is_a_failure)
{
    static const char *const bad[][4] = {
        {"none", "1", "1", "near"},
        {"pingpong", "0", "1", "near"},
        {"pingpong", "1", "0", "near"},
        {"pingpong", "1", "1", "nowhere"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char words[4][32];
        char *const arguments[] = {(char[]){PROGRAM}, words[0], words[1], words[2],
                                   (char[]){"1"},     words[3], NULL};
        struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 60};
        struct command_result result;
        for (size_t j = 0; j < 4; j++)
            snprintf(words[j], sizeof words[j], "%s", bad[i][j]);
        ck_assert_int_eq(command_run_and_read_figures(&command, &result), -ECHILD);
    }
}

DOMT_SUITE(120)
