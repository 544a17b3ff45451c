/* examples/proxy.c in front of an echo of the same system, over many seeds of a network that fails:
 * both links of each relayed connection have faults, and every byte is accounted for. DOMUS_SEED=n
 * runs seed n alone; DOMT_LONG runs 50 times as many. */
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* The example itself, without its main(). */
int domt_proxy_main(int argc, char **argv);
#define main domt_proxy_main
#include "examples/proxy.c"
#undef main

#define SEEDS DOMT_SCALE(1000, 60)
#define DEEDS 40u /* of the clients of a seed */

/* --- the echo --------------------------------------------------------------------------------- */

static int give_back(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour echo = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {give_back, 0}};

/* --- a seed ----------------------------------------------------------------------------------- */

static void make_kit(domt_sweep *sweep)
{
    domus_listener_config listeners[] = {
        {.name = "proxy", .address = "127.0.0.1:80", .backlog = 4},
        {.name = "echo", .address = "127.0.0.1:7", .backlog = 4},
    };
    domus_config config;

    domt_sweep_configure(sweep, &config);
    config.connect.timeout_ns = 300 * DOMT_SWEEP_SECOND;
    domt_sweep_make(sweep, &config, listeners, 2);
    ck_assert_int_eq(domus_serve(domus_testkit_system(sweep->kit), "proxy", &proxy, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(domus_testkit_system(sweep->kit), "echo", &echo, NULL, NULL), 0);
}

static int run_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .is_relayed = true};

    domi_random_init(&sweep.random, seed);
    (void)snprintf(settings.upstream, sizeof settings.upstream, "127.0.0.1:7");
    make_kit(&sweep);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    domt_sweep_play(&sweep, "127.0.0.1:80", DEEDS);
    if (domt_sweep_below(&sweep, 4) != 0)
        domt_sweep_settle(&sweep);
    return domt_sweep_end(&sweep);
}

DOMT_TEST(every_byte_of_a_proxy_is_accounted_for)
{
    domt_sweep_seeds(SEEDS, run_seed);
}

DOMT_SUITE(3000)
