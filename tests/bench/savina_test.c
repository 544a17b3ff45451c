/* The Savina bench runs contenders that are shell scripts: the tests show which figures it
 * believes, which it refuses, and what it computes from them. The bench looks for contenders in its
 * own directory, so it is copied into a directory of scripts; files beside the scripts hold their
 * output, and `erl` is a script too. */
#include "tests/support/suite.h"

#include "bench/savina_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define BENCH DOMT_BIN_DIR "/bench_savina"

static char directory[] = "/tmp/domt-savina-XXXXXX";
static char output[65536];

static int run_shell(const char *command)
{
    int status = system(command);

    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Write a contender, a script that prints `figures` and appends its command line to the file
 * `calls`. */
static void write_script(const char *name, const char *figures)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\necho %s $* >>%s/calls\n%s\n", name, directory, figures);
    fclose(file);
    snprintf(path, sizeof path, "chmod +x %s/%s", directory, name);
    ck_assert_int_eq(run_shell(path), 0);
}

static void make_folder(void)
{
    char command[512];

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(command, sizeof command, "cp '%s' %s", BENCH, directory);
    ck_assert_int_eq(run_shell(command), 0);
    snprintf(command, sizeof command, "%s:%s", directory, getenv("PATH"));
    setenv("PATH", command, 1);
}

static void remove_folder(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(run_shell(command), 0);
}

