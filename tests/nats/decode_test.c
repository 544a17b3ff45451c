/* The messages of a server are decoded in the same way in pieces of any size; bytes that are not
 * NATS, or exceed the limits, end the connection. */
#include "tests/nats/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDS(bytes, expected)                                                                     \
    domt_nats_expect_trace_of_decoding(NULL, bytes, sizeof bytes - 1, expected)
#define REFUSED(bytes) HOLDS(bytes, "EPROTO\n")

DOMT_TEST(message_is_decoded_into_its_parts)
{
    HOLDS("MSG a.b 1 5\r\nhello\r\n", "msg 1 [a.b] [hello]\n");
    HOLDS("MSG a 18 _INBOX.x.y 3\r\n\r\n\0\r\n", "msg 18 [a] to[_INBOX.x.y] [\\x0d\\x0a\\x00]\n");
    HOLDS("MSG a 1 0\r\n\r\nMSG b 2 1\r\nx\r\n", "msg 1 [a] []\nmsg 2 [b] [x]\n");
    HOLDS("msg \t a\t 7   r \t 1 \r\nz\r\n", "msg 7 [a] to[r] [z]\n");
    HOLDS("MSG a 9999999999999999999 1\r\nz\r\n", "msg 9999999999999999999 [a] [z]\n");
}

DOMT_TEST(message_with_headers_is_decoded_into_its_parts)
{
    HOLDS("HMSG a 1 22 27\r\nNATS/1.0\r\nA: b\r\nC:\r\n\r\nhello\r\n",
          "msg 1 [a] head[NATS/1.0\\x0d\\x0aA: b\\x0d\\x0aC:\\x0d\\x0a\\x0d\\x0a] [hello]\n");
    HOLDS("HMSG a 1 r 12 12\r\nNATS/1.0\r\n\r\n\r\n",
          "msg 1 [a] to[r] head[NATS/1.0\\x0d\\x0a\\x0d\\x0a] []\n");
    HOLDS("HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
          "msg 1 [a] head[NATS/1.0 503\\x0d\\x0a\\x0d\\x0a] status 503 []\n");
    HOLDS("HMSG a 1 0 1\r\nz\r\n", "msg 1 [a] [z]\n");
}

DOMT_TEST(status_in_headers_has_three_digits)
{
    HOLDS("HMSG a 1 17 17\r\nNATS/1.0 099 \r\n\r\n\r\n",
          "msg 1 [a] head[NATS/1.0 099 \\x0d\\x0a\\x0d\\x0a] []\n");
    HOLDS("HMSG a 1 17 17\r\nNATS/1.0 1x0 \r\n\r\n\r\n",
          "msg 1 [a] head[NATS/1.0 1x0 \\x0d\\x0a\\x0d\\x0a] []\n");
    HOLDS("HMSG a 1 15 15\r\nNATS/1.0 10\r\n\r\n\r\n",
          "msg 1 [a] head[NATS/1.0 10\\x0d\\x0a\\x0d\\x0a] []\n");
    HOLDS("HMSG a 1 17 17\r\nNATS/1.0 100 \r\n\r\n\r\n",
          "msg 1 [a] head[NATS/1.0 100 \\x0d\\x0a\\x0d\\x0a] status 100 []\n");
}

/* A server forwards a publisher's headers without checking them, so a wrong block of headers is no
 * error, and has no status. */
DOMT_TEST(wrong_headers_have_no_status)
{
    HOLDS("HMSG a 1 15 15\r\nNATS/1.0 100\r\n\n\r\n",
          "msg 1 [a] head[NATS/1.0 100\\x0d\\x0a\\x0a] []\n");
    HOLDS("HMSG a 1 16 16\r\nNATS/2.0 100\r\n\r\n\r\n",
          "msg 1 [a] head[NATS/2.0 100\\x0d\\x0a\\x0d\\x0a] []\n");
    HOLDS("HMSG a 1 16 16\r\nNATS/1.0x100\r\n\r\n\r\n",
          "msg 1 [a] head[NATS/1.0x100\\x0d\\x0a\\x0d\\x0a] []\n");
    HOLDS("HMSG a 1 16 18\r\nNATS/1.0 100\r\n\rxhi\r\n",
          "msg 1 [a] head[NATS/1.0 100\\x0d\\x0a\\x0dx] [hi]\n");
    HOLDS("HMSG a 1 1 1\r\nN\r\n", "msg 1 [a] head[N] []\n");
}

DOMT_TEST(other_protocol_lines_are_decoded)
{
    HOLDS("INFO {\"a\":1} \r\n", "info [{\"a\":1}]\n");
    HOLDS("info\t{}\r\n+OK\r\nPONG\r\n", "info [{}]\npong\n");
    HOLDS("-ERR 'Unknown'\r\n-ERR bare\r\n-err ''\r\n-ERR '\r\n-ERR\r\n",
          "error [Unknown]\nerror [bare]\nerror []\nerror [']\nerror []\n");
    HOLDS("-ERR 'a\x01\xff'\r\n", "error [a??]\n");
}

