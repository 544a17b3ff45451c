/* The writer without a table: the bytes that it writes, and the calls that it refuses. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <domus/json_writer.h>

#include <errno.h>
#include <math.h>
#include <string.h>

static void check_written(domus_json_writer *writer, const char *wanted)
{
    domus_slice bytes;

    ck_assert_int_eq(domus_json_finish(writer), 0);
    ck_assert_int_eq(domus_append_end(writer->to, &bytes), 0);
    ck_assert_msg(domus_slice_equals(bytes, wanted, strlen(wanted)), "%.*s", (int)bytes.size,
                  domus_slice_data(bytes));
    domus_slice_free(bytes);
}

DOMT_TEST(values_get_their_commas_and_keys)
{
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender};
    part one = {.number = 1};

    domus_json_put_object(&writer);
    domus_json_put_key(&writer, "a\"b");
    domus_json_put_array(&writer);
    domus_json_put_null(&writer);
    domus_json_put_bool(&writer, true);
    domus_json_put_bool(&writer, false);
    domus_json_put_int(&writer, INT64_MIN);
    domus_json_put_uint(&writer, UINT64_MAX);
    domus_json_put_real(&writer, -0.0);
    domus_json_put_real(&writer, 0.1);
    domus_json_put_text(&writer, "t\x7f\xf0\x9f\x98\x80");
    domus_json_put_text(&writer, NULL);
    domus_json_put_bytes(&writer, "\0x", 2);
    domus_json_put_array(&writer);
    domus_json_put_end(&writer);
    domus_json_put_object(&writer);
    domus_json_put_end(&writer);
    domus_json_put_end(&writer);
    domus_json_put_key(&writer, "raw");
    domus_json_put_raw(&writer, "[ 1 ]", 5);
    domus_json_put_key(&writer, "part");
    domus_json_put_struct(&writer, &part_table, &one, NULL);
    domus_json_put_end(&writer);
    check_written(&writer,
                  "{\"a\\\"b\":[null,true,false,-9223372036854775808,18446744073709551615,-0.0,0.1,"
                  "\"t\x7f\xf0\x9f\x98\x80\",null,\"\\u0000x\",[],{}],\"raw\":[ 1 ],"
                  "\"part\":{\"number\":1,\"name\":\"\",\"numbers\":[]}}");
}

/* Sequences of calls, one letter each: '{' and '[' begin, '.' ends, 'k' is a key, '1' a value. The
 * last call of each is refused. */
static const char *const wrong_orders[] = {".",   "11",  "[.1", "k",     "{1",
                                           "{kk", "{k.", "[k",  "{k1.k", "{.["};

static int call_writer(domus_json_writer *writer, char step)
{
    switch (step) {
    case '{':
        return domus_json_put_object(writer);
    case '[':
        return domus_json_put_array(writer);
    case '.':
        return domus_json_put_end(writer);
    case 'k':
        return domus_json_put_key(writer, "k");
    default:
        return domus_json_put_uint(writer, 1);
    }
}

DOMT_TEST(wrong_orders_are_refused_and_stay_so)
{
    for (size_t i = 0; i < sizeof wrong_orders / sizeof wrong_orders[0]; i++) {
        domus_appender appender = {0};
        domus_json_writer writer = {.to = &appender};
        const char *steps = wrong_orders[i];
        for (; *steps != '\0'; steps++)
            ck_assert_int_eq(call_writer(&writer, *steps), steps[1] == '\0' ? -EINVAL : 0);
        uint32_t size = appender.size;
        ck_assert_int_eq(domus_json_put_null(&writer), -EINVAL);
        ck_assert_int_eq(domus_json_finish(&writer), -EINVAL);
        ck_assert_uint_eq(appender.size, size);
        domus_append_drop(&appender);
    }
}

DOMT_TEST(what_is_not_whole_is_no_result)
{
    static const char *const steps[] = {"", "[", "{k", "{k1"};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        domus_appender appender = {0};
        domus_json_writer writer = {.to = &appender};
        for (const char *step = steps[i]; *step != '\0'; step++)
            ck_assert_int_eq(call_writer(&writer, *step), 0);
        ck_assert_int_eq(domus_json_finish(&writer), -EINVAL);
        domus_append_drop(&appender);
    }
}

DOMT_TEST(depth_is_bounded)
{
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender};

    for (uint32_t i = 0; i < DOMUS_JSON_DEPTH_MAX; i++)
        ck_assert_int_eq(domus_json_put_array(&writer), 0);
    ck_assert_int_eq(domus_json_put_array(&writer), -EINVAL);
    domus_append_drop(&appender);
}

DOMT_TEST(bytes_that_are_no_utf8_are_refused_or_replaced)
{
    static const struct {
        const char *bytes, *replaced;
    } cases[] = {
        {"\xff", "\"\xef\xbf\xbd\""},
        {"a\xc3", "\"a\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc0\xaf-\xc3\xa4", "\"\xef\xbf\xbd\xef\xbf\xbd-\xc3\xa4\""},
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe0\x9f\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xf0\x8f\xbf\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_appender appender = {0};
        domus_json_writer strict = {.to = &appender};
        domus_json_writer mild = {.to = &appender, .replaces = true};
        ck_assert_int_eq(domus_json_put_text(&strict, cases[i].bytes), -EILSEQ);
        domus_append_drop(&appender);
        ck_assert_int_eq(domus_json_put_text(&mild, cases[i].bytes), 0);
        check_written(&mild, cases[i].replaced);
    }
}

DOMT_TEST(values_that_json_has_not_are_refused)
{
    domus_appender appender = {0};
    const double reals[] = {NAN, INFINITY, -INFINITY};
    part wrong = {.number = 1001};
    domus_json_error error;

    for (size_t i = 0; i < 3; i++) {
        domus_json_writer writer = {.to = &appender};
        ck_assert_int_eq(domus_json_put_real(&writer, reals[i]), -ERANGE);
    }
    domus_json_writer raw = {.to = &appender};
    ck_assert_int_eq(domus_json_put_raw(&raw, "[1,]", 4), -EINVAL);
    domus_json_writer writer = {.to = &appender};
    ck_assert_int_eq(domus_json_put_struct(&writer, &part_table, &wrong, &error), -ERANGE);
    ck_assert_str_eq(error.path, "number");
    domus_append_drop(&appender);
}

/* While an array is open, the bytes written until now can be taken from the appender. */
DOMT_TEST(array_leaves_in_pieces)
{
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender};
    char all[64] = "";
    domus_slice bytes;

    domus_json_put_array(&writer);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(domus_json_put_uint(&writer, i), 0);
        if (i == 3)
            ck_assert_int_eq(domus_json_put_end(&writer), 0);
        ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
        strncat(all, domus_slice_data(bytes), bytes.size);
        domus_slice_free(bytes);
    }
    ck_assert_int_eq(domus_json_finish(&writer), 0);
    ck_assert_str_eq(all, "[0,1,2,3]");
}

DOMT_TEST(bound_of_the_appender_is_an_error)
{
    domus_appender appender = {.size_max = 5};
    domus_json_writer writer = {.to = &appender};

    ck_assert_int_eq(domus_json_put_text(&writer, "abc"), 0);
    domus_append_drop(&appender);
    appender = (domus_appender){.size_max = 4};
    writer = (domus_json_writer){.to = &appender};
    ck_assert_int_eq(domus_json_put_text(&writer, "abc"), -EMSGSIZE);
    ck_assert_int_eq(domus_json_finish(&writer), -EMSGSIZE);
    domus_append_drop(&appender);
}

DOMT_SUITE(20)
