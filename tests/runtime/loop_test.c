/* The three phases of the loop and their shares of time (contract: The loop): phase 3 keeps its
 * deadline, home looks in time (M2), and endless births do not stop other actors.
 *
 * Budgets are checked to the nanosecond, on a virtual clock. fairness_test.c and
 * fairness_loopback_test.c have other loads. */
#include "runtime/loop/steps.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "house/conversation/stack.h"

static const domus_type work_type = {.name = "work"};

/* --- budgets, on a virtual clock -------------------------------------------------------------- */

/* more houses than can run within the longest budget */
#define HOUSES (DOMT_SANITIZED ? 11000u : 100000u)
#define RUN_NS 1000u /* time that a worker takes for each message, in ns */
/* number of runs between two looks at the deadline (scheduler.deadlineCheckEvery) */
#define CHECK 16u

static domt_stepped *world;
static uint64_t runs;
static bool again; /* true: each worker sends itself a notice again and again */

static int count_run_and_repeat(domus_stack *stack, void *self, const void *payload)
{
    runs++;
    domt_stepped_advance_clock(world, RUN_NS);
    return again ? domus_notice(stack, domus_self(stack), &work_type, NULL) : 0;
}

static const domus_behaviour worker = {
    .name = "worker", .on = (const domus_on[]){{&work_type, count_run_and_repeat, 0}, {0}}};

/* Spawn `count` workers with one message each, so that all are mounted and ready. */
static void spawn_ready_workers(domt_stepped *stepped, domus_address *addresses, uint32_t count)
{
    domi_thread *thread = domt_stepped_thread(stepped, 0);

    for (uint32_t i = 0; i < count; i++) {
        addresses[i] = domt_spawn(stepped->system, 0, &worker, NULL);
        domt_send_notice(stepped->system, addresses[i], &work_type, NULL);
    }
    domi_thread_run_phase_io(thread);
    domi_thread_run_phase_channels(thread);
    ck_assert_uint_eq(thread->manager.schedule.ready[DOMUS_STATE].count, count);
    runs = 0;
}

/* number of completions of the wake poll in an iteration, besides those of io */
static uint32_t wakes;
static uint32_t brings = 5;

/* Run one iteration in which io takes `io_ns`, and check that phase 3 gets the budget `budget_ns`
 * and exceeds it by no more than one look at the deadline. */
static void check_budget_with_max_budget(uint64_t most_ns, uint32_t ratio, uint64_t io_ns,
                                         uint64_t budget_ns)
{
    static domus_address addresses[HOUSES];
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    config.scheduler.io_ratio = ratio;
    config.scheduler.deadline_check_every = CHECK;
    config.scheduler.max_budget_ns = most_ns;
    domt_stepped_init(&stepped, &config);
    world = &stepped;
    spawn_ready_workers(&stepped, addresses, HOUSES);
    stepped.rings[0].completions = io_ns != 0 ? brings : 0;
    stepped.rings[0].wake_completions = wakes;
    stepped.rings[0].reap_takes_ns = io_ns;
    domt_stepped_iterate(&stepped, 0, false);

    domus_profile profile = domt_profile_of_thread(stepped.system, 0);
    uint64_t taken_ns = runs * RUN_NS;
    ck_assert_uint_eq(profile.deadline_expiries, 1);
    ck_assert_uint_ge(taken_ns, budget_ns);
    ck_assert_uint_le(taken_ns, budget_ns + CHECK * RUN_NS);
    ck_assert_uint_eq(profile.deadline_overrun_ns, taken_ns - budget_ns);
    ck_assert_uint_eq(profile.runs, runs);

    while (domt_stepped_thread(&stepped, 0)->manager.schedule.ready[DOMUS_STATE].count != 0)
        domt_stepped_iterate(&stepped, 0, false);
    ck_assert_uint_eq(runs, HOUSES);
    profile = domt_profile_of_thread(stepped.system, 0);
    ck_assert_uint_le(profile.deadline_overrun_ns, profile.deadline_expiries * CHECK * RUN_NS);
    domt_stepped_fini(&stepped);
}

static void check_budget_of_state_phase(uint32_t ratio, uint64_t io_ns, uint64_t budget_ns)
{
    check_budget_with_max_budget(10 * DOMT_MS, ratio, io_ns, budget_ns);
}

