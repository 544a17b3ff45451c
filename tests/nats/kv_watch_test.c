/* A watch reports each change once and in order, although consumers get lost, messages are missing,
 * and the watcher accepts no more notices. */
#include "protocols/nats/kv.h"
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OPENED "{\"config\":{\"max_msgs_per_subject\":1},\"state\":{\"messages\":0}}"
#define CREATE "$JS.API.CONSUMER.CREATE.KV_b"
#define BEAT   "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %u\r\n\r\n"

static domt_js_world world;
static domus_address watch; /* address of the watch's actor, to which the client delivers */
static uint64_t tag;        /* tag of the watch's subscription at the client */

static const domus_nats_kv_watch plain = {.tag = 7, .heartbeat_ns = DOMT_SECOND};

static void make_bucket_with_watch(const domus_nats_kv_watch *options)
{
    domus_nats_kv_options bucket = {.bucket = "b"};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &bucket), 0);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, options),
                     0);
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_b", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
}

/* Check that the watch subscribes and asks for a consumer whose configuration begins with `begins`,
 * and answer with `pending` messages. */
static void expect_round_of_watch(const char *begins, uint64_t before, uint64_t pending)
{
    char inbox[64], body[1024], answer[200];

    watch = domt_js_expect_subscription(&world, 40, &tag, inbox);
    snprintf(body, sizeof body,
             "{\"stream_name\":\"KV_b\",\"config\":{\"deliver_subject\":\"%s\",%s,"
             "\"ack_policy\":\"none\",\"max_deliver\":1,\"filter_subject\":\"$KV.b.>\","
             "\"flow_control\":true,\"idle_heartbeat\":1000000000,\"headers_only\":false,"
             "\"mem_storage\":true,\"num_replicas\":1,\"inactive_threshold\":3000000000}}",
             inbox, begins);
    domt_js_expect_request(&world, CREATE, NULL, body);
    snprintf(answer, sizeof answer,
             "{\"name\":\"abc\",\"delivered\":{\"consumer_seq\":0,\"stream_seq\":%llu},"
             "\"num_pending\":%llu}",
             (unsigned long long)before, (unsigned long long)pending);
    domt_js_answer_request(&world, NULL, answer);
}

#define NEWEST "\"deliver_policy\":\"last_per_subject\",\"opt_start_seq\":0"

static void expect_answer_that_watch_began(void)
{
    domus_nats_kv_watching watching;
    int error =
        domus_probe_expect(world.user, &domus_nats_kv_watching_type, DOMT_SECOND, &watching);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert(domus_address_equals(watching.watch, watch));
}

static void deliver_entry_to_watch(unsigned delivery, unsigned revision, unsigned pending,
                                   const char *key, const char *headers)
{
    char reply[100], subject[100];

    snprintf(reply, sizeof reply, "$JS.ACK.KV_b.abc.1.%u.%u.1000.%u", revision, delivery, pending);
    snprintf(subject, sizeof subject, "$KV.b.%s", key);
    domt_js_deliver_message(
        &world, watch, tag,
        domt_js_make_message(subject, reply, headers, headers != NULL ? "" : "value"));
}

static void deliver_status_to_watch(const char *headers, const char *reply)
{
    domt_js_deliver_message(&world, watch, tag,
                            domt_js_make_message("_INBOX.x", reply, headers, ""));
}

static void deliver_heartbeat_to_watch(unsigned delivered)
{
    char text[200];

    snprintf(text, sizeof text, BEAT, delivered);
    deliver_status_to_watch(text, NULL);
}

static void expect_entry_notice(const char *key, uint64_t revision, uint8_t operation, bool initial)
{
    domus_nats_kv_entry entry;
    int error = domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND, &entry);

    ck_assert_msg(error == 0, "%s %s", key, domus_testkit_error(world.kit));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_key(&entry), key));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_value(&entry),
                                     operation == DOMUS_NATS_KV_PUT ? "value" : ""));
    ck_assert_uint_eq(entry.revision, revision);
    ck_assert_uint_eq(entry.operation, operation);
    ck_assert_uint_eq(entry.initial, initial);
    ck_assert_uint_eq(entry.tag, 7);
    ck_assert_uint_eq(entry.written_ns, 1000);
    ck_assert(domus_address_equals(domus_probe_sender(world.user), watch));
    domus_slice_free(entry.bytes);
}

static void expect_initial_mark(uint64_t revision)
{
    domus_nats_kv_initial initial;
    int error = domus_probe_expect(world.user, &domus_nats_kv_initial_type, DOMT_SECOND, &initial);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert_uint_eq(initial.tag, 7);
    ck_assert_uint_eq(initial.revision, revision);
}

