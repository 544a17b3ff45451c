/* The client and libnats at the same server: each receives the publications of the other unchanged,
 * they answer each other's requests, and share a queue group. */
#include "tests/nats/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DOMT_LIBNATS
#include <nats/nats.h>

#define SECOND UINT64_C(1000000000)

static domt_nats_server server;
static domt_nats_user user;
static natsConnection *judge;

static void check_libnats_call_succeeded(natsStatus status)
{
    ck_assert_msg(status == NATS_OK, "%s", natsStatus_GetText(status));
}

static void start_server_with_both_clients(void)
{
    char url[80];

    domt_nats_server_start(&server, NULL, 0);
    snprintf(url, sizeof url, "nats://%s", server.url);
    check_libnats_call_succeeded(natsConnection_ConnectTo(&judge, url));
    domt_nats_user_start_system(&user, &(domus_nats_options){.servers = server.url});
    domt_nats_user_await_connection(&user);
}

static void stop_server_and_both_clients(void)
{
    natsConnection_Destroy(judge);
    domt_nats_user_stop_system(&user);
    domt_nats_server_stop(&server);
    nats_Close();
}

static natsSubscription *subscribe_by_libnats(const char *subject, const char *queue)
{
    natsSubscription *subscription;

    check_libnats_call_succeeded(
        queue != NULL ? natsConnection_QueueSubscribeSync(&subscription, judge, subject, queue)
                      : natsConnection_SubscribeSync(&subscription, judge, subject));
    check_libnats_call_succeeded(natsConnection_Flush(judge));
    return subscription;
}

/* Make a payload of random bytes, which are the same in each run for the same seed. */
static size_t make_payload_from_seed(uint32_t seed, char *bytes, size_t room)
{
    size_t size = seed % 7 == 0 ? 0 : (seed * 2654435761u) % (seed % 5 == 0 ? room : 300);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)((seed + i) * 2654435761u >> 13);
    return size;
}

#define COUNT 300u
#define ROOM  70000u

static char payload[ROOM];

/* Check that a message that libnats has received carries the payload of `seed`. */
static void expect_payload_at_libnats(natsMsg *message, uint32_t seed, const char *reply)
{
    size_t size = make_payload_from_seed(seed, payload, ROOM);
    const char *value;

    ck_assert_int_eq(natsMsg_GetDataLength(message), (int)size);
    ck_assert_int_eq(memcmp(natsMsg_GetData(message), payload, size), 0);
    if (reply != NULL)
        ck_assert_str_eq(natsMsg_GetReply(message), reply);
    else
        ck_assert_ptr_null(natsMsg_GetReply(message));
    if (seed % 3 == 0) {
        char text[20];
        snprintf(text, sizeof text, "%u", seed);
        check_libnats_call_succeeded(natsMsgHeader_Get(message, "Seed", &value));
        ck_assert_str_eq(value, text);
        check_libnats_call_succeeded(natsMsgHeader_Get(message, "Other", &value));
        ck_assert_str_eq(value, "a b: c");
    } else {
        ck_assert_int_eq(natsMsgHeader_Get(message, "Seed", &value), NATS_NOT_FOUND);
    }
}

static void expect_payload_at_domus_client(const domus_nats_message *message, uint32_t seed,
                                           const char *reply)
{
    size_t size = make_payload_from_seed(seed, payload, ROOM);
    domus_slice value;
    char text[20];

    ck_assert(domus_slice_equals(domus_nats_payload(message), payload, size));
    ck_assert(domt_slice_has_text(domus_nats_reply_to(message), reply != NULL ? reply : ""));
    int error = domus_nats_header(message, "Seed", NULL, &value);
    ck_assert_int_eq(error, seed % 3 == 0 ? 0 : -ENOENT);
    snprintf(text, sizeof text, "%u", seed);
    ck_assert(error != 0 || domt_slice_has_text(value, text));
    error = domus_nats_header(message, "Other", NULL, &value);
    ck_assert(error != 0 || domt_slice_has_text(value, "a b: c"));
}

