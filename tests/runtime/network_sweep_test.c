/* Services over many seeds of a network that fails in all ways, with scripted peers: an echo on
 * three threads; examples/proxy.c in front of an echo of the same system, where both links of each
 * relayed connection have faults; and a pool. Every byte of the first two is counted, and each ask
 * of the pool has one outcome, which is its own answer or an error. DOMUS_SEED=n runs seed n alone,
 * and prints its trace if a check fails. DOMT_LONG runs 20 times as many. */
#include "tests/runtime/askers.h"
#include "tests/runtime/clients.h"
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- an echo ---------------------------------------------------------------------------------- */

#define SEEDS DOMT_SCALE(2000, 120)
#define DEEDS 60u /* most actions of all clients in one seed */

static const domus_type wake_type = {.name = "wake"};
static const domus_type ask_type = {.name = "ask"};

/* --- the service ------------------------------------------------------------------------------ */

static int write_read_bytes_back(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    return domus_channel_write(stack, event->channel, event->bytes);
}

/* Send the bytes back in small new buffers, one for each piece. */
static int write_copies_of_bytes_back(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    const char *data = domus_buffer_data(event->bytes);
    size_t size = domus_buffer_size(event->bytes);
    int result = 0;

    for (size_t at = 0; at < size && result == 0;) {
        size_t part = size - at < 100 ? size - at : 100;
        domus_buffer *copy;

        result = domus_buffer_new(stack, part, &copy);
        if (result == 0) {
            memcpy(domus_buffer_data(copy), data + at, part);
            result = domus_channel_write(stack, event->channel, copy);
        }
        at += part;
    }
    domus_buffer_free(event->bytes);
    return result;
}

/* Send the bytes back, and read no more for a millisecond. */
static int write_back_and_pause(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    int result = domus_channel_pause(stack, event->channel);

    if (result == 0)
        result = domus_after(stack, DOMT_SWEEP_MS, &wake_type, NULL, NULL);
    if (result != 0) {
        domus_buffer_free(event->bytes);
        return result;
    }
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int resume_channel_after_sleep(domus_stack *stack, void *self, const void *nothing)
{
    domus_channel *channel = domus_channel_running(stack);
    if (channel != NULL)
        (void)domus_channel_resume(stack, channel);
    return 0;
}

static int write_back_after_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_buffer *bytes = *(domus_buffer **)domus_frame(stack);

    if (answer->error != 0 || channel == NULL) {
        domus_buffer_free(bytes);
        return answer->error;
    }
    return domus_channel_write(stack, channel, bytes);
}

static domus_address helper; /* the actor that is asked before bytes are sent back */

/* Send the bytes back after an actor on another thread has answered an ask. */
static int ask_before_writing_back(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    int result;

    *(domus_buffer **)domus_frame(stack) = event->bytes;
    result = domus_ask(stack, helper, &ask_type, NULL, write_back_after_answer);
    if (result != DOMUS_PARKED)
        domus_buffer_free(event->bytes);
    return result;
}

static int answer_ask_with_wake(domus_stack *stack, void *self, const void *nothing)
{
    return domus_reply(stack, &wake_type, NULL);
}

static const domus_behaviour helping = {
    .name = "helper", .on = (const domus_on[]){{&ask_type, answer_ask_with_wake, 0}, {0}}};

static int finish_own_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    return domus_channel_finish(stack, event->channel);
}

/* Bytes that the connections of a thread keep for 20 ms, even if the connection ends before. */
typedef struct hoard {
    domus_buffer *kept[64];
    uint32_t count;
} hoard;

static int hoard_read_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    size_t size = domus_buffer_size(event->bytes);
    hoard *kept = self;
    domus_buffer *copy;
    int result = domus_buffer_new(stack, size, &copy);

    if (result == 0) {
        memcpy(domus_buffer_data(copy), domus_buffer_data(event->bytes), size);
        result = domus_channel_write(stack, event->channel, copy);
    }
    if (result != 0 || kept->count == 64) {
        domus_buffer_free(event->bytes);
        return result;
    }
    kept->kept[kept->count++] = event->bytes;
    return 0;
}

static int free_hoarded_bytes(domus_stack *stack, void *self, const void *nothing)
{
    hoard *kept = self;
    while (kept->count != 0)
        domus_buffer_free(kept->kept[--kept->count]);
    return 0;
}

static int arm_timer_of_hoard(domus_stack *stack, void *self)
{
    return domus_every(stack, 20 * DOMT_SWEEP_MS, &wake_type, NULL, NULL);
}

