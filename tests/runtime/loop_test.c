/* The three phases and their shares (contract: The loop): phase 3 keeps its deadline, home looks in
 * time (M2), and endless births do not stop other actors.
 *
 * Budgets are checked on a virtual clock, to the nanosecond. Other loads are those of
 * fairness_test.c and fairness_loopback_test.c. */
#include "runtime/loop/steps.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "house/conversation/stack.h"

static const domus_type work_type = {.name = "work"};

/* --- budgets, on a virtual clock -------------------------------------------------------------- */

#define HOUSES                                                                                     \
    (DOMT_SANITIZED ? 11000u : 100000u) /* more houses than run in the longest budget              \
                                         */
#define RUN_NS 1000u                    /* time that a worker takes for a message */
#define CHECK  16u                      /* scheduler.deadlineCheckEvery, in runs */

static domt_stepped *world;
static uint64_t runs;
static bool again; /* true: a worker sends itself a notice, for ever */

static int count_run(domus_stack *stack, void *self, const void *payload)
{
    runs++;
    domt_stepped_advance(world, RUN_NS);
    return again ? domus_notice(stack, domus_self(stack), &work_type, NULL) : 0;
}

static const domus_behaviour worker = {.name = "worker",
                                       .on = (const domus_on[]){{&work_type, count_run, 0}, {0}}};

/* Make workers with one message each, mounted and ready. */
static void make_ready(domt_stepped *stepped, domus_address *addresses, uint32_t count)
{
    domi_thread *thread = domt_stepped_thread(stepped, 0);

    for (uint32_t i = 0; i < count; i++) {
        addresses[i] = domt_spawn(stepped->system, 0, &worker, NULL);
        domt_notice(stepped->system, addresses[i], &work_type, NULL);
    }
    domi_phase_io(thread);
    domi_phase_channels(thread);
    ck_assert_uint_eq(thread->manager.schedule.ready[DOMUS_STATE].count, count);
    runs = 0;
}

static uint32_t wakes; /* completions of the wake poll besides those of io */
static uint32_t brings = 5;

/* Check one iteration in which io takes `io_ns`: phase 3 gets `budget_ns`, and exceeds it by at
 * most one look. */
static void check_budget_at_most(uint64_t most_ns, uint32_t ratio, uint64_t io_ns,
                                 uint64_t budget_ns)
{
    static domus_address addresses[HOUSES];
    domus_config config = domt_config(1);
    domt_stepped stepped;

    config.scheduler.io_ratio = ratio;
    config.scheduler.deadline_check_every = CHECK;
    config.scheduler.max_budget_ns = most_ns;
    domt_stepped_init(&stepped, &config);
    world = &stepped;
    make_ready(&stepped, addresses, HOUSES);
    stepped.rings[0].completions = io_ns != 0 ? brings : 0;
    stepped.rings[0].wake_completions = wakes;
    stepped.rings[0].reap_takes_ns = io_ns;
    domt_stepped_iterate(&stepped, 0, false);

    domus_profile profile = domt_profile(stepped.system, 0);
    uint64_t taken_ns = runs * RUN_NS;
    ck_assert_uint_eq(profile.deadline_expiries, 1);
    ck_assert_uint_ge(taken_ns, budget_ns);
    ck_assert_uint_le(taken_ns, budget_ns + CHECK * RUN_NS);
    ck_assert_uint_eq(profile.deadline_overrun_ns, taken_ns - budget_ns);
    ck_assert_uint_eq(profile.runs, runs);

    while (domt_stepped_thread(&stepped, 0)->manager.schedule.ready[DOMUS_STATE].count != 0)
        domt_stepped_iterate(&stepped, 0, false);
    ck_assert_uint_eq(runs, HOUSES);
    profile = domt_profile(stepped.system, 0);
    ck_assert_uint_le(profile.deadline_overrun_ns, profile.deadline_expiries * CHECK * RUN_NS);
    domt_stepped_fini(&stepped);
}

