/* The stage of JetStream that is nearest to the bytes: a stream sends its requests and reads the
 * answers, and the texts in both are written and read. */
#include "protocols/nats/js.h"
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stream sends the requests of JetStream's protocol, and reads the answers. */

#define OPENED                                                                                     \
    "{\"config\":{\"max_msgs\":10,\"retention\":\"workqueue\",\"max_msg_size\":-1},"               \
    "\"state\":{\"messages\":7,\"first_seq\":3,\"last_seq\":9,\"consumer_count\":2}}"

static domt_js_world world;

static void make_stream_in_kit(void)
{
    domus_nats_stream_options options = {.name = "S"};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_stream(&world, &options), 0);
}

static void expect_opening_of_stream(void)
{
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.S", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
}

static void ask_stream_as_user(const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, type, payload), 0);
}

static domus_nats_stream_publish make_stream_publication(const char *payload)
{
    domus_nats_stream_publish publish;

    ck_assert_int_eq(domus_nats_stream_publish_make("s.1", payload, strlen(payload), &publish), 0);
    return publish;
}

static domus_nats_stream_ack expect_publish_acknowledgement(uint64_t sequence)
{
    domus_nats_stream_ack ack;
    int error = domus_probe_expect(world.user, &domus_nats_stream_ack_type, DOMT_SECOND, &ack);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert_uint_eq(ack.sequence, sequence);
    return ack;
}

DOMT_TEST(publish_is_answered_with_its_sequence)
{
    domus_nats_stream_publish publish = make_stream_publication("one");

    make_stream_in_kit();
    ask_stream_as_user(&domus_nats_stream_publish_type, &publish);
    expect_opening_of_stream();
    domt_js_expect_request(&world, "s.1", NULL, "one");
    domt_js_answer_request(&world, NULL, "{\"stream\":\"S\", \"seq\":10}");
    ck_assert(!expect_publish_acknowledgement(10).duplicate);
    publish = make_stream_publication("two");
    memcpy(publish.id, "m1", 3);
    ask_stream_as_user(&domus_nats_stream_publish_type, &publish);
    domt_js_expect_request(&world, "s.1", "Nats-Msg-Id: m1", "two");
    domt_js_answer_request(&world, NULL, "{\"stream\":\"S\", \"seq\":10,\"duplicate\": true}");
    ck_assert(expect_publish_acknowledgement(10).duplicate);
    domt_js_world_end(&world);
}

DOMT_TEST(publish_sends_its_conditions_as_headers)
{
    domus_nats_stream_publish publish = make_stream_publication("one");
    domus_appender headers = {0};

    make_stream_in_kit();
    publish.expected_last = 0;
    publish.expected_last_of_subject = 5;
    ck_assert_int_eq(domus_nats_headers_add(&headers, "A", "b"), 0);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.message.headers), 0);
    ask_stream_as_user(&domus_nats_stream_publish_type, &publish);
    expect_opening_of_stream();
    domt_js_expect_request(&world, "s.1",
                           "A: b\r\nNats-Expected-Last-Sequence: 0\r\n"
                           "Nats-Expected-Last-Subject-Sequence: 5",
                           "one");
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":400,\"err_code\":10071},\"seq\":0}");
    domt_js_expect_failed_ask(&world, -EEXIST);
    publish = make_stream_publication("two");
    ck_assert_int_eq(domus_nats_headers_add(&headers, "A", "b"), 0);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &publish.message.headers), 0);
    ask_stream_as_user(&domus_nats_stream_publish_type, &publish);
    domt_js_expect_request(&world, "s.1", "A: b", "two");
    ck_assert_int_eq(domus_probe_fail(world.client, -EMSGSIZE), 0);
    domt_js_expect_failed_ask(&world, -EMSGSIZE);
    publish = make_stream_publication("three");
    /* the message id fills its field, without a zero byte at the end */
    memset(publish.id, 'i', sizeof publish.id);
    ask_stream_as_user(&domus_nats_stream_publish_type, &publish);
    domt_js_expect_failed_ask(&world, -EINVAL);
    domt_js_world_end(&world);
}

