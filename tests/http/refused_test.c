/* Request smuggling is impossible: bytes that two servers could read differently are refused, with
 * the same status in pieces of any size. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static const domus_http_options small = {.target_max = 16,
                                         .head_max = 200,
                                         .fields_max = 4,
                                         .body_max = 100,
                                         .extension_max = 8,
                                         .trailer_max = 40};
static const domus_http_options streams = {.streams = true, .body_max = 100, .extension_max = 8};
static const domus_http_options client = {.role = DOMUS_ROLE_CLIENT};
static const domus_http_options small_client = {
    .role = DOMUS_ROLE_CLIENT, .head_max = 64, .fields_max = 2, .body_max = 4};

#define GET    "GET / HTTP/1.1\r\n"
#define POST   "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS POST "Transfer-Encoding: chunked\r\n\r\n"
#define HOST   "Host: a\r\n"
#define END    "\r\n"
/* as many empty lines as are skipped before a request */
#define EMPTY_LINES "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"
/* 32 commas, which separate 33 elements of a list */
#define COMMAS ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"

typedef struct row {
    const char *bytes;
    size_t size;
    const char *expected;
} row;

#define ROW(bytes, status)                                                                         \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, "EPROTO " #status                                                \
    }
#define LONG(bytes, status)                                                                        \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, "EMSGSIZE " #status                                              \
    }

static void check_traces_of_rows(const domus_http_options *options, const char *asks,
                                 const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_http_expect_trace(options, asks, rows[i].bytes, rows[i].size, rows[i].expected);
}

#define HOLD(options, asks, rows)                                                                  \
    check_traces_of_rows(options, asks, rows, sizeof rows / sizeof rows[0])

DOMT_TEST(wrong_start_lines_are_refused)
{
    static const row rows[] = {
        ROW(" GET / HTTP/1.1\r\n" HOST END, 400),
        ROW("\tGET / HTTP/1.1\r\n" HOST END, 400),
        ROW("\nGET / HTTP/1.1\r\n" HOST END, 400),
        ROW(EMPTY_LINES "\r\nGET / HTTP/1.1\r\n" HOST END, 400),
        ROW("\r\n\rGET / HTTP/1.1\r\n" HOST END, 400),
        ROW("\r\n\nGET / HTTP/1.1\r\n" HOST END, 400),
        ROW("\rGET / HTTP/1.1\r\n" HOST END, 400),
        ROW("\0GET / HTTP/1.1\r\n" HOST END, 400),
        ROW("GET  / HTTP/1.1\r\n" HOST END, 400),
        ROW("GET\t/ HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /  HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /\tHTTP/1.1\r\n" HOST END, 400),
        ROW("GET / HTTP/1.1 \r\n" HOST END, 400),
        ROW("GET / HTTP/1.1\t\r\n" HOST END, 400),
        ROW("GET / HTTP/1.1 x\r\n" HOST END, 400),
        ROW("GET / HTTP/1.1\rx\n" HOST END, 400),
        ROW("GET / HTTP/1.1\n" HOST END, 400),
        ROW("GET / HTTP/1.1\r\r\n" HOST END, 400),
        ROW("GET /\r\n", 400), /* a request of HTTP/0.9 */
        ROW("GET / \r\n", 400),
        ROW("GET\r\n", 400),
        ROW("GET HTTP/1.1\r\n" HOST END, 400),
        ROW("GET / http/1.1\r\n" HOST END, 400),
        ROW("GET / HTTP/11\r\n" HOST END, 400),
        ROW("GET / HTTP/1.\r\n" HOST END, 400),
        ROW("GET / HTTP/1.10\r\n" HOST END, 400),
        ROW("GET / HTTP/01.1\r\n" HOST END, 400),
        ROW("GET / HTTP/a.1\r\n" HOST END, 400),
        ROW("GET / HTTP/1,1\r\n" HOST END, 400),
        ROW("GET / HTTP /1.1\r\n" HOST END, 400),
        ROW("GET / HTTPS/1.1\r\n" HOST END, 400),
        ROW("GET / HTTP/1.2\r\n" HOST END, 505),
        ROW("GET / HTTP/0.9\r\n" HOST END, 505),
        ROW("GET / HTTP/2.0\r\n" HOST END, 505),
        ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ROW("get / HTTP/1.1\r\n" HOST END, 501),
        ROW("GE / HTTP/1.1\r\n" HOST END, 501),
        ROW("GETS / HTTP/1.1\r\n" HOST END, 501),
        ROW("BREW / HTTP/1.1\r\n" HOST END, 501),
        ROW("G(T / HTTP/1.1\r\n" HOST END, 400),
        ROW("G\xc3\x84T / HTTP/1.1\r\n" HOST END, 400),
        ROW("\x16\x03\x01\x02\x00", 400), /* the first bytes of TLS */
        ROW("HTTP/1.1 200 OK\r\n\r\n", 400),
    };

    HOLD(NULL, "", rows);
}

