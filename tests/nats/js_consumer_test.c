/* A consumer of JetStream fetches messages in batches, and keeps messages for the next fetch if the
 * asker of their fetch no longer waits. */
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CREATED "{\"name\":\"d\"}"
#define NEXT    "$JS.API.CONSUMER.MSG.NEXT.S.d"

static domt_js_world world;
/* address of the consumer's actor, to which the client delivers messages */
static domus_address consumer;
static char inbox[64];
static char reply[64]; /* reply subject of the consumer's last fetch */
static unsigned delivery;

static void make_consumer_in_kit(void)
{
    domus_nats_consumer_options options = {.stream = "S", .durable = "d", .bytes_max = 4096};

    domt_js_world_begin(&world);
    delivery = 0;
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), 0);
}

static void ask_consumer_to_fetch(uint32_t count, uint64_t wait_ns)
{
    domus_nats_consumer_fetch ask = {.count = count, .wait_ns = wait_ns};

    ck_assert_int_eq(
        domus_probe_ask(world.user, world.opened, &domus_nats_consumer_fetch_type, &ask), 0);
}

static void expect_create_request_and_answer(const char *answer)
{
    domt_js_expect_request(&world, "$JS.API.CONSUMER.DURABLE.CREATE.S.d", NULL, NULL);
    domt_js_answer_request(&world, NULL, answer);
}

static void expect_opening_of_consumer(void)
{
    uint64_t tag = 0;

    consumer = domt_js_expect_subscription(&world, 3, &tag, inbox);
    ck_assert_uint_eq(strlen(inbox), 7 + 22 + 2);
    expect_create_request_and_answer(CREATED);
}

/* Check that the consumer asks the server for `count` messages, and answer as the client that the
 * request was sent. */
