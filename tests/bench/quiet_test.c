/* bench/support/quiet.c reads the first line of /proc/stat, and subtracts the CPU time of the bench
 * itself from the CPU time of the machine. */
#include "bench/support/quiet.h"

#include "tests/support/suite.h"

#include "bench/support/measure.h"

#include <unistd.h>

DOMT_TEST(line_of_all_cpus_is_read)
{
    struct quiet quiet;

    ck_assert(quiet_parse("cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\n", &quiet));
    ck_assert_uint_eq(quiet.busy, 1 + 20 + 300 + 600000 + 7000000 + 80000000);
    ck_assert_uint_eq(quiet.idle, 4000 + 50000);
}

DOMT_TEST(line_of_something_else_is_refused)
{
    struct quiet quiet;

    ck_assert(!quiet_parse("", &quiet));
    ck_assert(!quiet_parse("intr 1 2 3 4 5 6 7 8", &quiet));
    ck_assert(!quiet_parse("cpu0 1 2 3 4 5 6 7 8", &quiet));
    ck_assert(!quiet_parse("cpu 1 2 3 4 5 6 7", &quiet));
}

DOMT_TEST(others_took_what_was_used_and_is_not_own)
{
    uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    struct quiet from = {.busy = 1000, .idle = 5000};
    struct quiet to = {.busy = 1060, .idle = 5040};

    ck_assert(quiet_others(&from, &to, 0) == 0.6);
    ck_assert(quiet_others(&from, &to, 10 * tick_ns) == 0.5);
    ck_assert(quiet_others(&from, &to, 60 * tick_ns) == 0);
    ck_assert(quiet_others(&from, &to, 70 * tick_ns) == 0);
    ck_assert(quiet_others(&from, &from, 0) == 0);
}

DOMT_TEST(wait_for_quiet_has_an_end)
{
    uint64_t began_ns = measure_now_ns();

    ck_assert(quiet_await(1, began_ns));
    ck_assert(!quiet_await(-1, measure_now_ns()));
    ck_assert_uint_lt(measure_now_ns() - began_ns, UINT64_C(10000000000));
}

DOMT_SUITE(20)
