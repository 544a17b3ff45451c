/* The rule of an ioRatio of `auto`, by itself and in the loop on a virtual clock: state actors run
 * on while nobody else has anything to do; io waits for the least budget, and for longer only if
 * state actors wait for too long. */
#include "runtime/loop/auto_ratio.h"
#include "runtime/loop/steps.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

/* --- the rule --------------------------------------------------------------------------------- */

static const domi_auto_bounds bounds = {.least_ns = 50 * US, .most_ns = 10 * MS, .wait_ns = 4 * MS};

DOMT_TEST(default_max_wait_of_auto_ratio_is_4_ms)
{
    domus_config config;

    domus_config_init(&config);
    ck_assert_uint_eq(config.scheduler.wait_max_ns, 4 * MS);
}

/* Run a phase 3 that takes `took_ns`, by the rule of an automatic ioRatio. Returns the budget that
 * the phase was given. */
static uint64_t run_phase_3_by_auto_ratio(domi_auto_ratio *state, uint64_t *now_ns, uint32_t ready,
                                          uint64_t took_ns, uint64_t ran, uint32_t left)
{
    uint64_t budget_ns = domi_auto_ratio_begin_state_phase(state, &bounds, *now_ns, ready);

    *now_ns += took_ns;
    domi_auto_ratio_end_state_phase(state, &bounds, *now_ns, ran, left);
    return budget_ns;
}

DOMT_TEST(state_budget_is_least_while_rounds_of_houses_are_short)
{
    domi_auto_ratio state = {0};
    uint64_t now_ns = 7 * MS;

    /* more houses are always ready, and a round over all of them takes three phases */
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 30, 50 * US, 10, 30), 50 * US);
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 30, 50 * US, 30, 0), 50 * US);
    now_ns += 1000 * MS; /* the thread slept in between, while no house was ready */
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 30, 50 * US, 30, 0), 50 * US);
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 30, 50 * US, 30, 0), 50 * US);
}

DOMT_TEST(budget_doubles_while_rounds_are_long_and_halves_when_they_are_short)
{
    domi_auto_ratio state = {0};
    uint64_t now_ns = 7 * MS, budget_ns = 50 * US;

    /* A round of 1,000 houses begins, of which 10 run in each phase: after 40 phases it has taken 4
     * ms. */
    for (int i = 0; i < 40; i++)
        ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 1000, 100 * US, 10, 1000),
                          50 * US);
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 1000, 1, 10, 1000), 50 * US);
    for (; budget_ns < MS; budget_ns *= 2) /* the budget doubles, to at most a quarter of waitMax */
        ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 1000, 100 * US, 10, 1000),
                          budget_ns * 2 < MS ? budget_ns * 2 : MS);
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 1000, 100 * US, 1000, 10), MS);
    /* The long round has ended with this phase, and the next rounds are short. */
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 10, 100 * US, 10, 10), MS);
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 10, 100 * US, 10, 0), 500 * US);
    ck_assert_uint_eq(run_phase_3_by_auto_ratio(&state, &now_ns, 10, 100 * US, 10, 0), 250 * US);
}

DOMT_TEST(least_budget_bound_holds_before_max_and_wait_bounds)
{
    static const struct {
        domi_auto_bounds bounds;
        uint64_t least_ns, most_ns;
    } cases[] = {
        {{50 * US, 10 * MS, 4 * MS}, 50 * US, MS},
        {{50 * US, 100 * US, 4 * MS}, 50 * US, 100 * US}, /* the budget is limited by maxBudget */
        {{200 * US, 10 * MS, 400 * US},
         200 * US,
         200 * US}, /* the budget is minBudgetBusy, though that is more than a quarter of waitMax */
        {{200 * US, 100 * US, 4 * MS}, 200 * US, 200 * US},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domi_auto_ratio state = {0};
        uint64_t budget_ns = domi_auto_ratio_begin_state_phase(&state, &cases[i].bounds, 1, 9);
        ck_assert_uint_eq(budget_ns, cases[i].least_ns);
        for (uint64_t now_ns = 20 * MS; now_ns < 40 * MS; now_ns += MS) {
            domi_auto_ratio_end_state_phase(&state, &cases[i].bounds, now_ns, 0, 9);
            budget_ns = domi_auto_ratio_begin_state_phase(&state, &cases[i].bounds, now_ns, 9);
        }
        ck_assert_uint_eq(budget_ns, cases[i].most_ns);
    }
}

