/* Requests and answers are read in the same way in pieces of any size; and extensions of chunks are
 * skipped or refused (RFC 9112 7.1.1). */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const domus_http_options streams = {.streams = true};
static const domus_http_options mixed = {.streams = true, .whole_max = 5};
static const domus_http_options client = {.role = DOMUS_ROLE_CLIENT};
static const domus_http_options client_streams = {.role = DOMUS_ROLE_CLIENT, .streams = true};

#define GET    "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST   "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS POST "Transfer-Encoding: chunked\r\n\r\n"
/* as many empty lines as are skipped before a request */
#define EMPTY_LINES "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
#define HOLDS(options, asks, bytes, expected)                                                      \
    domt_http_expect_trace(options, asks, bytes, sizeof(bytes) - 1, expected)

DOMT_TEST(requests_are_decoded)
{
    HOLDS(NULL, "", GET "\r\n", "GET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", GET "\r\n\r\n" GET "\r\nHEAD /b?c=%20 HTTP/1.1\r\nhost: [::1]:8080\r\n\r\n",
          "GET / 1.1 (Host: a)\nGET / 1.1 (Host: a)\nHEAD /b?c=%20 1.1 (host: [::1]:8080)\n");
    HOLDS(NULL, "", "\r\n" GET "\r\n", "GET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", "DELETE /a/../b//c;d=e|{}[]^\"<>\\~!$&'()*+,@ HTTP/1.1\r\nHost: a\r\n\r\n",
          "DELETE /a/../b//c;d=e|{}[]^\"<>\\~!$&'()*+,@ 1.1 (Host: a)\n");
    HOLDS(NULL, "", "PROPPATCH / HTTP/1.1\r\nHost: a-b.c_d.example:65535\r\n\r\n",
          "PROPPATCH / 1.1 (Host: a-b.c_d.example:65535)\n");
}

DOMT_TEST(host_may_be_each_address_of_ipv6)
{
    HOLDS(NULL, "", "GET / HTTP/1.1\r\nHost: [::]\r\n\r\n", "GET / 1.1 (Host: [::])\n");
    HOLDS(NULL, "", "GET / HTTP/1.1\r\nHost: [::]:80\r\n\r\n", "GET / 1.1 (Host: [::]:80)\n");
    HOLDS(NULL, "", "GET / HTTP/1.1\r\nHost: [::FFFF:1.2.3.4]\r\n\r\n",
          "GET / 1.1 (Host: [::FFFF:1.2.3.4])\n");
    HOLDS(NULL, "", "GET http://[1::]/ HTTP/1.1\r\nHost: [1::]\r\n\r\n",
          "GET http://[1::]/ 1.1 (Host: [1::])\n");
}

DOMT_TEST(empty_lines_before_a_request_are_passed_over)
{
    HOLDS(NULL, "", EMPTY_LINES GET "\r\n", "GET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", EMPTY_LINES GET "\r\n" EMPTY_LINES GET "\r\n",
          "GET / 1.1 (Host: a)\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", POST "Content-Length: 2\r\n\r\nhi" EMPTY_LINES GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 2) [hi]\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", CHUNKS "2\r\nhi\r\n0\r\n\r\n" EMPTY_LINES GET "\r\n",
          "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [hi]\nGET / 1.1 (Host: a)\n");
    HOLDS(&streams, "", POST "Content-Length: 2\r\n\r\nhi" EMPTY_LINES GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 2) 2 in pieces: [hi]\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", POST "Content-Length: 2\r\n\r\nhi" EMPTY_LINES "\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 2) [hi]\nEPROTO 400");
    HOLDS(NULL, "", EMPTY_LINES, "");
}

