/* Policies (domus/policy.h): each of them takes each job once for each put, and loses no wake-up.
 * policy_rings_test.c tests the order in which they take jobs.
 *
 * Threads that are no runners put jobs from outside, and turns put further jobs, and themselves
 * again; no runner is called meanwhile. In most tests a producer waits until everything that
 * followed from its puts is done, and then pauses, so that runners park. Then no other put makes
 * up for a lost wake-up, and the test finds a job that is never taken. */
#include "tests/runtime/policies.h"

#include <unistd.h>

static const uint32_t runner_counts[] = {1, 2, 4};
#define COUNTS (sizeof runner_counts / sizeof runner_counts[0])

/* --- storms ----------------------------------------------------------------------------------- */

#define PRODUCERS_MAX 2u

typedef struct storm {
    uint32_t runners;
    uint32_t producers;
    uint32_t jobs; /* number of jobs that belong to each producer */
    uint32_t rounds;
    uint32_t burst; /* most jobs that a producer puts in a round */
    bool waits;     /* true: a producer waits until its last round is done */
    bool calls;     /* true: a producer calls a runner now and then */
} storm;

typedef struct producer {
    const storm *storm;
    domt_stand *stand;
    uint32_t number;
    domi_random random;
    bool lost; /* true: some jobs of this producer were not done in time */
    pthread_t thread;
} producer;

/* for each producer, the number of its jobs that are not idle */
static _Atomic uint32_t outstanding[PRODUCERS_MAX];

/* Returns a job of this group, which `chance` chooses. */
static domt_job *random_job_of_group(const domt_stand *stand, uint32_t group, uint32_t groups,
                                     uint32_t chance)
{
    return &stand->jobs[chance % (stand->jobs_count / groups) * groups + group];
}

static bool claim_and_count_job(domt_job *job)
{
    if (!domt_job_claim(job))
        return false;
    atomic_fetch_add_explicit(&outstanding[job->group], 1, memory_order_relaxed);
    return true;
}

static void end_and_count_job(domt_job *job)
{
    uint32_t group = job->group;
    domt_job_end_turn(job);
    atomic_fetch_sub_explicit(&outstanding[group], 1, memory_order_release);
}

/* number of producers in the present storm; constant while the storm lasts */
static uint32_t producers_now;

/* A turn of a job in a storm: spend one unit of the job's energy, give half of the rest to another
 * job, and put the job again. */
static void spend_energy_in_turn(domt_stand *stand, domus_runner *runner, domt_job *job)
{
    if (job->energy == 0) {
        end_and_count_job(job);
        return;
    }
    uint32_t energy = job->energy - 1;
    domt_job *other = random_job_of_group(stand, job->group, producers_now,
                                          domus_runner_chance(runner, 1u << 30));
    if (domus_runner_chance(runner, 2) == 0 && claim_and_count_job(other)) {
        other->energy = energy / 2;
        energy -= energy / 2;
        domt_job_put_internal(stand, runner, other);
    }
    if (domus_runner_chance(runner, 4) == 0) {
        end_and_count_job(job);
        return;
    }
    job->energy = energy;
    domt_job_put_resumed(stand, runner, job);
}

/* Call one runner alone: set the runner's flag, and then tell the policy. */
static void call_random_runner(producer *self)
{
    uint32_t number = (uint32_t)domi_random_below(&self->random, self->storm->runners);
    atomic_store(&domt_stand_runner(self->stand, number)->called, true);
    self->stand->pool->policy->call(self->stand->pool);
}

static void put_burst_of_jobs(producer *self)
{
    uint32_t count = 1 + (uint32_t)domi_random_below(&self->random, self->storm->burst);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t chance = (uint32_t)domi_random_below(&self->random, 1u << 30);
        domt_job *job = random_job_of_group(self->stand, self->number, producers_now, chance);
        if (!claim_and_count_job(job))
            continue;
        job->energy = (uint32_t)domi_random_below(&self->random, 6);
        domt_job_put_central(self->stand, job);
    }
    if (self->storm->calls && domi_random_below(&self->random, 4) == 0)
        call_random_runner(self);
}

