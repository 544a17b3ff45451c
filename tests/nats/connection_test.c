/* Connections that break, servers that are missing, and slow servers: the client connects again,
 * waiting messages have a bound, and lost messages are reported. */
#include "tests/nats/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

DOMT_TEST(client_connects_and_subscribes_again)
{
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, &listener);
    char text[300];
    uint64_t one = domt_nats_subscribe_by_probe("a", NULL, 0, 1);
    uint64_t two = domt_nats_subscribe_by_probe("b", "q", 3, 2);

    snprintf(text, sizeof text, "MSG b %llu 1\r\nx\r\n", (unsigned long long)two);
    domt_nats_send_to_client(peer, text);
    domt_nats_expect_message(domt_probe, "b", "x", 2);
    domus_peer_reset(peer);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    ck_assert(!domt_nats_read_client_status().connected);
    /* This subscription is made while the client has no connection. */
    uint64_t three = domt_nats_subscribe_by_probe("c", NULL, 0, 3);
    peer = domt_nats_accept_client_login(listener);
    snprintf(text, sizeof text, "SUB a %llu\r\nSUB b q %llu\r\nUNSUB %llu 2\r\nSUB c %llu\r\n",
             (unsigned long long)one, (unsigned long long)two, (unsigned long long)two,
             (unsigned long long)three);
    domt_nats_expect_text_from_client(peer, text);
    snprintf(text, sizeof text, "MSG b %llu 1\r\ny\r\nMSG b %llu 1\r\nz\r\nMSG b %llu 1\r\nno\r\n",
             (unsigned long long)two, (unsigned long long)two, (unsigned long long)two);
    domt_nats_send_to_client(peer, text);
    domt_nats_expect_message(domt_probe, "b", "y", 2);
    domt_nats_expect_message(domt_probe, "b", "z", 2);
    domus_nats_status status = domt_nats_read_client_status();
    ck_assert_uint_eq(status.connects, 2);
    ck_assert_uint_eq(status.reconnects, 1);
    ck_assert_uint_eq(status.subscriptions, 2);
    domt_nats_end_kit();
}

DOMT_TEST(sent_requests_fail_and_waiting_ones_are_sent)
{
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, &listener);

    domt_nats_request_by_probe("a", "x", 0);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_nats_run_kit();
    domus_peer_reset(peer);
    domt_nats_expect_failed_ask(-EPIPE);
    domt_nats_expect_failed_ask(-EPIPE);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    domt_nats_publish_by_probe("a", "1");
    domt_nats_request_by_probe("b", "2", 0);
    domt_nats_publish_by_probe("c", "3");
    /* This request reaches its time-out before the client has a connection. */
    domt_nats_request_by_probe("d", "4", 10 * MS);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_nats_run_kit();
    ck_assert_uint_eq(domt_nats_read_client_status().waiting, 5);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 3);
    ck_assert_uint_eq(domt_nats_read_client_status().waiting_bytes, 5 * 320 + 2);
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    domt_nats_advance_kit_time(10 * MS);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 2);
    /* The bytes of the request that has timed out no longer count as waiting. */
    ck_assert_uint_eq(domt_nats_read_client_status().waiting_bytes, 4 * 320 + 1);
    peer = domt_nats_accept_client_login(listener);
    /* On the new connection the client first sends the messages that expect no answer. */
    domt_nats_expect_text_from_client(peer, "PUB a 1\r\n1\r\nPUB c 1\r\n3\r\n");
    ck_assert_int_eq(strncmp(domt_nats_read_line_from_client(peer), "PUB b _INBOX.", 13), 0);
    domt_nats_expect_text_from_client(peer, "2\r\nPING\r\n");
    domt_nats_send_to_client(peer, "PONG\r\n");
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    domus_nats_status status = domt_nats_read_client_status();
    ck_assert_uint_eq(status.waiting + status.waiting_bytes, 0);
    ck_assert_uint_eq(status.inflight, 0);
    domt_nats_end_kit();
}