DOMT_TEST(targets_have_three_forms)
{
    HOLDS(NULL, "", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * 1.1 (Host: a)\n");
    HOLDS(NULL, "", "OPTIONS /* HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS /* 1.1 (Host: a)\n");
    HOLDS(NULL, "", "GET http://A.b:80/c?d HTTP/1.1\r\nHost: a.B:80\r\n\r\n",
          "GET http://A.b:80/c?d 1.1 (Host: a.B:80)\n");
    HOLDS(NULL, "", "GET HTTPS://a HTTP/1.1\r\nHost: a\r\n\r\n", "GET HTTPS://a 1.1 (Host: a)\n");
    HOLDS(NULL, "", "GET http://a?b HTTP/1.0\r\n\r\n", "GET http://a?b 1.0 close ()\n");
}

/* A path has one normal form, whichever of its bytes are escaped. A slash, a byte 0 and a '%' stay
 * escaped, so escapes hide nothing, and no escape is decoded twice. */
DOMT_TEST(paths_are_normalized_once)
{
    static const char *const rows[][2] = {
        {"/%6ason", "/json"},
        {"/%6Ason", "/json"},
        {"/%41%5a%61%7A%30%39%2d%2E%5f%7E", "/AZaz09-._~"},
        {"/a%2fb%2F%00%0a%20%25%3f%23%5c%3b%c3%a4", "/a%2Fb%2F%00%0A%20%25%3F%23%5C%3B%C3%A4"},
        {"/%2541", "/%2541"},
        {"/%25%34%31", "/%2541"},
        {"/%%341", "/%%341"},
        {"/%4%31", "/%4%31"},
        {"/%0%31", "/%0%31"},
        {"/%%34%31", "/%%341"},
        {"/%4%2f%61", "/%4%2Fa"},
        {"/%zz%61", "/%zza"},
        {"/%z%61", "/%za"},
        {"/%a%2e%2E/%/%2e", "/%a../%/."},
        {"/%4%2d%31", "/%4-1"},
        {"/%", "/%"},
        {"/%6", "/%6"},
        {"/%6?a", "/%6?a"},
        {"/%6%61", "/%6%61"},
        {"/%2e%2E/%2e/a", "/.././a"},
        {"/%61?%61=%2f%zz", "/a?%61=%2f%zz"},
        {"/?%61", "/?%61"},
        {"http://a/%61%2f?%61", "http://a/a%2F?%61"},
        {"http://a?%61", "http://a?%61"},
    };
    char bytes[256];
    char expected[256];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int size = snprintf(bytes, sizeof bytes, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", rows[i][0]);
        (void)snprintf(expected, sizeof expected, "GET %s 1.1 (Host: a)\n", rows[i][1]);
        domt_http_expect_trace(NULL, "", bytes, (size_t)size, expected);
        size = snprintf(bytes, sizeof bytes,
                        "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "1\r\nb\r\n0\r\n\r\n",
                        rows[i][0]);
        (void)snprintf(expected, sizeof expected,
                       "POST %s 1.1 (Host: a|Transfer-Encoding: chunked) [b]\n", rows[i][1]);
        domt_http_expect_trace(NULL, "", bytes, (size_t)size, expected);
        size = snprintf(bytes, sizeof bytes,
                        "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb", rows[i][0]);
        (void)snprintf(expected, sizeof expected, "POST %s 1.1 (Host: a|Content-Length: 1) [b]\n",
                       rows[i][1]);
        domt_http_expect_trace(NULL, "", bytes, (size_t)size, expected);
    }
}

DOMT_TEST(fields_are_as_they_were_sent)
{
    HOLDS(NULL, "",
          GET "A:b\r\nC:  d e\t \r\nF:\r\nG: \t \r\nX-!#$%&'*+.^_`|~09: \xc3\xa4\"\\\r\n\r\n",
          "GET / 1.1 (Host: a|A: b|C: d e|F: |G: |X-!#$%&'*+.^_`|~09: \\xc3\\xa4\"\\)\n");
    HOLDS(NULL, "", GET "A: 1\r\na: 2\r\nAccept: a,\tb\r\n\r\n",
          "GET / 1.1 (Host: a|A: 1|a: 2|Accept: a,\\x09b)\n");
    HOLDS(NULL, "", "GET / HTTP/1.1\r\nHost:   a   \r\n\r\n", "GET / 1.1 (Host: a)\n");
}

DOMT_TEST(connection_is_kept_as_the_peer_says)
{
    HOLDS(NULL, "", GET "Connection: close\r\n\r\n",
          "GET / 1.1 close (Host: a|Connection: close)\n");
    HOLDS(NULL, "", GET "Connection: a, ,CLOSE,b\r\n\r\n",
          "GET / 1.1 close (Host: a|Connection: a, ,CLOSE,b)\n");
    HOLDS(NULL, "", GET "Connection: keep-alive\r\nConnection: close\r\n\r\n",
          "GET / 1.1 close (Host: a|Connection: keep-alive|Connection: close)\n");
    HOLDS(NULL, "", GET "Connection: closed\r\n\r\n", "GET / 1.1 (Host: a|Connection: closed)\n");
    HOLDS(NULL, "", "GET / HTTP/1.0\r\n\r\n", "GET / 1.0 close ()\n");
    HOLDS(NULL, "", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
          "GET / 1.0 (Connection: Keep-Alive)\n");
    HOLDS(NULL, "", "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
          "GET / 1.0 close (Connection: keep-alive, close)\n");
    HOLDS(NULL, "", GET "Connection: Upgrade\r\nUpgrade: b\r\n\r\n",
          "GET / 1.1 upgrade (Host: a|Connection: Upgrade|Upgrade: b)\n");
    HOLDS(NULL, "", GET "Upgrade: b\r\n\r\n", "GET / 1.1 (Host: a|Upgrade: b)\n");
    HOLDS(NULL, "", GET "Connection: Upgrade\r\n\r\n", "GET / 1.1 (Host: a|Connection: Upgrade)\n");
    HOLDS(NULL, "", "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: b\r\n\r\n",
          "GET / 1.0 close (Connection: Upgrade|Upgrade: b)\n");
}

DOMT_TEST(bodies_come_whole)
{
    HOLDS(NULL, "", POST "Content-Length: 5\r\n\r\nhello" GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 5) [hello]\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", POST "Content-Length: 0\r\n\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 0)\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", CHUNKS "5\r\nhello\r\n0\r\n\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [hello]\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", CHUNKS "0\r\n\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Transfer-Encoding: chunked)\nGET / 1.1 (Host: a)\n");
    HOLDS(
        NULL, "",
        CHUNKS "3;a\r\nabc\r\n0A;b=c\r\n0123456789\r\n1;d=\"e f\"\r\nx\r\n000\r\nT: u\r\n\r\n" GET
               "\r\n",
        "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [abc0123456789x]\nGET / 1.1 (Host: a)\n");
    HOLDS(NULL, "", POST "Transfer-Encoding: CHUNKED  \r\n\r\n1;a=b;c\r\nx\r\n0\r\n\r\n",
          "POST / 1.1 (Host: a|Transfer-Encoding: CHUNKED) [x]\n");
    HOLDS(NULL, "", POST "Content-Length: 5\r\n\r\nhell", "EPIPE ");
    HOLDS(NULL, "", CHUNKS "5\r\nhello\r\n0\r\n", "EPIPE ");
}

