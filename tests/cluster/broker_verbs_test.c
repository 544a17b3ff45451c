/* Simulated clients understand the verbs of domus/nats.h, and answer as a client of a real server
 * does. */
#include "tests/cluster/broker.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PASS (5 * DOMT_MS)

DOMT_TEST(message_comes_to_all_subscribers_with_its_parts)
{
    domt_member members[3];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        1, &(domus_testkit_cluster_options){.servers = 3}, 3, members);
    uint64_t number = domt_member_subscribe(&members[0], "greet.*", NULL);
    domt_member_subscribe(&members[1], "greet.>", NULL);
    domt_member_subscribe(&members[2], "other", NULL);
    domt_pass_time(cluster, PASS);
    domt_member_publish(&members[2], "greet.ann", "back.here", "hello");
    domt_pass_time(cluster, PASS);
    domt_heard heard = domt_member_receive_message(&members[0]);
    ck_assert_str_eq(heard.subject, "greet.ann");
    ck_assert_str_eq(heard.reply, "back.here");
    ck_assert_str_eq(heard.payload, "hello");
    ck_assert_str_eq(heard.headers, "");
    ck_assert_uint_eq(heard.subscription, number);
    ck_assert_uint_eq(heard.tag, 7);
    domt_member_expect_text(&members[1], "hello");
    domt_hear_nothing(&members[0]);
    domt_hear_nothing(&members[2]);
    domus_testkit_cluster_counts counts = domus_testkit_cluster_count(cluster);
    ck_assert_uint_eq(counts.published, 1);
    ck_assert_uint_eq(counts.arrived, 1);
    ck_assert_uint_eq(counts.copies, 2);
    ck_assert_uint_eq(counts.delivered, 2);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(large_message_comes_whole)
{
    static char data[100000];
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(2, NULL, 2, members);
    domus_nats_message message;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    domt_member_subscribe(&members[0], "a", NULL);
    domt_pass_time(cluster, PASS);
    domt_member_publish_bytes(&members[1], "a", data, sizeof data);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_probe_expect(members[0].probe, &domus_nats_message_type, 0, &message),
                     0);
    ck_assert(domus_slice_equals(domus_nats_payload(&message), data, sizeof data));
    domus_slice_free(message.bytes);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(request_gets_its_answer_with_headers)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        3, &(domus_testkit_cluster_options){.servers = 2}, 2, members);
    domus_nats_message asked;
    domus_slice value;
    uint32_t from = 0;

    domt_member_subscribe(&members[0], "sum", NULL);
    domt_pass_time(cluster, PASS);
    domt_member_request(&members[1], "sum", "One: 1\r\nTwo:  2 \r\n", "1+2");
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_probe_expect(members[0].probe, &domus_nats_message_type, 0, &asked), 0);
    ck_assert_int_eq(domus_nats_header(&asked, "Two", &from, &value), 0);
    ck_assert(domus_slice_equals(value, "2", 1));
    ck_assert(domus_slice_equals(domus_nats_payload(&asked), "1+2", 3));
    domus_nats_publish answer = {0};
    ck_assert_int_eq(domus_nats_set_reply_of(&answer, &asked), 0);
    ck_assert_int_eq(domus_nats_set_payload(&answer, "3", 1), 0);
    ck_assert_int_eq(
        domus_probe_send(members[0].probe, members[0].client, &domus_nats_publish_type, &answer),
        0);
    domus_slice_free(asked.bytes);
    domt_pass_time(cluster, PASS);
    domt_member_expect_text(&members[1], "3");
    ck_assert_uint_eq(domt_status_of_member(&members[1]).inflight, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(request_that_nobody_hears_is_refused_at_once)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        4, &(domus_testkit_cluster_options){.servers = 2}, 2, members);

    domt_member_request(&members[0], "nobody.is.here", NULL, "x");
    domt_pass_time(cluster, PASS);
    domt_member_expect_failure(&members[0], -ECONNREFUSED);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).no_responders, 1);
    domt_member_publish(&members[0], "nobody.is.here", NULL, "x");
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).unheard, 2);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(request_without_an_answer_ends_at_its_time_out)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(5, NULL, 2, members);
    domus_nats_publish publish = {0};

    domt_member_subscribe(&members[0], "silent", NULL);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_nats_set_subject(&publish, "silent"), 0);
    ck_assert_int_eq(domus_probe_ask_within(members[1].probe, members[1].client,
                                            &domus_nats_request_type, &publish, 20 * DOMT_MS),
                     0);
    /* without a time-out of its own, this request has the client's one of 5 s */
    domt_member_request(&members[1], "silent", NULL, "x");
    domt_pass_time(cluster, 15 * DOMT_MS);
    domt_hear_nothing(&members[1]);
    domt_pass_time(cluster, 10 * DOMT_MS);
    domt_member_expect_failure(&members[1], -ETIMEDOUT);
    domt_pass_time(cluster, 4900 * DOMT_MS);
    domt_hear_nothing(&members[1]);
    domt_pass_time(cluster, 200 * DOMT_MS);
    domt_member_expect_failure(&members[1], -ETIMEDOUT);
    ck_assert_uint_eq(domt_status_of_member(&members[1]).inflight, 0);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(queue_group_gets_each_message_once)
{
    domt_member members[5];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        6, &(domus_testkit_cluster_options){.servers = 3}, 5, members);
    uint32_t heard[4] = {0};
    domus_nats_message message;

    for (uint32_t i = 0; i < 4; i++)
        domt_member_subscribe(&members[i], "work.*", "workers");
    domt_member_subscribe(&members[0], "work.*",
                          "others"); /* another queue group, with one member */
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 0; i < 100; i++)
        domt_member_publish(&members[4], "work.a", NULL, "x");
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 0; i < 4; i++) {
        while (domus_probe_expect(members[i].probe, &domus_nats_message_type, 0, &message) == 0) {
            domus_slice_free(message.bytes);
            heard[i]++;
        }
    }
    ck_assert_uint_eq(heard[0] + heard[1] + heard[2] + heard[3], 200);
    ck_assert_uint_ge(heard[0], 100);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).delivered, 200);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(queue_group_of_one_server_shares_the_work)
{
    domt_member members[5];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(7, NULL, 5, members);
    domus_nats_message message;

    for (uint32_t i = 0; i < 4; i++)
        domt_member_subscribe(&members[i], "work.*", "workers");
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 0; i < 200; i++)
        domt_member_publish(&members[4], "work.a", NULL, "x");
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t heard = 0;
        while (domus_probe_expect(members[i].probe, &domus_nats_message_type, 0, &message) == 0) {
            domus_slice_free(message.bytes);
            heard++;
        }
        /* about 50 of the 200 messages come to each member, by chance */
        ck_assert_uint_ge(heard, 25);
    }
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(queue_group_prefers_members_of_its_server)
{
    domt_member members[6];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        17, &(domus_testkit_cluster_options){.servers = 2}, 6, members);
    uint32_t own = 0;

    for (uint32_t i = 1; i < 6; i++) {
        own += strcmp(domt_status_of_member(&members[i]).server,
                      domt_status_of_member(&members[0]).server) == 0;
        domt_member_subscribe(&members[i], "work", "workers");
    }
    ck_assert(own != 0 && own != 5);
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 0; i < 50; i++)
        domt_member_publish(&members[0], "work", NULL, domt_status_of_member(&members[0]).server);
    domt_pass_time(cluster, PASS);
    for (uint32_t i = 1; i < 6; i++) {
        domus_nats_message message;
        char server[DOMUS_NATS_SERVER_SIZE] = "";
        while (domus_probe_expect(members[i].probe, &domus_nats_message_type, 0, &message) == 0)
            snprintf(server, sizeof server, "%.99s", domt_copy_and_free_message(&message).payload);
        if (server[0] != '\0')
            ck_assert_str_eq(server, domt_status_of_member(&members[i]).server);
    }
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).delivered, 50);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(subscription_ends_at_once_or_after_so_many_messages)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(8, NULL, 2, members);
    domus_nats_unsubscribe now = {.number = domt_member_subscribe(&members[0], "a", NULL)};
    domus_nats_unsubscribe later = {.number = domt_member_subscribe(&members[0], "b", NULL),
                                    .messages_max = 2};
    domus_probe *probe = members[0].probe;

    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_probe_ask(probe, members[0].client, &domus_nats_unsubscribe_type, &now),
                     0);
    ck_assert_int_eq(
        domus_probe_ask(probe, members[0].client, &domus_nats_unsubscribe_type, &later), 0);
    domt_pass_time(cluster, PASS);
    domt_member_expect_done(&members[0]);
    domt_member_expect_done(&members[0]);
    ck_assert_uint_eq(domt_status_of_member(&members[0]).subscriptions, 1);
    for (uint32_t i = 0; i < 3; i++) {
        domt_member_publish(&members[1], "a", NULL, "no");
        domt_member_publish(&members[1], "b", NULL, i < 2 ? "yes" : "no");
    }
    domt_pass_time(cluster, PASS);
    domt_member_expect_text(&members[0], "yes");
    domt_member_expect_text(&members[0], "yes");
    domt_hear_nothing(&members[0]);
    /* the server has forgotten the subscription, too, so it makes no further copy */
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).copies, 2);
    ck_assert_uint_eq(domt_status_of_member(&members[0]).subscriptions, 0);
    ck_assert_int_eq(domus_probe_ask(probe, members[0].client, &domus_nats_unsubscribe_type, &now),
                     0);
    domt_member_expect_failure(&members[0], -ENOENT);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(subscription_ends_with_its_subscriber)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(9, NULL, 2, members);
    domus_probe *other;

    ck_assert_int_eq(domus_probe_new(members[0].kit, &other), 0);
    domt_member_subscribe(&members[0], "a", NULL);
    domus_nats_subscribe subscribe;
    ck_assert_int_eq(domus_nats_subscribe_make("a", NULL, &subscribe), 0);
    subscribe.to = domus_probe_address(other);
    ck_assert_int_eq(domus_probe_ask(members[0].probe, members[0].client,
                                     &domus_nats_subscribe_type, &subscribe),
                     0);
    domt_pass_time(cluster, PASS);
    ck_assert_int_eq(domus_probe_expect(members[0].probe, &domus_nats_subscription_type, 0, NULL),
                     0);
    ck_assert_uint_eq(domt_status_of_member(&members[0]).subscriptions, 2);
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(members[0].kit), subscribe.to), 0);
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(domt_status_of_member(&members[0]).subscriptions, 1);
    domt_member_publish(&members[1], "a", NULL, "x");
    domt_pass_time(cluster, PASS);
    domt_member_expect_text(&members[0], "x");
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).copies, 1);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(flush_is_answered_behind_what_was_published)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(10, NULL, 2, members);

    for (uint32_t i = 0; i < 10; i++)
        domt_member_publish(&members[0], "a", NULL, "x");
    ck_assert_int_eq(
        domus_probe_ask(members[0].probe, members[0].client, &domus_nats_flush_type, NULL), 0);
    /* the flush takes at least 100 us to the server, and its answer as well */
    domt_pass_time(cluster, 150000);
    domt_hear_nothing(&members[0]);
    domt_pass_time(cluster, PASS);
    domt_member_expect_done(&members[0]);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).arrived, 10);
    ck_assert_uint_ge(domt_status_of_member(&members[0]).rtt_ns, 200000);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(state_of_a_client_is_told)
{
    domt_member members[1];
    domus_testkit_cluster *cluster = domt_cluster_new(11, NULL);

    domt_member_add_with_client(cluster, NULL, &members[0]);
    domus_nats_status status = domt_status_of_member(&members[0]);
    ck_assert(!status.connected);
    domt_member_publish(&members[0], "a.b", NULL, "four");
    /* the client handles the publication before the ask of domt_status_of_member() */
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    status = domt_status_of_member(&members[0]);
    ck_assert_uint_eq(status.waiting, 1);
    ck_assert_uint_eq(status.waiting_bytes, 324);
    domt_pass_time(cluster, PASS);
    domt_member_expect_event(&members[0], DOMUS_NATS_CONNECTED, 0);
    status = domt_status_of_member(&members[0]);
    ck_assert(status.connected && status.has_headers && status.has_jetstream);
    ck_assert_uint_eq(status.waiting, 0);
    ck_assert_uint_eq(status.out_messages, 1);
    ck_assert_uint_eq(status.out_bytes, 4);
    ck_assert_uint_eq(status.connects, 1);
    ck_assert_uint_eq(status.max_payload, 1 << 20);
    ck_assert_str_eq(status.server, "simulated:0");
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(drain_sends_all_and_ends_the_client)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(12, NULL, 2, members);

    domt_member_subscribe(&members[1], "a", NULL);
    domt_member_subscribe(&members[0], "b", NULL);
    domt_pass_time(cluster, PASS);
    domt_member_publish(&members[0], "a", NULL, "last");
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    ck_assert_int_eq(
        domus_probe_ask(members[0].probe, members[0].client, &domus_nats_drain_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    domt_member_request(&members[0], "a", NULL, "no more");
    domt_pass_time(cluster, PASS);
    domt_member_expect_failure(&members[0], -ESHUTDOWN);
    domt_member_expect_done(&members[0]);
    domt_member_expect_event(&members[0], DOMUS_NATS_CLOSED, 0);
    domt_member_expect_text(&members[1], "last");
    domt_member_publish(&members[1], "b", NULL, "x");
    domt_pass_time(cluster, PASS);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).unheard, 1);
    ck_assert_int_eq(
        domus_probe_ask(members[0].probe, members[0].client, &domus_nats_look_type, NULL), 0);
    domt_member_expect_failure(&members[0], -ESTALE);
    domus_testkit_cluster_free(cluster);
}

