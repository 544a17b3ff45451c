/* A client whose server is a script: the bytes that each verb sends to the server, and the results
 * of the server's answers. */
#include "protocols/nats/state.h"
#include "tests/nats/world.h"

#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DOMT_TEST(client_logs_in_and_publishes)
{
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    domt_nats_publish_by_probe("a.b", "hello");
    domt_nats_expect_text_from_client(peer, "PUB a.b 5\r\nhello\r\n");
    domus_nats_publish asked = domt_nats_make_publication("a", "x");
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &asked));
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    domt_nats_expect_text_from_client(peer, "PUB a 1\r\nx\r\n");
    domus_nats_status status = domt_nats_read_client_status();
    ck_assert(status.connected && status.has_headers && !status.has_jetstream);
    ck_assert_uint_eq(status.max_payload, 1000);
    ck_assert_uint_eq(status.connects, 1);
    ck_assert_uint_eq(status.reconnects + status.failures + status.refused, 0);
    ck_assert_uint_eq(status.out_messages, 2);
    ck_assert_uint_eq(status.out_bytes, 6);
    ck_assert_uint_gt(status.rtt_ns, 0);
    ck_assert_str_eq(status.server, PLACE);
    ck_assert_str_eq(status.server_name, "n");
    ck_assert_str_eq(status.version, "2.9");
    domt_nats_end_kit();
}

DOMT_TEST(publication_the_server_cannot_take_is_refused)
{
    char payload[1002];
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    memset(payload, 'x', 1001);
    payload[1001] = '\0';
    domt_nats_publish_by_probe("a", payload);
    domt_nats_request_by_probe("a", payload, 0);
    domt_nats_expect_failed_ask(-EMSGSIZE);
    domus_nats_publish asked = domt_nats_make_publication("a", payload);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &asked));
    domt_nats_expect_failed_ask(-EMSGSIZE);
    asked = (domus_nats_publish){.used = 0};
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &asked));
    domt_nats_expect_failed_ask(-EINVAL);
    asked = domt_nats_make_publication("a", "");
    ck_assert_int_eq(domus_nats_set_reply(&asked, "r"), 0);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_request_type, &asked));
    domt_nats_expect_failed_ask(-EINVAL);
    payload[1000] = '\0';
    domt_nats_publish_by_probe("a", payload);
    ck_assert_str_eq(domt_nats_read_line_from_client(peer), "PUB a 1000");
    ck_assert_uint_eq(domt_nats_read_client_status().refused, 5);
    domt_nats_end_kit();
}

DOMT_TEST(headers_go_only_to_servers_that_know_them)
{
    domus_nats_publish publish = domt_nats_make_publication("a", "x");
    domus_appender headers = {0};
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer *peer = domt_nats_accept_connection(listener);

    (void)domt_nats_let_client_log_in(peer, "INFO {}\r\n");
    ck_assert_int_eq(domus_nats_headers_add(&headers, "A", "b"), 0);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.headers), 0);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_nats_expect_failed_ask(-EOPNOTSUPP);
    /* A new INFO says that the server supports headers from now on. */
    domt_nats_send_to_client(peer, "INFO {\"headers\":true}\r\n");
    publish = domt_nats_make_publication("a", "x");
    ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.headers), 0);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    domt_nats_expect_text_from_client(peer, "HPUB a 12 13\r\nNATS/1.0\r\n\r\nx\r\n");
    domt_nats_end_kit();
}

/* --- requests --------------------------------------------------------------------------------- */

/* Read the line of a request; return its reply subject. */
static const char *read_reply_subject_of_request(domus_peer *peer, const char *begin)
{
    static char replies[4][100];
    static unsigned turn;
    char *reply = replies[turn++ % 4];
    const char *line = domt_nats_read_line_from_client(peer);

    ck_assert_msg(strncmp(line, begin, strlen(begin)) == 0, "%s", line);
    ck_assert_int_eq(sscanf(line + strlen(begin), "%99s", reply), 1);
    return reply;
}

static void send_answer_to_client(domus_peer *peer, const char *reply, const char *payload)
{
    char text[400];

    snprintf(text, sizeof text, "MSG %s 0 %zu\r\n%s\r\n", reply, strlen(payload), payload);
    domt_nats_send_to_client(peer, text);
}

