/* Settings of listeners and of single channels in a test kit, where time-outs are exact: options
 * hold for the channels for which they are given, and for no others, and they can change while a
 * channel lives. (settings_test.c tests the calls themselves.) */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/connect.h>
#include <domus/listen.h>

#include <errno.h>
#include <string.h>

/* --- options of listeners and channels -------------------------------------------------------- */

#define MS   UINT64_C(1000000)
#define IDLE (1000 * MS) /* idle time of the channels that have options */

static domus_testkit *kit;
static domus_address brief_listener;
static uint32_t closed;

/* Send the received bytes back; the byte 'o' also gives the channel settings of its own. */
static int echo_and_set_options_for_o(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_options wrong = {.linger_ns = 1}, own = {.idle_timeout_ns = IDLE};
    const domus_channel_event *event = payload;

    if (*(const char *)domus_buffer_data(event->bytes) == 'o') {
        ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &wrong), -EINVAL);
        ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &own), 0);
        const char *name = "";
        ck_assert_int_eq(domus_channel_listener(event->channel, NULL, &name), 0);
        ck_assert_str_eq(name, "front"); /* the channel still belongs to the same listener */
    }
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int count_closed_channel(domus_stack *stack, void *self, const void *payload)
{
    closed++;
    return 0;
}

/* On mount, listen at two endpoints; the second listener has options. */
static int listen_twice_in_mount(domus_stack *stack, void *self)
{
    const domus_channel_options options = {.idle_timeout_ns = IDLE};
    const domus_listen_options usual = {.name = "front"}, brief = {.channel = &options};
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:1", &at), 0);
    ck_assert_int_eq(domus_listen(stack, &at, &usual, NULL, NULL), 0);
    at.port = 2;
    return domus_listen(stack, &at, &brief, &brief_listener, NULL);
}

static const domus_behaviour echoing = {.name = "echoing",
                                        .kind = DOMUS_CHANNELS,
                                        .on_read = {echo_and_set_options_for_o, 0},
                                        .on_close = {count_closed_channel, 0}};
static const domus_behaviour listening = {.name = "listening",
                                          .kind = DOMUS_CHANNELS,
                                          .on_mount = listen_twice_in_mount,
                                          .on_read = {echo_and_set_options_for_o, 0},
                                          .on_close = {count_closed_channel, 0}};

static void make_kit_of_config(const domus_config *config)
{
    closed = 0;
    kit = domt_kit_new(config, 7);
}

static void begin_kit_with_listening_actor(void)
{
    domus_address actor;
    make_kit_of_config(NULL);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &listening, NULL, &actor),
                     0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

static void check_byte_is_echoed(domus_peer *peer, const char *byte)
{
    domt_net_check_ok(kit, domus_peer_send(peer, byte, 1));
    domt_net_check_ok(kit, domus_peer_expect(peer, byte, 1, MS));
}

static domus_peer *connect_peer_to(const char *to)
{
    domus_peer *peer = domt_net_connect_peer(kit, to);
    check_byte_is_echoed(peer, "x");
    return peer;
}

/* Check that no peer gets the end of its connection before the idle time is over, and that each of
 * them gets it then. */
static void check_ends_come_after_idle_time(domus_peer *const *peers, uint32_t count)
{
    domt_net_check_ok(kit, domus_testkit_advance(kit, IDLE - 10 * MS));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(!domus_peer_has_end(peers[i]));
    domt_net_check_ok(kit, domus_testkit_advance(kit, 20 * MS));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(domus_peer_has_end(peers[i]));
    ck_assert_uint_eq(closed, count);
}

/* The listener is stopped while its channels live, so that only the channels still use its
 * options. */
DOMT_TEST(options_of_a_listener_hold_for_its_channels_alone)
{
    domus_peer *brief[2];

    begin_kit_with_listening_actor();
    domus_peer *usual = connect_peer_to("127.0.0.1:1");
    for (int i = 0; i < 2; i++)
        brief[i] = connect_peer_to("127.0.0.1:2");
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), brief_listener), 0);
    check_ends_come_after_idle_time(brief, 2);
    check_byte_is_echoed(usual, "x");
    domus_testkit_free(kit);
}

/* The configuration has two listeners, one of them with options; their connections are spread over
 * all threads. */
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
    make_kit_of_config(&config);
    domus_system *system = domus_testkit_system(kit);
    ck_assert_int_eq(domus_serve(system, "usual", &echoing, NULL, NULL), 0);
    ck_assert_int_eq(domus_serve(system, "brief", &echoing, NULL, NULL), 0);
    domus_peer *usual = connect_peer_to("127.0.0.1:1");
    for (int i = 0; i < 6; i++)
        brief[i] = connect_peer_to("127.0.0.1:2");
    for (uint32_t i = 0; i < 3; i++) {
        domus_profile profile;
        ck_assert_int_eq(domus_system_profile(system, i, &profile), 0);
        ck_assert_uint_ge(profile.channels_opened, 2);
    }
    check_ends_come_after_idle_time(brief, 6);
    check_byte_is_echoed(usual, "x");
    domus_testkit_free(kit);
}

DOMT_TEST(a_channel_gets_settings_of_its_own)
{
    begin_kit_with_listening_actor();
    domus_peer *usual = connect_peer_to("127.0.0.1:1"), *own = connect_peer_to("127.0.0.1:1");
    check_byte_is_echoed(own, "o");
    check_ends_come_after_idle_time(&own, 1);
    check_byte_is_echoed(usual, "x");
    domus_testkit_free(kit);
}

/* --- settings that change --------------------------------------------------------------------- */

#define SECOND (1000 * MS)

