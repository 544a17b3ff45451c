/* The rows of the actor benches on domus, with small sizes; each row checks its own result. */
#include "tests/support/suite.h"

#include "bench/support/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define PROGRAM DOMT_BIN_DIR "/actors_domus"

static struct command_result run_row(const char *name, uint64_t size, uint32_t threads)
{
    char row[32];
    char size_text[32];
    char threads_text[32];
    char *const arguments[] = {(char[]){PROGRAM}, row, size_text, threads_text, NULL};
    struct command command = {.arguments = arguments, .cpus = threads, .seconds_max = 60};
    struct command_result result;

    snprintf(row, sizeof row, "%s", name);
    snprintf(size_text, sizeof size_text, "%" PRIu64, size);
    snprintf(threads_text, sizeof threads_text, "%" PRIu32, threads);
    ck_assert_msg(command_run(&command, &result) == 0, "%s", name);
    ck_assert_msg(command_figure(&result, "seconds") > 0, "%s", name);
    ck_assert_msg(command_figure(&result, "cpu_seconds") >= 0, "%s", name);
    return result;
}

DOMT_TEST(rows_of_asks_check_out)
{
    (void)run_row("ask", 1, 1);
    (void)run_row("ask", 20000, 1);
    (void)run_row("ask_cross", 2000, 2);
    (void)run_row("fan_out", 2, 1);
}

/* The counts are less than a batch, exactly a batch, and more than a batch. */
DOMT_TEST(row_of_spawns_checks_out)
{
    (void)run_row("spawn_stop", 1, 1);
    (void)run_row("spawn_stop", 1000, 1);
    (void)run_row("spawn_stop", 20001, 1);
}

DOMT_TEST(rows_of_timers_check_out)
{
    struct command_result result = run_row("timers", 20000, 1);

    ck_assert(command_figure(&result, "seconds") > 0.099);
    result = run_row("timers_cancel", 20000, 1);
    ck_assert(command_figure(&result, "seconds") < 10);
}

static void check_ring(const char *row, uint64_t size)
{
    static const char *const figures[] = {"startup_seconds", "again_seconds", "stop_seconds",
                                          "touch_seconds"};
    struct command_result result = run_row(row, size, 1);

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        ck_assert_msg(command_figure(&result, figures[i]) > 0, "%s", figures[i]);
    ck_assert(command_figure(&result, "passes") == 1000000);
}

/* One of the counts is more than a batch, the number of actors that are spawned in one turn of the
 * loop. */
DOMT_TEST(rings_start_pass_stop_and_start_again)
{
    check_ring("ring", 10);
    check_ring("ring", 10007);
    check_ring("ring_shuffled", 10);
    check_ring("ring_shuffled", 10007);
}

DOMT_TEST(row_that_is_not_there_is_a_failure)
{
    char *const arguments[] = {(char[]){PROGRAM}, (char[]){"none"}, (char[]){"1"}, (char[]){"1"},
                               NULL};
    struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 60};
    struct command_result result;

    ck_assert_int_lt(command_run(&command, &result), 0);
}

DOMT_SUITE(120)
