/* runtime/loop/steal.c, on real threads: a thread with too much work gets help, and no houses of
 * another thread are stolen. */
#include "tests/runtime/running.h"

#include "runtime/system/system.h"

#include <pthread.h>

#define HOUSES_MAX 4000u

static _Atomic uint64_t done, elsewhere, disorder;
static _Atomic bool go_on;
static pthread_t home_thread;
static domus_address workers[HOUSES_MAX];

static void burn_cpu(uint64_t ns)
{
    uint64_t until_ns = domt_now_ns() + ns;
    while (domt_now_ns() < until_ns)
        continue;
}

/* --- actors ----------------------------------------------------------------------------------- */

/* the payload of `work` is a time in nanoseconds */
static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type begin_type = {.name = "begin", .size = sizeof(uint64_t)};
static const domus_type here_type = {.name = "here"};
static const domus_type again_type = {.name = "again"};
static const domus_type numbered_type = {.name = "numbered", .size = sizeof(uint64_t)};

static int burn_cpu_and_count_runs_elsewhere(domus_stack *stack, void *self, const void *ns)
{
    burn_cpu(*(const uint64_t *)ns);
    atomic_fetch_add(&elsewhere, !pthread_equal(pthread_self(), home_thread));
    atomic_fetch_add(&done, 1);
    return 0;
}

static int check_number_and_burn_cpu(domus_stack *stack, void *self, const void *number)
{
    uint64_t *next = self;

    if (*(const uint64_t *)number != *next)
        atomic_fetch_add(&disorder, 1);
    *next = *(const uint64_t *)number + 1;
    burn_cpu(5000);
    atomic_fetch_add(&elsewhere, !pthread_equal(pthread_self(), home_thread));
    atomic_fetch_add(&done, 1);
    return 0;
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{&work_type, burn_cpu_and_count_runs_elsewhere, 0},
                             {&numbered_type, check_number_and_burn_cpu, 0},
                             {0}}};

/* The state of a starter: an actor on thread 0 that sends work to all workers, so that the messages
 * go by the home lane. */
struct starter {
    uint32_t count;
    bool pinned;
};

static int spawn_workers_on_this_thread(domus_stack *stack, void *self, const void *payload)
{
    const struct starter *starter = self;
    const domus_spawn_options options = {.pinned = starter->pinned};

    home_thread = pthread_self();
    for (uint32_t i = 0; i < starter->count; i++)
        ck_assert_int_eq(domus_spawn_with(stack, &worker, NULL, &options, &workers[i]), 0);
    atomic_fetch_add(&done, 1);
    return 0;
}

static int send_work_to_workers(domus_stack *stack, void *self, const void *ns)
{
    const struct starter *starter = self;
    for (uint32_t i = 0; i < starter->count; i++)
        ck_assert_int_eq(domus_notice(stack, workers[i], &work_type, ns), 0);
    return 0;
}

/* Keep the thread busy: burn CPU time, and send this actor the next message. */
static int burn_and_repeat(domus_stack *stack, void *self, const void *payload)
{
    burn_cpu(20000);
    if (atomic_load(&go_on))
        return domus_notice(stack, domus_self(stack), &again_type, NULL);
    return 0;
}

static const domus_behaviour starting = {
    .name = "starter",
    .state_size = sizeof(struct starter),
    .on = (const domus_on[]){{&here_type, spawn_workers_on_this_thread, 0},
                             {&begin_type, send_work_to_workers, 0},
                             {0}}};

static const domus_behaviour busy = {
    .name = "busy", .on = (const domus_on[]){{&again_type, burn_and_repeat, 0}, {0}}};

static domus_address start_workers(domus_system *system, uint32_t count, bool pinned)
{
    struct starter state = {.count = count, .pinned = pinned};
    domus_address starter = domt_spawn(system, 0, &starting, &state);

    atomic_store(&done, 0);
    atomic_store(&elsewhere, 0);
    atomic_store(&disorder, 0);
    domt_send_notice(system, starter, &here_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&done) == 1);
    atomic_store(&done, 0);
    return starter;
}

