/* The order in which the only runner of a pool takes jobs, for each policy; and what the policy
 * `rings` does beyond the other policies (policies_test.c): where jobs go when a ring is full,
 * which jobs a thief takes and from which runner, and the growth of the global ring with and
 * without memory.
 *
 * No test has threads: the runners are stepped in turn, so each count is exact. */
#include "base/memory.h"
#include "runtime/policies/global_ring.h"
#include "tests/runtime/policies.h"

#include <errno.h>

/* --- the order of each policy ----------------------------------------------------------------- */

#define LETTERS 8u /* most jobs whose order is checked at once */

/* A policy, and the order in which its only runner takes the jobs `a`, `b`, `c` and `d` in four
 * cases. */
typedef struct expected {
    const domus_policy *policy;
    const char *central;  /* order of the jobs if a to d are put from outside */
    const char *internal; /* order of the jobs if a to d are put by the runner's own actors */
    /* order of the jobs if a and b are put from outside, and then c and d by the runner's own
     * actors */
    const char *both;
    /* order of the jobs if a, b and c are put by the runner's own actors, and the first one that is
     * taken resumes */
    const char *resumed;
} expected;

static const expected all[] = {{&domus_policy_sharing, "abcd", "abcd", "abcd", "abca"},
                               {&domus_policy_rings, "abcd", "abcd", "cdab", "abca"},
                               {&domus_policy_deques, "abcd", "dcba", "dcab", "cbac"},
                               {&domus_policy_stealing, "abcd", "dcba", "dcab", "cbac"}};

enum { CENTRAL, INTERNAL };

static void put_job_of_letter(domt_stand *stand, uint32_t letter, int how)
{
    ck_assert(domt_job_claim(&stand->jobs[letter]));
    if (how == CENTRAL)
        domt_job_put_central(stand, &stand->jobs[letter]);
    else
        domt_job_put_internal(stand, domt_stand_runner(stand, 0), &stand->jobs[letter]);
}

/* Take all jobs, and write their order. The first `resumes` jobs that are taken are put again as
 * resumed. */
static void take_letters_in_order(domt_stand *stand, uint32_t resumes,
                                  char order[static LETTERS + 1])
{
    domus_runner *runner = domt_stand_runner(stand, 0);
    uint32_t count = 0;

    for (domt_job *job; (job = domt_job_take(stand, runner, 0)) != NULL;) {
        ck_assert_uint_lt(count, LETTERS);
        order[count++] = (char)('a' + job->number);
        if (count <= resumes)
            domt_job_put_resumed(stand, runner, job);
        else
            domt_job_end_turn(job);
    }
    order[count] = '\0';
}

static void check_order_of_policy(const expected *policy)
{
    domt_stand stand;
    char order[LETTERS + 1];

    domt_stand_make_pool(&stand, policy->policy, 1, LETTERS, 1);
    for (int how = CENTRAL; how <= INTERNAL; how++) {
        for (uint32_t i = 0; i < 4; i++)
            put_job_of_letter(&stand, i, how);
        take_letters_in_order(&stand, 0, order);
        ck_assert_str_eq(order, how == CENTRAL ? policy->central : policy->internal);
    }
    for (uint32_t i = 0; i < 4; i++)
        put_job_of_letter(&stand, i, i < 2 ? CENTRAL : INTERNAL);
    take_letters_in_order(&stand, 0, order);
    ck_assert_str_eq(order, policy->both);
    for (uint32_t i = 0; i < 3; i++)
        put_job_of_letter(&stand, i, INTERNAL);
    take_letters_in_order(&stand, 1, order);
    ck_assert_str_eq(order, policy->resumed);
    domt_stand_free_pool(&stand);
}

DOMT_TEST(only_runner_takes_jobs_in_the_order_of_its_policy)
{
    for (size_t p = 0; p < sizeof all / sizeof all[0]; p++)
        check_order_of_policy(&all[p]);
}

/* --- rings ------------------------------------------------------------------------------------ */

#define PLACES          256u /* number of places in the ring of a runner */
#define TURNS_TO_GLOBAL 61u  /* number of the dequeue that looks into the global ring first */

static domt_stand stand;

static void make_pool_of_rings(uint32_t runners, uint32_t jobs)
{
    domt_stand_make_pool(&stand, &domus_policy_rings, runners, jobs, 1);
}

/* Put `count` jobs from job `first` on: into the ring of a runner, or from outside if `runner` is
 * negative. */
static void put_jobs_to_runner_or_outside(int runner, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        ck_assert(domt_job_claim(&stand.jobs[i]));
        if (runner < 0)
            domt_job_put_central(&stand, &stand.jobs[i]);
        else
            domt_job_put_internal(&stand, domt_stand_runner(&stand, (uint32_t)runner),
                                  &stand.jobs[i]);
    }
}

/* Check that the next `count` jobs that the runner takes are those from job `first` on, in
 * order. */
