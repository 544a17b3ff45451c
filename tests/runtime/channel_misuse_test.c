/* Channels that actors use in odd ways: verbs on a closed channel, stops and restarts while a
 * channel parks, and connects with odd first functions or options. The process must never end, each
 * conversation ends, each connect is answered, and nothing is left. */
#include "tests/runtime/misuse.h"

#include <domus/connect.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- verbs at the wrong time ------------------------------------------------------------------ */

static domus_channel *kept;

static int on_open_call_each_function_twice(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer *bytes;

    (void)domt_misuse_on_open_count(stack, self, payload);
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

static int on_close_call_each_function(domus_stack *stack, void *self, const void *payload)
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
    domt_misuse_on_close_count(stack, self, payload);
    return 0;
}

static const domus_behaviour does_all = {.name = "does all",
                                         .kind = DOMUS_CHANNELS,
                                         .on_mount = domt_misuse_on_mount_listen,
                                         .on_open = {on_open_call_each_function_twice, 0},
                                         .on_read = {domt_misuse_on_read_echo, 0},
                                         .on_close = {on_close_call_each_function, 0}};

DOMT_TEST(verbs_on_a_closed_channel_do_nothing)
{
    domt_misuse_start_system(1);
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
    domt_end_system(domt_misuse_system);
}

/* --- a stop while a channel parks ------------------------------------------------------------- */

static int count_end_of_sleep_after_read(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(
        answer->error == -ECANCELED ? &domt_misuse_seen.cancelled : &domt_misuse_seen.slept, 1);
    return 0;
}

static int on_read_sleep_300_ms(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 300 * DOMT_MS, count_end_of_sleep_after_read);
}

static const domus_behaviour parking = {
    .name = "parking",
    .kind = DOMUS_CHANNELS,
    .on = domt_misuse_rows,
    .on_mount = domt_misuse_on_mount_listen,
    .on_open = {domt_misuse_on_open_count, 0},
    .on_read = {on_read_sleep_300_ms, 0},
    .on_close = {domt_misuse_on_close_count, 0},
};
static const domus_behaviour parking_on_channel = {
    .name = "parking on",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .conversations_go_on = true,
    .on_open = {domt_misuse_on_open_count, 0},
    .on_read = {on_read_sleep_300_ms, 0},
    .on_close = {domt_misuse_on_close_count, 0},
};
static const domus_behaviour parking_on = {.name = "owner of parking on",
                                           .kind = DOMUS_CHANNELS,
                                           .on = domt_misuse_rows,
                                           .on_mount = domt_misuse_on_mount_listen,
                                           .channel = &parking_on_channel};

static void stop_owner_while_channels_are_parked(const domus_behaviour *behaviour)
{
    domt_misuse_start_system(1);
    (void)domt_spawn(domt_misuse_system, 0, behaviour, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 3; i++) {
        int fd = domt_misuse_connect(&domt_misuse_seen.found);
        char byte = 'x';
        ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(domt_misuse_system).received_bytes == i);
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
    domt_end_system(domt_misuse_system);
}

DOMT_TEST(stop_of_a_parked_channel_closes_it)
{
    stop_owner_while_channels_are_parked(&parking);
}

DOMT_TEST(stop_of_a_parked_channel_whose_conversations_go_on_closes_it)
{
    stop_owner_while_channels_are_parked(&parking_on);
}

static const domus_supervision restarts = {.intensity = 1000, .otherwise = DOMUS_RESTART};
static domus_endpoint fixed;
static domus_address restarting;

/* The state that a channel shares with its owner must not be made anew while a conversation of the
 * channel goes on. */
static _Atomic uint32_t mounts;
static int listen_and_then_wait_in_mount(domus_stack *stack, void *self)
{
    int now = domus_listen(stack, &fixed, NULL, NULL, &fixed);
    /* counted last, because the test connects to `fixed` when it sees the count */
    atomic_fetch_add(&mounts, 1);
    atomic_fetch_add(&domt_misuse_seen.listening, 1);
    return now;
}
static const domus_behaviour restarting_owner = {.name = "restarting owner",
                                                 .kind = DOMUS_CHANNELS,
                                                 .state_size = 64,
                                                 .on = domt_misuse_rows,
                                                 .on_mount = listen_and_then_wait_in_mount,
                                                 .channel = &parking_on_channel};