DOMT_TEST(stored_message_is_read)
{
    domus_nats_stream_get get = {.sequence = 4};
    domus_nats_stream_message message;
    domus_slice value;
    uint32_t from = 0;

    make_stream_in_kit();
    ask_stream_as_user(&domus_nats_stream_get_type, &get);
    expect_opening_of_stream();
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.S", NULL, "{\"seq\":4}");
    domt_js_answer_request(&world, NULL,
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
    ask_stream_as_user(&domus_nats_stream_get_type, &get);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.S", NULL, "{\"last_by_subj\":\"s.1\"}");
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":404,\"err_code\":10037}}");
    domt_js_expect_failed_ask(&world, -ENOENT);
    get = (domus_nats_stream_get){.subject = "s.*"};
    ask_stream_as_user(&domus_nats_stream_get_type, &get);
    domt_js_expect_failed_ask(&world, -EINVAL);
    domt_js_world_end(&world);
}

DOMT_TEST(stream_is_inspected_purged_and_removed)
{
    domus_nats_stream_purge purge = {.below = 5, .subject = "s.*"};
    domus_nats_stream_status status;
    domus_nats_stream_count count;

    make_stream_in_kit();
    ask_stream_as_user(&domus_nats_stream_purge_type, &purge);
    expect_opening_of_stream();
    domt_js_expect_request(&world, "$JS.API.STREAM.PURGE.S", NULL,
                           "{\"filter\":\"s.*\",\"seq\":5,\"keep\":0}");
    domt_js_answer_request(&world, NULL, "{\"success\":true,\"purged\":3}");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_stream_count_type, DOMT_SECOND, &count), 0);
    ck_assert_uint_eq(count.count, 3);
    purge = (domus_nats_stream_purge){.keep = 1};
    ask_stream_as_user(&domus_nats_stream_purge_type, &purge);
    domt_js_expect_request(&world, "$JS.API.STREAM.PURGE.S", NULL, "{\"seq\":0,\"keep\":1}");
    domt_js_answer_request(&world, NULL, "{\"purged\":\"3\"}");
    domt_js_expect_failed_ask(&world, -EPROTO);
    purge.below = 1;
    ask_stream_as_user(&domus_nats_stream_purge_type, &purge);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_stream_as_user(&domus_nats_stream_look_type, NULL);
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.S", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_stream_status_type, DOMT_SECOND, &status), 0);
    ck_assert_uint_eq(status.messages, 7);
    ck_assert_uint_eq(status.first_sequence, 3);
    ck_assert_uint_eq(status.last_sequence, 9);
    ck_assert_uint_eq(status.consumers, 2);
    ck_assert_uint_eq(status.messages_max, 10);
    ck_assert_uint_eq(status.message_max, 0);
    ck_assert_int_eq(status.retention, DOMUS_NATS_WORKQUEUE);
    ask_stream_as_user(&domus_nats_stream_remove_type, NULL);
    domt_js_expect_request(&world, "$JS.API.STREAM.DELETE.S", NULL, "");
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":404,\"err_code\":10059}}");
    domt_js_expect_failed_ask(&world, -ENXIO);
    domus_nats_stream_get get = {.sequence = 1};
    /* after -ENXIO the next ask opens the stream again */
    ask_stream_as_user(&domus_nats_stream_get_type, &get);
    expect_opening_of_stream();
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.S", NULL, "{\"seq\":1}");
    domt_js_world_end(&world);
}

