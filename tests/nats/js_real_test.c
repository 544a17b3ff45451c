/* Streams and consumers of Debian's nats-server: each published message is stored once, and
 * messages that were not acknowledged come again. */
#include "tests/nats/js_server.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

static domt_js_server js;
static domus_address stream;
static domus_address consumer;

static void start_server_with_stream(const domus_nats_stream_config *config)
{
    domus_nats_stream_config plain = {.subjects = "s.>", .allow_direct = true};
    domus_nats_stream_options options = {.name = "S", .create = config != NULL ? config : &plain};

    domt_js_server_start_with_client(&js);
    stream = domt_js_server_open_stream(&js, &options);
}

static int publish_text_to_stream(const char *subject, const char *payload, const char *id,
                                  uint64_t expected, domus_nats_stream_ack *ret_ack)
{
    domus_nats_stream_publish ask;

    ck_assert_int_eq(domus_nats_stream_publish_make(subject, payload, strlen(payload), &ask), 0);
    memcpy(ask.id, id, strlen(id) + 1);
    ask.expected_last = expected;
    return domt_js_server_ask_actor(&js, stream, &domus_nats_stream_publish_type, &ask, ret_ack,
                                    sizeof *ret_ack);
}

static uint64_t publish_text_successfully(const char *subject, const char *payload)
{
    domus_nats_stream_ack ack;

    ck_assert_int_eq(publish_text_to_stream(subject, payload, "", DOMUS_NATS_ANY_SEQUENCE, &ack),
                     0);
    return ack.sequence;
}

DOMT_TEST(published_message_is_stored_once)
{
    domus_nats_stream_ack ack;
    domus_nats_stream_status status;

    start_server_with_stream(NULL);
    ck_assert_uint_eq(publish_text_successfully("s.1", "a"), 1);
    ck_assert_int_eq(publish_text_to_stream("s.1", "b", "m1", DOMUS_NATS_ANY_SEQUENCE, &ack), 0);
    ck_assert(ack.sequence == 2 && !ack.duplicate);
    ck_assert_int_eq(publish_text_to_stream("s.1", "b", "m1", DOMUS_NATS_ANY_SEQUENCE, &ack), 0);
    ck_assert(ack.sequence == 2 && ack.duplicate);
    ck_assert_int_eq(publish_text_to_stream("s.2", "c", "", 1, &ack), -EEXIST);
    ck_assert_int_eq(publish_text_to_stream("s.2", "c", "m2", 2, &ack), 0);
    ck_assert_uint_eq(ack.sequence, 3);
    ck_assert_int_eq(publish_text_to_stream("t.1", "c", "", DOMUS_NATS_ANY_SEQUENCE, &ack),
                     -ECONNREFUSED);
    ck_assert_int_eq(domt_js_server_ask_actor(&js, stream, &domus_nats_stream_look_type, NULL,
                                              &status, sizeof status),
                     0);
    ck_assert_uint_eq(status.messages, 3);
    ck_assert_uint_eq(status.last_sequence, 3);
    ck_assert_uint_eq(status.messages_max, 0);
    ck_assert(status.allow_direct);
    domt_js_server_stop_with_client(&js);
}

static void check_stored_message(domus_address from, uint64_t sequence, const char *subject,
                                 int error)
{
    domus_nats_stream_get get = {.sequence = sequence};
    domus_nats_stream_message message;

    memcpy(get.subject, subject, strlen(subject) + 1);
    ck_assert_int_eq(domt_js_server_ask_actor(&js, from, &domus_nats_stream_get_type, &get,
                                              &message, sizeof message),
                     error);
    if (error != 0)
        return;
    ck_assert(domt_slice_has_text(domus_nats_stream_subject(&message), "s.1"));
    ck_assert(domt_slice_has_text(domus_nats_stream_payload(&message), "second"));
    ck_assert_uint_eq(message.sequence, 2);
    ck_assert(message.stored_ns / DOMT_SECOND + 60 > (uint64_t)time(NULL));
    domus_slice_free(message.bytes);
}

