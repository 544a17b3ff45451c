/* Fairness, exact to the run and to the nanosecond: under each load and at each ioRatio each actor
 * gets its share of the thread's time.
 *
 * A test steps a thread by hand on a virtual clock, on which only messages and completions take
 * time. Before each iteration the test sends messages to witnesses (actors that are watched), so it
 * knows for each iteration what must happen:
 *
 * - phase 1 reaps the completions that are there, up to completionsPerPoll;
 * - phase 2 fires every timer that is due, runs a channels actor that is ready, and ends after one
 *   run for each channels actor that was ready at its start and channelsRunsPerIteration more;
 * - phase 3 runs a state actor if one is ready, and ends at most one look at the clock after its
 *   deadline;
 * - a state actor runs when each actor before it in its queue has run; while both queues have
 *   actors, every 4th run is of a normal actor (one that waits for something). */
#include "runtime/loop/steps.h"
#include "tests/runtime/load.h"
#include "tests/runtime/stepped.h"

#include <domus/conversation.h>

#define MESSAGE_NS         1000u
#define REAP_NS            50000u
#define RUNS_PER_ITERATION 50u
/* most completions that phase 1 reaps at once (io.completionsPerPoll) */
#define POLL_MAX 256u
/* most messages that a run handles (scheduler.maxMessagesPerRun) */
#define RUN_MAX 64u
/* most messages between two looks of phase 3 at the clock */
#define LOOK_MAX       (2 * RUN_MAX - 1)
#define ITERATIONS_MIN (DOMT_SANITIZED ? 15u : 40u)
#define ITERATIONS_MAX 20000u

static const uint32_t ratios[] = {1, 50, 99, 100, DOMUS_IO_RATIO_AUTO};

static const domus_type hello_type = {.name = "hello"};
static const domus_type tick_type = {.name = "tick"};
static domt_stepped *world;
static domi_thread *thread;

static void let_time_of_message_pass(void)
{
    domt_stepped_advance_clock(world, MESSAGE_NS);
}

static uint64_t channels_runs; /* number of runs of channels actors since the test began */

static uint64_t runs_of_actors_so_far(void)
{
    return domi_counter_read(&thread->manager.counters.runs);
}

static uint64_t runs_of_state_actors(void)
{
    return runs_of_actors_so_far() - channels_runs;
}

/* --- witnesses -------------------------------------------------------------------------------- */

/* A witness: an actor that gets one message at a time, and whose waits are counted in runs of state
 * actors. */
struct witness {
    uint64_t sent;
    uint64_t greeted;
    uint64_t queued_at; /* number of runs before the phase 3 that found the witness in its queue */
    uint64_t wait_runs; /* the longest wait of the witness, in runs of state actors */
    bool queued;
};

enum { LIGHT, MIDDLEMAN, CHANNELS, WITNESSES };
static struct witness witnesses[WITNESSES];
static domus_address addresses[WITNESSES];

static int record_greeting_of_witness(domus_stack *stack, void *self, const void *nothing)
{
    struct witness *witness = *(struct witness **)self;

    witness->greeted++;
    uint64_t runs = runs_of_state_actors() - witness->queued_at;
    if (witness->queued && runs > witness->wait_runs)
        witness->wait_runs = runs;
    return 0;
}

static domus_address silent;

/* Ask an actor that never answers, so that an ask of this actor is always under way, as with
 * middlemen under load. */
static int ask_silent_actor(domus_stack *stack, void *self)
{
    return domus_ask(stack, silent, &hello_type, NULL, domt_ignore_answer);
}

#define WITNESS(what, mount)                                                                       \
    {                                                                                              \
        .name = "witness", .kind = (what), .state_size = sizeof(struct witness *),                 \
        .on = (const domus_on[]){{&hello_type, record_greeting_of_witness, 0}, {0}},               \
        .on_mount = (mount),                                                                       \
    }

static const domus_behaviour behaviours[WITNESSES] = {
    [LIGHT] = WITNESS(DOMUS_STATE, NULL),
    [MIDDLEMAN] = WITNESS(DOMUS_STATE, ask_silent_actor),
    [CHANNELS] = WITNESS(DOMUS_CHANNELS, NULL),
};

/* number of ticks of a timer that fires each 2 ms */
static uint64_t ticks;
static uint64_t ticking_since_ns;

static int count_tick_and_missed_ones(domus_stack *stack, void *self, const void *nothing)
{
    ticks += 1 + domus_timer_missed(stack);
    return 0;
}