static void expect_request_for_next_messages(uint32_t count, const char *wait)
{
    char body[200];

    snprintf(body, sizeof body, "{\"batch\":%u,\"max_bytes\":4096,%s}", count, wait);
    domt_js_expect_publication(&world, &domus_nats_publish_type, NEXT, NULL, body, reply);
    ck_assert_int_eq(strncmp(reply, inbox, 7 + 22 + 1), 0);
    ck_assert_int_eq(domus_probe_reply(world.client, &domus_nats_done_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
}

#define ONE_SECOND "\"expires\":1000000000,\"no_wait\":false"
#define AT_ONCE    "\"expires\":0,\"no_wait\":true"

static void deliver_stream_message_to_consumer(unsigned sequence, const char *payload)
{
    char ack[100];

    snprintf(ack, sizeof ack, "$JS.ACK.S.d.2.%u.%u.1000.5", sequence, ++delivery);
    domt_js_deliver_message(&world, consumer, 0, domt_js_make_message("s.1", ack, NULL, payload));
}

static void deliver_status_to_consumer(const char *to, const char *headers)
{
    domt_js_deliver_message(&world, consumer, 0, domt_js_make_message(to, NULL, headers, ""));
}

static void expect_batch_of_messages(uint32_t count, uint64_t first)
{
    domus_nats_batch batch;
    int error = domus_probe_expect(world.user, &domus_nats_batch_type, 5 * DOMT_SECOND, &batch);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert_uint_eq(batch.count, count);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_eq(batch.messages[i].sequence, first + i);
        ck_assert_uint_eq(batch.messages[i].deliveries, 2);
        ck_assert_uint_eq(batch.messages[i].pending, 5);
        ck_assert(domt_js_slice_has_text(domus_nats_stream_subject(&batch.messages[i]), "s.1"));
    }
    domus_nats_batch_type.release(&batch);
}

DOMT_TEST(fetch_ends_with_full_count)
{
    make_consumer_in_kit();
    ask_consumer_to_fetch(2, DOMT_SECOND);
    expect_opening_of_consumer();
    expect_request_for_next_messages(2, ONE_SECOND);
    deliver_stream_message_to_consumer(4, "a");
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_stream_message_to_consumer(5, "b");
    expect_batch_of_messages(2, 4);
    ask_consumer_to_fetch(1, 0);
    expect_request_for_next_messages(1, AT_ONCE);
    deliver_stream_message_to_consumer(6, "c");
    expect_batch_of_messages(1, 6);
    domt_js_world_end(&world);
}

DOMT_TEST(fetch_ends_when_server_has_no_more_messages)
{
    make_consumer_in_kit();
    ask_consumer_to_fetch(5, 0);
    expect_opening_of_consumer();
    expect_request_for_next_messages(5, AT_ONCE);
    deliver_stream_message_to_consumer(4, "a");
    deliver_status_to_consumer(reply, "NATS/1.0 404 No Messages\r\n\r\n");
    expect_batch_of_messages(1, 4);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_request_for_next_messages(5, ONE_SECOND);
    deliver_status_to_consumer(reply, "NATS/1.0 408 Request Timeout\r\n\r\n");
    expect_batch_of_messages(0, 0);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_request_for_next_messages(5, ONE_SECOND);
    deliver_status_to_consumer(reply, "NATS/1.0 409 Message Size Exceeds MaxBytes\r\n\r\n");
    domt_js_expect_failed_ask(&world, -EMSGSIZE);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_request_for_next_messages(5, ONE_SECOND);
    /* a heartbeat of the server does not end the fetch */
    deliver_status_to_consumer(reply, "NATS/1.0 100 Idle Heartbeat\r\n\r\n");
    deliver_stream_message_to_consumer(6, "a");
    deliver_status_to_consumer(reply, "NATS/1.0 409 Message Size Exceeds MaxBytes\r\n\r\n");
    expect_batch_of_messages(1, 6);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_request_for_next_messages(5, ONE_SECOND);
    deliver_status_to_consumer(reply, "NATS/1.0 409 Exceeded MaxWaiting\r\n\r\n");
    domt_js_expect_failed_ask(&world, -EBUSY);
    domt_js_world_end(&world);
}

DOMT_TEST(lost_consumer_is_created_again)
{
    make_consumer_in_kit();
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_opening_of_consumer();
    expect_request_for_next_messages(5, ONE_SECOND);
    deliver_status_to_consumer(reply, "NATS/1.0 409 Consumer Deleted\r\n\r\n");
    domt_js_expect_failed_ask(&world, -ENXIO);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_create_request_and_answer(CREATED);
    expect_request_for_next_messages(5, ONE_SECOND);
    /* the server sends nothing, so the fetch ends empty a second after its time */
    expect_batch_of_messages(0, 0);
    ck_assert_uint_ge(domus_testkit_now_ns(world.kit), 3 * DOMT_SECOND);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_create_request_and_answer("{\"error\":{\"code\":404,\"err_code\":10059}}");
    domt_js_expect_failed_ask(&world, -ENXIO);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_create_request_and_answer(
        "{\"name\":\"e\"}"); /* the answer names another consumer than the request */
    domt_js_expect_failed_ask(&world, -EPROTO);
    domt_js_world_end(&world);
}

DOMT_TEST(late_messages_are_kept_for_next_fetch)
{
    domus_nats_consumer_fetch ask = {.count = 3, .wait_ns = 10 * DOMT_SECOND};

    make_consumer_in_kit();
    ck_assert_int_eq(domus_probe_ask_within(world.user, world.opened,
                                            &domus_nats_consumer_fetch_type, &ask, DOMT_SECOND),
                     0);
    expect_opening_of_consumer();
    expect_request_for_next_messages(3, "\"expires\":10000000000,\"no_wait\":false");
    deliver_stream_message_to_consumer(4, "a");
    domt_js_expect_failed_ask(&world,
                              -ETIMEDOUT); /* the ask of this fetch has reached its time-out */
    deliver_stream_message_to_consumer(5, "b");
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    /* this fetch gets a message that the consumer has kept, without a request to the server */
    ask_consumer_to_fetch(1, DOMT_SECOND);
    expect_batch_of_messages(1, 4);
    ask_consumer_to_fetch(5, DOMT_SECOND);
    expect_batch_of_messages(1, 5);
    char old[64];
    memcpy(old, reply, sizeof old);
    ask_consumer_to_fetch(1, DOMT_SECOND);
    expect_request_for_next_messages(1, ONE_SECOND);
    /* this status belongs to the first fetch, and does not end the second one */
    deliver_status_to_consumer(old, "NATS/1.0 408 Request Timeout\r\n\r\n");
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_stream_message_to_consumer(6, "c");
    expect_batch_of_messages(1, 6);
    domt_js_world_end(&world);
}

DOMT_TEST(fetches_are_answered_in_order)
{
    make_consumer_in_kit();
    ask_consumer_to_fetch(1, DOMT_SECOND);
    ask_consumer_to_fetch(2, DOMT_SECOND);
    expect_opening_of_consumer();
    expect_request_for_next_messages(1, ONE_SECOND);
    deliver_stream_message_to_consumer(4, "a");
    expect_batch_of_messages(1, 4);
    expect_request_for_next_messages(2, ONE_SECOND);
    ask_consumer_to_fetch(1, DOMT_SECOND);
    ck_assert_int_eq(domus_probe_expect_nothing(world.client, DOMT_SECOND / 10), 0);
    deliver_stream_message_to_consumer(5, "b");
    deliver_stream_message_to_consumer(6, "c");
    expect_batch_of_messages(2, 5);
    expect_request_for_next_messages(1, ONE_SECOND);
    domt_js_world_end(&world);
}

DOMT_TEST(kept_messages_of_a_fetch_have_a_limit)
{
    char large[1001];

    make_consumer_in_kit();
    memset(large, 'x', 1000);
    large[1000] = '\0';
    ask_consumer_to_fetch(10, DOMT_SECOND);
    expect_opening_of_consumer();
    expect_request_for_next_messages(10, ONE_SECOND);
    for (unsigned i = 0; i < 9; i++)
        /* three messages fit, with their subjects, into the consumer's bound of 4096 bytes */
        deliver_stream_message_to_consumer(4 + i, large);
    domt_js_deliver_message(&world, consumer, 0,
                            domt_js_make_message("s.1", NULL, NULL, "no place"));
    deliver_status_to_consumer(reply, "NATS/1.0 404 No Messages\r\n\r\n");
    expect_batch_of_messages(3, 4);
    for (unsigned i = 0; i < 1100; i++)
        deliver_stream_message_to_consumer(4 + i, "");
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    ask_consumer_to_fetch(1024, DOMT_SECOND);
    domus_nats_batch batch;
    ck_assert_int_eq(domus_probe_expect(world.user, &domus_nats_batch_type, DOMT_SECOND, &batch),
                     0);
    /* each message counts about 35 bytes towards the bound */
    ck_assert(batch.count > 90 && batch.count < 140);
    domus_nats_batch_type.release(&batch);
    domt_js_world_end(&world);
}

DOMT_TEST(wrong_consumer_asks_and_options_are_refused)
{
    domus_nats_consumer_options options = {.stream = "S", .durable = "d.e"};

    make_consumer_in_kit();
    ask_consumer_to_fetch(0, 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_consumer_to_fetch(1025, 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_consumer_to_fetch(1, DOMUS_NATS_WAIT_MAX + 1);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), -EINVAL);
    options = (domus_nats_consumer_options){.stream = ""};
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), -EINVAL);
    options = (domus_nats_consumer_options){.stream = "S", .filter = "a..b"};
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), -EINVAL);
    options = (domus_nats_consumer_options){.stream = "S", .deliver = DOMUS_NATS_DELIVER_SUBJECTS};
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), -EINVAL);
    options = (domus_nats_consumer_options){.stream = "S", .bytes_max = 1023};
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), -EINVAL);
    domt_js_world_end(&world);
}