DOMT_TEST(stored_messages_are_read_and_removed)
{
    domus_nats_stream_purge purge = {.subject = "s.1"};
    domus_nats_stream_count count;

    start_server_with_stream(NULL);
    domus_nats_stream_options options = {.name = "S", .reads_any = true};
    domus_address any = domt_js_server_open_stream(&js, &options);
    (void)publish_text_successfully("s.1", "first");
    (void)publish_text_successfully("s.1", "second");
    (void)publish_text_successfully("s.2", "third");
    for (int i = 0; i < 2; i++) {
        domus_address from = i == 0 ? stream : any;
        check_stored_message(from, 2, "", 0);
        check_stored_message(from, 0, "s.1", 0);
        check_stored_message(from, 9, "", -ENOENT);
        check_stored_message(from, 0, "s.9", -ENOENT);
    }
    ck_assert_int_eq(domt_js_server_ask_actor(&js, stream, &domus_nats_stream_purge_type, &purge,
                                              &count, sizeof count),
                     0);
    ck_assert_uint_eq(count.count, 2);
    check_stored_message(stream, 2, "", -ENOENT);
    ck_assert_int_eq(
        domt_js_server_ask_actor(&js, stream, &domus_nats_stream_remove_type, NULL, NULL, 0), 0);
    /* The stream is removed, so no server answers a direct get of one of its messages. */
    domus_nats_stream_get get = {.sequence = 2};
    ck_assert_int_eq(domus_outsider_ask(js.user.outsider, any, &domus_nats_stream_get_type, &get,
                                        300 * MS, NULL),
                     -ETIMEDOUT);
    domt_js_server_stop_with_client(&js);
}

DOMT_TEST(full_stream_refuses_or_drops_oldest)
{
    domus_nats_stream_config config = {.subjects = "s.1, s.2",
                                       .storage = DOMUS_NATS_MEMORY,
                                       .messages_max = 2,
                                       .refuses_new = true};
    domus_nats_stream_ack ack;

    start_server_with_stream(&config);
    (void)publish_text_successfully("s.1", "a");
    (void)publish_text_successfully("s.2", "b");
    ck_assert_int_eq(publish_text_to_stream("s.1", "c", "", DOMUS_NATS_ANY_SEQUENCE, &ack),
                     -ENOSPC);
    config = (domus_nats_stream_config){.subjects = "o.>", .messages_max = 2};
    domus_nats_stream_options options = {.name = "O", .create = &config};
    stream = domt_js_server_open_stream(&js, &options);
    for (uint64_t i = 1; i <= 5; i++)
        ck_assert_uint_eq(publish_text_successfully("o.1", "a"), i);
    domus_nats_stream_status status;
    ck_assert_int_eq(domt_js_server_ask_actor(&js, stream, &domus_nats_stream_look_type, NULL,
                                              &status, sizeof status),
                     0);
    ck_assert(status.messages == 2 && status.first_sequence == 4 && status.messages_max == 2);
    domt_js_server_stop_with_client(&js);
}

/* --- consumers -------------------------------------------------------------------------------- */

static int fetch_batch_from_consumer(uint32_t count, uint64_t wait_ns, domus_nats_batch *ret_batch)
{
    domus_nats_consumer_fetch ask = {.count = count, .wait_ns = wait_ns};

    return domt_js_server_ask_actor(&js, consumer, &domus_nats_consumer_fetch_type, &ask, ret_batch,
                                    sizeof *ret_batch);
}

static domus_nats_batch fetch_batch_of_count(uint32_t count, uint64_t wait_ns, uint32_t expected)
{
    domus_nats_batch batch = {NULL, 0};
    int error = fetch_batch_from_consumer(count, wait_ns, &batch);

    ck_assert_msg(error == 0, "%s", strerrorname_np(-error));
    ck_assert_uint_eq(batch.count, expected);
    return batch;
}

static void free_batch_of_messages(domus_nats_batch batch)
{
    domus_nats_batch_type.release(&batch);
}

/* Acknowledge a message to the consumer, and wait until the server knows the acknowledgement. */
static void acknowledge_message_and_wait(const domus_nats_stream_message *message,
                                         domus_nats_ack_kind kind, uint64_t delay_ns)
{
    domus_nats_publish ack;
    domus_nats_message answer;

    ck_assert_int_eq(domus_nats_ack_make(message, kind, delay_ns, &ack), 0);
    ck_assert_int_eq(domt_js_server_ask_actor(&js, js.user.client, &domus_nats_request_type, &ack,
                                              &answer, sizeof answer),
                     0);
    domus_slice_free(answer.bytes);
}

static domus_nats_consumer_status read_status_of_consumer(void)
{
    domus_nats_consumer_status status;

    ck_assert_int_eq(domt_js_server_ask_actor(&js, consumer, &domus_nats_consumer_look_type, NULL,
                                              &status, sizeof status),
                     0);
    return status;
}