DOMT_TEST(bodies_come_in_pieces)
{
    HOLDS(&streams, "", POST "Content-Length: 5\r\n\r\nhello" GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 5) 5 in pieces: [hello]\nGET / 1.1 (Host: a)\n");
    HOLDS(&streams, "", POST "Content-Length: 0\r\n\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Content-Length: 0)\nGET / 1.1 (Host: a)\n");
    HOLDS(&streams, "", CHUNKS "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Transfer-Encoding: chunked) 0 in pieces: [hello world]\n"
          "GET / 1.1 (Host: a)\n");
    HOLDS(&streams, "", CHUNKS "5\r\nhello\r\n0\r\nA: b\r\nC:d\r\n\r\n" GET "\r\n",
          "POST / 1.1 (Host: a|Transfer-Encoding: chunked) 0 in pieces: [hello] (A: b|C: d)\n"
          "GET / 1.1 (Host: a)\n");
    HOLDS(&mixed, "", POST "Content-Length: 5\r\n\r\nhello" POST "Content-Length: 6\r\n\r\n world",
          "POST / 1.1 (Host: a|Content-Length: 5) [hello]\n"
          "POST / 1.1 (Host: a|Content-Length: 6) 6 in pieces: [ world]\n");
}

/* Sizes at which the stage begins to handle bodies differently: a body larger than a quarter of the
 * window is collected, and one larger than the window does not fit into it. */