DOMT_TEST(client_that_fails_fast_refuses_asks_unconnected)
{
    static const domus_nats_options options = {.fails_fast = true};

    domt_nats_make_kit();
    domt_nats_open_client(&options);
    domt_nats_request_by_probe("a", "x", 0);
    domt_nats_expect_failed_ask(-ENOTCONN);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_nats_expect_failed_ask(-ENOTCONN);
    domt_nats_publish_by_probe("a", "waits");
    ck_assert_uint_eq(domt_nats_read_client_status().waiting, 1);
    domt_nats_end_kit();
}

DOMT_TEST(waiting_bytes_have_a_limit)
{
    static const domus_nats_options options = {.buffer_max = 4096, .inflight_max = 8};
    char large[400];
    domus_nats_publish publish;

    domt_nats_make_kit();
    domt_nats_open_client(&options); /* no server listens, so all messages wait in the client */
    memset(large, 'x', 376);
    /* Five publications of 376 bytes and a small one take 6 * 320 + 5 * 376 = 3800 of the 4096
     * bytes that may wait in the client. */
    large[376] = '\0';
    for (int i = 0; i < 5; i++)
        domt_nats_publish_by_probe("a", large);
    publish = domt_nats_make_publication("a", large);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    /* this message of 320 + 376 bytes would make 4176 with the five that wait */
    domt_nats_expect_failed_ask(-ENOBUFS);
    domt_nats_publish_by_probe("a", "small");
    ck_assert_uint_eq(domt_nats_read_client_status().waiting_bytes, 3800);
    large[296] = '\0';
    /* this message of 320 + 296 bytes does not fit behind the 3800 that wait */
    domt_nats_publish_by_probe("a", large);
    domt_nats_request_by_probe("a", "x", 0);
    domt_nats_expect_failed_ask(-ENOBUFS);
    ck_assert_uint_eq(domt_nats_read_client_status().refused, 3);
    ck_assert_uint_eq(domt_nats_read_client_status().waiting, 6);
    domt_nats_end_kit();
}

DOMT_TEST(waiting_asks_have_a_limit)
{
    static const domus_nats_options options = {.inflight_max = 8};

    domt_nats_make_kit();
    domt_nats_open_client(&options); /* no server listens, so all requests wait in the client */
    for (int i = 0; i < 8; i++)
        domt_nats_request_by_probe("a", "x", 0);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 8);
    domt_nats_request_by_probe("a", "x", 0);
    domt_nats_expect_failed_ask(-ENOBUFS);
    for (int i = 0; i < 8; i++)
        domt_nats_expect_failed_ask(-ETIMEDOUT);
    domt_nats_end_kit();
}

DOMT_TEST(buffer_of_waiting_messages_can_be_filled)
{
    static const domus_nats_options options = {.buffer_max = 4096};
    char text[4000];
    domus_nats_publish publish;

    domt_nats_make_kit();
    domt_nats_open_client(&options);
    memset(text, 'x', sizeof text);
    text[3777] = '\0';
    publish = domt_nats_make_publication("a", text);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_nats_expect_failed_ask(-ENOBUFS);
    text[3776] = '\0';
    domt_nats_publish_by_probe("a", text);
    ck_assert_uint_eq(domt_nats_read_client_status().waiting_bytes, 4096);
    domt_nats_end_kit();
}

/* --- servers ---------------------------------------------------------------------------------- */