/* Wait until all jobs of a producer are idle. Returns false if they are not in time. */
static bool wait_until_jobs_are_idle(uint32_t number)
{
    double end_s = domt_policies_now_seconds() + DOMT_PATIENCE_S;

    for (uint32_t tries = 0; atomic_load_explicit(&outstanding[number], memory_order_acquire) != 0;
         tries++) {
        if (domt_policies_now_seconds() > end_s)
            return false;
        domt_policies_wait_a_little(tries);
    }
    return true;
}

/* Pause for a random time: in a long pause the runners park, and at the end of a short one they are
 * about to. */
static void pause_for_random_time(domi_random *random)
{
    if (domi_random_below(random, 4) == 0)
        usleep((unsigned)domi_random_below(random, 80));
    else
        domt_policies_spin((uint32_t)domi_random_below(random, 20));
}

static void *run_producing_thread(void *self_)
{
    producer *self = self_;

    for (uint32_t round = 0; round < self->storm->rounds; round++) {
        put_burst_of_jobs(self);
        if (!self->storm->waits)
            continue;
        if (!wait_until_jobs_are_idle(self->number)) {
            self->lost = true;
            return NULL;
        }
        pause_for_random_time(&self->random);
    }
    self->lost = !wait_until_jobs_are_idle(self->number);
    return NULL;
}

/* Run a storm, and check that each put was taken once, in time, and without a call of the
 * runners. */
static void run_storm_of_jobs(const domus_policy *policy, const storm *plan)
{
    domt_stand stand;
    producer producers[PRODUCERS_MAX];
    bool lost = false;

    domt_stand_make_pool(&stand, policy, plan->runners, plan->jobs * plan->producers,
                         plan->producers);
    stand.turn = spend_energy_in_turn;
    producers_now = plan->producers;
    domt_stand_start_runners(&stand);
    for (uint32_t i = 0; i < plan->producers; i++) {
        outstanding[i] = 0;
        producers[i] = (producer){.storm = plan, .stand = &stand, .number = i};
        domi_random_init(&producers[i].random, i + 1);
        ck_assert_int_eq(
            pthread_create(&producers[i].thread, NULL, run_producing_thread, &producers[i]), 0);
    }
    for (uint32_t i = 0; i < plan->producers; i++) {
        ck_assert_int_eq(pthread_join(producers[i].thread, NULL), 0);
        lost |= producers[i].lost;
    }
    uint64_t puts = stand.puts, taken = stand.taken;
    domt_stand_stop_runners(&stand);
    ck_assert_msg(!lost && stand.doubled == 0 && puts == taken && stand.bare == 0,
                  "%s, %u runners, %u producers: %lu put, %lu taken, %lu of them "
                  "from no queue; %lu waits ended without a reason",
                  policy->name, plan->runners, plan->producers, (unsigned long)puts,
                  (unsigned long)taken, (unsigned long)stand.doubled, (unsigned long)stand.bare);
    domt_stand_free_pool(&stand);
}

static void run_storms_with_all_policies(storm plan)
{
    for (size_t p = 0; p < DOMT_POLICIES; p++) {
        for (size_t c = 0; c < COUNTS; c++) {
            for (uint32_t producers = 1; producers <= PRODUCERS_MAX; producers++) {
                plan.runners = runner_counts[c];
                plan.producers = producers;
                run_storm_of_jobs(domt_policies[p], &plan);
            }
        }
    }
}

DOMT_TEST(each_put_of_a_flood_is_taken_once)
{
    run_storms_with_all_policies((storm){
        .jobs = 2000, .rounds = domt_tenfold_if_tests_are_long(DOMT_SCALE(200, 20)), .burst = 400});
}

DOMT_TEST(parked_runners_wake_for_each_put)
{
    run_storms_with_all_policies(
        (storm){.jobs = 16,
                .rounds = domt_tenfold_if_tests_are_long(DOMT_SCALE(600, 100)),
                .burst = 6,
                .waits = true});
}

/* Only one job is put at a time, so a lost wake-up is not made good by a second put. */
DOMT_TEST(a_parked_runner_wakes_for_a_single_put)
{
    run_storms_with_all_policies(
        (storm){.jobs = 2,
                .rounds = domt_tenfold_if_tests_are_long(DOMT_SCALE(2000, 150)),
                .burst = 1,
                .waits = true});
}

DOMT_TEST(runners_that_are_called_at_random_lose_no_job)
{
    run_storms_with_all_policies(
        (storm){.jobs = 16,
                .rounds = domt_tenfold_if_tests_are_long(DOMT_SCALE(500, 80)),
                .burst = 6,
                .waits = true,
                .calls = true});
}