static void free_hoard_on_stop(domus_stack *stack, void *self)
{
    (void)free_hoarded_bytes(stack, self, NULL);
}

static const domus_on hoard_rows[] = {{&wake_type, free_hoarded_bytes, 0}, {0}};

static const domus_on slow_rows[] = {{&wake_type, resume_channel_after_sleep, 0}, {0}};

static const domus_behaviour services[] = {
    {.name = "echo", .kind = DOMUS_CHANNELS, .on_read = {write_read_bytes_back, 0}},
    {.name = "copies", .kind = DOMUS_CHANNELS, .on_read = {write_copies_of_bytes_back, 0}},
    {.name = "slow", .kind = DOMUS_CHANNELS, .on_read = {write_back_and_pause, 0}, .on = slow_rows},
    {.name = "asks",
     .kind = DOMUS_CHANNELS,
     .on_read = {ask_before_writing_back, sizeof(domus_buffer *)}},
    {.name = "hoards",
     .kind = DOMUS_CHANNELS,
     .state_size = sizeof(hoard),
     .on_mount = arm_timer_of_hoard,
     .on_stop = free_hoard_on_stop,
     .on_read = {hoard_read_bytes, 0},
     .on = hoard_rows},
    {.name = "both",
     .kind = DOMUS_CHANNELS,
     .on_read = {write_read_bytes_back, 0},
     .on_end = {finish_own_channel, 0}}};
#define SERVICES (sizeof services / sizeof services[0])

/* --- a seed ----------------------------------------------------------------------------------- */

static int run_echo_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed};

    domi_random_init(&sweep.random, seed);
    domt_sweep_make_listening_kit(&sweep, "echo", "127.0.0.1:80");
    domus_system *system = domus_testkit_system(sweep.kit);
    const domus_behaviour *behaviour = &services[domt_sweep_draw_below(&sweep, SERVICES)];
    ck_assert_int_eq(domus_outside_spawn(system, &helping, NULL, &helper), 0);
    ck_assert_int_eq(domus_serve(system, "echo", behaviour, NULL, NULL), 0);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    domt_sweep_connect_and_run_clients(&sweep, "127.0.0.1:80", DEEDS);
    /* In a quarter of the seeds the system stops while clients still send. */
    if (domt_sweep_draw_below(&sweep, 4) != 0)
        domt_sweep_finish_and_check_clients(&sweep);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(every_byte_of_an_echo_is_accounted_for)
{
    domt_sweep_run_seeds(SEEDS, run_echo_sweep_of_seed);
}

/* --- a proxy before an echo ------------------------------------------------------------------- */

/* The example itself is included, with its main() under another name. */
int domt_proxy_main(int argc, char **argv);
#define main domt_proxy_main
#include "examples/proxy.c"
#undef main

#define PROXY_SEEDS DOMT_SCALE(1000, 60)
#define PROXY_DEEDS 40u /* most actions of all clients of the proxy in one seed */

/* --- the echo --------------------------------------------------------------------------------- */

static const domus_behaviour echo = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {write_read_bytes_back, 0}};

/* --- a seed ----------------------------------------------------------------------------------- */

static void make_kit_with_proxy(domt_sweep *sweep)
{
    domus_listener_config listeners[] = {
        {.name = "proxy", .address = "127.0.0.1:80", .backlog = 4},
        {.name = "echo", .address = "127.0.0.1:7", .backlog = 4},
    };
    domus_config config;

    domt_sweep_draw_config(sweep, &config);
    config.connect.timeout_ns = 300 * DOMT_SWEEP_SECOND;
    domt_sweep_make_kit(sweep, &config, listeners, 2);
    ck_assert_int_eq(domus_serve(domus_testkit_system(sweep->kit), "proxy", &proxy, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(domus_testkit_system(sweep->kit), "echo", &echo, NULL, NULL), 0);
}

static int run_proxy_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .is_relayed = true};

    domi_random_init(&sweep.random, seed);
    (void)snprintf(settings.upstream, sizeof settings.upstream, "127.0.0.1:7");
    make_kit_with_proxy(&sweep);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    domt_sweep_connect_and_run_clients(&sweep, "127.0.0.1:80", PROXY_DEEDS);
    if (domt_sweep_draw_below(&sweep, 4) != 0)
        domt_sweep_finish_and_check_clients(&sweep);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(every_byte_of_a_proxy_is_accounted_for)
{
    domt_sweep_run_seeds(PROXY_SEEDS, run_proxy_sweep_of_seed);
}

