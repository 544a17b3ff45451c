/* Users who use channels in odd ways: verbs on a closed channel, stops and restarts while a channel
 * parks, and connects with odd first functions or options. The process never ends, each
 * conversation ends, each connect has an answer, and nothing is left. */
#include "tests/runtime/misuse.h"

#include <domus/connect.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- verbs at the wrong time ------------------------------------------------------------------ */

static domus_channel *kept;

static int open_and_do_all_twice(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer *bytes;

    (void)domt_misuse_open(stack, self, payload);
    kept = event->channel;
    ck_assert_int_eq(domus_channel_pause(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_pause(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), 0);
    ck_assert_int_eq(domus_buffer_new(stack, 3, &bytes), 0);
    memcpy(domus_buffer_data(bytes), "abc", 3);
    ck_assert_int_eq(domus_channel_write(stack, event->channel, bytes), 0);
    ck_assert_int_eq(domus_channel_finish(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_finish(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_buffer_new(stack, 3, &bytes), 0);
    ck_assert_int_eq(domus_channel_write(stack, event->channel, bytes), -EPIPE);
    ck_assert_int_eq(domus_channel_close(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_close(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_channel_pause(stack, event->channel), -EPIPE);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), -EPIPE);
    return 0;
}

static int close_and_do_all(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer *bytes;
    domus_endpoint peer;

    ck_assert_int_eq(domus_channel_pause(stack, event->channel), -EPIPE);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), -EPIPE);
    ck_assert_int_eq(domus_channel_finish(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_channel_close(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_channel_reset(stack, event->channel, -EIO), 0);
    ck_assert_int_eq(domus_buffer_new(stack, 3, &bytes), 0);
    ck_assert_int_eq(domus_channel_write(stack, event->channel, bytes), -EPIPE);
    ck_assert_int_eq(domus_channel_peer(event->channel, &peer), -ENOTCONN);
    ck_assert_int_eq(domus_channel_local(event->channel, &peer), -ENOTCONN);
    ck_assert_int_eq(domus_stop(stack, domus_channel_address(event->channel)), 0);
    ck_assert_ptr_eq(domus_channel_running(stack), event->channel);
    domt_misuse_close(stack, self, payload);
    return 0;
}

static const domus_behaviour does_all = {.name = "does all",
                                         .kind = DOMUS_CHANNELS,
                                         .on_mount = domt_misuse_mount,
                                         .on_open = {open_and_do_all_twice, 0},
                                         .on_read = {domt_misuse_read, 0},
                                         .on_close = {close_and_do_all, 0}};

DOMT_TEST(verbs_on_a_closed_channel_do_nothing)
{
    domt_misuse_begin(1);
    (void)domt_spawn(domt_misuse_system, 0, &does_all, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 10; i++) {
        char bytes[8];
        int fd = domt_misuse_connect(&domt_misuse_seen.found);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(domt_misuse_receive(fd, bytes, sizeof bytes), 3);
        (void)close(fd);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
        ck_assert_int_eq(atomic_load(&domt_misuse_seen.last_error), 0);
    }
    domt_end(domt_misuse_system);
}

/* --- a stop while a channel parks ------------------------------------------------------------- */

static int read_slept(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(
        answer->error == -ECANCELED ? &domt_misuse_seen.cancelled : &domt_misuse_seen.slept, 1);
    return 0;
}

static int read_and_sleep(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 300 * DOMT_MS, read_slept);
}

static const domus_behaviour parking = {
    .name = "parking",
    .kind = DOMUS_CHANNELS,
    .on = domt_misuse_rows,
    .on_mount = domt_misuse_mount,
    .on_open = {domt_misuse_open, 0},
    .on_read = {read_and_sleep, 0},
    .on_close = {domt_misuse_close, 0},
};
static const domus_behaviour parking_on_channel = {
    .name = "parking on",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .conversations_go_on = true,
    .on_open = {domt_misuse_open, 0},
    .on_read = {read_and_sleep, 0},
    .on_close = {domt_misuse_close, 0},
};
static const domus_behaviour parking_on = {.name = "owner of parking on",
                                           .kind = DOMUS_CHANNELS,
                                           .on = domt_misuse_rows,
                                           .on_mount = domt_misuse_mount,
                                           .channel = &parking_on_channel};

static void stop_while_parked(const domus_behaviour *behaviour)
{
    domt_misuse_begin(1);
    (void)domt_spawn(domt_misuse_system, 0, behaviour, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 3; i++) {
        int fd = domt_misuse_connect(&domt_misuse_seen.found);
        char byte = 'x';
        ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
        DOMT_WAIT_FOR(10, domt_profile_all(domt_misuse_system).received_bytes == i);
        ck_assert_int_eq(domus_outside_stop(domt_misuse_system, domt_misuse_seen.last_channel), 0);
        ck_assert_int_eq(domt_misuse_receive(fd, &byte, 1), 0);
        (void)close(fd);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
        DOMT_WAIT_FOR(
            10,
            atomic_load(&domt_misuse_seen.cancelled) + atomic_load(&domt_misuse_seen.slept) == i);
        DOMT_WAIT_FOR(10, domus_outside_notice(domt_misuse_system, domt_misuse_seen.last_channel,
                                               &domt_misuse_fail_type, NULL) == -ESTALE);
    }
    domt_end(domt_misuse_system);
}

DOMT_TEST(stop_of_a_parked_channel_closes_it)
{
    stop_while_parked(&parking);
}

DOMT_TEST(stop_of_a_parked_channel_whose_conversations_go_on_closes_it)
{
    stop_while_parked(&parking_on);
}

static const domus_supervision restarts = {.intensity = 1000, .otherwise = DOMUS_RESTART};
static domus_endpoint fixed;
static domus_address restarting;

/* The state that the channel shares must not be made anew while a conversation of the channel goes
 * on. */
static _Atomic uint32_t mounts;
static int mount_parking(domus_stack *stack, void *self)
{
    int now = domus_listen(stack, &fixed, NULL, NULL, &fixed);
    atomic_fetch_add(&mounts, 1); /* counted last: the test then connects to `fixed` */
    atomic_fetch_add(&domt_misuse_seen.listening, 1);
    return now;
}
static const domus_behaviour restarting_owner = {.name = "restarting owner",
                                                 .kind = DOMUS_CHANNELS,
                                                 .state_size = 64,
                                                 .on = domt_misuse_rows,
                                                 .on_mount = mount_parking,
                                                 .channel = &parking_on_channel};
static int mount_parent_of_parking(domus_stack *stack, void *self)
{
    return domus_spawn(stack, &restarting_owner, NULL, &restarting);
}
static const domus_behaviour parent_of_parking = {.name = "parent of parking",
                                                  .kind = DOMUS_CHANNELS,
                                                  .on_mount = mount_parent_of_parking,
                                                  .supervision = &restarts};

DOMT_TEST(restart_of_an_owner_ends_conversations_that_go_on)
{
    domt_misuse_begin(1);
    fixed = (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}};
    (void)domt_spawn(domt_misuse_system, 0, &parent_of_parking, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 6; i++) {
        int fd = domt_misuse_connect(&fixed);
        char byte = 'x';
        ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
        DOMT_WAIT_FOR(10, domt_profile_all(domt_misuse_system).received_bytes == i);
        if (i % 2 == 0) { /* the connection has already ended */
            (void)close(fd);
            DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
            fd = -1;
        }
        domt_notice(domt_misuse_system, restarting, &domt_misuse_fail_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&mounts) == i + 1);
        ck_assert_uint_eq(
            atomic_load(&domt_misuse_seen.cancelled) + atomic_load(&domt_misuse_seen.slept), i);
        if (fd >= 0)
            (void)close(fd);
    }
    domt_end(domt_misuse_system);
}

