/* Settings of listeners and of single channels in a test kit, where time-outs are exact: options
 * hold for the channels for which they are given, and for no others; and they can change while a
 * channel lives. settings_test.c has further tests. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/connect.h>
#include <domus/listen.h>

#include <errno.h>
#include <string.h>

/* --- options of listeners and channels -------------------------------------------------------- */

#define MS   UINT64_C(1000000)
#define IDLE (1000 * MS) /* the idle time of channels with options */

static domus_testkit *kit;
static domus_address brief_listener;
static uint32_t closed;

/* Send the bytes back; the byte 'o' gives the channel settings of its own. */
static int echo(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_options wrong = {.linger_ns = 1}, own = {.idle_timeout_ns = IDLE};
    const domus_channel_event *event = payload;

    if (*(const char *)domus_buffer_data(event->bytes) == 'o') {
        ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &wrong), -EINVAL);
        ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &own), 0);
        const char *name = "";
        ck_assert_int_eq(domus_channel_listener(event->channel, NULL, &name), 0);
        ck_assert_str_eq(name, "front"); /* the channel stays that of the same listener */
    }
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int on_close(domus_stack *stack, void *self, const void *payload)
{
    closed++;
    return 0;
}

/* Listen at two endpoints, of which the second one has options. */
static int listen_twice(domus_stack *stack, void *self)
{
    const domus_channel_options options = {.idle_timeout_ns = IDLE};
    const domus_listen_options usual = {.name = "front"}, brief = {.channel = &options};
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:1", &at), 0);
    ck_assert_int_eq(domus_listen(stack, &at, &usual, NULL, NULL), 0);
    at.port = 2;
    return domus_listen(stack, &at, &brief, &brief_listener, NULL);
}

static const domus_behaviour echoing = {
    .name = "echoing", .kind = DOMUS_CHANNELS, .on_read = {echo, 0}, .on_close = {on_close, 0}};
static const domus_behaviour listening = {.name = "listening",
                                          .kind = DOMUS_CHANNELS,
                                          .on_mount = listen_twice,
                                          .on_read = {echo, 0},
                                          .on_close = {on_close, 0}};

static void begin_kit(const domus_config *config)
{
    closed = 0;
    kit = domt_kit_new(config, 7);
}

static void begin_with_actor(void)
{
    domus_address actor;
    begin_kit(NULL);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &listening, NULL, &actor),
                     0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void check_echo(domus_peer *peer, const char *byte)
{
    domt_net_ok(kit, domus_peer_send(peer, byte, 1));
    domt_net_ok(kit, domus_peer_expect(peer, byte, 1, MS));
}

static domus_peer *connect_to(const char *to)
{
    domus_peer *peer = domt_net_client(kit, to);
    check_echo(peer, "x");
    return peer;
}

/* Check that no peer sees an end before the idle time is over, and that each of them does then. */
static void check_ends(domus_peer *const *peers, uint32_t count)
{
    domt_net_ok(kit, domus_testkit_advance(kit, IDLE - 10 * MS));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(!domus_peer_has_end(peers[i]));
    domt_net_ok(kit, domus_testkit_advance(kit, 20 * MS));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(domus_peer_has_end(peers[i]));
    ck_assert_uint_eq(closed, count);
}

/* The listener is stopped while its channels live, so the channels are the last users of the
 * options. */
DOMT_TEST(options_of_a_listener_hold_for_its_channels_alone)
{
    domus_peer *brief[2];

    begin_with_actor();
    domus_peer *usual = connect_to("127.0.0.1:1");
    for (int i = 0; i < 2; i++)
        brief[i] = connect_to("127.0.0.1:2");
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), brief_listener), 0);
    check_ends(brief, 2);
    check_echo(usual, "x");
    domus_testkit_free(kit);
}

/* The configuration has two listeners, whose connections are on all threads: one has options. */
DOMT_TEST(options_in_the_configuration_hold_on_all_threads)
{
    const domus_listener_config listeners[] = {
        {.name = "usual", .address = "127.0.0.1:1", .backlog = 16},
        {.name = "brief",
         .address = "127.0.0.1:2",
         .backlog = 16,
         .channel = {.idle_timeout_ns = IDLE}},
    };
    domus_config config;
    domus_peer *brief[6];

    domus_config_init(&config);
    config.system.threads = 3;
    config.listeners = listeners;
    config.listener_count = 2;
    begin_kit(&config);
    domus_system *system = domus_testkit_system(kit);
    ck_assert_int_eq(domus_serve(system, "usual", &echoing, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(system, "brief", &echoing, NULL, NULL), 0);
    domus_peer *usual = connect_to("127.0.0.1:1");
    for (int i = 0; i < 6; i++)
        brief[i] = connect_to("127.0.0.1:2");
    for (uint32_t i = 0; i < 3; i++) {
        domus_profile profile;
        ck_assert_int_eq(domus_system_profile(system, i, &profile), 0);
        ck_assert_uint_ge(profile.channels_opened, 2);
    }
    check_ends(brief, 6);
    check_echo(usual, "x");
    domus_testkit_free(kit);
}

DOMT_TEST(a_channel_gets_settings_of_its_own)
{
    begin_with_actor();
    domus_peer *usual = connect_to("127.0.0.1:1"), *own = connect_to("127.0.0.1:1");
    check_echo(own, "o");
    check_ends(&own, 1);
    check_echo(usual, "x");
    domus_testkit_free(kit);
}

/* --- settings that change --------------------------------------------------------------------- */

#define SECOND (1000 * MS)

static const domus_type change_type = {.name = "change", .size = sizeof(domus_channel_options)};
static uint32_t opened, reads, closed_lines;
static domus_address channel; /* the channel that was opened last */

/* --- channels --------------------------------------------------------------------------------- */

static int on_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    opened++;
    channel = domus_channel_address(event->channel);
    return 0;
}