static void check_budget(uint32_t ratio, uint64_t io_ns, uint64_t budget_ns)
{
    check_budget_at_most(10 * DOMT_MS, ratio, io_ns, budget_ns);
}

DOMT_TEST(phase_3_keeps_its_deadline_at_every_ratio)
{
    uint64_t io_ns = 100 * 1000;

    check_budget(1, io_ns, io_ns * 99);
    check_budget(50, io_ns, io_ns);
    check_budget(60, io_ns, io_ns * 40 / 60);
    check_budget(99, io_ns, 50 * 1000); /* bounded by minBudgetBusy */
    check_budget(99, io_ns * 100, io_ns * 100 / 99);
    check_budget(50, 0, 50 * 1000); /* minBudget, because phase 1 found nothing */
    /* not 49.5 ms, because timers and io wait no longer than this */
    check_budget(1, io_ns * 5, 10 * DOMT_MS);
    check_budget_at_most(DOMT_MS, 1, io_ns, DOMT_MS);
}

static int arm_alarm(domus_stack *stack, void *self)
{
    return domus_after(stack, 5 * DOMT_MS, &work_type, NULL, NULL);
}

static const domus_behaviour alarmed = {.name = "alarmed",
                                        .on_mount = arm_alarm,
                                        .on = (const domus_on[]){{&work_type, count_run, 0}, {0}}};

/* After a pause, phase 2 collects completions that came meanwhile. Their time counts as io, as in
 * phase 1, unless the completion is a wake-up. */
DOMT_TEST(completions_that_phase_2_collects_are_io)
{
    domus_config config = domt_config(1);
    domt_stepped stepped;

    for (uint32_t collected = 0; collected < 2; collected++) {
        domt_stepped_init(&stepped, &config);
        world = &stepped;
        domi_thread *thread = domt_stepped_thread(&stepped, 0);
        (void)domt_spawn(stepped.system, 0, &alarmed, NULL);
        domt_stepped_iterate(&stepped, 0, false);
        domt_stepped_advance(&stepped, 50 * DOMT_MS);
        domi_thread_stamp(thread, DOMI_SPAN_OTHER);
        domi_phase_io(thread);
        ck_assert_uint_eq(thread->brought, 0);
        stepped.rings[0].completions = 3 * collected;
        stepped.rings[0].wake_completions = 1;
        domi_phase_channels(thread);
        ck_assert_uint_eq(stepped.rings[0].wake_completions, 0);
        ck_assert_uint_eq(thread->brought, 3 * collected);
        domt_stepped_fini(&stepped);
    }
}

static uint64_t behind_ns(const domt_stepped *stepped)
{
    return domt_profile(stepped->system, 0).io_behind_ns;
}

/* Bytes that io brings have waited during the phase 3 before, unless the thread has rested. */
DOMT_TEST(io_is_told_to_wait_for_phase_3)
{
    static domus_address addresses[HOUSES];
    domus_config config = domt_config(1);
    domt_stepped stepped;

    for (uint32_t rests = 0; rests < 2; rests++) {
        domt_stepped_init(&stepped, &config);
        world = &stepped;
        make_ready(&stepped, addresses, 8);
        domt_stepped_iterate(&stepped, 0, rests != 0); /* phase 3 runs all houses */
        ck_assert_uint_eq(runs, 8);
        ck_assert_uint_eq(behind_ns(&stepped), 0);
        stepped.rings[0].completions = 3;
        stepped.rings[0].wake_completions = 1; /* a wake-up has waited for no phase */
        domt_stepped_iterate(&stepped, 0, false);
        ck_assert_uint_eq(behind_ns(&stepped), rests != 0 ? 0 : 3 * 8 * RUN_NS);
        stepped.rings[0].completions = 3; /* nothing ran before these completions */
        domt_stepped_iterate(&stepped, 0, false);
        ck_assert_uint_eq(behind_ns(&stepped), rests != 0 ? 0 : 3 * 8 * RUN_NS);
        domt_stepped_fini(&stepped);
    }
}