DOMT_TEST(request_gets_its_answer)
{
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    domt_nats_request_by_probe("a", "one", 0);
    const char *one = read_reply_subject_of_request(peer, "PUB a ");
    domt_nats_expect_text_from_client(peer, "one\r\n");
    domt_nats_request_by_probe("b", "two", 0);
    const char *two = read_reply_subject_of_request(peer, "PUB b ");
    domt_nats_expect_text_from_client(peer, "two\r\n");
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 2);
    send_answer_to_client(peer, two, "2");
    domt_nats_expect_message(domt_probe, two, "2", 0);
    send_answer_to_client(peer, one, "1");
    domt_nats_expect_message(domt_probe, one, "1", 0);
    send_answer_to_client(peer, one, "late");
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 0);
    ck_assert_uint_eq(domt_nats_read_client_status().unknown, 1);
    domt_nats_request_by_probe("c", "",
                               0); /* this request takes the slot of one that was answered */
    const char *three = read_reply_subject_of_request(peer, "PUB c ");
    domt_nats_expect_text_from_client(peer, "\r\n");
    send_answer_to_client(peer, two, "late");
    send_answer_to_client(peer, one, "late");
    send_answer_to_client(peer, three, "3");
    domt_nats_expect_message(domt_probe, three, "3", 0);
    ck_assert_uint_eq(domt_nats_read_client_status().unknown, 3);
    domt_expect_success(domus_probe_expect_nothing(domt_probe, 20 * SECOND));
    domt_nats_end_kit();
}

DOMT_TEST(request_without_responder_fails)
{
    char text[200];
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    domt_nats_request_by_probe("a", "x", 0);
    const char *reply = read_reply_subject_of_request(peer, "PUB a ");
    domt_nats_expect_text_from_client(peer, "x\r\n");
    snprintf(text, sizeof text, "HMSG %s 0 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", reply);
    domt_nats_send_to_client(peer, text);
    domt_nats_expect_failed_ask(-ECONNREFUSED);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 0);
    domt_nats_end_kit();
}

DOMT_TEST(request_fails_at_its_timeout)
{
    static const domus_nats_options options = {.request_timeout_ns = 300 * MS};
    domus_peer *peer = domt_nats_begin_with_logged_in_client(&options, NULL);
    uint64_t begun_ns = domus_testkit_now_ns(domt_kit);

    domt_nats_request_by_probe("a", "x", 0);
    const char *reply = read_reply_subject_of_request(peer, "PUB a ");
    domt_nats_expect_text_from_client(peer, "x\r\n");
    domt_nats_request_by_probe("b", "x", 100 * MS);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 2);
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    ck_assert_uint_eq(domus_testkit_now_ns(domt_kit) - begun_ns, 100 * MS);
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    ck_assert_uint_eq(domus_testkit_now_ns(domt_kit) - begun_ns, 300 * MS);
    send_answer_to_client(peer, reply, "late");
    domt_nats_advance_kit_time(20 * MS);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 0);
    ck_assert_uint_eq(domt_nats_read_client_status().unknown, 1);
    /* this request has a longer time-out than the client's default */
    domt_nats_request_by_probe("a", "x", 2 * SECOND);
    domt_expect_success(domus_probe_expect_nothing(domt_probe, 1900 * MS));
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    domt_nats_end_kit();
}

DOMT_TEST(requests_under_way_have_a_limit)
{
    static const domus_nats_options options = {.inflight_max = 100};
    domus_peer *peer = domt_nats_begin_with_logged_in_client(&options, NULL);

    for (int i = 0; i < 100; i++)
        domt_nats_request_by_probe("a", "x", 0);
    domt_nats_request_by_probe("a", "x", 0);
    domt_nats_expect_failed_ask(-ENOBUFS);
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_nats_expect_failed_ask(-ENOBUFS);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 100);
    const char *reply = read_reply_subject_of_request(peer, "PUB a ");
    send_answer_to_client(peer, reply, "1");
    domt_nats_expect_message(domt_probe, reply, "1", 0);
    domt_nats_request_by_probe("a", "x", 0);
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 100);
    for (int i = 0; i < 100; i++)
        domt_nats_expect_failed_ask(-ETIMEDOUT);
    domt_nats_end_kit();
}

