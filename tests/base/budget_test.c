/* Budgets: what counts, what is refused, and that a refusal changes nothing. */
#include <domus/budget.h>

#include "tests/support/suite.h"

#include <errno.h>

DOMT_TEST(charges_count_until_they_are_taken_off)
{
    domus_budget budget = {.bytes_max = 100};
    uint64_t first = 0, second = 0;

    ck_assert_int_eq(domus_budget_charge(&budget, &first, 60), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &second, 40), 0);
    ck_assert_uint_eq(budget.used_bytes, 100);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 10), 0);
    ck_assert_uint_eq(first, 10);
    ck_assert_uint_eq(budget.used_bytes, 50);
    ck_assert_int_eq(domus_budget_charge(&budget, &second, 0), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 0), 0);
    ck_assert_uint_eq(first + second + budget.used_bytes, 0);
}

DOMT_TEST(refused_charge_changes_nothing)
{
    domus_budget budget = {.bytes_max = 100};
    uint64_t first = 0, second = 0;

    ck_assert_int_eq(domus_budget_charge(&budget, &first, 101), -ENOMEM);
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(budget.used_bytes, 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 90), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &second, 11), -ENOMEM);
    ck_assert_int_eq(domus_budget_charge(&budget, &first, 101), -ENOMEM);
    ck_assert_uint_eq(first, 90);
    ck_assert_uint_eq(budget.used_bytes, 90);
}

/* The bound of a budget may be lowered while bytes count. */
DOMT_TEST(fewer_bytes_are_never_refused)
{
    domus_budget budget = {.bytes_max = 100};
    uint64_t charged = 0;

    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 100), 0);
    budget.bytes_max = 10;
    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 50), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 50), 0);
    ck_assert_int_eq(domus_budget_charge(&budget, &charged, 51), -ENOMEM);
    ck_assert_uint_eq(budget.used_bytes, 50);
}

DOMT_TEST(without_a_budget_nothing_counts)
{
    uint64_t charged = 0;

    ck_assert_int_eq(domus_budget_charge(NULL, &charged, UINT64_MAX), 0);
    ck_assert_uint_eq(charged, 0);
}

DOMT_SUITE(10)
