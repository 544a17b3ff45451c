/* protocols/json/openapi.c: the description made of rows and notes, the parts that are left out,
 * and the rows that are refused. (A validator of OpenAPI 3.1 has accepted the same text.) */
#include "tests/json/things.h"
#include "tests/support/suite.h"

#include <domus/json_openapi.h>

#include <errno.h>
#include <string.h>

/* Handlers, which are never called here: the test only needs their addresses. */
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

static const char wanted[] =
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

DOMT_TEST(description_has_the_rows_with_a_note)
{
    const domus_openapi_info info = {"things", "1", "All"};
    domus_appender bytes = {0};
    domus_slice text;

    ck_assert_int_eq(domus_openapi_write(&info, rows, notes, &bytes), 0);
    ck_assert_int_eq(domus_append_end(&bytes, &text), 0);
    ck_assert_msg(domus_slice_equals(text, wanted, sizeof wanted - 1), "%.*s", (int)text.size,
                  domus_slice_data(text));
    ck_assert_int_eq(domus_json_check(NULL, domus_slice_data(text), text.size, NULL), 0);
    domus_slice_free(text);
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

/* Rows that are refused: the paths of one or two rows, and the note of their handler. */
static const struct wrong {
    const char *one, *other;
    domus_openapi_note note;
    int error;
} wrongs[] = {
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

DOMT_TEST(what_cannot_be_told_is_refused)
{
    static const domus_openapi_info infos[] = {{NULL, "1", NULL}, {"a", NULL, NULL}};
    const domus_openapi_info info = {"a", "1", NULL};
    domus_appender bytes = {0};

    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const domus_openapi_note some[] = {wrongs[i].note, {.handle = NULL}};
        const domus_http_row two[] = {{{GET, wrongs[i].one, 0}, show_one, NULL},
                                      {{POST, wrongs[i].other, 0}, show_one, NULL},
                                      {{0, NULL, 0}, NULL, NULL}};
        int error = domus_openapi_write(&info, two, some, &bytes);
        ck_assert_msg(error == wrongs[i].error, "row %zu: %d", i, error);
        domus_append_drop(&bytes);
    }
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(domus_openapi_write(&infos[i], rows, notes, &bytes), -EINVAL);
    bytes = (domus_appender){.size_max = 100};
    ck_assert_int_eq(domus_openapi_write(&info, rows, notes, &bytes), -EMSGSIZE);
    domus_append_drop(&bytes);
}

DOMT_SUITE(20)