/* Subjects that match the inbox and are no replies of this client. */
DOMT_TEST(wrong_replies_are_delivered_to_nobody)
{
    domus_peer_listener *listener = domt_nats_begin_with_server_and_client(NULL);
    domus_peer *peer = domt_nats_accept_connection(listener);
    const char *inbox = domt_nats_let_client_log_in(peer, NULL);
    static const char *const tails[] = {"",
                                        "0",
                                        "00000001ffff",
                                        "00000001000g",
                                        "0000000100000",
                                        "ffffffffffff",
                                        "00000001FFFF",
                                        "000000010040"};
    char subject[200];

    domt_nats_request_by_probe("a", "x", 0);
    const char *reply = read_reply_subject_of_request(peer, "PUB a ");
    ck_assert_str_eq(reply + strlen(inbox), "000000010000");
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        snprintf(subject, sizeof subject, "%s%s", inbox, tails[i]);
        send_answer_to_client(peer, subject, "x");
    }
    snprintf(subject, sizeof subject, "_INBOX.%s", reply + 7);
    subject[8] = (char)(subject[8] + 1);
    send_answer_to_client(peer, subject, "x");
    ck_assert_uint_eq(domt_nats_read_client_status().unknown, 9);
    send_answer_to_client(peer, reply, "x");
    domt_nats_expect_message(domt_probe, reply, "x", 0);
    domt_nats_end_kit();
}

/* --- flushes ---------------------------------------------------------------------------------- */

DOMT_TEST(flush_is_answered_after_earlier_publications)
{
    domus_nats_publish publish = domt_nats_make_publication("a", "x");
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    for (int i = 0; i < 3; i++)
        domt_expect_success(
            domus_probe_send(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    domt_nats_expect_text_from_client(
        peer, "PUB a 1\r\nx\r\nPUB a 1\r\nx\r\nPUB a 1\r\nx\r\nPING\r\nPING\r\n");
    domt_expect_success(domus_probe_expect_nothing(domt_probe, SECOND));
    domt_nats_send_to_client(peer, "PONG\r\n");
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    domt_expect_success(domus_probe_expect_nothing(domt_probe, SECOND));
    /* the server sends two PONGs more than there are flushes; they answer none */
    domt_nats_send_to_client(peer, "PONG\r\nPONG\r\nPONG\r\n");
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    domt_expect_success(
        domus_probe_ask_within(domt_probe, domt_nats, &domus_nats_flush_type, NULL, SECOND));
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    /* The PONG for this flush comes after its time-out, and is not taken as the answer of the
     * next flush. */
    domt_nats_expect_failed_ask(-ETIMEDOUT);
    domt_nats_send_to_client(peer, "PONG\r\n");
    domt_expect_success(domus_probe_expect_nothing(domt_probe, SECOND));
    domt_nats_send_to_client(peer, "PONG\r\n");
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    ck_assert_uint_eq(domt_nats_read_client_status().inflight, 0);
    domt_nats_end_kit();
}

/* The test has more publications before the flush than one run of the client handles. */
DOMT_TEST(flush_is_sent_after_many_publications)
{
    domus_nats_publish publish = domt_nats_make_publication("a", "x");
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);

    for (int i = 0; i < 3000; i++)
        domt_expect_success(
            domus_probe_send(domt_probe, domt_nats, &domus_nats_publish_type, &publish));
    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_flush_type, NULL));
    for (int i = 0; i < 3000; i++)
        domt_nats_expect_text_from_client(peer, "PUB a 1\r\nx\r\n");
    domt_nats_expect_text_from_client(peer, "PING\r\n");
    domt_nats_end_kit();
}

/* --- subscriptions ---------------------------------------------------------------------------- */

static void send_message_to_subscription(domus_peer *peer, const char *subject, uint64_t number,
                                         const char *payload)
{
    char text[300];

    snprintf(text, sizeof text, "MSG %s %llu %zu\r\n%s\r\n", subject, (unsigned long long)number,
             strlen(payload), payload);
    domt_nats_send_to_client(peer, text);
}

static void expect_sent_text_with_number(domus_peer *peer, const char *format, uint64_t number)
{
    char text[200];

    snprintf(text, sizeof text, format, (unsigned long long)number);
    domt_nats_expect_text_from_client(peer, text);
}

static void ask_to_unsubscribe(uint64_t number, uint64_t max)
{
    domus_nats_unsubscribe end = {.number = number, .messages_max = max};

    domt_expect_success(domus_probe_ask(domt_probe, domt_nats, &domus_nats_unsubscribe_type, &end));
}