static void read_file(const char *name, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* Run the bench on one CPU, so that it measures one number of threads only. Returns the exit
 * status. */
static int run_bench(const char *arguments)
{
    char command[512];

    snprintf(command, sizeof command,
             "taskset -c \"$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')\" %s/bench_savina %s "
             ">%s/output 2>%s/errors",
             directory, arguments, directory, directory);
    int status = run_shell(command);
    read_file("output", output, sizeof output);
    return status;
}

static void expect_printed(const char *text)
{
    ck_assert_msg(strstr(output, text) != NULL, "no %s in %s", text, output);
}

/* The output of three rounds of 400,000 messages, the size of pingpong in its short form. */
#define ROUNDS(a, b, c) "printf 'round_seconds %s\\n' " #a " " #b " " #c
#define PINGPONG        "; echo messages 400000; echo result 200000"

DOMT_TEST(savina_prints_first_median_and_ratio_to_the_better_peer)
{
    static char calls[4096];

    make_folder();
    write_script("savina_domus", ROUNDS(0.4, 0.01, 0.02) PINGPONG);
    write_script("savina_caf", ROUNDS(0.2, 0.2, 0.2) PINGPONG);
    write_script("savina.beam", "");
    write_script("erl", "[ $# -lt 9 ] && exit; " ROUNDS(0.1, 0.1, 0.1) PINGPONG);
    ck_assert_int_eq(run_bench("pingpong"), 0);
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
    read_file("calls", calls, sizeof calls);
    ck_assert_ptr_nonnull(strstr(calls, "savina_domus pingpong 200000 1 3 near\n"));
    ck_assert_ptr_nonnull(strstr(calls, "savina_domus pingpong 200000 1 3 deques\n"));
    ck_assert_ptr_null(strstr(calls, "spread"));
    ck_assert_ptr_nonnull(strstr(calls, "savina_caf pingpong 200000 1 3 stealing\n"));
    ck_assert_ptr_nonnull(strstr(calls, "savina_caf pingpong 200000 1 3 sharing\n"));
    ck_assert_ptr_nonnull(strstr(calls, "-run savina main pingpong 200000 1 3\n"));
    remove_folder();
}

DOMT_TEST(savina_ratio_of_a_latency_is_that_of_the_lower_one)
{
    make_folder();
    write_script("savina_domus", "echo round_seconds 1; echo latency_ns 10 20 30; echo messages 0; "
                                 "echo result 200");
    write_script("savina_caf", "echo round_seconds 1; echo latency_ns 25 50 60; echo messages 400; "
                               "echo result 200");
    write_script("savina.beam", "");
    write_script("erl", "[ $# -lt 9 ] && exit; echo round_seconds 1; echo latency_ns 1 2 3; "
                        "echo messages 400; echo result 200");
    ck_assert_int_eq(run_bench("wake"), 0);
    expect_printed(
        "savina.wake.1.erlang.p50 1 ns\n"); /* in Erlang no foreign thread has sent the ask */
    expect_printed("savina.wake.1.near.p999 30 ns\n");
    expect_printed("savina.wake.1.caf_sharing.p50 25 ns\n");
    expect_printed("savina.wake.1.near.ratio 2.5 ratio\n");
    remove_folder();
}

/* The program of plain threads runs only the row of sorting, and is not counted among the peers. */
DOMT_TEST(savina_holds_a_sort_against_threads_that_are_no_peer)
{
    static char calls[4096];
    const struct savina_row *row = savina_row_find("quicksort");
    char figures[2][256];

    for (int i = 0; i < 2; i++)
        snprintf(
            figures[i], sizeof figures[i],
            "printf 'round_seconds %s\\n' 0.%d 0.%d 0.%d; echo messages 4000; echo result %" PRIu64,
            "%s", 2 - i, 2 - i, 2 - i, savina_result(row, row->size_short));
    make_folder();
    write_script("savina_domus", figures[0]);
    write_script("savina_threads", figures[1]);
    ck_assert_int_eq(run_bench("quicksort"), 0);
    expect_printed("savina.quicksort.1.threads.median 4e+04 messages/s\n");
    expect_printed("savina.quicksort.1.pool.of_threads 0.5 ratio\n");
    ck_assert_ptr_null(strstr(output, ".ratio"));
    ck_assert_int_eq(run_bench("pingpong"), 1);
    read_file("calls", calls, sizeof calls);
    ck_assert_ptr_nonnull(strstr(calls, "savina_threads quicksort 200000 1 3\n"));
    ck_assert_ptr_null(strstr(calls, "savina_threads pingpong"));
    remove_folder();
}

DOMT_TEST(savina_goes_on_without_those_who_are_not_there_or_fail)
{
    make_folder();
    write_script("savina_domus", ROUNDS(0.4, 0.01, 0.02) PINGPONG);
    write_script("savina_caf", "exit 1");
    ck_assert_int_eq(run_bench("pingpong"), 0);
    expect_printed("savina.pingpong.1.near.median 2e+07 messages/s\n");
    ck_assert_ptr_null(strstr(output, ".caf_"));
    ck_assert_ptr_null(strstr(output, ".ratio"));
    write_script("savina_domus", "exit 1");
    ck_assert_int_eq(run_bench("pingpong"), 1);
    remove_folder();
}

/* The bench refuses a wrong result, a wrong number of messages, too few rounds, and a failed
 * program, from any contender. */
DOMT_TEST(savina_believes_no_wrong_result)
{
    static const char *const wrong[] = {
        ROUNDS(1, 1, 1) "; echo messages 400000; echo result 199999",
        ROUNDS(1, 1, 1) "; echo messages 399999; echo result 200000",
        ROUNDS(1, 1, 1) "; echo messages 400000",
        ("echo round_seconds 1" PINGPONG),
        "exit 3",
    };
    static const char right[] = ROUNDS(1, 1, 1) PINGPONG;

    make_folder();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_script("savina_domus", right);
        write_script("savina_caf", wrong[i]);
        ck_assert_int_eq(run_bench("pingpong"), 1);
        write_script("savina_domus", wrong[i]);
        write_script("savina_caf", right);
        ck_assert_int_eq(run_bench("pingpong"), 1);
        ck_assert_str_eq(output, "");
    }
    remove_folder();
}

DOMT_TEST(savina_knows_its_options_and_rows)
{
    make_folder();
    ck_assert_int_eq(run_bench("none"), 2);
    ck_assert_int_eq(run_bench("--nothing"), 2);
    ck_assert_int_eq(run_bench("pingpong none"), 2);
    write_script("savina_domus", ROUNDS(1, 1, 1) PINGPONG);
    ck_assert_int_eq(run_bench("--out /nonexistent pingpong"), 1);
    remove_folder();
}

DOMT_SUITE(60)
