/* Answers of handlers get a tag, and conditions are heeded: 304 and 412, for HEAD, for programs
 * that have tags of their own, and for answers that the stage compresses; in a test kit. */
#include "tests/http/served.h"
#include "tests/http/trace.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/http_gzip.h>
#include <domus/http_tag.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* SHA-256 of this text, by Python. */
#define BODY "hello\n"
#define TAG  "\"WJG1tSLV3whtD_CxEPvZ0g\""

static domus_http_gzip gzip = {.least = 4};
static const domus_http_options packing = {.no_date = true, .gzip = &gzip};

static bool is_path(const domus_http_request *request, const char *path)
{
    return domus_slice_equals(domus_http_path(request), path, strlen(path));
}

/* /own has a tag of its own, /old a time, /new is 201, /large is compressed. */
static int serve(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    domus_http_response response = {.status = 200, .media = "text/plain"};
    domus_appender fields = {0};
    static char large[2000];

    memset(large, 'a', sizeof large - 1);
    response.body = domt_http_slice(is_path(request, "/large") ? large : BODY);
    if (is_path(request, "/own"))
        (void)domus_http_add(&fields, "ETag", "\"7\"");
    if (is_path(request, "/weak"))
        (void)domus_http_add(&fields, "etag", "W/\"7\"");
    if (is_path(request, "/old"))
        (void)domus_http_add(&fields, "Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    if (is_path(request, "/new"))
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
static const domus_on_peer rows[] = {{.type = &domus_http_request_type, .handle = serve},
                                     {.type = NULL}};
static const domus_behaviour services[] = {
    {.name = "plain", .kind = DOMUS_CHANNELS, .pipeline = &pipelines[0], .on_peer = rows},
    {.name = "packing", .kind = DOMUS_CHANNELS, .pipeline = &pipelines[1], .on_peer = rows},
};

#define LANGUAGE  "Content-Language: en\r\n"
#define PRIVATE   "Cache-Control: private\r\n"
#define LENGTH    "Content-Length: 6\r\nContent-Type: text/plain\r\n"
#define OK(tag)   "HTTP/1.1 200 OK\r\n" LENGTH tag LANGUAGE PRIVATE "\r\n"
#define SAME(tag) "HTTP/1.1 304 Not Modified\r\n" tag PRIVATE "\r\n"
#define FAILED                                                                                     \
    "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 20\r\nContent-Type: text/plain\r\n\r\n"
#define ETAG "ETag: " TAG "\r\n"

DOMT_TEST(conditions_are_heeded)
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
        /* without a time such a condition says nothing */
        {"GET / HTTP/1.1\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", OK(ETAG) BODY},
    };
    domus_testkit *kit = domt_served_start(NULL, &services[0], 1);
    domus_peer *peer = domt_served_peer(kit);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domt_served_send(peer, cases[i][0]);
        domt_served_send(peer, "Host: a\r\n\r\n");
        domt_served_expect(kit, peer, cases[i][1]);
    }
    domus_peer_close(peer);
    domt_served_end(kit);
}

/* Ask for /large; returns the head of the answer, valid until the next call. */
static const char *head_of(domus_testkit *kit, const char *fields)
{
    static char head[1024];
    domus_peer *peer = domt_served_peer(kit);
    char text[512];
    size_t size;

    snprintf(text, sizeof text, "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n",
             fields);
    domt_served_send(peer, text);
    domt_served_pass(kit, DOMT_SERVED_S);
    const char *got = domus_peer_got(peer, &size);
    const char *end = memmem(got, size, "\r\n\r\n", 4);
    ck_assert_ptr_nonnull(end);
    snprintf(head, sizeof head, "%.*s", (int)(end + 2 - got), got);
    domus_peer_close(peer);
    return head;
}

DOMT_TEST(compressed_answers_have_weak_tags)
{
    domus_testkit *kit = domt_served_start(NULL, &services[1], 1);
    char tag[DOMUS_HTTP_TAG_SIZE + 1], strong[64], weak[64], fields[256];
    static char large[1999];

    memset(large, 'a', sizeof large);
    domus_http_tag(large, sizeof large, tag);
    ck_assert_uint_eq(strlen(tag), DOMUS_HTTP_TAG_SIZE);
    snprintf(strong, sizeof strong, "\r\nETag: %s\r\n", tag);
    snprintf(weak, sizeof weak, "\r\nETag: W/%s\r\n", tag);
    ck_assert_ptr_nonnull(strstr(head_of(kit, ""), strong));
    ck_assert_ptr_nonnull(strstr(head_of(kit, "Accept-Encoding: gzip\r\n"), weak));
    for (int accepts = 0; accepts < 2; accepts++) {
        for (int is_weak = 0; is_weak < 2; is_weak++) {
            snprintf(fields, sizeof fields, "%sIf-None-Match: %s%s\r\n",
                     accepts ? "Accept-Encoding: gzip\r\n" : "", is_weak ? "W/" : "", tag);
            const char *head = head_of(kit, fields);
            ck_assert_ptr_nonnull(strstr(head, "304 Not Modified"));
            ck_assert_ptr_nonnull(strstr(head, "Vary: Accept-Encoding\r\n"));
            ck_assert_ptr_nonnull(strstr(head, accepts && is_weak ? weak : strong));
        }
    }
    domt_served_end(kit);
    domus_http_gzip_trim(&gzip);
}

DOMT_TEST(tags_are_those_of_their_bytes)
{
    char one[DOMUS_HTTP_TAG_SIZE + 1], two[DOMUS_HTTP_TAG_SIZE + 1];

    domus_http_tag(BODY, sizeof BODY - 1, one);
    ck_assert_str_eq(one, TAG);
    domus_http_tag("", 0, one);
    domus_http_tag("a", 1, two);
    ck_assert_str_ne(one, two);
}

DOMT_SUITE(30)