/* --- a turn that puts many -------------------------------------------------------------------- */

/* A turn: job 0 puts all other jobs, more than the ring of a runner holds. */
static void put_all_other_jobs_in_turn(domt_stand *stand, domus_runner *runner, domt_job *job)
{
    for (uint32_t i = 1; job->number == 0 && i < stand->jobs_count; i++) {
        ck_assert(claim_and_count_job(&stand->jobs[i]));
        domt_job_put_internal(stand, runner, &stand->jobs[i]);
    }
    end_and_count_job(job);
}

DOMT_TEST(turn_may_put_very_many_jobs)
{
    for (size_t i = 0; i < DOMT_POLICIES * COUNTS; i++) {
        const domus_policy *policy = domt_policies[i / COUNTS];
        domt_stand stand;
        bool done = true;
        domt_stand_make_pool(&stand, policy, runner_counts[i % COUNTS], 1000, 1);
        stand.turn = put_all_other_jobs_in_turn;
        domt_stand_start_runners(&stand);
        for (int round = 0; round < 20 && done; round++) {
            ck_assert(claim_and_count_job(&stand.jobs[0]));
            domt_job_put_central(&stand, &stand.jobs[0]);
            done = wait_until_jobs_are_idle(0);
        }
        domt_stand_stop_runners(&stand);
        ck_assert_msg(done && stand.doubled == 0, "%s: %lu put, %lu taken", policy->name,
                      (unsigned long)stand.puts, (unsigned long)stand.taken);
        domt_stand_free_pool(&stand);
    }
}

/* --- work that spreads ------------------------------------------------------------------------ */

#define HELPED 3u /* number of jobs that the long turn puts */

static _Atomic uint32_t helped; /* number of the long turn's jobs that other runners have taken */
static _Atomic bool waited_for_help_in_vain;

/* A turn: put three jobs, and return only when another runner has taken one of them. */
static void put_jobs_and_wait_for_help_in_turn(domt_stand *stand, domus_runner *runner,
                                               domt_job *job)
{
    double end_s = domt_policies_now_seconds() + DOMT_PATIENCE_S;

    if (job->number != 0) {
        helped++;
        domt_job_end_turn(job);
        return;
    }
    for (uint32_t i = 1; i <= HELPED; i++) {
        ck_assert(domt_job_claim(&stand->jobs[i]));
        domt_job_put_internal(stand, runner, &stand->jobs[i]);
    }
    for (uint32_t tries = 0; helped == 0 && !waited_for_help_in_vain; tries++) {
        domt_policies_wait_a_little(tries);
        if (domt_policies_now_seconds() > end_s)
            waited_for_help_in_vain = true;
    }
    domt_job_end_turn(job);
}

static bool is_job_idle(const domt_job *job)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&job->state, memory_order_acquire) ==
           DOMT_JOB_IDLE;
}

static void check_other_runners_help(const domus_policy *policy, uint32_t runners)
{
    domt_stand stand;

    uint32_t rounds = domt_tenfold_if_tests_are_long(DOMT_SCALE(100, 20));

    domt_stand_make_pool(&stand, policy, runners, 1 + HELPED, 1);
    stand.turn = put_jobs_and_wait_for_help_in_turn;
    domt_stand_start_runners(&stand);
    for (uint32_t round = 0; round < rounds && !waited_for_help_in_vain; round++) {
        usleep(round % 100); /* in this pause the runners park */
        helped = 0;
        ck_assert(domt_job_claim(&stand.jobs[0]));
        domt_job_put_central(&stand, &stand.jobs[0]);
        for (uint32_t i = 0; i <= HELPED; i++) {
            for (uint32_t tries = 0;
                 !is_job_idle(&stand.jobs[i]) || (helped != HELPED && !waited_for_help_in_vain);
                 tries++)
                domt_policies_wait_a_little(tries);
        }
    }
    domt_stand_stop_runners(&stand);
    ck_assert_msg(!waited_for_help_in_vain, "%s, %u runners: nobody helped", policy->name, runners);
    domt_stand_free_pool(&stand);
}

DOMT_TEST(work_put_in_a_turn_spreads_to_parked_runners)
{
    for (size_t p = 0; p < DOMT_POLICIES; p++) {
        check_other_runners_help(domt_policies[p], 2);
        check_other_runners_help(domt_policies[p], 4);
    }
}

