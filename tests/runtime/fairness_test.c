/* Fairness, to the run and to the nanosecond: under each load and at each ioRatio each actor gets
 * the share that the design gives it.
 *
 * A test steps a thread by hand on a virtual clock on which only messages and completions take
 * time. Before each iteration messages are sent to witnesses, so for each iteration it is known
 * what must happen:
 *
 * - phase 1 reaps the completions that are there, up to completionsPerPoll;
 * - phase 2 fires every timer that is due, runs a channels actor that is ready, and ends after one
 *   run for each one that was ready at its start and channelsRunsPerIteration more;
 * - phase 3 runs an actor if any is ready, and ends at most one look after its deadline;
 * - a state actor runs when each of those before it in its queue has run; while both queues have
 *   actors, every 4th run is of a normal one (one that waits for something). */
#include "runtime/loop/steps.h"
#include "tests/runtime/load.h"
#include "tests/runtime/stepped.h"

#include <domus/conversation.h>

#define MESSAGE_NS         1000u
#define REAP_NS            50000u
#define RUNS_PER_ITERATION 50u
#define POLL_MAX           256u              /* io.completionsPerPoll */
#define RUN_MAX            64u               /* scheduler.maxMessagesPerRun */
#define LOOK_MAX           (2 * RUN_MAX - 1) /* most messages between two looks at the clock */
#define ITERATIONS_MIN     (DOMT_SANITIZED ? 15u : 40u)
#define ITERATIONS_MAX     20000u

static const uint32_t ratios[] = {1, 50, 99, 100, DOMUS_IO_RATIO_AUTO};

static const domus_type hello_type = {.name = "hello"};
static const domus_type tick_type = {.name = "tick"};
static domt_stepped *world;
static domi_thread *thread;

static void message_passes(void)
{
    domt_stepped_advance(world, MESSAGE_NS);
}

static uint64_t channels_runs; /* runs of channels actors since the beginning */

static uint64_t runs_so_far(void)
{
    return domi_counter_read(&thread->manager.counters.runs);
}

static uint64_t state_runs(void)
{
    return runs_so_far() - channels_runs;
}

/* --- witnesses -------------------------------------------------------------------------------- */

/* An actor that gets one message at a time. Its waits are counted in runs of state actors. */
struct witness {
    uint64_t sent;
    uint64_t greeted;
    uint64_t queued_at; /* number of runs before the phase 3 that found the witness in its queue */
    uint64_t wait_runs; /* the longest wait, in runs */
    bool queued;
};

enum { LIGHT, MIDDLEMAN, CHANNELS, WITNESSES };
static struct witness witnesses[WITNESSES];
static domus_address addresses[WITNESSES];

static int record_greeting(domus_stack *stack, void *self, const void *nothing)
{
    struct witness *witness = *(struct witness **)self;

    witness->greeted++;
    uint64_t runs = state_runs() - witness->queued_at;
    if (witness->queued && runs > witness->wait_runs)
        witness->wait_runs = runs;
    return 0;
}

static domus_address silent;

/* Ask and never get an answer: an ask is always under way, as with middlemen under load. */
static int wait_for_ever(domus_stack *stack, void *self)
{
    return domus_ask(stack, silent, &hello_type, NULL, domt_ignore_answer);
}

#define WITNESS(what, mount)                                                                       \
    {                                                                                              \
        .name = "witness", .kind = (what), .state_size = sizeof(struct witness *),                 \
        .on = (const domus_on[]){{&hello_type, record_greeting, 0}, {0}}, .on_mount = (mount),     \
    }

static const domus_behaviour behaviours[WITNESSES] = {
    [LIGHT] = WITNESS(DOMUS_STATE, NULL),
    [MIDDLEMAN] = WITNESS(DOMUS_STATE, wait_for_ever),
    [CHANNELS] = WITNESS(DOMUS_CHANNELS, NULL),
};

/* ticks of a timer that fires each 2 ms */
static uint64_t ticks;
static uint64_t ticking_since_ns;

static int count_tick(domus_stack *stack, void *self, const void *nothing)
{
    ticks += 1 + domus_timer_missed(stack);
    return 0;
}

