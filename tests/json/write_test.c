/* Writing by a table and without one: the bytes, and what is refused with its path. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <domus/json_writer.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* Writing JSON by a table: the written text reads back as the same struct, and a wrong struct is
 * refused with its path. */

static char *write_thing_and_compare(const thing *value)
{
    domus_appender appender = {0};
    domus_json_error error = {.line = 0};
    domus_slice bytes;

    int result = domus_json_write(&thing_table, value, &appender, &error);
    ck_assert_msg(result == 0, "%s: %s", error.path, error.words);
    ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
    char *text = malloc((size_t)bytes.size + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, domus_slice_data(bytes), bytes.size);
    text[bytes.size] = '\0';
    domus_slice_free(bytes);
    return text;
}

DOMT_TEST(written_thing_reads_back_equal)
{
    static const char *const texts[] = {thing_text, "{\"u8\":1}",
                                        "{\"u8\":1,\"text\":\"\\u0001\\b\\t\\u000b\\f\\r/\\\\\"}"};
    thing first;
    thing second;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_int_eq(thing_read_from_json(texts[i], &first, NULL), 0);
        char *text = write_thing_and_compare(&first);
        ck_assert_int_eq(thing_read_from_json(text, &second, NULL), 0);
        thing_check_values_are_same(&first, &second);
        char *again = write_thing_and_compare(&second);
        ck_assert_str_eq(text, again);
        domus_json_release(&first.memory);
        domus_json_release(&second.memory);
        free(text);
        free(again);
    }
}

DOMT_TEST(written_json_has_no_spaces)
{
    thing got;

    ck_assert_int_eq(
        thing_read_from_json("{ \"u8\" : 1, \"name\":\"\\u00e4\\u0001\\n\" }", &got, NULL), 0);
    char *text = write_thing_and_compare(&got);
    ck_assert_str_eq(text, "{\"flag\":false,\"i8\":0,\"i64\":0,\"u8\":1,\"u64\":0,\"ranged\":15,"
                           "\"real\":0.0,\"name\":\"\xc3\xa4\\u0001\\n\",\"hue\":\"red\","
                           "\"mode\":\"off\",\"one\":{\"number\":0,\"name\":\"\",\"numbers\":[]},"
                           "\"parts\":[],\"many\":[],\"texts\":[],\"names\":[],\"raws\":[]}");
    free(text);
}

/* Functions that each give one member of a thing a wrong value. */
static void break_range_of_number(thing *value)
{
    value->ranged = 21;
}
static void break_real_by_nan(thing *value)
{
    value->real = NAN;
}
static void break_real_by_infinity(thing *value)
{
    value->real = INFINITY;
}
static void break_name_of_thing(thing *value)
{
    memset(value->name, 'x', sizeof value->name);
}
static void break_text_of_thing(thing *value)
{
    static char text[102];

    memset(text, 'x', 101);
    value->text = text;
}
static void break_utf8_of_text(thing *value)
{
    value->text = "a\xff";
}
static void break_enumerated_hue(thing *value)
{
    value->hue = (color)3;
}
static void break_raw_value(thing *value)
{
    value->raw = (domus_json_raw){"[1,]", 4};
}
static void break_size_of_raw_value(thing *value)
{
    value->raw = (domus_json_raw){"1                                        ", 41};
}
static void break_count_of_array(thing *value)
{
    value->part_count = 4;
}
static void break_pointer_of_array(thing *value)
{
    value->many = NULL;
    value->many_count = 1;
}
static void break_element_of_array(thing *value)
{
    value->part_count = 2;
    value->parts[1].number = 1001;
}
static void break_text_by_null(thing *value)
{
    static const char *none[1];

    value->texts = none;
    value->text_count = 1;
}

static const struct fault {
    void (*make)(thing *value);
    int error;
    const char *told;
} faults[] = {
    {break_range_of_number, -ERANGE, "ranged: 21 is not in 10..20"},
    {break_real_by_nan, -ERANGE, "real: not a finite number"},
    {break_real_by_infinity, -ERANGE, "real: inf is not in -1e+300..1e+300"},
    {break_name_of_thing, -EINVAL, "name: has no zero"},
    {break_text_of_thing, -EMSGSIZE, "text: longer than 100 bytes"},
    {break_utf8_of_text, -EILSEQ, "text: no UTF-8"},
    {break_enumerated_hue, -ERANGE, "hue: 3 is none of its words"},
    {break_raw_value, -EINVAL, "raw: not JSON"},
    {break_size_of_raw_value, -EMSGSIZE, "raw: longer than 40 bytes"},
    {break_count_of_array, -EINVAL, "parts: 4 elements, more than 3"},
    {break_pointer_of_array, -EINVAL, "many: is missing"},
    {break_element_of_array, -ERANGE, "parts[1].number: 1001 is not in 0..1000"},
    {break_text_by_null, -EINVAL, "texts[0]: is missing"},
};

DOMT_TEST(wrong_structs_are_refused_with_path)
{
    char told[DOMUS_JSON_EXPLAIN_MAX];
    domus_json_error error;

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        domus_appender appender = {0};
        thing value = {.ranged = 15};
        faults[i].make(&value);
        int result = domus_json_write(&thing_table, &value, &appender, &error);
        ck_assert_int_eq(result, faults[i].error);
        ck_assert_str_eq(domus_json_explain(&error, told, sizeof told), faults[i].told);
        domus_append_drop(&appender);
    }
}

