/* Actors ask a service through a pool, over many seeds of a network that fails: each ask has one
 * outcome, and no answer comes to the wrong asker. DOMUS_SEED=n runs seed n alone; DOMT_LONG runs
 * 50 times as many. */
#include "tests/runtime/askers.h"
#include "tests/runtime/clients.h"
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>

#define SEEDS  DOMT_SCALE(1000, 60)
#define ASKERS 3u

static domus_address pool;

static void make_kit(domt_sweep *sweep)
{
    domus_listener_config listeners[] = {
        {.name = "one", .address = "127.0.0.1:1", .backlog = 4},
        {.name = "two", .address = "127.0.0.1:2", .backlog = 4},
    };
    domus_config config;

    domt_sweep_configure(sweep, &config);
    domt_sweep_make(sweep, &config, listeners, 2);
    domus_system *system = domus_testkit_system(sweep->kit);
    ck_assert_int_eq(domus_serve(system, "one", &domt_line_server, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(system, "two", &domt_line_server, NULL, NULL), 0);
}

static void make_pool(domt_sweep *sweep)
{
    const domus_channel_options channel = {.answer_timeout_ns = DOMT_SWEEP_SECOND};
    bool on_demand = domt_sweep_below(sweep, 2) == 0;
    const domus_pool_options options = {
        .behaviour = &domt_line_channel,
        .connections_min = on_demand ? 0 : 1 + (uint32_t)domt_sweep_below(sweep, 3),
        .connections_max = 4,
        .queue_max = 1 + (uint32_t)domt_sweep_below(sweep, 20),
        .backoff_min_ns = 10 * DOMT_SWEEP_MS,
        .backoff_max_ns = 100 * DOMT_SWEEP_MS,
        .repeatable = domt_sweep_below(sweep, 2) == 0 ? domt_packets : NULL,
        .per_thread = domt_sweep_below(sweep, 2) == 0,
        .on_demand = on_demand,
        .channel = &channel,
    };

    DOMT_SWEEP_HOLD(sweep,
                    domus_outside_pool_open(domus_testkit_system(sweep->kit),
                                            "127.0.0.1:1,127.0.0.1:2", &options, &pool) == 0);
}

static void begin_asking(domt_sweep *sweep)
{
    domus_system *system = domus_testkit_system(sweep->kit);
    domus_address asker;

    for (uint32_t id = 0; id < ASKERS; id++) {
        const domt_asking asking = {
            .to = pool,
            .id = id,
            .at_a_time = 1 + (uint32_t)domt_sweep_below(sweep, 6),
            .each = 1 + (uint32_t)domt_sweep_below(sweep, 8),
            .timeout_ns = (1 + domt_sweep_below(sweep, 3000)) * DOMT_SWEEP_MS,
        };
        DOMT_SWEEP_HOLD(sweep, domus_outside_spawn(system, &domt_asker, NULL, &asker) == 0);
        DOMT_SWEEP_HOLD(sweep,
                        domus_outside_notice(system, asker, &domt_asking_type, &asking) == 0);
    }
}

static int run_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .is_relayed = true};

    domi_random_init(&sweep.random, seed);
    domt_asked = domt_answered = domt_failed = domt_wrong = 0;
    make_kit(&sweep);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    make_pool(&sweep);
    begin_asking(&sweep);
    /* in some seeds the pool stops in the midst of it, and what is under way fails */
    uint64_t time_ns = domt_sweep_below(&sweep, 4) == 0
                           ? domt_sweep_below(&sweep, 50) * DOMT_SWEEP_MS
                           : 40 * DOMT_SWEEP_SECOND;
    DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, time_ns) == 0);
    /* in others it reconnects while the system stops, which leaves no socket */
    if (domt_sweep_below(&sweep, 2) == 0)
        DOMT_SWEEP_HOLD(&sweep, domus_outside_stop(domus_testkit_system(sweep.kit), pool) == 0);
    DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, 5 * DOMT_SWEEP_SECOND) == 0);
    DOMT_SWEEP_HOLD(&sweep, domt_asked != 0);
    DOMT_SWEEP_HOLD(&sweep, domt_asked == domt_answered + domt_failed);
    DOMT_SWEEP_HOLD(&sweep, domt_wrong == 0);
    return domt_sweep_end(&sweep);
}

DOMT_TEST(each_ask_of_a_pool_has_one_outcome_and_its_own_answer)
{
    domt_sweep_seeds(SEEDS, run_seed);
}

DOMT_SUITE(3000)
