/* Servers of NATS that are silent, wrong or hostile, and clients of a good server whose messages
 * it forwards unchecked: the client disconnects and connects again, or goes on. */
#include "tests/nats/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Servers that are silent, wrong or hostile: the client disconnects, and waits before it connects
 * again. */

DOMT_TEST(silent_server_is_disconnected)
{
    static const domus_nats_options options = {.ping_interval_ns = SECOND, .pings_missed_max = 2};
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(&options, &listener);

    domt_nats_expect_text_from_client(peer, "PING\r\n");
    domt_nats_send_to_client(peer, "PONG\r\n");
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);
    domt_nats_expect_text_from_client(peer, "PING\r\nPING\r\n");
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ETIMEDOUT);
    ck_assert_uint_eq(domus_testkit_now_ns(domt_kit) - begun_ns, 3 * SECOND);
    ck_assert_uint_eq(domt_nats_read_client_status().stale, 1);
    (void)domt_nats_accept_client_login(listener);
    domt_nats_end_kit();
}

DOMT_TEST(server_that_never_completes_login_is_left)
{
    static const domus_nats_options options = {.connect_timeout_ns = SECOND};
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(&options);
    domus_peer *peer = domt_nats_accept_connection(listener);
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);

    domt_expect_success(domus_peer_expect_reset(peer, 10 * SECOND));
    ck_assert_uint_eq(domus_testkit_now_ns(domt_kit) - begun_ns, SECOND);
    domt_nats_expect_event(DOMUS_NATS_FAILED, -ETIMEDOUT);
    peer =
        domt_nats_accept_connection(listener); /* the second server sends INFO and then nothing */
    domt_nats_send_to_client(peer, INFO);
    domt_expect_success(domus_peer_expect_reset(peer, 10 * SECOND));
    domt_nats_expect_event(DOMUS_NATS_FAILED, -ETIMEDOUT);
    peer =
        domt_nats_accept_connection(listener); /* the third server sends a line that never ends */
    for (int i = 0; i < 20 && !domus_peer_has_end(peer); i++) {
        (void)domus_peer_send(peer, "I", 1);
        domt_nats_advance_kit_time(100 * MS);
    }
    domt_nats_expect_event(DOMUS_NATS_FAILED, -ETIMEDOUT);
    (void)domt_nats_accept_client_login(listener);
    ck_assert_uint_eq(domt_nats_read_client_status().failures, 3);
    domt_nats_end_kit();
}

DOMT_TEST(client_waits_before_reconnecting_to_closing_server)
{
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);

    for (int i = 0; i < 12; i++) {
        domus_peer *peer = domt_nats_accept_connection(listener);
        domus_peer_close(peer);
        domt_nats_expect_event(DOMUS_NATS_FAILED, -ECONNRESET);
    }
    ck_assert_uint_gt(domus_testkit_now_ns(domt_kit) - begun_ns, 25 * SECOND);
    begun_ns = domus_testkit_now_ns(domt_kit);
    /* The client's pause between attempts also grows if connections break after the login. */
    for (int i = 0; i < 3; i++) {
        domus_peer *peer = domt_nats_accept_client_login(listener);
        domus_peer_close(peer);
        domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    }
    ck_assert_uint_ge(domus_testkit_now_ns(domt_kit) - begun_ns, 15 * SECOND);
    domt_nats_end_kit();
}

/* The client closes when the server finishes sending; otherwise such a connection would last as
 * long as the server wants. */
DOMT_TEST(client_closes_when_server_finishes_sending)
{
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, &listener);
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);

    domus_peer_finish(peer);
    domt_nats_run_kit();
    domt_nats_publish_by_probe("a", "x");
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -ECONNRESET);
    ck_assert_uint_eq(domus_testkit_now_ns(domt_kit), begun_ns);
    peer = domt_nats_accept_client_login(listener);
    domt_nats_expect_text_from_client(peer, "PUB a 1\r\nx\r\n");
    domt_nats_end_kit();
}

/* Messages that a server sends before the login, and the error by which the client ends each of
 * these connections. */
