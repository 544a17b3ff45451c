/* A stream sends the requests of JetStream's protocol, and reads the answers. */
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define OPENED                                                                                     \
    "{\"config\":{\"max_msgs\":10,\"retention\":\"workqueue\",\"max_msg_size\":-1},"               \
    "\"state\":{\"messages\":7,\"first_seq\":3,\"last_seq\":9,\"consumer_count\":2}}"

static domt_js_world world;

static void set_up(void)
{
    domus_nats_stream_options options = {.name = "S"};

    domt_js_begin(&world);
    ck_assert_int_eq(domt_js_open_stream(&world, &options), 0);
}

static void expect_open(void)
{
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.S", NULL, "");
    domt_js_answer(&world, NULL, OPENED);
}

static void ask_stream(const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, type, payload), 0);
}

static domus_nats_stream_publish make_publication(const char *payload)
{
    domus_nats_stream_publish publish;

    ck_assert_int_eq(domus_nats_stream_publish_make("s.1", payload, strlen(payload), &publish), 0);
    return publish;
}

static domus_nats_stream_ack expect_ack(uint64_t sequence)
{
    domus_nats_stream_ack ack;
    int error = domus_probe_expect(world.user, &domus_nats_stream_ack_type, DOMT_SECOND, &ack);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert_uint_eq(ack.sequence, sequence);
    return ack;
}

DOMT_TEST(publish_is_acknowledged)
{
    domus_nats_stream_publish publish = make_publication("one");

    set_up();
    ask_stream(&domus_nats_stream_publish_type, &publish);
    expect_open();
    domt_js_expect_request(&world, "s.1", NULL, "one");
    domt_js_answer(&world, NULL, "{\"stream\":\"S\", \"seq\":10}");
    ck_assert(!expect_ack(10).duplicate);
    publish = make_publication("two");
    memcpy(publish.id, "m1", 3);
    ask_stream(&domus_nats_stream_publish_type, &publish);
    domt_js_expect_request(&world, "s.1", "Nats-Msg-Id: m1", "two");
    domt_js_answer(&world, NULL, "{\"stream\":\"S\", \"seq\":10,\"duplicate\": true}");
    ck_assert(expect_ack(10).duplicate);
    domt_js_end(&world);
}

DOMT_TEST(publish_says_what_it_expects)
{
    domus_nats_stream_publish publish = make_publication("one");
    domus_appender headers = {0};

    set_up();
    publish.expected_last = 0;
    publish.expected_last_of_subject = 5;
    ck_assert_int_eq(domus_nats_headers_add(&headers, "A", "b"), 0);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.message.headers), 0);
    ask_stream(&domus_nats_stream_publish_type, &publish);
    expect_open();
    domt_js_expect_request(&world, "s.1",
                           "A: b\r\nNats-Expected-Last-Sequence: 0\r\n"
                           "Nats-Expected-Last-Subject-Sequence: 5",
                           "one");
    domt_js_answer(&world, NULL, "{\"error\":{\"code\":400,\"err_code\":10071},\"seq\":0}");
    domt_js_expect_error(&world, -EEXIST);
    publish = make_publication("two");
    ck_assert_int_eq(domus_nats_headers_add(&headers, "A", "b"), 0);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.message.headers), 0);
    ask_stream(&domus_nats_stream_publish_type, &publish);
    domt_js_expect_request(&world, "s.1", "A: b", "two");
    ck_assert_int_eq(domus_probe_fail(world.client, -EMSGSIZE), 0);
    domt_js_expect_error(&world, -EMSGSIZE);
    publish = make_publication("three");
    memset(publish.id, 'i', sizeof publish.id); /* the id has no zero at its end */
    ask_stream(&domus_nats_stream_publish_type, &publish);
    domt_js_expect_error(&world, -EINVAL);
    domt_js_end(&world);
}

DOMT_TEST(message_is_read)
{
    domus_nats_stream_get get = {.sequence = 4};
    domus_nats_stream_message message;
    domus_slice value;
    uint32_t from = 0;

    set_up();
    ask_stream(&domus_nats_stream_get_type, &get);
    expect_open();
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.S", NULL, "{\"seq\":4}");
    domt_js_answer(&world, NULL,
                   "{\"message\":{\"subject\":\"s.1\",\"seq\":4,"
                   "\"hdrs\":\"TkFUUy8xLjANCktWLU9wZXJhdGlvbjogREVMDQoNCg==\","
                   "\"data\":\"dHdv\",\"time\":\"1970-01-01T00:00:01Z\"}}");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_stream_message_type, DOMT_SECOND, &message), 0);
    ck_assert(domt_js_slice_has_text(domus_nats_stream_subject(&message), "s.1"));
    ck_assert(domt_js_slice_has_text(domus_nats_stream_payload(&message), "two"));
    ck_assert(domt_js_slice_has_text(domus_nats_stream_headers(&message),
                                     "NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"));
    ck_assert_int_eq(domus_nats_stream_header(&message, "KV-Operation", &from, &value), 0);
    ck_assert(domt_js_slice_has_text(value, "DEL"));
    ck_assert_int_eq(domus_nats_stream_header(&message, "KV-Operation", &from, &value), -ENOENT);
    ck_assert_uint_eq(message.sequence, 4);
    ck_assert_uint_eq(message.stored_ns, DOMT_SECOND);
    ck_assert_uint_eq(message.ack_size, 0);
    domus_slice_free(message.bytes);
    get = (domus_nats_stream_get){.subject = "s.1"};
    ask_stream(&domus_nats_stream_get_type, &get);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.S", NULL, "{\"last_by_subj\":\"s.1\"}");
    domt_js_answer(&world, NULL, "{\"error\":{\"code\":404,\"err_code\":10037}}");
    domt_js_expect_error(&world, -ENOENT);
    get = (domus_nats_stream_get){.subject = "s.*"};
    ask_stream(&domus_nats_stream_get_type, &get);
    domt_js_expect_error(&world, -EINVAL);
    domt_js_end(&world);
}

