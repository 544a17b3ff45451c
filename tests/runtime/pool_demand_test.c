/* Pools that connect on demand, in a test kit: when they connect, where asks wait, and how asks end
 * when there is no connection. And io/pipelines/returned.c: asks that a connection will not answer
 * any more, wherever they wait when it ends, and how they fail when no other connection can take
 * them. */
#include "tests/runtime/pools.h"

#include <domus/supervise.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

static const domus_pool_options on_demand = {
    .behaviour = &domt_pool_narrow, .connections_max = 2, .queue_max = 3, .on_demand = true};

/* Begin with a pool that has two connections, one for the ask "a" and one for the ask "b". */
static domus_peer_listener *begin_with_two_connections(domus_peer **ret_one, domus_peer **ret_two)
{
    domus_peer_listener *listener = domt_pool_begin_with_service(&on_demand);
    domt_pool_ask_line("a");
    *ret_one = domt_pool_accept_connection(listener);
    domt_pool_ask_line("b");
    *ret_two = domt_pool_accept_connection(listener);
    return listener;
}

DOMT_TEST(a_connection_is_made_when_it_is_needed)
{
    domus_peer_listener *listener = domt_pool_begin_with_service(&on_demand);

    domt_pool_pass_time(20 * DOMT_NET_SECOND);
    ck_assert_uint_eq(domt_pool_ask_status().connects, 0);
    /* when the peer closes, the pool connects anew without a back-off */
    for (uint64_t i = 0; i < 3; i++) {
        domt_pool_ask_line("a");
        domus_peer *peer = domt_pool_accept_connection(listener);
        domt_pool_expect_service_got(peer, "a\n");
        domt_pool_service_send(peer, "1\n");
        domus_peer_finish(peer);
        domt_pool_expect_answer("1");
        domt_pool_pass_time(MS);
        ck_assert_uint_eq(domt_pool_ask_status().connected, 0);
        ck_assert_uint_eq(domt_pool_ask_status().connects, i + 1);
        ck_assert_uint_eq(domt_pool_ask_status().failures, 0);
    }
    domt_pool_end_kit();
}

DOMT_TEST(an_ask_waits_for_any_connection_with_room)
{
    domus_peer_listener *listener = domt_pool_begin_with_service(&on_demand);
    static const char *const texts[] = {"a", "b", "c", "d", "e"};

    for (uint32_t i = 0; i < 5; i++) /* all these asks reach the pool within one run */
        domt_ask_line(domt_pool_probe, domt_pool, texts[i]);
    ck_assert_uint_eq(domt_pool_ask_status().connecting, 2);
    domt_pool_expect_error(-ENOBUFS); /* d */
    domt_pool_expect_error(-ENOBUFS);
    domus_peer *one = domt_pool_accept_connection(listener),
               *two = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(one, "a\n");
    domt_pool_expect_service_got(two, "b\n");
    ck_assert_uint_eq(domt_pool_ask_status().waiting, 1);
    domt_pool_service_send(two, "2\n"); /* the service at the first connection is slow */
    domt_pool_expect_answer("2");
    domt_pool_expect_service_got(two, "c\n");
    ck_assert_uint_eq(domt_pool_ask_status().waiting, 0);
    domt_pool_ask_line("f");
    ck_assert_uint_eq(domt_pool_ask_status().waiting, 1);
    ck_assert_uint_eq(domt_pool_ask_status().under_way, 2);
    domt_pool_answer_and_expect(one, "1");
    domt_pool_expect_service_got(one, "f\n");
    domt_pool_service_send(two, "3\n");
    domt_pool_service_send(one, "6\n");
    domt_pool_expect_answer("3");
    domt_pool_expect_answer("6");
    domt_pool_end_kit();
}

