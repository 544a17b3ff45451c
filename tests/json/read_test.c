/* Reading by a table: the values of the members, the words of errors, and the limits of a reader,
 * each at exactly its size. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reading by a table: the values of the members, and the words of errors. */

DOMT_TEST(each_member_is_read_with_its_value)
{
    domus_json_error error;
    thing got;

    ck_assert_msg(thing_read_from_json(thing_text, &got, &error) == 0, "%s: %s", error.path,
                  error.words);
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

DOMT_TEST(absent_fields_get_their_presets)
{
    thing got;
    static const char *const texts[] = {
        "{\"u8\":1,\"parts\":[{}],\"many\":[{}]}",
        "{\"maybe\":null,\"extra\":null,\"u8\":1,\"many\":[{}],\"parts\":[{}]}",
        " { \"many\" : [ { } ] , \"parts\":[\n{}],\t\"\\u00758\" : 1 } ",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        memset(&got, 0xff, sizeof got);
        ck_assert_int_eq(thing_read_from_json(texts[i], &got, NULL), 0);
        ck_assert(got.ranged == 15 && got.u8 == 1 && !got.has_extra && got.maybe == NULL);
        ck_assert(got.text == NULL && got.text_count == 0 && got.raw.text == NULL);
        ck_assert(got.parts[0].number == 7 && got.many[0].number == 7);
        ck_assert_str_eq(got.many[0].name, "preset");
        ck_assert_str_eq(got.one.name, "");
        domus_json_release(&got.memory);
    }
}

/* Wrong texts of JSON, and the error of each. */
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

DOMT_TEST(errors_name_path_and_position)
{
    char told[DOMUS_JSON_EXPLAIN_MAX];
    domus_json_error error;
    thing got;

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *refusal = &refusals[i];
        int result = thing_read_from_json(refusal->text, &got, &error);
        ck_assert_msg(result == refusal->error && error.error == result, "%s: %d", refusal->text,
                      result);
        ck_assert_str_eq(domus_json_explain(&error, told, sizeof told), refusal->told);
    }
}

DOMT_TEST(unknown_fields_are_skipped_if_table_allows)
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

DOMT_TEST(http_status_distinguishes_syntax_from_values)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {{"{", 400}, {"{}", 422}, {"{\"u8\":300}", 422}};
    domus_json_options options = {.bytes_max = 1};
    domus_json_error error;
    thing got;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_lt(thing_read_from_json(cases[i].text, &got, &error), 0);
        ck_assert_int_eq(domus_json_status(&error), cases[i].status);
    }
    ck_assert_int_eq(domus_json_read(&thing_table, &options, "{}", 2, &got, NULL, &error), -EFBIG);
    ck_assert_int_eq(domus_json_status(&error), 413);
    error.error = -ENOMEM;
    ck_assert_int_eq(domus_json_status(&error), 503);
}

/* --- limits ----------------------------------------------------------------------------------- */

/* The limits of a reader of JSON, each at exactly its size. */

/* Make a text with `count` copies of `middle` between `begin` and `end`, separated by `comma` if
 * that is not empty. */
static char *make_text_of_repetitions(const char *begin, const char *middle, const char *comma,
                                      uint32_t count, const char *end)
{
    size_t each = strlen(middle) + strlen(comma);
    char *text = malloc(strlen(begin) + count * each + strlen(end) + 1);
    char *at = text;

    ck_assert_ptr_nonnull(text);
    at = stpcpy(at, begin);
    for (uint32_t i = 0; i < count; i++)
        at = stpcpy(stpcpy(at, i == 0 ? "" : comma), middle);
    (void)stpcpy(at, end);
    return text;
}

static const struct bound {
    const char *begin, *middle, *comma, *end;
    uint32_t most; /* largest number of copies of `middle` that the reader accepts */
    const char *told;
} bounds[] = {
    {"{\"u8\":1,\"name\":\"", "x", "", "\"}", 15, "name: longer than 15 bytes"},
    {"{\"u8\":1,\"text\":\"", "x", "", "\"}", 100, "text: longer than 100 bytes"},
    {"{\"u8\":1,\"text\":\"", "\\u00e4", "", "\"}", 50, "text: longer than 100 bytes"},
    {"{\"u8\":1,\"raw\":\"", "x", "", "\"}", 38, "raw: longer than 40 bytes"},
    {"{\"u8\":1,\"raws\":[[", "1", ",", "]]}", 9, "raws[0]: longer than 20 bytes"},
    {"{\"u8\":1,\"parts\":[", "{}", ",", "]}", 3, "parts[3]: more than 3 elements"},
    {"{\"u8\":1,\"many\":[", "{}", ",", "]}", 20, "many[20]: more than 20 elements"},
    {"{\"u8\":1,\"texts\":[", "\"a\"", ",", "]}", 10, "texts[10]: more than 10 elements"},
    {"{\"u8\":1,\"raws\":[", "1", ",", "]}", 5, "raws[5]: more than 5 elements"},
};