static void expect_ended_notice(int reason)
{
    domus_nats_kv_ended ended;
    int error = domus_probe_expect(world.user, &domus_nats_kv_ended_type, DOMT_SECOND, &ended);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert_uint_eq(ended.tag, 7);
    ck_assert_int_eq(ended.error, reason);
}

DOMT_TEST(watch_reports_entries_before_changes)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 2);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 1, "x", NULL);
    deliver_entry_to_watch(2, 6, 0, "y.z",
                           "NATS/1.0\r\nKV-Operation: PURGE\r\nNats-Rollup: sub\r\n\r\n");
    deliver_entry_to_watch(3, 7, 0, "x", "NATS/1.0\r\nKV-Operation: DEL\r\n\r\n");
    deliver_entry_to_watch(4, 8, 1, "x", "NATS/1.0\r\nKV-Operation: PUT\r\n\r\n");
    expect_entry_notice("x", 4, DOMUS_NATS_KV_PUT, true);
    expect_entry_notice("y.z", 6, DOMUS_NATS_KV_PURGE, true);
    expect_initial_mark(6);
    expect_entry_notice("x", 7, DOMUS_NATS_KV_DELETE, false);
    domus_nats_kv_entry entry;
    ck_assert_int_eq(domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND, &entry),
                     0);
    ck_assert_uint_eq(entry.operation, DOMUS_NATS_KV_PUT);
    ck_assert_uint_eq(entry.pending, 1);
    domus_slice_free(entry.bytes);
    domt_js_world_end(&world);
}

DOMT_TEST(entries_follow_answer_of_watch_ask)
{
    char inbox[64];

    make_bucket_with_watch(&plain);
    watch = domt_js_expect_subscription(&world, 40, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    deliver_entry_to_watch(1, 4, 1, "x", NULL);
    deliver_entry_to_watch(2, 5, 0, "y", NULL);
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    domt_js_answer_request(&world, NULL, "{\"delivered\":{\"stream_seq\":0},\"num_pending\":2}");
    expect_answer_that_watch_began();
    expect_entry_notice("x", 4, DOMUS_NATS_KV_PUT, true);
    expect_entry_notice("y", 5, DOMUS_NATS_KV_PUT, true);
    expect_initial_mark(5);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_of_empty_bucket_marks_end_at_once)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 0);
    expect_answer_that_watch_began();
    expect_initial_mark(0);
    deliver_entry_to_watch(1, 1, 0, "x", NULL);
    expect_entry_notice("x", 1, DOMUS_NATS_KV_PUT, false);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_requests_missing_message_again)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 3);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 2, "x", NULL);
    expect_entry_notice("x", 4, DOMUS_NATS_KV_PUT, true);
    uint64_t old = tag;
    /* the delivery with number 2 is missing, so the watch asks again */
    deliver_entry_to_watch(3, 6, 0, "z", NULL);
    domt_js_expect_unsubscription(&world, 40);
    expect_round_of_watch("\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":5", 4, 2);
    ck_assert_uint_ne(tag, old);
    uint64_t now = tag;
    tag = old;
    /* this delivery is of the old consumer, and is not reported */
    deliver_entry_to_watch(4, 7, 0, "late", NULL);
    tag = now;
    deliver_entry_to_watch(1, 5, 1, "y", NULL);
    deliver_entry_to_watch(2, 6, 0, "z", NULL);
    expect_entry_notice("y", 5, DOMUS_NATS_KV_PUT, true);
    expect_entry_notice("z", 6, DOMUS_NATS_KV_PUT, true);
    expect_initial_mark(6);
    domt_js_world_end(&world);
}

DOMT_TEST(heartbeat_reveals_missing_message)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 1);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 0, "x", NULL);
    expect_entry_notice("x", 4, DOMUS_NATS_KV_PUT, true);
    expect_initial_mark(4);
    deliver_heartbeat_to_watch(1);
    ck_assert_int_eq(domus_probe_expect_nothing(world.client, DOMT_SECOND / 2), 0);
    deliver_heartbeat_to_watch(2); /* delivery 2 is missing, and only this heartbeat tells of it */
    domt_js_expect_unsubscription(&world, 40);
    expect_round_of_watch("\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":5", 4, 1);
    deliver_entry_to_watch(1, 5, 0, "y", NULL);
    expect_entry_notice("y", 5, DOMUS_NATS_KV_PUT, false);
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    domt_js_world_end(&world);
}