DOMT_TEST(wrong_greeting_ends_the_connection)
{
    static const struct {
        const char *says;
        int error;
    } wrong[] = {
        {"HTTP/1.1 200 OK\r\n", -EPROTO},
        {"INFO\r\n", -EPROTO},
        {"INFO []\r\n", -EPROTO},
        {"INFO {\"max_payload\":\"x\"}\r\n", -EPROTO},
        {"INFO {\"tls_required\":true}\r\n", -EPROTONOSUPPORT},
        {"MSG a 1 2000\r\n", -EMSGSIZE},
        {"-ERR 'Authorization Violation'\r\n", -EACCES},
        {"-ERR 'maximum connections exceeded'\r\n", -ECONNREFUSED},
        {"INFO {}\r\n-ERR 'Authorization Violation'\r\n", -EACCES},
        {"INFO {}\r\nMSG a 1 99999999\r\n", -EMSGSIZE},
    };
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_nats_event event;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_peer *peer = domt_nats_accept_connection(listener);
        domt_nats_send_to_client(peer, wrong[i].says);
        do
            domt_expect_success(
                domus_probe_expect(domt_event_probe, &domus_nats_event_type, SECOND, &event));
        while (event.happening == DOMUS_NATS_ERROR);
        ck_assert_int_eq(event.happening, DOMUS_NATS_FAILED);
        ck_assert_msg(event.error == wrong[i].error, "%s %d", wrong[i].says, event.error);
    }
    (void)domt_nats_accept_client_login(listener);
    domt_nats_end_kit();
}

/* After the server has refused the client's user, the client waits for its longest pause before it
 * tries again. */
DOMT_TEST(client_with_refused_user_waits_longest_pause)
{
    static const domus_nats_options options = {.user = "u", .password = "p"};
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(&options);
    domus_peer *peer = domt_nats_accept_connection(listener);

    domt_nats_send_to_client(peer, INFO);
    ck_assert_ptr_nonnull(
        strstr(domt_nats_read_line_from_client(peer), "\"user\":\"u\",\"pass\":\"p\"}"));
    domt_nats_send_to_client(peer, "-ERR 'Authorization Violation'\r\n");
    domt_nats_expect_event(DOMUS_NATS_ERROR, -EACCES);
    domt_nats_expect_event(DOMUS_NATS_FAILED, -EACCES);
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);
    (void)domt_nats_accept_connection(listener);
    ck_assert_uint_ge(domus_testkit_now_ns(domt_kit) - begun_ns, 5 * SECOND);
    domt_nats_end_kit();
}

DOMT_TEST(error_of_server_is_reported_as_event)
{
    domus_peer_listener *listener;
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, &listener);
    domus_nats_event event;

    domt_nats_send_to_client(peer, "-ERR 'Permissions Violation for Subscription to \"a\"'\r\n");
    domt_expect_success(
        domus_probe_expect(domt_event_probe, &domus_nats_event_type, SECOND, &event));
    ck_assert_int_eq(event.happening, DOMUS_NATS_ERROR);
    ck_assert_str_eq(event.text, "Permissions Violation for Subscription to \"a\"");
    ck_assert(domt_nats_read_client_status().connected);
    domt_nats_send_to_client(peer, "-ERR 'User Authentication Expired'\r\n");
    domt_nats_expect_event(DOMUS_NATS_ERROR, -EACCES);
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -EACCES);
    ck_assert_uint_eq(domt_nats_read_client_status().errors, 2);
    peer = domt_nats_accept_client_login(listener);
    domt_nats_send_to_client(peer, "garbage\r\n");
    domt_nats_expect_event(DOMUS_NATS_DISCONNECTED, -EPROTO);
    domt_nats_end_kit();
}

/* A server sends PINGs without end and does not read the answers, so the client stops reading. */
DOMT_TEST(client_stops_reading_flood_of_pings)
{
    static char pings[60000];
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    for (size_t i = 0; i < sizeof pings; i += 6)
        memcpy(pings + i, "PING\r\n", 6);
    domus_peer_pause(peer);
    for (int i = 0; i < 100; i++) {
        domt_expect_success(domus_peer_send(peer, pings, sizeof pings));
        domt_nats_run_kit();
    }
    domus_peer_counts counts = domus_peer_count(peer);
    /* the client has stopped reading, so bytes wait at the server */
    ck_assert_uint_gt(counts.unsent, 4000000);
    ck_assert_uint_gt(domus_testkit_net_totals(domt_kit).received, 1000000);
    domus_peer_resume(peer);
    domt_nats_advance_kit_time(SECOND);
    ck_assert_uint_eq(domus_peer_count(peer).unsent, 0);
    domt_nats_end_kit();
}

