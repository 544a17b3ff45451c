/* io/pipelines/returned.c: asks that a connection will not answer, wherever they wait when it ends,
 * and how they fail when no other connection can have them. */
#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <domus/pool.h>
#include <domus/supervise.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

static domus_testkit *kit;
static domus_probe *probe;
static domus_address pool, channels[8];
static uint32_t opened;

static int note_channel(domus_stack *stack, void *self, const void *payload)
{
    channels[opened++] = domus_self(stack);
    return 0;
}

static const domus_pipeline narrow = {
    .stages = domt_line_stages, .encodes = domt_packets, .inflight_max = 1, .queue_max = 1};
static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .pipeline = &domt_line_pipeline,
                                     .on_open = {note_channel, 0}};
static const domus_behaviour narrow_line = {
    .name = "line", .kind = DOMUS_CHANNELS, .pipeline = &narrow, .on_open = {note_channel, 0}};

static domus_peer *take_peer(domus_peer_listener *listener)
{
    domus_peer *peer;

    domt_net_ok(kit, domus_peer_accept(listener, 20 * DOMT_NET_SECOND, &peer));
    domt_net_ok(kit, domus_testkit_run(kit));
    return peer;
}

static domus_peer_listener *begin(void)
{
    domus_peer_listener *listener;

    opened = 0;
    kit = domt_net_kit("10.0.0.3:80", 7);
    probe = domt_new_probe(kit);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.9:1", 0, &listener));
    return listener;
}

static domus_peer_listener *begin_with_pool(const domus_pool_options *options)
{
    domus_peer_listener *listener = begin();

    ck_assert_int_eq(
        domus_outside_pool_open(domus_testkit_system(kit), "10.0.0.9:1", options, &pool), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
    return listener;
}

static void ask(const char *text)
{
    domt_ask_line(probe, pool, text);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void expect_sent(domus_peer *peer, const char *text)
{
    domt_net_ok(kit, domus_peer_expect(peer, text, strlen(text), DOMT_NET_SECOND));
}

static void expect_error(int error)
{
    domt_net_ok(kit, domus_probe_expect_error(probe, error, 5 * DOMT_NET_SECOND));
}

/* --- asks in the mailbox of a channel that is stopped ----------------------------------------- */

static const domus_type go_type = {.name = "go"}, stop_type = {.name = "stop"};
static domus_address stopper;
static int outcomes[4];
static uint32_t ended;
static bool asks_pool;

static int note_outcome(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcomes[ended++] = answer->error;
    return 0;
}

/* Ask; before the channel runs, the other actor stops it. */
static int go(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;

    ck_assert_int_eq(domus_slice_copy("a", 1, &packet.bytes), 0);
    int result =
        domus_ask(stack, asks_pool ? pool : channels[0], &domus_packet_type, &packet, note_outcome);
    if (asks_pool)
        ck_assert_int_eq(domus_notice(stack, stopper, &stop_type, NULL), 0);
    else
        ck_assert_int_eq(domus_stop(stack, channels[0]), 0);
    return result;
}

static int stop(domus_stack *stack, void *self, const void *payload)
{
    return domus_stop(stack, channels[0]);
}

static int open_pool(domus_stack *stack, void *self)
{
    static const domus_pool_options options = {.behaviour = &line, .connections_min = 2};

    return domus_pool_open(stack, "10.0.0.9:1", &options, &pool);
}

static const domus_behaviour neighbour = {
    .name = "neighbour",
    .kind = DOMUS_CHANNELS,
    .on_mount = open_pool,
    .on = (const domus_on[]){{&go_type, go, 0}, {NULL, NULL, 0}},
};
static const domus_behaviour stopping = {
    .name = "stopping",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&stop_type, stop, 0}, {NULL, NULL, 0}},
};

