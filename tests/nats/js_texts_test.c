/* Texts of JetStream's API: names, numbers, times, base64, positions, errors, and JSON with
 * limits. */
#include "protocols/nats/js.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t read_time(const char *text)
{
    return domi_js_read_time(text, strlen(text));
}

DOMT_TEST(times_are_nanoseconds_since_1970)
{
    ck_assert_uint_eq(read_time("1970-01-01T00:00:01Z"), UINT64_C(1000000000));
    ck_assert_uint_eq(read_time("2026-11-29T04:46:58.517928504Z"), UINT64_C(1795927618517928504));
    ck_assert_uint_eq(read_time("2000-02-29T23:59:59.5Z"), UINT64_C(951868799500000000));
    ck_assert_uint_eq(read_time("2100-03-01T00:00:00Z"), UINT64_C(4107542400000000000));
    ck_assert_uint_eq(read_time("2261-12-31T23:59:59.999999999Z"), UINT64_C(9214646399999999999));
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
        ck_assert_uint_eq(read_time(wrong[i]), 0);
}

DOMT_TEST(numbers_are_digits)
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

static int read_place(const char *text, domi_js_place *ret_place)
{
    domus_slice subject;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &subject), 0);
    int error = domi_js_read_place(subject, ret_place);
    domus_slice_free(subject);
    return error;
}

DOMT_TEST(places_are_read_in_both_forms)
{
    domi_js_place place;

    ck_assert_int_eq(read_place("$JS.ACK.S.c.2.4.6.1795.3", &place), 0);
    ck_assert_uint_eq(place.deliveries, 2);
    ck_assert_uint_eq(place.sequence, 4);
    ck_assert_uint_eq(place.consumer_sequence, 6);
    ck_assert_uint_eq(place.stored_ns, 1795);
    ck_assert_uint_eq(place.pending, 3);
    ck_assert_int_eq(read_place("$JS.ACK.hub.ACC.S.c.1.2.3.4.5", &place), 0);
    ck_assert_uint_eq(place.sequence, 2);
    ck_assert_int_eq(read_place("$JS.ACK._.ACC.S.c.1.2.3.4.5.random", &place), 0);
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
        ck_assert_int_eq(read_place(wrong[i], &place), -EPROTO);
}

DOMT_TEST(names_and_subjects_are_checked)
{
    char name[DOMUS_NATS_STREAM_NAME_MAX + 2];
    static const char *const names[] = {"", "a.b", "a b", "a*", "a>", "a/b", "a\\b", "a\n", "\x7f"};
    static const char *const subjects[] = {"",    ".",    "a.", ".a",    "a..b",
                                           "a b", "a.b*", ">a", "a.>.b", "a.\n"};

    ck_assert(!domi_js_is_name(NULL));
    ck_assert(domi_js_is_name("ORDERS-1_x"));
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert(!domi_js_is_name(name));
    name[sizeof name - 2] = '\0';
    ck_assert(domi_js_is_name(name));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert(!domi_js_is_name(names[i]));
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        ck_assert(!domi_js_is_subject(subjects[i], strlen(subjects[i]), true));
    ck_assert(domi_js_is_subject("a.*.b.>", 7, true));
    ck_assert(!domi_js_is_subject("a.*.b", 5, false));
    ck_assert(!domi_js_is_subject("a.>", 3, false));
    ck_assert(domi_js_is_subject("$KV.b.x", 7, false));
}

DOMT_TEST(errors_have_the_numbers_of_the_server)
{
    ck_assert_int_eq(domi_js_error(10059, 404), -ENXIO);
    ck_assert_int_eq(domi_js_error(10071, 400), -EEXIST);
    ck_assert_int_eq(domi_js_error(10047, 500), -ENOSPC);
    ck_assert_int_eq(domi_js_error(99999, 400), -EINVAL);
    ck_assert_int_eq(domi_js_error(0, 401), -EACCES);
    ck_assert_int_eq(domi_js_error(0, 404), -ENOENT);
    ck_assert_int_eq(domi_js_error(0, 503), -EAGAIN);
    ck_assert_int_eq(domi_js_error(0, 500), -EREMOTEIO);
    ck_assert_int_eq(domi_js_error(0, 0), -EREMOTEIO);
}

static int parse_json(const char *text, size_t size)
{
    json_t *json = NULL;
    int error = domi_js_parse(text, size, DOMUS_NATS_ANSWER_MAX, &json);

    if (error == 0)
        json_decref(json);
    return error;
}

DOMT_TEST(json_has_bounds)
{
    char *text = malloc(DOMUS_NATS_ANSWER_MAX + 1);
    size_t at = 0;

    ck_assert_int_eq(parse_json("{\"a\":[{\"b\":null}]}", 18), 0);
    ck_assert_int_eq(parse_json("[]", 2), -EPROTO);
    ck_assert_int_eq(parse_json("{} x", 4), -EPROTO);
    ck_assert_int_eq(parse_json("{\"a\":\"\\", 7), -EPROTO);
    ck_assert_int_eq(parse_json("{\"a\":\"\\\"", 8), -EPROTO);
    ck_assert_int_eq(parse_json("", 0), -EPROTO);
    memcpy(text, "{\"a\":[", 6);
    at = 6;
    for (unsigned i = 0; i < DOMUS_NATS_ANSWER_VALUES - 3; i++) {
        memcpy(text + at, "1,", 2);
        at += 2;
    }
    memcpy(text + at - 1, "]}", 2);
    ck_assert_int_eq(parse_json(text, at + 1), 0);
    memcpy(text + at - 1, ",1,1]}", 6);
    ck_assert_int_eq(parse_json(text, at + 5), -EPROTO);
    memset(text, '[', 100);
    memcpy(text, "{\"a\":", 5);
    memset(text + 20, ']', 15);
    text[35] = '}';
    ck_assert_int_eq(parse_json(text, 36), 0); /* arrays and objects nested 16 deep */
    memset(text + 5, '[', 16);
    memset(text + 21, ']', 16);
    text[37] = '}';
    ck_assert_int_eq(parse_json(text, 38), -EPROTO);
    memset(text, ' ', DOMUS_NATS_ANSWER_MAX + 1);
    memcpy(text, "{}", 2);
    ck_assert_int_eq(parse_json(text, DOMUS_NATS_ANSWER_MAX), 0);
    ck_assert_int_eq(parse_json(text, DOMUS_NATS_ANSWER_MAX + 1), -EPROTO);
    memset(text, ',', 10000); /* commas within a string are no separators */
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + 9998, "\"}", 2);
    ck_assert_int_eq(parse_json(text, 10000), 0);
    free(text);
}

DOMT_TEST(inboxes_differ)
{
    char one[DOMI_JS_INBOX_SIZE], other[DOMI_JS_INBOX_SIZE];
    uint64_t random = domi_js_seed(5);
    uint64_t again = 5;

    domi_js_make_inbox(&random, one);
    domi_js_make_inbox(&random, other);
    ck_assert_str_ne(one, other);
    ck_assert_uint_eq(strlen(one), 7 + 22);
    ck_assert(domi_js_is_subject(one, strlen(one), false));
    domi_js_make_inbox(&again, other);
    ck_assert_str_eq(one, other);
    ck_assert_uint_ne(domi_js_seed(0), domi_js_seed(0));
}

DOMT_SUITE(20)