DOMT_TEST(long_bodies_come_whole)
{
    static const size_t sizes[] = {100, 16000, 16384, 65536, 200000, 1048576};
    static char bytes[1100000];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i];
        size_t head =
            (size_t)snprintf(bytes, sizeof bytes, POST "Content-Length: %zu\r\n\r\n", size);
        for (size_t k = 0; k < size; k++)
            bytes[head + k] = (char)('a' + k % 26);
        const char *text = domt_http_trace_of_bytes(NULL, "", bytes, head + size, 0, 0);
        char expected[64];
        (void)snprintf(expected, sizeof expected, "[%zu bytes, ", size);
        ck_assert_ptr_nonnull(strstr(text, expected));
        for (size_t cut = head - 1; cut < head + size; cut = cut * 3 + 1)
            ck_assert_str_eq(domt_http_trace_of_bytes(NULL, "", bytes, head + size, cut, 0), text);
        ck_assert_str_eq(domt_http_trace_of_bytes(NULL, "", bytes, head + size, 0, 5000), text);
        /* the same body again, in chunks */
        head = (size_t)snprintf(bytes, sizeof bytes, CHUNKS "%zx\r\n", size);
        for (size_t k = 0; k < size; k++)
            bytes[head + k] = (char)('a' + k % 26);
        memcpy(bytes + head + size, "\r\n0\r\n\r\n", 7);
        const char *in_chunks = domt_http_trace_of_bytes(NULL, "", bytes, head + size + 7, 0, 777);
        ck_assert_str_eq(strstr(in_chunks, " ["), strstr(text, " ["));
    }
}