DOMT_TEST(messages_come_to_their_subscriber_in_order)
{
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);
    uint64_t one = domt_nats_subscribe_by_probe("a.*", NULL, 0, 5);
    uint64_t two = domt_nats_subscribe_by_probe("b", "q", 0, 6);

    expect_sent_text_with_number(peer, "SUB a.* %llu\r\n", one);
    expect_sent_text_with_number(peer, "SUB b q %llu\r\n", two);
    send_message_to_subscription(peer, "a.x", one, "1");
    send_message_to_subscription(peer, "b", two, "2");
    send_message_to_subscription(peer, "a.y", one, "3");
    domt_nats_expect_message(domt_probe, "a.x", "1", 5);
    domt_nats_expect_message(domt_probe, "b", "2", 6);
    domt_nats_expect_message(domt_probe, "a.y", "3", 5);
    ask_to_unsubscribe(one, 0);
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    expect_sent_text_with_number(peer, "UNSUB %llu\r\n", one);
    /* the server had sent this message before it read the UNSUB */
    send_message_to_subscription(peer, "a.z", one, "4");
    ask_to_unsubscribe(one, 0);
    domt_nats_expect_failed_ask(-ENOENT);
    /* This subscription takes the client's place of the ended subscription `one`, and has another
     * number. */
    uint64_t three = domt_nats_subscribe_by_probe("c", NULL, 0, 7);
    ck_assert_uint_ne(three, one);
    send_message_to_subscription(peer, "a.z", one, "5");
    send_message_to_subscription(peer, "c", three, "6");
    domt_nats_expect_message(domt_probe, "c", "6", 7);
    send_message_to_subscription(peer, "d", 12345678, "7");
    domus_nats_status status = domt_nats_read_client_status();
    ck_assert_uint_eq(status.unknown, 3);
    ck_assert_uint_eq(status.subscriptions, 2);
    ck_assert_uint_eq(status.in_messages, 7);
    ck_assert_uint_eq(status.in_bytes, 7);
    domt_nats_end_kit();
}

DOMT_TEST(subscription_ends_after_its_number_of_messages)
{
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);
    uint64_t number = domt_nats_subscribe_by_probe("a", NULL, 2, 0);

    expect_sent_text_with_number(peer, "SUB a %llu\r\n", number);
    expect_sent_text_with_number(peer, "UNSUB %llu 2\r\n", number);
    for (int i = 0; i < 3; i++)
        send_message_to_subscription(peer, "a", number, "x");
    domt_nats_expect_message(domt_probe, "a", "x", 0);
    domt_nats_expect_message(domt_probe, "a", "x", 0);
    ck_assert_uint_eq(domt_nats_read_client_status().subscriptions, 0);
    ck_assert_uint_eq(domt_nats_read_client_status().unknown, 1);
    number = domt_nats_subscribe_by_probe("b", NULL, 0, 0);
    expect_sent_text_with_number(peer, "SUB b %llu\r\n", number);
    send_message_to_subscription(peer, "b", number, "1");
    ask_to_unsubscribe(number, 3);
    expect_sent_text_with_number(peer, "UNSUB %llu 3\r\n", number);
    send_message_to_subscription(peer, "b", number, "2");
    ck_assert_uint_eq(domt_nats_read_client_status().subscriptions, 1);
    /* Two messages have come already, so an unsubscribe after two messages ends the subscription
     * at once. */
    ask_to_unsubscribe(number, 2);
    expect_sent_text_with_number(peer, "UNSUB %llu\r\n", number);
    ck_assert_uint_eq(domt_nats_read_client_status().subscriptions, 0);
    domt_nats_end_kit();
}

