/* The rows of the actor benches with small sizes, the ring on plain threads, and the page that the
 * ring bench writes. */
#include "bench/ring_report.h"
#include "bench/support/command.h"
#include "bench/support/thread_limits.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The rows of the actor benches on domus, with small sizes; each row checks its own result. */

#define PROGRAM DOMT_BIN_DIR "/actors_domus"

static struct command_result run_row_of_bench(const char *name, uint64_t size, uint32_t threads)
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
    ck_assert_msg(command_run_and_read_figures(&command, &result) == 0, "%s", name);
    ck_assert_msg(command_first_figure_of_name(&result, "seconds") > 0, "%s", name);
    ck_assert_msg(command_first_figure_of_name(&result, "cpu_seconds") >= 0, "%s", name);
    return result;
}

DOMT_TEST(rows_of_asks_give_right_results)
{
    (void)run_row_of_bench("ask", 1, 1);
    (void)run_row_of_bench("ask", 20000, 1);
    (void)run_row_of_bench("ask_cross", 2000, 2);
    (void)run_row_of_bench("fan_out", 2, 1);
}

/* The numbers of actors are less than a batch, exactly a batch, and more than a batch. */
DOMT_TEST(row_of_spawns_gives_right_results)
{
    (void)run_row_of_bench("spawn_stop", 1, 1);
    (void)run_row_of_bench("spawn_stop", 1000, 1);
    (void)run_row_of_bench("spawn_stop", 20001, 1);
}

DOMT_TEST(rows_of_timers_give_right_results)
{
    struct command_result result = run_row_of_bench("timers", 20000, 1);

    ck_assert(command_first_figure_of_name(&result, "seconds") > 0.099);
    result = run_row_of_bench("timers_cancel", 20000, 1);
    ck_assert(command_first_figure_of_name(&result, "seconds") < 10);
}

static void check_row_of_ring(const char *row, uint64_t size)
{
    static const char *const figures[] = {"startup_seconds", "again_seconds", "stop_seconds",
                                          "touch_seconds"};
    struct command_result result = run_row_of_bench(row, size, 1);

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        ck_assert_msg(command_first_figure_of_name(&result, figures[i]) > 0, "%s", figures[i]);
    ck_assert(command_first_figure_of_name(&result, "passes") == 1000000);
}

/* One ring has more actors than a batch, which is the number that are spawned in one turn of the
 * loop. */
DOMT_TEST(rings_pass_tokens_and_start_again)
{
    check_row_of_ring("ring", 10);
    check_row_of_ring("ring", 10007);
    check_row_of_ring("ring_shuffled", 10);
    check_row_of_ring("ring_shuffled", 10007);
}

DOMT_TEST(unknown_row_of_bench_is_a_failure)
{
    char *const arguments[] = {(char[]){PROGRAM}, (char[]){"none"}, (char[]){"1"}, (char[]){"1"},
                               NULL};
    struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 60};
    struct command_result result;

    ck_assert_int_lt(command_run_and_read_figures(&command, &result), 0);
}

/* --- ring report ------------------------------------------------------------------------------ */

/* The page that the ring bench writes. */

static char directory[] = "/tmp/domt-ring-XXXXXX";

static struct ring_point make_empty_point_of_chart(uint64_t size)
{
    struct ring_point made = {.size = size};

