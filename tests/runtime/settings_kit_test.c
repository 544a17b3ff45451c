/* Settings of listeners and of single channels in a test kit, where their time-outs are exact: what
 * the options say holds for these channels, and for no others. settings_test.c has the rest. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/listen.h>

#include <errno.h>
#include <string.h>

#define MS   UINT64_C(1000000)
#define IDLE (1000 * MS) /* the idle time of channels with options */

static domus_testkit *kit;
static domus_address brief_listener;
static uint32_t closed;

/* Echo; the byte 'o' asks for settings of its own. */
static int echo(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_options wrong = {.linger_ns = 1}, own = {.idle_timeout_ns = IDLE};
    const domus_channel_event *event = payload;

    if (*(const char *)domus_buffer_data(event->bytes) == 'o') {
        ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &wrong), -EINVAL);
        ck_assert_int_eq(domus_channel_set_options(stack, event->channel, &own), 0);
        const char *name = "";
        ck_assert_int_eq(domus_channel_listener(event->channel, NULL, &name), 0);
        ck_assert_str_eq(name, "front"); /* it stays that of the same listener */
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

static void begin(const domus_config *config)
{
    closed = 0;
    kit = domt_kit_new(config, 7);
}

static void begin_with_actor(void)
{
    domus_address actor;

    begin(NULL);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &listening, NULL, &actor),
                     0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void hold_echo(domus_peer *peer, const char *byte)
{
    domt_net_ok(kit, domus_peer_send(peer, byte, 1));
    domt_net_ok(kit, domus_peer_expect(peer, byte, 1, MS));
}

static domus_peer *connect_to(const char *to)
{
    domus_peer *peer = domt_net_client(kit, to);

    hold_echo(peer, "x");
    return peer;
}

/* None of the peers sees an end before the idle time is over, and each of them does then. */
static void hold_ends(domus_peer *const *peers, uint32_t count)
{
    domt_net_ok(kit, domus_testkit_advance(kit, IDLE - 10 * MS));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(!domus_peer_has_end(peers[i]));
    domt_net_ok(kit, domus_testkit_advance(kit, 20 * MS));
    for (uint32_t i = 0; i < count; i++)
        ck_assert(domus_peer_has_end(peers[i]));
    ck_assert_uint_eq(closed, count);
}

/* The listener is stopped while its channels live, so the channels are the last users. */
DOMT_TEST(options_of_a_listener_hold_for_its_channels_alone)
{
    domus_peer *brief[2];

    begin_with_actor();
    domus_peer *usual = connect_to("127.0.0.1:1");
    for (int i = 0; i < 2; i++)
        brief[i] = connect_to("127.0.0.1:2");
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), brief_listener), 0);
    hold_ends(brief, 2);
    hold_echo(usual, "x");
    domus_testkit_free(kit);
}

/* Two listeners of the configuration, whose connections are on all threads: one has options. */
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
    begin(&config);
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
    hold_ends(brief, 6);
    hold_echo(usual, "x");
    domus_testkit_free(kit);
}

DOMT_TEST(a_channel_gets_settings_of_its_own)
{
    begin_with_actor();
    domus_peer *usual = connect_to("127.0.0.1:1"), *own = connect_to("127.0.0.1:1");
    hold_echo(own, "o");
    hold_ends(&own, 1);
    hold_echo(usual, "x");
    domus_testkit_free(kit);
}

DOMT_SUITE(30)