DOMT_TEST(ping_is_answered_by_pong)
{
    domt_codec codec;
    domus_stage_message message;

    domt_codec_start(&codec, &domus_nats_stage, NULL);
    ck_assert_int_eq(domus_stage_kit_feed(codec.kit, "PING\r\nping \r\nPONG\r\n", 19), 0);
    ck_assert_int_eq(domus_stage_kit_next(codec.kit, &message), 1);
    ck_assert_ptr_eq(message.type, &domus_nats_pong_type);
    ck_assert_str_eq(domt_codec_take_output(&codec), "PONG\r\nPONG\r\n");
    domt_codec_stop(&codec);
}

DOMT_TEST(bytes_that_are_not_nats_are_refused)
{
    REFUSED("\r\n");
    REFUSED("\n");
    REFUSED("PING\n");
    REFUSED("PONGx\n");
    REFUSED("PINGS\r\n");
    REFUSED("MSGS a 1 0\r\n\r\n");
    REFUSED("INFO\r\n");
    REFUSED("INFO \r\n");
    REFUSED("SUB a 1\r\n");
    REFUSED("MSG\r\n");
    REFUSED("MSG a 1\r\n");
    REFUSED("MSG a 1 r 0 x\r\n");
    REFUSED("MSG a 1 r x 0\r\n");
    REFUSED("MSG a 1 r 0 x y z\r\n");
    REFUSED("MSG a x 0\r\n");
    REFUSED("MSG a 1 x\r\n");
    REFUSED("MSG a 1 -1\r\n");
    REFUSED("MSG a 1 +1\r\n");
    REFUSED("MSG a 11111111111111111111 0\r\n");
    REFUSED("MSG a 1 00000000000000000000\r\n");
    REFUSED("MSG a 1 1\r\nab\r\n");
    REFUSED("MSG a 1 1\r\na\n\n");
    REFUSED("MSG a 1 1\r\na\rx");
    REFUSED("HMSG a 1 0\r\n");
    REFUSED("HMSG a 1 13 12\r\n");
    REFUSED("HMSG a 1 x 12\r\n");
    HOLDS("PONG\r\nx\r\n", "pong\nEPROTO\n");
}

