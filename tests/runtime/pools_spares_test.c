/* runtime/pools/spares.c: if handlers block all runners of a pool, the other actors still run:
 * spares run them, and end when the handlers have returned. */
#include "tests/runtime/pooled.h"
#include "tests/runtime/stalls.h"

#include <unistd.h>

static const domus_type read_type = {.name = "read"};
static const domus_type ask_type = {.name = "ask"};
static const domus_type tick_type = {.name = "tick"};
static int pipes[2];
static _Atomic uint32_t reading, answers, ticks;

/* Block in read(2) until the test writes a byte, which lets one handler return. */
static int on_read_block_in_read(domus_stack *stack, void *self, const void *nothing)
{
    char byte;
    atomic_fetch_add(&reading, 1);
    while (read(pipes[0], &byte, 1) != 1)
        ;
    atomic_fetch_sub(&reading, 1);
    return 0;
}

static int count_ask(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&answers, 1);
    return 0;
}

static const domus_behaviour reader = {
    .name = "reader", .on = (const domus_on[]){{&read_type, on_read_block_in_read, 0}, {0}}};
static const domus_behaviour quick = {.name = "quick",
                                      .on = (const domus_on[]){{&ask_type, count_ask, 0}, {0}}};

static void start_system_with_pool(const domus_pool_config *pool)
{
    domus_config config = domt_config_of_threads(1);

    config.pools = pool;
    config.pool_count = 1;
    config.stall.threshold_ns = 25 * DOMT_MS;
    ck_assert_int_eq(pipe(pipes), 0);
    atomic_store(&reading, 0);
    atomic_store(&answers, 0);
    atomic_store(&ticks, 0);
    domt_pooled.system = domt_start_logging_system(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
}

static void start_system_with_spares(const char *policy, uint32_t runners, uint32_t spares)
{
    start_system_with_pool(&(domus_pool_config){
        .name = "work", .runners = runners, .policy = policy, .spares = spares});
}

static void let_handlers_block(uint32_t count)
{
    uint32_t before = atomic_load(&reading);
    for (uint32_t i = 0; i < count; i++) {
        domus_address address = domt_pooled_spawn(domt_pooled.pool, &reader, NULL);
        domt_send_notice(domt_pooled.system, address, &read_type, NULL);
    }
    DOMT_WAIT_FOR(20, atomic_load(&reading) == before + count);
}

static void let_blocked_handlers_return(uint32_t count)
{
    uint32_t before = atomic_load(&reading);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(write(pipes[1], "", 1), 1);
    DOMT_WAIT_FOR(20, atomic_load(&reading) == before - count);
}

static void end_system_with_spares(void)
{
    domt_end_system(domt_pooled.system);
    close(pipes[0]);
    close(pipes[1]);
}

static void expect_actor_answers(domus_address address)
{
    uint32_t before = atomic_load(&answers);
    domt_send_notice(domt_pooled.system, address, &ask_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&answers) == before + 1);
}

static uint32_t count_running_spare_threads(void)
{
    return (uint32_t)domt_has_thread_named("domus-r0.2") +
           (uint32_t)domt_has_thread_named("domus-r0.3") +
           (uint32_t)domt_has_thread_named("domus-r0.4");
}

static void run_actors_answer_while_all_runners_sleep(const char *policy)
{
    start_system_with_spares(policy, 2, 3);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &quick, NULL);
    expect_actor_answers(address);
    for (uint32_t spell = 1; spell <= 2; spell++) {
        ck_assert_uint_eq(count_running_spare_threads(), 0);
        let_handlers_block(2);
        for (uint32_t i = 0; i < 20; i++)
            expect_actor_answers(address);
        ck_assert_uint_ge(count_running_spare_threads(), 1);
        /* The log names the actor that blocks, once while the runners are blocked. */
        ck_assert_uint_eq(domt_count_log_lines("pool work: all 2 runners are blocked", "in reader"),
                          spell);
        let_blocked_handlers_return(2);
        DOMT_WAIT_FOR(20, count_running_spare_threads() == 0);
        expect_actor_answers(address);
    }
    end_system_with_spares();
}

DOMT_TEST(actors_answer_while_all_runners_sleep)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++)
        run_actors_answer_while_all_runners_sleep(domt_policies[i]->name);
}