/* Publish `size` bytes by an ask, which is answered when the client has taken them. */
static void ask_to_publish_zeros(domt_member *member, const char *subject, size_t size)
{
    domus_nats_publish publish = {0};
    static const char zeros[4096];

    ck_assert_int_eq(domus_slice_copy(subject, strlen(subject), &publish.subject), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, zeros, size), 0);
    ck_assert_int_eq(
        domus_probe_ask(member->probe, member->client, &domus_nats_publish_type, &publish), 0);
}

DOMT_TEST(client_refuses_at_its_limits)
{
    domus_testkit_cluster_options options = {
        .payload_max = 2000, .buffer_max = 4096, .inflight_max = 2, .subscriptions_max = 1};
    domt_member members[1];
    domus_testkit_cluster *cluster = domt_cluster_new(13, &options);

    domt_member_add_with_client(cluster, NULL, &members[0]);
    ask_to_publish_zeros(&members[0], "a..b", 1);
    domt_member_expect_failure(&members[0], -EINVAL);
    ask_to_publish_zeros(&members[0], "a.b", 2001);
    domt_member_expect_failure(&members[0], -EMSGSIZE);
    /* with its 320 bytes of overhead this message takes half of the client's buffer */
    ask_to_publish_zeros(&members[0], "a.b", 1728);
    domt_member_expect_done(&members[0]);
    ask_to_publish_zeros(&members[0], "a.b", 1728);
    domt_member_expect_done(&members[0]);
    ask_to_publish_zeros(&members[0], "a.b", 1);
    domt_member_expect_failure(&members[0], -ENOBUFS);
    domt_pass_time(cluster, PASS);
    domt_member_subscribe(&members[0], "c", NULL);
    domus_nats_subscribe subscribe;
    ck_assert_int_eq(domus_nats_subscribe_make("d", NULL, &subscribe), 0);
    ck_assert_int_eq(domus_probe_ask(members[0].probe, members[0].client,
                                     &domus_nats_subscribe_type, &subscribe),
                     0);
    domt_member_expect_failure(&members[0], -ENOBUFS);
    for (uint32_t i = 0; i < 3; i++)
        domt_member_request(&members[0], "c", NULL, "x");
    ck_assert_int_eq(domus_testkit_cluster_run(cluster), 0);
    domt_member_expect_failure(&members[0], -ENOBUFS);
    ck_assert_uint_eq(domt_status_of_member(&members[0]).refused, 5);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).refused, 5);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(options_out_of_range_are_refused)
{
    const domus_testkit_cluster_options wrong[] = {{.servers = DOMUS_TESTKIT_SERVERS_MAX + 1},
                                                   {.latency_ns = 999},
                                                   {.jitter_ns = UINT64_MAX - 1},
                                                   {.backoff_min_ns = 3 * DOMT_SECOND},
                                                   {.inflight_max = 65537},
                                                   {.stale_ns = 3601 * DOMT_SECOND},
                                                   {.payload_max = DOMUS_NATS_PAYLOAD_LIMIT + 1}};
    domus_testkit_cluster *cluster = NULL;
    uint32_t node = 77;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_testkit_cluster_new(1, &wrong[i], &cluster), -EINVAL);
    ck_assert_ptr_null(cluster);
    cluster = domt_cluster_new(1, NULL);
    ck_assert_int_eq(domus_testkit_cluster_crash(cluster, 0, false), -EINVAL);
    ck_assert_str_eq(domus_testkit_cluster_error(cluster), "there is no node 0");
    ck_assert_ptr_null(domus_testkit_cluster_kit(cluster, 0));
    ck_assert_ptr_null(domus_testkit_cluster_context(cluster, 0));
    ck_assert_int_eq(domus_testkit_cluster_add_node(
                         cluster, &(domus_testkit_node_options){.clock_drift_ppm = 500001}, &node),
                     -EINVAL);
    ck_assert_int_eq(domus_testkit_cluster_stop_server(cluster, 1), -EINVAL);
    ck_assert_int_eq(domus_testkit_cluster_start_server(cluster, 0), -EALREADY);
    ck_assert_int_eq(domus_testkit_cluster_cut_route(cluster, 0, 0), -EINVAL);
    ck_assert_int_eq(domus_testkit_cluster_cut(cluster, 0, 0, DOMUS_BOTH_WAYS, DOMUS_CUT_HOLDS),
                     -EINVAL);
    ck_assert_int_eq(
        domus_testkit_cluster_set_store(
            cluster, &(domus_testkit_store_faults){.answer_loss_ppm = DOMUS_TESTKIT_PPM + 1}),
        -EINVAL);
    ck_assert_int_eq(domus_testkit_cluster_advance(cluster, UINT64_MAX), -ERANGE);
    for (uint32_t i = 0; i < DOMUS_TESTKIT_NODES_MAX; i++)
        ck_assert_int_eq(domus_testkit_cluster_add_node(cluster, NULL, &node), 0);
    ck_assert_int_eq(domus_testkit_cluster_add_node(cluster, NULL, &node), -ENOSPC);
    ck_assert_int_eq(domus_testkit_cluster_suspend(cluster, 3), 0);
    ck_assert_int_eq(domus_testkit_cluster_suspend(cluster, 3), -EALREADY);
    ck_assert_int_eq(domus_testkit_cluster_resume(cluster, 2, DOMUS_CLOCK_JUMPS), -EALREADY);
    ck_assert_int_eq(domus_testkit_cluster_start(cluster, 2), -EALREADY);
    domus_testkit_cluster_free(cluster);
    domus_testkit_cluster_free(NULL);
}

DOMT_SUITE(60)