/* --- connects --------------------------------------------------------------------------------- */

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

static const domus_on order_rows[] = {{&order_type, on_order, 0}, {0}};

static const domus_behaviour asker = {.name = "asker", .kind = DOMUS_CHANNELS, .on = order_rows};
static const domus_behaviour served = {.name = "served",
                                       .kind = DOMUS_CHANNELS,
                                       .on_mount = domt_misuse_mount,
                                       .on_open = {domt_misuse_open, 0},
                                       .on_read = {domt_misuse_read, 0},
                                       .on_close = {domt_misuse_close, 0}};

static domus_address client;
static uint32_t descriptors;

/* Make an actor listen in the system, and another one connect. */
static void start_service(void)
{
    (void)domt_spawn(domt_misuse_system, 0, &served, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    (void)domus_endpoint_text(&domt_misuse_seen.found, where, sizeof where);
    client = domt_spawn(domt_misuse_system, 0, &asker, NULL);
    descriptors = domt_entries("/proc/self/fd");
}

static void start_test(void)
{
    domt_misuse_begin(1);
    start_service();
}

/* Let the actor connect so many times. Each connect must be answered, and the last answer is
 * `error`. */
static void expect_connects(const order *what, int error)
{
    uint32_t before = atomic_load(&answers);

    domt_notice(domt_misuse_system, client, &order_type, what);
    DOMT_WAIT_FOR(10, atomic_load(&answers) == before + what->times);
    ck_assert_msg(atomic_load(&last_answer) == error, "%s: %d", what->behaviour->name,
                  atomic_load(&last_answer));
}

static void end_test(void)
{
    DOMT_WAIT_FOR(10, domt_entries("/proc/self/fd") == descriptors);
    domt_end(domt_misuse_system);
}

/* --- the first functions ---------------------------------------------------------------------- */

static int reset_in_mount(domus_stack *stack, void *self)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_reset(stack, channel, -EIO) : 0;
}

