/* The order in which the only runner of a pool takes jobs, for each policy. */
#include "tests/runtime/policies.h"

#define LETTERS 8u /* the most jobs of which an order is held */

/* A policy, and the order in which its only runner takes jobs `a`, `b`... in four cases. */
typedef struct expected {
    const domus_policy *policy;
    const char *central;  /* a to d come from outside */
    const char *internal; /* a to d come from the runner's actors */
    const char *both;     /* a and b come from outside, and then c and d from its actors */
    const char *resumed;  /* a, b and c come from its actors; the first one taken resumes */
} expected;

static const expected all[] = {
    {&domus_policy_sharing, "abcd", "abcd", "abcd", "abca"},
    {&domus_policy_rings, "abcd", "abcd", "cdab", "abca"},
    {&domus_policy_deques, "abcd", "dcba", "dcab", "cbac"},
    {&domus_policy_stealing, "abcd", "dcba", "dcab", "cbac"},
};

enum { CENTRAL, INTERNAL };

static void put_letter(domt_stand *stand, uint32_t letter, int how)
{
    ck_assert(domt_job_claim(&stand->jobs[letter]));
    if (how == CENTRAL)
        domt_put_central(stand, &stand->jobs[letter]);
    else
        domt_put_internal(stand, domt_stand_runner(stand, 0), &stand->jobs[letter]);
}

/* Take all jobs; the first `resumes` of them have more to do. */
static void take_letters(domt_stand *stand, uint32_t resumes, char order[static LETTERS + 1])
{
    domus_runner *runner = domt_stand_runner(stand, 0);
    uint32_t count = 0;

    for (domt_job *job; (job = domt_take(stand, runner, 0)) != NULL;) {
        ck_assert_uint_lt(count, LETTERS);
        order[count++] = (char)('a' + job->number);
        if (count <= resumes)
            domt_put_resumed(stand, runner, job);
        else
            domt_job_end(job);
    }
    order[count] = '\0';
}

static void check_order(const expected *policy)
{
    domt_stand stand;
    char order[LETTERS + 1];

    domt_stand_make(&stand, policy->policy, 1, LETTERS, 1);
    for (int how = CENTRAL; how <= INTERNAL; how++) {
        for (uint32_t i = 0; i < 4; i++)
            put_letter(&stand, i, how);
        take_letters(&stand, 0, order);
        ck_assert_str_eq(order, how == CENTRAL ? policy->central : policy->internal);
    }
    for (uint32_t i = 0; i < 4; i++)
        put_letter(&stand, i, i < 2 ? CENTRAL : INTERNAL);
    take_letters(&stand, 0, order);
    ck_assert_str_eq(order, policy->both);
    for (uint32_t i = 0; i < 3; i++)
        put_letter(&stand, i, INTERNAL);
    take_letters(&stand, 1, order);
    ck_assert_str_eq(order, policy->resumed);
    domt_stand_free(&stand);
}

DOMT_TEST(only_runner_takes_jobs_in_the_order_of_its_policy)
{
    for (size_t p = 0; p < sizeof all / sizeof all[0]; p++)
        check_order(&all[p]);
}

DOMT_SUITE(20)
