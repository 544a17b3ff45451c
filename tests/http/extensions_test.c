/* The extensions of chunks: which are passed over, and which are refused (RFC 9112 7.1.1). */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static const domus_http_options client = {.role = DOMUS_ROLE_CLIENT};
static const domus_http_options streams = {.streams = true};

#define GET    "GET / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

/* A quote or a semicolon that a backslash or quotes cover ends nothing. */
DOMT_TEST(extensions_of_chunks_are_passed_over)
{
    static const char *const lines[] = {
        "5;a=\"b\\\"c\"",
        "5;a=\"\"",
        "5;a=\"\\\\\"",
        "5;a=\"\\\\\";b",
        "5;a=\"\\\\\\\"\"",
        "5;a=\";b=\\\"\"",
        "5;a=\"\t\xc3\xa4\\\t\"",
        "5 ;a",
        "5;\ta",
        "5 \t; \ta",
        "5;a =b",
        "5;a=\tb",
        "5 ; a = b ; c",
        "5;a=\"b\" ;c = \"d\"",
        "5;a=b;c=d;e",
        "005 ; a = \"=;\"",
    };
    char bytes[256];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int size = snprintf(bytes, sizeof bytes, CHUNKS "%s\r\nhello\r\n0%s\r\n\r\n" GET "\r\n",
                            lines[i], strchr(lines[i], '5') + 1);
        domt_http_holds(NULL, "", bytes, (size_t)size,
                        "POST / 1.1 (Host: a|Transfer-Encoding: chunked) [hello]\n"
                        "GET / 1.1 (Host: a)\n");
        size = snprintf(bytes, sizeof bytes,
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\nhello\r\n"
                        "0\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
                        lines[i]);
        domt_http_holds(&client, "GG", bytes, (size_t)size,
                        "200 1.1 (Transfer-Encoding: chunked) [hello]\n204 1.1 ()\n");
    }
}

#define ROW(bytes, status)                                                                         \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, "EPROTO " #status                                                \
    }

DOMT_TEST(wrong_extensions_are_refused)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *expected;
    } rows[] = {
        ROW(CHUNKS "5;\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5; \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5 a\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;=b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=b c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\\\r\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\\\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\\\"\\\r\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\\\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\\\0\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"\\\x7f\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"b\r\n\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"b\" \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"b\"\"c\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=\"b\" c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=b\"c\"\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=b=c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a= \r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=;b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a b\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;;a\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5 =a\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a=b =c\r\nhello\r\n0\r\n\r\n", 400),
        ROW(CHUNKS "5;a\0b\r\nhello\r\n0\r\n\r\n", 400),
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domt_http_holds(NULL, "", rows[i].bytes, rows[i].size, rows[i].expected);
        const char *text = domt_http_trace(&streams, "", rows[i].bytes, rows[i].size, 0, 1);
        const char *error = strstr(text, "[EPROTO 400"); /* and in pieces */
        ck_assert_msg(error != NULL, "%s", text);
    }
}

DOMT_SUITE(60)
