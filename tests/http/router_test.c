/* Routes are found by method and path, and what has none gets 404, 405 or the answer to OPTIONS. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_router.h>

#include <stdio.h>
#include <string.h>

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", 1},
    {DOMUS_HTTP_ON(GET), "/kv/list", 2},
    {DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(PUT), "/kv/{key}", 3},
    {DOMUS_HTTP_ON(DELETE), "/kv/{key}", 4},
    {DOMUS_HTTP_ON(GET), "/kv/{key}/of/{other}", 5},
    {DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(HEAD), "/files/{path*}", 6},
    {DOMUS_HTTP_ON(POST), "/post", 7},
    {DOMUS_HTTP_ON(OPTIONS) | DOMUS_HTTP_ON(HEAD), "/own", 8},
    {DOMUS_HTTP_ON(GET), "/own", 9},
    {DOMUS_HTTP_ON(GET), "/folder/", 10},
    {0, NULL, 0},
};

/* Find a route, and print it: "3 key=a", or the status and Allow. */
static const char *find(domus_http_method method, const char *target)
{
    static char text[256];
    domus_http_request request = {.method = (uint8_t)method, .target = domt_http_slice(target)};
    domus_http_match match = domus_http_find_route(routes, &request);
    size_t size;

    if (match.route == NULL) {
        domus_http_response response;
        domus_slice allow = {NULL, 0, 0};
        ck_assert_int_eq(domus_http_unrouted(&match, &response), 0);
        (void)domus_http_field(response.fields, "allow", &allow);
        (void)snprintf(text, sizeof text, "%u %.*s", response.status, (int)allow.size,
                       domus_slice_data(allow));
        domus_http_response_type.release(&response);
    } else {
        static const char *const names[] = {"key", "other", "path"};
        size = (size_t)snprintf(text, sizeof text, "%u", match.route->id);
        for (int i = 0; i < 3; i++) {
            domus_slice value = domus_http_route_value(&match, names[i]);
            if (value.size != 0)
                size += (size_t)snprintf(text + size, sizeof text - size, " %s=%.*s", names[i],
                                         (int)value.size, domus_slice_data(value));
        }
        ck_assert_uint_eq(domus_http_route_value(&match, "ke").size, 0);
    }
    domus_http_request_type.release(&request);
    return text;
}

DOMT_TEST(routes_are_found)
{
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/"), "1");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/?a/b"), "1");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "http://a"), "1");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/kv/list"), "2");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/kv/a%2Fb"), "3 key=a%2Fb");
    ck_assert_str_eq(find(DOMUS_HTTP_PUT, "/kv/list"), "3 key=list");
    ck_assert_str_eq(find(DOMUS_HTTP_DELETE, "/kv/a?b"), "4 key=a");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "http://a/kv/a/of/b"), "5 key=a other=b");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/files/a/b/"), "6 path=a/b/");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/files/"), "6");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/folder/"), "10");
}

/* A received path is in its normal form, so a route and a filter of the program see one text. */
DOMT_TEST(a_received_path_has_one_spelling)
{
    static const char *const rows[][2] = {
        {"/%6Bv/%6cist", "2 /kv/list"},         {"/kv/%7ea%2f", "3 /kv/~a%2F"},
        {"/%66iles/%2e%2e/a", "6 /files/../a"}, {"/kv%2flist", "0 /kv%2Flist"},
        {"/%256Bv/list", "0 /%256Bv/list"},     {"http://a/%70ost?%61", "0 /post"},
    };
    char text[128];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domt_codec http;
        domus_stage_message message;
        domt_http_start(&http, NULL);
        (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", rows[i][0]);
        ck_assert_int_eq(domus_stage_kit_feed(http.kit, text, strlen(text)), 0);
        ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
        domus_http_match match = domus_http_find_route(routes, message.payload);
        domus_slice path = domus_http_path(message.payload);
        (void)snprintf(text, sizeof text, "%u %.*s", match.route != NULL ? match.route->id : 0,
                       (int)path.size, domus_slice_data(path));
        ck_assert_str_eq(text, rows[i][1]);
        domt_codec_stop(&http);
    }
}

DOMT_TEST(other_paths_are_404)
{
    static const char *const targets[] = {"/a",     "//",     "/kv",     "/kv/",      "/kv/a/",
                                          "/KV/a",  "/files", "/folder", "/kv//of/b", "/kv/a/of",
                                          "/post/", "/%2f",   "*"};

    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        ck_assert_str_eq(find(DOMUS_HTTP_GET, targets[i]), "404 ");
    ck_assert_str_eq(find(DOMUS_HTTP_OPTIONS, "/a"), "404 ");
}

DOMT_TEST(other_methods_are_405_with_those_that_are_allowed)
{
    ck_assert_str_eq(find(DOMUS_HTTP_POST, "/"), "405 GET, HEAD, OPTIONS");
    ck_assert_str_eq(find(DOMUS_HTTP_POST, "/kv/a"), "405 GET, HEAD, PUT, DELETE, OPTIONS");
    ck_assert_str_eq(find(DOMUS_HTTP_GET, "/post"), "405 POST, OPTIONS");
    ck_assert_str_eq(find(DOMUS_HTTP_HEAD, "/post"), "405 POST, OPTIONS");
}

DOMT_TEST(head_and_options_need_no_row)
{
    ck_assert_str_eq(find(DOMUS_HTTP_HEAD, "/kv/a"), "3 key=a");
    ck_assert_str_eq(find(DOMUS_HTTP_HEAD, "/files/a"), "6 path=a");
    ck_assert_str_eq(find(DOMUS_HTTP_HEAD, "/own"), "8");
    ck_assert_str_eq(find(DOMUS_HTTP_OPTIONS, "/own"), "8");
    ck_assert_str_eq(find(DOMUS_HTTP_OPTIONS, "/"), "204 GET, HEAD, OPTIONS");
    ck_assert_str_eq(find(DOMUS_HTTP_OPTIONS, "*"), "204 OPTIONS");
}

DOMT_TEST(routes_have_few_values)
{
    static const domus_http_route many[] = {
        {DOMUS_HTTP_ON(GET), "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", 1},
        {DOMUS_HTTP_ON(GET), "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", 2},
        {0, NULL, 0},
    };
    domus_http_request request = {.target = domt_http_slice("/1/2/3/4/5/6/7/8")};

    domus_http_match match = domus_http_find_route(many, &request);
    ck_assert_ptr_eq(match.route, &many[0]);
    ck_assert(domus_slice_equals(domus_http_route_value(&match, "h"), "8", 1));
    domus_slice_free(request.target);
    request.target = domt_http_slice("/1/2/3/4/5/6/7/8/9");
    ck_assert_ptr_null(domus_http_find_route(many, &request).route);
    domus_slice_free(request.target);
}

DOMT_SUITE(10)