static int close_in_mount(domus_stack *stack, void *self)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_close(stack, channel) : 0;
}

static int stop_in_mount(domus_stack *stack, void *self)
{
    return domus_stop(stack, domus_self(stack));
}

static int reset_in_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_reset(stack, event->channel, -EIO);
}

/* A stop and a close in the first function leave nothing, and the connect has succeeded. */
DOMT_TEST(first_function_that_ends_its_channel_answers_the_connect)
{
    static const struct {
        domus_behaviour behaviour;
        int error;
    } cases[] = {
        {{.name = "resets", .kind = DOMUS_CHANNELS, .on_mount = reset_in_mount}, -EIO},
        {{.name = "closes", .kind = DOMUS_CHANNELS, .on_mount = close_in_mount}, 0},
        {{.name = "stops", .kind = DOMUS_CHANNELS, .on_mount = stop_in_mount}, 0},
        {{.name = "resets in open", .kind = DOMUS_CHANNELS, .on_open = {reset_in_open, 0}}, -EIO},
    };

    start_test();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_connects(&(order){.behaviour = &cases[i].behaviour, .times = 3}, cases[i].error);
        DOMT_WAIT_FOR(10, domt_entries("/proc/self/fd") == descriptors);
    }
    end_test();
}

static int connect_in_open(domus_stack *stack, void *self, const void *payload)
{
    return domus_connect(stack, where, NULL, on_connected);
}

static const domus_behaviour connects_in_open = {
    .name = "connects in open", .kind = DOMUS_CHANNELS, .on_open = {connect_in_open, 0}};

/* Each connect begins the next one, until the thread's limit of connections. */
DOMT_TEST(connects_that_connect_end_at_the_limit)
{
    domus_config config = domt_config(1);

    config.connect.connections_max = 20;
    domt_misuse_system = domt_start(&config);
    start_service();
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
    start_test();
    expect_connects(&(order){.behaviour = &plain, .timeout_ns = UINT64_MAX, .times = 1}, 0);
    expect_connects(&(order){.behaviour = &plain, .timeout_ns = UINT64_MAX - 1000, .times = 100},
                    0);
    domt_end(domt_misuse_system);
}

/* Both sides of the connections are in this system; a third peer is reset while it is accepted. */
DOMT_TEST(many_connects_at_once_all_have_answers)
{
    start_test();
    expect_connects(&(order){.behaviour = &plain, .times = 500}, 0);
    ck_assert_int_eq(domus_outside_stop(domt_misuse_system, client), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == 500);
    end_test();
}

DOMT_TEST(behaviour_that_does_not_fit_is_refused)
{
    static const domus_behaviour state = {.name = "state"};
    static const domus_behaviour huge = {
        .name = "huge", .kind = DOMUS_CHANNELS, .state_size = UINT32_MAX};
    static const domus_behaviour long_frame = {
        .name = "frame", .kind = DOMUS_CHANNELS, .on_open = {reset_in_open, UINT32_MAX}};

    start_test();
    expect_connects(&(order){.behaviour = &state, .times = 1}, -EINVAL);
    expect_connects(&(order){.behaviour = &huge, .times = 1}, -EINVAL);
    expect_connects(&(order){.behaviour = &long_frame, .times = 1}, -EINVAL);
    end_test();
}

DOMT_TEST(texts_that_name_nothing_are_refused)
{
    static const char *const texts[] = {
        "",           ":",     "[",        "[]:1",  "1.2.3.4", "1.2.3.4:", "1.2.3.4:99999",
        "1.2.3.4:-1", "unix:", "[::1%]:1", "[::1]", "%s%n:1",
    };

    start_test();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)snprintf(where, sizeof where, "%s", texts[i]);
        uint32_t before = atomic_load(&answers);
        domt_notice(domt_misuse_system, client, &order_type,
                    &(order){.behaviour = &plain, .times = 1});
        DOMT_WAIT_FOR(10, atomic_load(&answers) == before + 1);
        ck_assert_int_lt(atomic_load(&last_answer), 0);
    }
    end_test();
}

DOMT_SUITE(60)
