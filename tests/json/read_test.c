/* Reading by a table: the values of the members, and the words of errors. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <string.h>

DOMT_TEST(each_member_gets_its_value)
{
    domus_json_error error;
    thing got;

    ck_assert_msg(thing_read(thing_text, &got, &error) == 0, "%s: %s", error.path, error.words);
    ck_assert(got.flag && got.has_extra);
    ck_assert_int_eq(got.i8, -128);
    ck_assert_int_eq(got.i64, INT64_MIN);
    ck_assert_uint_eq(got.u8, 255);
    ck_assert_uint_eq(got.u64, UINT64_MAX);
    ck_assert(got.real == -1.5e-7);
    ck_assert_str_eq(got.name, "h\xc3\xa4lf \"it\"");
    ck_assert_str_eq(got.text, "line\nline");
    ck_assert_int_eq(got.hue, BLUE);
    ck_assert_uint_eq(got.mode, 1);
    ck_assert_str_eq(got.raw.text, "{\"a\":[1,\"]\"]}");
    ck_assert_uint_eq(got.raw.size, 13);
    ck_assert(got.one.number_count == 2 && signbit(got.one.numbers[1]));
    ck_assert_uint_eq(got.part_count, 2);
    ck_assert_str_eq(got.parts[1].name, "preset");
    ck_assert_uint_eq(got.many_count, 5);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(got.many[i].number, i);
    ck_assert_str_eq(got.many[4].text, "last");
    ck_assert_str_eq(got.texts[1], "two");
    ck_assert_str_eq(got.names[1], "1234567");
    ck_assert_uint_eq(got.raw_count, 4);
    ck_assert_str_eq(got.raws[1].text, "\"a\\\"\"");
    ck_assert_str_eq(got.raws[2].text, "null");
    ck_assert_str_eq(got.maybe, "yes");
    domus_json_release(&got.memory);
    domus_json_release(&got.memory);
}

DOMT_TEST(absent_fields_have_the_presets)
{
    thing got;
    static const char *const texts[] = {
        "{\"u8\":1,\"parts\":[{}],\"many\":[{}]}",
        "{\"maybe\":null,\"extra\":null,\"u8\":1,\"many\":[{}],\"parts\":[{}]}",
        " { \"many\" : [ { } ] , \"parts\":[\n{}],\t\"\\u00758\" : 1 } ",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        memset(&got, 0xff, sizeof got);
        ck_assert_int_eq(thing_read(texts[i], &got, NULL), 0);
        ck_assert(got.ranged == 15 && got.u8 == 1 && !got.has_extra && got.maybe == NULL);
        ck_assert(got.text == NULL && got.text_count == 0 && got.raw.text == NULL);
        ck_assert(got.parts[0].number == 7 && got.many[0].number == 7);
        ck_assert_str_eq(got.many[0].name, "preset");
        ck_assert_str_eq(got.one.name, "");
        domus_json_release(&got.memory);
    }
}

/* Wrong texts, and the error of each. */
static const struct refusal {
    const char *text;
    int error;
    const char *told;
} refusals[] = {
    {"{}", -EPROTO, "u8: is missing (line 1, column 2)"},
    {"[]", -EPROTO, "not an object (line 1, column 1)"},
    {"7", -EPROTO, "not an object (line 1, column 1)"},
    {"{\"u8\":1,\"U8\":2}", -EPROTO, "\"U8\" is no field of it (line 1, column 9)"},
    {"{\"u8\":1,\"u8\":1}", -EPROTO, "u8: is there twice (line 1, column 9)"},
    {"{\"u8\":256}", -ERANGE, "u8: 256 is not in 0..255 (line 1, column 7)"},
    {"{\"u8\":-1}", -ERANGE, "u8: -1 is not in 0..255 (line 1, column 7)"},
    {"{\"u8\":1.0}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"u8\":1e0}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"u8\":\"1\"}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"u8\":null}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"u8\":true}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"u8\":{}}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"u8\":[1]}", -EPROTO, "u8: not an integer (line 1, column 7)"},
    {"{\"i8\":-129}", -ERANGE, "i8: -129 is not in -128..127 (line 1, column 7)"},
    {"{\"i8\":128}", -ERANGE, "i8: 128 is not in -128..127 (line 1, column 7)"},
    {"{\"i64\":9223372036854775808}", -ERANGE,
     "i64: 9223372036854775808 is not in -9223372036854775808..9223372036854775807 "
     "(line 1, column 8)"},
    {"{\"i64\":-9223372036854775809}", -ERANGE,
     "i64: -9223372036854775809 is not in -9223372036854775808..9223372036854775807 "
     "(line 1, column 8)"},
    {"{\"u64\":18446744073709551616}", -ERANGE,
     "u64: 18446744073709551616 is not in 0..18446744073709551615 (line 1, column 8)"},
    {"{\"u64\":111111111111111111111111111111}", -ERANGE,
     "u64: 111111111111111111111111... is not in 0..18446744073709551615 (line 1, column 8)"},
    {"{\"ranged\":9}", -ERANGE, "ranged: 9 is not in 10..20 (line 1, column 11)"},
    {"{\"ranged\":21}", -ERANGE, "ranged: 21 is not in 10..20 (line 1, column 11)"},
    {"{\"real\":\"1\"}", -EPROTO, "real: not a number (line 1, column 9)"},
    {"{\"real\":1e301}", -ERANGE, "real: 1e301 is not in -1e+300..1e+300 (line 1, column 9)"},
    {"{\"real\":1e309}", -EBADMSG, "real: a number beyond all doubles (line 1, column 9)"},
    {"{\"flag\":1}", -EPROTO, "flag: not true or false (line 1, column 9)"},
    {"{\"flag\":\"true\"}", -EPROTO, "flag: not true or false (line 1, column 9)"},
    {"{\"name\":false}", -EPROTO, "name: not a text (line 1, column 9)"},
    {"{\"name\":\"a\\u0000b\"}", -EPROTO, "name: has a zero in it (line 1, column 9)"},
    {"{\"text\":\"\\u0000\"}", -EPROTO, "text: has a zero in it (line 1, column 9)"},
    {"{\"text\":null}", -EPROTO, "text: not a text (line 1, column 9)"},
    {"{\"hue\":\"pink\"}", -ERANGE, "hue: \"pink\" is none of its words (line 1, column 8)"},
    {"{\"hue\":\"re\"}", -ERANGE, "hue: \"re\" is none of its words (line 1, column 8)"},
    {"{\"hue\":\"red\\u0000\"}", -ERANGE, "hue: \"red?\" is none of its words (line 1, column 8)"},
    {"{\"hue\":0}", -EPROTO, "hue: not a text (line 1, column 8)"},
    {"{\"one\":[]}", -EPROTO, "one: not an object (line 1, column 8)"},
    {"{\"one\":{\"x\":1}}", -EPROTO, "one: \"x\" is no field of it (line 1, column 9)"},
    {"{\"parts\":{}}", -EPROTO, "parts: not an array (line 1, column 10)"},
    {"{\"parts\":null}", -EPROTO, "parts: not an array (line 1, column 10)"},
    {"{\"parts\":[{},[]]}", -EPROTO, "parts[1]: not an object (line 1, column 14)"},
    {"{\"parts\":[{},\n {\"number\": \"5\"}]}", -EPROTO,
     "parts[1].number: not an integer (line 2, column 13)"},
    {"{\"many\":[{},{\"numbers\":[1,\n\n\"a\"]}]}", -EPROTO,
     "many[1].numbers[1]: not a number (line 3, column 1)"},
    {"{\"texts\":[\"a\",null]}", -EPROTO, "texts[1]: not a text (line 1, column 15)"},
    {"{\"text\":\"\\ud800\"}", -EBADMSG, "text: one half of a surrogate pair (line 1, column 10)"},
    {"{\"text\":\"a\\udc00\"}", -EBADMSG, "text: one half of a surrogate pair (line 1, column 9)"},
    {"{\"\\udfff\":1}", -EBADMSG, "one half of a surrogate pair (line 1, column 2)"},
    {"{\"text\":\"a\xff\"}", -EBADMSG, "text: the byte 0xff is no UTF-8 (line 1, column 11)"},
    {"{\"text\":\"a\x01\"}", -EBADMSG, "text: the control character 0x01 (line 1, column 11)"},
    {"{\"text\":1 \"u8\":1\xff}", -EPROTO, "text: not a text (line 1, column 9)"},
    {"{\"u8\":1 \"text\":1\xff}", -EBADMSG, "',' or '}' is missing (line 1, column 9)"},
    {"{\"u8\":1,}", -EBADMSG, "a name in quotes is missing (line 1, column 9)"},
    {"{\"u8\"}", -EBADMSG, "u8: ':' is missing (line 1, column 6)"},
    {"{\"u8\":}", -EBADMSG, "u8: not a value (line 1, column 7)"},
    {"{\"u8\":1}{", -EBADMSG, "there is more behind the value (line 1, column 9)"},
    {"", -EBADMSG, "there is no value (line 1, column 1)"},
    {"{\"a\x1b[31mb\xc3\xa4klmnopqrstuvwxyz0123456789\":1}", -EBADMSG,
     "the control character 0x1b (line 1, column 4)"},
    {"{\"a\\u001bb\xc3\xa4klmnopqrstuvwxyz0123456789\":1}", -EPROTO,
     "\"a?b??klmnopqrstuvwxyz012...\" is no field of it (line 1, column 2)"},
};