DOMT_TEST(an_ask_that_waits_goes_to_a_new_connection_when_one_ends)
{
    domus_peer *one, *two;
    domus_peer_listener *listener = begin_with_two_connections(&one, &two);

    domt_pool_expect_service_got(one, "a\n");
    domt_pool_expect_service_got(two, "b\n");
    domt_pool_answer_and_expect(one, "1");
    domt_pool_ask_line("c");
    domt_pool_expect_service_got(one, "c\n");
    domt_pool_ask_line("d");
    ck_assert_uint_eq(domt_pool_ask_status().waiting, 1);
    domus_peer_reset(one);
    domt_pool_expect_error(-EPIPE); /* the ask "c" fails, because the service may have done it */
    one = domt_pool_accept_connection(listener);
    domt_pool_serve_ask(one, "d", "4");
    domt_pool_answer_and_expect(two, "2");
    domt_pool_end_kit();
}

DOMT_TEST(asks_fail_with_the_error_of_the_connect)
{
    static const domus_pool_options options = {.behaviour = &domt_pool_narrow,
                                               .on_demand = true,
                                               .backoff_min_ns = 100 * MS,
                                               .backoff_max_ns = 100 * MS};

    domt_pool_begin_kit();
    domt_pool_open("10.0.0.9:1", &options); /* no service listens at this address */
    domt_ask_line(domt_pool_probe, domt_pool, "a");
    domt_ask_line(domt_pool_probe, domt_pool, "b");
    domt_pool_expect_error(-ECONNREFUSED);
    domt_pool_expect_error(-ECONNREFUSED);
    domt_pool_ask_line("c");
    /* the ask fails at once, because no connect begins within the back-off */
    domt_pool_expect_error(-ECONNREFUSED);
    ck_assert_uint_eq(domt_pool_ask_status().failures, 1);
    domt_pool_pass_time(100 * MS);
    domus_peer_listener *listener = domt_pool_listen_as_service("10.0.0.9:1");
    domt_pool_ask_line("d");
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_serve_ask(peer, "d", "4");
    domt_pool_end_kit();
}

DOMT_TEST(another_address_is_tried_before_an_ask_fails)
{
    domt_pool_begin_kit();
    domus_peer_listener *listener = domt_pool_listen_as_service("10.0.0.8:1");
    domt_pool_open("10.0.0.9:1, 10.0.0.8:1", &on_demand);
    domt_pool_ask_line("a");
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_serve_ask(peer, "a", "1");
    domt_pool_end_kit();
}

DOMT_TEST(connection_that_ends_unused_counts_as_a_failure)
{
    static const domus_net_faults slow = {.latency_min_ns = 5 * MS, .latency_max_ns = 5 * MS};
    domus_peer_listener *listener = domt_pool_begin_with_service(&on_demand);

    domt_net_check_ok(domt_pool_kit, domus_testkit_net_set(domt_pool_kit, &slow));
    domt_ask_line_within(domt_pool_probe, domt_pool, "a", MS);
    domt_pool_expect_error(-ETIMEDOUT); /* the ask expires before there is a connection */
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_nothing(peer, 10 * MS));
    domus_peer_reset(peer);
    domt_pool_pass_time(10 * MS);
    ck_assert_uint_eq(domt_pool_ask_status().left_out, 1);
    domt_pool_ask_line("b");
    domt_pool_expect_error(-ENOTCONN);
    domt_pool_end_kit();
}

DOMT_TEST(an_ask_that_waits_is_dropped_at_its_deadline)
{
    domus_peer *one, *two;

    (void)begin_with_two_connections(&one, &two);
    domt_ask_line_within(domt_pool_probe, domt_pool, "c", 100 * MS);
    domt_pool_expect_error(-ETIMEDOUT);
    domt_pool_ask_line("d");
    domt_pool_serve_ask(one, "a", "1");
    domt_pool_expect_service_got(one, "d\n");
    domt_pool_expect_service_got(two, "b\n");
    domt_pool_service_send(one, "4\n");
    domt_pool_service_send(two, "2\n");
    domt_pool_expect_answer("4");
    domt_pool_expect_answer("2");
    domt_pool_end_kit();
}