DOMT_TEST(pause_between_connects_doubles_up_to_its_limit)
{
    static const domus_nats_options options = {.backoff_min_ns = 100 * MS,
                                               .backoff_max_ns = 800 * MS};
    static const uint64_t most_ms[] = {100, 200, 400, 800, 800};

    domt_nats_make_kit();
    domt_nats_open_client(
        &options); /* no server listens at the address that the client tries first */
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(domt_nats_read_client_status().failures, 1 + i);
        ck_assert_uint_eq(domt_nats_read_client_status().left_out, 1);
        domt_nats_advance_kit_time(most_ms[i] / 2 * MS - 2 * MS);
        ck_assert_uint_eq(domt_nats_read_client_status().failures, 1 + i);
        uint64_t begun_ns = domus_testkit_now_ns(domt_kit);
        while (domt_nats_read_client_status().failures == 1 + i)
            domt_nats_advance_kit_time(MS);
        ck_assert_uint_le(domus_testkit_now_ns(domt_kit) - begun_ns, most_ms[i] / 2 * MS + 5 * MS);
    }
    for (int i = 0; i < 6; i++)
        domt_nats_expect_event(DOMUS_NATS_FAILED, -ECONNREFUSED);
    domt_nats_end_kit();
}

DOMT_TEST(client_connects_to_another_server)
{
    static const domus_nats_options options = {
        .servers = " nats://10.0.0.1:1 ,10.0.0.2,10.0.0.3:3,[::1],10.0.0.3:3,nats://10.0.0.2:4222",
        .seed = 5};

    domt_nats_make_kit();
    domus_peer_listener *listener = domt_nats_listen_as_server("10.0.0.2:4222");
    domt_nats_open_client(&options);
    domus_peer *peer = domt_nats_accept_connection(listener);
    domt_nats_send_to_client(peer, INFO);
    ck_assert_int_eq(strncmp(domt_nats_read_line_from_client(peer), "CONNECT {", 9), 0);
    domt_nats_expect_text_from_client(peer, "PING\r\n");
    domt_nats_send_to_client(peer, "PONG\r\n");
    domus_nats_status status = domt_nats_read_client_status();
    ck_assert(status.connected);
    ck_assert_str_eq(status.server, "10.0.0.2:4222");
    ck_assert_uint_eq(status.servers, 4);
    domt_nats_end_kit();
}

DOMT_TEST(client_connects_to_servers_named_by_info)
{
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer_listener *other = domt_nats_listen_as_server("10.0.0.8:1");
    domus_peer *peer = domt_nats_accept_connection(listener);

    (void)domt_nats_let_client_log_in(peer,
                                      "INFO {\"connect_urls\":[\"10.0.0.8:1\",\"" PLACE
                                      "\",\"user@x:1\",\"a b\",\"unix:/run/x\",\"a:0\"]}\r\n");
    ck_assert_uint_eq(domt_nats_read_client_status().servers, 2);
    domus_peer_listener_close(listener);
    domus_peer_reset(peer);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    peer = domt_nats_accept_connection(other);
    domt_nats_send_to_client(peer, INFO);
    ck_assert_int_eq(strncmp(domt_nats_read_line_from_client(peer), "CONNECT {", 9), 0);
    domt_nats_end_kit();
}

/* The servers that INFO names do not displace those of the options. */
DOMT_TEST(known_servers_have_a_limit)
{
    char text[2000] = "INFO {\"connect_urls\":[\"h:99\"";
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer *peer = domt_nats_accept_connection(listener);

    for (int i = 1; i < 50; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",\"h:%d\"", i);
    snprintf(text + strlen(text), sizeof text - strlen(text), "]}\r\n");
    (void)domt_nats_let_client_log_in(peer, text);
    ck_assert_uint_eq(domt_nats_read_client_status().servers, DOMUS_NATS_SERVERS_MAX);
    ck_assert_str_eq(domt_nats_read_client_status().server, PLACE);
    domt_nats_end_kit();
}

/* Servers that INFO no longer names are forgotten. Where addresses change, trying the old ones
 * would delay each reconnect. */
