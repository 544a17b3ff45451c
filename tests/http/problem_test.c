/* Texts of answers: problem details; pages in which texts of strangers cannot become markup; events
 * in lines; and tags. Conditions are answered with 304 and 412, also for HEAD, for programs with
 * tags of their own, and for compressed answers. */
#include "protocols/http/texts.h"
#include "tests/http/chained.h"
#include "tests/http/served.h"
#include "tests/http/trace.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/http_event.h>
#include <domus/http_gzip.h>
#include <domus/http_html.h>
#include <domus/http_problem.h>
#include <domus/http_tag.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *problem_as_text(const domus_http_problem *problem)
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

DOMT_TEST(problem_details_are_json)
{
    domus_appender appender = {0};

    ck_assert_str_eq(problem_as_text(&(domus_http_problem){.status = 404}),
                     "{\"title\":\"Not Found\",\"status\":404}\n");
    ck_assert_str_eq(problem_as_text(&(domus_http_problem){.status = 403,
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

/* Returns whether the first `size` bytes of a JSON text end between two escapes. */
static bool is_cut_between_escapes(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size)
        at += text[at] != '\\' ? 1 : text[at + 1] == 'u' ? 6 : 2;
    return at == size;
}

DOMT_TEST(any_bytes_become_a_json_string)
{
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"\n\r\t\x1b\x7f", "\\u000a\\u000d\\u0009\\u001b\\u007f"},
        {"\xc3\xa4\xe2\x82\xac", "\\u00e4\\u20ac"},
        {"\xf0\x9f\x98\x80", "\\ud83d\\ude00"},
        {"\xf4\x8f\xbf\xbf", "\\udbff\\udfff"},
        /* the mark that turns the direction of text is escaped */
        {"\xe2\x80\xae", "\\u202e"},
        {"\xc0\xaf", "\\ufffd\\ufffd"},            /* an overlong form of '/' is replaced */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* a surrogate in UTF-8 is replaced */
        /* a number beyond the last code point is replaced */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
        {"\xe2\x82", "\\ufffd\\ufffd"}, /* an incomplete character is replaced */
        {"\xe2\x82z", "\\ufffd\\ufffdz"},
        {"\x80\xff", "\\ufffd\\ufffd"},
    };
    char text[64];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size =
            domi_http_escape_text_for_json(rows[i][0], strlen(rows[i][0]), text, sizeof text);
        ck_assert_uint_eq(size, strlen(rows[i][1]));
        ck_assert_mem_eq(text, rows[i][1], size);
        /* a shorter buffer cuts the text, but no escape */
        for (size_t room = 0; room < size; room++) {
            size_t less =
                domi_http_escape_text_for_json(rows[i][0], strlen(rows[i][0]), text, room);
            ck_assert_uint_le(less, room);
            ck_assert(is_cut_between_escapes(rows[i][1], less));
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
    domus_testkit *kit = domt_chained_start_kit(&domt_chained, parts);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(domt_chained_answer_to_request(kit, rows[i][0], ""), rows[i][1]);
    ck_assert_str_eq(domt_chained_answer_to_bytes(kit, NULL, "GET  / HTTP/1.1\r\n\r\n"),
                     "HTTP/1.1 400 Bad Request\r\nContent-Length: 37\r\nConnection: close\r\n"
                     "Content-Type: application/problem+json\r\n\r\n{\"title\":\"Bad "
                     "Request\",\"status\":400}\n");
    domt_served_end_kit(kit);
}

DOMT_TEST(problem_details_name_their_request)
{
    static const domus_http_problems_options options = {.names_request = true};
    const domus_http_step parts[] = {
        {&domus_http_request_id, NULL}, {&domus_http_problems, &options}, {NULL, NULL}};
    domus_testkit *kit = domt_chained_start_kit(&domt_chained, parts);
    const char *got = domt_chained_answer_to_request(kit, "GET /fail", "X-Request-Id: me\r\n");

    ck_assert_ptr_nonnull(
        strstr(got, "{\"title\":\"Not Found\",\"request_id\":\"me\",\"status\":404}\n"));
    got = domt_chained_answer_to_request(kit, "GET /problem", "X-Request-Id: me\r\n");
    ck_assert_ptr_nonnull(strstr(got, "{\"title\":\"Forbidden\",\"detail\":\"no\",\"of\":1,"
                                      "\"request_id\":\"me\",\"status\":403}\n"));
    domt_served_end_kit(kit);
}

/* Problem details have no name of their request if the part is not told to add it, or if the
 * request has not reached the part. */
DOMT_TEST(problem_details_name_no_request_unless_told)
{
    static const domus_http_problems_options options = {.names_request = true};
    static const domus_http_step ways[][3] = {
        {{&domus_http_request_id, NULL}, {&domus_http_problems, NULL}, {NULL, NULL}},
        {{&domus_http_request_id, NULL}, {NULL, NULL}},
        {{&domus_http_problems, &options}, {NULL, NULL}},
        {{NULL, NULL}}};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        domus_testkit *kit = domt_chained_start_kit(&domt_chained, ways[i]);
        const char *got =
            domt_chained_answer_to_request(kit, "GET /problem", "X-Request-Id: me\r\n");
        ck_assert_ptr_nonnull(strstr(got, "{\"title\":\"Forbidden\",\"detail\":\"no\",\"of\":1,"
                                          "\"status\":403}\n"));
        domt_served_end_kit(kit);
    }
}

static const struct {
    const char *text;
    size_t size;
    const char *html;
} rows[] = {
    {"", 0, ""},
    {"plain", 5, "plain"},
    {"&<>\"'", 5, "&amp;&lt;&gt;&quot;&#39;"},
    {"<script>a && \"b\"</script>", 25, "&lt;script&gt;a &amp;&amp; &quot;b&quot;&lt;/script&gt;"},
    {"&lt;", 4, "&amp;lt;"},
    {"\xc3\xa4 <", 4, "\xc3\xa4 &lt;"},
    {"<a", 1, "&lt;"},
};

DOMT_TEST(text_in_html_is_escaped)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = strlen(rows[i].html);
        domus_appender page = {.size_max = (uint32_t)size};
        domus_slice made;

        ck_assert_int_eq(domus_http_append_html(&page, rows[i].text, rows[i].size), 0);
        ck_assert_int_eq(domus_append_end(&page, &made), 0);
        ck_assert(domus_slice_equals(made, rows[i].html, size));
        domus_slice_free(made);
        page = (domus_appender){.size_max = (uint32_t)size - 1};
        if (size > 1) {
            ck_assert_int_eq(domus_http_append_html(&page, rows[i].text, rows[i].size), -EMSGSIZE);
            domus_append_drop(&page);
        }
    }
}