DOMT_TEST(a_connection_is_reset_at_the_deadline_of_its_ask)
{
    domus_peer_listener *listener = domt_pool_begin_with_service(&on_demand);

    domt_ask_line_within(domt_pool_probe, domt_pool, "a", 100 * MS);
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(peer, "a\n");
    domt_pool_expect_error(-ETIMEDOUT);
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_reset(peer, 10 * MS));
    ck_assert_uint_eq(domt_pool_ask_status().failures, 0);
    domt_pool_ask_line("b"); /* the ask "b" has no deadline */
    peer = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(peer, "b\n");
    domt_pool_pass_time(DOMT_NET_SECOND);
    domt_pool_answer_and_expect(peer, "2");
    domt_pool_end_kit();
}

DOMT_TEST(a_connection_is_idle_only_without_an_ask)
{
    static const domus_channel_options channel = {.idle_timeout_ns = 100 * MS};
    static const domus_pool_options options = {
        .behaviour = &domt_pool_narrow, .on_demand = true, .channel = &channel};
    domus_peer_listener *listener = domt_pool_begin_with_service(&options);

    domt_pool_ask_line("a");
    domus_peer *peer = domt_pool_accept_connection(listener);
    domt_pool_expect_service_got(peer, "a\n");
    domt_pool_pass_time(950 * MS);
    domt_pool_answer_and_expect(peer, "1");
    domt_pool_pass_time(90 * MS);
    ck_assert_uint_eq(domt_pool_ask_status().connected, 1);
    domt_pool_pass_time(20 * MS);
    ck_assert_uint_eq(domt_pool_ask_status().connected, 0);
    ck_assert_uint_eq(domt_pool_ask_status().failures, 0);
    domt_pool_end_kit();
}

/* --- asks that come back ---------------------------------------------------------------------- */

static domus_address channels[8];
static uint32_t opened;

static int on_open_record_channel(domus_stack *stack, void *self, const void *payload)
{
    channels[opened++] = domus_self(stack);
    return 0;
}

static const domus_pipeline narrow = {
    .stages = domt_line_stages, .encodes = domt_packets, .inflight_max = 1, .queue_max = 1};
static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .pipeline = &domt_line_pipeline,
                                     .on_open = {on_open_record_channel, 0}};
static const domus_behaviour narrow_line = {.name = "line",
                                            .kind = DOMUS_CHANNELS,
                                            .pipeline = &narrow,
                                            .on_open = {on_open_record_channel, 0}};

static domus_peer_listener *begin_pool_and_listen(void)
{
    opened = 0;
    domt_pool_begin_kit();
    return domt_pool_listen_as_service("10.0.0.9:1");
}

/* --- asks in the mailbox of a channel that is stopped ----------------------------------------- */

static const domus_type go_type = {.name = "go"}, stop_type = {.name = "stop"};
static domus_address stopper;
static int outcomes[4];
static uint32_t ended;
static bool asks_pool;

static int record_outcome_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcomes[ended++] = answer->error;
    return 0;
}

/* Ask a channel, after another actor was told to stop it, so that the stop comes before the ask is
 * handled. */
static int ask_channel_behind_its_stop(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;

    ck_assert_int_eq(domus_slice_copy("a", 1, &packet.bytes), 0);
    int result = domus_ask(stack, asks_pool ? domt_pool : channels[0], &domus_packet_type, &packet,
                           record_outcome_of_ask);
    if (asks_pool)
        ck_assert_int_eq(domus_notice(stack, stopper, &stop_type, NULL), 0);
    else
        ck_assert_int_eq(domus_stop(stack, channels[0]), 0);
    return result;
}

static int stop_first_channel_of_pool(domus_stack *stack, void *self, const void *payload)
{
    return domus_stop(stack, channels[0]);
}

static int open_pool_in_mount(domus_stack *stack, void *self)
{
    static const domus_pool_options options = {.behaviour = &line, .connections_min = 2};
    return domus_pool_open(stack, "10.0.0.9:1", &options, &domt_pool);
}

static const domus_behaviour neighbour = {
    .name = "neighbour",
    .kind = DOMUS_CHANNELS,
    .on_mount = open_pool_in_mount,
    .on = (const domus_on[]){{&go_type, ask_channel_behind_its_stop, 0}, {0}}};
static const domus_behaviour stopping = {
    .name = "stopping",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&stop_type, stop_first_channel_of_pool, 0}, {0}}};