DOMT_TEST(silent_consumer_is_replaced)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 0);
    expect_answer_that_watch_began();
    expect_initial_mark(0);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(domus_testkit_advance(world.kit, DOMT_SECOND), 0);
        deliver_heartbeat_to_watch(0);
    }
    uint64_t from_ns = domus_testkit_now_ns(world.kit);
    domt_js_expect_unsubscription_within(&world, 40, 10 * DOMT_SECOND);
    uint64_t took_ns = domus_testkit_now_ns(world.kit) - from_ns;
    ck_assert(took_ns > DOMT_SECOND && took_ns <= 3 * DOMT_SECOND);
    expect_round_of_watch(NEWEST, 0, 0);
    deliver_entry_to_watch(1, 1, 0, "x", NULL);
    expect_entry_notice("x", 1, DOMUS_NATS_KV_PUT, false);
    deliver_status_to_watch("NATS/1.0 409 Consumer Deleted\r\n\r\n", NULL);
    domt_js_expect_unsubscription(&world, 40);
    expect_round_of_watch("\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":2", 1, 0);
    domt_js_world_end(&world);
}

DOMT_TEST(flow_control_of_server_is_answered_after_delivery)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 0);
    expect_answer_that_watch_began();
    expect_initial_mark(0);
    deliver_status_to_watch("NATS/1.0 100 FlowControl Request\r\n\r\n", "$JS.FC.KV_b.abc.1");
    domt_js_expect_publication(&world, &domus_nats_publish_type, "$JS.FC.KV_b.abc.1", NULL, "",
                               NULL);
    deliver_status_to_watch("NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 0\r\n"
                            "Nats-Consumer-Stalled: $JS.FC.KV_b.abc.2\r\n\r\n",
                            NULL);
    domt_js_expect_publication(&world, &domus_nats_publish_type, "$JS.FC.KV_b.abc.2", NULL, "",
                               NULL);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_requests_what_its_options_say)
{
    domus_nats_kv_watch options = plain;

    options.history = true;
    make_bucket_with_watch(&options);
    expect_round_of_watch("\"deliver_policy\":\"all\",\"opt_start_seq\":0", 0, 1);
    domt_js_world_end(&world);

    options = plain;
    options.changes_only = true;
    make_bucket_with_watch(&options);
    expect_round_of_watch("\"deliver_policy\":\"new\",\"opt_start_seq\":0", 3, 0);
    expect_answer_that_watch_began();
    expect_initial_mark(0);
    deliver_status_to_watch("NATS/1.0 409 Consumer Deleted\r\n\r\n", NULL);
    domt_js_expect_unsubscription(&world, 40);
    expect_round_of_watch("\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":4", 3, 0);
    domt_js_world_end(&world);

    options = plain;
    options.from = 9;
    options.ignore_deletes = true;
    make_bucket_with_watch(&options);
    expect_round_of_watch("\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":9", 8, 1);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 9, 0, "x", "NATS/1.0\r\nKV-Operation: DEL\r\n\r\n");
    expect_initial_mark(9);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_with_wrong_options_is_refused)
{
    domus_nats_kv_watch options = plain;

    options.heartbeat_ns = DOMT_SECOND / 10 - 1;
    make_bucket_with_watch(&options);
    domt_js_expect_failed_ask(&world, -EINVAL);
    options = plain;
    memcpy(options.pattern, "a.>.b", 6);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &options),
                     0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    /* the watch's pattern fills its field, without a zero byte at the end */
    memset(options.pattern, 'a', sizeof options.pattern);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &options),
                     0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    domt_js_world_end(&world);
}

DOMT_TEST(first_error_fails_the_watch_ask)
{
    char inbox[64];

    make_bucket_with_watch(&plain);
    watch = domt_js_expect_subscription(&world, 40, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":400,\"err_code\":10003}}");
    domt_js_expect_unsubscription(&world, 40);
    domt_js_expect_failed_ask(&world, -EINVAL);
    domt_js_world_end(&world);
}

