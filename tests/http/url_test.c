/* Addresses of HTTP: which texts are URLs, and how they are split into parts; chars.h, which
 * handles many bytes at once as it handles each single byte; and routes, which are found by method
 * and path: a path without a route gets 404, 405 or the answer to OPTIONS. */
#include "protocols/http/chars.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_router.h>
#include <domus/http_url.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check that an address has these parts, as in the text "https host 443 target". */
static void check_parts_of_url(const char *text, const char *expected)
{
    domus_http_url url;
    char seen[256];

    ck_assert_msg(domus_http_url_parse(text, strlen(text), &url) == 0, "%s", text);
    (void)snprintf(seen, sizeof seen, "%s %.*s %u %.*s", url.secure ? "https" : "http",
                   (int)url.host_size, url.host, url.port, (int)url.target_size, url.target);
    ck_assert_str_eq(seen, expected);
}

DOMT_TEST(urls_are_split_into_their_parts)
{
    check_parts_of_url("http://a", "http a 80 ");
    check_parts_of_url("http://a/", "http a 80 /");
    check_parts_of_url("HtTpS://Ab-c_d.e.:444?q#f", "https Ab-c_d.e. 444 ?q");
    check_parts_of_url("http://127.0.0.1:65535/a?b/c?d#e?f/", "http 127.0.0.1 65535 /a?b/c?d");
    check_parts_of_url("https://[::1]/x", "https [::1] 443 /x");
    check_parts_of_url("http://[2001:db8::127.0.0.1]:1", "http [2001:db8::127.0.0.1] 1 ");
    check_parts_of_url("http://1.example:8080/%00@:[]//..", "http 1.example 8080 /%00@:[]//..");
    check_parts_of_url("http://a#/b", "http a 80 ");
}

static const char *const no_addresses[] = {
    "http:",         "http://a/\n",     "http://a:+80/",   "http://\xc3\xa4/",
    "http:/a",       "http://a\n/",     "http://a:8 0/",   "http://1.2.3.4./",
    "http://",       "http://a/\t",     "http://a:80b/",   "http://01.2.3.4/",
    "http:///a",     "http://%61/",     "http://a/#b#c",   "http://a/\r\nX: y",
    "http://?a",     "http://::1/",     "http://a/\x7f",   "http://[1.2.3.4]/",
    "http://a:/",    "http://[:]/",     "http://a/\x80",   "http://1.2.3.4.5/",
    "http://.a/",    "http://a.1/",     "http://127.1/",   "http://1.2.3.256/",
    "http://[]/",    "http://a,b/",     "http://a:80@b/",  "http://2130706433/",
    " http://a/",    "http://a\\b/",    "http://[::1]a/",  "http://0x7f000001/",
    "http://a/ ",    "http://a/b c",    "http://[v1.a]/",  "http://[fe80::1%25eth0]/",
    "http://:80/",   "http://a/#\n",    "http://a.0x7F/",  "",
    "http://u@a/",   "http://[::1/",    "http://a:00080/", "a",
    "http://a:0/",   "http://u:p@a/",   "http://a:65536/", "/a",
    "http://a b/",   "http://a\\@b/",   "http://[::1]80/", "http://a/ b",
    "http://a:080/", "http://a:655350/"};

DOMT_TEST(texts_that_are_no_url_are_refused)
{
    domus_http_url url;

    for (size_t i = 0; i < sizeof no_addresses / sizeof no_addresses[0]; i++) {
        int error = domus_http_url_parse(no_addresses[i], strlen(no_addresses[i]), &url);
        ck_assert_msg(error == -EINVAL || (error == -EPROTONOSUPPORT && no_addresses[i][4] != ':'),
                      "\"%s\": %d", no_addresses[i], error);
    }
    ck_assert_int_eq(domus_http_url_parse("http://a/\0b", 11, &url), -EINVAL);
    ck_assert_int_eq(domus_http_url_parse("http://[::\0]/", 13, &url), -EINVAL);
    ck_assert_int_eq(domus_http_url_parse("ftp://a/", 8, &url), -EPROTONOSUPPORT);
    ck_assert_int_eq(domus_http_url_parse("javascript:a", 12, &url), -EPROTONOSUPPORT);
}

DOMT_TEST(lengths_of_urls_and_hosts_are_bounded)
{
    static char text[DOMUS_HTTP_URL_MAX + 2] = "http://";
    domus_http_url url;

    memset(text + 7, 'a', DOMUS_HTTP_HOST_MAX);
    ck_assert_int_eq(domus_http_url_parse(text, 7 + DOMUS_HTTP_HOST_MAX, &url), 0);
    text[7 + DOMUS_HTTP_HOST_MAX] = 'a';
    ck_assert_int_eq(domus_http_url_parse(text, 8 + DOMUS_HTTP_HOST_MAX, &url), -EMSGSIZE);
    memset(text + 7 + DOMUS_HTTP_HOST_MAX, '/', DOMUS_HTTP_URL_MAX - 7 - DOMUS_HTTP_HOST_MAX + 1);
    ck_assert_int_eq(domus_http_url_parse(text, DOMUS_HTTP_URL_MAX, &url), 0);
    ck_assert_int_eq(domus_http_url_parse(text, DOMUS_HTTP_URL_MAX + 1, &url), -EMSGSIZE);
}