static void publish_payload_by_domus_client(uint32_t seed)
{
    domus_nats_publish publish = {.used = 0};
    domus_appender headers = {0};
    char text[20];

    ck_assert_int_eq(domus_nats_set_subject(&publish, "d.x"), 0);
    if (seed % 2 == 0)
        ck_assert_int_eq(domus_nats_set_reply(&publish, "r"), 0);
    size_t size = make_payload_from_seed(seed, payload, ROOM);
    ck_assert_int_eq(domus_nats_set_payload(&publish, payload, size), 0);
    if (seed % 3 == 0) {
        snprintf(text, sizeof text, "%u", seed);
        ck_assert_int_eq(domus_nats_headers_add(&headers, "Seed", text), 0);
        ck_assert_int_eq(domus_nats_headers_add(&headers, "Other", "a b: c"), 0);
        ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.headers), 0);
    }
    domt_nats_user_ask_successfully(&user, &domus_nats_publish_type, &publish);
}

static void publish_payload_by_libnats(uint32_t seed)
{
    natsMsg *message;
    char text[20];

    size_t size = make_payload_from_seed(seed, payload, ROOM);
    check_libnats_call_succeeded(
        natsMsg_Create(&message, "d.y", seed % 2 == 0 ? "r" : NULL, payload, (int)size));
    if (seed % 3 == 0) {
        snprintf(text, sizeof text, "%u", seed);
        check_libnats_call_succeeded(natsMsgHeader_Set(message, "Seed", text));
        check_libnats_call_succeeded(natsMsgHeader_Set(message, "Other", "a b: c"));
    }
    check_libnats_call_succeeded(natsConnection_PublishMsg(judge, message));
    natsMsg_Destroy(message);
}

DOMT_TEST(both_clients_receive_same_messages)
{
    start_server_with_both_clients();
    natsSubscription *subscription = subscribe_by_libnats("d.*", NULL);
    (void)domt_nats_user_subscribe_to_subject(&user, "d.>", NULL, 0);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    for (uint32_t seed = 0; seed < COUNT; seed++) {
        natsMsg *message;
        publish_payload_by_domus_client(seed);
        const char *reply = seed % 2 == 0 ? "r" : NULL;
        for (int i = 0; i < 2; i++) {
            if (i == 1)
                publish_payload_by_libnats(seed);
            check_libnats_call_succeeded(natsSubscription_NextMsg(&message, subscription, 10000));
            expect_payload_at_libnats(message, seed, reply);
            const domus_nats_message *got = domt_nats_user_receive_message(&user);
            expect_payload_at_domus_client(got, seed, reply);
            ck_assert(domt_slice_has_text(domus_nats_subject(got), natsMsg_GetSubject(message)));
            natsMsg_Destroy(message);
        }
    }
    natsSubscription_Destroy(subscription);
    stop_server_and_both_clients();
}

static void respond_to_request_by_libnats(natsConnection *connection,
                                          natsSubscription *subscription, natsMsg *message,
                                          void *closure)
{
    (void)natsConnection_Publish(connection, natsMsg_GetReply(message), natsMsg_GetData(message),
                                 natsMsg_GetDataLength(message));
    natsMsg_Destroy(message);
}