DOMT_TEST(wrong_targets_are_refused)
{
    static const row rows[] = {
        ROW("GET a HTTP/1.1\r\n" HOST END, 400),
        ROW("GET * HTTP/1.1\r\n" HOST END, 400),
        ROW("OPTIONS ** HTTP/1.1\r\n" HOST END, 400),
        ROW("OPTIONS *a HTTP/1.1\r\n" HOST END, 400),
        ROW("GET ?a HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /#a HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /\xc3\xa4 HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /\x7f HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /\0 HTTP/1.1\r\n" HOST END, 400),
        ROW("GET /a b HTTP/1.1\r\n" HOST END, 400),
        ROW("GET ftp://a/ HTTP/1.1\r\n" HOST END, 400),
        ROW("GET http:/a/ HTTP/1.1\r\n" HOST END, 400),
        ROW("GET http:///a HTTP/1.1\r\n" HOST END, 400),
        ROW("GET http:// HTTP/1.1\r\n" HOST END, 400),
        /* the host in the target differs from the one in the field Host */
        ROW("GET http://b/ HTTP/1.1\r\n" HOST END, 400),
        ROW("GET http://a:80/ HTTP/1.1\r\n" HOST END, 400),
        ROW("GET http://u@a/ HTTP/1.1\r\nHost: u@a\r\n" END, 400),
        ROW("GET http://a/ HTTP/1.1\r\n" END, 400),
        ROW("GET a:80 HTTP/1.1\r\nHost: a:80\r\n" END, 400),
        ROW("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n" END, 501),
        ROW("CONNECT / HTTP/1.1\r\n" HOST END, 501),
    };

    HOLD(NULL, "", rows);
}

DOMT_TEST(wrong_hosts_are_refused)
{
    static const row rows[] = {
        ROW(GET END, 400),
        ROW(GET HOST HOST END, 400),
        ROW(GET HOST "hOST: b\r\n" END, 400),
        ROW(GET "Host:\r\n" END, 400),
        ROW(GET "Host: \t \r\n" END, 400),
        ROW(GET "Host: a b\r\n" END, 400),
        ROW(GET "Host: a,b\r\n" END, 400),
        ROW(GET "Host: a/b\r\n" END, 400),
        ROW(GET "Host: a@b\r\n" END, 400),
        ROW(GET "Host: http://a\r\n" END, 400),
        ROW(GET "Host: a:\r\n" END, 400),
        ROW(GET "Host: a:b\r\n" END, 400),
        ROW(GET "Host: a:-1\r\n" END, 400),
        ROW(GET "Host: a:65536\r\n" END, 400),
        ROW(GET "Host: a:100000\r\n" END, 400),
        ROW(GET "Host: a:80:80\r\n" END, 400),
        ROW(GET "Host: :80\r\n" END, 400),
        ROW(GET "Host: [::1\r\n" END, 400),
        ROW(GET "Host: []\r\n" END, 400),
        ROW(GET "Host: [::1]a\r\n" END, 400),
        ROW(GET "Host: [::g]\r\n" END, 400),
        ROW(GET "Host: [:::]\r\n" END, 400),
        ROW(GET "Host: [1.2.3.4]\r\n" END, 400),
        ROW(GET "Host: [12345::]\r\n" END, 400),
        ROW(GET "Host: [fe80::1%25eth0]\r\n" END, 400),
        ROW(GET "Host: a%20b\r\n" END, 400),
        ROW(GET "Host: \xc3\xa4\r\n" END, 400),
        ROW("GET / HTTP/1.0\r\nHost:\r\n" END, 400),
        ROW("GET / HTTP/1.0\r\n" HOST HOST END, 400),
    };

    HOLD(NULL, "", rows);
}