/* Let the starter send each of its workers `ns` of work, and wait until all is done. */
static void let_workers_work_and_wait(domus_system *system, domus_address starter, uint32_t count,
                                      uint64_t ns)
{
    atomic_store(&done, 0);
    domt_send_notice(system, starter, &begin_type, &ns);
    DOMT_WAIT_FOR(30, atomic_load(&done) == count);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* The work is given again and again until there was enough help, because other processes may use
 * the helper's CPU for one round or for many. On a quiet machine the first round is enough, with
 * half of the houses. */
DOMT_TEST(overwhelmed_thread_is_helped_by_one_that_sleeps)
{
    enum { COUNT = 2000, ENOUGH = COUNT / 32, ROUNDS = 100 };
    uint64_t ns = 50000;
    domus_system *system = domt_start_system_of_threads(2);
    domus_address starter = start_workers(system, COUNT, false);

    for (int i = 0; i < ROUNDS && atomic_load(&elsewhere) <= ENOUGH; i++) {
        domt_pause_ns(5 * DOMT_MS); /* in this pause both threads fall asleep */
        let_workers_work_and_wait(system, starter, COUNT, ns);
    }
    domus_profile home = domt_profile_of_thread(system, 0);
    domus_profile thief = domt_profile_of_thread(system, 1);
    ck_assert_uint_eq(atomic_load(&elsewhere), thief.steals);
    ck_assert_uint_gt(thief.steals, ENOUGH);
    /* The victim must have woken its helper. (The cap of a sleep also wakes the helper now and
     * then, and then it helps by chance.) */
    ck_assert_uint_gt(home.wakeups_sent, 0);
    ck_assert_uint_ge(home.exposed, thief.steals);
    ck_assert_uint_eq(home.steals, 0);
    domt_end_system(system);
}

DOMT_TEST(nothing_is_exposed_while_nobody_is_idle)
{
    enum { COUNT = 2000 };
    uint64_t ns = 20000;
    domus_system *system = domt_start_system_of_threads(2);
    domus_address starter = start_workers(system, COUNT, false);

    atomic_store(&go_on, true);
    for (int i = 0; i < 2; i++)
        domt_send_notice(system, domt_spawn(system, 1, &busy, NULL), &again_type, NULL);
    domt_pause_ns(5 * DOMT_MS);
    uint64_t exposed = domt_profile_of_all_threads(system).exposed;
    uint64_t steals = domt_profile_of_thread(system, 1).steals;
    let_workers_work_and_wait(system, starter, COUNT, ns);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).exposed, exposed);
    /* a thread that is busy itself never steals */
    ck_assert_uint_eq(domt_profile_of_thread(system, 1).steals, steals);
    ck_assert_uint_eq(atomic_load(&elsewhere), 0);
    atomic_store(&go_on, false);
    domt_end_system(system);
}

DOMT_TEST(pinned_actors_stay_and_nobody_is_woken_for_them_over_and_over)
{
    enum { COUNT = 2000 };
    uint64_t ns = 50000;
    domus_system *system = domt_start_system_of_threads(2);
    domus_address starter = start_workers(system, COUNT, true);

    domt_pause_ns(5 * DOMT_MS);
    uint64_t wakeups = domt_profile_of_thread(system, 0).wakeups_sent;
    let_workers_work_and_wait(system, starter, COUNT, ns);
    ck_assert_uint_eq(atomic_load(&elsewhere), 0);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).exposed, 0);
    ck_assert_uint_lt(domt_profile_of_thread(system, 0).wakeups_sent - wakeups, COUNT / 10);
    domt_end_system(system);
}

DOMT_TEST(stealing_that_is_off_lends_nothing)
{
    enum { COUNT = 500 };
    uint64_t ns = 50000;
    domus_config config = domt_config_of_threads(2);
    config.scheduler.steal.enabled = false;
    domus_system *system = domt_start_system(&config);
    domus_address starter = start_workers(system, COUNT, false);

    let_workers_work_and_wait(system, starter, COUNT, ns);
    domus_profile all = domt_profile_of_all_threads(system);
    ck_assert_uint_eq(all.exposed + all.steals + all.steals_wanted, 0);
    domt_end_system(system);
}

DOMT_TEST(few_ready_houses_stay_where_they_are)
{
    uint64_t ns = 200000;
    domus_config config = domt_config_of_threads(2);
    domus_system *system = domt_start_system(&config);
    domus_address starter = start_workers(system, config.scheduler.steal.floor - 2, false);

    let_workers_work_and_wait(system, starter, config.scheduler.steal.floor - 2, ns);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).exposed, 0);
    domt_end_system(system);
}

/* The state of a sender; one sender is on each of two other threads, and one at home. Each sends to
 * all workers in turn. */
struct sender {
    uint32_t count;
    uint64_t rounds;
    uint64_t round;
};

static int send_round_of_numbers(domus_stack *stack, void *self_, const void *payload)
{
    struct sender *self = self_;
    for (uint32_t i = 0; i < self->count; i++)
        ck_assert_int_eq(domus_notice(stack, workers[i], &numbered_type, &self->round), 0);
    if (++self->round < self->rounds)
        return domus_notice(stack, domus_self(stack), &again_type, NULL);
    return 0;
}