DOMT_TEST(servers_info_no_longer_names_are_forgotten)
{
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer *peer = domt_nats_accept_connection(listener);
    domus_nats_event event = {.error = 0};

    (void)domt_nats_let_client_log_in(
        peer, "INFO {\"connect_urls\":[\"10.0.0.8:1\",\"10.0.0.7:1\"]}\r\n");
    for (int i = 0; i < 10 && domt_nats_read_client_status().failures == 0; i++) {
        domus_peer_reset(peer);
        domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
        /* Between its attempts the client also tries the other addresses that INFO named, where
         * no server listens. */
        do {
            peer = NULL;
            (void)domus_peer_accept(listener, 100 * MS, &peer);
        } while (peer == NULL);
        while (domus_probe_expect(domt_event_probe, &domus_nats_event_type, 0, &event) == 0)
            ck_assert_int_eq(event.happening, DOMUS_NATS_FAILED);
        (void)domt_nats_let_client_log_in(peer, NULL);
    }
    ck_assert_uint_eq(domt_nats_read_client_status().servers, 3);
    domt_nats_send_to_client(peer, "INFO {\"connect_urls\":[\"10.0.0.6:1\",\"" PLACE "\"]}\r\n");
    uint32_t failed = domt_nats_read_client_status().failures != 0;
    ck_assert_uint_le(domt_nats_read_client_status().servers, 4 - failed);
    ck_assert_str_eq(domt_nats_read_client_status().server, PLACE);
    domt_nats_end_kit();
}

DOMT_TEST(lame_duck_mode_is_reported_as_event)
{
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    domt_nats_send_to_client(peer, "INFO {\"ldm\":true,\"headers\":true}\r\n");
    domt_nats_expect_event(DOMUS_NATS_LAME_DUCK, 0);
    ck_assert(domt_nats_read_client_status().connected);
    ck_assert_uint_eq(domt_nats_read_client_status().left_out, 1);
    domt_nats_end_kit();
}

/* A server in lame duck mode closes its connections one after the other, up to minutes later. */
DOMT_TEST(client_avoids_closed_lame_duck_server)
{
    static const domus_nats_options options = {.servers = PLACE ",10.0.0.8:1",
                                               .ping_interval_ns = 3600 * SECOND};
    domus_peer_listener *listeners[2];
    domus_peer *peer;

    domt_nats_make_kit();
    listeners[0] = domt_nats_listen_as_server(PLACE);
    listeners[1] = domt_nats_listen_as_server("10.0.0.8:1");
    domt_nats_open_client(&options);
    int at = domus_peer_accept(listeners[0], SECOND, &peer) == 0 ? 0 : 1;
    if (at == 1)
        peer = domt_nats_accept_connection(listeners[1]);
    for (int i = 0; i < 8; i++) {
        (void)domt_nats_let_client_log_in(peer, NULL);
        domt_nats_send_to_client(peer, "INFO {\"ldm\":true}\r\n");
        domt_nats_expect_event(DOMUS_NATS_LAME_DUCK, 0);
        domt_nats_advance_kit_time(60 * SECOND);
        domus_peer_reset(peer);
        domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
        at = 1 - at;
        domt_expect_success(domus_peer_accept(listeners[at], SECOND, &peer));
    }
    domt_nats_end_kit();
}

/* A burst of requests is queued in the client, which hands only a few of them to the connection at
 * a time. */
DOMT_TEST(burst_of_requests_is_queued_in_client)
{
    static const char data[256 * 1024];
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer *peer = domt_nats_accept_connection(listener);
    domus_probe *probes[20];

    (void)domt_nats_let_client_log_in(peer, "INFO {\"max_payload\":1048576}\r\n");
    domus_peer_pause(peer);
    for (int i = 0; i < 20; i++) {
        domus_nats_publish publish = {.used = 0};
        domt_expect_success(domus_probe_new(domt_kit, &probes[i]));
        ck_assert_int_eq(domus_nats_set_subject(&publish, "a"), 0);
        ck_assert_int_eq(domus_nats_set_payload(&publish, data, sizeof data), 0);
        domt_expect_success(
            domus_probe_ask(probes[i], domt_nats, &domus_nats_request_type, &publish));
    }
    domt_nats_advance_kit_time(10 * MS);
    /* The connection's socket has taken only a few of the requests, because the server does not
     * read. */
    ck_assert_uint_le(domt_nats_read_client_status().out_messages, 5);
    ck_assert_uint_ge(domt_nats_read_client_status().waiting, 15);
    domus_peer_resume(peer);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(strncmp(domt_nats_read_line_from_client(peer), "PUB a _INBOX.", 13), 0);
        domt_expect_success(domus_peer_expect(peer, data, sizeof data, SECOND));
        domt_nats_expect_text_from_client(peer, "\r\n");
    }
    domt_nats_end_kit();
}

