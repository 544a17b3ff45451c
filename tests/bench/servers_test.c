/* The benches that measure servers, in short forms: they run to their ends, check every byte, and
 * print their figures. They pin processes to the CPUs 0 and 1, so they need both. */
#include "tests/support/suite.h"

#include "bench/support/command.h"

#include <sched.h>
#include <stdbool.h>

#define CONFIG DOMT_SOURCE_DIR "/config/domus.yaml"

static bool has_two_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(0, &set) && CPU_ISSET(1, &set);
}

static struct command_result run(char *const *arguments)
{
    struct command command = {.arguments = arguments, .cpus = 2, .seconds_max = 60};
    struct command_result result = {0};

    ck_assert_int_eq(command_run(&command, &result), 0);
    return result;
}

START_TEST(bench_of_echoes_prints_each_row_and_its_ratios)
{
    char *const arguments[] = {
        (char[]){DOMT_BIN_DIR "/bench_echo"},
        (char[]){"--config"},
        (char[]){CONFIG},
        (char[]){"--rounds"},
        (char[]){"1"},
        (char[]){"--seconds"},
        (char[]){"0.02"},
        (char[]){"--without"},
        (char[]){"libuv"},
        (char[]){"--row"},
        (char[]){"pipelined"},
        (char[]){"--row"},
        (char[]){"large"},
        NULL,
    };
    if (!has_two_cpus())
        return;
    struct command_result result = run(arguments);

    ck_assert(command_figure(&result, "echo.pipelined.paced.domus.cpu") > 0);
    ck_assert(command_figure(&result, "echo.large.saturated.io_uring.rate") > 0);
    ck_assert(command_figure(&result, "echo.large.paced.ratio.cpu.domus.io_uring") > 0);
    ck_assert(command_figure(&result, "echo.large.paced.ratio.rate.domus_epoll.epoll") > 0);
}
END_TEST

START_TEST(bench_of_publications_reads_each_delivery)
{
    char *const arguments[] = {
        (char[]){DOMT_BIN_DIR "/bench_publish"},
        (char[]){"--config"},
        (char[]){CONFIG},
        (char[]){"--rounds"},
        (char[]){"1"},
        (char[]){"--connections"},
        (char[]){"50"},
        (char[]){"--publications"},
        (char[]){"2"},
        NULL,
    };
    if (!has_two_cpus())
        return;
    struct command_result result = run(arguments);

    ck_assert(command_figure(&result, "publish.send.cpu") > 0);
    ck_assert(command_figure(&result, "publish.ratio.cpu.domus.send") > 0);
    ck_assert(command_figure(&result, "publish.ratio.cpu.domus_epoll.send") > 0);
    ck_assert(command_figure(&result, "publish.ratio.cpu.pipes.send") > 0);
    ck_assert(command_figure(&result, "publish.ratio.cpu.pipes_epoll.send") > 0);
}
END_TEST

/* A proxy that is not installed is left out, and the bench still ends well. */
START_TEST(bench_of_proxies_runs_those_that_are_there)
{
    char *const arguments[] = {
        (char[]){DOMT_BIN_DIR "/bench_proxy"},
        (char[]){"--config"},
        (char[]){DOMT_SOURCE_DIR "/examples/proxy.yaml"},
        (char[]){"--rounds"},
        (char[]){"1"},
        (char[]){"--seconds"},
        (char[]){"0.02"},
        NULL,
    };
    if (has_two_cpus())
        (void)run(arguments);
}
END_TEST

/* Without nginx it does nothing, and still ends well. */
START_TEST(bench_of_tls_prints_each_row_and_its_ratios)
{
    char *const arguments[] = {
        (char[]){DOMT_BIN_DIR "/bench_tls"},
        (char[]){"--config"},
        (char[]){CONFIG},
        (char[]){"--rounds"},
        (char[]){"1"},
        (char[]){"--seconds"},
        (char[]){"0.02"},
        (char[]){"echo"},
        (char[]){"echo_16k"},
        (char[]){"get"},
        (char[]){"full"},
        (char[]){"resumed"},
        NULL,
    };
    if (!has_two_cpus())
        return;
    struct command_result result = run(arguments);

    if (result.count == 0)
        return;
    ck_assert(command_figure(&result, "tls_echo_domus_to_bare_cpu") > 0);
    ck_assert(command_figure(&result, "tls_echo_16k_domus_epoll_to_bare_bytes") > 0);
    ck_assert(command_figure(&result, "tls_get_domus_to_nginx_cpu") > 0);
    ck_assert(command_figure(&result, "tls_full_nginx_cpu") > 0);
    ck_assert(command_figure(&result, "tls_resumed_domus_to_nginx_cpu") > 0);
}
END_TEST

DOMT_MAIN("servers", 120, bench_of_echoes_prints_each_row_and_its_ratios,
          bench_of_publications_reads_each_delivery, bench_of_proxies_runs_those_that_are_there,
          bench_of_tls_prints_each_row_and_its_ratios)
