/* Each fault of the simulated cluster does what include/domus/testkit_cluster.h says, and every
 * lost message is counted. */
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PASS (5 * DOMT_MS)

static domus_testkit_cluster_counts read_message_counts(const domt_member *member)
{
    return domus_testkit_cluster_count(member->cluster);
}

/* Returns the server to which a client is connected. */
static uint32_t server_of_member(domt_member *member)
{
    domus_nats_status status = domt_status_of_member(member);

    ck_assert(status.connected);
    return (uint32_t)(status.server[strlen("simulated:")] - '0');
}

/* Publish the numbers from `from` up to `to`, with a pause between two of them. */
static void publish_numbers_of_range(domt_member *member, uint32_t first, uint32_t end)
{
    char text[16];

    for (uint32_t i = first; i < end; i++) {
        snprintf(text, sizeof text, "%u", i);
        domt_member_publish(member, "numbers", NULL, text);
        domt_pass_time(member->cluster, 50000);
    }
}

/* Receive numbers, and check that they come in their order; some may be missing. Returns how many
 * have come. */
static uint32_t receive_rising_numbers(domt_member *member)
{
    domus_nats_message message;
    uint32_t heard = 0;
    int last = -1;

    while (domus_probe_expect(member->probe, &domus_nats_message_type, 0, &message) == 0) {
        domt_heard text = domt_copy_and_free_message(&message);
        int number = (int)strtol(text.payload, NULL, 10);
        ck_assert_int_gt(number, last);
        last = number;
        heard++;
    }
    return heard;
}