static int spawn_restarting_owner_in_mount(domus_stack *stack, void *self)
{
    return domus_spawn(stack, &restarting_owner, NULL, &restarting);
}
static const domus_behaviour parent_of_parking = {.name = "parent of parking",
                                                  .kind = DOMUS_CHANNELS,
                                                  .on_mount = spawn_restarting_owner_in_mount,
                                                  .supervision = &restarts};

DOMT_TEST(restart_of_an_owner_ends_conversations_that_go_on)
{
    domt_misuse_start_system(1);
    fixed = (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}};
    (void)domt_spawn(domt_misuse_system, 0, &parent_of_parking, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 6; i++) {
        int fd = domt_misuse_connect(&fixed);
        char byte = 'x';
        ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(domt_misuse_system).received_bytes == i);
        if (i % 2 == 0) { /* in every second round the connection has ended before the restart */
            (void)close(fd);
            DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
            fd = -1;
        }
        domt_send_notice(domt_misuse_system, restarting, &domt_misuse_fail_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&mounts) == i + 1);
        ck_assert_uint_eq(
            atomic_load(&domt_misuse_seen.cancelled) + atomic_load(&domt_misuse_seen.slept), i);
        if (fd >= 0)
            (void)close(fd);
    }
    domt_end_system(domt_misuse_system);
}

/* --- connects --------------------------------------------------------------------------------- */

/* The order by which a test lets an actor connect. */
typedef struct order {
    const domus_behaviour *behaviour;
    uint64_t timeout_ns;
    uint32_t times;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};

static _Atomic uint32_t answers;
static _Atomic int last_answer;
static char where[64];

static int count_answered_connects(domus_stack *stack, void *self, const domus_answer *answer)
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

static int connect_as_ordered(domus_stack *stack, void *self, const void *payload)
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
    return domus_wait_all(stack, count_answered_connects);
}

static const domus_on order_rows[] = {{&order_type, connect_as_ordered, 0}, {0}};

static const domus_behaviour asker = {.name = "asker", .kind = DOMUS_CHANNELS, .on = order_rows};
static const domus_behaviour served = {.name = "served",
                                       .kind = DOMUS_CHANNELS,
                                       .on_mount = domt_misuse_on_mount_listen,
                                       .on_open = {domt_misuse_on_open_count, 0},
                                       .on_read = {domt_misuse_on_read_echo, 0},
                                       .on_close = {domt_misuse_on_close_count, 0}};

static domus_address client;
static uint32_t descriptors;

/* Spawn an actor that listens, and another actor that connects to it on order. */
static void start_server_and_client(void)
{
    (void)domt_spawn(domt_misuse_system, 0, &served, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    (void)domus_endpoint_text(&domt_misuse_seen.found, where, sizeof where);
    client = domt_spawn(domt_misuse_system, 0, &asker, NULL);
    descriptors = domt_count_directory_entries("/proc/self/fd");
}

static void start_system_server_and_client(void)
{
    domt_misuse_start_system(1);
    start_server_and_client();
}

/* Let the actor connect `times` times. Each connect must be answered, and the last answer must have
 * this error. */
static void expect_connects_end_with_error(const order *what, int error)
{
    uint32_t before = atomic_load(&answers);

    domt_send_notice(domt_misuse_system, client, &order_type, what);
    DOMT_WAIT_FOR(10, atomic_load(&answers) == before + what->times);
    ck_assert_msg(atomic_load(&last_answer) == error, "%s: %d", what->behaviour->name,
                  atomic_load(&last_answer));
}

static void end_system_server_and_client(void)
{
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == descriptors);
    domt_end_system(domt_misuse_system);
}

/* --- the first functions ---------------------------------------------------------------------- */

static int reset_own_channel_in_mount(domus_stack *stack, void *self)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_reset(stack, channel, -EIO) : 0;
}

static int close_own_channel_in_mount(domus_stack *stack, void *self)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_close(stack, channel) : 0;
}

static int stop_own_actor_in_mount(domus_stack *stack, void *self)
{
    return domus_stop(stack, domus_self(stack));
}

static int reset_own_channel_in_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_reset(stack, event->channel, -EIO);
}

/* A stop or a close in the first function of a channel leaves nothing behind, and the connect has
 * still succeeded. */