static int begin_ticking(domus_stack *stack, void *self)
{
    ticking_since_ns = domus_now_ns(stack);
    return domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour ticker = {.name = "ticker",
                                       .on = (const domus_on[]){{&tick_type, count_tick, 0}, {0}},
                                       .on_mount = begin_ticking};

/* --- an iteration ----------------------------------------------------------------------------- */

static void greet_witnesses(void)
{
    for (int i = 0; i < WITNESSES; i++) {
        struct witness *witness = &witnesses[i];
        if (witness->sent != witness->greeted)
            continue;
        domt_notice(world->system, addresses[i], &hello_type, NULL);
        witness->sent++;
        witness->queued = false;
    }
}

/* Check that phase 1 reaps all completions, up to its limit. */
static void step_io(uint32_t completions)
{
    domt_ring *ring = &world->rings[0];

    ring->completions = completions;
    ring->reap_takes_ns = REAP_NS;
    domi_phase_io(thread);
    ck_assert_uint_eq(ring->completions, completions < POLL_MAX ? 0 : completions - POLL_MAX);
    ring->completions = 0;
}

static void step_channels(domt_load load)
{
    uint64_t began_ns = domt_stepped_now_ns(world);
    uint64_t before = runs_so_far();

    domi_phase_channels(thread);
    uint64_t runs = runs_so_far() - before;
    channels_runs += runs;
    ck_assert_uint_le(runs, domt_load_channels_houses(load) + 1 + RUNS_PER_ITERATION);
    ck_assert_uint_le(domt_stepped_now_ns(world) - began_ns, runs * RUN_MAX * MESSAGE_NS);
    ck_assert_uint_eq(witnesses[CHANNELS].greeted, witnesses[CHANNELS].sent);
    /* Every timer that was due a tick before phase 2 began has put its event. */
    ck_assert(domi_wheel_next_ns(&thread->manager.timing.wheel) + DOMI_WHEEL_TICK_NS > began_ns);
}

/* Returns the budget of phase 3 after phases 1 and 2 have taken `io_ns`. */
static uint64_t budget_ns(uint32_t ratio, uint32_t completions, uint64_t io_ns)
{
    const domus_config *config = thread->config;
    if (ratio == DOMUS_IO_RATIO_AUTO)
        return config->scheduler.max_budget_ns; /* auto_ratio_test.c checks this more closely */
    uint64_t share_ns = io_ns * (100 - ratio) / ratio;

    if (completions == 0)
        return config->scheduler.min_budget_ns;
    if (share_ns > config->scheduler.max_budget_ns)
        return config->scheduler.max_budget_ns;
    return share_ns > config->scheduler.min_budget_busy_ns ? share_ns
                                                           : config->scheduler.min_budget_busy_ns;
}

static void step_state(uint32_t ratio, uint64_t budget)
{
    uint64_t began_ns = domt_stepped_now_ns(world);
    uint64_t before = state_runs();
    uint32_t ready = thread->manager.schedule.ready[DOMUS_STATE].count;

    for (int i = 0; i < CHANNELS; i++) {
        if (!witnesses[i].queued)
            witnesses[i].queued_at = before;
        witnesses[i].queued = true;
    }
    domi_phase_state(thread);
    uint64_t taken_ns = domt_stepped_now_ns(world) - began_ns;
    uint64_t runs = state_runs() - before;
    ck_assert_uint_ge(runs, ready != 0);
    if (ratio == 100) {
        ck_assert_uint_eq(runs, ready);
        ck_assert_uint_le(taken_ns, (uint64_t)ready * RUN_MAX * MESSAGE_NS);
    } else {
        ck_assert_uint_le(taken_ns, budget + LOOK_MAX * MESSAGE_NS);
    }
}

/* The time at which the iteration before the last began: the ticker may not have run since then. */
static uint64_t iteration_before_ns;

/* Run at least ITERATIONS_MIN iterations, and go on until each witness has run. */
static void take_iterations(domt_load load, uint32_t ratio, uint32_t completions)
{
    uint32_t iterations = 0;
    uint64_t last_began_ns = domt_stepped_now_ns(world);
    while (iterations < ITERATIONS_MIN || witnesses[LIGHT].greeted == 0 ||
           witnesses[MIDDLEMAN].greeted == 0) {
        uint64_t began_ns = domt_stepped_now_ns(world);
        iteration_before_ns = last_began_ns;
        last_began_ns = began_ns;
        greet_witnesses();
        step_io(completions);
        step_channels(load);
        uint64_t io_ns = domt_stepped_now_ns(world) - began_ns;
        step_state(ratio, budget_ns(ratio, completions, io_ns));
        ck_assert_uint_lt(++iterations, ITERATIONS_MAX);
    }
}

/* --- what is held ----------------------------------------------------------------------------- */

static void begin_load(domt_stepped *stepped, const domus_config *config, domt_load load)
{
    domt_stepped_init(stepped, config);
    world = stepped;
    thread = domt_stepped_thread(stepped, 0);
    ticks = channels_runs = 0;
    domt_load_takes = message_passes;
    silent = domt_spawn(stepped->system, 0, &domt_silent, NULL);
    for (int i = 0; i < WITNESSES; i++) {
        struct witness *witness = &witnesses[i];
        *witness = (struct witness){0};
        addresses[i] = domt_spawn(stepped->system, 0, &behaviours[i], &witness);
    }
    (void)domt_spawn(stepped->system, 0, &ticker, NULL);
    domt_load_begin(stepped->system, load);
    for (int iteration = 0; iteration < 4; iteration++) { /* repeat until the flood has risen */
        uint64_t before = runs_so_far();
        domi_phase_io(thread);
        domi_phase_channels(thread);
        channels_runs += runs_so_far() - before;
        domi_phase_state(thread);
    }
    atomic_store(&domt_load_handled, 0);
}

/* Check how long witnesses wait behind the houses `ahead` of them: their level gets 3 takes of 4,
 * or every 4th. */
static void check_waits(domt_load load)
{
    uint64_t many = domt_load_state_houses(load);
    uint64_t light_max = (many + 2) * 4 / 3 + 1; /* the ticker counts, too */
    uint64_t middleman_max = 4 * 2;              /* the asker of a flood may be before it */

    if (load == DOMT_MANY_WAITING) { /* all these houses are of the middleman's level */
        light_max = 4;
        middleman_max = (many + 2) * 4 / 3 + 1;
    }
    ck_assert_uint_le(witnesses[LIGHT].wait_runs, light_max);
    ck_assert_uint_le(witnesses[MIDDLEMAN].wait_runs, middleman_max);
}

static void check_with(domt_load load, uint32_t ratio, uint32_t completions)
{
    domus_config config = domt_config(1);
    domt_stepped stepped;

    config.scheduler.io_ratio = ratio;
    config.scheduler.mailbox_max = 1024;
    config.scheduler.channels_runs_per_iteration = RUNS_PER_ITERATION;
    begin_load(&stepped, &config, load);
    take_iterations(load, ratio, completions);
    check_waits(load);
    ck_assert(load == DOMT_LOAD_NONE || atomic_load(&domt_load_handled) != 0);
    /* With more houses, the ticker's run may come as late as its time. */
    if (domt_load_state_houses(load) <= 2) {
        uint64_t passed_ns = iteration_before_ns - ticking_since_ns;
        ck_assert_uint_ge(ticks + 1, passed_ns / (2 * DOMT_MS));
    }
    domt_load_takes = NULL;
    domt_load_end();
    domt_stepped_fini(&stepped);
}

static void check_fairness(domt_load load)
{
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        check_with(load, ratios[i], 5);
        if (domt_load_state_houses(load) > 2)
            continue; /* loads of many houses take long, so they run only once */
        check_with(load, ratios[i], 0);
        check_with(load, ratios[i], 2000);
    }
}