static void check_text_of_event(domus_http_event event, const char *expected)
{
    domus_appender piece = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_event(&piece, &event), 0);
    ck_assert_int_eq(domus_append_end(&piece, &made), 0);
    ck_assert(domus_slice_equals(made, expected, strlen(expected)));
    domus_slice_free(made);
}

DOMT_TEST(server_sent_events_are_lines)
{
    check_text_of_event((domus_http_event){.data = "a"}, "data: a\n\n");
    check_text_of_event((domus_http_event){.data = ""}, "data: \n\n");
    check_text_of_event((domus_http_event){.name = "n", .id = "7", .data = "a", .retry_ms = 500},
                        "event: n\nid: 7\nretry: 500\ndata: a\n\n");
    check_text_of_event((domus_http_event){.id = ""}, "id: \n\n");
    check_text_of_event((domus_http_event){.data = "a\nb\r\nc\rd\n\ne\n"},
                        "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\ndata: \n\n");
    check_text_of_event((domus_http_event){.data = "id: 7\n\nevent: x"},
                        "data: id: 7\ndata: \ndata: event: x\n\n");
}

DOMT_TEST(names_and_ids_of_events_are_one_line)
{
    static const domus_http_event wrong[] = {
        {.name = "a\nb", .data = "c"}, {.name = "a\r", .data = "c"}, {.id = "a\n", .data = "c"}};
    domus_slice made;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_appender piece = {0};
        ck_assert_int_eq(domus_http_add_heartbeat(&piece), 0);
        ck_assert_int_eq(domus_http_add_event(&piece, &wrong[i]), -EINVAL);
        ck_assert_int_eq(domus_append_end(&piece, &made), -EINVAL);
    }
}

DOMT_TEST(heartbeat_of_events_is_a_comment)
{
    domus_appender piece = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_add_heartbeat(&piece), 0);
    ck_assert_int_eq(domus_append_end(&piece, &made), 0);
    ck_assert(domus_slice_equals(made, ":\n\n", 3));
    domus_slice_free(made);
}

/* TAG is made of the SHA-256 of BODY, which Python has computed. */
#define BODY "hello\n"
#define TAG  "\"WJG1tSLV3whtD_CxEPvZ0g\""

