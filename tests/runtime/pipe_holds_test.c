/* domus_pipeline.holds_asks: asks of other actors wait until a client has come to terms with its
 * peer, and none of them leaves in clear before that. */
#include "tests/runtime/clients.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

#include <errno.h>
#include <string.h>

static const domus_line_options as_client = {.role = DOMUS_ROLE_CLIENT};
static const domus_pipeline before = {
    .stages = domt_line_stages, .encodes = domt_packets, .queue_max = 2, .holds_asks = true};
static const domus_pipeline behind = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL},
                                             {&domus_line_stage, &as_client},
                                             {NULL, NULL}},
    .encodes = domt_packets};
static const domus_pipeline without_asks = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &as_client}, {NULL, NULL}}};
static const domus_pipeline *next;
static const domus_type strange_type = {.name = "strange"};

static int may_start(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error
                              : domus_channel_set_pipeline(stack, domus_channel_running(stack),
                                                           next, DOMUS_PIPELINE_CLEAN);
}

static int start(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;

    ck_assert_int_eq(domus_slice_copy("start", 5, &packet.bytes), 0);
    return domus_ask(stack, domus_self(stack), &domus_packet_type, &packet, may_start);
}

static const domus_behaviour line = {
    .name = "line", .kind = DOMUS_CHANNELS, .pipeline = &before, .on_open = {start, 0}};

static domus_testkit *kit;
static domus_probe *probe, *other;
static domus_peer_listener *listener;
static domus_address pool;

static void begin(void)
{
    static const domus_pool_options options = {.behaviour = &line};

    next = &behind;
    kit = domt_net_kit("10.0.0.3:80", 7);
    probe = domt_new_probe(kit);
    other = domt_new_probe(kit);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.9:1", 0, &listener));
    ck_assert_int_eq(
        domus_outside_pool_open(domus_testkit_system(kit), "10.0.0.9:1", &options, &pool), 0);
}

static domus_peer *take_peer(void)
{
    domus_peer *peer;

    domt_net_ok(kit, domus_peer_accept(listener, 20 * DOMT_NET_SECOND, &peer));
    domt_net_ok(kit, domus_peer_expect(peer, "start\n", 6, DOMT_NET_SECOND));
    return peer;
}

static void ask_all(void)
{
    domt_ask_line(probe, pool, "a}");
    ck_assert_int_eq(domus_probe_ask(other, pool, &strange_type, NULL), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

DOMT_TEST(asks_wait_until_the_pipeline_has_changed)
{
    begin();
    domus_peer *peer = take_peer();
    ask_all();
    domt_ask_line(other, pool, "too many");
    domt_net_ok(kit, domus_probe_expect_error(other, -ENOBUFS, DOMT_NET_SECOND));
    ck_assert_int_eq(domus_peer_expect_nothing(peer, DOMT_NET_SECOND), 0);
    domt_net_ok(kit, domus_peer_send(peer, "go\n", 3));
    domt_net_ok(kit, domus_peer_expect(peer, "a}]\n", 4, DOMT_NET_SECOND));
    domt_net_ok(kit, domus_probe_expect_error(other, -EOPNOTSUPP, DOMT_NET_SECOND));
    domt_net_ok(kit, domus_peer_send(peer, "1\n", 2));
    domt_expect_line(kit, probe, "1");
    domt_ask_line(probe, pool, "b");
    domt_net_ok(kit, domus_peer_expect(peer, "b\n", 2, DOMT_NET_SECOND));
    domus_testkit_free(kit);
}

DOMT_TEST(asks_that_wait_for_a_change_were_not_sent)
{
    begin();
    domus_peer *peer = take_peer();
    ask_all();
    domus_peer_reset(peer);
    peer = take_peer();
    domt_net_ok(kit, domus_peer_send(peer, "go\n", 3));
    domt_net_ok(kit, domus_peer_expect(peer, "a}]\n", 4, DOMT_NET_SECOND));
    domt_net_ok(kit, domus_probe_expect_error(other, -EOPNOTSUPP, DOMT_NET_SECOND));
    domus_testkit_free(kit);
}

DOMT_TEST(asks_that_the_next_pipeline_does_not_encode_fail)
{
    begin();
    next = &without_asks;
    domus_peer *peer = take_peer();
    ask_all();
    domt_net_ok(kit, domus_peer_send(peer, "go\n", 3));
    domt_net_ok(kit, domus_probe_expect_error(probe, -EOPNOTSUPP, DOMT_NET_SECOND));
    domt_net_ok(kit, domus_probe_expect_error(other, -EOPNOTSUPP, DOMT_NET_SECOND));
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