DOMT_TEST(an_ask_in_the_mailbox_of_a_stopped_channel_goes_to_the_next_connection)
{
    domus_peer_listener *listener = begin_pool_and_listen();
    domus_system *system = domus_testkit_system(domt_pool_kit);
    domus_address asker;

    asks_pool = true;
    ended = 0;
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &neighbour, NULL, &asker), 0);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &stopping, NULL, &stopper), 0);
    domus_peer *one = domt_pool_accept_connection(listener),
               *two = domt_pool_accept_connection(listener);
    ck_assert_uint_eq(opened, 2);
    ck_assert_int_eq(domus_outside_notice(system, asker, &go_type, NULL), 0);
    domt_pool_expect_service_got(two, "a\n");
    domt_net_check_ok(domt_pool_kit, domus_peer_send(two, "1\n", 2));
    domt_pool_run_kit();
    ck_assert_uint_eq(ended, 1);
    ck_assert_int_eq(outcomes[0], 0);
    domt_net_check_ok(domt_pool_kit, domus_peer_expect_end(one, DOMT_NET_SECOND));
    domus_testkit_free(domt_pool_kit);
}

static const domus_behaviour asking = {
    .name = "asking", .on = (const domus_on[]){{&go_type, ask_channel_behind_its_stop, 0}, {0}}};

DOMT_TEST(ask_to_a_stopped_channel_fails_as_not_sent)
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
        domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
        ck_assert_uint_eq(ended, 1);
        ck_assert_int_eq(outcomes[0], -ENOTCONN);
        domus_testkit_free(client.kit);
    }
}

/* --- asks that were sent before --------------------------------------------------------------- */

static const domus_pool_options repeating = {
    .behaviour = &narrow_line, .repeatable = domt_packets, .tries_max = 5};

DOMT_TEST(ask_sent_before_fails_as_perhaps_done_however_it_ends)
{
    for (int i = 0; i < 2; i++) {
        domus_peer_listener *listener = domt_pool_begin_with_service(&repeating);
        domus_peer *peer = domt_pool_accept_connection(listener);
        domt_pool_ask_line("a");
        domt_pool_ask_line("b");
        domt_pool_expect_service_got(peer, "a\n");
        domus_peer_reset(peer);
        domt_pool_run_kit();
        if (i == 0) { /* in round 0, both asks wait for a connection when the pool stops */
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(domt_pool_kit), domt_pool), 0);
            domt_pool_expect_error(-EPIPE);
            domt_pool_expect_error(-ESTALE);
        } else { /* in round 1, one of the two asks was sent again or for the first time, and the
                    other one waits behind it */
            peer = domt_pool_accept_connection(listener);
            domt_pool_run_kit();
            size_t size;
            const char *got = domus_peer_got(peer, &size);
            ck_assert_uint_eq(size, 2);
            bool is_first = got[0] == 'a';
            ck_assert_int_eq(domus_outside_stop(domus_testkit_system(domt_pool_kit), domt_pool), 0);
            domt_pool_expect_error(-EPIPE);
            domt_pool_expect_error(is_first ? -ENOTCONN : -EPIPE);
        }
        domus_testkit_free(domt_pool_kit);
    }
}

DOMT_TEST(ask_sent_before_fails_as_perhaps_done_in_a_full_queue)
{
    static const domus_pool_options two_of_them = {.behaviour = &narrow_line,
                                                   .connections_min = 2,
                                                   .repeatable = domt_packets,
                                                   .tries_max = 5};

    domus_peer_listener *listener = domt_pool_begin_with_service(&two_of_them);
    domus_peer *one = domt_pool_accept_connection(listener),
               *two = domt_pool_accept_connection(listener);
    for (int i = 0; i < 4; i++)
        domt_pool_ask_line("a");
    domt_pool_expect_service_got(one, "a\n");
    domt_pool_expect_service_got(two, "a\n");
    domus_peer_reset(one);
    domt_pool_expect_error(-EPIPE);
    domt_pool_expect_error(-ENOBUFS); /* one ask was not sent, and found no place in the queue */
    domus_testkit_free(domt_pool_kit);
}

DOMT_SUITE(60)