DOMT_TEST(consumer_is_created_with_its_options)
{
    domus_nats_consumer_options options = {.stream = "S",
                                           .filter = "s.>",
                                           .deliver = DOMUS_NATS_DELIVER_FROM,
                                           .first_sequence = 7,
                                           .ack_wait_ns = DOMT_SECOND,
                                           .deliveries_max = 3,
                                           .ack_pending_max = 10};
    domus_nats_consumer_status state;
    uint64_t tag = 0;

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), 0);
    ck_assert_int_eq(
        domus_probe_ask(world.user, world.opened, &domus_nats_consumer_look_type, NULL), 0);
    domt_js_expect_failed_ask(&world, -ENXIO);
    ask_consumer_to_fetch(1, DOMT_SECOND);
    consumer = domt_js_expect_subscription(&world, 3, &tag, inbox);
    domt_js_expect_request(
        &world, "$JS.API.CONSUMER.CREATE.S", NULL,
        "{\"stream_name\":\"S\",\"config\":{\"filter_subject\":\"s.>\","
        "\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":7,\"ack_policy\":\"explicit\","
        "\"ack_wait\":1000000000,\"inactive_threshold\":300000000000,\"max_deliver\":3,"
        "\"max_ack_pending\":10,\"replay_policy\":\"instant\"}}");
    domt_js_answer_request(&world, NULL, "{\"name\":\"a.b\"}");
    domt_js_expect_failed_ask(&world, -EPROTO);
    ask_consumer_to_fetch(1, DOMT_SECOND);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.CREATE.S", NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"name\":\"XmZOd76a\"}");
    domt_js_expect_publication(&world, &domus_nats_publish_type,
                               "$JS.API.CONSUMER.MSG.NEXT.S.XmZOd76a", NULL, NULL, reply);
    ck_assert_int_eq(domus_probe_fail(world.client, -ENOBUFS), 0);
    domt_js_expect_failed_ask(&world, -ENOBUFS);
    ck_assert_int_eq(
        domus_probe_ask(world.user, world.opened, &domus_nats_consumer_look_type, NULL), 0);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.INFO.S.XmZOd76a", NULL, "");
    domt_js_answer_request(
        &world, NULL,
        "{\"name\":\"XmZOd76a\",\"delivered\":{\"stream_seq\":9},"
        "\"ack_floor\":{\"stream_seq\":8},\"num_ack_pending\":1,\"num_redelivered\":2,"
        "\"num_pending\":3}");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_consumer_status_type, DOMT_SECOND, &state), 0);
    ck_assert_str_eq(state.name, "XmZOd76a");
    ck_assert_uint_eq(state.delivered, 9);
    ck_assert_uint_eq(state.ack_floor, 8);
    ck_assert_uint_eq(state.ack_pending, 1);
    ck_assert_uint_eq(state.redelivered, 2);
    ck_assert_uint_eq(state.pending, 3);
    ck_assert_int_eq(
        domus_probe_ask(world.user, world.opened, &domus_nats_consumer_remove_type, NULL), 0);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.DELETE.S.XmZOd76a", NULL, "");
    domt_js_answer_request(&world, NULL, "{\"success\":true}");
    ck_assert_int_eq(domus_probe_expect(world.user, &domus_nats_done_type, DOMT_SECOND, NULL), 0);
    domt_js_world_end(&world);
}