DOMT_TEST(refusals_tell_the_path_and_the_place)
{
    char told[DOMUS_JSON_EXPLAIN_MAX];
    domus_json_error error;
    thing got;

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *refusal = &refusals[i];
        int result = thing_read(refusal->text, &got, &error);
        ck_assert_msg(result == refusal->error && error.error == result, "%s: %d", refusal->text,
                      result);
        ck_assert_str_eq(domus_json_explain(&error, told, sizeof told), refusal->told);
    }
}

DOMT_TEST(unknown_fields_are_passed_over_if_the_table_says_so)
{
    static const char *const wrong[] = {"{\"u8\":1,\"x\":[1 2]}", "{\"u8\":1,\"x\":\"\\udc00\"}",
                                        "{\"x\":{\"u8\":1}}"};
    static const char right[] =
        "{\"x\":{\"a\":[1,{\"b\":null}],\"a\":[]},\"y\":\"]\",\"z\":[],\"u8\":3,\"w\":-1.5e3}";
    thing got;

    ck_assert_int_eq(domus_json_read(&loose_table, NULL, right, strlen(right), &got, NULL, NULL),
                     0);
    ck_assert_uint_eq(got.u8, 3);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_lt(
            domus_json_read(&loose_table, NULL, wrong[i], strlen(wrong[i]), &got, NULL, NULL), 0);
}

DOMT_TEST(status_of_http_tells_syntax_from_values)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {{"{", 400}, {"{}", 422}, {"{\"u8\":300}", 422}};
    domus_json_options options = {.bytes_max = 1};
    domus_json_error error;
    thing got;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_lt(thing_read(cases[i].text, &got, &error), 0);
        ck_assert_int_eq(domus_json_status(&error), cases[i].status);
    }
    ck_assert_int_eq(domus_json_read(&thing_table, &options, "{}", 2, &got, NULL, &error), -EFBIG);
    ck_assert_int_eq(domus_json_status(&error), 413);
    error.error = -ENOMEM;
    ck_assert_int_eq(domus_json_status(&error), 503);
}

DOMT_SUITE(20)