DOMT_TEST(subscription_ends_when_subscriber_ends)
{
    domus_nats_subscribe subscribe;
    domus_nats_subscription subscription[3];
    domus_probe *others[2];
    domus_peer *peer = domt_nats_begin_with_logged_in_client(NULL, NULL);
    char text[200];

    for (int i = 0; i < 2; i++)
        domt_expect_success(domus_probe_new(domt_kit, &others[i]));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_nats_subscribe_make("a", NULL, &subscribe), 0);
        if (i == 2) /* an actor may make a subscription whose messages go to another actor */
            subscribe.to = domus_probe_address(others[0]);
        domus_probe *asker = i == 2 ? domt_probe : others[i];
        domt_expect_success(
            domus_probe_ask(asker, domt_nats, &domus_nats_subscribe_type, &subscribe));
        domt_expect_success(
            domus_probe_expect(asker, &domus_nats_subscription_type, SECOND, &subscription[i]));
        expect_sent_text_with_number(peer, "SUB a %llu\r\n", subscription[i].number);
    }
    send_message_to_subscription(peer, "a", subscription[2].number, "x");
    domt_nats_expect_message(others[0], "a", "x", 0);
    ck_assert_int_eq(
        domus_outside_stop(domus_testkit_system(domt_kit), domus_probe_address(others[0])), 0);
    snprintf(text, sizeof text, "UNSUB %llu\r\nUNSUB %llu\r\n",
             (unsigned long long)subscription[2].number,
             (unsigned long long)subscription[0].number);
    domt_nats_expect_text_from_client(peer, text);
    send_message_to_subscription(peer, "a", subscription[1].number, "y");
    domt_nats_expect_message(others[1], "a", "y", 0);
    ck_assert_uint_eq(domt_nats_read_client_status().subscriptions, 1);
    domt_nats_end_kit();
}

/* Mount a client whose first place for subscriptions has been used as often as the counter of the
 * place allows. */
static int mount_client_with_worn_out_place(domus_stack *stack, void *self)
{
    domi_nats_client *client = self;

    client->self = domus_self(stack);
    client->options.subscriptions_max = 4;
    client->finished = DOMI_NATS_NONE;
    client->places = 16;
    client->places_used = 1; /* place 0, of the client's own inbox, has no subscription now */
    client->subscriptions = calloc(16, sizeof *client->subscriptions);
    client->owners = malloc(16 * sizeof *client->owners);
    if (client->subscriptions == NULL || client->owners == NULL)
        return -ENOMEM;
    memset(client->owners, 0xff, 16 * sizeof *client->owners);
    client->subscriptions[0].generation = UINT32_MAX;
    client->subscriptions[0].next = DOMI_NATS_NONE;
    return 0;
}

static void stop_client_with_worn_out_place(domus_stack *stack, void *self)
{
    domi_nats_free_all_subscriptions(self);
}

static const domus_on late_rows[] = {
    {&domus_nats_subscribe_type, domi_nats_add_subscription_and_reply, 0}, {NULL, NULL, 0}};

static const domus_behaviour late = {
    .name = "late",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_nats_client),
    .on = late_rows,
    .on_mount = mount_client_with_worn_out_place,
    .on_stop = stop_client_with_worn_out_place,
};

DOMT_TEST(no_subscription_gets_the_number_of_the_inbox)
{

    domt_nats_make_kit();
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(domt_kit), &late, NULL, &domt_nats),
                     0);
    /* domt_nats_subscribe_by_probe() checks that the number of the new subscription is not 0, which
     * is that of the client's inbox. */
    (void)domt_nats_subscribe_by_probe("a", NULL, 0, 0);
    domt_nats_end_kit();
}

DOMT_TEST(subscriptions_have_a_limit)
{
    static const domus_nats_options options = {.subscriptions_max = 20};
    domus_nats_subscribe subscribe;
    uint64_t number = 0;

    (void)domt_nats_begin_with_logged_in_client(&options, NULL);
    for (int i = 0; i < 20; i++)
        number = domt_nats_subscribe_by_probe("a", NULL, 0, 0);
    ck_assert_int_eq(domus_nats_subscribe_make("a", NULL, &subscribe), 0);
    domt_expect_success(
        domus_probe_ask(domt_probe, domt_nats, &domus_nats_subscribe_type, &subscribe));
    domt_nats_expect_failed_ask(-ENOBUFS);
    ask_to_unsubscribe(number, 0);
    domt_expect_success(domus_probe_expect(domt_probe, &domus_nats_done_type, SECOND, NULL));
    (void)domt_nats_subscribe_by_probe("a", NULL, 0, 0);
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(domt_kit), domt_nats,
                                          &domus_nats_unsubscribe_type,
                                          &(domus_nats_unsubscribe){.number = 99999}),
                     0);
    domt_nats_run_kit();
    ck_assert_uint_eq(domt_nats_read_client_status().subscriptions, 20);
    domt_nats_end_kit();
}

DOMT_SUITE(60)
