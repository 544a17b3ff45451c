/* The parts that all benches share: programs that they run, their command lines, and the CPU time
 * that others use meanwhile. */
#include "bench/support/contender.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/support/quiet.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* bench/support/command.c runs a program, reads the figures it prints, notices its end, enforces
 * its limits, and reports a missing program. */

static int run_shell_as_command(const char *script, uint32_t seconds_max,
                                struct command_result *ret_result)
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
    return command_run_and_read_figures(&command, ret_result);
}

DOMT_TEST(command_reads_figures_and_leaves_other_lines)
{
    struct command_result result;
    char name_too_long[256];

    ck_assert_int_eq(
        run_shell_as_command("echo a 1.5; echo noise; echo b x; echo; printf 'c 2'", 10, &result),
        0);
    ck_assert_uint_eq(result.count, 2);
    ck_assert(command_first_figure_of_name(&result, "a") == 1.5 &&
              command_first_figure_of_name(&result, "c") == 2);
    ck_assert(isnan(command_first_figure_of_name(&result, "b")) &&
              isnan(command_first_figure_of_name(&result, "d")));

    snprintf(name_too_long, sizeof name_too_long, "echo %0*d 1; echo e 2", COMMAND_NAME_MAX, 0);
    ck_assert_int_eq(run_shell_as_command(name_too_long, 10, &result), 0);
    ck_assert_uint_eq(result.count, 1);
}

DOMT_TEST(command_reads_several_values_of_a_name_in_order)
{
    struct command_result result;
    double values[4] = {0};

    ck_assert_int_eq(
        run_shell_as_command("echo a 1 2; echo b 3; echo a 4 x 5; echo a; echo a 6", 10, &result),
        0);
    ck_assert_uint_eq(result.count, 5);
    ck_assert_uint_eq(command_copy_figures_of_name(&result, "a", values, 4), 4);
    ck_assert(values[0] == 1 && values[1] == 2 && values[2] == 4 && values[3] == 6);
    ck_assert_uint_eq(command_copy_figures_of_name(&result, "a", values, 3), 3);
    ck_assert_uint_eq(command_copy_figures_of_name(&result, "c", values, 4), 0);
    ck_assert(command_first_figure_of_name(&result, "a") == 1);
}

DOMT_TEST(command_keeps_the_first_figures_of_many)
{
    struct command_result result;

    ck_assert_int_eq(
        run_shell_as_command("for i in $(seq 3000); do echo n$i $i; done", 10, &result), 0);
    ck_assert_uint_eq(result.count, COMMAND_FIGURES_MAX);
    ck_assert(command_first_figure_of_name(&result, "n128") == COMMAND_FIGURES_MAX);
}

DOMT_TEST(command_distinguishes_wrong_result_from_failure)
{
    struct command_result result = {.count = 77};

    ck_assert_int_eq(run_shell_as_command("exit 3", 10, &result), -EBADMSG);
    ck_assert_int_eq(run_shell_as_command("exit 1", 10, &result), -ECHILD);
    ck_assert_int_eq(run_shell_as_command("kill -9 $$", 10, &result), -ECHILD);
    ck_assert_uint_eq(result.count, 77);
}

DOMT_TEST(missing_command_is_reported)
{
    char *const arguments[] = {(char[]){"/nonexistent/program"}, NULL};
    struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 10};
    struct command_result result;

    ck_assert_int_eq(command_run_and_read_figures(&command, &result), -ENOENT);
}

DOMT_TEST(command_is_killed_at_its_time_limit)
{
    struct command_result result;
    uint64_t began_ns = measure_now_ns();

    ck_assert_int_eq(run_shell_as_command("exec sleep 60", 1, &result), -ETIMEDOUT);
    ck_assert_uint_lt(measure_now_ns() - began_ns, UINT64_C(20000000000));
}

DOMT_TEST(command_runs_on_its_cpus_within_its_memory)
{
    struct command_result result;

    ck_assert_int_eq(run_shell_as_command("echo cpus $(nproc); echo kib $(ulimit -v)", 10, &result),
                     0);
    ck_assert(command_first_figure_of_name(&result, "cpus") == 1);
    ck_assert(command_first_figure_of_name(&result, "kib") == 3 << 20);
}

