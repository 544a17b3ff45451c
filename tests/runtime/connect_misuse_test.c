/* Connects of users who do odd things in the first functions of the channel, and with odd options:
 * each connect has an answer, and nothing is left. */
#include "tests/runtime/misuse.h"

#include <domus/connect.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An order to an actor to connect. */
typedef struct order {
    const domus_behaviour *behaviour;
    uint64_t timeout_ns;
    uint32_t times;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};

static _Atomic uint32_t answers;
static _Atomic int last_answer;
static char where[64];

static int on_connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (const domus_answer *one = answer; one != NULL; one = one->next) {
        if (one->error != 0 || one->type == &domus_connected_type) {
            atomic_store(&last_answer, one->error);
            atomic_fetch_add(&answers, 1);
        }
    }
    (void)stack;
    return 0;
}

static int on_order(domus_stack *stack, void *self, const void *payload)
{
    const order *what = payload;
    const domus_connect_options options = {.behaviour = what->behaviour,
                                           .timeout_ns = what->timeout_ns};

    for (uint32_t i = 0; i < what->times; i++) {
        int result = domus_connect_add(stack, where, &options, i);
        if (result != 0) {
            atomic_store(&last_answer, result);
            atomic_fetch_add(&answers, 1);
        }
    }
    return domus_wait_all(stack, on_connected);
}

static const domus_on order_rows[] = {{&order_type, on_order, 0}, {NULL, NULL, 0}};

static const domus_behaviour asker = {.name = "asker", .kind = DOMUS_CHANNELS, .on = order_rows};
static const domus_behaviour served = {
    .name = "served",
    .kind = DOMUS_CHANNELS,
    .on_mount = domt_misuse_mount,
    .on_open = {domt_misuse_open, 0},
    .on_read = {domt_misuse_read, 0},
    .on_close = {domt_misuse_close, 0},
};

static domus_address client;
static uint32_t descriptors;

static void begin(void)
{
    domt_misuse_begin(1);
    (void)domt_spawn(domt_misuse_system, 0, &served, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    (void)domus_endpoint_text(&domt_misuse_seen.found, where, sizeof where);
    client = domt_spawn(domt_misuse_system, 0, &asker, NULL);
    descriptors = domt_entries("/proc/self/fd");
}

/* Let the actor connect so often; all connects have an answer, the last one `error`. */
static void connects(const order *what, int error)
{
    uint32_t before = atomic_load(&answers);

    domt_notice(domt_misuse_system, client, &order_type, what);
    DOMT_WAIT_FOR(10, atomic_load(&answers) == before + what->times);
    ck_assert_int_eq(atomic_load(&last_answer), error);
}

static void end(void)
{
    DOMT_WAIT_FOR(10, domt_entries("/proc/self/fd") == descriptors);
    domt_end(domt_misuse_system);
}

/* --- on_mount --------------------------------------------------------------------------------- */

static int reset_in_mount(domus_stack *stack, void *self)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_reset(stack, channel, -EIO) : 0;
}

static const domus_behaviour resets_in_mount = {
    .name = "resets in mount", .kind = DOMUS_CHANNELS, .on_mount = reset_in_mount};

DOMT_TEST(mount_that_resets_its_channel_fails_the_connect)
{
    begin();
    connects(&(order){.behaviour = &resets_in_mount, .times = 3}, -EIO);
    end();
}

static int close_in_mount(domus_stack *stack, void *self)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_close(stack, channel) : 0;
}

static const domus_behaviour closes_in_mount = {
    .name = "closes in mount", .kind = DOMUS_CHANNELS, .on_mount = close_in_mount};

DOMT_TEST(mount_that_closes_its_channel_leaves_nothing)
{
    begin();
    connects(&(order){.behaviour = &closes_in_mount, .times = 3}, 0);
    end();
}

static int stop_in_mount(domus_stack *stack, void *self)
{
    return domus_stop(stack, domus_self(stack));
}

static const domus_behaviour stops_in_mount = {
    .name = "stops in mount", .kind = DOMUS_CHANNELS, .on_mount = stop_in_mount};

DOMT_TEST(mount_that_stops_its_actor_leaves_nothing)
{
    begin();
    connects(&(order){.behaviour = &stops_in_mount, .times = 3}, 0);
    end();
}

static int fail_in_mount(domus_stack *stack, void *self)
{
    return -EDOM;
}

static const domus_behaviour fails_in_mount = {
    .name = "fails in mount", .kind = DOMUS_CHANNELS, .on_mount = fail_in_mount};

