/* JetStream's actors get answers with a correct form and wrong content, and messages whose
 * publishers have set headers that only a server should set. */
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENED                                                                                     \
    "{\"config\":{\"max_msgs_per_subject\":1,\"allow_direct\":true},\"state\":{\"messages\":0}}"
#define GET "$JS.API.STREAM.MSG.GET.KV_b"

static domt_js_world world;
static domus_address inbox_of; /* address of the subscriber, to which the client would deliver */
static uint64_t tag;

static void make_bucket_in_kit(bool reads_any)
{
    domus_nats_kv_options options = {.bucket = "b", .reads_any = reads_any};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
}

static void expect_opening_of_bucket(void)
{
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_b", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
}

/* Check that a watch or list asks to create its consumer, and answer that `pending` messages will
 * be delivered. */
static void expect_creation_of_consumer(uint64_t pending)
{
    char inbox[64], answer[200];

    inbox_of = domt_js_expect_subscription(&world, 40, &tag, inbox);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.CREATE.KV_b", NULL, NULL);
    snprintf(answer, sizeof answer,
             "{\"name\":\"c\",\"delivered\":{\"consumer_seq\":0,\"stream_seq\":0},"
             "\"num_pending\":%llu}",
             (unsigned long long)pending);
    domt_js_answer_request(&world, NULL, answer);
}

static void deliver_entry_to_watch(unsigned delivery, unsigned revision, unsigned pending,
                                   const char *key, const char *headers)
{
    char reply[100], subject[300];

    snprintf(reply, sizeof reply, "$JS.ACK.KV_b.c.1.%u.%u.1000.%u", revision, delivery, pending);
    snprintf(subject, sizeof subject, "$KV.b.%s", key);
    domt_js_deliver_message(&world, inbox_of, tag,
                            domt_js_make_message(subject, reply, headers, "value"));
}

static void ask_bucket_to_watch(void)
{
    static const domus_nats_kv_watch plain = {.heartbeat_ns = DOMT_SECOND};

    make_bucket_in_kit(false);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &plain),
                     0);
    expect_opening_of_bucket();
}

static void expect_answer_that_watch_began(void)
{
    domus_nats_kv_watching watching;

    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_watching_type, DOMT_SECOND, &watching), 0);
}

static void expect_entry_notice(const char *key)
{
    domus_nats_kv_entry entry;
    int error = domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND, &entry);

    ck_assert_msg(error == 0, "%s %s", key, domus_testkit_error(world.kit));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_key(&entry), key));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_value(&entry), "value"));
    domus_slice_free(entry.bytes);
}

/* A server answers a get with the entry of another key: the get fails, and the entry is freed
 * once. */
DOMT_TEST(entry_of_another_key_fails_the_get)
{
    domus_nats_kv_put put = {.condition = DOMUS_NATS_KV_IF_NONE, .key = "x"};
    domus_nats_kv_revision revision;

    make_bucket_in_kit(false);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_put_type, &put), 0);
    expect_opening_of_bucket();
    domt_js_expect_request(&world, "$KV.b.x", "Nats-Expected-Last-Subject-Sequence: 0", NULL);
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":400,\"err_code\":10071}}");
    domt_js_expect_request(&world, GET, NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"message\":{\"subject\":\"$KV.b.other\",\"seq\":3}}");
    domt_js_expect_request(&world, "$KV.b.x", "Nats-Expected-Last-Subject-Sequence: 0", NULL);
    domt_js_answer_request(&world, NULL, "{\"seq\":4}");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_revision_type, DOMT_SECOND, &revision), 0);
    domt_js_world_end(&world);
}

/* A stored message may have a status in its headers: its publisher has set it, so it does not count
 * as an answer of the server. */
DOMT_TEST(status_in_stored_message_is_no_answer)
{
    static const domus_nats_kv_get get = {.key = "x"};

    ask_bucket_to_watch();
    expect_creation_of_consumer(2);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 1, "x", "NATS/1.0 503\r\n\r\n");
    expect_entry_notice("x");
    deliver_entry_to_watch(2, 5, 0, "y", "NATS/1.0 100\r\n\r\n");
    expect_entry_notice("y");
    domt_js_world_end(&world);
    make_bucket_in_kit(true);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_get_type, &get), 0);
    expect_opening_of_bucket();
    domt_js_expect_request(&world, "$JS.API.DIRECT.GET.KV_b.$KV.b.x", NULL, "");
    domt_js_answer_request(
        &world, "NATS/1.0 404\r\nNats-Subject: $KV.b.x\r\nNats-Sequence: 1\r\n\r\n", "value");
    expect_entry_notice("x");
    domt_js_world_end(&world);
}

/* A fetched message with such a status is delivered like any other: otherwise it would come again
 * and again, and could never be acknowledged. */