DOMT_TEST(wrong_fields_are_refused)
{
    static const row rows[] = {
        /* a line that continues the field before it (obs-fold) */
        ROW(GET HOST "a\r\n" END, 400),
        ROW(GET HOST ": a\r\n" END, 400),
        ROW(GET HOST "a : b\r\n" END, 400),
        ROW(GET HOST "a\t: b\r\n" END, 400),
        ROW(GET HOST " a: b\r\n" END, 400),
        ROW(GET HOST "a: b\r\n c\r\n" END, 400),
        ROW(GET HOST "a: b\r\n\tc\r\n" END, 400),
        ROW(GET HOST "a: b\r\n \r\n" END, 400),
        ROW(GET " " HOST END, 400),
        ROW(GET "\t" HOST END, 400),
        ROW(GET HOST "a b: c\r\n" END, 400),
        ROW(GET HOST "a(b: c\r\n" END, 400),
        ROW(GET HOST "a/b: c\r\n" END, 400),
        ROW(GET HOST "\"a\": c\r\n" END, 400),
        ROW(GET HOST "\xc3\xa4: c\r\n" END, 400),
        ROW(GET HOST "a\0b: c\r\n" END, 400),
        ROW(GET HOST "a: b\0c\r\n" END, 400),
        ROW(GET HOST "a: b\x01\r\n" END, 400),
        ROW(GET HOST "a: b\x0b\r\n" END, 400),
        ROW(GET HOST "a: b\x1b[0m\r\n" END, 400),
        ROW(GET HOST "a: b\x7f\r\n" END, 400),
        ROW(GET HOST "a: b\n" END, 400),
        ROW(GET HOST "a: b\rc: d\r\n" END, 400),
        ROW(GET HOST "a: b\r\r\n" END, 400),
        ROW(GET HOST "a: b\n\n", 400),
        ROW(GET HOST "\n", 400),
        ROW(GET HOST "\rx", 400),
        ROW(GET HOST "\r\r\n", 400),
        ROW(GET HOST "Expect: 200-ok\r\n" END, 417),
        ROW(GET HOST "Expect: 100-continue, a\r\n" END, 417),
        ROW(GET HOST "Expect: 100-continue\r\nExpect: b\r\n" END, 417),
    };

    HOLD(NULL, "", rows);
}