/* --- the loop --------------------------------------------------------------------------------- */

#define RUN_NS UINT64_C(1000)
#define HOUSES 3000u

enum event { NOTHING, OPERATION, COMPLETION, MAIL_OF_CHANNELS, SPAWN };

static domt_stepped stepped;
/* number of runs in this phase 3, and number of the run in which the event comes */
static uint64_t runs, event_at;
static enum event event;
static domus_address channels;

static const domus_type work_type = {.name = "work"};
static const domus_behaviour service = {.name = "service", .kind = DOMUS_CHANNELS};
static const domus_behaviour born = {.name = "born"};

static void make_work_for_phase_1_or_2(domus_stack *stack)
{
    domus_address unused;

    if (event == OPERATION)
        stepped.rings[0].queued = true;
    else if (event == COMPLETION)
        stepped.rings[0].completions = 1;
    else if (event == MAIL_OF_CHANNELS)
        ck_assert_int_eq(domus_notice(stack, channels, &work_type, NULL), 0);
    else if (event == SPAWN)
        ck_assert_int_eq(domus_spawn(stack, &born, NULL, &unused), 0);
}

static int handle_work_for_fixed_time(domus_stack *stack, void *self, const void *nothing)
{
    if (++runs == event_at)
        make_work_for_phase_1_or_2(stack);
    domt_stepped_advance_clock(&stepped, RUN_NS);
    return 0;
}

static const domus_behaviour worker = {
    .name = "worker", .on = (const domus_on[]){{&work_type, handle_work_for_fixed_time, 0}, {0}}};

/* Returns how long a phase 3 lasts after io has brought work, if the event `what` comes in its run
 * number `at`. */
static uint64_t length_of_phase_3_with_event(enum event what, uint64_t at, uint64_t max_budget_ns)
{
    domus_config config = domt_config_of_threads(1);

    config.scheduler.io_ratio = DOMUS_IO_RATIO_AUTO;
    config.scheduler.min_budget_ns = 50 * US;
    config.scheduler.max_budget_ns = max_budget_ns;
    domt_stepped_init(&stepped, &config);
    channels = domt_spawn(stepped.system, 0, &service, NULL);
    for (uint32_t i = 0; i < HOUSES; i++)
        domt_send_notice(stepped.system, domt_spawn(stepped.system, 0, &worker, NULL), &work_type,
                         NULL);
    domi_thread_run_phase_io(domt_stepped_thread(&stepped, 0));
    domi_thread_run_phase_channels(domt_stepped_thread(&stepped, 0));
    runs = 0;
    event = what;
    event_at = at;
    stepped.rings[0].completions = 5;
    domt_stepped_iterate(&stepped, 0, false);
    uint64_t took_ns = runs * RUN_NS;
    ck_assert_uint_eq(domt_profile_of_thread(stepped.system, 0).deadline_expiries, 1);
    stepped.rings[0].queued = false;
    stepped.rings[0].completions = 0;
    domt_stepped_fini(&stepped);
    return took_ns;
}

#define LOOK_NS (16 * RUN_NS) /* time of the runs between two looks at the deadline */

DOMT_TEST(state_actors_run_on_while_nothing_waits)
{
    static const struct {
        enum event event;
        uint64_t at, max_budget_ns, least_ns;
    } cases[] = {
        /* phase 3 lasts for minBudgetBusy, because the operation waits from the first run on */
        {OPERATION, 1, 10 * MS, 50 * US},
        /* phase 3 ends with the event, because the operation is seen within minBudgetBusy */
        {OPERATION, 300, 10 * MS, 300 * US},
        {COMPLETION, 300, 10 * MS, 300 * US},
        {MAIL_OF_CHANNELS, 300, 10 * MS, 300 * US},
        {SPAWN, 300, 10 * MS, 300 * US},
        /* phase 3 is limited by maxBudget */
        {NOTHING, 0, 200 * US, 200 * US},
        {NOTHING, 0, 10 * MS, 1000 * US}, /* phase 3 is limited by the next tick of the timers */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t took_ns =
            length_of_phase_3_with_event(cases[i].event, cases[i].at, cases[i].max_budget_ns);
        ck_assert_msg(took_ns >= cases[i].least_ns &&
                          took_ns <= cases[i].least_ns + 50 * US + LOOK_NS,
                      "case %zu: %lu ns", i, (unsigned long)took_ns);
    }
}

DOMT_SUITE(20)