/* --- call ------------------------------------------------------------------------------------- */

/* Call the runners again and again, while they wait or are about to: runners that have returned go
 * back to wait, while others are still returning. */
static void call_runners_again_and_again(const domus_policy *policy, uint32_t runners)
{
    domt_stand stand;
    domi_random random;
    uint32_t rounds = domt_tenfold_if_tests_are_long(DOMT_SCALE(2000, 150));

    domi_random_init(&random, runners);
    domt_stand_make_pool(&stand, policy, runners, 1, 1);
    domt_stand_start_runners(&stand);
    for (uint32_t round = 1; round <= rounds; round++) {
        double end_s = domt_policies_now_seconds() + DOMT_PATIENCE_S;
        domi_pool_call_all_runners(stand.pool);
        for (uint32_t i = 0; i < runners; i++) {
            for (uint32_t tries = 0; stand.returns[i] < round; tries++) {
                ck_assert_msg(domt_policies_now_seconds() < end_s,
                              "%s: runner %u of %u does not return", policy->name, i, runners);
                domt_policies_wait_a_little(tries);
            }
        }
        pause_for_random_time(&random);
    }
    domt_stand_stop_runners(&stand);
    ck_assert_uint_eq(stand.bare, 0);
    domt_stand_free_pool(&stand);
}

DOMT_TEST(call_makes_each_waiting_runner_return)
{
    for (size_t p = 0; p < DOMT_POLICIES; p++) {
        for (size_t c = 0; c < COUNTS; c++)
            call_runners_again_and_again(domt_policies[p], runner_counts[c]);
    }
}

DOMT_TEST(runner_that_is_called_before_it_waits_does_not_wait)
{
    for (size_t p = 0; p < DOMT_POLICIES; p++) {
        domt_stand stand;
        domt_stand_make_pool(&stand, domt_policies[p], 2, 1, 1);
        domus_runner *runner = domt_stand_runner(&stand, 1);
        /* set the flag without signalling, so only a look at the flag can end the wait */
        atomic_store(&runner->called, true);
        ck_assert_ptr_null(domt_job_take(&stand, runner, UINT64_MAX));
        atomic_store(&runner->called, false);
        ck_assert(domt_job_claim(&stand.jobs[0]));
        domt_job_put_central(&stand, &stand.jobs[0]);
        ck_assert_ptr_eq(domt_job_take(&stand, runner, UINT64_MAX), &stand.jobs[0]);
        domt_stand_free_pool(&stand);
    }
}

/* --- waits ------------------------------------------------------------------------------------ */

DOMT_TEST(dequeue_without_time_never_waits)
{
    for (size_t p = 0; p < DOMT_POLICIES; p++) {
        domt_stand stand;
        domt_stand_make_pool(&stand, domt_policies[p], 2, 1, 1);
        for (int i = 0; i < 100000; i++)
            ck_assert_ptr_null(domt_job_take(&stand, domt_stand_runner(&stand, 0), 0));
        ck_assert_uint_eq(domt_stand_count_of_event(&stand, 0, DOMUS_RUNNER_PARKS), 0);
        domt_stand_free_pool(&stand);
    }
}

DOMT_TEST(dequeue_waits_for_about_as_long_as_it_may)
{
    static const uint64_t waits_ms[] = {1, 5, 50};

    for (size_t p = 0; p < DOMT_POLICIES; p++) {
        domt_stand stand;
        domt_stand_make_pool(&stand, domt_policies[p], 2, 1, 1);
        for (size_t i = 0; i < sizeof waits_ms / sizeof waits_ms[0]; i++) {
            double begin = domt_policies_now_seconds();
            ck_assert_ptr_null(
                domt_job_take(&stand, domt_stand_runner(&stand, 0), waits_ms[i] * 1000000));
            double took_s = domt_policies_now_seconds() - begin;
            ck_assert_msg(took_s > 0.0005 * (double)waits_ms[i] && took_s < 5, "%s: %lu ms: %f s",
                          domt_policies[p]->name, (unsigned long)waits_ms[i], took_s);
        }
        ck_assert_uint_ge(domt_stand_count_of_event(&stand, 0, DOMUS_RUNNER_PARKS), 1);
        domt_stand_free_pool(&stand);
    }
}

DOMT_SUITE(180)
