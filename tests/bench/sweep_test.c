/* Each load of `bench sweep` runs against its service for a moment, as a pair of processes, and the
 * sweep prints a line for each value. A load against the wrong service fails. */
#include "tests/support/suite.h"

#include "bench/support/command.h"
#include "bench/support/server.h"
#include "bench/sweep_rows.h"
#include "bench/sweep_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SWEEP DOMT_BIN_DIR "/bench_sweep"

static struct command_result result;

static void start_service_for_load(const char *name, struct server *server)
{
    char *arguments[] = {(char[]){SWEEP},
                         (char[]){"serve"},
                         (char *)(uintptr_t)name,
                         (char[]){"0"},
                         (char[]){"--set"},
                         (char[]){"scheduler.ioRatio=60"},
                         NULL};

    ck_assert_msg(server_start(server, SERVER_ANY_CPU, arguments) == 0, "%s: %s", name,
                  server->error);
}

static int run_load_of_sweep(const char *name, const struct server *server)
{
    char port[8], watched[16];
    char *arguments[] = {(char[]){SWEEP},
                         (char[]){"load"},
                         (char *)(uintptr_t)name,
                         port,
                         (char[]){"--seconds"},
                         (char[]){"0.1"},
                         (char[]){"--watch"},
                         watched,
                         NULL};
    const struct command command = {.arguments = arguments, .cpus = 2, .seconds_max = 20};

    snprintf(port, sizeof port, "%u", server->port);
    snprintf(watched, sizeof watched, "%d", (int)server->pid);
    return command_run_and_read_figures(&command, &result);
}

DOMT_TEST(each_load_of_sweep_prints_its_figures)
{
    static const char *const positive[] = {"rate", "p50", "p99", "requests", "cpu", "busy"};

    for (uint32_t i = 0; i < SWEEP_ROWS; i++) {
        const struct sweep_row *row = &sweep_rows[i];
        struct server server;
        struct server_usage usage;

        start_service_for_load(row->name, &server);
        ck_assert_msg(run_load_of_sweep(row->name, &server) == 0, "%s", row->name);
        ck_assert_msg(server_stop(&server, &usage) == 0, "%s: %s", row->name, server.error);
        for (size_t j = 0; j < sizeof positive / sizeof positive[0]; j++)
            ck_assert_msg(command_first_figure_of_name(&result, positive[j]) > 0, "%s of %s",
                          positive[j], row->name);
        ck_assert(command_first_figure_of_name(&result, "errors") == 0);
        /* The load sends one burst at its start, so the measured rate is somewhat above the wanted
         * one. */
        ck_assert_msg(row->rate == 0 ||
                          command_first_figure_of_name(&result, "rate") < 1.5 * row->rate,
                      "%s", row->name);
    }
}

DOMT_TEST(load_fails_against_wrong_service)
{
    struct server server;
    struct server_usage usage;

    start_service_for_load("echo", &server);
    ck_assert_int_eq(run_load_of_sweep("web", &server), -ECHILD);
    ck_assert_int_eq(server_stop(&server, &usage), 0);
}

DOMT_TEST(sweep_prints_a_line_for_each_value)
{
    FILE *lines = popen(SWEEP " --rounds 1 --seconds 0.02 --keys pools.work.throughput 2>&1", "r");
    char line[256], key[64];
    double value, rate, gain;
    int count = 0;

    ck_assert_ptr_nonnull(lines);
    while (fgets(line, sizeof line, lines) != NULL) {
        if (strncmp(line, "pool ", 5) != 0)
            continue;
        ck_assert_int_eq(
            sscanf(line, "pool %63s %lf %lf %*f %*f %*f %*f %lf", key, &value, &rate, &gain), 4);
        ck_assert_str_eq(key, "pools.work.throughput");
        ck_assert(rate > 0 && gain > 0 && (count != 0 || gain == 1));
        count++;
    }
    ck_assert_int_eq(pclose(lines), 0);
    ck_assert_int_eq(count, 3);
}

DOMT_TEST(sweep_keys_are_chosen_by_whole_names)
{
    const struct sweep_key *ratio = &sweep_keys[0], *pools = &sweep_keys[SWEEP_KEYS_COUNT - 1];
    const struct sweep_row *echo = sweep_find_row_by_name("echo"),
                           *pool = sweep_find_row_by_name("pool");

    ck_assert_ptr_null(sweep_find_row_by_name("ech"));
    ck_assert(sweep_key_is_wanted(ratio, echo, NULL));
    ck_assert(sweep_key_is_wanted(ratio, echo, "a,scheduler.ioRatio,b"));
    ck_assert(!sweep_key_is_wanted(ratio, echo, "scheduler.ioRatios,scheduler"));
    ck_assert(!sweep_key_is_wanted(pools, echo, NULL));
    ck_assert(sweep_key_is_wanted(pools, pool, "pools.work.throughput"));
}

DOMT_SUITE(60)