DOMT_TEST(wake_up_alone_is_no_io)
{
    wakes = 1;
    brings = 0;
    check_budget(1, 100 * 1000, 50 * 1000); /* bounded by minBudget */
    brings = 1;
    check_budget(99, 100 * 1000, 50 * 1000);
    check_budget(1, 100 * 1000, 9900 * 1000);
}

DOMT_TEST(ratio_100_runs_what_was_ready_at_its_start_and_comes_back)
{
    static domus_address addresses[HOUSES];
    domus_config config = domt_config(1);
    domt_stepped stepped;

    config.scheduler.io_ratio = 100;
    domt_stepped_init(&stepped, &config);
    world = &stepped;
    make_ready(&stepped, addresses, HOUSES);
    again = true;
    for (uint64_t turn = 1; turn <= 3; turn++) {
        domt_stepped_iterate(&stepped, 0, true);
        ck_assert_uint_eq(domt_profile(stepped.system, 0).runs, turn * HOUSES);
        ck_assert_uint_eq(domt_profile(stepped.system, 0).iterations, 1 + turn);
        ck_assert_uint_eq(domt_stepped_thread(&stepped, 0)->manager.schedule.ready[0].normal_every,
                          4);
    }
    ck_assert_uint_eq(domt_profile(stepped.system, 0).deadline_expiries, 0);
    ck_assert_uint_eq(stepped.rings[0].sleeps, 0);
    again = false;
    domt_stepped_iterate(&stepped, 0, true);
    ck_assert_uint_eq(domt_profile(stepped.system, 0).runs, 4 * HOUSES);
    domt_stepped_iterate(&stepped, 0, true);
    ck_assert_uint_ge(stepped.rings[0].sleeps, 1);
    domt_stepped_fini(&stepped);
}

/* --- M2: home looks in time ------------------------------------------------------------------- */

static domus_address late_comer;
static uint64_t houses_since, messages_since; /* runs and messages since an arrival was put */
static uint64_t houses_most, messages_most;
static domi_house *last_house;

/* Put an arrival at home as another thread would, and count runs and messages until home has taken
 * the arrival. */