DOMT_TEST(phase_3_keeps_its_deadline_at_every_ratio)
{
    uint64_t io_ns = 100 * 1000;

    check_budget_of_state_phase(1, io_ns, io_ns * 99);
    check_budget_of_state_phase(50, io_ns, io_ns);
    check_budget_of_state_phase(60, io_ns, io_ns * 40 / 60);
    check_budget_of_state_phase(99, io_ns, 50 * 1000); /* the budget is minBudgetBusy */
    check_budget_of_state_phase(99, io_ns * 100, io_ns * 100 / 99);
    /* the budget is minBudget, because phase 1 has found nothing */
    check_budget_of_state_phase(50, 0, 50 * 1000);
    /* the budget is not 49.5 ms, because timers and io wait for at most 10 ms */
    check_budget_of_state_phase(1, io_ns * 5, 10 * DOMT_MS);
    check_budget_with_max_budget(DOMT_MS, 1, io_ns, DOMT_MS);
}

static int arm_alarm_in_mount(domus_stack *stack, void *self)
{
    return domus_after(stack, 5 * DOMT_MS, &work_type, NULL, NULL);
}

static const domus_behaviour alarmed = {
    .name = "alarmed",
    .on_mount = arm_alarm_in_mount,
    .on = (const domus_on[]){{&work_type, count_run_and_repeat, 0}, {0}}};

/* After a pause, phase 2 collects completions that have come meanwhile. Their time counts as io, as
 * in phase 1, unless a completion is only a wake-up. */
DOMT_TEST(completions_that_phase_2_collects_are_io)
{
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    for (uint32_t collected = 0; collected < 2; collected++) {
        domt_stepped_init(&stepped, &config);
        world = &stepped;
        domi_thread *thread = domt_stepped_thread(&stepped, 0);
        (void)domt_spawn(stepped.system, 0, &alarmed, NULL);
        domt_stepped_iterate(&stepped, 0, false);
        domt_stepped_advance_clock(&stepped, 50 * DOMT_MS);
        domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
        domi_thread_run_phase_io(thread);
        ck_assert_uint_eq(thread->brought, 0);
        stepped.rings[0].completions = 3 * collected;
        stepped.rings[0].wake_completions = 1;
        domi_thread_run_phase_channels(thread);
        ck_assert_uint_eq(stepped.rings[0].wake_completions, 0);
        ck_assert_uint_eq(thread->brought, 3 * collected);
        domt_stepped_fini(&stepped);
    }
}

static uint64_t io_time_behind_ns(const domt_stepped *stepped)
{
    return domt_profile_of_thread(stepped->system, 0).io_behind_ns;
}

/* Bytes that io brings count as having waited for the phase 3 before, unless the thread has rested
 * after it. */
DOMT_TEST(bytes_that_io_brings_count_as_waiting_for_phase_3)
{
    static domus_address addresses[HOUSES];
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    for (uint32_t rests = 0; rests < 2; rests++) {
        domt_stepped_init(&stepped, &config);
        world = &stepped;
        spawn_ready_workers(&stepped, addresses, 8);
        domt_stepped_iterate(&stepped, 0, rests != 0); /* this phase 3 runs all 8 houses */
        ck_assert_uint_eq(runs, 8);
        ck_assert_uint_eq(io_time_behind_ns(&stepped), 0);
        stepped.rings[0].completions = 3;
        stepped.rings[0].wake_completions = 1; /* a wake-up counts as having waited for no phase */
        domt_stepped_iterate(&stepped, 0, false);
        ck_assert_uint_eq(io_time_behind_ns(&stepped), rests != 0 ? 0 : 3 * 8 * RUN_NS);
        stepped.rings[0].completions = 3; /* no house ran before these completions came */
        domt_stepped_iterate(&stepped, 0, false);
        ck_assert_uint_eq(io_time_behind_ns(&stepped), rests != 0 ? 0 : 3 * 8 * RUN_NS);
        domt_stepped_fini(&stepped);
    }
}