DOMT_TEST(stream_is_looked_at_purged_and_removed)
{
    domus_nats_stream_purge purge = {.below = 5, .subject = "s.*"};
    domus_nats_stream_status status;
    domus_nats_stream_count count;

    set_up();
    ask_stream(&domus_nats_stream_purge_type, &purge);
    expect_open();
    domt_js_expect_request(&world, "$JS.API.STREAM.PURGE.S", NULL,
                           "{\"filter\":\"s.*\",\"seq\":5,\"keep\":0}");
    domt_js_answer(&world, NULL, "{\"success\":true,\"purged\":3}");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_stream_count_type, DOMT_SECOND, &count), 0);
    ck_assert_uint_eq(count.count, 3);
    purge = (domus_nats_stream_purge){.keep = 1};
    ask_stream(&domus_nats_stream_purge_type, &purge);
    domt_js_expect_request(&world, "$JS.API.STREAM.PURGE.S", NULL, "{\"seq\":0,\"keep\":1}");
    domt_js_answer(&world, NULL, "{\"purged\":\"3\"}");
    domt_js_expect_error(&world, -EPROTO);
    purge.below = 1;
    ask_stream(&domus_nats_stream_purge_type, &purge);
    domt_js_expect_error(&world, -EINVAL);
    ask_stream(&domus_nats_stream_look_type, NULL);
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.S", NULL, "");
    domt_js_answer(&world, NULL, OPENED);
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_stream_status_type, DOMT_SECOND, &status), 0);
    ck_assert_uint_eq(status.messages, 7);
    ck_assert_uint_eq(status.first_sequence, 3);
    ck_assert_uint_eq(status.last_sequence, 9);
    ck_assert_uint_eq(status.consumers, 2);
    ck_assert_uint_eq(status.messages_max, 10);
    ck_assert_uint_eq(status.message_max, 0);
    ck_assert_int_eq(status.retention, DOMUS_NATS_WORKQUEUE);
    ask_stream(&domus_nats_stream_remove_type, NULL);
    domt_js_expect_request(&world, "$JS.API.STREAM.DELETE.S", NULL, "");
    domt_js_answer(&world, NULL, "{\"error\":{\"code\":404,\"err_code\":10059}}");
    domt_js_expect_error(&world, -ENXIO);
    domus_nats_stream_get get = {.sequence = 1};
    ask_stream(&domus_nats_stream_get_type, &get); /* the stream is opened again */
    expect_open();
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.S", NULL, "{\"seq\":1}");
    domt_js_end(&world);
}

DOMT_TEST(stream_is_made_with_its_options)
{
    domus_nats_stream_config config = {.subjects = "a.*, b.>",
                                       .retention = DOMUS_NATS_INTEREST,
                                       .messages_max = 9,
                                       .duplicate_window_ns = 5};
    domus_nats_stream_options options = {.name = "S", .create = &config};
    static const char *const wrong[] = {NULL, "", ",", "a,", "a,,b", "a b", "a.>.b", "\xff"};

    domt_js_begin(&world);
    ck_assert_int_eq(domt_js_open_stream(&world, &options), 0);
    ask_stream(&domus_nats_stream_look_type, NULL);
    domt_js_expect_request(
        &world, "$JS.API.STREAM.CREATE.S", NULL,
        "{\"name\":\"S\",\"subjects\":[\"a.*\",\"b.>\"],\"storage\":\"file\","
        "\"retention\":\"interest\",\"discard\":\"old\",\"num_replicas\":1,\"max_consumers\":-1,"
        "\"max_msgs\":9,\"max_msgs_per_subject\":-1,\"max_bytes\":-1,\"max_msg_size\":-1,"
        "\"max_age\":0,\"duplicate_window\":5,\"allow_direct\":false,\"allow_rollup_hdrs\":false,"
        "\"deny_delete\":false,\"deny_purge\":false}");
    domt_js_answer(&world, NULL, "{\"error\":{\"code\":400,\"err_code\":10058}}");
    domt_js_expect_error(&world, -EEXIST);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        config.subjects = wrong[i];
        ck_assert_int_eq(domt_js_open_stream(&world, &options), -EINVAL);
    }
    char text[DOMUS_NATS_SUBJECTS_SIZE + 1];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    config.subjects = text;
    ck_assert_int_eq(domt_js_open_stream(&world, &options), -E2BIG);
    options.create = NULL;
    options.name = "a.b";
    ck_assert_int_eq(domt_js_open_stream(&world, &options), -EINVAL);
    domt_js_end(&world);
}

DOMT_SUITE(20)
