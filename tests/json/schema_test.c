/* The schema of a table: each kind and shape in it, and a table that leads to itself. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <domus/json_writer.h>

#include <errno.h>
#include <string.h>

static const char *const words[] = {"a", "b\"", NULL};

typedef struct tree {
    int8_t number;
    bool has_word;
    uint8_t word;
    struct tree *trees;
    uint32_t tree_count;
    double reals[3];
    uint32_t real_count;
    domus_json_raw raw;
    char name[5];
} tree;

static const domus_json_table tree_table;
static const domus_json_field tree_fields[] = {
    {DOMUS_JSON_INT("number", tree, number, -5, 5), .required = true},
    {DOMUS_JSON_WORD("word", tree, word, words), DOMUS_JSON_HAS(tree, has_word)},
    {DOMUS_JSON_ARRAY("trees", tree, trees, tree_count, 7, OBJECT(tree_table)), .required = true},
    {DOMUS_JSON_LIST("reals", tree, reals, real_count, REAL(0, 0.5))},
    {DOMUS_JSON_RAW("raw", tree, raw, 9)},
    {DOMUS_JSON_TEXT("name", tree, name), .nullable = true},
};
static const domus_json_table tree_table = DOMUS_JSON_TABLE(tree, tree_fields);

static const char wanted[] =
    "{\"type\":\"object\",\"properties\":{\"number\":{\"type\":\"integer\",\"minimum\":-5,"
    "\"maximum\":5},\"word\":{\"anyOf\":[{\"type\":\"null\"},{\"enum\":[\"a\",\"b\\\"\"]}]},"
    "\"trees\":{\"type\":\"array\",\"maxItems\":7,\"items\":{\"type\":\"object\"}},"
    "\"reals\":{\"type\":\"array\",\"maxItems\":3,\"items\":{\"type\":\"number\",\"minimum\":0.0,"
    "\"maximum\":0.5}},\"raw\":{},\"name\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\","
    "\"maxLength\":4}]}},\"required\":[\"number\",\"trees\"],\"additionalProperties\":false}";

DOMT_TEST(schema_has_each_kind_and_shape)
{
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender};
    domus_slice bytes;

    ck_assert_int_eq(domus_json_put_schema(&writer, &tree_table), 0);
    ck_assert_int_eq(domus_json_finish(&writer), 0);
    ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
    ck_assert_msg(domus_slice_equals(bytes, wanted, sizeof wanted - 1), "%.*s", (int)bytes.size,
                  domus_slice_data(bytes));
    domus_slice_free(bytes);
}

DOMT_TEST(schema_is_a_value_like_any_other)
{
    domus_appender appender = {0};
    domus_json_writer writer = {.to = &appender};
    domus_slice bytes;

    domus_json_put_object(&writer);
    domus_json_put_key(&writer, "thing");
    ck_assert_int_eq(domus_json_put_schema(&writer, &loose_table), 0);
    ck_assert_int_eq(domus_json_put_schema(&writer, &loose_table), -EINVAL);
    domus_append_drop(&appender);
    writer = (domus_json_writer){.to = &appender};
    ck_assert_int_eq(domus_json_put_schema(&writer, &loose_table), 0);
    ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
    ck_assert_int_eq(domus_json_check(NULL, domus_slice_data(bytes), bytes.size, NULL), 0);
    ck_assert_ptr_nonnull(
        memmem(domus_slice_data(bytes), bytes.size, "\"required\":[\"u8\"]}", 18));
    domus_slice_free(bytes);
}

DOMT_SUITE(20)