DOMT_TEST(leg_takes_its_latency_and_keeps_the_order)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(1, NULL, 2, members);
    const domus_testkit_leg slow = {.latency_ns = 20 * DOMT_MS, .jitter_ns = 10 * DOMT_MS};

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(
        domus_testkit_cluster_set_leg(cluster, members[0].node, 0, DOMUS_FROM_SERVER, &slow), 0);
    publish_numbers_of_range(&members[1], 0, 100); /* publishing these numbers takes 5 ms */
    domt_pass_time(cluster, 14 * DOMT_MS);
    domt_hear_nothing(&members[0]);
    domt_pass_time(cluster, 20 * DOMT_MS);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 100);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(messages_of_different_pairs_overtake_each_other)
{
    domt_member members[3];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(2, NULL, 3, members);
    const domus_testkit_leg jitters = {.jitter_ns = 3 * DOMT_MS};
    uint32_t overtakings = 0;

    domt_member_subscribe(&members[0], "a", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(
        domus_testkit_cluster_set_leg(cluster, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS, &jitters),
        0);
    for (uint32_t i = 0; i < 20; i++) {
        domt_member_publish(&members[1], "a", NULL, "first");
        domt_pass_time(cluster, 100000);
        domt_member_publish(&members[2], "a", NULL, "second");
        domt_pass_time(cluster, 10 * DOMT_MS);
        overtakings += strcmp(domt_member_receive_message(&members[0]).payload, "second") == 0;
        (void)domt_member_receive_message(&members[0]);
    }
    ck_assert_uint_ge(overtakings, 3);
    ck_assert_uint_le(overtakings, 17);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(lossy_leg_counts_each_loss)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(3, NULL, 2, members);
    const domus_testkit_leg lossy = {.loss_ppm = 300000};

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(
        domus_testkit_cluster_set_leg(cluster, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS, &lossy),
        0);
    publish_numbers_of_range(&members[1], 0, 400);
    domt_pass_time(cluster, PASS);
    uint32_t heard = receive_rising_numbers(&members[0]);
    ck_assert_uint_eq(
        heard + read_message_counts(members).lost_up + read_message_counts(members).lost_down, 400);
    /* the number that is lost by chance is about 120 */
    ck_assert_uint_ge(read_message_counts(members).lost_up, 60);
    ck_assert_uint_ge(read_message_counts(members).lost_down, 40);
    ck_assert(domt_status_of_member(&members[0]).connected);
    ck_assert_uint_eq(read_message_counts(members).disconnects, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(short_cut_holds_messages_until_it_ends)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(4, NULL, 2, members);

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_testkit_cluster_cut(cluster, members[1].node, DOMUS_EVERY,
                                               DOMUS_BOTH_WAYS, DOMUS_CUT_HOLDS),
                     0);
    publish_numbers_of_range(&members[1], 0, 50);
    domt_pass_time(cluster, DOMT_SECOND);
    domt_hear_nothing(&members[0]);
    ck_assert_int_eq(
        domus_testkit_cluster_heal(cluster, members[1].node, DOMUS_EVERY, DOMUS_BOTH_WAYS), 0);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 50);
    ck_assert_uint_eq(read_message_counts(members).disconnects, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(long_cut_breaks_the_connection_on_both_sides)
{
    domt_member members[2];
    domus_testkit_cluster_options options = {.stale_ns = 8 * DOMT_SECOND};
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(5, &options, 2, members);

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_testkit_cluster_cut(cluster, members[0].node, DOMUS_EVERY,
                                               DOMUS_BOTH_WAYS, DOMUS_CUT_HOLDS),
                     0);
    publish_numbers_of_range(&members[1], 0, 10);
    domt_pass_time(cluster, 6100 * DOMT_MS);
    /* the client gives up after two pings without an answer, when a third one is due */
    domt_member_expect_event(&members[0], DOMUS_NATS_DISCONNECTED, -ETIMEDOUT);
    ck_assert_uint_eq(domt_status_of_member(&members[0]).stale, 1);
    ck_assert_uint_eq(read_message_counts(members).lost_down, 10);
    /* the server still has the subscription of the lost client */
    publish_numbers_of_range(&members[1], 10, 20);
    domt_pass_time(cluster, 3 * DOMT_SECOND);
    ck_assert_uint_eq(read_message_counts(members).lost_down, 20);
    publish_numbers_of_range(&members[1], 20, 30);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).unheard, 10);
    ck_assert_int_eq(
        domus_testkit_cluster_heal(cluster, members[0].node, DOMUS_EVERY, DOMUS_BOTH_WAYS), 0);
    domt_member_expect_event(&members[0], DOMUS_NATS_FAILED, -ETIMEDOUT);
    domt_pass_time(cluster, 5 * DOMT_SECOND);
    domus_nats_status status = domt_status_of_member(&members[0]);
    ck_assert(status.connected);
    ck_assert_uint_eq(status.reconnects, 1);
    /* the client has connected and subscribed again, so it gets these numbers */
    publish_numbers_of_range(&members[1], 30, 40);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 10);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(one_way_cut_loses_one_way)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(6, NULL, 2, members);

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_member_subscribe(&members[1], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(
        domus_testkit_cluster_cut(cluster, members[0].node, 0, DOMUS_TO_SERVER, DOMUS_CUT_LOSES),
        0);
    /* these numbers are lost on their way to the server */
    publish_numbers_of_range(&members[0], 0, 10);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).lost_up, 10);
    publish_numbers_of_range(&members[1], 10, 20); /* both clients receive these numbers */
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 10);
    ck_assert_uint_eq(receive_rising_numbers(&members[1]), 10);
    domus_testkit_cluster_heal(cluster, members[0].node, 0, DOMUS_TO_SERVER);
    ck_assert_int_eq(
        domus_testkit_cluster_cut(cluster, members[0].node, 0, DOMUS_FROM_SERVER, DOMUS_CUT_LOSES),
        0);
    /* only the other client receives these numbers */
    publish_numbers_of_range(&members[0], 20, 30);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 0);
    ck_assert_uint_eq(receive_rising_numbers(&members[1]), 10);
    ck_assert_uint_eq(read_message_counts(members).lost_down, 10);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(server_that_is_cut_off_forgets_other_servers)
{
    domus_testkit_cluster_options options = {.servers = 3};
    domt_member members[6];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(7, &options, 6, members);
    domt_member *one = &members[0];
    domt_member *other = NULL;

    for (uint32_t i = 1; i < 6; i++) {
        if (server_of_member(&members[i]) != server_of_member(one))
            other = &members[i];
    }
    ck_assert_ptr_nonnull(other);
    domt_member_subscribe(one, "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_testkit_cluster_cut_route(cluster, server_of_member(one), DOMUS_EVERY),
                     0);
    publish_numbers_of_range(other, 0, 10); /* the numbers wait on the route between the servers */
    domt_pass_time(cluster, DOMT_SECOND);
    domt_hear_nothing(one);
    domt_pass_time(cluster, 4 * DOMT_SECOND); /* the servers give the route up in this time */
    ck_assert_uint_eq(read_message_counts(members).lost_route, 10);
    publish_numbers_of_range(other, 10, 20);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).unheard, 10);
    ck_assert_int_eq(domus_testkit_cluster_heal_route(cluster, server_of_member(one), DOMUS_EVERY),
                     0);
    domt_pass_time(cluster, PASS);
    publish_numbers_of_range(other, 20, 30);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(receive_rising_numbers(one), 10);
    ck_assert_uint_eq(read_message_counts(members).disconnects, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(route_that_is_cut_shortly_loses_nothing)
{
    domus_testkit_cluster_options options = {.servers = 2};
    domt_member members[8];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(8, &options, 8, members);

    for (uint32_t i = 1; i < 8; i++)
        domt_member_subscribe(&members[i], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_testkit_cluster_cut_route(cluster, 0, 1), 0);
    publish_numbers_of_range(&members[0], 0, 10);
    domt_pass_time(cluster, DOMT_SECOND);
    ck_assert_int_eq(domus_testkit_cluster_heal_route(cluster, 1, 0), 0);
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 1; i < 8; i++)
        ck_assert_uint_eq(receive_rising_numbers(&members[i]), 10);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(server_that_stops_breaks_its_connections)
{
    domus_testkit_cluster_options options = {.servers = 2};
    domt_member members[4];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(9, &options, 4, members);
    uint32_t server = server_of_member(&members[0]);

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    /* the client has subscribed to "numbers" itself, receives this request, and does not answer */
    domt_member_request(&members[0], "numbers", NULL, "x");
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    ck_assert_int_eq(domus_testkit_cluster_stop_server(cluster, server), 0);
    domt_pass_time(cluster, PASS);
    domt_member_expect_event(&members[0], DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    domt_member_expect_failure(&members[0], -EPIPE);
    ck_assert_uint_eq(read_message_counts(members).lost_up, 1);
    /* this message waits in the client for a connection */
    domt_member_publish(&members[0], "numbers", NULL, "1");
    domt_pass_time(cluster, 10 * DOMT_SECOND);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 1);
    ck_assert_uint_eq(server_of_member(&members[0]), 1 - server);
    ck_assert_int_eq(domus_testkit_cluster_start_server(cluster, server), 0);
    ck_assert_int_eq(domus_testkit_cluster_stop_server(cluster, 1 - server), 0);
    domt_pass_time(cluster, 10 * DOMT_SECOND);
    ck_assert_uint_eq(server_of_member(&members[0]), server);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(clients_reconnect_as_soon_as_they_may)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(10, NULL, 2, members);

    ck_assert_int_eq(domus_testkit_cluster_disconnect(cluster, members[0].node, 3 * DOMT_SECOND),
                     0);
    domt_pass_time(cluster, 2900 * DOMT_MS);
    ck_assert(!domt_status_of_member(&members[0]).connected);
    /* the client has tried again at least three times, with pauses from 100 ms on */
    ck_assert_uint_ge(domt_status_of_member(&members[0]).failures, 3);
    domt_pass_time(cluster, 3 * DOMT_SECOND);
    ck_assert(domt_status_of_member(&members[0]).connected);
    ck_assert_uint_eq(read_message_counts(members).disconnects, 1);
    ck_assert_uint_eq(domt_status_of_member(&members[1]).reconnects, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(request_that_waits_too_long_is_not_sent)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(18, NULL, 2, members);
    domus_nats_publish publish = {0};

    domt_member_subscribe(&members[1], "asked", NULL);
    ck_assert_int_eq(domus_testkit_cluster_disconnect(cluster, members[0].node, DOMT_SECOND), 0);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_nats_set_subject(&publish, "asked"), 0);
    ck_assert_int_eq(domus_probe_ask_within(members[0].probe, members[0].client,
                                            &domus_nats_request_type, &publish, 100 * DOMT_MS),
                     0);
    domt_member_request(&members[0], "asked", NULL, "in time");
    domt_pass_time(cluster, 4 * DOMT_SECOND);
    domt_member_expect_failure(&members[0], -ETIMEDOUT);
    domt_member_expect_text(&members[1], "in time");
    domt_hear_nothing(&members[1]);
    ck_assert_uint_eq(read_message_counts(members).lost_waiting, 1);
    ck_assert_uint_eq(read_message_counts(members).arrived, 1);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(slow_consumer_is_dropped)
{
    domus_testkit_cluster_options options = {.pending_max = 100000};
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(11, &options, 2, members);
    static const char data[20000];

    domt_member_subscribe(&members[0], "big", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(
        domus_testkit_cluster_cut(cluster, members[0].node, 0, DOMUS_FROM_SERVER, DOMUS_CUT_HOLDS),
        0);
    for (uint32_t i = 0; i < 4; i++)
        domt_member_publish_bytes(&members[1], "big", data, sizeof data);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).slow, 0);
    domt_member_publish_bytes(&members[1], "big", data, sizeof data);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).slow, 1);
    ck_assert_uint_eq(read_message_counts(members).lost_down, 5);
    domus_testkit_cluster_heal(cluster, members[0].node, 0, DOMUS_FROM_SERVER);
    domt_pass_time(cluster, PASS);
    domt_member_expect_event(&members[0], DOMUS_NATS_DISCONNECTED, -EPIPE);
    domt_pass_time(cluster, DOMT_SECOND);
    domt_member_expect_event(&members[0], DOMUS_NATS_CONNECTED, 0);
    ck_assert_int_eq(domus_testkit_cluster_drop_slow(cluster, members[0].node), 0);
    domt_pass_time(cluster, PASS);
    domt_member_expect_event(&members[0], DOMUS_NATS_DISCONNECTED, -EPIPE);
    ck_assert_uint_eq(read_message_counts(members).slow, 2);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(slow_leg_fills_the_buffer_of_the_client)
{
    domus_testkit_cluster_options options = {.wire_max = 50000, .buffer_max = 50000};
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(12, &options, 2, members);
    static const char data[10000];

    domt_member_subscribe(&members[1], "big", NULL);
    domus_testkit_cluster_cut(cluster, members[0].node, 0, DOMUS_TO_SERVER, DOMUS_CUT_HOLDS);
    for (uint32_t i = 0; i < 12; i++)
        domt_member_publish_bytes(&members[0], "big", data, sizeof data);
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    domus_nats_status status = domt_status_of_member(&members[0]);
    ck_assert_uint_eq(status.out_messages, 5);
    ck_assert_uint_eq(status.waiting, 4);
    ck_assert_uint_eq(status.refused, 3);
    domus_testkit_cluster_heal(cluster, members[0].node, 0, DOMUS_TO_SERVER);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).delivered, 9);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(node_that_crashes_is_heard_no_more)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(13, NULL, 2, members);

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    domt_member_publish(&members[0], "numbers", NULL, "1");
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    ck_assert_int_eq(domus_testkit_cluster_crash(cluster, members[0].node, false), 0);
    ck_assert_ptr_null(domus_testkit_cluster_kit(cluster, members[0].node));
    ck_assert_uint_eq(read_message_counts(members).lost_up, 1);
    domt_pass_time(cluster, PASS); /* in this time the server hears that the connection is lost */
    publish_numbers_of_range(&members[1], 0, 5);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).unheard, 5);
    ck_assert_int_eq(domus_testkit_cluster_start(cluster, members[0].node), 0);
    domt_member_start_client(&members[0]);
    domt_pass_time(cluster, PASS);
    domt_member_expect_event(&members[0], DOMUS_NATS_CONNECTED, 0);
    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_testkit_cluster_crash(cluster, members[0].node, true), 0);
    domt_pass_time(cluster, PASS); /* the server does not know of the crash yet, and still sends */
    publish_numbers_of_range(&members[1], 5, 10);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).lost_down, 5);
    /* in this time the server notices the lost connection by its pings */
    domt_pass_time(cluster, 6 * DOMT_SECOND);
    publish_numbers_of_range(&members[1], 10, 15);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(read_message_counts(members).unheard, 10);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(suspended_node_goes_on_with_what_has_come)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(14, NULL, 2, members);
    uint64_t before_ns;

    domt_member_subscribe(&members[0], "numbers", NULL);
    domt_pass_time(cluster, PASS);
    before_ns = domus_testkit_now_ns(members[0].kit);
    ck_assert_int_eq(domus_testkit_cluster_suspend(cluster, members[0].node), 0);
    publish_numbers_of_range(&members[1], 0, 20);
    domt_pass_time(cluster, 3 * DOMT_SECOND);
    ck_assert_uint_eq(domus_testkit_now_ns(members[0].kit), before_ns);
    ck_assert_int_eq(domus_testkit_cluster_resume(cluster, members[0].node, DOMUS_CLOCK_JUMPS), 0);
    ck_assert_uint_eq(receive_rising_numbers(&members[0]), 20);
    ck_assert_uint_eq(domus_testkit_now_ns(members[0].kit), before_ns + 3001 * DOMT_MS);
    domt_pass_time(cluster, PASS);
    ck_assert(domt_status_of_member(&members[0]).connected);
    /* Suspend the node for longer than the server waits for the answer to a ping: the server closes
     * the connection, and the node does not know that yet. */
    ck_assert_int_eq(domus_testkit_cluster_suspend(cluster, members[0].node), 0);
    domt_pass_time(cluster, 10 * DOMT_SECOND);
    before_ns = domus_testkit_now_ns(members[0].kit);
    ck_assert_int_eq(domus_testkit_cluster_resume(cluster, members[0].node, DOMUS_CLOCK_STOOD), 0);
    domt_member_expect_event(&members[0], DOMUS_NATS_DISCONNECTED, -ETIMEDOUT);
    domt_pass_time(cluster, DOMT_SECOND);
    ck_assert_uint_eq(domus_testkit_now_ns(members[0].kit), before_ns + DOMT_SECOND);
    domt_member_expect_event(&members[0], DOMUS_NATS_CONNECTED, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(clocks_differ_and_drift)
{
    static const int32_t drifts[] = {0, 200, -200, 499999, -500000};
    domus_testkit_cluster *cluster = domt_cluster_new(15, NULL);
    domt_member members[5];

    for (uint32_t i = 0; i < 5; i++) {
        domus_testkit_node_options options = {.clock_offset_ns = i * 3600 * DOMT_SECOND,
                                              .clock_drift_ppm = drifts[i]};
        domt_member_add_with_client(cluster, &options, &members[i]);
    }
    domt_pass_time(cluster, 1000 * DOMT_SECOND + 1);
    for (uint32_t i = 0; i < 5; i++) {
        int64_t passed = 1000000000001 * (1000000 + drifts[i]) / 1000000;
        ck_assert_uint_eq(domus_testkit_now_ns(members[i].kit),
                          DOMUS_TESTKIT_START_NS + i * 3600 * DOMT_SECOND + (uint64_t)passed);
        ck_assert(domt_status_of_member(&members[i]).connected);
        ck_assert_uint_eq(domt_status_of_member(&members[i]).stale, 0);
    }
    domus_testkit_cluster_free(cluster);
}

DOMT_SUITE(60)