DOMT_TEST(limits_of_table_rows_hold_at_exact_size)
{
    domus_json_error error;
    char told[DOMUS_JSON_EXPLAIN_MAX];
    thing got;

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const struct bound *bound = &bounds[i];
        for (uint32_t over = 0; over < 2; over++) {
            char *text = make_text_of_repetitions(bound->begin, bound->middle, bound->comma,
                                                  bound->most + over, bound->end);
            int result = thing_read_from_json(text, &got, &error);
            ck_assert_msg(result == (over != 0 ? -EMSGSIZE : 0), "%s: %d", text, result);
            if (over == 0) {
                domus_json_release(&got.memory);
            } else {
                error.line = 0;
                ck_assert_str_eq(domus_json_explain(&error, told, sizeof told), bound->told);
            }
            free(text);
        }
    }
}

/* The limit of nesting holds everywhere: in objects of tables, in skipped values, and in values
 * that are kept as text. */
DOMT_TEST(nesting_is_limited_everywhere)
{
    static const struct {
        const char *begin, *end;
        uint32_t outer; /* number of objects around the value that is nested */
    } places[] = {{"", "", 0}, {"{\"x\":", ",\"u8\":1}", 1}, {"{\"u8\":1,\"raw\":", "}", 1}};
    domus_json_options options = {.depth_max = 6};
    thing got;

    for (size_t i = 0; i < 3; i++) {
        for (uint32_t depth = 1; depth <= 8; depth++) {
            char *opened = make_text_of_repetitions(places[i].begin, "[", "", depth, "");
            char *text = make_text_of_repetitions(opened, "]", "", depth, places[i].end);
            int result = i == 0 ? domus_json_check(&options, text, strlen(text), NULL)
                                : domus_json_read(&loose_table, &options, text, strlen(text), &got,
                                                  &got.memory, NULL);
            ck_assert_int_eq(result, depth + places[i].outer <= 6 ? 0 : -EMSGSIZE);
            if (i != 0 && result == 0)
                domus_json_release(&got.memory);
            free(opened);
            free(text);
        }
    }
    options.depth_max = 2;
    ck_assert_int_eq(
        domus_json_read(&thing_table, &options, "{\"u8\":1,\"parts\":[{}]}", 21, &got, NULL, NULL),
        -EMSGSIZE);
}

DOMT_TEST(nesting_limit_of_library_cannot_be_raised)
{
    char *text = make_text_of_repetitions("", "[", "", DOMUS_JSON_DEPTH_MAX, "");
    char *right = make_text_of_repetitions(text, "]", "", DOMUS_JSON_DEPTH_MAX, "");
    char *wrong = make_text_of_repetitions("[", right, "", 1, "]");
    domus_json_options options = {.depth_max = DOMUS_JSON_DEPTH_MAX + 1};
    domus_json_error error;

    ck_assert_int_eq(domus_json_check(NULL, right, strlen(right), NULL), 0);
    ck_assert_int_eq(domus_json_check(NULL, wrong, strlen(wrong), &error), -EMSGSIZE);
    ck_assert_str_eq(error.words, "nested deeper than 32");
    ck_assert_uint_eq(error.offset, DOMUS_JSON_DEPTH_MAX);
    ck_assert_int_eq(domus_json_check(&options, "1", 1, NULL), -EINVAL);
    options = (domus_json_options){.bytes_max = DOMUS_JSON_BYTES_MAX + 1};
    ck_assert_int_eq(domus_json_check(&options, "1", 1, NULL), -EINVAL);
    free(text);
    free(right);
    free(wrong);
}

DOMT_TEST(bytes_of_a_text_are_limited)
{
    domus_json_options options = {.bytes_max = 8};
    char *text = make_text_of_repetitions("\"", "x", "", DOMUS_JSON_BYTES_PRESET - 2, "\"");
    domus_json_error error;

    ck_assert_int_eq(domus_json_check(&options, "\"123456\"", 8, NULL), 0);
    ck_assert_int_eq(domus_json_check(&options, "\"123456\" ", 9, &error), -EFBIG);
    ck_assert_uint_eq(error.line, 0);
    ck_assert_int_eq(domus_json_check(NULL, text, DOMUS_JSON_BYTES_PRESET, NULL), 0);
    ck_assert_int_eq(domus_json_check(NULL, text, DOMUS_JSON_BYTES_PRESET + 1, NULL), -EFBIG);
    free(text);
}

/* Cases of memory that a reader needs. It is counted in blocks: the first block has 1,024 bytes, or
 * less if the limit is smaller. */