DOMT_TEST(wake_up_alone_does_not_count_as_io)
{
    wakes = 1;
    brings = 0;
    /* the budget is minBudget, because a wake-up alone is no io */
    check_budget_of_state_phase(1, 100 * 1000, 50 * 1000);
    brings = 1;
    check_budget_of_state_phase(99, 100 * 1000, 50 * 1000);
    check_budget_of_state_phase(1, 100 * 1000, 9900 * 1000);
}

DOMT_TEST(ratio_100_runs_what_was_ready_at_its_start_and_comes_back)
{
    static domus_address addresses[HOUSES];
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    config.scheduler.io_ratio = 100;
    domt_stepped_init(&stepped, &config);
    world = &stepped;
    spawn_ready_workers(&stepped, addresses, HOUSES);
    again = true;
    for (uint64_t turn = 1; turn <= 3; turn++) {
        domt_stepped_iterate(&stepped, 0, true);
        ck_assert_uint_eq(domt_profile_of_thread(stepped.system, 0).runs, turn * HOUSES);
        ck_assert_uint_eq(domt_profile_of_thread(stepped.system, 0).iterations, 1 + turn);
        ck_assert_uint_eq(domt_stepped_thread(&stepped, 0)->manager.schedule.ready[0].normal_every,
                          4);
    }
    ck_assert_uint_eq(domt_profile_of_thread(stepped.system, 0).deadline_expiries, 0);
    ck_assert_uint_eq(stepped.rings[0].sleeps, 0);
    again = false;
    domt_stepped_iterate(&stepped, 0, true);
    ck_assert_uint_eq(domt_profile_of_thread(stepped.system, 0).runs, 4 * HOUSES);
    domt_stepped_iterate(&stepped, 0, true);
    ck_assert_uint_ge(stepped.rings[0].sleeps, 1);
    domt_stepped_fini(&stepped);
}

/* --- M2: home looks in time ------------------------------------------------------------------- */

static domus_address late_comer;
/* number of runs and of messages since the last arrival was put */
static uint64_t houses_since, messages_since;
static uint64_t houses_most, messages_most;
static domi_house *last_house;

/* Put an arrival at home, as another thread would. The test then counts runs and messages until
 * home has taken the arrival. */
static int put_arrival_at_home_and_count(domus_stack *stack, void *self, const void *payload)
{
    domi_manager *home = stack->manager;

    if (atomic_load(&home->mail.arrivals) == NULL) {
        domt_send_notice(world->system, late_comer, &work_type, NULL);
        houses_since = messages_since = 0;
        last_house = NULL;
    }
    houses_since += last_house != domus_self(stack).house;
    last_house = domus_self(stack).house;
    messages_since++;
    if (houses_since > houses_most)
        houses_most = houses_since;
    if (messages_since > messages_most)
        messages_most = messages_since;
    return 0;
}

static const domus_behaviour watcher = {
    .name = "watcher",
    .on = (const domus_on[]){{&work_type, put_arrival_at_home_and_count, 0}, {0}}};

static void find_most_work_between_looks(uint32_t threads, uint32_t houses, uint32_t messages)
{
    domus_config config = domt_config_of_threads(threads);
    domt_stepped stepped;

    config.scheduler.steal.enabled = true;
    domt_stepped_init(&stepped, &config);
    world = &stepped;
    late_comer = domt_spawn(stepped.system, 0, &worker, NULL);
    for (uint32_t i = 0; i < houses; i++) {
        domus_address address = domt_spawn(stepped.system, 0, &watcher, NULL);
        for (uint32_t k = 0; k < messages; k++)
            domt_send_notice(stepped.system, address, &work_type, NULL);
    }
    houses_most = messages_most = 0;
    for (int turn = 0; turn < 100; turn++)
        domt_stepped_iterate(&stepped, 0, false);
    ck_assert_uint_eq(domt_profile_of_thread(stepped.system, 0).notices - runs, houses * messages);
    domt_stepped_fini(&stepped);
    runs = 0;
}