DOMT_TEST(message_with_stored_status_is_fetched)
{
    static const domus_nats_consumer_options options = {.stream = "S", .durable = "d"};
    static const domus_nats_consumer_fetch fetch = {.count = 1, .wait_ns = DOMT_SECOND};
    domus_nats_batch batch;
    char inbox[64];

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), 0);
    ck_assert_int_eq(
        domus_probe_ask(world.user, world.opened, &domus_nats_consumer_fetch_type, &fetch), 0);
    inbox_of = domt_js_expect_subscription(&world, 3, &tag, inbox);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.DURABLE.CREATE.S.d", NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"name\":\"d\"}");
    domt_js_expect_publication(&world, &domus_nats_publish_type, "$JS.API.CONSUMER.MSG.NEXT.S.d",
                               NULL, NULL, NULL);
    ck_assert_int_eq(domus_probe_reply(world.client, &domus_nats_done_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    domt_js_deliver_message(
        &world, inbox_of, 0,
        domt_js_make_message("s.1", "$JS.ACK.S.d.1.7.1.1000.0", "NATS/1.0 503\r\n\r\n", "job"));
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_batch_type, DOMT_SECOND / 10, &batch), 0);
    ck_assert_uint_eq(batch.count, 1);
    ck_assert_uint_eq(batch.messages[0].sequence, 7);
    ck_assert(domt_js_slice_has_text(domus_nats_stream_payload(&batch.messages[0]), "job"));
    domus_nats_batch_type.release(&batch);
    domt_js_world_end(&world);
}

/* A server delivers entries before it has answered the request for the consumer: the watch holds
 * only a bounded number of them. */
DOMT_TEST(entries_before_consumers_answer_have_a_limit)
{
    char inbox[64], *value = calloc(1, (1 << 20) + 1);
    domus_nats_kv_entry entry;
    uint32_t told = 0;

    memset(value, 'v', 1 << 20);
    ask_bucket_to_watch();
    inbox_of = domt_js_expect_subscription(&world, 40, &tag, inbox);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.CREATE.KV_b", NULL, NULL);
    for (unsigned i = 1; i <= 16; i++) {
        char reply[100];
        snprintf(reply, sizeof reply, "$JS.ACK.KV_b.c.1.%u.%u.1000.9", i, i);
        domt_js_deliver_message(&world, inbox_of, tag,
                                domt_js_make_message("$KV.b.x", reply, NULL, value));
        ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    }
    domt_js_answer_request(&world, NULL, "{\"delivered\":{\"stream_seq\":0},\"num_pending\":20}");
    expect_answer_that_watch_began();
    while (domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND / 10, &entry) ==
           0) {
        domus_slice_free(entry.bytes);
        told++;
    }
    ck_assert_uint_ge(told, 8);
    ck_assert_uint_le(told, 9);
    /* This delivery leaves a gap, so the watch asks for the missing messages again. */
    deliver_entry_to_watch(17, 17, 9, "x", NULL);
    domt_js_expect_unsubscription(&world, 40);
    free(value);
    domt_js_world_end(&world);
}

/* An error that the server does not explain may be temporary, so it does not end a watch. */
DOMT_TEST(unexplained_error_does_not_end_a_watch)
{
    char inbox[64];

    ask_bucket_to_watch();
    expect_creation_of_consumer(0);
    expect_answer_that_watch_began();
    ck_assert_int_eq(domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND, NULL),
                     0);
    domt_js_deliver_message(
        &world, inbox_of, tag,
        domt_js_make_message("_INBOX.x", NULL, "NATS/1.0 409 Leadership Change\r\n\r\n", ""));
    domt_js_expect_unsubscription(&world, 40);
    (void)domt_js_expect_subscription(&world, 41, &tag, inbox);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.CREATE.KV_b", NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":500,\"err_code\":10012}}");
    domt_js_expect_unsubscription(&world, 41);
    expect_creation_of_consumer(0);
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    domt_js_world_end(&world);
}

/* The asker of the first fetch is gone when the client's answer to the subscription comes. The
 * consumer's next subscription uses another inbox: with the same one each message would come
 * twice. */
DOMT_TEST(abandoned_inbox_is_not_used_again)
{
    static const domus_nats_consumer_options options = {.stream = "S", .durable = "d"};
    static const domus_nats_consumer_fetch fetch = {.count = 1, .wait_ns = DOMT_SECOND};
    domus_nats_subscribe subscribe;
    char first[64], second[64];

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_consumer(&world, &options), 0);
    ck_assert_int_eq(domus_probe_ask_within(world.user, world.opened,
                                            &domus_nats_consumer_fetch_type, &fetch,
                                            DOMT_SECOND / 10),
                     0);
    ck_assert_int_eq(
        domus_probe_expect(world.client, &domus_nats_subscribe_type, DOMT_SECOND, &subscribe), 0);
    snprintf(first, sizeof first, "%.*s", (int)subscribe.subject.size,
             domus_slice_data(subscribe.subject));
    domus_nats_subscribe_type.release(&subscribe);
    domt_js_expect_failed_ask(&world, -ETIMEDOUT);
    ck_assert_int_eq(domus_probe_reply(world.client, &domus_nats_subscription_type,
                                       &(domus_nats_subscription){.number = 2}),
                     -ENOENT);
    ck_assert_int_eq(
        domus_probe_ask(world.user, world.opened, &domus_nats_consumer_fetch_type, &fetch), 0);
    (void)domt_js_expect_subscription(&world, 3, &tag, second);
    ck_assert_str_ne(first, second);
    domt_js_expect_request(&world, "$JS.API.CONSUMER.DURABLE.CREATE.S.d", NULL, NULL);
    domt_js_world_end(&world);
}