    for (int order = 0; order < RING_ORDERS; order++) {
        for (int who = 0; who < CONTENDERS; who++)
            made.of[order][who] = (struct ring_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    }
    return made;
}

static void read_page_of_bench(char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "%s/ring.md", directory);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

DOMT_TEST(ring_page_formats_numbers_and_marks_missing_ones)
{
    static char text[16384];
    struct ring_point points[] = {make_empty_point_of_chart(10),
                                  make_empty_point_of_chart(1000000)};

    points[0].of[0][CONTENDER_DOMUS] =
        (struct ring_figures){51.26e6, 13.04e-6, 1.9e-6, 11e-6, 4.5e-6, 1.185, 2048};
    points[1].of[0][CONTENDER_DOMUS] =
        (struct ring_figures){4.2e6, 1.25, 0.139, 0.8, 0.33, 1.5, 241.6};
    points[1].of[0][CONTENDER_CAF].passes_s = 1.26e6;
    points[1].of[0][CONTENDER_CAF].startup_s = 3.47;
    points[0].of[0][CONTENDER_THREADS].passes_s = 77.86e3;
    points[0].of[0][CONTENDER_THREADS].startup_s = 0.25;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    /* If gnuplot or its script is missing, the ring bench writes the page without pictures, and
     * returns an error. */
    ck_assert_int_lt(ring_report(directory, "/nonexistent.gp", points, 2, 5, true, "A note.\n"), 0);
    read_page_of_bench(text, sizeof text);
    ck_assert_ptr_nonnull(
        strstr(text, "| 10 | 51.3 | - | - | 77.9 k | 13.0 us | - | - | 250 ms |\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "| 1,000,000 | 4.20 | 1.26 | - | - | 1.25 s | 3.47 s | - | - |\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "| 10 | 2048 | 13.0 us | 11.0 us | 1.19 | 4.50 us | 1.90 us |\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "| 1,000,000 | 242 | 1.25 s | 800 ms | 1.50 | 330 ms | 139 ms |\n"));
    ck_assert_ptr_nonnull(strstr(text, "median of 5,"));
    ck_assert_ptr_nonnull(strstr(text, " a stack of 64 KiB,"));
    ck_assert_ptr_nonnull(strstr(text, "`./dev bench ring --long --out docs` wrote"));
    ck_assert_str_eq(text + strlen(text) - strlen("\nA note.\n"), "\nA note.\n");
    rmdir(directory);
}

DOMT_TEST(unwritable_ring_page_is_an_error)
{
    struct ring_point one = make_empty_point_of_chart(10);

    ck_assert_int_eq(ring_report("/nonexistent", "bench/ring.gp", &one, 1, 1, false, ""), -ENOENT);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* The ring bench on plain threads, and the number of threads that the bench can make. */

#define THREADS_PROGRAM DOMT_BIN_DIR "/actors_threads"

static int run_ring_of_threads(const char *row, const char *size, uint64_t memory_max_bytes,
                               struct command_result *ret_result)
{
    char words[2][32];
    char *const arguments[] = {(char[]){THREADS_PROGRAM}, words[0], words[1], (char[]){"1"}, NULL};
    struct command command = {
        .arguments = arguments,
        .cpus = 1,
        .seconds_max = 60,
        .memory_max_bytes = memory_max_bytes,
    };

    snprintf(words[0], sizeof words[0], "%s", row);
    snprintf(words[1], sizeof words[1], "%s", size);
    return command_run_and_read_figures(&command, ret_result);
}

/* The program itself checks where the tokens end. The rings have fewer processes than tokens, as
 * many, and more. */
DOMT_TEST(ring_of_plain_threads_passes_all_tokens)
{
    static const char *const rows[] = {"ring", "ring_shuffled"};
    static const char *const sizes[] = {"1", "7", "10", "33"};

    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 4; j++) {
            struct command_result result;
            ck_assert_msg(run_ring_of_threads(rows[i], sizes[j], 0, &result) == 0, "%s of %s",
                          rows[i], sizes[j]);
            ck_assert(command_first_figure_of_name(&result, "passes") == 100000);
            ck_assert(command_first_figure_of_name(&result, "seconds") > 0);
            ck_assert(command_first_figure_of_name(&result, "startup_seconds") > 0);
        }
    }
}

/* The address space of the process has room for some hundred stacks, so no further threads can be
 * made. */
DOMT_TEST(ring_of_threads_fails_at_thread_limit)
{
    struct command_result result;

    if (!DOMT_SANITIZED) /* a sanitizer needs more address space than 64 MiB */
        ck_assert_int_eq(run_ring_of_threads("ring", "4000", UINT64_C(64) << 20, &result), -ECHILD);
    ck_assert_int_eq(run_ring_of_threads("ring", "0", 0, &result), -ECHILD);
    ck_assert_int_eq(run_ring_of_threads("none", "10", 0, &result), -ECHILD);
}

DOMT_TEST(thread_limit_leaves_some_to_others)
{
    struct thread_limits limits = {.user = THREAD_LIMIT_NONE,
                                   .system = THREAD_LIMIT_NONE,
                                   .group = THREAD_LIMIT_NONE,
                                   .maps = THREAD_LIMIT_NONE,
                                   .used = 300};

    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 32000);
    limits.system = 32768;
    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 32768 - 4096 - 300);
    limits.user = 8000;
    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 7000 - 300);
    limits.group = 800;
    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 700 - 300);
    limits.maps = 512 + 601;
    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 300);
    limits.maps = 100;
    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 0);
    limits.maps = THREAD_LIMIT_NONE;
    limits.used = 900;
    ck_assert_uint_eq(thread_limits_count_startable_threads(&limits, 32000), 0);
}

DOMT_TEST(thread_limits_of_this_machine_are_readable)
{
    struct thread_limits limits;

    thread_limits_read(&limits);
    /* The limit is at most the largest value that the kernel allows. */
    ck_assert(limits.system > 0 && limits.system <= UINT64_C(4194304));
    ck_assert(limits.used > 0 && limits.used < limits.system);
    ck_assert(limits.maps > 0 && limits.user > 0 && limits.group > 0);
    ck_assert(thread_limits_count_startable_threads(&limits, 32000) <= 32000);
}

DOMT_SUITE(120)
