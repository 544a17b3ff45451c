/* Tables of members: which are refused, and the schema and the description of OpenAPI that are
 * made from them. */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <domus/json_openapi.h>
#include <domus/json_writer.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Wrong tables are refused, and correct tables are accepted. Most rows are written without the
 * macros, because these do not compile for members of another type. */

static const char *const words[] = {"a", "b", NULL};
static const char *const twice[] = {"a", "b", "a", NULL};
static const char *const none[] = {NULL};

DOMT_TEST(right_tables_are_accepted)
{
    char error[128] = "";

    ck_assert_msg(domus_json_check_table(&thing_table, error, sizeof error) == 0, "%s", error);
    ck_assert_msg(domus_json_check_table(&loose_table, error, sizeof error) == 0, "%s", error);
}

#define NUMBER(of, least, most)                                                                    \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = (of), .kind = DOMUS_JSON_KIND_UINT, .low = (least),   \
        .high = (most)                                                                             \
    }
#define SIGNED(of, least, most)                                                                    \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = (of), .kind = DOMUS_JSON_KIND_INT,                    \
        .low = (uint64_t)INT64_C(least), .high = (uint64_t)INT64_C(most)                           \
    }
#define OTHER(of, sort, ...)                                                                       \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = (of), .kind = DOMUS_JSON_KIND_##sort, __VA_ARGS__     \
    }
#define LIST(bytes, at, most)                                                                      \
    {                                                                                              \
        .name = "x", .name_size = 1, .size = 1, .kind = DOMUS_JSON_KIND_UINT,                      \
        .shape = DOMUS_JSON_COUNTED, .count_size = (bytes), .count_offset = (at),                  \
        .count_max = (most), .high = 255                                                           \
    }

/* Rows of tables for a struct of 16 bytes, and the error of each. */
static const struct wrong {
    domus_json_field field;
    const char *told; /* words of the error for this row; NULL: the row is correct */
} wrongs[] = {
    {NUMBER(3, 0, 1), "x: a number of 3 bytes"},
    {NUMBER(1, 0, 255), NULL},
    {NUMBER(1, 0, 256), "x: the range is larger than the member"},
    {NUMBER(1, 2, 1), "x: the range is empty"},
    {SIGNED(1, -128, 127), NULL},
    {SIGNED(1, -129, 0), "x: the range is larger than the member"},
    {SIGNED(1, 0, 128), "x: the range is larger than the member"},
    {SIGNED(8, 1, 0), "x: the range is empty"},
    {OTHER(2, BOOL, .low = 0), "x: not a bool"},
    {OTHER(4, REAL, .real_high = 1), "x: not a double"},
    {OTHER(8, REAL, .real_low = 1), "x: the range is empty"},
    {OTHER(0, TEXT, .low = 0), "x: an array without elements"},
    {OTHER(4, STRING, .bytes_max = 1), "x: not a pointer"},
    {OTHER(8, RAW, .bytes_max = 1), "x: not a domus_json_raw"},
    {OTHER(4, WORD, .words = words), NULL},
    {OTHER(4, WORD, .words = twice), "x: the word \"a\" is there twice"},
    {OTHER(4, WORD, .words = none), "x: no words"},
    {OTHER(3, WORD, .words = words), "x: a number of 3 bytes"},
    {OTHER(8, OBJECT, .table = &part_table), "x: the table is of another struct"},
    {OTHER(8, OBJECT, .table = NULL), "x: the table is of another struct"},
    {OTHER(16, TEXT, .low = 0), NULL},
    {OTHER(17, TEXT, .low = 0), "x: reaches beyond the struct"},
    {OTHER(8, TEXT, .offset = 9), "x: reaches beyond the struct"},
    {OTHER(1, TEXT, .has = true, .has_offset = 16), "x: its bool is beyond the struct"},
    {LIST(1, 15, 15), NULL},
    {LIST(1, 15, 0), "x: a bound of 0 elements"},
    {LIST(1, 16, 15), "x: the count is no integer of the struct"},
    {LIST(3, 8, 15), "x: the count is no integer of the struct"},
    {LIST(1, 15, 17), "x: reaches beyond the struct"},
    {{.name = "x", .name_size = 1, .size = 1}, "x: has no kind"},
    {{.name = "", .name_size = 0, .size = 1, .kind = DOMUS_JSON_KIND_TEXT}, ": a name of 0 bytes"},
    {{.name = "x", .name_size = 2, .size = 1, .kind = DOMUS_JSON_KIND_TEXT},
     "x: a name of 2 bytes"},
    {{.name = "\\", .name_size = 1, .size = 1, .kind = DOMUS_JSON_KIND_TEXT},
     "\\: the name has a character that needs an escape"},
};