DOMT_TEST(unacknowledged_messages_are_delivered_again)
{
    domus_nats_consumer_options options = {
        .stream = "S", .durable = "d", .ack_wait_ns = 30 * DOMT_SECOND, .deliveries_max = 5};
    char text[8];

    start_server_with_stream(NULL);
    for (unsigned i = 1; i <= 5; i++) {
        snprintf(text, sizeof text, "m%u", i);
        (void)publish_text_successfully("s.1", text);
    }
    consumer = domt_js_server_open_consumer(&js, &options);
    domus_nats_batch batch = fetch_batch_of_count(4, DOMT_SECOND, 4);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "m%u", i + 1);
        ck_assert(domt_slice_has_text(domus_nats_stream_payload(&batch.messages[i]), text));
        ck_assert_uint_eq(batch.messages[i].sequence, i + 1);
        ck_assert_uint_eq(batch.messages[i].deliveries, 1);
        ck_assert_uint_eq(batch.messages[i].pending, 4 - i);
    }
    acknowledge_message_and_wait(&batch.messages[0], DOMUS_NATS_ACK, 0);
    acknowledge_message_and_wait(&batch.messages[1], DOMUS_NATS_NAK, 300 * MS);
    acknowledge_message_and_wait(&batch.messages[2], DOMUS_NATS_TERM, 0);
    acknowledge_message_and_wait(&batch.messages[3], DOMUS_NATS_IN_PROGRESS, 0);
    acknowledge_message_and_wait(&batch.messages[3], DOMUS_NATS_ACK, 0);
    free_batch_of_messages(batch);
    domus_nats_consumer_status status = read_status_of_consumer();
    ck_assert_str_eq(status.name, "d");
    ck_assert_uint_eq(status.delivered, 4);
    ck_assert_uint_eq(status.ack_floor, 1);
    ck_assert_uint_eq(status.pending, 1);
    /* The batch has the fifth message; the second one still waits for its delay. */
    batch = fetch_batch_of_count(10, 0, 1);
    ck_assert_uint_eq(batch.messages[0].sequence, 5);
    acknowledge_message_and_wait(&batch.messages[0], DOMUS_NATS_ACK, 0);
    free_batch_of_messages(batch);
    batch = fetch_batch_of_count(1, 5 * DOMT_SECOND, 1);
    ck_assert_uint_eq(batch.messages[0].sequence, 2);
    ck_assert_uint_eq(batch.messages[0].deliveries, 2);
    acknowledge_message_and_wait(&batch.messages[0], DOMUS_NATS_ACK, 0);
    free_batch_of_messages(batch);
    free_batch_of_messages(fetch_batch_of_count(10, 0, 0));
    free_batch_of_messages(fetch_batch_of_count(10, 200 * MS, 0));
    status = read_status_of_consumer();
    ck_assert(status.ack_floor == 5 && status.pending == 0 && status.ack_pending == 0);
    domt_js_server_stop_with_client(&js);
}

DOMT_TEST(consumer_begins_at_chosen_message)
{
    start_server_with_stream(NULL);
    for (int i = 0; i < 6; i++)
        (void)publish_text_successfully(i % 2 == 0 ? "s.even" : "s.odd", "x");
    domus_nats_consumer_options options = {.stream = "S", .filter = "s.odd"};
    consumer = domt_js_server_open_consumer(&js, &options);
    domus_nats_batch batch = fetch_batch_of_count(10, 200 * MS, 3);
    ck_assert_uint_eq(batch.messages[2].sequence, 6);
    free_batch_of_messages(batch);
    options = (domus_nats_consumer_options){
        .stream = "S", .deliver = DOMUS_NATS_DELIVER_FROM, .first_sequence = 4};
    consumer = domt_js_server_open_consumer(&js, &options);
    batch = fetch_batch_of_count(10, 0, 3);
    ck_assert_uint_eq(batch.messages[0].sequence, 4);
    free_batch_of_messages(batch);
    options = (domus_nats_consumer_options){
        .stream = "S", .filter = "s.>", .deliver = DOMUS_NATS_DELIVER_SUBJECTS};
    consumer = domt_js_server_open_consumer(&js, &options);
    batch = fetch_batch_of_count(10, 0, 2);
    ck_assert_uint_eq(batch.messages[0].sequence, 5);
    free_batch_of_messages(batch);
    options = (domus_nats_consumer_options){.stream = "S", .deliver = DOMUS_NATS_DELIVER_NEW};
    consumer = domt_js_server_open_consumer(&js, &options);
    free_batch_of_messages(fetch_batch_of_count(10, 0, 0));
    (void)publish_text_successfully("s.even", "new");
    free_batch_of_messages(fetch_batch_of_count(1, DOMT_SECOND, 1));
    domt_js_server_stop_with_client(&js);
}