DOMT_TEST(flood_of_notices_to_one_leaves_everybody_a_share)
{
    check_fairness(DOMT_FLOOD_OF_NOTICES);
}

DOMT_TEST(flood_of_asks_to_one_leaves_everybody_a_share)
{
    check_fairness(DOMT_FLOOD_OF_ASKS);
}

DOMT_TEST(state_actors_that_answer_each_other_leave_everybody_a_share)
{
    check_fairness(DOMT_STATE_PING);
}

DOMT_TEST(channels_actors_that_answer_each_other_leave_everybody_a_share)
{
    check_fairness(DOMT_CHANNELS_PING);
}

DOMT_TEST(ring_of_channels_actors_ends_each_phase_2_in_time)
{
    check_fairness(DOMT_CHANNELS_RING);
}

DOMT_TEST(self_senders_leave_everybody_a_share)
{
    check_fairness(DOMT_STATE_SELF);
    check_fairness(DOMT_CHANNELS_SELF);
}

DOMT_TEST(hundred_thousand_ready_leave_everybody_a_share)
{
    check_fairness(DOMT_MANY_READY);
}

DOMT_TEST(hundred_thousand_middlemen_leave_everybody_a_share)
{
    check_fairness(DOMT_MANY_WAITING);
}

DOMT_SUITE(60)