static const domus_behaviour sending = {
    .name = "sender",
    .state_size = sizeof(struct sender),
    .on = (const domus_on[]){{&again_type, send_round_of_numbers, 0}, {0}}};

/* Check that each worker gets the messages of each sender in order. Returns how many loans there
 * were; on a busy machine there may be none. */
static uint64_t check_order_and_count_loans(uint32_t sender_thread)
{
    enum { COUNT = 200, ROUNDS = DOMT_SANITIZED ? 20 : 100 };
    domus_config config = domt_config_of_threads(3);
    config.scheduler.steal.floor = 2;
    config.scheduler.steal.aggression = 1;
    domus_system *system = domt_start_system(&config);
    struct sender state = {.count = COUNT, .rounds = ROUNDS};

    (void)start_workers(system, COUNT, false);
    domt_send_notice(system, domt_spawn(system, sender_thread, &sending, &state), &again_type,
                     NULL);
    DOMT_WAIT_FOR(60, atomic_load(&done) == (uint64_t)COUNT * ROUNDS);
    ck_assert_uint_eq(atomic_load(&disorder), 0);
    uint64_t steals = domt_profile_of_all_threads(system).steals;
    domt_end_system(system);
    return steals;
}

static void check_order_until_lent(uint32_t sender_thread)
{
    uint64_t steals = 0;
    for (int i = 0; i < 8 && steals == 0; i++)
        steals = check_order_and_count_loans(sender_thread);
    ck_assert_uint_gt(steals, 0);
}

DOMT_TEST(order_holds_through_loans_for_a_sender_at_home)
{
    check_order_until_lent(0);
}

DOMT_TEST(order_holds_through_loans_for_a_sender_elsewhere)
{
    check_order_until_lent(1);
}

DOMT_TEST(system_stops_while_houses_are_lent)
{
    enum { COUNT = 1000 };
    uint64_t ns = 20000;

    for (int round = 0; round < 20; round++) {
        domus_config config = domt_config_of_threads(3);
        config.scheduler.steal.floor = 1;
        config.scheduler.steal.aggression = 1;
        domus_system *system = domt_start_system(&config);
        domus_address starter = start_workers(system, COUNT, false);

        domt_send_notice(system, starter, &begin_type, &ns);
        DOMT_WAIT_FOR(30, atomic_load(&done) > (uint64_t)round * 20);
        domt_end_system(system);
    }
}

/* Number of times that a lent worker, which works for a millisecond each time, was shown an old
 * time. */
static _Atomic uint32_t old;

static int check_time_shown_to_lent_actor(domus_stack *stack, void *self, const void *ns)
{
    /* difference between the time that the actor is shown and the present time */
    int64_t age_ns = (int64_t)(domt_now_ns() - domus_now_ns(stack));

    if (!pthread_equal(pthread_self(), home_thread)) {
        atomic_fetch_add(&elsewhere, 1);
        atomic_fetch_add(&old, age_ns > (int64_t)(2 * DOMT_MS));
    }
    burn_cpu(*(const uint64_t *)ns);
    atomic_fetch_add(&done, 1);
    return 0;
}

static const domus_behaviour timed = {
    .name = "timed",
    .on = (const domus_on[]){{&work_type, check_time_shown_to_lent_actor, 0}, {0}}};

/* Let workers look at the time that they are shown. Returns how many times a worker was lent. */
static uint32_t check_shown_time_of_workers(void)
{
    enum { COUNT = 200 };
    uint64_t ns = DOMT_MS;
    domus_config config = domt_config_of_threads(2);
    /* the thief has to wait until the victim looks, which takes some runs */
    config.scheduler.steal.floor = 4;
    domus_system *system = domt_start_system(&config);
    domus_address actors[COUNT];

    (void)start_workers(system, 0, false); /* records which thread is the home of the workers */
    atomic_store(&old, 0);
    for (int i = 0; i < COUNT; i++)
        actors[i] = domt_spawn(system, 0, &timed, NULL);
    domt_pause_ns(5 * DOMT_MS);
    for (int i = 0; i < COUNT; i++)
        domt_send_notice(system, actors[i], &work_type, &ns);
    DOMT_WAIT_FOR(30, atomic_load(&done) == COUNT);
    domt_end_system(system);
    return (uint32_t)atomic_load(&elsewhere);
}

DOMT_TEST(actor_that_is_lent_is_shown_the_time_of_its_run)
{
    uint32_t lent = 0;
    for (int i = 0; i < 20 && lent == 0; i++)
        lent = check_shown_time_of_workers();
    ck_assert_uint_gt(lent, 0);
    /* some old times are accepted, because a thread may have lost its CPU */
    ck_assert_uint_le(atomic_load(&old), lent / 4 + 1);
}

DOMT_SUITE(120)
