/* Answers with a correct form and wrong content, and messages whose publishers have set headers
 * that only a server should set. */
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
static domus_address inbox_of; /* address of the subscriber */
static uint64_t tag;

static void set_up(bool reads_any)
{
    domus_nats_kv_options options = {.bucket = "b", .reads_any = reads_any};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
}

static void expect_open(void)
{
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_b", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
}

/* Check that a watch or list creates a consumer, and answer that `pending` messages will be
 * delivered. */
static void expect_consumer(uint64_t pending)
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

static void deliver_message(unsigned delivery, unsigned revision, unsigned pending, const char *key,
                            const char *headers)
{
    char reply[100], subject[300];

    snprintf(reply, sizeof reply, "$JS.ACK.KV_b.c.1.%u.%u.1000.%u", revision, delivery, pending);
    snprintf(subject, sizeof subject, "$KV.b.%s", key);
    domt_js_deliver_message(&world, inbox_of, tag,
                            domt_js_make_message(subject, reply, headers, "value"));
}

static void ask_to_watch(void)
{
    static const domus_nats_kv_watch plain = {.heartbeat_ns = DOMT_SECOND};

    set_up(false);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &plain),
                     0);
    expect_open();
}

static void expect_watching(void)
{
    domus_nats_kv_watching watching;

    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_watching_type, DOMT_SECOND, &watching), 0);
}

static void expect_entry(const char *key)
{
    domus_nats_kv_entry entry;
    int error = domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND, &entry);

    ck_assert_msg(error == 0, "%s %s", key, domus_testkit_error(world.kit));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_key(&entry), key));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_value(&entry), "value"));
    domus_slice_free(entry.bytes);
}

/* A server answers with the entry of another key: the entry is refused, and freed once. */
DOMT_TEST(marker_of_another_key_is_none)
{
    domus_nats_kv_put put = {.condition = DOMUS_NATS_KV_IF_NONE, .key = "x"};
    domus_nats_kv_revision revision;

    set_up(false);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_put_type, &put), 0);
    expect_open();
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

/* A status in the headers of a stored message was set by its publisher, and is not the server's. */
DOMT_TEST(stored_status_is_that_of_its_publisher)
{
    static const domus_nats_kv_get get = {.key = "x"};

    ask_to_watch();
    expect_consumer(2);
    expect_watching();
    deliver_message(1, 4, 1, "x", "NATS/1.0 503\r\n\r\n");
    expect_entry("x");
    deliver_message(2, 5, 0, "y", "NATS/1.0 100\r\n\r\n");
    expect_entry("y");
    domt_js_world_end(&world);
    set_up(true);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_get_type, &get), 0);
    expect_open();
    domt_js_expect_request(&world, "$JS.API.DIRECT.GET.KV_b.$KV.b.x", NULL, "");
    domt_js_answer_request(
        &world, "NATS/1.0 404\r\nNats-Subject: $KV.b.x\r\nNats-Sequence: 1\r\n\r\n", "value");
    expect_entry("x");
    domt_js_world_end(&world);
}

/* A message with such a status is still delivered: otherwise it would come again and again, and
 * could never be acknowledged. */
DOMT_TEST(stored_status_does_not_keep_a_message_from_being_fetched)
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

/* A server delivers before it has answered: the number of messages that wait for the answer is
 * bounded. */
DOMT_TEST(what_comes_before_the_answer_is_bounded)
{
    char inbox[64], *value = calloc(1, (1 << 20) + 1);
    domus_nats_kv_entry entry;
    uint32_t told = 0;

    memset(value, 'v', 1 << 20);
    ask_to_watch();
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
    expect_watching();
    while (domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND / 10, &entry) ==
           0) {
        domus_slice_free(entry.bytes);
        told++;
    }
    ck_assert_uint_ge(told, 8);
    ck_assert_uint_le(told, 9);
    deliver_message(17, 17, 9, "x", NULL); /* a gap: the missing messages are requested again */
    domt_js_expect_unsubscription(&world, 40);
    free(value);
    domt_js_world_end(&world);
}