/* --- stranger --------------------------------------------------------------------------------- */

/* Other clients of the same servers: a server forwards their messages unchecked, so no content of
 * such a message may end the connection of a subscriber. */

static domus_peer *peer;
static uint64_t number; /* number of the test's subscription, which stands in each message to it */

static void subscribe_logged_in_client(const domus_nats_options *options)
{
    peer = domt_nats_begin_with_logged_in_client(options, NULL);
    number = domt_nats_subscribe_by_probe("s.>", NULL, 0, 0);
    (void)domt_nats_read_line_from_client(peer);
}

/* Let the server deliver a message of the test's subscription with these headers and this
 * payload. */
static void deliver_message_with_headers(const char *headers, size_t size, const char *payload)
{
    char line[100];

    snprintf(line, sizeof line, "HMSG s.x %llu %zu %zu\r\n", (unsigned long long)number, size,
             size + strlen(payload));
    domt_nats_send_to_client(peer, line);
    domt_expect_success(domus_peer_send(peer, headers, size));
    domt_nats_send_to_client(peer, payload);
    domt_nats_send_to_client(peer, "\r\n");
}

DOMT_TEST(malformed_headers_are_delivered_unchanged)
{
    static const char *const blocks[] = {"abcd", "\r\n\r\n", "NATS/1.0 503\r\n", "NATS/9.0\r\n\r\n",
                                         "NATS/1.0x503\r\n\r\n"};

    subscribe_logged_in_client(NULL);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        domus_nats_message message;
        domus_slice name, value;
        uint32_t from = 0;

        deliver_message_with_headers(blocks[i], strlen(blocks[i]), "hi");
        domt_expect_success(
            domus_probe_expect(domt_probe, &domus_nats_message_type, SECOND, &message));
        ck_assert(domus_slice_equals(domus_nats_headers(&message), blocks[i], strlen(blocks[i])));
        ck_assert(domus_slice_equals(domus_nats_payload(&message), "hi", 2));
        ck_assert_uint_eq(message.status, 0);
        ck_assert_uint_eq(domus_nats_description(&message).size, 0);
        ck_assert_int_eq(domus_nats_header_next(&message, &from, &name, &value), -ENOENT);
        domus_nats_message_type.release(&message);
    }
    ck_assert(domt_nats_read_client_status().connected);
    domt_nats_end_kit();
}

/* A server limits headers only by the size of the whole message. */
DOMT_TEST(headers_may_take_the_whole_message_size)
{
    static char headers[200000];

    memset(headers, 'x', sizeof headers);
    memcpy(headers, "NATS/1.0\r\nA: ", 13);
    memcpy(headers + sizeof headers - 4, "\r\n\r\n", 4);
    subscribe_logged_in_client(NULL);
    deliver_message_with_headers(headers, sizeof headers, "hi");
    domt_nats_expect_message(domt_probe, "s.x", "hi", 0);
    ck_assert(domt_nats_read_client_status().connected);
    domt_nats_end_kit();
}

/* A line of 4096 bytes, which a server accepts from a publisher, is longer in the delivery, where
 * the server adds the subscription's number. */
DOMT_TEST(delivered_line_may_exceed_publishers_line)
{
    static char subject[5000], line[6000];

    memset(subject, 'y', 4085);
    memcpy(subject, "s.", 2);
    subscribe_logged_in_client(NULL);
    snprintf(line, sizeof line, "MSG %s %llu 2\r\nhi\r\n", subject, (unsigned long long)number);
    domt_nats_send_to_client(peer, line);
    domt_nats_expect_message(domt_probe, subject, "hi", 0);
    domt_nats_end_kit();
}

/* The server repeats the subject in its error, and any client may choose a subject. */
DOMT_TEST(text_of_subject_in_error_does_not_disconnect)
{
    subscribe_logged_in_client(NULL);
    domt_nats_send_to_client(
        peer, "-ERR 'Permissions Violation for Publish to \"authentication.x\"'\r\n");
    domt_nats_expect_event(DOMUS_NATS_ERROR, 0);
    domt_nats_send_to_client(
        peer, "-ERR 'Permissions Violation for Subscription to \"authorization\" using "
              "queue \"authentication\"'\r\n");
    domt_nats_expect_event(DOMUS_NATS_ERROR, 0);
    ck_assert(domt_nats_read_client_status().connected);
    domt_nats_end_kit();
}

DOMT_SUITE(60)