DOMT_TEST(later_error_is_retried_or_ends_watch)
{
    char inbox[64];
    uint64_t waited_ns = 0;

    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 1);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 4, 0, "x", NULL);
    expect_entry_notice("x", 4, DOMUS_NATS_KV_PUT, true);
    expect_initial_mark(4);
    deliver_status_to_watch("NATS/1.0 409 Server Shutdown\r\n\r\n", NULL);
    domt_js_expect_unsubscription(&world, 40);
    for (int i = 0; i < 12; i++) {
        uint64_t from_ns = domus_testkit_now_ns(world.kit);
        watch = domt_js_expect_subscription(&world, 41, &tag, inbox);
        waited_ns = domus_testkit_now_ns(world.kit) - from_ns;
        domt_js_expect_request(&world, CREATE, NULL, NULL);
        ck_assert_int_eq(domus_probe_fail(world.client, -ETIMEDOUT), 0);
        domt_js_expect_unsubscription(&world, 41);
    }
    /* The time is the sum of the pauses of the watch's back-off. */
    ck_assert(waited_ns >= 4 * DOMT_SECOND && waited_ns < 6 * DOMT_SECOND);
    watch = domt_js_expect_subscription(&world, 42, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":404,\"err_code\":10059}}");
    expect_ended_notice(-ENXIO);
    domt_js_expect_unsubscription(&world, 42);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_ends_when_bucket_is_created_anew)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 1);
    expect_answer_that_watch_began();
    deliver_entry_to_watch(1, 40, 0, "x", NULL);
    expect_entry_notice("x", 40, DOMUS_NATS_KV_PUT, true);
    expect_initial_mark(40);
    deliver_status_to_watch("NATS/1.0 409 Consumer Deleted\r\n\r\n", NULL);
    domt_js_expect_unsubscription(&world, 40);
    expect_round_of_watch("\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":41", 3, 0);
    expect_ended_notice(-ENXIO);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_skips_messages_of_strangers)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 0);
    expect_answer_that_watch_began();
    expect_initial_mark(0);
    domt_js_deliver_message(&world, watch, tag,
                            domt_js_make_message("$KV.b.x", NULL, NULL, "value"));
    domt_js_deliver_message(&world, watch, tag,
                            domt_js_make_message("$KV.b.x", "$JS.ACK.a.b.c", NULL, ""));
    domt_js_deliver_message(
        &world, watch, tag,
        domt_js_make_message("$KV.c.x", "$JS.ACK.KV_b.abc.1.1.1.1.0", NULL, ""));
    domt_js_deliver_message(
        &world, watch, tag,
        domt_js_make_message("$KV.b.x", "$JS.ACK.KV_b.abc.1.0.1.1.0", NULL, ""));
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND / 10), 0);
    deliver_entry_to_watch(1, 1, 0, "x", NULL);
    expect_entry_notice("x", 1, DOMUS_NATS_KV_PUT, false);
    /* this delivery has the entry of revision 1 again, and is not reported */
    deliver_entry_to_watch(2, 1, 0, "x", NULL);
    deliver_entry_to_watch(3, 7, 0, "x", NULL);
    expect_entry_notice("x", 7, DOMUS_NATS_KV_PUT, false);
    /* this delivery has an older revision than the last, so the watch begins anew */
    deliver_entry_to_watch(4, 6, 0, "x", NULL);
    domt_js_expect_unsubscription(&world, 40);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_ends_when_watcher_ends)
{
    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 0);
    expect_answer_that_watch_began();
    ck_assert_int_eq(
        domus_outside_stop(domus_testkit_system(world.kit), domus_probe_address(world.user)), 0);
    domt_js_expect_unsubscription(&world, 40);
    domt_js_world_end(&world);
}

DOMT_TEST(stopped_watch_sends_no_notice)
{
    char inbox[64];

    make_bucket_with_watch(&plain);
    expect_round_of_watch(NEWEST, 0, 0);
    expect_answer_that_watch_began();
    expect_initial_mark(0);
    deliver_status_to_watch("NATS/1.0 409 Consumer Deleted\r\n\r\n", NULL);
    domt_js_expect_unsubscription(&world, 40);
    watch = domt_js_expect_subscription(&world, 41, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(world.kit), watch), 0);
    domt_js_expect_unsubscription(&world, 41);
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND), 0);
    domt_js_world_end(&world);
}

DOMT_TEST(watch_ends_if_its_asker_is_gone)
{
    char inbox[64];

    domus_nats_kv_options bucket = {.bucket = "b"};
    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &bucket), 0);
    ck_assert_int_eq(domus_probe_ask_within(world.user, world.opened, &domus_nats_kv_watch_type,
                                            &plain, DOMT_SECOND),
                     0);
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_b", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
    watch = domt_js_expect_subscription(&world, 40, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    domt_js_expect_failed_ask(&world, -ETIMEDOUT);
    domt_js_expect_unsubscription(&world, 40);
    ck_assert_int_eq(domus_probe_expect_nothing(world.user, DOMT_SECOND), 0);
    ck_assert_int_eq(domus_probe_send(world.user, watch, &domus_nats_done_type, NULL), -ESTALE);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(world.kit), &domi_kv_watch_behaviour,
                                         NULL, &watch),
                     0); /* this watch starts after its ask was dropped */
    ck_assert_int_eq(domus_testkit_advance(world.kit, 2 * DOMT_SECOND), 0);
    ck_assert_int_eq(domus_probe_send(world.user, watch, &domus_nats_done_type, NULL), -ESTALE);
    domt_js_world_end(&world);
}

DOMT_SUITE(20)
