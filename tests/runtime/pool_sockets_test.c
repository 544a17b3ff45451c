/* Pools over real sockets, on both backends: actors on all threads ask a service through one
 * address, with connections that are lost meanwhile. */
#include "tests/runtime/askers.h"
#include "tests/runtime/running.h"

#define ASKERS    6u
#define AT_A_TIME 8u
#define EACH      DOMT_SCALE(200, 20)

static domus_endpoint served;

static void ask_all(domus_system *system, domus_address to, uint64_t timeout_ns)
{
    for (uint32_t id = 0; id < ASKERS; id++) {
        const domt_asking asking = {
            .to = to, .id = id, .at_a_time = AT_A_TIME, .each = EACH, .timeout_ns = timeout_ns};
        domus_address asker = domt_spawn(system, id % 3, &domt_asker, NULL);
        domt_notice(system, asker, &domt_asking_type, &asking);
    }
}

static domus_system *begin(void)
{
    domus_config config = domt_config(3);

    domt_asked = domt_answered = domt_failed = domt_wrong = 0;
    domus_system *system = domt_start(&config);
    served = domt_serve(system, &domt_line_server);
    return system;
}

static domus_address open_pool(domus_system *system, bool per_thread)
{
    const domus_pool_options options = {.behaviour = &domt_line_channel,
                                        .connections_min = 2,
                                        .connections_max = 4,
                                        .queue_max = 1000,
                                        .wait_ns = 10 * DOMT_MS * 1000,
                                        .per_thread = per_thread};
    domus_address pool;
    char text[DOMUS_ENDPOINT_TEXT_MAX];

    (void)domus_endpoint_text(&served, text, sizeof text);
    ck_assert_int_eq(domus_outside_pool_open(system, text, &options, &pool), 0);
    return pool;
}

static void ask_through(bool per_thread)
{
    domus_system *system = begin();

    ask_all(system, open_pool(system, per_thread), 0);
    DOMT_WAIT_FOR(60, atomic_load(&domt_answered) + atomic_load(&domt_failed) +
                              atomic_load(&domt_wrong) ==
                          ASKERS * AT_A_TIME * EACH);
    ck_assert_uint_eq(domt_failed, 0);
    ck_assert_uint_eq(domt_wrong, 0);
    domt_end(system);
}

DOMT_TEST(askers_of_all_threads_get_their_answers_from_one_pool)
{
    ask_through(false);
}

DOMT_TEST(askers_of_all_threads_get_their_answers_from_pools_of_their_own)
{
    ask_through(true);
}

DOMT_SUITE(120)