static void expect_acknowledgement_text(const domus_nats_stream_message *message,
                                        domus_nats_ack_kind kind, uint64_t delay_ns,
                                        const char *text)
{
    domus_nats_publish publish;

    ck_assert_int_eq(domus_nats_ack_make(message, kind, delay_ns, &publish), 0);
    ck_assert_int_eq(publish.payload_size, (int)strlen(text));
    ck_assert_mem_eq(publish.bytes + publish.payload_at, text, strlen(text));
    domus_nats_publish_free(&publish);
}

DOMT_TEST(acknowledgement_is_sent_as_its_word)
{
    domus_nats_publish publish;
    domus_nats_stream_message message = {.ack_at = 3, .ack_size = 5};

    ck_assert_int_eq(domus_slice_copy("s.1$JS.A", 8, &message.bytes), 0);
    expect_acknowledgement_text(&message, DOMUS_NATS_ACK, 5, "+ACK");
    expect_acknowledgement_text(&message, DOMUS_NATS_NAK, 0, "-NAK");
    expect_acknowledgement_text(&message, DOMUS_NATS_NAK, 5, "-NAK {\"delay\": 5}");
    expect_acknowledgement_text(&message, DOMUS_NATS_TERM, 0, "+TERM");
    expect_acknowledgement_text(&message, DOMUS_NATS_IN_PROGRESS, 0, "+WPI");
    message.ack_size = 0;
    ck_assert_int_eq(domus_nats_ack_make(&message, DOMUS_NATS_ACK, 0, &publish), -EINVAL);
    domus_slice_free(message.bytes);
}

DOMT_SUITE(20)