static void expect_runner_takes_jobs(uint32_t runner, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        domt_job *job = domt_job_take(&stand, domt_stand_runner(&stand, runner), 0);
        ck_assert_msg(job != NULL, "nothing in place of %u", i);
        ck_assert_uint_eq(job->number, i);
        domt_job_end_turn(job);
    }
}

static void expect_runner_finds_no_job(uint32_t runner)
{
    ck_assert_ptr_null(domt_job_take(&stand, domt_stand_runner(&stand, runner), 0));
}

static uint64_t count_events_of_runner(uint32_t runner, domus_runner_event what)
{
    return domt_stand_count_of_event(&stand, runner, what);
}

DOMT_TEST(full_ring_of_a_runner_overflows_to_the_global_one)
{
    make_pool_of_rings(2, PLACES + 44);
    put_jobs_to_runner_or_outside(0, 0, PLACES + 44);
    /* the runner takes from the global ring before it steals from the rings of others */
    expect_runner_takes_jobs(1, PLACES, 44);
    ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_GLOBAL), 44);
    ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_STEALS), 0);
    expect_runner_takes_jobs(1, 0, 1);
    ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_GLOBAL), 44);
    ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_STEALS), PLACES / 2);
    ck_assert_uint_eq(count_events_of_runner(0, DOMUS_RUNNER_STOLEN), PLACES / 2);
    expect_runner_takes_jobs(0, PLACES / 2, PLACES / 2);
    expect_runner_takes_jobs(1, 1, PLACES / 2 - 1);
    expect_runner_finds_no_job(0);
    expect_runner_finds_no_job(1);
    domt_stand_free_pool(&stand);
}

DOMT_TEST(local_ring_of_a_runner_wraps)
{
    make_pool_of_rings(1, PLACES);
    for (uint32_t round = 0; round < 1000; round++) {
        uint32_t count = round * 7 % (PLACES + 1);
        put_jobs_to_runner_or_outside(0, 0, count);
        expect_runner_takes_jobs(0, 0, count);
        expect_runner_finds_no_job(0);
    }
    ck_assert_uint_eq(count_events_of_runner(0, DOMUS_RUNNER_GLOBAL), 0);
    domt_stand_free_pool(&stand);
}

DOMT_TEST(job_that_resumes_with_a_full_ring_goes_to_the_global_one)
{
    make_pool_of_rings(1, PLACES + 1);
    put_jobs_to_runner_or_outside(0, 0, PLACES);
    domt_job *job = domt_job_take(&stand, domt_stand_runner(&stand, 0), 0);
    put_jobs_to_runner_or_outside(0, PLACES, 1);
    domt_job_put_resumed(&stand, domt_stand_runner(&stand, 0), job);
    /* The runner finds the job in its 61st dequeue, which is its first look into the global
     * ring. */
    expect_runner_takes_jobs(0, 1, TURNS_TO_GLOBAL - 2);
    expect_runner_takes_jobs(0, 0, 1);
    ck_assert_uint_eq(count_events_of_runner(0, DOMUS_RUNNER_GLOBAL), 1);
    expect_runner_takes_jobs(0, TURNS_TO_GLOBAL - 1, PLACES - TURNS_TO_GLOBAL + 2);
    expect_runner_finds_no_job(0);
    domt_stand_free_pool(&stand);
}

DOMT_TEST(thief_takes_half_rounded_up)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 8, 255, 256};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t half = (sizes[i] + 1) / 2;
        make_pool_of_rings(2, sizes[i]);
        put_jobs_to_runner_or_outside(0, 0, sizes[i]);
        expect_runner_takes_jobs(1, 0, 1);
        ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_STEALS), half);
        ck_assert_uint_eq(count_events_of_runner(0, DOMUS_RUNNER_STOLEN), half);
        ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_STOLEN), 0);
        expect_runner_takes_jobs(0, half, sizes[i] - half);
        expect_runner_takes_jobs(1, 1, half - 1);
        ck_assert_uint_eq(count_events_of_runner(1, DOMUS_RUNNER_STEALS), half);
        domt_stand_free_pool(&stand);
    }
}

DOMT_TEST(thief_goes_around_behind_its_last_victim)
{
    make_pool_of_rings(4, 12);
    put_jobs_to_runner_or_outside(0, 0, 4);
    put_jobs_to_runner_or_outside(1, 4, 4);
    put_jobs_to_runner_or_outside(2, 8, 4);
    /* runner 3 steals two of the four jobs of runner i: the first take returns one of them at once,
     * and the next take the other */
    for (uint32_t i = 0; i < 3; i++) {
        expect_runner_takes_jobs(3, 4 * i, 2);
        ck_assert_uint_eq(count_events_of_runner(i, DOMUS_RUNNER_STOLEN), 2);
    }
    expect_runner_takes_jobs(3, 2, 1);
    expect_runner_takes_jobs(1, 6, 2);
    /* runner 1 comes next, but has no job any more, so the thief goes on to runner 2 */
    expect_runner_takes_jobs(3, 10, 1);
    expect_runner_takes_jobs(3, 3, 1);
    expect_runner_takes_jobs(3, 11, 1);
    expect_runner_finds_no_job(3);
    domt_stand_free_pool(&stand);
}