DOMT_TEST(mount_that_fails_fails_the_connect)
{
    begin();
    connects(&(order){.behaviour = &fails_in_mount, .times = 3}, -EDOM);
    end();
}

/* --- on_open ---------------------------------------------------------------------------------- */

static int reset_in_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_reset(stack, event->channel, -EIO);
}

static const domus_behaviour resets_in_open = {
    .name = "resets in open", .kind = DOMUS_CHANNELS, .on_open = {reset_in_open, 0}};

DOMT_TEST(open_that_resets_its_channel_fails_the_connect)
{
    begin();
    connects(&(order){.behaviour = &resets_in_open, .times = 3}, -EIO);
    end();
}

static int connect_in_open(domus_stack *stack, void *self, const void *payload)
{
    return domus_connect(stack, where, NULL, on_connected);
}

static const domus_behaviour connects_in_open = {
    .name = "connects in open", .kind = DOMUS_CHANNELS, .on_open = {connect_in_open, 0}};

/* Each connect makes the next one, until the limit of connections of the thread. */
DOMT_TEST(connects_that_connect_end_at_the_limit)
{
    domus_config config = domt_config(1);

    config.connect.connections_max = 20;
    domt_misuse_system = domt_start(&config);
    (void)domt_spawn(domt_misuse_system, 0, &served, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    (void)domus_endpoint_text(&domt_misuse_seen.found, where, sizeof where);
    client = domt_spawn(domt_misuse_system, 0, &asker, NULL);
    domt_notice(domt_misuse_system, client, &order_type,
                &(order){.behaviour = &connects_in_open, .times = 1});
    DOMT_WAIT_FOR(10, atomic_load(&answers) == 21);
    ck_assert_uint_eq(atomic_load(&domt_misuse_seen.opened), 20);
    domt_end(domt_misuse_system);
}

/* --- options ---------------------------------------------------------------------------------- */

static const domus_behaviour plain = {
    .name = "plain", .kind = DOMUS_CHANNELS, .on_read = {domt_misuse_read, 0}};

DOMT_TEST(time_out_of_all_bits_is_long)
{
    domt_misuse_begin(1);
    (void)domt_spawn(domt_misuse_system, 0, &served, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    (void)domus_endpoint_text(&domt_misuse_seen.found, where, sizeof where);
    client = domt_spawn(domt_misuse_system, 0, &asker, NULL);
    connects(&(order){.behaviour = &plain, .timeout_ns = UINT64_MAX, .times = 1}, 0);
    connects(&(order){.behaviour = &plain, .timeout_ns = UINT64_MAX - 1000, .times = 100}, 0);
    domt_end(domt_misuse_system);
}

/* Two sides of this system, and a peer that is reset while it is accepted. */
DOMT_TEST(many_connects_at_once_all_have_answers)
{
    begin();
    connects(&(order){.behaviour = &plain, .times = 500}, 0);
    ck_assert_int_eq(domus_outside_stop(domt_misuse_system, client), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == 500);
    end();
}

DOMT_TEST(behaviour_that_does_not_fit_is_refused)
{
    static const domus_behaviour state = {.name = "state"};
    static const domus_behaviour huge = {
        .name = "huge", .kind = DOMUS_CHANNELS, .state_size = UINT32_MAX};
    static const domus_behaviour long_frame = {
        .name = "frame", .kind = DOMUS_CHANNELS, .on_open = {reset_in_open, UINT32_MAX}};

    begin();
    connects(&(order){.behaviour = &state, .times = 1}, -EINVAL);
    connects(&(order){.behaviour = &huge, .times = 1}, -EINVAL);
    connects(&(order){.behaviour = &long_frame, .times = 1}, -EINVAL);
    end();
}

DOMT_TEST(texts_that_name_nothing_are_refused)
{
    static const char *const texts[] = {
        "",           ":",     "[",        "[]:1",  "1.2.3.4", "1.2.3.4:", "1.2.3.4:99999",
        "1.2.3.4:-1", "unix:", "[::1%]:1", "[::1]", "%s%n:1",
    };

    begin();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)snprintf(where, sizeof where, "%s", texts[i]);
        uint32_t before = atomic_load(&answers);
        domt_notice(domt_misuse_system, client, &order_type,
                    &(order){.behaviour = &plain, .times = 1});
        DOMT_WAIT_FOR(10, atomic_load(&answers) == before + 1);
        ck_assert_int_lt(atomic_load(&last_answer), 0);
    }
    end();
}

DOMT_SUITE(60)