static const struct memory_case {
    const char *text;
    uint32_t wanted;  /* bytes of memory that reading the text needs */
    const char *path; /* path of the value that finds no room if the limit is one byte less */
} memory_cases[] = {
    /* Memory holds four texts of 3 bytes and a zero, and the array of four pointers. */
    {"{\"u8\":1,\"texts\":[\"abc\",\"abc\",\"abc\",\"abc\"]}",
     DOMUS_JSON_MEMORY_BLOCK + 4 * DOMUS_JSON_MEMORY_STEP + 4 * sizeof(char *), "texts[3]"},
    /* Memory for a text is a whole step, however short the text is. */
    {"{\"u8\":1,\"text\":\"\"}", DOMUS_JSON_MEMORY_BLOCK + DOMUS_JSON_MEMORY_STEP, "text"},
    {"{\"u8\":1,\"text\":\"0123456789abcde\"}", DOMUS_JSON_MEMORY_BLOCK + DOMUS_JSON_MEMORY_STEP,
     "text"},
    {"{\"u8\":1,\"text\":\"0123456789abcdef\"}",
     DOMUS_JSON_MEMORY_BLOCK + 2 * DOMUS_JSON_MEMORY_STEP, "text"},
    /* The array grows to 16 elements, which find no room in the first block. */
    {"{\"u8\":1,\"many\":[{},{},{},{},{},{},{},{},{}]}",
     DOMUS_JSON_MEMORY_BLOCK + 1024 + DOMUS_JSON_MEMORY_BLOCK + 16 * sizeof(part), "many[8]"},
};

DOMT_TEST(memory_is_limited_and_must_be_provided)
{
    domus_json_error error;
    thing got;

    for (size_t i = 0; i < sizeof memory_cases / sizeof memory_cases[0]; i++) {
        const struct memory_case *row = &memory_cases[i];
        domus_json_options options = {.memory_max = row->wanted};
        size_t size = strlen(row->text);
        ck_assert_int_eq(
            domus_json_read(&thing_table, &options, row->text, size, &got, &got.memory, NULL), 0);
        domus_json_release(&got.memory);
        options.memory_max--;
        ck_assert_int_eq(
            domus_json_read(&thing_table, &options, row->text, size, &got, &got.memory, &error),
            -EMSGSIZE);
        ck_assert_str_eq(error.path, row->path);
        ck_assert_int_eq(domus_json_read(&thing_table, NULL, row->text, size, &got, NULL, &error),
                         -EINVAL);
    }
}

/* Texts of JSON with lengths around the size of the buffer on the stack, and around the steps of 8
 * and 32 bytes in which they are copied. The end of the text is the end of its memory. */
DOMT_TEST(texts_of_each_length_are_read)
{
    thing got;

    for (uint32_t length = 0; length < 90; length++) {
        char *text = make_text_of_repetitions("{\"u8\":1,\"text\":\"", "y", "", length, "\"}");
        size_t size = strlen(text);
        char *exact = malloc(size);
        memcpy(exact, text, size);
        ck_assert_int_eq(domus_json_read(&thing_table, NULL, exact, size, &got, &got.memory, NULL),
                         0);
        ck_assert_uint_eq(strlen(got.text), length);
        domus_json_release(&got.memory);
        for (size_t cut = 0; cut < size; cut++)
            ck_assert_int_eq(
                domus_json_read(&thing_table, NULL, exact, cut, &got, &got.memory, NULL), -EBADMSG);
        free(exact);
        free(text);
    }
    for (uint32_t spaces = 4050; spaces < 4100; spaces++) {
        char *text = make_text_of_repetitions("{\"u8\":1", " ", "", spaces, "}");
        ck_assert_int_eq(thing_read_from_json(text, &got, NULL), 0);
        domus_json_release(&got.memory);
        free(text);
    }
}

/* A path in an error that is too long is cut at its outer end, and keeps its inner end. */
static const domus_json_table deep_table;
struct deep {
    struct deep *deeper;
    uint8_t count;
    uint8_t leaf;
};
static const domus_json_field deep_fields[] = {
    {DOMUS_JSON_ARRAY("a_name_that_is_rather_long", struct deep, deeper, count, 1,
                      OBJECT(deep_table))},
    {DOMUS_JSON_UINT("leaf", struct deep, leaf, 0, 9)},
};
static const domus_json_table deep_table = DOMUS_JSON_TABLE(struct deep, deep_fields);

DOMT_TEST(long_error_paths_are_cut_at_outer_end)
{
    char *opened =
        make_text_of_repetitions("", "{\"a_name_that_is_rather_long\":[", "", 10, "{\"leaf\":10");
    char *text = make_text_of_repetitions(opened, "}]", "", 10, "}");
    domus_json_memory memory;
    domus_json_error error;
    struct deep deep;
    char complaint[100] = "";

    ck_assert_msg(domus_json_check_table(&deep_table, complaint, sizeof complaint) == 0, "%s",
                  complaint);
    ck_assert_int_eq(domus_json_read(&deep_table, NULL, text, strlen(text), &deep, &memory, &error),
                     -ERANGE);
    ck_assert_uint_le(strlen(error.path), DOMUS_JSON_PATH_MAX);
    ck_assert_ptr_nonnull(strstr(error.path, "...a_name_that_is_rather_long[0]."));
    ck_assert_str_eq(error.path + strlen(error.path) - 8, "[0].leaf");
    free(opened);
    free(text);
}

DOMT_SUITE(60)