static int begin_ticking_in_mount(domus_stack *stack, void *self)
{
    ticking_since_ns = domus_now_ns(stack);
    return domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour ticker = {
    .name = "ticker",
    .on = (const domus_on[]){{&tick_type, count_tick_and_missed_ones, 0}, {0}},
    .on_mount = begin_ticking_in_mount};

/* --- an iteration ----------------------------------------------------------------------------- */

static void greet_witnesses_that_wait(void)
{
    for (int i = 0; i < WITNESSES; i++) {
        struct witness *witness = &witnesses[i];
        if (witness->sent != witness->greeted)
            continue;
        domt_send_notice(world->system, addresses[i], &hello_type, NULL);
        witness->sent++;
        witness->queued = false;
    }
}

/* Run phase 1 of an iteration, and check that it reaps all completions, up to its limit. */
static void run_io_phase(uint32_t completions)
{
    domt_ring *ring = &world->rings[0];

    ring->completions = completions;
    ring->reap_takes_ns = REAP_NS;
    domi_thread_run_phase_io(thread);
    ck_assert_uint_eq(ring->completions, completions < POLL_MAX ? 0 : completions - POLL_MAX);
    ring->completions = 0;
}

static void run_channels_phase(domt_load load)
{
    uint64_t began_ns = domt_stepped_now_ns(world);
    uint64_t before = runs_of_actors_so_far();

    domi_thread_run_phase_channels(thread);
    uint64_t runs = runs_of_actors_so_far() - before;
    channels_runs += runs;
    ck_assert_uint_le(runs, domt_load_count_channels_houses(load) + 1 + RUNS_PER_ITERATION);
    ck_assert_uint_le(domt_stepped_now_ns(world) - began_ns, runs * RUN_MAX * MESSAGE_NS);
    ck_assert_uint_eq(witnesses[CHANNELS].greeted, witnesses[CHANNELS].sent);
    /* Each timer that was due at least a tick before phase 2 began has fired. */
    ck_assert(domi_wheel_next_ns(&thread->manager.timing.wheel) + DOMI_WHEEL_TICK_NS > began_ns);
}

/* Returns the budget that phase 3 must get after phases 1 and 2 have taken `io_ns`. */
static uint64_t expected_budget_of_state_phase_ns(uint32_t ratio, uint32_t completions,
                                                  uint64_t io_ns)
{
    const domus_config *config = thread->config;
    if (ratio == DOMUS_IO_RATIO_AUTO)
        /* the largest budget that `auto` may give; auto_ratio_test.c checks its rule more closely
         */
        return config->scheduler.max_budget_ns;
    uint64_t share_ns = io_ns * (100 - ratio) / ratio;

    if (completions == 0)
        return config->scheduler.min_budget_ns;
    if (share_ns > config->scheduler.max_budget_ns)
        return config->scheduler.max_budget_ns;
    return share_ns > config->scheduler.min_budget_busy_ns ? share_ns
                                                           : config->scheduler.min_budget_busy_ns;
}

static void run_state_phase(uint32_t ratio, uint64_t budget)
{
    uint64_t began_ns = domt_stepped_now_ns(world);
    uint64_t before = runs_of_state_actors();
    uint32_t ready = thread->manager.schedule.ready[DOMUS_STATE].count;

    for (int i = 0; i < CHANNELS; i++) {
        if (!witnesses[i].queued)
            witnesses[i].queued_at = before;
        witnesses[i].queued = true;
    }
    domi_thread_run_phase_state(thread);
    uint64_t taken_ns = domt_stepped_now_ns(world) - began_ns;
    uint64_t runs = runs_of_state_actors() - before;
    ck_assert_uint_ge(runs, ready != 0);
    if (ratio == 100) {
        ck_assert_uint_eq(runs, ready);
        ck_assert_uint_le(taken_ns, (uint64_t)ready * RUN_MAX * MESSAGE_NS);
    } else {
        ck_assert_uint_le(taken_ns, budget + LOOK_MAX * MESSAGE_NS);
    }
}

/* The time at which the iteration before the last one began: events of the ticker that came later
 * may still wait for their run. */
static uint64_t iteration_before_ns;

/* Step the thread through at least ITERATIONS_MIN iterations, and go on until each witness has
 * run. */
static void run_iterations_of_thread(domt_load load, uint32_t ratio, uint32_t completions)
{
    uint32_t iterations = 0;
    uint64_t last_began_ns = domt_stepped_now_ns(world);
    while (iterations < ITERATIONS_MIN || witnesses[LIGHT].greeted == 0 ||
           witnesses[MIDDLEMAN].greeted == 0) {
        uint64_t began_ns = domt_stepped_now_ns(world);
        iteration_before_ns = last_began_ns;
        last_began_ns = began_ns;
        greet_witnesses_that_wait();
        run_io_phase(completions);
        run_channels_phase(load);
        uint64_t io_ns = domt_stepped_now_ns(world) - began_ns;
        run_state_phase(ratio, expected_budget_of_state_phase_ns(ratio, completions, io_ns));
        ck_assert_uint_lt(++iterations, ITERATIONS_MAX);
    }
}

/* --- what is held ----------------------------------------------------------------------------- */

static void begin_load_and_witnesses(domt_stepped *stepped, const domus_config *config,
                                     domt_load load)
{
    domt_stepped_init(stepped, config);
    world = stepped;
    thread = domt_stepped_thread(stepped, 0);
    ticks = channels_runs = 0;
    domt_load_takes = let_time_of_message_pass;
    silent = domt_spawn(stepped->system, 0, &domt_silent, NULL);
    for (int i = 0; i < WITNESSES; i++) {
        struct witness *witness = &witnesses[i];
        *witness = (struct witness){0};
        addresses[i] = domt_spawn(stepped->system, 0, &behaviours[i], &witness);
    }
    (void)domt_spawn(stepped->system, 0, &ticker, NULL);
    domt_load_spawn_actors_and_begin(stepped->system, load);
    /* run four iterations, until the mailboxes of a flood are full */
    for (int iteration = 0; iteration < 4; iteration++) {
        uint64_t before = runs_of_actors_so_far();
        domi_thread_run_phase_io(thread);
        domi_thread_run_phase_channels(thread);
        channels_runs += runs_of_actors_so_far() - before;
        domi_thread_run_phase_state(thread);
    }
    atomic_store(&domt_load_handled, 0);
}

/* Check how many runs witnesses have waited behind the houses of the load. Three of four runs are
 * of the high level and the fourth is of the normal one, while both levels have actors. */
static void check_waits_of_witnesses(domt_load load)
{
    uint64_t many = domt_load_count_state_houses(load);
    uint64_t light_max = (many + 2) * 4 / 3 + 1; /* the ticker counts as one of the houses, too */
    /* the asker of a flood of asks may run before the middleman */
    uint64_t middleman_max = 4 * 2;

    /* all houses of this load are of the normal level, as the middleman is */
    if (load == DOMT_MANY_WAITING) {
        light_max = 4;
        middleman_max = (many + 2) * 4 / 3 + 1;
    }
    ck_assert_uint_le(witnesses[LIGHT].wait_runs, light_max);
    ck_assert_uint_le(witnesses[MIDDLEMAN].wait_runs, middleman_max);
}

static void check_load_with_io_ratio(domt_load load, uint32_t ratio, uint32_t completions)
{
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    config.scheduler.io_ratio = ratio;
    config.scheduler.mailbox_max = 1024;
    config.scheduler.channels_runs_per_iteration = RUNS_PER_ITERATION;
    begin_load_and_witnesses(&stepped, &config, load);
    run_iterations_of_thread(load, ratio, completions);
    check_waits_of_witnesses(load);
    ck_assert(load == DOMT_LOAD_NONE || atomic_load(&domt_load_handled) != 0);
    /* This holds only for loads of few houses, because behind more of them a tick may wait for
     * longer than 2 ms. */
    if (domt_load_count_state_houses(load) <= 2) {
        uint64_t passed_ns = iteration_before_ns - ticking_since_ns;
        ck_assert_uint_ge(ticks + 1, passed_ns / (2 * DOMT_MS));
    }
    domt_load_takes = NULL;
    domt_load_end();
    domt_stepped_fini(&stepped);
}

static void check_load_with_all_io_ratios(domt_load load)
{
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        check_load_with_io_ratio(load, ratios[i], 5);
        if (domt_load_count_state_houses(load) > 2)
            /* loads of many houses take long, so they run with only one number of completions */
            continue;
        check_load_with_io_ratio(load, ratios[i], 0);
        check_load_with_io_ratio(load, ratios[i], 2000);
    }
}

DOMT_TEST(flood_of_notices_to_one_leaves_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_FLOOD_OF_NOTICES);
}

DOMT_TEST(flood_of_asks_to_one_leaves_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_FLOOD_OF_ASKS);
}

DOMT_TEST(state_actors_that_answer_each_other_leave_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_STATE_PING);
}

DOMT_TEST(channels_actors_that_answer_each_other_leave_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_CHANNELS_PING);
}

DOMT_TEST(ring_of_channels_actors_ends_each_phase_2_in_time)
{
    check_load_with_all_io_ratios(DOMT_CHANNELS_RING);
}

DOMT_TEST(self_senders_leave_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_STATE_SELF);
    check_load_with_all_io_ratios(DOMT_CHANNELS_SELF);
}

DOMT_TEST(hundred_thousand_ready_leave_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_MANY_READY);
}

DOMT_TEST(hundred_thousand_middlemen_leave_everybody_a_share)
{
    check_load_with_all_io_ratios(DOMT_MANY_WAITING);
}

DOMT_SUITE(60)