/* The bench looks for contenders in the directory of this test program, where there are none. */
DOMT_TEST(missing_contenders_are_left_out)
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
        ck_assert(!contender_can_be_run("actors", (enum contender)who));
        ck_assert_int_eq(contender_run_in_contest((enum contender)who, &contest, &result), -ENOENT);
    }
}

/* --- options ---------------------------------------------------------------------------------- */

/* The command lines of benches: names of rows, and the options of those that write a page. */

DOMT_TEST(all_rows_are_wanted_if_none_is_named)
{
    ck_assert(options_is_name_wanted(0, NULL, "ask"));
}

DOMT_TEST(only_named_rows_are_wanted)
{
    char *names[] = {(char[]){"ask"}, (char[]){"ring"}};

    ck_assert(options_is_name_wanted(2, names, "ask"));
    ck_assert(options_is_name_wanted(2, names, "ring"));
    ck_assert(!options_is_name_wanted(2, names, "rin"));
}

DOMT_TEST(page_options_are_removed_from_command_line)
{
    char *argv[] = {(char[]){"bench"}, (char[]){"--long"}, (char[]){"--out"},
                    (char[]){"docs"},  (char[]){"ask"},    NULL};
    struct options_page options = {.gnuplot_script = "a.gp"};

    optind = 1;
    ck_assert(options_parse_of_page_bench(5, argv, &options));
    ck_assert(options.is_long);
    ck_assert_str_eq(options.out, "docs");
    ck_assert_str_eq(options.gnuplot_script, "a.gp");
    ck_assert_int_eq(optind, 4);
}

DOMT_TEST(unknown_page_option_is_refused)
{
    char *argv[] = {(char[]){"bench"}, (char[]){"--short"}, NULL};
    struct options_page options = {.out = NULL};

    optind = 1;
    opterr = 0;
    ck_assert(!options_parse_of_page_bench(2, argv, &options));
}

/* --- quiet ------------------------------------------------------------------------------------ */

/* bench/support/quiet.c reads the first line of /proc/stat, and subtracts the CPU time of the
 * bench itself from the CPU time of the machine. */

DOMT_TEST(line_of_all_cpus_in_proc_stat_is_read)
{
    struct quiet quiet;

    ck_assert(
        quiet_parse_cpu_line("cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\n", &quiet));
    ck_assert_uint_eq(quiet.busy, 1 + 20 + 300 + 600000 + 7000000 + 80000000);
    ck_assert_uint_eq(quiet.idle, 4000 + 50000);
}

DOMT_TEST(other_lines_of_proc_stat_are_refused)
{
    struct quiet quiet;

    ck_assert(!quiet_parse_cpu_line("", &quiet));
    ck_assert(!quiet_parse_cpu_line("intr 1 2 3 4 5 6 7 8", &quiet));
    ck_assert(!quiet_parse_cpu_line("cpu0 1 2 3 4 5 6 7 8", &quiet));
    ck_assert(!quiet_parse_cpu_line("cpu 1 2 3 4 5 6 7", &quiet));
}

DOMT_TEST(cpu_time_of_others_excludes_own_time)
{
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    struct quiet from = {.busy = 1000, .idle = 5000};
    struct quiet to = {.busy = 1060, .idle = 5040};

    ck_assert(quiet_share_of_cpu_used_by_others(&from, &to, 0) == 0.6);
    ck_assert(quiet_share_of_cpu_used_by_others(&from, &to, 10 * tick_ns) == 0.5);
    ck_assert(quiet_share_of_cpu_used_by_others(&from, &to, 60 * tick_ns) == 0);
    ck_assert(quiet_share_of_cpu_used_by_others(&from, &to, 70 * tick_ns) == 0);
    ck_assert(quiet_share_of_cpu_used_by_others(&from, &from, 0) == 0);
}

DOMT_TEST(wait_for_quiet_machine_ends)
{
    uint64_t began_ns = measure_now_ns();

    ck_assert(quiet_await_quiet_machine(1, began_ns));
    ck_assert(!quiet_await_quiet_machine(-1, measure_now_ns()));
    ck_assert_uint_lt(measure_now_ns() - began_ns, UINT64_C(10000000000));
}

DOMT_SUITE(60)