static bool have_urls_same_origin(const char *one, const char *other)
{
    domus_http_url urls[2];

    ck_assert_int_eq(domus_http_url_parse(one, strlen(one), &urls[0]), 0);
    ck_assert_int_eq(domus_http_url_parse(other, strlen(other), &urls[1]), 0);
    return domus_http_url_same_origin(&urls[0], &urls[1]);
}

DOMT_TEST(origins_are_compared)
{
    ck_assert(have_urls_same_origin("http://A/b", "HTTP://a:80?c"));
    ck_assert(have_urls_same_origin("https://a:443", "https://a"));
    ck_assert(!have_urls_same_origin("http://a", "https://a"));
    ck_assert(!have_urls_same_origin("http://a:443", "https://a"));
    ck_assert(!have_urls_same_origin("http://a", "http://a:81"));
    ck_assert(!have_urls_same_origin("http://a", "http://b"));
    ck_assert(!have_urls_same_origin("http://a", "http://ab"));
}

static void check_resolved_reference(const char *base, const char *reference, const char *expected)
{
    domus_appender appender = {0};
    domus_slice made;
    int error = domus_http_url_resolve(base, strlen(base), reference, strlen(reference), &appender);

    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(domus_append_end(&appender, &made), 0);
    ck_assert_msg(domus_slice_equals(made, expected, strlen(expected)), "%s: %.*s, not %s",
                  reference, (int)made.size, domus_slice_data(made), expected);
    domus_slice_free(made);
}

DOMT_TEST(references_are_resolved_as_in_the_rfc)
{
    static const char *const rows[][2] = {
        /* The normal examples of RFC 3986, section 5.4.1, and further references. */
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        /* The abnormal examples of RFC 3986, section 5.4.2. */
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
        {"http:g", "http:g"},
        /* further references, which are not in RFC 3986 */
        {"?", "http://a/b/c/d;p?"},
        {"//g/../h?#", "http://g/h?#"},
        {"..//g", "http://a/b//g"},
        {"/..//g", "http://a//g"},
        {"g:/../h", "g:/h"},
        {"g:../h", "g:h"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_resolved_reference("http://a/b/c/d;p?q", rows[i][0], rows[i][1]);
    check_resolved_reference("http://a", "b", "http://a/b");
    check_resolved_reference("http://a?b", "c", "http://a/c");
    check_resolved_reference("http://a", "", "http://a");
    check_resolved_reference("mailto:a/b", "c", "mailto:a/c");
}

DOMT_TEST(wrong_references_are_refused)
{
    static const char *const texts[] = {" ",     "a b",      "\r\n", "a\r\nb: c", "\t",
                                        "a\x7f", "\xc3\xa4", ":a",   "1:a",       "a%:b"};
    static char large[DOMUS_HTTP_URL_MAX + 1];
    domus_appender appender = {.size_max = 12};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_int_eq(
            domus_http_url_resolve("http://a/", 9, texts[i], strlen(texts[i]), &appender), -EINVAL);
    ck_assert_int_eq(domus_http_url_resolve("http://a/", 9, "a\0b", 3, &appender), -EINVAL);
    ck_assert_int_eq(domus_http_url_resolve("/a", 2, "b", 1, &appender), -EINVAL);
    memset(large, 'a', sizeof large);
    ck_assert_int_eq(domus_http_url_resolve("http://a/", 9, large, sizeof large, &appender),
                     -EMSGSIZE);
    ck_assert_int_eq(appender.error, 0);
    ck_assert_int_eq(domus_http_url_resolve("http://a/", 9, "abcd", 4, &appender), -EMSGSIZE);
}

#define SIZE_MAX_BYTES 40u

static bool is_byte_of_text(unsigned char byte)
{
    return byte >= 32 && byte != 127;
}

static size_t length_of_text_run(const char *bytes, size_t size)
{
    size_t i = 0;

    while (i < size && is_byte_of_text((unsigned char)bytes[i]))
        i++;
    return i;
}

/* Check all functions of chars.h with bytes that have `byte` at the place `at`, in a block of
 * exactly their size. */
static void check_functions_of_chars(char *bytes, size_t size, size_t at, unsigned byte)
{
    memset(bytes, 'a', size);
    bytes[at] = (char)byte;
    ck_assert_uint_eq(domi_http_count_text_bytes(bytes, size), length_of_text_run(bytes, size));
    ck_assert_uint_eq(domi_http_count_target_bytes(bytes, size),
                      domi_http_count_bytes_of_classes(bytes, size, DOMI_HTTP_TARGET));
    ck_assert_uint_eq(domi_http_count_token_bytes(bytes, size),
                      domi_http_count_bytes_of_classes(bytes, size, DOMI_HTTP_TOKEN));
}

DOMT_TEST(blocks_of_bytes_are_classified_as_single_bytes_are)
{
    for (size_t size = 1; size <= SIZE_MAX_BYTES; size++) {
        /* a block of exactly this size, so that a sanitizer sees a read beyond it */
        char *bytes = malloc(size);
        ck_assert_ptr_nonnull(bytes);
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++)
                check_functions_of_chars(bytes, size, at, byte);
        }
        free(bytes);
    }
    ck_assert_uint_eq(domi_http_count_text_bytes("", 0), 0);
    ck_assert_uint_eq(domi_http_count_target_bytes("", 0), 0);
}