DOMT_TEST(stream_is_created_with_its_options)
{
    domus_nats_stream_config config = {.subjects = "a.*, b.>",
                                       .retention = DOMUS_NATS_INTEREST,
                                       .messages_max = 9,
                                       .duplicate_window_ns = 5};
    domus_nats_stream_options options = {.name = "S", .create = &config};
    static const char *const wrong[] = {NULL, "", ",", "a,", "a,,b", "a b", "a.>.b", "\xff"};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_stream(&world, &options), 0);
    ask_stream_as_user(&domus_nats_stream_look_type, NULL);
    domt_js_expect_request(
        &world, "$JS.API.STREAM.CREATE.S", NULL,
        "{\"name\":\"S\",\"subjects\":[\"a.*\",\"b.>\"],\"storage\":\"file\","
        "\"retention\":\"interest\",\"discard\":\"old\",\"num_replicas\":1,\"max_consumers\":-1,"
        "\"max_msgs\":9,\"max_msgs_per_subject\":-1,\"max_bytes\":-1,\"max_msg_size\":-1,"
        "\"max_age\":0,\"duplicate_window\":5,\"allow_direct\":false,\"allow_rollup_hdrs\":false,"
        "\"deny_delete\":false,\"deny_purge\":false}");
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":400,\"err_code\":10058}}");
    domt_js_expect_failed_ask(&world, -EEXIST);
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
    domt_js_world_end(&world);
}

/* --- js texts --------------------------------------------------------------------------------- */

/* Texts of JetStream's API: names, numbers, times, base64, positions, errors, and JSON with
 * limits. */

static uint64_t parse_time_text(const char *text)
{
    return domi_js_read_time(text, strlen(text));
}

DOMT_TEST(times_are_parsed_to_nanoseconds_since_1970)
{
    ck_assert_uint_eq(parse_time_text("1970-01-01T00:00:01Z"), UINT64_C(1000000000));
    ck_assert_uint_eq(parse_time_text("2026-11-29T04:46:58.517928504Z"),
                      UINT64_C(1795927618517928504));
    ck_assert_uint_eq(parse_time_text("2000-02-29T23:59:59.5Z"), UINT64_C(951868799500000000));
    ck_assert_uint_eq(parse_time_text("2100-03-01T00:00:00Z"), UINT64_C(4107542400000000000));
    ck_assert_uint_eq(parse_time_text("2261-12-31T23:59:59.999999999Z"),
                      UINT64_C(9214646399999999999));
    static const char *const wrong[] = {
        "",
        "Z",
        "2026-11-29T04:46:58",
        "2026-11-29 04:46:58Z",
        "2026-13-29T04:46:58Z",
        "2026-00-29T04:46:58Z",
        "2026-11-00T04:46:58Z",
        "2026-11-32T04:46:58Z",
        "2026-11-29T24:46:58Z",
        "2026-11-29T04:60:58Z",
        "2026-11-29T04:46:61Z",
        "1969-11-29T04:46:58Z",
        "2262-11-29T04:46:58Z",
        "2026-11-29T04:46:58.Z",
        "2026-11-29T04:46:58.1234567890Z",
        "2026-11-29T04:46:58,5Z",
        "2026-11-29T04:46:58.5+01:00",
        "2026-1x-29T04:46:58Z",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_uint_eq(parse_time_text(wrong[i]), 0);
}

DOMT_TEST(numbers_are_parsed_only_from_digits)
{
    uint64_t number = 7;

    ck_assert_int_eq(domi_js_read_number("18446744073709551615", 20, &number), 0);
    ck_assert_uint_eq(number, UINT64_MAX);
    static const char *const wrong[] = {
        "", "18446744073709551616", "99999999999999999999", "-1", "+1", "1 ", "0x1", "1.0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domi_js_read_number(wrong[i], strlen(wrong[i]), &number), -EPROTO);
}

DOMT_TEST(base64_is_decoded_strictly)
{
    char to[64];

    ck_assert_int_eq(domi_js_read_base64("", 0, to), 0);
    ck_assert_int_eq(domi_js_read_base64("YQ==", 4, to), 1);
    ck_assert_int_eq(domi_js_read_base64("YWI=", 4, to), 2);
    ck_assert_int_eq(domi_js_read_base64("YWJj+/8A", 8, to), 6);
    ck_assert_mem_eq(to, "abc\xfb\xff\x00", 6);
    static const char *const wrong[] = {
        "Y", "YQ=", "YQ", "====", "Y===", "YQ==YQ==", "Y=Q=", "Y-Q=", "YWJ\n", "YQ= "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domi_js_read_base64(wrong[i], strlen(wrong[i]), to), -EPROTO);
}

static int parse_reply_as_place(const char *text, domi_js_place *ret_place)
{
    domus_slice subject;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &subject), 0);
    int error = domi_js_read_place_in_ack_subject(subject, ret_place);
    domus_slice_free(subject);
    return error;
}