DOMT_TEST(table_writer_respects_limit_of_appender)
{
    thing value = {.ranged = 15};
    char *text = write_thing_and_compare(&value);
    domus_appender fits = {.size_max = (uint32_t)strlen(text)};
    domus_appender small = {.size_max = (uint32_t)strlen(text) - 1};
    domus_json_error error;

    ck_assert_int_eq(domus_json_write(&thing_table, &value, &fits, &error), 0);
    ck_assert_int_eq(domus_json_write(&thing_table, &value, &small, &error), -EMSGSIZE);
    domus_append_drop(&fits);
    domus_append_drop(&small);
    free(text);
}

/* A struct whose table contains itself can be nested too deep for the writer. */
typedef struct node node;
struct node {
    node *children;
    uint32_t count;
    const char *must;
};
static const domus_json_table node_table;
static const domus_json_field node_fields[] = {
    {DOMUS_JSON_ARRAY("children", node, children, count, 10, OBJECT(node_table))},
    {DOMUS_JSON_STRING("must", node, must, 10), .required = true, .nullable = true},
};
static const domus_json_table node_table = DOMUS_JSON_TABLE(node, node_fields);

DOMT_TEST(nesting_by_tables_is_limited)
{
    node nodes[17];
    domus_appender appender = {0};
    domus_slice bytes;
    domus_json_error error;

    memset(nodes, 0, sizeof nodes);
    /* Each of 15 levels has an object and an array: 31 with the outermost object. */
    for (uint32_t i = 0; i < 15; i++) {
        nodes[i].children = &nodes[i + 1];
        nodes[i].count = 1;
    }
    ck_assert_int_eq(domus_json_write(&node_table, nodes, &appender, &error), 0);
    ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
    ck_assert_ptr_nonnull(memmem(domus_slice_data(bytes), bytes.size, "\"must\":null", 11));
    ck_assert_int_eq(domus_json_check(NULL, domus_slice_data(bytes), bytes.size, NULL), 0);
    domus_slice_free(bytes);
    nodes[15].children = &nodes[16];
    nodes[15].count = 1;
    ck_assert_int_eq(domus_json_write(&node_table, nodes, &appender, &error), -EINVAL);
    ck_assert_str_eq(error.words, "nested deeper than 32");
    domus_append_drop(&appender);
}

/* --- writer ----------------------------------------------------------------------------------- */

/* The writer of JSON without a table: the bytes that it writes, and the calls that it refuses. */

static void check_written_text(domus_json_writer *writer, const char *wanted)
{
    domus_slice bytes;

    ck_assert_int_eq(domus_json_finish(writer), 0);
    ck_assert_int_eq(domus_append_end(writer->to, &bytes), 0);
    ck_assert_msg(domus_slice_equals(bytes, wanted, strlen(wanted)), "%.*s", (int)bytes.size,
                  domus_slice_data(bytes));
    domus_slice_free(bytes);
}

DOMT_TEST(writer_adds_commas_and_keys)
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
    check_written_text(
        &writer, "{\"a\\\"b\":[null,true,false,-9223372036854775808,18446744073709551615,-0.0,0.1,"
                 "\"t\x7f\xf0\x9f\x98\x80\",null,\"\\u0000x\",[],{}],\"raw\":[ 1 ],"
                 "\"part\":{\"number\":1,\"name\":\"\",\"numbers\":[]}}");
}

/* Sequences of calls of the writer, one letter each: '{' and '[' begin, '.' ends, 'k' is a key, '1'
 * a value. The last call of each is refused. */
static const char *const wrong_orders[] = {".",   "11",  "[.1", "k",     "{1",
                                           "{kk", "{k.", "[k",  "{k1.k", "{.["};

static int call_writer_for_letter(domus_json_writer *writer, char step)
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

DOMT_TEST(writer_stays_failed_after_wrong_call)
{
    for (size_t i = 0; i < sizeof wrong_orders / sizeof wrong_orders[0]; i++) {
        domus_appender appender = {0};
        domus_json_writer writer = {.to = &appender};
        const char *steps = wrong_orders[i];
        for (; *steps != '\0'; steps++)
            ck_assert_int_eq(call_writer_for_letter(&writer, *steps),
                             steps[1] == '\0' ? -EINVAL : 0);
        uint32_t size = appender.size;
        ck_assert_int_eq(domus_json_put_null(&writer), -EINVAL);
        ck_assert_int_eq(domus_json_finish(&writer), -EINVAL);
        ck_assert_uint_eq(appender.size, size);
        domus_append_drop(&appender);
    }
}

DOMT_TEST(unfinished_json_is_refused)
{
    static const char *const steps[] = {"", "[", "{k", "{k1"};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        domus_appender appender = {0};
        domus_json_writer writer = {.to = &appender};
        for (const char *step = steps[i]; *step != '\0'; step++)
            ck_assert_int_eq(call_writer_for_letter(&writer, *step), 0);
        ck_assert_int_eq(domus_json_finish(&writer), -EINVAL);
        domus_append_drop(&appender);
    }
}

DOMT_TEST(nesting_by_writer_is_limited)
{
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender};

    for (uint32_t i = 0; i < DOMUS_JSON_DEPTH_MAX; i++)
        ck_assert_int_eq(domus_json_put_array(&writer), 0);
    ck_assert_int_eq(domus_json_put_array(&writer), -EINVAL);
    domus_append_drop(&appender);
}

DOMT_TEST(invalid_utf8_is_refused_or_replaced)
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
        check_written_text(&mild, cases[i].replaced);
    }
}

DOMT_TEST(values_unknown_to_json_are_refused)
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

/* While the writer has an open array, the bytes that it has written until then can be taken from
 * the appender. */
DOMT_TEST(open_array_can_be_taken_in_pieces)
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

DOMT_TEST(writer_fails_at_limit_of_appender)
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