DOMT_TEST(end_of_stream_within_message_is_error)
{
    HOLDS("MSG", "EPIPE\n");
    HOLDS("MSG a 1 1\r\n", "EPIPE\n");
    HOLDS("MSG a 1 1\r\na\r", "EPIPE\n");
    HOLDS("MSG a 1 100000\r\nabc", "EPIPE\n");
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Write a line of `size` bytes without its line end, which begins with the text `begin`, into
 * `bytes`. Returns the size. */
static size_t make_line_of_size(char *bytes, const char *begin, size_t size)
{
    memset(bytes, 'x', size);
    memcpy(bytes, begin, strlen(begin));
    memcpy(bytes + size, "\r\n", 3);
    return size + 2;
}

static const size_t steps[] = {0, 1, 7, 1000, 65536};
#define STEPS (sizeof steps / sizeof steps[0])

/* Decode a line that begins with `begin` and has `size` bytes with its line end, whole and in
 * pieces of each size, and check that its trace begins with `expected`. */
static void check_trace_of_line(const domus_nats_stage_options *options, const char *begin,
                                size_t size, const char *expected)
{
    static char bytes[80000];
    size_t whole = make_line_of_size(bytes, begin, size);

    for (size_t i = 0; i < STEPS; i++) {
        const char *trace = domt_nats_trace_decoding(options, bytes, whole, steps[i]);
        ck_assert_msg(strncmp(trace, expected, strlen(expected)) == 0, "%s: %.80s", begin, trace);
    }
}

DOMT_TEST(too_long_line_is_refused)
{
    static const domus_nats_stage_options small = {.line_max = 64, .info_max = 512};
    static const domus_nats_stage_options large = {.line_max = 65534, .info_max = 65534};

    check_trace_of_line(NULL, "-ERR ", 4096, "error [x");
    check_trace_of_line(NULL, "-ERR ", 4097, "EMSGSIZE\n");
    check_trace_of_line(NULL, "INFO ", 32768, "info [");
    check_trace_of_line(NULL, "INFO ", 32769, "EMSGSIZE\n");
    check_trace_of_line(&small, "-ERR ", 64, "error [x");
    check_trace_of_line(&small, "-ERR ", 65, "EMSGSIZE\n");
    check_trace_of_line(&small, "INFO ", 512, "info [");
    check_trace_of_line(&small, "INFO ", 513, "EMSGSIZE\n");
    check_trace_of_line(&large, "-ERR ", 65534, "error [x");
    check_trace_of_line(&large, "-ERR ", 65535, "EMSGSIZE\n");
    check_trace_of_line(&large, "INFO ", 65534, "info [");
    check_trace_of_line(NULL, "MSG a 1 ", 4097, "EMSGSIZE\n");
    check_trace_of_line(NULL, "x", 70000, "EMSGSIZE\n");
}

/* Check that a message with this many bytes of headers and payload comes whole, in pieces of each
 * size. */
static const char *check_trace_of_message_of_size(const domus_nats_stage_options *options,
                                                  size_t headers, size_t payload, size_t step)
{
    size_t room = headers + payload + 100;
    char *bytes = malloc(room);
    int line = headers != 0 ? snprintf(bytes, room, "HMSG a.b 1 to.me %zu %zu\r\n", headers,
                                       headers + payload)
                            : snprintf(bytes, room, "MSG a.b 1 to.me %zu\r\n", payload);
    char *at = bytes + line;

    memset(at, 'h', headers);
    if (headers != 0) {
        memcpy(at, "NATS/1.0\r\n", 10);
        memcpy(at + headers - 4, "\r\n\r\n", 4);
    }
    at += headers;
    for (size_t i = 0; i < payload; i++)
        at[i] = (char)('a' + i % 23);
    memcpy(at + payload, "\r\n", 2);
    const char *trace =
        domt_nats_trace_decoding(options, bytes, (size_t)(at + payload + 2 - bytes), step);
    free(bytes);
    return trace;
}

DOMT_TEST(too_large_payload_is_refused)
{
    static const domus_nats_stage_options small = {.payload_max = 1024, .headers_max = 16};
    static const size_t sizes[] = {16300, 16384, 16385, 65500, 65536, 65600, 300000, 8388608};
    char once[200];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t s = 0; s < STEPS; s++) {
            if (steps[s] == 1 && sizes[i] > 70000)
                continue;
            snprintf(once, sizeof once, "%s", check_trace_of_message_of_size(NULL, 0, sizes[i], 0));
            ck_assert_int_eq(strncmp(once, "msg 1 [a.b] to[to.me] [", 23), 0);
            ck_assert_str_eq(check_trace_of_message_of_size(NULL, 0, sizes[i], steps[s]), once);
        }
    }
    ck_assert_str_eq(check_trace_of_message_of_size(NULL, 0, 8388609, 0), "EMSGSIZE\n");
    ck_assert_int_eq(strncmp(check_trace_of_message_of_size(&small, 0, 1024, 0), "msg", 3), 0);
    ck_assert_str_eq(check_trace_of_message_of_size(&small, 0, 1025, 0), "EMSGSIZE\n");
    ck_assert_int_eq(strncmp(check_trace_of_message_of_size(&small, 16, 1008, 1), "msg", 3), 0);
    ck_assert_str_eq(check_trace_of_message_of_size(&small, 16, 1009, 0), "EMSGSIZE\n");
    ck_assert_str_eq(check_trace_of_message_of_size(&small, 17, 0, 0), "EMSGSIZE\n");
    ck_assert_int_eq(strncmp(check_trace_of_message_of_size(NULL, 65536, 9, 100), "msg", 3), 0);
    ck_assert_str_eq(check_trace_of_message_of_size(NULL, 65537, 9, 100), "EMSGSIZE\n");
}

/* A message that comes in pieces and is collected has to have a line end and headers like one that
 * comes whole. */
DOMT_TEST(wrong_end_of_collected_message_is_refused)
{
    static char bytes[40000];
    size_t size = (size_t)snprintf(bytes, sizeof bytes, "MSG a 1 30000\r\n");

    memset(bytes + size, 'x', 30000);
    memcpy(bytes + size + 30000, "\r\r", 2);
    for (size_t i = 0; i < STEPS; i++)
        ck_assert_str_eq(domt_nats_trace_decoding(NULL, bytes, size + 30002, steps[i]), "EPROTO\n");
    size = (size_t)snprintf(bytes, sizeof bytes, "HMSG a 1 16 30000\r\nNATS/1.0 503\r\n\r\n");
    memset(bytes + size, 'x', 29984);
    memcpy(bytes + size + 29984, "\r\n", 2);
    for (size_t i = 0; i < STEPS; i++)
        ck_assert_ptr_nonnull(
            strstr(domt_nats_trace_decoding(NULL, bytes, size + 29986, steps[i]), " status 503 ["));
}

DOMT_TEST(stage_options_out_of_range_are_refused)
{
    static const domus_nats_stage_options wrong[] = {
        {.line_max = 63},      {.line_max = 65535},
        {.info_max = 511},     {.info_max = 65535},
        {.payload_max = 1023}, {.payload_max = DOMUS_NATS_PAYLOAD_LIMIT + 1},
        {.headers_max = 15},   {.payload_max = 1024, .headers_max = 1025},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_pipeline_stage stages[2] = {{&domus_nats_stage, &wrong[i]}, {NULL, NULL}};
        domus_pipeline pipeline = {.stages = stages};
        domus_stage_kit *kit;
        ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), -EINVAL);
    }
}

DOMT_SUITE(60)
