/* The benches that measure servers run to their ends in short forms, check every byte, and print
 * their figures. They pin processes to the CPUs 0 and 1, so the tests need both CPUs. */
#include "tests/support/suite.h"

#include "bench/support/command.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CONFIG DOMT_SOURCE_DIR "/config/domus.yaml"

static struct command_result result;

static bool has_machine_two_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(0, &set) && CPU_ISSET(1, &set);
}

/* Run one round of a bench of servers; `options` are words separated by single spaces. Returns
 * false if the bench cannot run on this machine. */
static bool run_one_round_of_bench(char *program, char *config, const char *options)
{
    char text[128];
    char *arguments[24] = {program, (char[]){"--config"}, config, (char[]){"--rounds"},
                           (char[]){"1"}};
    struct command command = {.arguments = arguments, .cpus = 2, .seconds_max = 60};
    size_t count = 5;
    char *rest;

    if (!has_machine_two_cpus())
        return false;
    ck_assert_int_lt(snprintf(text, sizeof text, "%s", options), (int)sizeof text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_uint_lt(count, 23);
        arguments[count++] = word;
    }
    ck_assert_int_eq(command_run_and_read_figures(&command, &result), 0);
    return true;
}

DOMT_TEST(bench_of_echoes_prints_each_row_and_its_ratios)
{
    if (!run_one_round_of_bench((char[]){DOMT_BIN_DIR "/bench_echo"}, (char[]){CONFIG},
                                "--seconds 0.02 --without libuv --row pipelined --row large"))
        return;
    ck_assert(command_first_figure_of_name(&result, "echo.pipelined.paced.domus.cpu") > 0);
    ck_assert(command_first_figure_of_name(&result, "echo.large.saturated.io_uring.rate") > 0);
    ck_assert(command_first_figure_of_name(&result, "echo.large.paced.ratio.cpu.domus.io_uring") >
              0);
    ck_assert(
        command_first_figure_of_name(&result, "echo.large.paced.ratio.rate.domus_epoll.epoll") > 0);
}

DOMT_TEST(bench_of_publications_reads_each_delivery)
{
    if (!run_one_round_of_bench((char[]){DOMT_BIN_DIR "/bench_publish"}, (char[]){CONFIG},
                                "--connections 50 --publications 2"))
        return;
    ck_assert(command_first_figure_of_name(&result, "publish.send.cpu") > 0);
    ck_assert(command_first_figure_of_name(&result, "publish.ratio.cpu.domus.send") > 0);
    ck_assert(command_first_figure_of_name(&result, "publish.ratio.cpu.domus_epoll.send") > 0);
    ck_assert(command_first_figure_of_name(&result, "publish.ratio.cpu.pipes.send") > 0);
    ck_assert(command_first_figure_of_name(&result, "publish.ratio.cpu.pipes_epoll.send") > 0);
}

/* A proxy that is not installed is left out of the bench, which still succeeds. */
DOMT_TEST(bench_of_proxies_runs_installed_ones)
{
    (void)run_one_round_of_bench((char[]){DOMT_BIN_DIR "/bench_proxy"},
                                 (char[]){DOMT_SOURCE_DIR "/examples/proxy.yaml"},
                                 "--seconds 0.02");
}

/* Without nginx the bench of TLS measures nothing, and still ends without an error. */
DOMT_TEST(bench_of_tls_prints_each_row_and_its_ratios)
{
    if (!run_one_round_of_bench((char[]){DOMT_BIN_DIR "/bench_tls"}, (char[]){CONFIG},
                                "--seconds 0.02 echo full") ||
        result.count == 0)
        return;
    ck_assert(command_first_figure_of_name(&result, "tls_echo_domus_to_bare_cpu") > 0);
    ck_assert(command_first_figure_of_name(&result, "tls_full_nginx_cpu") > 0);
}

DOMT_SUITE(120)