DOMT_TEST(wrong_lengths_are_refused)
{
    static const row rows[] = {
        ROW(POST "Content-Length: +5\r\n" END "hello", 400),
        ROW(POST "Content-Length: -5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5 5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5,5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5, 5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5;\r\n" END "hello", 400),
        ROW(POST "Content-Length: 0x5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5.0\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5e0\r\n" END "hello", 400),
        ROW(POST "Content-Length: 05\r\n" END "hello", 400),
        ROW(POST "Content-Length: 00\r\n" END, 400),
        ROW(POST "Content-Length:\r\n" END "hello", 400),
        ROW(POST "Content-Length: \"5\"\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5\t\r\n" END "hello", 400),
        ROW(POST "Content-Length: five\r\n" END "hello", 400),
        ROW(POST "Content-Length: \xd9\xa5\r\n" END "hello", 400), /* an Arabic digit, in UTF-8 */
        ROW(POST "Content-Length : 5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5\r\nContent-Length: 5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5\r\nContent-Length: 6\r\n" END "hello", 400),
        ROW(POST "Content-Length: 5\r\ncontent-length: 5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 0\r\nContent-Length: 5\r\n" END "hello", 400),
        ROW(POST "Content-Length: 99999999999999999999x\r\n" END, 400),
        LONG(POST "Content-Length: 9223372036854775808\r\n" END, 413),
        LONG(POST "Content-Length: 18446744073709551621\r\n" END "hello", 413),
        LONG(POST "Content-Length: 99999999999999999999999999\r\n" END, 413),
        LONG(POST "Content-Length: 1048577\r\n" END, 413),
        ROW("TRACE / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n" END "a", 400),
        ROW("TRACE / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END "0\r\n\r\n", 400),
    };

    HOLD(NULL, "", rows);
}

DOMT_TEST(wrong_transfer_codings_are_refused)
{
    static const row rows[] = {
        ROW(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, 400),
        ROW(POST "Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n" END, 400),
        ROW(POST "Transfer-Encoding: chunked, chunked\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: chunked,\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: ,chunked\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: chunked, gzip\r\n" END, 400),
        ROW(POST "Transfer-Encoding: gzip\r\n" END, 400),
        ROW(POST "Transfer-Encoding: identity\r\n" END, 400),
        ROW(POST "Transfer-Encoding:\r\n" END, 400),
        ROW(POST "Transfer-Encoding: xchunked\r\n" END, 400),
        ROW(POST "Transfer-Encoding: chunkedx\r\n" END, 400),
        ROW(POST "Transfer-Encoding: chunked;q=1\r\n" END, 400),
        ROW(POST "Transfer-Encoding: \"chunked\"\r\n" END, 400),
        ROW(POST "Transfer-Encoding: chun ked\r\n" END, 400),
        ROW(POST "Transfer-Encoding: \013chunked\r\n" END, 400),
        ROW(POST "Transfer-Encoding : chunked\r\n" END, 400),
        ROW(POST "Transfer-Encoding: gzip, chunked\r\n" END, 501),
        ROW("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding:\tchunked\r\n" END "0\r\n\r\n", 400),
        ROW(POST "Transfer-Encoding: chunked\t\r\n" END "0\r\n\r\n", 400),
    };

    HOLD(NULL, "", rows);
}

DOMT_TEST(wrong_chunks_are_refused)
{
    static const row rows[] = {
        ROW(CHUNKS "\r\n", 400),
        ROW(CHUNKS ";a\r\n", 400),
        ROW(CHUNKS " 5\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5 \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5\t\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "+5\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "-5\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "0x5\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5h\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5_0\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "g\r\n", 400),
        ROW(CHUNKS "5\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5\rhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5\r\nhello0\r\n\r\n", 400),
        ROW(CHUNKS "5\r\nhello\n0\r\n\r\n", 400),
        ROW(CHUNKS "5\r\nhello\r0\r\n\r\n", 400),
        ROW(CHUNKS "5\r\nhello!\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5\r\nhello!\n0\r\n\r\n", 400),
        ROW(CHUNKS "5\r\nhell\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "0\n\r\n", 400),
        ROW(CHUNKS "0\r\n\n", 400),
        ROW(CHUNKS "0\r\n\rx", 400),
        LONG(CHUNKS "1234567890abcdef\r\n", 413),
        LONG(CHUNKS "ffffffffffffffffff\r\n", 413),
        LONG(CHUNKS "0000000000000005\r\nhello\r\n0\r\n\r\n", 413),
        LONG(CHUNKS "10000001\r\n", 413),
        ROW(CHUNKS "0\r\na\r\n\r\n", 400),
        ROW(CHUNKS "0\r\n a: b\r\n\r\n", 400),
        ROW(CHUNKS "0\r\na : b\r\n\r\n", 400),
        ROW(CHUNKS "0\r\na: b\r\n c\r\n\r\n", 400),
        ROW(CHUNKS "0\r\na: b\n\r\n", 400),
        ROW(CHUNKS "0\r\na: \0\r\n\r\n", 400),
        ROW(CHUNKS "0\r\nContent-Length: 5\r\n\r\n", 400),
        ROW(CHUNKS "0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ROW(CHUNKS "0\r\nHost: b\r\n\r\n", 400),
    };
    char expected[128];

    HOLD(NULL, "", rows);
    /* the rows are refused also by a stage that gives bodies in pieces */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text =
            domt_http_trace_of_bytes(&streams, "", rows[i].bytes, rows[i].size, 0, 0);
        const char *error = strrchr(text, '[');
        ck_assert_ptr_nonnull(error);
        (void)snprintf(expected, sizeof expected, "%s", text);
        domt_http_expect_trace(&streams, "", rows[i].bytes, rows[i].size, expected);
        ck_assert_str_eq(strstr(text, rows[i].expected), rows[i].expected);
    }
}

DOMT_TEST(limits_of_heads_and_bodies_hold_at_their_size)
{
    static const row rows[] = {
        LONG("GET /0123456789abcdef HTTP/1.1\r\n" HOST END, 414),
        LONG("GET /0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 414),
        LONG(GET HOST "a: 1\r\na: 2\r\na: 3\r\na: 4\r\n" END, 431),
        LONG(GET HOST "Connection:" COMMAS "\r\nConnection:" COMMAS "\r\n" END, 431),
        LONG(GET HOST "a: 0123456789012345678901234567890123456789012345678901234567890123456789"
                      "0123456789012345678901234567890123456789012345678901234567890123456789"
                      "01234567890123456789012345678\r\n" END,
             431),
        LONG(POST "Content-Length: 101\r\n" END, 413),
        LONG(CHUNKS "65\r\n", 413),
        LONG(CHUNKS "60\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                    "0123456789abcdef0123456789abcdef\r\n5\r\n",
             413),
        LONG(CHUNKS "1;abcdefgh\r\n", 413),
        LONG(CHUNKS "1;abc\r\na\r\n1;abcd\r\n", 413),
        LONG(CHUNKS "1 ; a = b;\r\n", 413),
        LONG(CHUNKS "1;a=\"\\\"bc\"\r\n", 413),
        LONG(CHUNKS "1         ", 413),
        LONG(CHUNKS "0\r\na: 0123456789012345678901234567890123\r\n\r\n", 431),
        LONG(CHUNKS "0\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\n\r\n", 431),
    };
    static const row right[] = {
        {"GET /0123456789abcde HTTP/1.1\r\n" HOST END, 0, "GET /0123456789abcde 1.1 (Host: a)\n"},
        {GET HOST "a: 1\r\na: 2\r\na: 3\r\n" END, 0, "GET / 1.1 (Host: a|a: 1|a: 2|a: 3)\n"},
        {GET HOST "a: 0123456789012345678901234567890123456789012345678901234567890123456789"
                  "0123456789012345678901234567890123456789012345678901234567890123456789"
                  "0123456789012345678901234567\r\n" END,
         0, "GET / 1.1 (Host: a|a: 168 bytes, e7ee3254)\n"},
        {CHUNKS "1 ; a = b\r\na\r\n0\r\n\r\n", 0,
         "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [a]\n"},
        {CHUNKS "1;a=\"\\\"b\"\r\na\r\n0\r\n\r\n", 0,
         "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [a]\n"},
        {CHUNKS "1;abc\r\na\r\n1;abc\r\nb\r\n0\r\na: 012345678901234567890123456789012\r\n\r\n", 0,
         "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [ab]\n"},
    };

    HOLD(&small, "", rows);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        domt_http_expect_trace(&small, "", right[i].bytes, strlen(right[i].bytes),
                               right[i].expected);
}

/* A head of exactly 64 bytes, the limit of this stage. */
#define HEAD_OF_64 "GET / HTTP/1.1\r\nHost: a\r\nX: 01234567890123456789012345678901\r\n\r\n"

DOMT_TEST(empty_lines_count_into_the_head)
{
    static const domus_http_options tight = {.head_max = 64};
    static const char right[] = "GET / 1.1 (Host: a|X: 01234567890123456789012345678901)\n";

    ck_assert_uint_eq(sizeof HEAD_OF_64 - 1, 64);
    domt_http_expect_trace(&tight, "", HEAD_OF_64, 64, right);
    domt_http_expect_trace(&tight, "", "\r\n" HEAD_OF_64, 66, "EMSGSIZE 431");
    domt_http_expect_trace(&tight, "", EMPTY_LINES GET HOST END,
                           sizeof EMPTY_LINES GET HOST END - 1, "GET / 1.1 (Host: a)\n");
    domt_http_expect_trace(&tight, "", GET HOST END "\r\n\r\n" HEAD_OF_64,
                           sizeof GET HOST END "\r\n\r\n" HEAD_OF_64 - 1,
                           "GET / 1.1 (Host: a)\nEMSGSIZE 431");
}

DOMT_TEST(wrong_responses_are_refused)
{
    static const row rows[] = {
#define WRONG(bytes) {bytes, sizeof(bytes) - 1, "EPROTO"}
#define TOO_LONG(bytes)                                                                            \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, "EMSGSIZE"                                                       \
    }
        WRONG("\r\nHTTP/1.1 200 OK\r\n\r\n"),
        WRONG(" HTTP/1.1 200 OK\r\n\r\n"),
        WRONG("http/1.1 200 OK\r\n\r\n"),
        WRONG("HTTP/1.2 200 OK\r\n\r\n"),
        WRONG("HTTP/2.0 200 OK\r\n\r\n"),
        WRONG("ICY 200 OK\r\n\r\n"),
        WRONG("HTTP/1.1  200 OK\r\n\r\n"),
        WRONG("HTTP/1.1 20 OK\r\n\r\n"),
        WRONG("HTTP/1.1 2000 OK\r\n\r\n"),
        WRONG("HTTP/1.1 099 OK\r\n\r\n"),
        WRONG("HTTP/1.1 600 OK\r\n\r\n"),
        WRONG("HTTP/1.1 +20 OK\r\n\r\n"),
        WRONG("HTTP/1.1\r\n\r\n"),
        WRONG("HTTP/1.1 200 O\rK\r\n\r\n"),
        WRONG("HTTP/1.1 200 O\0K\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\na : b\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        WRONG("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"),
        WRONG("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
        WRONG("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        WRONG(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        WRONG("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\n"),
        WRONG("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\"\\\r\n\"\r\na\r\n"),
        WRONG("HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n"),
        WRONG("HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n"),
        WRONG("HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n"),
        WRONG("HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n"),
        WRONG("HTTP/1.0 100 Continue\r\n\r\n"),
        WRONG("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        WRONG("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    };
    static const row long_ones[] = {
        TOO_LONG("HTTP/1.1 200 0123456789012345678901234567890123456789012345678901234567890"),
        TOO_LONG("HTTP/1.1 200 OK\r\na: 1\r\na: 2\r\na: 3\r\n\r\n"),
        TOO_LONG("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        TOO_LONG("HTTP/1.1 200 OK\r\n\r\nhello"),
        TOO_LONG("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"),
    };

    HOLD(&client, "G", rows);
    HOLD(&small_client, "G", long_ones);
    /* the second response has no request to which it belongs */
    domt_http_expect_trace(&client, "G", "HTTP/1.1 204 a\r\n\r\nHTTP/1.1 200 b\r\n\r\n", 36,
                           "204 1.1 ()\nEPROTO");
}

DOMT_TEST(interim_responses_have_an_end)
{
    static const char interim[] = "HTTP/1.1 103 a\r\nLink: b\r\n\r\n";
    static const char last[] = "HTTP/1.1 204 a\r\n\r\n";
    const size_t size = sizeof interim - 1;
    char bytes[2048];

    for (size_t i = 0; i < 33; i++)
        memcpy(bytes + i * size, interim, size);
    memcpy(bytes + 33 * size, last, sizeof last - 1);
    ck_assert_str_eq(
        domt_http_trace_of_bytes(&client, "G", bytes + size, 32 * size + sizeof last - 1, 0, 0),
        "204 1.1 ()\n");
    ck_assert_str_eq(domt_http_trace_of_bytes(&client, "G", bytes, 33 * size, 0, 0), "EPROTO");
}

DOMT_SUITE(60)