static domus_http_gzip gzip = {.least = 4};
static const domus_http_options packing = {.no_date = true, .gzip = &gzip};

static bool is_path_of_request(const domus_http_request *request, const char *path)
{
    return domus_slice_equals(domus_http_path(request), path, strlen(path));
}

/* The answers of the service: /own has a tag of its own, /old has a time, /new has the status 201,
 * /large is compressed. */
static int serve_tagged_answers(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    domus_http_response response = {.status = 200, .media = "text/plain"};
    domus_appender fields = {0};
    static char large[2000];

    memset(large, 'a', sizeof large - 1);
    response.body = domt_slice_of_text(is_path_of_request(request, "/large") ? large : BODY);
    if (is_path_of_request(request, "/own"))
        (void)domus_http_add(&fields, "ETag", "\"7\"");
    if (is_path_of_request(request, "/weak"))
        (void)domus_http_add(&fields, "etag", "W/\"7\"");
    if (is_path_of_request(request, "/old"))
        (void)domus_http_add(&fields, "Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    if (is_path_of_request(request, "/new"))
        response.status = 201;
    (void)domus_http_add(&fields, "Content-Language", "en");
    (void)domus_http_add(&fields, "Cache-Control", "private");
    ck_assert_int_eq(domus_append_end(&fields, &response.fields), 0);
    return domus_http_reply_tagged(stack, &response);
}

static const domus_pipeline pipelines[] = {
    {.stages =
         (const domus_pipeline_stage[]){{&domus_http_stage, &domt_served_whole}, {NULL, NULL}}},
    {.stages = (const domus_pipeline_stage[]){{&domus_http_stage, &packing}, {NULL, NULL}}},
};
static const domus_on_peer peer_rows[] = {
    {.type = &domus_http_request_type, .handle = serve_tagged_answers}, {.type = NULL}};
static const domus_behaviour services[] = {
    {.name = "plain", .kind = DOMUS_CHANNELS, .pipeline = &pipelines[0], .on_peer = peer_rows},
    {.name = "packing", .kind = DOMUS_CHANNELS, .pipeline = &pipelines[1], .on_peer = peer_rows},
};

#define LANGUAGE  "Content-Language: en\r\n"
#define PRIVATE   "Cache-Control: private\r\n"
#define LENGTH    "Content-Length: 6\r\nContent-Type: text/plain\r\n"
#define OK(tag)   "HTTP/1.1 200 OK\r\n" LENGTH tag LANGUAGE PRIVATE "\r\n"
#define SAME(tag) "HTTP/1.1 304 Not Modified\r\n" tag PRIVATE "\r\n"
#define FAILED                                                                                     \
    "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 20\r\nContent-Type: text/plain\r\n\r\n"
#define ETAG "ETag: " TAG "\r\n"

DOMT_TEST(conditions_of_requests_are_heeded)
{
    static const char *const cases[][2] = {
        {"GET / HTTP/1.1\r\n", OK(ETAG) BODY},
        {"HEAD / HTTP/1.1\r\n", OK(ETAG)},
        {"GET / HTTP/1.1\r\nIf-None-Match: " TAG "\r\n", SAME(ETAG)},
        {"GET / HTTP/1.1\r\nIf-None-Match: \"x\", W/" TAG "\r\n", SAME(ETAG)},
        {"GET / HTTP/1.1\r\nIf-None-Match: *\r\n", SAME(ETAG)},
        {"HEAD / HTTP/1.1\r\nIf-None-Match: " TAG "\r\n", SAME(ETAG)},
        {"GET / HTTP/1.1\r\nIf-None-Match: \"x\"\r\n", OK(ETAG) BODY},
        {"GET / HTTP/1.1\r\nIf-Match: " TAG "\r\n", OK(ETAG) BODY},
        {"GET / HTTP/1.1\r\nIf-Match: \"x\"\r\n", FAILED "Precondition Failed\n"},
        {"GET / HTTP/1.1\r\nIf-Match: W/" TAG "\r\n", FAILED "Precondition Failed\n"},
        {"HEAD / HTTP/1.1\r\nIf-Match: \"x\"\r\n", FAILED},
        {"POST / HTTP/1.1\r\nIf-None-Match: " TAG "\r\nContent-Length: 0\r\n", OK("") BODY},
        {"GET /new HTTP/1.1\r\nIf-None-Match: " TAG "\r\n",
         "HTTP/1.1 201 Created\r\n" LENGTH LANGUAGE PRIVATE "\r\n" BODY},
        {"GET /own HTTP/1.1\r\n", OK("ETag: \"7\"\r\n") BODY},
        {"GET /own HTTP/1.1\r\nIf-None-Match: \"7\"\r\n", SAME("ETag: \"7\"\r\n")},
        {"GET /own HTTP/1.1\r\nIf-None-Match: " TAG "\r\n", OK("ETag: \"7\"\r\n") BODY},
        {"GET /weak HTTP/1.1\r\nIf-None-Match: \"7\"\r\n", SAME("etag: W/\"7\"\r\n")},
        {"GET /weak HTTP/1.1\r\nIf-Match: W/\"7\"\r\n", FAILED "Precondition Failed\n"},
        {"GET /old HTTP/1.1\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", SAME(ETAG)},
        {"GET /old HTTP/1.1\r\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n",
         FAILED "Precondition Failed\n"},
        /* the condition by time is ignored, because the answer has no time */
        {"GET / HTTP/1.1\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", OK(ETAG) BODY},
    };
    domus_testkit *kit = domt_served_start_kit(NULL, &services[0], 1);
    domus_peer *peer = domt_served_connect_peer(kit);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domt_served_send_text(peer, cases[i][0]);
        domt_served_send_text(peer, "Host: a\r\n\r\n");
        domt_served_expect_text(kit, peer, cases[i][1]);
    }
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

/* Send a request for /large with these fields; returns the head of the answer, valid until the next
 * call. */
static const char *head_of_large_answer(domus_testkit *kit, const char *fields)
{
    static char head[1024];
    domus_peer *peer = domt_served_connect_peer(kit);
    char text[512];
    size_t size;

    snprintf(text, sizeof text, "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n",
             fields);
    domt_served_send_text(peer, text);
    domt_served_advance_kit(kit, DOMT_SERVED_S);
    const char *got = domus_peer_got(peer, &size);
    const char *end = memmem(got, size, "\r\n\r\n", 4);
    ck_assert_ptr_nonnull(end);
    snprintf(head, sizeof head, "%.*s", (int)(end + 2 - got), got);
    domus_peer_close(peer);
    return head;
}

DOMT_TEST(compressed_answers_have_weak_tags)
{
    domus_testkit *kit = domt_served_start_kit(NULL, &services[1], 1);
    char tag[DOMUS_HTTP_TAG_SIZE + 1], strong[64], weak[64], fields[256];
    static char large[1999];

    memset(large, 'a', sizeof large);
    domus_http_tag(large, sizeof large, tag);
    ck_assert_uint_eq(strlen(tag), DOMUS_HTTP_TAG_SIZE);
    snprintf(strong, sizeof strong, "\r\nETag: %s\r\n", tag);
    snprintf(weak, sizeof weak, "\r\nETag: W/%s\r\n", tag);
    ck_assert_ptr_nonnull(strstr(head_of_large_answer(kit, ""), strong));
    ck_assert_ptr_nonnull(strstr(head_of_large_answer(kit, "Accept-Encoding: gzip\r\n"), weak));
    for (int accepts = 0; accepts < 2; accepts++) {
        for (int is_weak = 0; is_weak < 2; is_weak++) {
            snprintf(fields, sizeof fields, "%sIf-None-Match: %s%s\r\n",
                     accepts ? "Accept-Encoding: gzip\r\n" : "", is_weak ? "W/" : "", tag);
            const char *head = head_of_large_answer(kit, fields);
            ck_assert_ptr_nonnull(strstr(head, "304 Not Modified"));
            ck_assert_ptr_nonnull(strstr(head, "Vary: Accept-Encoding\r\n"));
            ck_assert_ptr_nonnull(strstr(head, accepts && is_weak ? weak : strong));
        }
    }
    domt_served_end_kit(kit);
    domus_http_gzip_trim(&gzip);
}

DOMT_TEST(entity_tags_depend_on_the_bytes_of_the_body)
{
    char one[DOMUS_HTTP_TAG_SIZE + 1], two[DOMUS_HTTP_TAG_SIZE + 1];

    domus_http_tag(BODY, sizeof BODY - 1, one);
    ck_assert_str_eq(one, TAG);
    domus_http_tag("", 0, one);
    domus_http_tag("a", 1, two);
    ck_assert_str_ne(one, two);
}

DOMT_SUITE(30)