static int ignore_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

/* Handle each piece as a request without an answer: "x" takes 5 s, and another one no time. */
static int on_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    bool is_slow = *(const char *)domus_buffer_data(event->bytes) == 'x';

    (void)self;
    reads++;
    domus_buffer_free(event->bytes);
    return is_slow ? domus_sleep(stack, 5 * SECOND, ignore_answer)
                   : domus_channel_message_done(stack, event->channel);
}

static int count_close(domus_stack *stack, void *self, const void *payload)
{
    closed_lines++;
    return 0;
}

static int on_change(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_channel_set_options(stack, domus_channel_running(stack), payload), 0);
    return 0;
}

static const domus_on line_rows[] = {{&change_type, on_change, 0}, {0}};
static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .state_size = 8,
                                     .on = line_rows,
                                     .on_open = {on_open, 0},
                                     .on_read = {on_read, 0},
                                     .on_close = {count_close, 0}};

/* --- the actors that they belong to ----------------------------------------------------------- */

static domus_channel_options usual;

static int listen_here(domus_stack *stack, void *self)
{
    const domus_listen_options options = {.channel = &usual};
    domus_endpoint at;
    ck_assert_int_eq(domus_endpoint_parse("10.0.0.9:80", &at), 0);
    return domus_listen(stack, &at, &options, NULL, NULL);
}

static int connect_now(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line, .channel = &usual};
    return domus_connect(stack, "10.0.0.1:80", &options, ignore_answer);
}

static const domus_type connect_type = {.name = "connect"};
static const domus_on rows[] = {{&connect_type, connect_now, 0}, {0}};
static const domus_behaviour serving = {
    .name = "serving", .kind = DOMUS_CHANNELS, .on_mount = listen_here, .channel = &line};
static const domus_behaviour calling = {.name = "calling", .kind = DOMUS_CHANNELS, .on = rows};
static domus_address actor;

static void open_kit_with_actor(const domus_behaviour *behaviour)
{
    kit = domt_kit_new(NULL, 5);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 0, behaviour, NULL, &actor),
                     0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void change_settings(const domus_channel_options *options)
{
    ck_assert_int_eq(
        domus_outside_notice(domus_testkit_system(kit), channel, &change_type, options), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void pass_time(uint64_t ns)
{
    domt_net_ok(kit, domus_testkit_advance(kit, ns));
}

static void send_request(domus_peer *peer, const char *byte)
{
    ck_assert_int_eq(domus_peer_send(peer, byte, 1), 0);
    pass_time(MS);
}

/* A server may wait for the first byte of its client. */
DOMT_TEST(silent_server_is_waited_for_when_the_settings_change)
{
    const domus_channel_options other = {.linger_ns = 2 * SECOND};
    const domus_channel_options asked = {.first_byte_timeout_ns = SECOND};
    domus_peer_listener *listener;

    usual = (domus_channel_options){.linger_ns = SECOND};
    open_kit_with_actor(&calling);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &listener));
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), actor, &connect_type, NULL),
                     0);
    pass_time(10 * MS);
    ck_assert_uint_eq(opened, 1);
    change_settings(&other);
    pass_time(30 * SECOND);
    ck_assert_uint_eq(closed_lines, 0);
    change_settings(&asked);
    pass_time(2 * SECOND);
    ck_assert_uint_eq(closed_lines, 1);
    domus_testkit_free(kit);
}

DOMT_TEST(more_requests_are_read_as_soon_as_they_may_be)
{
    const domus_channel_options two = {.requests_max = 2}, one = {.requests_max = 1};

    usual = one;
    open_kit_with_actor(&serving);
    domus_peer *peer = domt_net_client(kit, "10.0.0.9:80");
    send_request(peer, "x");
    send_request(peer, "x");
    ck_assert_uint_eq(reads, 1);
    change_settings(&two);
    ck_assert_uint_eq(reads, 2);
    change_settings(&one);
    send_request(peer, "x");
    pass_time(4 * SECOND);
    ck_assert_uint_eq(reads, 2);
    pass_time(2 * SECOND);
    ck_assert_uint_eq(reads, 3);
    domus_testkit_free(kit);
}

DOMT_TEST(channel_that_is_too_old_no_more_stays)
{
    const domus_channel_options longer = {.age_max_ns = 20 * SECOND,
                                          .age_jitter_percent = DOMUS_NONE};

    usual = (domus_channel_options){.age_max_ns = SECOND, .age_jitter_percent = DOMUS_NONE};
    open_kit_with_actor(&serving);
    domus_peer *peer = domt_net_client(kit, "10.0.0.9:80");
    send_request(peer, "x");
    pass_time(2 * SECOND); /* the connection is too old now, and waits for the end of the request */
    change_settings(&longer);
    pass_time(10 * SECOND);
    send_request(peer, "q");
    ck_assert_uint_eq(reads, 2);
    ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
    pass_time(10 * SECOND);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