static int put_and_count(domus_stack *stack, void *self, const void *payload)
{
    domi_manager *home = stack->manager;

    if (atomic_load(&home->mail.arrivals) == NULL) {
        domt_notice(world->system, late_comer, &work_type, NULL);
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
    .name = "watcher", .on = (const domus_on[]){{&work_type, put_and_count, 0}, {0}}};

static void look_with(uint32_t threads, uint32_t houses, uint32_t messages)
{
    domus_config config = domt_config(threads);
    domt_stepped stepped;

    config.scheduler.steal.enabled = true;
    domt_stepped_init(&stepped, &config);
    world = &stepped;
    late_comer = domt_spawn(stepped.system, 0, &worker, NULL);
    for (uint32_t i = 0; i < houses; i++) {
        domus_address address = domt_spawn(stepped.system, 0, &watcher, NULL);
        for (uint32_t k = 0; k < messages; k++)
            domt_notice(stepped.system, address, &work_type, NULL);
    }
    houses_most = messages_most = 0;
    for (int turn = 0; turn < 100; turn++)
        domt_stepped_iterate(&stepped, 0, false);
    ck_assert_uint_eq(domt_profile(stepped.system, 0).notices - runs, houses * messages);
    domt_stepped_fini(&stepped);
    runs = 0;
}

DOMT_TEST(home_looks_after_16_houses_or_64_messages)
{
    look_with(1, 500, 1);
    ck_assert_uint_eq(houses_most, 16);
    look_with(1, 500, 3);
    ck_assert_uint_eq(houses_most, 16);
    ck_assert_uint_eq(messages_most, 48);
    look_with(1, 100, 10); /* the look comes after 64 messages, within the seventh house */
    ck_assert_uint_eq(houses_most, 7);
    look_with(1, 20, 512); /* each run ends at maxMessagesPerRun and is followed by a look */
    ck_assert_uint_eq(messages_most, 64);
}

/* If there are houses for thieves, the first look comes after one house, and each next one after
 * twice as many, up to the usual 16, because each look reads the clock. */
DOMT_TEST(looks_are_no_more_frequent_where_there_are_thieves)
{
    look_with(2, 500, 1);
    ck_assert_uint_eq(houses_most, 16);
}

/* --- actors that work for ever ---------------------------------------------------------------- */

static const domus_type ball_type = {.name = "ball"};
static const domus_type tick_type = {.name = "tick"};
static _Atomic uint64_t balls, ticks, others;

struct player {
    domus_address partner;
};

static int count_ball(domus_stack *stack, void *self_, const void *payload)
{
    const struct player *self = self_;

    atomic_fetch_add_explicit(&balls, 1, memory_order_relaxed);
    domus_address to = self->partner.house != NULL ? self->partner : domus_sender(stack);
    return domus_notice(stack, to, &ball_type, NULL);
}

static const domus_behaviour player = {.name = "player",
                                       .kind = DOMUS_CHANNELS,
                                       .state_size = sizeof(struct player),
                                       .on = (const domus_on[]){{&ball_type, count_ball, 0}, {0}}};

static int count_tick(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int count_other(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&others, 1);
    return 0;
}

static int start_ticking(domus_stack *stack, void *self)
{
    return domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour bystander = {
    .name = "bystander",
    .on = (const domus_on[]){{&tick_type, count_tick, 0}, {&work_type, count_other, 0}, {0}},
    .on_mount = start_ticking};

/* Each of two channels actors runs channelsRunsPerIteration times in a phase 2, and then waits for
 * the next one. */
DOMT_TEST(channels_actor_runs_so_many_times_in_a_tick)
{
    domus_config config = domt_config(1);
    domt_stepped stepped;

    config.scheduler.channels_runs_per_iteration = 100;
    domt_stepped_init(&stepped, &config);
    domus_address one = domt_spawn(stepped.system, 0, &player, NULL);
    domus_address two = domt_spawn(stepped.system, 0, &player, &(struct player){one});
    domt_stepped_iterate(&stepped, 0, false);
    domt_notice(stepped.system, two, &ball_type, NULL);
    for (uint64_t turn = 1; turn <= 5; turn++) {
        uint64_t before = domt_profile(stepped.system, 0).runs;
        domt_stepped_iterate(&stepped, 0, true);
        uint64_t ran = domt_profile(stepped.system, 0).runs - before;
        ck_assert_uint_ge(ran, 100);
        ck_assert_uint_le(ran, 200);
        ck_assert_uint_eq(stepped.rings[0].sleeps, 0);
    }
    domt_stepped_fini(&stepped);
}

static int spawn_same(domus_stack *stack, void *self);

static const domus_behaviour begetter = {.name = "begetter", .on_mount = spawn_same};

/* Spawn a child that does the same, and so on for ever (as far as a test's memory allows). */
static int spawn_same(domus_stack *stack, void *self)
{
    domus_address child;

    if (atomic_fetch_add_explicit(&balls, 1, memory_order_relaxed) > 500000)
        return 0;
    return domus_spawn(stack, &begetter, NULL, &child);
}

DOMT_TEST(births_without_end_stop_nobody)
{
    domus_system *system = domt_start_threads(1);
    domus_address witness = domt_spawn(system, 0, &bystander, NULL);

    (void)domt_spawn(system, 0, &begetter, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&balls) > 1000);
    domt_notice(system, witness, &work_type, NULL);
    domt_notice(system, domt_spawn(system, 0, &bystander, NULL), &work_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&others) == 2 && atomic_load(&ticks) >= 5);
    domt_end(system);
}

DOMT_SUITE(60)
