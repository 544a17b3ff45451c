/* The ring bench on plain threads, and the number of threads that the bench can make. */
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include "bench/support/command.h"
#include "bench/support/thread_limits.h"

#include <errno.h>
#include <stdio.h>

#define PROGRAM DOMT_BIN_DIR "/actors_threads"

static int run_ring(const char *row, const char *size, uint64_t memory_max_bytes,
                    struct command_result *ret_result)
{
    char words[2][32];
    char *const arguments[] = {(char[]){PROGRAM}, words[0], words[1], (char[]){"1"}, NULL};
    struct command command = {
        .arguments = arguments,
        .cpus = 1,
        .seconds_max = 60,
        .memory_max_bytes = memory_max_bytes,
    };

    snprintf(words[0], sizeof words[0], "%s", row);
    snprintf(words[1], sizeof words[1], "%s", size);
    return command_run(&command, ret_result);
}

/* The program itself checks where the tokens end. The rings have fewer processes than tokens, as
 * many, and more. */
DOMT_TEST(ring_of_threads_passes_all_tokens)
{
    static const char *const rows[] = {"ring", "ring_shuffled"};
    static const char *const sizes[] = {"1", "7", "10", "33"};

    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 4; j++) {
            struct command_result result;
            ck_assert_msg(run_ring(rows[i], sizes[j], 0, &result) == 0, "%s of %s", rows[i],
                          sizes[j]);
            ck_assert(command_figure(&result, "passes") == 100000);
            ck_assert(command_figure(&result, "seconds") > 0);
            ck_assert(command_figure(&result, "startup_seconds") > 0);
        }
    }
}

/* The address space has room for some hundred stacks, so further threads cannot be made. */
DOMT_TEST(ring_of_threads_ends_when_no_more_can_be_made)
{
    struct command_result result;

    if (!DOMT_SANITIZED) /* a sanitizer needs more address space than 64 MiB */
        ck_assert_int_eq(run_ring("ring", "4000", UINT64_C(64) << 20, &result), -ECHILD);
    ck_assert_int_eq(run_ring("ring", "0", 0, &result), -ECHILD);
    ck_assert_int_eq(run_ring("none", "10", 0, &result), -ECHILD);
}

DOMT_TEST(limits_of_threads_leave_some_to_others)
{
    struct thread_limits limits = {.user = THREAD_LIMIT_NONE,
                                   .system = THREAD_LIMIT_NONE,
                                   .group = THREAD_LIMIT_NONE,
                                   .maps = THREAD_LIMIT_NONE,
                                   .used = 300};

    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 32000);
    limits.system = 32768;
    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 32768 - 4096 - 300);
    limits.user = 8000;
    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 7000 - 300);
    limits.group = 800;
    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 700 - 300);
    limits.maps = 512 + 601;
    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 300);
    limits.maps = 100;
    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 0);
    limits.maps = THREAD_LIMIT_NONE;
    limits.used = 900;
    ck_assert_uint_eq(thread_limits_bear(&limits, 32000), 0);
}

DOMT_TEST(limits_of_threads_of_this_machine_can_be_read)
{
    struct thread_limits limits;

    thread_limits_read(&limits);
    /* the largest value that the kernel allows */
    ck_assert(limits.system > 0 && limits.system <= UINT64_C(4194304));
    ck_assert(limits.used > 0 && limits.used < limits.system);
    ck_assert(limits.maps > 0 && limits.user > 0 && limits.group > 0);
    ck_assert(thread_limits_bear(&limits, 32000) <= 32000);
}

DOMT_SUITE(120)