DOMT_TEST(message_positions_are_parsed_in_both_forms)
{
    domi_js_place place;

    ck_assert_int_eq(parse_reply_as_place("$JS.ACK.S.c.2.4.6.1795.3", &place), 0);
    ck_assert_uint_eq(place.deliveries, 2);
    ck_assert_uint_eq(place.sequence, 4);
    ck_assert_uint_eq(place.consumer_sequence, 6);
    ck_assert_uint_eq(place.stored_ns, 1795);
    ck_assert_uint_eq(place.pending, 3);
    ck_assert_int_eq(parse_reply_as_place("$JS.ACK.hub.ACC.S.c.1.2.3.4.5", &place), 0);
    ck_assert_uint_eq(place.sequence, 2);
    ck_assert_int_eq(parse_reply_as_place("$JS.ACK._.ACC.S.c.1.2.3.4.5.random", &place), 0);
    ck_assert_uint_eq(place.pending, 5);
    static const char *const wrong[] = {
        "",
        "$JS.ACK",
        "$JS.ACK.S.c.2.4.6.1795",
        "$JS.ACK.S.c.2.4.6.1795.3.4",
        "$JS.NAK.S.c.2.4.6.1795.3",
        "JS.ACK.S.c.2.4.6.1795.3",
        "$JS.ACK.S.c.2.4.6.1795.x",
        "$JS.ACK.S.c..4.6.1795.3",
        "$JS.ACK.a.b.c.d.1.2.3.4.5.6.7.8.9.10.11",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(parse_reply_as_place(wrong[i], &place), -EPROTO);
}

DOMT_TEST(names_and_subjects_are_validated)
{
    char name[DOMUS_NATS_STREAM_NAME_MAX + 2];
    static const char *const names[] = {"", "a.b", "a b", "a*", "a>", "a/b", "a\\b", "a\n", "\x7f"};
    static const char *const subjects[] = {"",    ".",    "a.", ".a",    "a..b",
                                           "a b", "a.b*", ">a", "a.>.b", "a.\n"};

    ck_assert(!domi_js_is_valid_stream_name(NULL));
    ck_assert(domi_js_is_valid_stream_name("ORDERS-1_x"));
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert(!domi_js_is_valid_stream_name(name));
    name[sizeof name - 2] = '\0';
    ck_assert(domi_js_is_valid_stream_name(name));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert(!domi_js_is_valid_stream_name(names[i]));
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        ck_assert(!domi_js_is_valid_subject(subjects[i], strlen(subjects[i]), true));
    ck_assert(domi_js_is_valid_subject("a.*.b.>", 7, true));
    ck_assert(!domi_js_is_valid_subject("a.*.b", 5, false));
    ck_assert(!domi_js_is_valid_subject("a.>", 3, false));
    ck_assert(domi_js_is_valid_subject("$KV.b.x", 7, false));
}

DOMT_TEST(server_errors_become_errno_values)
{
    ck_assert_int_eq(domi_js_errno_of_api_error(10059, 404), -ENXIO);
    ck_assert_int_eq(domi_js_errno_of_api_error(10071, 400), -EEXIST);
    ck_assert_int_eq(domi_js_errno_of_api_error(10047, 500), -ENOSPC);
    ck_assert_int_eq(domi_js_errno_of_api_error(99999, 400), -EINVAL);
    ck_assert_int_eq(domi_js_errno_of_api_error(0, 401), -EACCES);
    ck_assert_int_eq(domi_js_errno_of_api_error(0, 404), -ENOENT);
    ck_assert_int_eq(domi_js_errno_of_api_error(0, 503), -EAGAIN);
    ck_assert_int_eq(domi_js_errno_of_api_error(0, 500), -EREMOTEIO);
    ck_assert_int_eq(domi_js_errno_of_api_error(0, 0), -EREMOTEIO);
}

static int parse_answer_json(const char *text, size_t size)
{
    json_t *json = NULL;
    int error = domi_js_parse_json_object(text, size, DOMUS_NATS_ANSWER_MAX, &json);

    if (error == 0)
        json_decref(json);
    return error;
}

DOMT_TEST(json_of_answers_has_limits)
{
    char *text = malloc(DOMUS_NATS_ANSWER_MAX + 1);
    size_t at = 0;

    ck_assert_int_eq(parse_answer_json("{\"a\":[{\"b\":null}]}", 18), 0);
    ck_assert_int_eq(parse_answer_json("[]", 2), -EPROTO);
    ck_assert_int_eq(parse_answer_json("{} x", 4), -EPROTO);
    ck_assert_int_eq(parse_answer_json("{\"a\":\"\\", 7), -EPROTO);
    ck_assert_int_eq(parse_answer_json("{\"a\":\"\\\"", 8), -EPROTO);
    ck_assert_int_eq(parse_answer_json("", 0), -EPROTO);
    memcpy(text, "{\"a\":[", 6);
    at = 6;
    for (unsigned i = 0; i < DOMUS_NATS_ANSWER_VALUES - 3; i++) {
        memcpy(text + at, "1,", 2);
        at += 2;
    }
    memcpy(text + at - 1, "]}", 2);
    ck_assert_int_eq(parse_answer_json(text, at + 1), 0);
    memcpy(text + at - 1, ",1,1]}", 6);
    ck_assert_int_eq(parse_answer_json(text, at + 5), -EPROTO);
    memset(text, '[', 100);
    memcpy(text, "{\"a\":", 5);
    memset(text + 20, ']', 15);
    text[35] = '}';
    /* the JSON nests arrays and an object 16 deep, which is allowed */
    ck_assert_int_eq(parse_answer_json(text, 36), 0);
    memset(text + 5, '[', 16);
    memset(text + 21, ']', 16);
    text[37] = '}';
    ck_assert_int_eq(parse_answer_json(text, 38), -EPROTO);
    memset(text, ' ', DOMUS_NATS_ANSWER_MAX + 1);
    memcpy(text, "{}", 2);
    ck_assert_int_eq(parse_answer_json(text, DOMUS_NATS_ANSWER_MAX), 0);
    ck_assert_int_eq(parse_answer_json(text, DOMUS_NATS_ANSWER_MAX + 1), -EPROTO);
    memset(text, ',', 10000); /* commas in a string do not count as separators of JSON */
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + 9998, "\"}", 2);
    ck_assert_int_eq(parse_answer_json(text, 10000), 0);
    free(text);
}

DOMT_TEST(made_inboxes_differ)
{
    char one[DOMI_JS_INBOX_SIZE], other[DOMI_JS_INBOX_SIZE];
    uint64_t random = domi_js_seed_or_random_number(5);
    uint64_t again = 5;

    domi_js_make_inbox_name(&random, one);
    domi_js_make_inbox_name(&random, other);
    ck_assert_str_ne(one, other);
    ck_assert_uint_eq(strlen(one), 7 + 22);
    ck_assert(domi_js_is_valid_subject(one, strlen(one), false));
    domi_js_make_inbox_name(&again, other);
    ck_assert_str_eq(one, other);
    ck_assert_uint_ne(domi_js_seed_or_random_number(0), domi_js_seed_or_random_number(0));
}

DOMT_SUITE(20)