/* Two jobs that resume again and again must not keep the runner from the global ring. */
DOMT_TEST(runner_with_work_of_its_own_looks_into_the_global_ring)
{
    make_pool_of_rings(1, 2 + 10);
    put_jobs_to_runner_or_outside(0, 0, 2);
    put_jobs_to_runner_or_outside(-1, 2, 10);
    for (uint32_t turn = 1; turn <= 10 * TURNS_TO_GLOBAL; turn++) {
        domt_job *job = domt_job_take(&stand, domt_stand_runner(&stand, 0), 0);
        bool is_due = turn % TURNS_TO_GLOBAL == 0;
        ck_assert_msg(is_due == (job->number >= 2), "turn %u: job %u", turn, job->number);
        if (is_due)
            ck_assert_uint_eq(job->number, 1 + turn / TURNS_TO_GLOBAL);
        else
            domt_job_put_resumed(&stand, domt_stand_runner(&stand, 0), job);
    }
    ck_assert_uint_eq(count_events_of_runner(0, DOMUS_RUNNER_GLOBAL), 10);
    domt_stand_free_pool(&stand);
}

#define MANY 10000u

DOMT_TEST(global_ring_grows_and_keeps_the_order)
{
    make_pool_of_rings(1, MANY);
    put_jobs_to_runner_or_outside(-1, 0, DOMI_GLOBAL_RING_PLACES);
    /* these takes move the first job of the ring to the middle of its places before the ring
     * grows */
    expect_runner_takes_jobs(0, 0, 40);
    put_jobs_to_runner_or_outside(-1, DOMI_GLOBAL_RING_PLACES, MANY - DOMI_GLOBAL_RING_PLACES);
    expect_runner_takes_jobs(0, 40, MANY - 40);
    expect_runner_finds_no_job(0);
    ck_assert_uint_eq(count_events_of_runner(0, DOMUS_RUNNER_GLOBAL), MANY);
    domt_stand_free_pool(&stand);
}

static size_t capacity_of_global_ring(void)
{
    /* the global ring is the first member of the policy's data */
    return ((domi_global_ring *)stand.pool->data)->capacity;
}

DOMT_TEST(global_ring_without_memory_to_grow_loses_nothing)
{
    make_pool_of_rings(1, MANY);
    put_jobs_to_runner_or_outside(-1, 0, 20);
    expect_runner_takes_jobs(0, 0, 20);
    domi_memory_fail_allocation_after(0, 1);
    /* 64 jobs go into the global ring, and the others into the list behind it */
    put_jobs_to_runner_or_outside(-1, 0, 1000);
    expect_runner_takes_jobs(0, 0, 500);
    /* these jobs go to the end of the list, although the ring has room */
    put_jobs_to_runner_or_outside(-1, 1000, 500);
    expect_runner_takes_jobs(0, 500, 990);
    put_jobs_to_runner_or_outside(-1, 1500, 500);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(capacity_of_global_ring(), DOMI_GLOBAL_RING_PLACES);
    expect_runner_takes_jobs(0, 1490, 510);
    expect_runner_finds_no_job(0);
    put_jobs_to_runner_or_outside(-1, 2000, MANY - 2000); /* from here on the ring can grow */
    ck_assert_uint_eq(capacity_of_global_ring(), 8192);
    expect_runner_takes_jobs(0, 2000, MANY - 2000);
    expect_runner_finds_no_job(0);
    domt_stand_free_pool(&stand);
}

/* Each growth of the ring fails once, in turn. Before the next growth the list behind the ring is
 * empty again. */
DOMT_TEST(failed_growth_of_global_ring_loses_nothing)
{
    for (int growth = 0; growth < 7; growth++) {
        make_pool_of_rings(1, MANY);
        domi_memory_fail_allocation_after(growth, 0);
        put_jobs_to_runner_or_outside(-1, 0, 6000);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_uint_eq(capacity_of_global_ring(), (size_t)DOMI_GLOBAL_RING_PLACES << growth);
        /* the jobs of the list have moved into the ring, which has room again */
        expect_runner_takes_jobs(0, 0, 5990);
        put_jobs_to_runner_or_outside(-1, 6000, MANY - 6000);
        expect_runner_takes_jobs(0, 5990, MANY - 5990);
        expect_runner_finds_no_job(0);
        domt_stand_free_pool(&stand);
    }
}

DOMT_TEST(start_fails_without_memory_for_the_global_ring)
{
    make_pool_of_rings(1, 1);
    domus_policy_rings.fini(stand.pool);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_policy_rings.init(stand.pool), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_eq(domus_policy_rings.init(stand.pool), 0);
    domt_stand_free_pool(&stand);
}

DOMT_SUITE(60)