static const domus_type change_type = {.name = "change", .size = sizeof(domus_channel_options)};
static uint32_t opened, reads, closed_lines;
static domus_address channel; /* the service's channel that was opened last */

/* --- channels --------------------------------------------------------------------------------- */

static int on_open_record_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    opened++;
    channel = domus_channel_address(event->channel);
    return 0;
}

static int ignore_result_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

/* Handle each piece of bytes as a request that is not answered: "x" takes 5 s, and any other piece
 * no time. */
static int read_request_slow_or_quick(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    bool is_slow = *(const char *)domus_buffer_data(event->bytes) == 'x';

    (void)self;
    reads++;
    domus_buffer_free(event->bytes);
    return is_slow ? domus_sleep(stack, 5 * SECOND, ignore_result_of_connect)
                   : domus_channel_message_done(stack, event->channel);
}

static int count_closed_line(domus_stack *stack, void *self, const void *payload)
{
    closed_lines++;
    return 0;
}

static int set_options_of_own_channel(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_channel_set_options(stack, domus_channel_running(stack), payload), 0);
    return 0;
}

static const domus_on line_rows[] = {{&change_type, set_options_of_own_channel, 0}, {0}};
static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .state_size = 8,
                                     .on = line_rows,
                                     .on_open = {on_open_record_channel, 0},
                                     .on_read = {read_request_slow_or_quick, 0},
                                     .on_close = {count_closed_line, 0}};

/* --- the actors that they belong to ----------------------------------------------------------- */

static domus_channel_options usual;

static int listen_in_mount(domus_stack *stack, void *self)
{
    const domus_listen_options options = {.channel = &usual};
    domus_endpoint at;
    ck_assert_int_eq(domus_endpoint_parse("10.0.0.9:80", &at), 0);
    return domus_listen(stack, &at, &options, NULL, NULL);
}

static int connect_in_mount(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line, .channel = &usual};
    return domus_connect(stack, "10.0.0.1:80", &options, ignore_result_of_connect);
}

static const domus_type connect_type = {.name = "connect"};
static const domus_on rows[] = {{&connect_type, connect_in_mount, 0}, {0}};
static const domus_behaviour serving = {
    .name = "serving", .kind = DOMUS_CHANNELS, .on_mount = listen_in_mount, .channel = &line};
static const domus_behaviour calling = {.name = "calling", .kind = DOMUS_CHANNELS, .on = rows};
static domus_address actor;

static void open_kit_with_actor(const domus_behaviour *behaviour)
{
    kit = domt_kit_new(NULL, 5);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 0, behaviour, NULL, &actor),
                     0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

static void let_channel_change_its_options(const domus_channel_options *options)
{
    ck_assert_int_eq(
        domus_outside_notice(domus_testkit_system(kit), channel, &change_type, options), 0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

static void advance_kit(uint64_t ns)
{
    domt_net_check_ok(kit, domus_testkit_advance(kit, ns));
}

static void send_request_of_one_byte(domus_peer *peer, const char *byte)
{
    ck_assert_int_eq(domus_peer_send(peer, byte, 1), 0);
    advance_kit(MS);
}

/* A peer that is a server may wait for the first byte of its client. */
DOMT_TEST(silent_server_is_waited_for_when_the_settings_change)
{
    const domus_channel_options other = {.linger_ns = 2 * SECOND};
    const domus_channel_options asked = {.first_byte_timeout_ns = SECOND};
    domus_peer_listener *listener;

    usual = (domus_channel_options){.linger_ns = SECOND};
    open_kit_with_actor(&calling);
    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &listener));
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), actor, &connect_type, NULL),
                     0);
    advance_kit(10 * MS);
    ck_assert_uint_eq(opened, 1);
    let_channel_change_its_options(&other);
    advance_kit(30 * SECOND);
    ck_assert_uint_eq(closed_lines, 0);
    let_channel_change_its_options(&asked);
    advance_kit(2 * SECOND);
    ck_assert_uint_eq(closed_lines, 1);
    domus_testkit_free(kit);
}

DOMT_TEST(raised_requests_max_lets_waiting_requests_be_read)
{
    const domus_channel_options two = {.requests_max = 2}, one = {.requests_max = 1};

    usual = one;
    open_kit_with_actor(&serving);
    domus_peer *peer = domt_net_connect_peer(kit, "10.0.0.9:80");
    send_request_of_one_byte(peer, "x");
    send_request_of_one_byte(peer, "x");
    ck_assert_uint_eq(reads, 1);
    let_channel_change_its_options(&two);
    ck_assert_uint_eq(reads, 2);
    let_channel_change_its_options(&one);
    send_request_of_one_byte(peer, "x");
    advance_kit(4 * SECOND);
    ck_assert_uint_eq(reads, 2);
    advance_kit(2 * SECOND);
    ck_assert_uint_eq(reads, 3);
    domus_testkit_free(kit);
}

DOMT_TEST(channel_stays_when_a_longer_age_is_allowed_meanwhile)
{
    const domus_channel_options longer = {.age_max_ns = 20 * SECOND,
                                          .age_jitter_percent = DOMUS_NONE};

    usual = (domus_channel_options){.age_max_ns = SECOND, .age_jitter_percent = DOMUS_NONE};
    open_kit_with_actor(&serving);
    domus_peer *peer = domt_net_connect_peer(kit, "10.0.0.9:80");
    send_request_of_one_byte(peer, "x");
    /* after this time the connection is too old, and stays only until the request ends */
    advance_kit(2 * SECOND);
    let_channel_change_its_options(&longer);
    advance_kit(10 * SECOND);
    send_request_of_one_byte(peer, "q");
    ck_assert_uint_eq(reads, 2);
    ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
    advance_kit(10 * SECOND);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