DOMT_TEST(wrong_table_rows_are_refused)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        domus_json_table table = {.fields = &wrongs[i].field, .count = 1, .size = 16};
        char error[128] = "";
        int result = domus_json_check_table(&table, error, sizeof error);
        ck_assert_int_eq(result, wrongs[i].told != NULL ? -EINVAL : 0);
        ck_assert_str_eq(error, wrongs[i].told != NULL ? wrongs[i].told : "");
    }
}

DOMT_TEST(table_rows_may_not_share_names_or_bytes)
{
    domus_json_field fields[] = {
        {.name = "a", .name_size = 1, .size = 4, .kind = DOMUS_JSON_KIND_TEXT},
        {.name = "b", .name_size = 1, .offset = 3, .size = 4, .kind = DOMUS_JSON_KIND_TEXT},
    };
    domus_json_table table = {.fields = fields, .count = 2, .size = 8};
    char error[128] = "";

    ck_assert_int_eq(domus_json_check_table(&table, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "b: shares bytes with a");
    fields[1].offset = 4;
    ck_assert_int_eq(domus_json_check_table(&table, error, sizeof error), 0);
    fields[1].name[0] = 'a';
    ck_assert_int_eq(domus_json_check_table(&table, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "a: the name is there twice");
}

DOMT_TEST(number_of_table_rows_is_limited)
{
    static domus_json_field fields[DOMUS_JSON_FIELDS_MAX + 1];
    domus_json_table table = {.fields = fields, .size = DOMUS_JSON_FIELDS_MAX + 1};
    char text[1000] = "{";
    unsigned char value[DOMUS_JSON_FIELDS_MAX + 1];

    for (uint32_t i = 0; i <= DOMUS_JSON_FIELDS_MAX; i++) {
        fields[i] = (domus_json_field){
            .offset = i, .size = 1, .kind = DOMUS_JSON_KIND_UINT, .high = 255, .required = true};
        fields[i].name_size = (uint32_t)snprintf(fields[i].name, 8, "f%u", i);
        if (i < DOMUS_JSON_FIELDS_MAX)
            snprintf(text + strlen(text), 20, "%s\"f%u\":%u", i == 0 ? "" : ",", i, i);
    }
    (void)snprintf(text + strlen(text), 2, "}");
    for (table.count = 0; table.count <= DOMUS_JSON_FIELDS_MAX + 1; table.count++) {
        bool fits = table.count >= 1 && table.count <= DOMUS_JSON_FIELDS_MAX;
        ck_assert_int_eq(domus_json_check_table(&table, NULL, 0), fits ? 0 : -EINVAL);
    }
    table.count = DOMUS_JSON_FIELDS_MAX;
    ck_assert_int_eq(domus_json_read(&table, NULL, text, strlen(text), value, NULL, NULL), 0);
    ck_assert_uint_eq(value[63], 63);
}

/* --- schema ----------------------------------------------------------------------------------- */

/* The schema of JSON that is made of a table: each kind and shape of member, and a table that leads
 * to itself. */

static const char *const words_schema[] = {"a", "b\"", NULL};

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
    {DOMUS_JSON_WORD("word", tree, word, words_schema), DOMUS_JSON_HAS(tree, has_word)},
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

DOMT_TEST(schema_can_be_read_as_json)
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

/* --- openapi ---------------------------------------------------------------------------------- */

/* protocols/json/openapi.c: the description made of rows and notes, the parts that are left out,
 * and the rows that are refused. (A validator of OpenAPI 3.1 has accepted the same text.) */

/* Handlers of routes, which are never called in this test; it only needs their addresses. */
#define HANDLER(name)                                                                              \
    static int name(domus_stack *stack, void *self, const domus_http_request *request,             \
                    const domus_http_match *match)                                                 \
    {                                                                                              \
        (void)stack, (void)self, (void)request, (void)match;                                       \
        return 0;                                                                                  \
    }

HANDLER(show_list)
HANDLER(make_one)
HANDLER(show_one)
HANDLER(serve_file)
HANDLER(show_page)

struct query {
    uint8_t limit;
    char word[4];
    int64_t id;
};

static const domus_json_field query_fields[] = {
    {DOMUS_JSON_UINT("limit", struct query, limit, 1, 100)},
    {DOMUS_JSON_TEXT("word", struct query, word), .required = true},
};
static const domus_json_table query_table = DOMUS_JSON_TABLE(struct query, query_fields);
static const domus_json_field id_fields[] = {
    {DOMUS_JSON_INT("id", struct query, id, 1, INT64_MAX)}};
static const domus_json_table id_table = DOMUS_JSON_TABLE(struct query, id_fields);

#define GET    DOMUS_HTTP_ON(GET)
#define POST   DOMUS_HTTP_ON(POST)
#define DELETE DOMUS_HTTP_ON(DELETE)

static const domus_http_row rows[] = {
    {{GET, "/things", 0}, show_list, NULL},
    {{DELETE, "/things/{id}", 0}, show_page, NULL},
    {{GET | DELETE, "/things/{id}", 0}, show_one, NULL},
    {{POST, "/things", 0}, make_one, NULL},
    {{GET, "/files/{path*}", 0}, serve_file, NULL},
    {{GET, "/{path*}", 0}, show_page, NULL},
    {{0, NULL, 0}, NULL, NULL},
};
static const domus_openapi_note notes[] = {
    {show_list, .summary = "Many", .query = &query_table, .answer = &id_table},
    {make_one, .body = &id_table, .status = 201},
    {show_one, .summary = "One \"thing\"", .path = &id_table, .answer_media = "text/plain"},
    {serve_file, .body_media = "multipart/form-data", .status = 204},
    {.handle = NULL},
};

#define ID      "\"id\",\"in\":\"path\",\"required\":true,\"schema\":" INTEGER
#define INTEGER "{\"type\":\"integer\",\"minimum\":1,\"maximum\":9223372036854775807}"
#define TABLE                                                                                      \
    "{\"type\":\"object\",\"properties\":{\"id\":" INTEGER "},\"additionalProperties\":false}"
#define FAILURE                                                                                    \
    "\"default\":{\"description\":\"A failure\",\"content\":{\"application/problem+json\":{"       \
    "\"schema\":{\"type\":\"object\",\"properties\":{\"type\":{\"type\":\"string\"},"              \
    "\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},"                           \
    "\"detail\":{\"type\":\"string\"},\"instance\":{\"type\":\"string\"}}}}}}}"

static const char wanted_openapi[] =
    "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"things\",\"version\":\"1\",\"description\":"
    "\"All\"},"
    "\"paths\":{\"/things\":{"
    "\"get\":{\"summary\":\"Many\",\"parameters\":["
    "{\"name\":\"limit\",\"in\":\"query\",\"required\":false,"
    "\"schema\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100}},"
    "{\"name\":\"word\",\"in\":\"query\",\"required\":true,"
    "\"schema\":{\"type\":\"string\",\"maxLength\":3}}],"
    "\"responses\":{\"200\":{\"description\":\"No failure\","
    "\"content\":{\"application/json\":{\"schema\":" TABLE "}}}," FAILURE "},"
    "\"post\":{\"parameters\":[],\"requestBody\":{\"required\":true,"
    "\"content\":{\"application/json\":{\"schema\":" TABLE "}}},"
    "\"responses\":{\"201\":{\"description\":\"No failure\"}," FAILURE "}},"
    "\"/things/{id}\":{\"get\":{\"summary\":\"One \\\"thing\\\"\","
    "\"parameters\":[{\"name\":" ID "}],"
    "\"responses\":{\"200\":{\"description\":\"No "
    "failure\",\"content\":{\"text/plain\":{}}}," FAILURE "}},"
    "\"/files/{path}\":{\"get\":{\"parameters\":[{\"name\":\"path\",\"in\":\"path\","
    "\"required\":true,\"schema\":{\"type\":\"string\"}}],"
    "\"requestBody\":{\"required\":true,\"content\":{\"multipart/form-data\":{}}},"
    "\"responses\":{\"204\":{\"description\":\"No failure\"}," FAILURE "}}}}";

DOMT_TEST(openapi_description_has_rows_with_notes)
{
    const domus_openapi_info info = {"things", "1", "All"};
    domus_appender bytes = {0};
    domus_slice text;

    ck_assert_int_eq(domus_openapi_write(&info, rows, notes, &bytes), 0);
    ck_assert_int_eq(domus_append_end(&bytes, &text), 0);
    ck_assert_msg(domus_slice_equals(text, wanted_openapi, sizeof wanted_openapi - 1), "%.*s",
                  (int)text.size, domus_slice_data(text));
    ck_assert_int_eq(domus_json_check(NULL, domus_slice_data(text), text.size, NULL), 0);
    domus_slice_free(text);
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

/* Rows for which no description can be made: the paths of one or two rows, and the note of their
 * handler. */
static const struct wrong_openapi {
    const char *one, *other;
    domus_openapi_note note;
    int error;
} wrongs_openapi[] = {
    {"/{id}", NULL, {show_one, .path = &id_table}, 0},
    {"/{number}", NULL, {show_one, .path = &id_table}, -EINVAL},
    {"/", NULL, {show_one, .path = &id_table}, -EINVAL},
    {"/a{b}", NULL, {.handle = show_one}, -EINVAL},
    {"/{a}b", NULL, {.handle = show_one}, -EINVAL},
    {"/{a/b}", NULL, {.handle = show_one}, -EINVAL},
    {"/{a", NULL, {.handle = show_one}, -EINVAL},
    {"{a}", NULL, {.handle = show_one}, -EINVAL},
    {"/{a}/b", "/{a}", {.handle = show_one}, 0},
    {"/{a}/b", "/{c}/b", {.handle = show_one}, -EINVAL},
    {"/", NULL, {show_one, .status = 199}, -EINVAL},
    {"/", NULL, {show_one, .status = 399}, 0},
    {"/", NULL, {show_one, .status = 400}, -EINVAL},
    {"/", NULL, {show_one, .summary = "\xff"}, -EILSEQ},
    {"/{" LONG "}", NULL, {.handle = show_one}, -EINVAL},
};

DOMT_TEST(rows_without_possible_description_are_refused)
{
    static const domus_openapi_info infos[] = {{NULL, "1", NULL}, {"a", NULL, NULL}};
    const domus_openapi_info info = {"a", "1", NULL};
    domus_appender bytes = {0};

    for (size_t i = 0; i < sizeof wrongs_openapi / sizeof wrongs_openapi[0]; i++) {
        const domus_openapi_note some[] = {wrongs_openapi[i].note, {.handle = NULL}};
        const domus_http_row two[] = {{{GET, wrongs_openapi[i].one, 0}, show_one, NULL},
                                      {{POST, wrongs_openapi[i].other, 0}, show_one, NULL},
                                      {{0, NULL, 0}, NULL, NULL}};
        int error = domus_openapi_write(&info, two, some, &bytes);
        ck_assert_msg(error == wrongs_openapi[i].error, "row %zu: %d", i, error);
        domus_append_drop(&bytes);
    }
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(domus_openapi_write(&infos[i], rows, notes, &bytes), -EINVAL);
    bytes = (domus_appender){.size_max = 100};
    ck_assert_int_eq(domus_openapi_write(&info, rows, notes, &bytes), -EMSGSIZE);
    domus_append_drop(&bytes);
}

DOMT_SUITE(20)