/* Other clients may store keys that are longer than domus allows; a watch passes them over. */
DOMT_TEST(watch_skips_too_long_keys)
{
    char key[300];

    memset(key, 'k', sizeof key);
    key[DOMUS_NATS_KV_KEY_MAX + 1] = '\0';
    ask_bucket_to_watch();
    expect_creation_of_consumer(2);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 1, key, NULL);
    deliver_entry_to_watch(2, 5, 0, "y", NULL);
    expect_entry_notice("y");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND / 10, NULL), 0);
    domt_js_world_end(&world);
}

/* While keys change, nats-server 2.9 reports a wrong number of pending entries. */
DOMT_TEST(initial_mark_ignores_wrong_pending_count)
{
    ask_bucket_to_watch();
    expect_creation_of_consumer(3);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 0, "x", NULL);
    expect_entry_notice("x");
    deliver_entry_to_watch(2, 4, 0, "x", NULL);
    deliver_entry_to_watch(3, 5, 0, "y", NULL);
    expect_entry_notice("y");
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_entry_to_watch(4, 6, 1, "z", NULL);
    expect_entry_notice("z");
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_entry_to_watch(5, 7, 0, "x", NULL);
    expect_entry_notice("x");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND / 10, NULL), 0);
    domt_js_world_end(&world);
}

/* Two watches of a bucket, of which the first one begins a second round after a gap. If all three
 * rounds had not different inboxes, one watch would receive the messages of the other. */
DOMT_TEST(each_watch_round_has_its_own_inbox)
{
    static const domus_nats_kv_watch plain = {.heartbeat_ns = DOMT_SECOND};
    char inboxes[6][64];

    ask_bucket_to_watch();
    for (int i = 0; i < 6; i++) {
        /* the second watch begins with the fourth round of subscription, consumer and delivery */
        if (i == 3) {
            ck_assert_int_eq(
                domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &plain), 0);
        }
        inbox_of = domt_js_expect_subscription(&world, 40, &tag, inboxes[i]);
        domt_js_expect_request(&world, "$JS.API.CONSUMER.CREATE.KV_b", NULL, NULL);
        domt_js_answer_request(&world, NULL,
                               "{\"delivered\":{\"stream_seq\":0},\"num_pending\":1}");
        if (i % 3 == 0)
            expect_answer_that_watch_began();
        if (i != 2) /* in the third round of watches no entry comes */
            deliver_entry_to_watch(9, 9, 9, "x", NULL);
        if (i != 2)
            domt_js_expect_unsubscription(&world, 40);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(inboxes[i], inboxes[k]);
    }
    domt_js_world_end(&world);
}

/* An entry may be removed after the consumer was created and before it is delivered. Then no
 * message is marked as the last one of those that existed, but the heartbeats of an idle server
 * show that none is left. */
DOMT_TEST(watch_does_not_wait_for_removed_entries)
{
    static const domus_nats_kv_keys all;
    domus_nats_kv_initial initial;
    domus_nats_kv_list list;

    ask_bucket_to_watch();
    expect_creation_of_consumer(3);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 2, "x", NULL);
    expect_entry_notice("x");
    domt_js_deliver_message(
        &world, inbox_of, tag,
        domt_js_make_message("_INBOX.x", NULL,
                             "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 1\r\n"
                             "Nats-Consumer-Stalled: a.b\r\n\r\n",
                             ""));
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    domt_js_deliver_message(
        &world, inbox_of, tag,
        domt_js_make_message("_INBOX.x", NULL,
                             "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 1\r\n\r\n", ""));
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND / 10, &initial), 0);
    ck_assert_uint_eq(initial.revision, 4);
    domt_js_world_end(&world);
    make_bucket_in_kit(false);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_keys_type, &all), 0);
    expect_opening_of_bucket();
    expect_creation_of_consumer(2);
    deliver_entry_to_watch(1, 4, 1, "x", NULL);
    domt_js_deliver_message(
        &world, inbox_of, tag,
        domt_js_make_message("_INBOX.x", NULL,
                             "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 1\r\n\r\n", ""));
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_list_type, DOMT_SECOND / 10, &list), 0);
    ck_assert_uint_eq(list.count, 1);
    domus_slice_free(list.bytes);
    domt_js_world_end(&world);
}

DOMT_SUITE(20)