DOMT_TEST(spares_are_as_many_as_configured)
{
    start_system_with_spares("deques", 2, 2);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &quick, NULL);
    let_handlers_block(4);
    domt_send_notice(domt_pooled.system, address, &ask_type, NULL);
    DOMT_WAIT_FOR(
        20, domt_count_log_lines("all 4 runners are blocked", "there are no more spares") == 1);
    ck_assert_uint_eq(atomic_load(&answers), 0);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_uint_eq(domt_count_log_lines("there are no more spares", NULL), 1);
    ck_assert(!domt_has_thread_named("domus-r0.4"));
    let_blocked_handlers_return(1);
    DOMT_WAIT_FOR(20, atomic_load(&answers) == 1);
    let_blocked_handlers_return(3);
    end_system_with_spares();
}

/* The first stall of a pool is logged at once; further stalls within the same second are only
 * counted. */
DOMT_TEST(stalls_of_runners_are_counted_and_told)
{
    domus_profile counters;
    domus_runner_profile one;
    uint64_t stalls = 0, stalled_ns = 0, lengths = 0;
    static domus_stall kept[DOMUS_STALLS_KEPT];
    uint32_t count = 0;

    start_system_with_spares("sharing", 2, 0);
    for (uint32_t i = 0; i < 3; i++) {
        let_handlers_block(2);
        domt_pause_ns(60 * DOMT_MS);
        let_blocked_handlers_return(2);
        domt_pause_ns(20 * DOMT_MS);
    }
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &one, &counters), 0);
        stalls += counters.stalls;
        stalled_ns += counters.stalled_ns;
        for (uint32_t j = 0; j < DOMUS_STALL_LENGTHS; j++)
            lengths += counters.stall_lengths[j];
    }
    ck_assert_uint_eq(stalls, 6);
    ck_assert_uint_eq(lengths, 6);
    ck_assert_uint_ge(stalled_ns, 6 * 25 * DOMT_MS);
    ck_assert_uint_eq(
        domt_count_log_lines("pool work: runner ", "ms in reader, handling read; 0 actors wait"),
        1);
    ck_assert_int_eq(domus_stalls_read(domt_pooled.system, kept, DOMUS_STALLS_KEPT, &count), 0);
    ck_assert_uint_eq(count, 1); /* one stall was recorded, as it was logged */
    ck_assert_str_eq(kept[0].pool, "work");
    ck_assert_uint_lt(kept[0].index, 2);
    ck_assert_str_eq(kept[0].behaviour, "reader");
    ck_assert_str_eq(kept[0].type, "read");
    ck_assert(kept[0].is_over && kept[0].length_ns >= 50 * DOMT_MS);
    end_system_with_spares();
}

DOMT_TEST(a_pool_without_spares_has_none)
{
    start_system_with_spares("rings", 1, 0);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &quick, NULL);
    let_handlers_block(1);
    domt_send_notice(domt_pooled.system, address, &ask_type, NULL);
    domt_pause_ns(60 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&answers), 0);
    ck_assert(!domt_has_thread_named("domus-r0.1"));
    ck_assert_uint_eq(domt_count_log_lines("are blocked", NULL), 0);
    let_blocked_handlers_return(1);
    DOMT_WAIT_FOR(20, atomic_load(&answers) == 1);
    end_system_with_spares();
}

/* --- a job behind a runner that blocks -------------------------------------------------------- */

static domus_address told;

/* Put a job for the runner that this handler runs on, and then block the runner. */
static int put_job_and_block_runner(domus_stack *stack, void *self, const void *nothing)
{
    ck_assert_int_eq(domus_notice(stack, told, &ask_type, NULL), 0);
    return on_read_block_in_read(stack, self, nothing);
}

static const domus_behaviour teller = {
    .name = "teller", .on = (const domus_on[]){{&read_type, put_job_and_block_runner, 0}, {0}}};

/* When the job is put, the other runner sleeps, and the put itself does not wake it. */
static void run_a_job_does_not_wait_behind_a_handler_that_blocks(const char *policy)
{
    start_system_with_spares(policy, 2, 0);
    told = domt_pooled_spawn(domt_pooled.pool, &quick, NULL);
    expect_actor_answers(told);
    for (uint32_t i = 1; i <= 5; i++) {
        domt_pause_ns(20 * DOMT_MS); /* wait until both runners sleep */
        domus_address address = domt_pooled_spawn(domt_pooled.pool, &teller, NULL);
        domt_send_notice(domt_pooled.system, address, &read_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&reading) == 1);
        uint64_t since_ns = domt_now_ns();
        DOMT_WAIT_FOR(20, atomic_load(&answers) == i + 1);
        /* sooner than the next look of a sleeping runner, which comes each second */
        ck_assert_uint_lt(domt_now_ns() - since_ns, 700 * DOMT_MS);
        let_blocked_handlers_return(1);
    }
    end_system_with_spares();
}