/* --- slow servers ----------------------------------------------------------------------------- */

/* A server does not read: messages wait in the client, up to the bound. They are sent when the
 * server reads again, or over the next connection. */
DOMT_TEST(messages_wait_while_server_does_not_read)
{
    static const domus_nats_options options = {.buffer_max = 2 * 1024 * 1024};
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(&options);
    domus_peer *peer = domt_nats_accept_connection(listener);
    static char payload[30001];
    uint32_t published = 0;

    (void)domt_nats_let_client_log_in(peer, "INFO {\"max_payload\":100000}\r\n");
    memset(payload, 'x', sizeof payload - 1);
    domus_peer_pause(peer);
    while (domt_nats_read_client_status().refused == 0) {
        domt_nats_publish_by_probe("a", payload);
        published++;
        ck_assert_uint_lt(published, 200);
    }
    published--;
    domus_nats_status status = domt_nats_read_client_status();
    ck_assert_uint_eq(status.waiting, 2 * 1024 * 1024 / 30320);
    ck_assert_uint_lt(status.out_messages, published);
    ck_assert_uint_eq(status.out_messages + status.waiting, published);
    domus_peer_resume(peer);
    for (uint32_t i = 0; i < published; i++) {
        ck_assert_str_eq(domt_nats_read_line_from_client(peer), "PUB a 30000");
        (void)domt_nats_read_line_from_client(peer);
    }
    ck_assert_uint_eq(domt_nats_read_client_status().waiting, 0);
    domus_peer_pause(peer);
    for (uint32_t i = 0; i < published; i++)
        domt_nats_publish_by_probe("a", payload);
    status = domt_nats_read_client_status();
    ck_assert_uint_gt(status.waiting, 10);
    domus_peer_reset(peer);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    ck_assert_uint_gt(domt_nats_read_client_status().lost_bytes, 100000);
    peer = domt_nats_accept_connection(listener);
    (void)domt_nats_let_client_log_in(peer, "INFO {\"max_payload\":30000}\r\n");
    for (uint32_t i = 0; i < status.waiting; i++) {
        ck_assert_str_eq(domt_nats_read_line_from_client(peer), "PUB a 30000");
        (void)domt_nats_read_line_from_client(peer);
    }
    domt_expect_success(domus_peer_expect_nothing(peer, SECOND));
    domt_nats_end_kit();
}

/* Messages that are published while others wait for a slow connection are sent after them. */
DOMT_TEST(messages_keep_order_on_slow_connection)
{
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer *peer = domt_nats_accept_connection(listener);
    static char payload[30001];
    domus_nats_publish publish;
    char number[8];

    (void)domt_nats_let_client_log_in(peer, "INFO {\"max_payload\":100000}\r\n");
    memset(payload, 'x', sizeof payload - 1);
    domus_peer_pause(peer);
    for (uint32_t i = 0; i < 200; i++) {
        if (i == 100)
            domus_peer_resume(peer);
        snprintf(number, sizeof number, "%05u", i);
        memcpy(payload, number, 5);
        publish = domt_nats_make_publication("a", payload);
        domt_expect_success(
            domus_probe_send(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
        for (int steps = 0; steps < 10; steps++)
            (void)domus_testkit_step(domt_kit);
    }
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(number, sizeof number, "%05u", i);
        ck_assert_str_eq(domt_nats_read_line_from_client(peer), "PUB a 30000");
        ck_assert_int_eq(strncmp(domt_nats_read_line_from_client(peer), number, 5), 0);
    }
    domt_nats_end_kit();
}

DOMT_SUITE(60)
