/* bench/support/command.c runs a program, reads the figures it prints, notices its end, enforces
 * its limits, and reports a missing program. */
#include "tests/support/suite.h"

#include "bench/support/contender.h"
#include "bench/support/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int run_shell(const char *script, uint32_t seconds_max, struct command_result *ret_result)
{
    char text[512];
    char *const arguments[] = {(char[]){"sh"}, (char[]){"-c"}, text, NULL};
    struct command command = {
        .arguments = arguments,
        .cpus = 1,
        .seconds_max = seconds_max,
        .memory_max_bytes = UINT64_C(3) << 30,
    };

    snprintf(text, sizeof text, "%s", script);
    return command_run(&command, ret_result);
}

DOMT_TEST(command_reads_figures_and_leaves_other_lines)
{
    struct command_result result;
    char name_too_long[256];

    ck_assert_int_eq(run_shell("echo a 1.5; echo noise; echo b x; echo; printf 'c 2'", 10, &result),
                     0);
    ck_assert_uint_eq(result.count, 2);
    ck_assert(command_figure(&result, "a") == 1.5 && command_figure(&result, "c") == 2);
    ck_assert(isnan(command_figure(&result, "b")) && isnan(command_figure(&result, "d")));

    snprintf(name_too_long, sizeof name_too_long, "echo %0*d 1; echo e 2", COMMAND_NAME_MAX, 0);
    ck_assert_int_eq(run_shell(name_too_long, 10, &result), 0);
    ck_assert_uint_eq(result.count, 1);
}

DOMT_TEST(command_reads_several_values_of_a_name_in_order)
{
    struct command_result result;
    double values[4] = {0};

    ck_assert_int_eq(run_shell("echo a 1 2; echo b 3; echo a 4 x 5; echo a; echo a 6", 10, &result),
                     0);
    ck_assert_uint_eq(result.count, 5);
    ck_assert_uint_eq(command_figures(&result, "a", values, 4), 4);
    ck_assert(values[0] == 1 && values[1] == 2 && values[2] == 4 && values[3] == 6);
    ck_assert_uint_eq(command_figures(&result, "a", values, 3), 3);
    ck_assert_uint_eq(command_figures(&result, "c", values, 4), 0);
    ck_assert(command_figure(&result, "a") == 1);
}

DOMT_TEST(command_keeps_the_first_figures_of_many)
{
    struct command_result result;

    ck_assert_int_eq(run_shell("for i in $(seq 3000); do echo n$i $i; done", 10, &result), 0);
    ck_assert_uint_eq(result.count, COMMAND_FIGURES_MAX);
    ck_assert(command_figure(&result, "n128") == COMMAND_FIGURES_MAX);
}

DOMT_TEST(command_tells_a_wrong_result_from_a_failure)
{
    struct command_result result = {.count = 77};

    ck_assert_int_eq(run_shell("exit 3", 10, &result), -EBADMSG);
    ck_assert_int_eq(run_shell("exit 1", 10, &result), -ECHILD);
    ck_assert_int_eq(run_shell("kill -9 $$", 10, &result), -ECHILD);
    ck_assert_uint_eq(result.count, 77);
}

DOMT_TEST(command_that_is_not_there_says_so)
{
    char *const arguments[] = {(char[]){"/nonexistent/program"}, NULL};
    struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 10};
    struct command_result result;

    ck_assert_int_eq(command_run(&command, &result), -ENOENT);
}

DOMT_TEST(command_is_killed_at_its_time)
{
    struct command_result result;
    uint64_t began_ns = measure_now_ns();

    ck_assert_int_eq(run_shell("exec sleep 60", 1, &result), -ETIMEDOUT);
    ck_assert_uint_lt(measure_now_ns() - began_ns, UINT64_C(20000000000));
}

DOMT_TEST(command_runs_on_its_cpus_within_its_memory)
{
    struct command_result result;

    ck_assert_int_eq(run_shell("echo cpus $(nproc); echo kib $(ulimit -v)", 10, &result), 0);
    ck_assert(command_figure(&result, "cpus") == 1);
    ck_assert(command_figure(&result, "kib") == 3 << 20);
}

/* The bench looks for contenders in the directory of this program, where there are none. */
DOMT_TEST(contenders_that_are_not_there_are_left_out)
{
    struct contest contest = {
        .suite = "actors",
        .row = "ask",
        .size = 1,
        .threads = 1,
        .seconds_max = 10,
    };
    struct command_result result;

    for (int who = 0; who < CONTENDERS; who++) {
        ck_assert(!contender_is_there("actors", (enum contender)who));
        ck_assert_int_eq(contender_run((enum contender)who, &contest, &result), -ENOENT);
    }
}

DOMT_SUITE(60)