/* An error that the server does not explain may be temporary, so it does not end a watch. */
DOMT_TEST(unknown_error_does_not_end_a_watch)
{
    char inbox[64];

    ask_to_watch();
    expect_consumer(0);
    expect_watching();
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
    expect_consumer(0);
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    domt_js_world_end(&world);
}

/* The asker of the first fetch is gone when the client subscribes. The next subscription uses
 * another inbox: with the same inbox each message would come twice. */
DOMT_TEST(inbox_that_may_be_subscribed_is_left)
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

/* Other clients may store longer keys, which a watch does not report. */
DOMT_TEST(too_long_a_key_is_passed_over)
{
    char key[300];

    memset(key, 'k', sizeof key);
    key[DOMUS_NATS_KV_KEY_MAX + 1] = '\0';
    ask_to_watch();
    expect_consumer(2);
    expect_watching();
    deliver_message(1, 4, 1, key, NULL);
    deliver_message(2, 5, 0, "y", NULL);
    expect_entry("y");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND / 10, NULL), 0);
    domt_js_world_end(&world);
}

/* While keys change, nats-server 2.9 reports a wrong number of pending entries. */
DOMT_TEST(mark_is_behind_as_many_entries_as_there_were)
{
    ask_to_watch();
    expect_consumer(3);
    expect_watching();
    deliver_message(1, 4, 0, "x", NULL);
    expect_entry("x");
    deliver_message(2, 4, 0, "x", NULL);
    deliver_message(3, 5, 0, "y", NULL);
    expect_entry("y");
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_message(4, 6, 1, "z", NULL);
    expect_entry("z");
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_message(5, 7, 0, "x", NULL);
    expect_entry("x");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND / 10, NULL), 0);
    domt_js_world_end(&world);
}

/* Two watches of a bucket: the first one begins a second round. If the inboxes were not all
 * different, it would receive the messages of the other watch. */
DOMT_TEST(each_round_of_each_watch_has_an_inbox_of_its_own)
{
    static const domus_nats_kv_watch plain = {.heartbeat_ns = DOMT_SECOND};
    char inboxes[6][64];

    ask_to_watch();
    for (int i = 0; i < 6; i++) {
        if (i == 3) { /* the second watch begins */
            ck_assert_int_eq(
                domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &plain), 0);
        }
        inbox_of = domt_js_expect_subscription(&world, 40, &tag, inboxes[i]);
        domt_js_expect_request(&world, "$JS.API.CONSUMER.CREATE.KV_b", NULL, NULL);
        domt_js_answer_request(&world, NULL,
                               "{\"delivered\":{\"stream_seq\":0},\"num_pending\":1}");
        if (i % 3 == 0)
            expect_watching();
        if (i != 2) /* the gap in the sequence makes the watch begin anew */
            deliver_message(9, 9, 9, "x", NULL);
        if (i != 2)
            domt_js_expect_unsubscription(&world, 40);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(inboxes[i], inboxes[k]);
    }
    domt_js_world_end(&world);
}

/* An entry may be removed after the consumer was created and before it is delivered. Then no
 * message is marked as the last one, but the heartbeats of an idle server show that nothing is
 * left. */
DOMT_TEST(entries_that_go_meanwhile_are_not_waited_for)
{
    static const domus_nats_kv_keys all;
    domus_nats_kv_initial initial;
    domus_nats_kv_list list;

    ask_to_watch();
    expect_consumer(3);
    expect_watching();
    deliver_message(1, 4, 2, "x", NULL);
    expect_entry("x");
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
    set_up(false);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_keys_type, &all), 0);
    expect_open();
    expect_consumer(2);
    deliver_message(1, 4, 1, "x", NULL);
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