DOMT_TEST(a_job_does_not_wait_behind_a_handler_that_blocks)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++)
        run_a_job_does_not_wait_behind_a_handler_that_blocks(domt_policies[i]->name);
}

/* --- spares that end though there is work ----------------------------------------------------- */

#define SPINNING 8u
static _Atomic uint32_t turns[SPINNING];
static _Atomic bool spin;

static int notify_own_actor_for_ever(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&turns[*(uint32_t *)self], 1);
    return atomic_load(&spin) ? domus_notice(stack, domus_self(stack), &ask_type, NULL) : 0;
}

static const domus_behaviour spinning = {
    .name = "spinning",
    .state_size = sizeof(uint32_t),
    .on = (const domus_on[]){{&ask_type, notify_own_actor_for_ever, 0}, {0}}};

static void wait_until_all_have_turns(void)
{
    for (uint32_t i = 0; i < SPINNING; i++) {
        uint32_t before = atomic_load(&turns[i]);
        DOMT_WAIT_FOR(20, atomic_load(&turns[i]) > before + 100);
    }
}

/* A spare that ends leaves the jobs in its queue to the others, so none is lost. */
static void run_spares_end_beside_work_that_does_not(const char *policy)
{
    start_system_with_spares(policy, 1, 2);
    let_handlers_block(1);
    atomic_store(&spin, true);
    for (uint32_t i = 0; i < SPINNING; i++) {
        domus_address address = domt_pooled_spawn(domt_pooled.pool, &spinning, &i);
        domt_send_notice(domt_pooled.system, address, &ask_type, NULL);
    }
    wait_until_all_have_turns();
    ck_assert(domt_has_thread_named("domus-r0.1"));
    let_blocked_handlers_return(1);
    DOMT_WAIT_FOR(20, !domt_has_thread_named("domus-r0.1"));
    wait_until_all_have_turns();
    atomic_store(&spin, false);
    end_system_with_spares();
}

DOMT_TEST(spares_end_beside_work_that_does_not)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++)
        run_spares_end_beside_work_that_does_not(domt_policies[i]->name);
}

/* A policy without `leave` lets a spare take jobs until there are none, and then the spare ends. */
DOMT_TEST(spares_of_a_policy_without_leave_end_when_jobs_have)
{
    domus_policy own = domus_policy_sharing;

    own.name = "own";
    own.leave = NULL;
    start_system_with_pool(
        &(domus_pool_config){.name = "work", .runners = 1, .own_policy = &own, .spares = 2});
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &quick, NULL);
    let_handlers_block(1);
    expect_actor_answers(address);
    ck_assert(domt_has_thread_named("domus-r0.1"));
    let_blocked_handlers_return(1);
    DOMT_WAIT_FOR(20, !domt_has_thread_named("domus-r0.1"));
    expect_actor_answers(address);
    end_system_with_spares();
}

/* --- timers, and the stop --------------------------------------------------------------------- */

static int count_tick(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int arm_timer_in_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, 20 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour ticking = {.name = "ticking",
                                        .on_mount = arm_timer_in_mount,
                                        .on = (const domus_on[]){{&tick_type, count_tick, 0}, {0}}};

DOMT_TEST(timers_come_while_all_runners_sleep)
{
    start_system_with_spares("sharing", 1, 1);
    domt_pooled_spawn(domt_pooled.pool, &ticking, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&ticks) > 0);
    let_handlers_block(1);
    uint32_t before = atomic_load(&ticks);
    DOMT_WAIT_FOR(20, atomic_load(&ticks) > before + 3);
    let_blocked_handlers_return(1);
    end_system_with_spares();
}

/* The handlers return while the system is told to stop, and there are still spares. */
DOMT_TEST(stop_of_system_ends_spare_runners)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        start_system_with_spares(domt_policies[i]->name, 1, 3);
        domus_address address = domt_pooled_spawn(domt_pooled.pool, &quick, NULL);
        let_handlers_block(3);
        expect_actor_answers(address);
        for (uint32_t j = 0; j < 3; j++)
            ck_assert_int_eq(write(pipes[1], "", 1), 1);
        end_system_with_spares();
        ck_assert_uint_eq(count_running_spare_threads(), 0);
        ck_assert(!domt_has_thread_named("domus-r0.0"));
        ck_assert(!domt_has_thread_named("domus-r0.1"));
    }
}

DOMT_SUITE(120)