DOMT_TEST(connect_succeeds_though_first_function_ends_the_channel)
{
    static const struct {
        domus_behaviour behaviour;
        int error;
    } cases[] = {
        {{.name = "resets", .kind = DOMUS_CHANNELS, .on_mount = reset_own_channel_in_mount}, -EIO},
        {{.name = "closes", .kind = DOMUS_CHANNELS, .on_mount = close_own_channel_in_mount}, 0},
        {{.name = "stops", .kind = DOMUS_CHANNELS, .on_mount = stop_own_actor_in_mount}, 0},
        {{.name = "resets in open",
          .kind = DOMUS_CHANNELS,
          .on_open = {reset_own_channel_in_open, 0}},
         -EIO},
    };

    start_system_server_and_client();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_connects_end_with_error(&(order){.behaviour = &cases[i].behaviour, .times = 3},
                                       cases[i].error);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == descriptors);
    }
    end_system_server_and_client();
}

static int connect_out_in_open(domus_stack *stack, void *self, const void *payload)
{
    return domus_connect(stack, where, NULL, count_answered_connects);
}

static const domus_behaviour connects_in_open = {
    .name = "connects in open", .kind = DOMUS_CHANNELS, .on_open = {connect_out_in_open, 0}};

/* Each connect begins the next one, until the thread has as many connections as its limit
 * allows. */
DOMT_TEST(connects_begun_in_on_open_end_at_the_limit)
{
    domus_config config = domt_config_of_threads(1);

    config.connect.connections_max = 20;
    domt_misuse_system = domt_start_system(&config);
    start_server_and_client();
    domt_send_notice(domt_misuse_system, client, &order_type,
                     &(order){.behaviour = &connects_in_open, .times = 1});
    DOMT_WAIT_FOR(10, atomic_load(&answers) == 21);
    ck_assert_uint_eq(atomic_load(&domt_misuse_seen.opened), 20);
    domt_end_system(domt_misuse_system);
}

/* --- options ---------------------------------------------------------------------------------- */

static const domus_behaviour plain = {
    .name = "plain", .kind = DOMUS_CHANNELS, .on_read = {domt_misuse_on_read_echo, 0}};

DOMT_TEST(greatest_connect_time_out_does_not_overflow)
{
    start_system_server_and_client();
    expect_connects_end_with_error(
        &(order){.behaviour = &plain, .timeout_ns = UINT64_MAX, .times = 1}, 0);
    expect_connects_end_with_error(
        &(order){.behaviour = &plain, .timeout_ns = UINT64_MAX - 1000, .times = 100}, 0);
    domt_end_system(domt_misuse_system);
}

/* Both ends of the connections are in this system; a foreign peer is reset while it is accepted. */
DOMT_TEST(many_connects_at_once_all_have_answers)
{
    start_system_server_and_client();
    expect_connects_end_with_error(&(order){.behaviour = &plain, .times = 500}, 0);
    ck_assert_int_eq(domus_outside_stop(domt_misuse_system, client), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == 500);
    end_system_server_and_client();
}

DOMT_TEST(connect_with_a_behaviour_that_does_not_fit_is_refused)
{
    static const domus_behaviour state = {.name = "state"};
    static const domus_behaviour huge = {
        .name = "huge", .kind = DOMUS_CHANNELS, .state_size = UINT32_MAX};
    static const domus_behaviour long_frame = {.name = "frame",
                                               .kind = DOMUS_CHANNELS,
                                               .on_open = {reset_own_channel_in_open, UINT32_MAX}};

    start_system_server_and_client();
    expect_connects_end_with_error(&(order){.behaviour = &state, .times = 1}, -EINVAL);
    expect_connects_end_with_error(&(order){.behaviour = &huge, .times = 1}, -EINVAL);
    expect_connects_end_with_error(&(order){.behaviour = &long_frame, .times = 1}, -EINVAL);
    end_system_server_and_client();
}

DOMT_TEST(connect_to_text_without_endpoint_is_refused)
{
    static const char *const texts[] = {
        "",           ":",     "[",        "[]:1",  "1.2.3.4", "1.2.3.4:", "1.2.3.4:99999",
        "1.2.3.4:-1", "unix:", "[::1%]:1", "[::1]", "%s%n:1",
    };

    start_system_server_and_client();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)snprintf(where, sizeof where, "%s", texts[i]);
        uint32_t before = atomic_load(&answers);
        domt_send_notice(domt_misuse_system, client, &order_type,
                         &(order){.behaviour = &plain, .times = 1});
        DOMT_WAIT_FOR(10, atomic_load(&answers) == before + 1);
        ck_assert_int_lt(atomic_load(&last_answer), 0);
    }
    end_system_server_and_client();
}

DOMT_SUITE(60)