DOMT_TEST(each_client_answers_the_others_requests)
{
    natsSubscription *subscription;
    domus_nats_message answer;
    natsMsg *message;
    char text[40];

    start_server_with_both_clients();
    check_libnats_call_succeeded(natsConnection_Subscribe(&subscription, judge, "judge",
                                                          respond_to_request_by_libnats, NULL));
    check_libnats_call_succeeded(natsConnection_Flush(judge));
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "request %d", i);
        ck_assert_int_eq(domt_nats_user_send_request(&user, "judge", text, 5 * SECOND, &answer), 0);
        ck_assert(domt_slice_has_text(domus_nats_payload(&answer), text));
        domus_nats_message_type.release(&answer);
    }
    (void)domt_nats_user_subscribe_to_subject(&user, "user", NULL, 0);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    /* The test requests by an inbox, because libnats's own request function would block the test's
     * thread. */
    for (int i = 0; i < 200; i++) {
        natsSubscription *inbox;
        domus_nats_publish reply = {.used = 0};
        snprintf(text, sizeof text, "inbox.%d", i);
        check_libnats_call_succeeded(natsConnection_SubscribeSync(&inbox, judge, text));
        check_libnats_call_succeeded(
            natsConnection_PublishRequestString(judge, "user", text, "question"));
        const domus_nats_message *asked = domt_nats_user_receive_message(&user);
        ck_assert_int_eq(domus_nats_set_reply_of(&reply, asked), 0);
        ck_assert_int_eq(domus_nats_set_payload(&reply, text, strlen(text)), 0);
        domt_nats_user_ask_successfully(&user, &domus_nats_publish_type, &reply);
        check_libnats_call_succeeded(natsSubscription_NextMsg(&message, inbox, 5000));
        ck_assert_str_eq(natsMsg_GetData(message), text);
        natsMsg_Destroy(message);
        natsSubscription_Destroy(inbox);
    }
    ck_assert_int_eq(domt_nats_user_send_request(&user, "nobody", "x", 5 * SECOND, &answer),
                     -ECONNREFUSED);
    ck_assert_int_eq(natsConnection_RequestString(&message, judge, "nobody", "x", 5000),
                     NATS_NO_RESPONDERS);
    natsSubscription_Destroy(subscription);
    stop_server_and_both_clients();
}

/* Each message to a queue group comes to exactly one of its members. */
DOMT_TEST(both_clients_share_a_queue_group)
{
    static bool seen[2000];
    uint32_t of_user = 0, of_judge = 0;
    natsMsg *message;

    start_server_with_both_clients();
    natsSubscription *subscription = subscribe_by_libnats("q", "workers");
    natsSubscription *all = subscribe_by_libnats("q", NULL);
    (void)domt_nats_user_subscribe_to_subject(&user, "q", "workers", 0);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    for (uint32_t i = 0; i < 2000; i++)
        domt_nats_user_publish_bytes(&user, "q", &i, sizeof i);
    domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t number;
        check_libnats_call_succeeded(natsSubscription_NextMsg(&message, all, 5000));
        memcpy(&number, natsMsg_GetData(message), sizeof number);
        ck_assert_uint_eq(number, i);
        natsMsg_Destroy(message);
    }
    for (of_user = (uint32_t)domt_nats_user_read_client_status(&user).in_messages;
         of_judge + of_user < 2000; of_judge++) {
        uint32_t number;
        check_libnats_call_succeeded(natsSubscription_NextMsg(&message, subscription, 5000));
        memcpy(&number, natsMsg_GetData(message), sizeof number);
        ck_assert(!seen[number]);
        seen[number] = true;
        natsMsg_Destroy(message);
    }
    for (uint32_t i = 0; i < of_user; i++) {
        uint32_t number;
        memcpy(&number, domus_slice_data(domus_nats_payload(domt_nats_user_receive_message(&user))),
               sizeof number);
        ck_assert(!seen[number]);
        seen[number] = true;
    }
    ck_assert_uint_gt(of_user, 200);
    ck_assert_uint_gt(of_judge, 200);
    ck_assert_int_eq(natsSubscription_NextMsg(&message, subscription, 50), NATS_TIMEOUT);
    natsSubscription_Destroy(subscription);
    natsSubscription_Destroy(all);
    stop_server_and_both_clients();
}
#else
DOMT_TEST(build_without_libnats_fails_this_suite)
{
    ck_abort_msg("no libnats (Debian: libnats-dev) when this was built, which judges the client");
}
#endif

DOMT_SUITE(60)