/* --- a pool ----------------------------------------------------------------------------------- */

#define POOL_SEEDS DOMT_SCALE(1000, 60)
#define ASKERS     3u

static domus_address pool;

static void make_kit_with_two_servers(domt_sweep *sweep)
{
    domus_listener_config listeners[] = {
        {.name = "one", .address = "127.0.0.1:1", .backlog = 4},
        {.name = "two", .address = "127.0.0.1:2", .backlog = 4},
    };
    domus_config config;

    domt_sweep_draw_config(sweep, &config);
    domt_sweep_make_kit(sweep, &config, listeners, 2);
    domus_system *system = domus_testkit_system(sweep->kit);
    ck_assert_int_eq(domus_serve(system, "one", &domt_line_server, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(system, "two", &domt_line_server, NULL, NULL), 0);
}

static void open_pool_of_random_kind(domt_sweep *sweep)
{
    const domus_channel_options channel = {.answer_timeout_ns = DOMT_SWEEP_SECOND};
    bool on_demand = domt_sweep_draw_below(sweep, 2) == 0;
    const domus_pool_options options = {
        .behaviour = &domt_line_channel,
        .connections_min = on_demand ? 0 : 1 + (uint32_t)domt_sweep_draw_below(sweep, 3),
        .connections_max = 4,
        .queue_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 20),
        .backoff_min_ns = 10 * DOMT_SWEEP_MS,
        .backoff_max_ns = 100 * DOMT_SWEEP_MS,
        .repeatable = domt_sweep_draw_below(sweep, 2) == 0 ? domt_packets : NULL,
        .per_thread = domt_sweep_draw_below(sweep, 2) == 0,
        .on_demand = on_demand,
        .channel = &channel,
    };

    DOMT_SWEEP_HOLD(sweep,
                    domus_outside_pool_open(domus_testkit_system(sweep->kit),
                                            "127.0.0.1:1,127.0.0.1:2", &options, &pool) == 0);
}

static void spawn_askers_of_pool(domt_sweep *sweep)
{
    domus_system *system = domus_testkit_system(sweep->kit);
    domus_address asker;

    for (uint32_t id = 0; id < ASKERS; id++) {
        const domt_asking asking = {
            .to = pool,
            .id = id,
            .at_a_time = 1 + (uint32_t)domt_sweep_draw_below(sweep, 6),
            .each = 1 + (uint32_t)domt_sweep_draw_below(sweep, 8),
            .timeout_ns = (1 + domt_sweep_draw_below(sweep, 3000)) * DOMT_SWEEP_MS,
        };
        DOMT_SWEEP_HOLD(sweep, domus_outside_spawn(system, &domt_asker, NULL, &asker) == 0);
        DOMT_SWEEP_HOLD(sweep,
                        domus_outside_notice(system, asker, &domt_asking_type, &asking) == 0);
    }
}

static int run_pool_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .is_relayed = true};

    domi_random_init(&sweep.random, seed);
    domt_asked = domt_answered = domt_failed = domt_wrong = 0;
    make_kit_with_two_servers(&sweep);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    open_pool_of_random_kind(&sweep);
    spawn_askers_of_pool(&sweep);
    /* In a quarter of the seeds the pool stops while asks are under way, which then fail. */
    uint64_t time_ns = domt_sweep_draw_below(&sweep, 4) == 0
                           ? domt_sweep_draw_below(&sweep, 50) * DOMT_SWEEP_MS
                           : 40 * DOMT_SWEEP_SECOND;
    DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, time_ns) == 0);
    /* In half of the seeds the pool may still reconnect while the system stops, which must leave no
     * socket. */
    if (domt_sweep_draw_below(&sweep, 2) == 0)
        DOMT_SWEEP_HOLD(&sweep, domus_outside_stop(domus_testkit_system(sweep.kit), pool) == 0);
    DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, 5 * DOMT_SWEEP_SECOND) == 0);
    DOMT_SWEEP_HOLD(&sweep, domt_asked != 0);
    DOMT_SWEEP_HOLD(&sweep, domt_asked == domt_answered + domt_failed);
    DOMT_SWEEP_HOLD(&sweep, domt_wrong == 0);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(each_ask_of_a_pool_has_one_outcome_and_its_own_answer)
{
    domt_sweep_run_seeds(POOL_SEEDS, run_pool_sweep_of_seed);
}

DOMT_SUITE(3000)
