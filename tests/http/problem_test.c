/* Errors become JSON that programs can read (RFC 9457), whatever bytes their texts have. */
#include "tests/http/chained.h"
#include "tests/support/suite.h"

#include "protocols/http/json_text.h"

#include <domus/http_problem.h>

#include <errno.h>
#include <string.h>

static const char *write(const domus_http_problem *problem)
{
    static char text[1024];
    domus_appender appender = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_append_problem(&appender, problem), 0);
    ck_assert_int_eq(domus_append_end(&appender, &made), 0);
    ck_assert_uint_lt(made.size, sizeof text);
    memcpy(text, domus_slice_data(made), made.size);
    text[made.size] = '\0';
    domus_slice_free(made);
    return text;
}

DOMT_TEST(problems_are_json)
{
    domus_appender appender = {0};

    ck_assert_str_eq(write(&(domus_http_problem){.status = 404}),
                     "{\"title\":\"Not Found\",\"status\":404}\n");
    ck_assert_str_eq(write(&(domus_http_problem){.status = 403,
                                                 .type = "https://a/b",
                                                 .title = "no \"credit\"",
                                                 .detail = "",
                                                 .instance = "/c",
                                                 .members = "\"balance\":30,\"of\":[]"}),
                     "{\"type\":\"https://a/b\",\"title\":\"no \\\"credit\\\"\",\"detail\":\"\","
                     "\"instance\":\"/c\",\"balance\":30,\"of\":[],\"status\":403}\n");
    ck_assert_int_eq(domus_http_append_problem(&appender, &(domus_http_problem){.status = 399}),
                     -EINVAL);
    ck_assert_int_eq(domus_http_append_problem(&appender, &(domus_http_problem){.status = 600}),
                     -EINVAL);
}

/* Returns whether no escape of a text is cut by its end at `size`. */
static bool ends_between_escapes(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size)
        at += text[at] != '\\' ? 1 : text[at + 1] == 'u' ? 6 : 2;
    return at == size;
}

DOMT_TEST(any_bytes_become_a_string)
{
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"\n\r\t\x1b\x7f", "\\u000a\\u000d\\u0009\\u001b\\u007f"},
        {"\xc3\xa4\xe2\x82\xac", "\\u00e4\\u20ac"},
        {"\xf0\x9f\x98\x80", "\\ud83d\\ude00"},
        {"\xf4\x8f\xbf\xbf", "\\udbff\\udfff"},
        {"\xe2\x80\xae", "\\u202e"},                          /* text from right to left */
        {"\xc0\xaf", "\\ufffd\\ufffd"},                       /* too long for '/' */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},            /* a surrogate */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* beyond the last one */
        {"\xe2\x82", "\\ufffd\\ufffd"},                       /* cut */
        {"\xe2\x82z", "\\ufffd\\ufffdz"},
        {"\x80\xff", "\\ufffd\\ufffd"},
    };
    char text[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = domi_http_json_text(rows[i][0], strlen(rows[i][0]), text, sizeof text);
        ck_assert_uint_eq(size, strlen(rows[i][1]));
        ck_assert_mem_eq(text, rows[i][1], size);
        for (size_t room = 0; room < size; room++) { /* cut, but not within an escape */
            size_t less = domi_http_json_text(rows[i][0], strlen(rows[i][0]), text, room);
            ck_assert_uint_le(less, room);
            ck_assert(ends_between_escapes(rows[i][1], less));
            ck_assert_mem_eq(text, rows[i][1], less);
        }
    }
}

#define JSON(start, size, text)                                                                    \
    "HTTP/1.1 " start "\r\nContent-Length: " size                                                  \
    "\r\nContent-Type: application/problem+json\r\n\r\n" text

DOMT_TEST(errors_without_a_body_get_one)
{
    static const char *const rows[][2] = {
        {"GET /now", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnow\n"},
        {"GET /fail", JSON("404 Not Found", "35", "{\"title\":\"Not Found\",\"status\":404}\n")},
        {"GET /none", JSON("404 Not Found", "35", "{\"title\":\"Not Found\",\"status\":404}\n")},
        {"HEAD /none", JSON("404 Not Found", "35", "")},
        {"GET /bare", JSON("418 ", "26", "{\"title\":\"\",\"status\":418}\n")},
        {"GET /wrong", JSON("500 Internal Server Error", "47",
                            "{\"title\":\"Internal Server Error\",\"status\":500}\n")},
    };
    const domus_http_step parts[] = {{&domus_http_problems, NULL}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start(&domt_chained, parts);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(domt_chained_ask(kit, rows[i][0], ""), rows[i][1]);
    ck_assert_str_eq(domt_chained_send(kit, NULL, "GET  / HTTP/1.1\r\n\r\n"),
                     "HTTP/1.1 400 Bad Request\r\nContent-Length: 37\r\nConnection: close\r\n"
                     "Content-Type: application/problem+json\r\n\r\n{\"title\":\"Bad "
                     "Request\",\"status\":400}\n");
    domt_served_end(kit);
}

DOMT_TEST(problems_name_their_request)
{
    static const domus_http_problems_options options = {.names_request = true};
    const domus_http_step parts[] = {
        {&domus_http_request_id, NULL}, {&domus_http_problems, &options}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start(&domt_chained, parts);
    const char *got = domt_chained_ask(kit, "GET /fail", "X-Request-Id: me\r\n");

    ck_assert_ptr_nonnull(
        strstr(got, "{\"title\":\"Not Found\",\"request_id\":\"me\",\"status\":404}\n"));
    got = domt_chained_ask(kit, "GET /problem", "X-Request-Id: me\r\n");
    ck_assert_ptr_nonnull(strstr(got, "{\"title\":\"Forbidden\",\"detail\":\"no\",\"of\":1,"
                                      "\"request_id\":\"me\",\"status\":403}\n"));
    domt_served_end(kit);
}

/* The part does not say so, or the request has not come to it. */
DOMT_TEST(problems_without_a_name)
{
    static const domus_http_problems_options options = {.names_request = true};
    static const domus_http_step ways[][3] = {
        {{&domus_http_request_id, NULL}, {&domus_http_problems, NULL}, {NULL, NULL}},
        {{&domus_http_request_id, NULL}, {NULL, NULL}},
        {{&domus_http_problems, &options}, {NULL, NULL}},
        {{NULL, NULL}}};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        domus_testkit *kit = domt_chained_start(&domt_chained, ways[i]);
        const char *got = domt_chained_ask(kit, "GET /problem", "X-Request-Id: me\r\n");
        ck_assert_ptr_nonnull(strstr(got, "{\"title\":\"Forbidden\",\"detail\":\"no\",\"of\":1,"
                                          "\"status\":403}\n"));
        domt_served_end(kit);
    }
}

DOMT_SUITE(20)