DOMT_TEST(home_looks_after_16_houses_or_64_messages)
{
    find_most_work_between_looks(1, 500, 1);
    ck_assert_uint_eq(houses_most, 16);
    find_most_work_between_looks(1, 500, 3);
    ck_assert_uint_eq(houses_most, 16);
    ck_assert_uint_eq(messages_most, 48);
    /* home looks after 64 messages, which is within the run of the seventh house */
    find_most_work_between_looks(1, 100, 10);
    ck_assert_uint_eq(houses_most, 7);
    /* each run handles maxMessagesPerRun messages and then ends, and home looks after it */
    find_most_work_between_looks(1, 20, 512);
    ck_assert_uint_eq(messages_most, 64);
}

/* If there are houses for thieves, home first looks after one run, and then after twice as many
 * each time, up to the usual 16, because each look reads the clock. */
DOMT_TEST(looks_are_no_more_frequent_where_there_are_thieves)
{
    find_most_work_between_looks(2, 500, 1);
    ck_assert_uint_eq(houses_most, 16);
}

/* --- actors that work for ever ---------------------------------------------------------------- */

static const domus_type ball_type = {.name = "ball"};
static const domus_type tick_type = {.name = "tick"};
static _Atomic uint64_t balls, ticks, others;

struct player {
    domus_address partner;
};

static int count_ball_and_send_it_back(domus_stack *stack, void *self_, const void *payload)
{
    const struct player *self = self_;

    atomic_fetch_add_explicit(&balls, 1, memory_order_relaxed);
    domus_address to = self->partner.house != NULL ? self->partner : domus_sender(stack);
    return domus_notice(stack, to, &ball_type, NULL);
}

static const domus_behaviour player = {
    .name = "player",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct player),
    .on = (const domus_on[]){{&ball_type, count_ball_and_send_it_back, 0}, {0}}};

static int count_tick(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int count_message_of_other(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&others, 1);
    return 0;
}

static int start_ticking_in_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour bystander = {
    .name = "bystander",
    .on = (const domus_on[]){{&tick_type, count_tick, 0},
                             {&work_type, count_message_of_other, 0},
                             {0}},
    .on_mount = start_ticking_in_mount};

/* In each phase 2, each of the two channels actors runs channelsRunsPerIteration times, and then
 * waits for the next phase 2. */
DOMT_TEST(channels_actor_runs_bounded_times_in_one_phase_2)
{
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    config.scheduler.channels_runs_per_iteration = 100;
    domt_stepped_init(&stepped, &config);
    domus_address one = domt_spawn(stepped.system, 0, &player, NULL);
    domus_address two = domt_spawn(stepped.system, 0, &player, &(struct player){one});
    domt_stepped_iterate(&stepped, 0, false);
    domt_send_notice(stepped.system, two, &ball_type, NULL);
    for (uint64_t turn = 1; turn <= 5; turn++) {
        uint64_t before = domt_profile_of_thread(stepped.system, 0).runs;
        domt_stepped_iterate(&stepped, 0, true);
        uint64_t ran = domt_profile_of_thread(stepped.system, 0).runs - before;
        ck_assert_uint_ge(ran, 100);
        ck_assert_uint_le(ran, 200);
        ck_assert_uint_eq(stepped.rings[0].sleeps, 0);
    }
    domt_stepped_fini(&stepped);
}

static int spawn_same_behaviour_in_mount(domus_stack *stack, void *self);

static const domus_behaviour begetter = {.name = "begetter",
                                         .on_mount = spawn_same_behaviour_in_mount};

/* On its mount an actor spawns a child of the same behaviour, and so on, up to a number that the
 * test's memory allows. */
static int spawn_same_behaviour_in_mount(domus_stack *stack, void *self)
{
    domus_address child;

    if (atomic_fetch_add_explicit(&balls, 1, memory_order_relaxed) > 500000)
        return 0;
    return domus_spawn(stack, &begetter, NULL, &child);
}

DOMT_TEST(endless_spawns_in_mounts_stop_nobody)
{
    domus_system *system = domt_start_system_of_threads(1);
    domus_address witness = domt_spawn(system, 0, &bystander, NULL);

    (void)domt_spawn(system, 0, &begetter, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&balls) > 1000);
    domt_send_notice(system, witness, &work_type, NULL);
    domt_send_notice(system, domt_spawn(system, 0, &bystander, NULL), &work_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&others) == 2 && atomic_load(&ticks) >= 5);
    domt_end_system(system);
}

DOMT_SUITE(60)