DOMT_TEST(an_ask_in_the_mailbox_of_a_stopped_channel_goes_to_the_next_connection)
{
    domus_peer_listener *listener = begin();
    domus_system *system = domus_testkit_system(kit);
    domus_address asker;

    asks_pool = true;
    ended = 0;
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &neighbour, NULL, &asker), 0);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &stopping, NULL, &stopper), 0);
    domus_peer *one = take_peer(listener), *two = take_peer(listener);
    ck_assert_uint_eq(opened, 2);
    ck_assert_int_eq(domus_outside_notice(system, asker, &go_type, NULL), 0);
    expect_sent(two, "a\n");
    domt_net_ok(kit, domus_peer_send(two, "1\n", 2));
    domt_net_ok(kit, domus_testkit_run(kit));
    ck_assert_uint_eq(ended, 1);
    ck_assert_int_eq(outcomes[0], 0);
    domt_net_ok(kit, domus_peer_expect_end(one, DOMT_NET_SECOND));
    domus_testkit_free(kit);
}

static const domus_behaviour asking = {
    .name = "asking", .on = (const domus_on[]){{&go_type, go, 0}, {NULL, NULL, 0}}};

DOMT_TEST(without_a_pool_it_was_not_sent)
{
    for (uint32_t thread = 0; thread < 3; thread++) {
        domt_line_client client;
        domus_address asker;

        domt_line_client_begin(&client, &domt_line_pipeline, NULL);
        domus_system *system = domus_testkit_system(client.kit);
        channels[0] = client.channel;
        asks_pool = false;
        ended = 0;
        ck_assert_int_eq(domus_outside_spawn_on(system, thread, &asking, NULL, &asker), 0);
        ck_assert_int_eq(domus_outside_notice(system, asker, &go_type, NULL), 0);
        domt_net_ok(client.kit, domus_testkit_run(client.kit));
        ck_assert_uint_eq(ended, 1);
        ck_assert_int_eq(outcomes[0], -ENOTCONN);
        domus_testkit_free(client.kit);
    }
}

/* --- asks that were sent before --------------------------------------------------------------- */

static const domus_pool_options repeating = {
    .behaviour = &narrow_line, .repeatable = domt_packets, .tries_max = 5};

DOMT_TEST(an_ask_that_was_sent_before_may_be_done_whatever_ends_it)
{
    for (int i = 0; i < 2; i++) {
        domus_peer_listener *listener = begin_with_pool(&repeating);
        domus_peer *peer = take_peer(listener);
        ask("a");
        ask("b");
        expect_sent(peer, "a\n");
        domus_peer_reset(peer);
        domt_net_ok(kit, domus_testkit_run(kit));
        if (i == 0) { /* it waits for a connection, as does the other */
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), pool), 0);
            expect_error(-EPIPE);
            expect_error(-ESTALE);
        } else { /* it waits behind the other, or is sent again */
            peer = take_peer(listener);
            domt_net_ok(kit, domus_testkit_run(kit));
            size_t size;
            const char *got = domus_peer_got(peer, &size);
            ck_assert_uint_eq(size, 2);
            bool is_first = got[0] == 'a';
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), pool), 0);
            expect_error(-EPIPE);
            expect_error(is_first ? -ENOTCONN : -EPIPE);
        }
        domus_testkit_free(kit);
    }
}

DOMT_TEST(an_ask_that_was_sent_before_finds_no_room)
{
    static const domus_pool_options two_of_them = {.behaviour = &narrow_line,
                                                   .connections_min = 2,
                                                   .repeatable = domt_packets,
                                                   .tries_max = 5};

    domus_peer_listener *listener = begin_with_pool(&two_of_them);
    domus_peer *one = take_peer(listener), *two = take_peer(listener);
    for (int i = 0; i < 4; i++)
        ask("a");
    expect_sent(one, "a\n");
    expect_sent(two, "a\n");
    domus_peer_reset(one);
    expect_error(-EPIPE);
    expect_error(-ENOBUFS); /* it was not sent */
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