DOMT_TEST(many_messages_are_each_fetched_once)
{
    static char large[20001];
    domus_nats_consumer_options options = {
        .stream = "S", .bytes_max = 65536, .ack_pending_max = 5000};
    enum { MESSAGES = 2000 };

    start_server_with_stream(NULL);
    memset(large, 'x', sizeof large - 1);
    ck_assert_int_eq(
        domt_js_server_ask_actor(&js, stream, &domus_nats_stream_look_type, NULL, NULL, 0), 0);
    /* publish by notices, without waiting for the server's answers */
    for (unsigned i = 0; i < MESSAGES; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        if (i % 100 == 0)
            domt_nats_user_publish_bytes(&js.user, "s.1", large, sizeof large - 1);
        else
            domt_nats_user_publish_bytes(&js.user, "s.1", text, strlen(text));
    }
    domt_nats_user_ask_successfully(&js.user, &domus_nats_flush_type, NULL);
    consumer = domt_js_server_open_consumer(&js, &options);
    uint64_t next = 1;
    while (next <= MESSAGES) {
        domus_nats_batch batch = {NULL, 0};
        ck_assert_int_eq(fetch_batch_from_consumer(300, DOMT_SECOND, &batch), 0);
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < batch.count; i++) {
            ck_assert_uint_eq(batch.messages[i].sequence, next++);
            bytes += batch.messages[i].payload_size;
        }
        ck_assert(batch.count != 0 && bytes <= 65536);
        free_batch_of_messages(batch);
    }
    domt_js_server_stop_with_client(&js);
}

DOMT_TEST(consumer_continues_after_its_server_is_killed)
{
    domus_nats_consumer_options durable = {.stream = "S", .durable = "d"};
    domus_nats_consumer_options own = {.stream = "S"};
    domus_address consumers[2];

    start_server_with_stream(NULL);
    (void)publish_text_successfully("s.1", "a");
    consumers[0] = domt_js_server_open_consumer(&js, &durable);
    consumers[1] = domt_js_server_open_consumer(&js, &own);
    for (int i = 0; i < 2; i++) {
        consumer = consumers[i];
        domus_nats_batch batch = fetch_batch_of_count(1, DOMT_SECOND, 1);
        acknowledge_message_and_wait(&batch.messages[0], DOMUS_NATS_ACK, 0);
        free_batch_of_messages(batch);
    }
    domt_js_server_kill_and_restart(&js);
    for (int i = 0; i < 100; i++) {
        domus_nats_stream_ack ack;
        if (publish_text_to_stream("s.1", "b", "b", DOMUS_NATS_ANY_SEQUENCE, &ack) == 0)
            break;
    }
    for (int i = 0; i < 2; i++) {
        domus_nats_batch batch = {NULL, 0};
        consumer = consumers[i];
        for (int k = 0; k < 20 && batch.count == 0; k++)
            (void)fetch_batch_from_consumer(1, 500 * MS, &batch);
        ck_assert_uint_eq(batch.count, 1);
        /* The server may lose an ephemeral consumer when it is killed; the actor creates it again,
         * and it begins at the first message again. */
        ck_assert(batch.messages[0].sequence == 2 || (i == 1 && batch.messages[0].sequence == 1));
        free_batch_of_messages(batch);
    }
    domt_js_server_stop_with_client(&js);
}

DOMT_TEST(removed_consumer_is_reported_missing)
{
    domus_nats_consumer_options options = {.stream = "S", .durable = "d"};
    domus_nats_batch batch = {NULL, 0};

    start_server_with_stream(NULL);
    (void)publish_text_successfully("s.1", "a");
    consumer = domt_js_server_open_consumer(&js, &options);
    batch = fetch_batch_of_count(1, DOMT_SECOND, 1);
    acknowledge_message_and_wait(&batch.messages[0], DOMUS_NATS_ACK, 0);
    free_batch_of_messages(batch);
    ck_assert_int_eq(
        domt_js_server_ask_actor(&js, consumer, &domus_nats_consumer_remove_type, NULL, NULL, 0),
        0);
    ck_assert_int_eq(
        domt_js_server_ask_actor(&js, consumer, &domus_nats_consumer_remove_type, NULL, NULL, 0),
        -ENXIO);
    /* The consumer was removed, so a fetch creates it again, and it begins at the first message. */
    free_batch_of_messages(fetch_batch_of_count(1, DOMT_SECOND, 1));
    options.stream = "T";
    consumer = domt_js_server_open_consumer(&js, &options);
    ck_assert_int_eq(fetch_batch_from_consumer(1, 0, &batch), -ENXIO);
    domt_js_server_stop_with_client(&js);
}

DOMT_SUITE(60)
