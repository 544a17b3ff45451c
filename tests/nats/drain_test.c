/* Drains, and ends of a client: every accepted message is sent or reported; and messages that a
 * subscriber does not accept are counted. */
#include "tests/nats/world.h"

#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void ask_client_to_drain(void)
{
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_drain_type, NULL));
}

DOMT_TEST(drain_ends_after_all_work_under_way)
{
    domus_nats_publish publish = domt_nats_make_publication("a", "x");
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);
    uint64_t number = domt_nats_subscribe_by_probe("s", NULL, 0, 0);
    char text[300], reply[100];

    (void)domt_nats_read_line_from_client(peer);
    domt_nats_request_by_probe("r", "q", 0);
    ck_assert_int_eq(sscanf(domt_nats_read_line_from_client(peer), "PUB r %99s", reply), 1);
    domt_nats_expect_text_from_client(peer, "q\r\n");
    domt_expect_success(
        domus_probe_send(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    /* The ask to drain overtakes the notice with the publication, but the publication is still
     * sent first. */
    ask_client_to_drain();
    snprintf(text, sizeof text, "PUB a 1\r\nx\r\nUNSUB %llu\r\nPING\r\n",
             (unsigned long long)number);
    domt_nats_expect_text_from_client(peer, text);
    ask_client_to_drain();
    domt_nats_expect_failed_ask(-EALREADY);
    domt_nats_request_by_probe("r", "q", 0);
    domt_nats_expect_failed_ask(-ESHUTDOWN);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_nats_expect_failed_ask(-ESHUTDOWN);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_nats_expect_failed_ask(-ESHUTDOWN);
    domus_nats_subscribe subscribe;
    ck_assert_int_eq(domus_nats_subscribe_make("a", NULL, &subscribe), 0);
    domt_expect_success(
        domus_probe_ask(domt_probe, domt_nats, &domus_nats_subscribe_type, &subscribe));
    domt_nats_expect_failed_ask(-ESHUTDOWN);
    ck_assert(domt_nats_read_client_status().draining);
    snprintf(text, sizeof text, "MSG s %llu 4\r\nlast\r\nPONG\r\n", (unsigned long long)number);
    domt_nats_send_to_client(peer, text);
    domt_nats_expect_message(domt_probe, "s", "last", 0);
    /* The request that was sent before the drain has no answer yet, so the drain does not end. */
    domt_expect_success(domus_probe_expect_nothing(domt_probe, SECOND));
    snprintf(text, sizeof text, "MSG %s 0 1\r\na\r\n", reply);
    domt_nats_send_to_client(peer, text);
    domt_nats_expect_message(domt_probe, reply, "a", 0);
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    domt_expect_success(domus_peer_expect_end(peer, SECOND));
    domt_nats_expect_event(DOMUS_NATS_CLOSED, 0);
    ask_client_to_drain();
    domt_nats_expect_failed_ask(-ESTALE);
    domt_nats_end_kit();
}

DOMT_TEST(drain_fails_at_its_timeout)
{
    static const domus_nats_options options = {.drain_timeout_ns = SECOND};
    domus_peer *peer = domt_nats_begin_with_logged_in_client(&options, NULL);
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);

    ask_client_to_drain();
    /* the server does not answer this PING, so the drain reaches its time-out */
    domt_nats_expect_text_from_client(peer, "PING\r\n");
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    ck_assert_uint_ge(domus_testkit_now_ns(domt_kit) - begun_ns, SECOND);
    ck_assert_uint_le(domus_testkit_now_ns(domt_kit) - begun_ns, SECOND + 10 * MS);
    domt_nats_expect_event(DOMUS_NATS_CLOSED, 0);
    domt_nats_end_kit();
}

/* A drain goes on when its connection breaks: the next connection sends the messages that wait. */
DOMT_TEST(drain_continues_on_next_connection)
{
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, &listener);

    (void)domt_nats_subscribe_by_probe("s", NULL, 0, 0);
    domus_peer_reset(peer);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    domt_nats_publish_by_probe("a", "x");
    /* Begin a drain by a notice, which gets no answer. */
    domt_expect_success(domus_probe_send(domt_probe, domt_nats, &domus_nats_drain_type, NULL));
    domt_nats_run_kit();
    peer = domt_nats_accept_connection(listener);
    (void)domt_nats_let_client_log_in(peer, NULL);
    /* A client that drains does not subscribe again on a new connection. */
    domt_nats_expect_text_from_client(peer, "PUB a 1\r\nx\r\nPING\r\n");
    domus_peer_reset(peer);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    peer = domt_nats_accept_connection(listener);
    (void)domt_nats_let_client_log_in(peer, NULL);
    domt_nats_expect_text_from_client(peer, "PING\r\n");
    domt_nats_send_to_client(peer, "PONG\r\n");
    domt_nats_expect_event(DOMUS_NATS_CLOSED, 0);
    domt_nats_end_kit();
}

/* A client that is stopped answers all asks, and frees all memory. */
DOMT_TEST(stop_of_client_fails_asks_under_way)
{
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, &listener);
    domus_system *system = domus_testkit_system(domt_kit);

    (void)domt_nats_subscribe_by_probe("s", NULL, 0, 0);
    domt_nats_request_by_probe("r", "q", 0);
    ck_assert_int_eq(domus_outside_stop(system, domt_nats), 0);
    domt_nats_expect_failed_ask(-ESTALE);
    (void)peer;
    domt_nats_expect_event(DOMUS_NATS_CLOSED, 0);
    /* a second client, which is stopped while its messages wait for a connection */
    domt_nats_open_client(NULL);
    domt_nats_publish_by_probe("a", "x");
    domt_nats_request_by_probe("r", "q", 0);
    ck_assert_int_eq(domus_outside_stop(system, domt_nats), 0);
    domt_nats_expect_failed_ask(-ESTALE);
    domt_nats_end_kit();
}

/* A subscriber whose mailbox refuses its messages delays no other subscriber, and the client's
 * counts show the loss. */
DOMT_TEST(messages_for_full_mailbox_are_counted_as_lost)
{
    domus_address address;
    domus_nats_subscribe subscribe;
    domus_nats_subscription subscription;
    static const domus_behaviour deaf = {.name = "deaf", .kind = DOMUS_STATE};
    const domus_spawn_options options = {.mailbox_max = 2};
    char text[200];

    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);
    ck_assert_int_eq(
        domus_outside_spawn_with(domus_testkit_system(domt_kit), &deaf, NULL, &options, &address),
        0);
    ck_assert_int_eq(domus_nats_subscribe_make("s", NULL, &subscribe), 0);
    subscribe.to = address;
    domt_expect_success(
        domus_probe_ask(domt_probe, domt_nats, &domus_nats_subscribe_type, &subscribe));
    domt_expect_success(
        domus_probe_expect(domt_probe, &domus_nats_subscription_type, SECOND, &subscription));
    text[0] = '\0';
    for (int i = 0; i < 5; i++) /* all five messages come to the client in one run of its channel */
        snprintf(text + strlen(text), sizeof text - strlen(text), "MSG s %llu 0\r\n\r\n",
                 (unsigned long long)subscription.number);
    domt_nats_send_to_client(peer, text);
    ck_assert_uint_eq(domt_nats_read_client_status().lost, 3);
    ck_assert_uint_eq(domt_nats_read_client_status().in_messages, 5);
    domt_nats_end_kit();
}

DOMT_SUITE(60)
