/* Connected channels of datagrams are connections of this side: they drain behind those that use
 * them, and have the limit of connects. */
#include "tests/runtime/network.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

typedef struct service {
    const char *at; /* NULL: none */
    const char *to; /* NULL: it is not connected */
    const domus_behaviour *behaviour;
} service;

static domus_testkit *kit;
static int open_result, close_error;
static uint32_t closed;
static domus_address upstream; /* the channel that was connected last */

static const domus_type write_type = {.name = "write"};

static int on_write(domus_stack *stack, void *self, const void *nothing)
{
    return domus_channel_append(stack, domus_channel_running(stack), "late", 4);
}

static int on_close(domus_stack *stack, void *self, const void *payload)
{
    close_error = ((const domus_channel_event *)payload)->error;
    closed++;
    return 0;
}

static const domus_behaviour connected = {
    .name = "connected",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&write_type, on_write, 0}, {0}},
    .on_close = {on_close, 0},
};

static int tell_upstream(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_notice(stack, upstream, &write_type, NULL);
}

static int serve_late(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 20 * MS, tell_upstream);
}

/* It needs the connected channel 20 ms after each datagram. */
static const domus_behaviour late = {
    .name = "late", .kind = DOMUS_CHANNELS, .on_read = {serve_late, 0}};

static int open_it(domus_stack *stack, void *self)
{
    const service *is = self;
    domus_datagram_options options = {.behaviour = is->behaviour, .ends_on_error = true};
    domus_endpoint at;

    if (is->at != NULL)
        ck_assert_int_eq(domus_endpoint_parse(is->at, &at), 0);
    if (is->to != NULL)
        ck_assert_int_eq(domus_endpoint_parse(is->to, &options.connected), 0);
    open_result = domus_datagram_open(stack, is->at != NULL ? &at : NULL, &options,
                                      is->to != NULL ? &upstream : NULL, NULL);
    return 0;
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_CHANNELS, .state_size = sizeof(service), .on_mount = open_it};

static void begin(uint32_t connections_max)
{
    domus_config config;

    domus_config_init(&config);
    config.connect.connections_max = connections_max;
    closed = 0;
    kit = domt_kit_new(&config, 7);
}

/* Let an actor open a channel. Returns what the open returned. */
static int add(const char *at, const char *to)
{
    const service is = {at, to, to != NULL ? &connected : &late};
    domus_address address;

    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &opener, &is, &address),
                     0);
    domt_net_ok(kit, domus_testkit_run(kit));
    return open_result;
}

static void end(void)
{
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors,
                      domus_system_threads(domus_testkit_system(kit)));
}

/* A drain begins while a service works on a datagram, for which it needs the channel. */
DOMT_TEST(connected_channel_drains_behind_those_that_use_it)
{
    domus_datagram_peer *server, *client;
    domus_endpoint to;
    size_t size;

    begin(10);
    ck_assert_int_eq(add(NULL, "10.0.0.1:53"), 0);
    ck_assert_int_eq(add("127.0.0.1:54", NULL), 0);
    domt_net_ok(kit, domus_datagram_peer_open(kit, "10.0.0.1:53", NULL, &server));
    domt_net_ok(kit, domus_datagram_peer_open(kit, "10.0.0.2:0", NULL, &client));
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:54", &to), 0);
    domt_net_ok(kit, domus_datagram_peer_send(client, &to, "begin", 5));
    domt_net_ok(kit, domus_datagram_peer_expect_nothing(server, MS));
    end();
    ck_assert_ptr_nonnull(domus_datagram_peer_got(server, &size, NULL));
    ck_assert_uint_eq(size, 4);
    ck_assert_uint_eq(closed, 1);
    ck_assert_int_eq(close_error, 0);
    domus_testkit_free(kit);
}

DOMT_TEST(connected_channels_have_the_limit_of_connects)
{
    begin(2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(add(NULL, "10.0.0.1:53"), i < 2 ? 0 : -ENOBUFS);
    ck_assert_int_eq(add("127.0.0.1:53", NULL), 0); /* it is no connection of this side */
    end();
    domus_testkit_free(kit);
}

/* A channel that ends, and one that could not be made, leave their places. */
DOMT_TEST(connected_channels_leave_their_places)
{
    begin(1);
    ck_assert_int_eq(add("unix:@a", "unix:@nobody"), -ECONNREFUSED);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(add(NULL, "10.0.0.1:53"), 0);
        ck_assert_int_eq(
            domus_outside_notice(domus_testkit_system(kit), upstream, &write_type, NULL), 0);
        domt_net_ok(kit, domus_testkit_run(kit)); /* it is refused, which ends the channel */
        ck_assert_uint_eq(closed, i + 1);
    }
    end();
    domus_testkit_free(kit);
}

DOMT_SUITE(30)
