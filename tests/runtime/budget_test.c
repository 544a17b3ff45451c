/* runtime/system/budget.c at the edges: how much the library may hold, for foreign memory and
 * limits of all sizes. */
#include "runtime/system/budget.h"

#include "tests/support/suite.h"

#include <domus/memory.h>

static domi_budget budget_of(uint64_t used, int64_t held, uint64_t limit)
{
    const domi_usage usage = {.used = used, .limit = limit};

    return domi_budget_of(&usage, held, domi_marks_of(limit, 80, 90));
}

static void holds(domi_budget now, uint64_t own, uint64_t foreign, uint64_t high, uint64_t last)
{
    ck_assert_uint_eq(now.own, own);
    ck_assert_uint_eq(now.foreign, foreign);
    ck_assert_uint_eq(now.marks.high, high);
    ck_assert_uint_eq(now.marks.critical, last);
}

DOMT_TEST(marks_are_shares_of_the_limit)
{
    domi_marks marks = domi_marks_of(1000, 80, 90);
    ck_assert_uint_eq(marks.high, 800);
    ck_assert_uint_eq(marks.critical, 900);
    marks = domi_marks_of(199, 1, 100); /* rounded down, not to whole hundreds */
    ck_assert_uint_eq(marks.high, 1);
    ck_assert_uint_eq(marks.critical, 199);
    marks = domi_marks_of(UINT64_C(1) << 60, 50, 100);
    ck_assert_uint_eq(marks.high, UINT64_C(1) << 59);
    ck_assert_uint_eq(marks.critical, UINT64_C(1) << 60);
}

DOMT_TEST(a_budget_is_what_foreign_memory_leaves_below_the_marks)
{
    holds(budget_of(0, 0, 1000), 0, 0, 800, 900);
    holds(budget_of(300, 300, 1000), 300, 0, 800, 900);
    holds(budget_of(300, 100, 1000), 100, 200, 600, 700);
    holds(budget_of(700, 25, 1000), 25, 675, 125, 225);
    holds(budget_of(700, 24, 1000), 24, 676, 125, 224); /* the least, from here on */
    holds(budget_of(800, 25, 1000), 25, 775, 125, 125);
    holds(budget_of(799, 25, 1000), 25, 774, 125, 126);
}

DOMT_TEST(foreign_memory_above_the_limit_leaves_an_eighth)
{
    holds(budget_of(1000, 0, 1000), 0, 1000, 125, 125);
    holds(budget_of(5000, 10, 1000), 10, 4990, 125, 125);
    holds(budget_of(UINT64_MAX, 10, 1000), 10, UINT64_MAX - 10, 125, 125);
}

DOMT_TEST(a_budget_grows_as_foreign_memory_falls)
{
    holds(budget_of(950, 100, 1000), 100, 850, 125, 125);
    holds(budget_of(600, 100, 1000), 100, 500, 300, 400);
    holds(budget_of(100, 100, 1000), 100, 0, 800, 900);
}

/* The counted memory may be more than the used memory, because of pages that were never written. It
 * may even be below zero, because one thread may give back memory that another one took. */
DOMT_TEST(own_memory_is_between_nothing_and_all_that_is_used)
{
    holds(budget_of(300, 301, 1000), 300, 0, 800, 900);
    holds(budget_of(300, INT64_MAX, 1000), 300, 0, 800, 900);
    holds(budget_of(300, -1, 1000), 0, 300, 500, 600);
    holds(budget_of(300, INT64_MIN, 1000), 0, 300, 500, 600);
}

DOMT_TEST(a_tiny_limit_has_budgets)
{
    holds(budget_of(8, 0, 8), 0, 8, 1, 1);
    holds(budget_of(0, 0, 8), 0, 0, 6, 7);
    holds(budget_of(7, 0, 7), 0, 7, 0, 0);
    holds(budget_of(0, 0, 0), 0, 0, 0, 0);
}

DOMT_TEST(what_may_be_queued_is_a_threads_part_of_a_share_of_the_budget)
{
    ck_assert_uint_eq(domi_budget_queue(1000000, 50, 1), 500000);
    ck_assert_uint_eq(domi_budget_queue(1000000, 50, 4), 125000);
    ck_assert_uint_eq(domi_budget_queue(1000000, 100, 1), 1000000);
    ck_assert_uint_eq(domi_budget_queue(131072, 50, 1), 65536);
    ck_assert_uint_eq(domi_budget_queue(131071, 50, 1), DOMI_QUEUE_LEAST);
    ck_assert_uint_eq(domi_budget_queue(0, 1, 1024), DOMI_QUEUE_LEAST);
}

DOMT_TEST(a_level_ends_a_twentieth_below_where_it_begins)
{
    const domi_marks marks = {.high = 200, .critical = 400};

    ck_assert_uint_eq(domi_level_end_bytes(200), 190);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_NORMAL, 199, marks), DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_NORMAL, 200, marks), DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_HIGH, 190, marks), DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_HIGH, 189, marks), DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_HIGH, 399, marks), DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_NORMAL, 400, marks), DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_CRITICAL, 380, marks), DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_CRITICAL, 379, marks), DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_CRITICAL, 189, marks), DOMUS_MEMORY_NORMAL);
}

/* Both budgets are the same: a use above it is critical at once, and the level ends below it. */
DOMT_TEST(with_both_budgets_the_same_a_level_is_critical_or_normal)
{
    const domi_marks marks = {.high = 100, .critical = 100};

    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_NORMAL, 99, marks), DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_NORMAL, 100, marks), DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_CRITICAL, 95, marks), DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_level_after(DOMUS_MEMORY_CRITICAL, 94, marks), DOMUS_MEMORY_NORMAL);
}

DOMT_TEST(the_next_look_comes_before_the_next_mark_is_passed)
{
    const uint64_t ms = 1000000;
    const uint64_t mib = 1024 * 1024;
    static const struct {
        uint64_t way_mib, grown_kib, took_ms, after_ms;
    } cases[] = {
        {400, 0, 100, 100},      /* nothing grows */
        {400, 102400, 100, 100}, /* a quarter of the way in an interval */
        {400, 102400, 50, 50},   /* a quarter of the way in half an interval */
        {400, 204800, 100, 50},  /* twice as fast */
        {400, 10240, 4, 40},     /* it goes on as fast as it has been */
        {400, 10240, 20, 100},   /* slower */
        {400, 409600, 100, 25},  /* the way was left behind */
        {400, 1024000, 5, 1},    /* never sooner than in a millisecond */
        {200, 0, 100, 50},       /* nothing grows, but a quarter may go at a MiB in a millisecond */
        {200, 1, 100, 50},       /* little grows */
        {200, 102400, 80, 40},   /* more */
        {0, 0, 100, 4},          /* just before a mark */
        {0, 255, 100, 4},        {0, 1024, 12, 3}, {1u << 30, 1u << 20, 3600000, 100},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_uint_eq(domi_look_after(100 * ms, cases[i].way_mib * mib,
                                          cases[i].grown_kib * 1024, cases[i].took_ms * ms),
                          cases[i].after_ms * ms);
    ck_assert_uint_eq(domi_look_after(100 * ms, mib, mib, 0), 4 * ms);
    ck_assert_uint_eq(domi_look_after(2 * ms, mib, 0, 2 * ms), 2 * ms);
}

DOMT_SUITE(10)