/* The first of several matching bytes is found, also where blocks of 16 and of 8 bytes
 * overlap. */
DOMT_TEST(the_first_of_several_matching_bytes_is_found)
{
    char bytes[SIZE_MAX_BYTES];

    for (size_t size = 2; size <= sizeof bytes; size++) {
        for (size_t at = 0; at + 1 < size; at++) {
            memset(bytes, 'a', sizeof bytes);
            bytes[at] = bytes[size - 1] = '\n';
            ck_assert_uint_eq(domi_http_count_text_bytes(bytes, size), at);
            ck_assert_uint_eq(domi_http_count_target_bytes(bytes, size), at);
        }
    }
}

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

/* Find the route of a request. Returns its number and keys as text, "3 key=a", or the status and
 * Allow. */
static const char *route_of_request_as_text(domus_http_method method, const char *target)
{
    static char text[256];
    domus_http_request request = {.method = (uint8_t)method, .target = domt_slice_of_text(target)};
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
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/"), "1");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/?a/b"), "1");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "http://a"), "1");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/kv/list"), "2");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/kv/a%2Fb"), "3 key=a%2Fb");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_PUT, "/kv/list"), "3 key=list");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_DELETE, "/kv/a?b"), "4 key=a");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "http://a/kv/a/of/b"),
                     "5 key=a other=b");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/files/a/b/"), "6 path=a/b/");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/files/"), "6");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/folder/"), "10");
}

/* The path of a request is in its normal form, so a route and a filter of the program see the same
 * text. */
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
        domt_http_start_codec(&http, NULL);
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

DOMT_TEST(paths_without_a_route_are_404)
{
    static const char *const targets[] = {"/a",     "//",     "/kv",     "/kv/",      "/kv/a/",
                                          "/KV/a",  "/files", "/folder", "/kv//of/b", "/kv/a/of",
                                          "/post/", "/%2f",   "*"};

    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, targets[i]), "404 ");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_OPTIONS, "/a"), "404 ");
}

DOMT_TEST(methods_without_a_row_are_405_with_the_allowed_ones)
{
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_POST, "/"), "405 GET, HEAD, OPTIONS");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_POST, "/kv/a"),
                     "405 GET, HEAD, PUT, DELETE, OPTIONS");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_GET, "/post"), "405 POST, OPTIONS");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_HEAD, "/post"), "405 POST, OPTIONS");
}

DOMT_TEST(head_and_options_need_no_row)
{
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_HEAD, "/kv/a"), "3 key=a");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_HEAD, "/files/a"), "6 path=a");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_HEAD, "/own"), "8");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_OPTIONS, "/own"), "8");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_OPTIONS, "/"), "204 GET, HEAD, OPTIONS");
    ck_assert_str_eq(route_of_request_as_text(DOMUS_HTTP_OPTIONS, "*"), "204 OPTIONS");
}

DOMT_TEST(routes_have_few_values)
{
    static const domus_http_route many[] = {
        {DOMUS_HTTP_ON(GET), "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", 1},
        {DOMUS_HTTP_ON(GET), "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", 2},
        {0, NULL, 0},
    };
    domus_http_request request = {.target = domt_slice_of_text("/1/2/3/4/5/6/7/8")};

    domus_http_match match = domus_http_find_route(many, &request);
    ck_assert_ptr_eq(match.route, &many[0]);
    ck_assert(domus_slice_equals(domus_http_route_value(&match, "h"), "8", 1));
    domus_slice_free(request.target);
    request.target = domt_slice_of_text("/1/2/3/4/5/6/7/8/9");
    ck_assert_ptr_null(domus_http_find_route(many, &request).route);
    domus_slice_free(request.target);
}

DOMT_SUITE(20)