DOMT_TEST(parts_of_a_target_are_told_apart)
{
    static const struct {
        const char *target;
        const char *fields;
        const char *host;
        const char *path;
        const char *query;
    } rows[] = {
        {"/a/b?c=d", "Host: e\r\n", "e", "/a/b", "c=d"},
        {"/a/b", "X: y\r\nHOST:\te:80 \r\n", "e:80", "/a/b", ""},
        {"/?", "Host: e\r\n", "e", "/", ""},
        {"/a?b?c", "", "", "/a", "b?c"},
        {"*", "Host: e\r\n", "e", "*", ""},
        {"http://f:1/a?b", "Host: f:1\r\n", "f:1", "/a", "b"},
        {"http://f", "", "f", "", ""},
        {"https://f?b/c", "", "f", "", "b/c"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_http_request request = {.target = domt_slice_of_text(rows[i].target),
                                      .fields = domt_slice_of_text(rows[i].fields)};
        domus_slice host = domus_http_host(&request);
        domus_slice path = domus_http_path(&request);
        domus_slice query = domus_http_query(&request);
        ck_assert(domus_slice_equals(host, rows[i].host, strlen(rows[i].host)));
        ck_assert(domus_slice_equals(path, rows[i].path, strlen(rows[i].path)));
        ck_assert(domus_slice_equals(query, rows[i].query, strlen(rows[i].query)));
        domus_http_request_type.release(&request);
    }
}

DOMT_TEST(responses_are_decoded)
{
    HOLDS(&client, "GG",
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 404 \r\nContent-Length: "
          "0\r\n\r\n",
          "200 1.1 (Content-Length: 5) [hello]\n404 1.1 (Content-Length: 0)\n");
    HOLDS(&client, "G", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
          "200 1.1 (Content-Length: 0)\n");
    HOLDS(&client, "G",
          "HTTP/1.1 599 \tO\xc3\xa4 K\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nB: "
          "c\r\n\r\n",
          "599 1.1 (Transfer-Encoding: chunked) [a]\n");
    HOLDS(&client, "G", "HTTP/1.1 200 OK\r\n\r\nhello", "200 1.1 close () [hello]\n");
    HOLDS(&client, "G", "HTTP/1.1 200 OK\r\n\r\n", "200 1.1 close ()\n");
    HOLDS(&client, "G", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
          "200 1.0 close (Content-Length: 1) [a]\n");
    HOLDS(&client, "GG",
          "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na"
          "HTTP/1.1 204 x\r\nConnection: close\r\n\r\n",
          "200 1.0 (Connection: keep-alive|Content-Length: 1) [a]\n204 1.1 close (Connection: "
          "close)\n");
}

DOMT_TEST(end_of_a_response_depends_on_the_method_of_its_request)
{
    HOLDS(&client, "HGHG",
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
          "HTTP/1.1 304 x\r\nContent-Length: 7\r\n\r\n"
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          "HTTP/1.1 204 x\r\n\r\n",
          "200 1.1 (Content-Length: 5)\n304 1.1 (Content-Length: 7)\n"
          "200 1.1 (Transfer-Encoding: chunked)\n204 1.1 ()\n");
    HOLDS(&client, "HG", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
          "200 1.1 ()\n200 1.1 (Content-Length: 1) [a]\n");
    HOLDS(&client, "G",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nLink: a\r\n\r\n"
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
          "200 1.1 (Content-Length: 1) [a]\n");
    HOLDS(&client, "UG", "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n",
          "101 1.1 (Connection: upgrade|Upgrade: b)\n");
    HOLDS(&client, "G", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "EPIPE");
    HOLDS(&client, "G", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
          "EPIPE");
    HOLDS(&client, "G", "HTTP/1.1 200 OK\r\nContent-", "EPIPE");
}

DOMT_TEST(bodies_of_responses_come_in_pieces)
{
    HOLDS(&client_streams, "GG",
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\nC: "
          "d\r\n\r\n",
          "200 1.1 (Content-Length: 5) 5 in pieces: [hello]\n"
          "200 1.1 (Transfer-Encoding: chunked) 0 in pieces: [ab] (C: d)\n");
    HOLDS(&client_streams, "G", "HTTP/1.1 200 OK\r\n\r\nhello",
          "200 1.1 close () 0 in pieces: [hello]\n");
    HOLDS(&client_streams, "G", "HTTP/1.1 200 OK\r\n\r\n", "200 1.1 close () 0 in pieces: []\n");
}

static const domus_http_options client_of_chunks = {.role = DOMUS_ROLE_CLIENT};
static const domus_http_options streams_of_chunks = {.streams = true};

#define GET_A     "GET / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS_OF "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

/* In extensions of chunks, a quote or a semicolon within quotes, or after a backslash, ends
 * nothing. */
DOMT_TEST(extensions_of_chunks_are_passed_over)
{
    static const char *const lines[] = {
        "5 ;a",        "5 ; a = b ; c",        "5;\ta",        "5;a=\"b\\\"c\"",
        "5;a =b",      "5;a=\"\\\\\";b",       "5;a=\tb",      "5;a=\";b=\\\"\"",
        "5;a=\"\"",    "5;a=\"\\\\\\\"\"",     "5 \t; \ta",    "005 ; a = \"=;\"",
        "5;a=b;c=d;e", "5;a=\"b\" ;c = \"d\"", "5;a=\"\\\\\"", "5;a=\"\t\xc3\xa4\\\t\""};
    char bytes[256];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int size =
            snprintf(bytes, sizeof bytes, CHUNKS_OF "%s\r\nhello\r\n0%s\r\n\r\n" GET_A "\r\n",
                     lines[i], strchr(lines[i], '5') + 1);
        domt_http_expect_trace(NULL, "", bytes, (size_t)size,
                               "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [hello]\n"
                               "GET / 1.1 (Host: a)\n");
        size = snprintf(bytes, sizeof bytes,
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\nhello\r\n"
                        "0\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
                        lines[i]);
        domt_http_expect_trace(&client_of_chunks, "GG", bytes, (size_t)size,
                               "200 1.1 (Transfer-Encoding: chunked) [hello]\n204 1.1 ()\n");
    }
}

#define ROW(bytes, status)                                                                         \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, "EPROTO " #status                                                \
    }

DOMT_TEST(wrong_extensions_of_chunks_are_refused)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *expected;
    } rows[] = {
        ROW(CHUNKS_OF "5;\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5; \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5 a\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;=b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=b c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\\\r\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\\\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\\\"\\\r\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\\\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\\\0\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"\\\x7f\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"b\r\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"b\" \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"b\"\"c\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=\"b\" c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=b\"c\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=b=c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a= \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=;b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;;a\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5 =a\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a=b =c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS_OF "5;a\0b\r\nhello\r\n0\r\n\r\n", 400),
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domt_http_expect_trace(NULL, "", rows[i].bytes, rows[i].size, rows[i].expected);
        const char *text =
            domt_http_trace_of_bytes(&streams_of_chunks, "", rows[i].bytes, rows[i].size, 0, 1);
        /* the bytes are refused also when they come one by one */
        const char *error = strstr(text, "[EPROTO 400");
        ck_assert_msg(error != NULL, "%s", text);
    }
}

DOMT_SUITE(60)
