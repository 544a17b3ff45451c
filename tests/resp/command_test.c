/* Commands of RESP are decoded in the same way in pieces of any size, within their limits, and
 * bytes that are no command get redis-server's error. */
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDS(bytes, expected) domt_resp_expect_trace(NULL, bytes, sizeof bytes - 1, expected)
#define REFUSED(bytes, text)   HOLDS(bytes, "EPROTO -ERR Protocol error: " text "\r\n")

DOMT_TEST(command_is_decoded_into_arguments)
{
    HOLDS("*1\r\n$4\r\nPING\r\n", "command [PING]\n");
    HOLDS("*2\r\n$3\r\nGET\r\n$16\r\n0123456789abcdef\r\n", "command [GET] [0123456789abcdef]\n");
    HOLDS("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\n\r\n\0\r\n", "command [SET] [] [\\x0d\\x0a\\x00]\n");
    HOLDS("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", "command [PING]\ncommand [QUIT]\n");
}

DOMT_TEST(empty_command_is_skipped)
{
    HOLDS("*0\r\n*-1\r\n*-7\r\n\r\n\n  \r\n*1\r\n$1\r\na\r\n*0\r\n", "command [a]\n");
}

DOMT_TEST(command_with_many_arguments_has_a_table)
{
    HOLDS("*8\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n"
          "$1\r\nh\r\n",
          "command [a] [b] [c] [d] [e] [f] [g] [h]\n");
    HOLDS("*9\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n"
          "$1\r\nh\r\n$2\r\nij\r\n",
          "command [a] [b] [c] [d] [e] [f] [g] [h] [ij]\n");
    HOLDS("a b c d e f g h i 'j'\n", "command [a] [b] [c] [d] [e] [f] [g] [h] [i] [j]\n");
}

DOMT_TEST(line_is_decoded_as_command)
{
    HOLDS("PING\r\n", "command [PING]\n");
    HOLDS(" GET \t a\x0b"
          "b  \nGET\x0b\x0c\n",
          "command [GET] [a\\x0bb]\ncommand [GET\\x0b\\x0c]\n");
    HOLDS("\x0b\x0c"
          "a\n",
          "command [a]\n");
    HOLDS("SET a \"b \\\"\\x41\\x4\\n\\r\\t\\b\\a\\q\\\\\" 'it\\'s\\n'\r\n",
          "command [SET] [a] [b \"Ax4\\x0a\\x0d\\x09\\x08\\x07q\\] [it's\\n]\n");
    HOLDS("a\"b\" '' \"\"\n", "command [ab] [] []\n");
    HOLDS("\"\\xaA\\xBc\\xfF\\x4g\"\n", "command [\\xaa\\xbc\\xffx4g]\n");
    HOLDS("a\0b\n", "command [a\\x00b]\n");
    HOLDS("a\r\r\n", "command [a]\n");
}

DOMT_TEST(wrong_command_gets_error_of_redis)
{
    REFUSED("*1\n", "invalid multibulk length");
    REFUSED("*01\r\n", "invalid multibulk length");
    REFUSED("*+1\r\n", "invalid multibulk length");
    REFUSED("*-0\r\n", "invalid multibulk length");
    REFUSED("*\r\n", "invalid multibulk length");
    REFUSED("*-\r\n", "invalid multibulk length");
    REFUSED("*1x\r\n", "invalid multibulk length");
    REFUSED("*1\rx", "invalid multibulk length");
    REFUSED("*1048577\r\n", "invalid multibulk length");
    REFUSED("*99999999999999999999999\r\n", "invalid multibulk length");
    REFUSED("*1\r\n$-1\r\n", "invalid bulk length");
    REFUSED("*1\r\n$+5\r\n", "invalid bulk length");
    REFUSED("*1\r\n$04\r\n", "invalid bulk length");
    REFUSED("*1\r\n$00\r\n", "invalid bulk length");
    REFUSED("*1\r\n$04\r\nPING\r\n", "invalid bulk length");
    REFUSED("*1\r\n$\r\n", "invalid bulk length");
    REFUSED("*1\r\n$536870913\r\n", "invalid bulk length");
    REFUSED("*1\r\n$9223372036854775808\r\n", "invalid bulk length");
    REFUSED("*1\r\n$18446744073709551620\r\n", "invalid bulk length");
    REFUSED("*1\r\n$4\r\nPINGX\n", "invalid bulk length");
    REFUSED("*1\r\n$4\r\nPING\n\n", "invalid bulk length");
    REFUSED("*1\r\n$4\r\nPING\rX", "invalid bulk length");
    REFUSED("*1\r\nX", "expected '$', got 'X'");
    REFUSED("*1\r\n\r\n", "expected '$', got ' '");
    REFUSED("*2\r\n$1\r\na\r\n*1\r\n", "expected '$', got '*'");
    REFUSED("a \"b\n", "unbalanced quotes in request");
    REFUSED("a 'b'c\n", "unbalanced quotes in request");
    REFUSED("a \"b\\\n", "unbalanced quotes in request");
    HOLDS("PING\n*1\n", "command [PING]\nEPROTO -ERR Protocol error: invalid multibulk length\r\n");
}

DOMT_TEST(end_of_stream_within_command_sends_no_error)
{
    HOLDS("*1\r\n$4\r\nPIN", "EPIPE ");
    HOLDS("PING", "EPIPE ");
    HOLDS("*", "EPIPE ");
    HOLDS("*2\r\n$1\r\na\r\n$100000\r\nabc", "EPIPE ");
}

DOMT_TEST(limits_of_commands_hold)
{
    static const domus_resp_options small = {
        .bulk_max = 3, .arguments_max = 2, .inline_max = 5, .message_max = 65536};
    static const domus_resp_options two = {.message_max = 65536};
    static char bytes[200000];

#define SMALL(bytes, expected) domt_resp_expect_trace(&small, bytes, sizeof bytes - 1, expected)
    SMALL("*1\r\n$3\r\nabc\r\n", "command [abc]\n");
    SMALL("*1\r\n$4\r\n", "EPROTO -ERR Protocol error: invalid bulk length\r\n");
    SMALL("*1\r\n$4\r\nabcd\r\n", "EPROTO -ERR Protocol error: invalid bulk length\r\n");
    SMALL("*3\r\n", "EPROTO -ERR Protocol error: invalid multibulk length\r\n");
    SMALL("*3\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n",
          "EPROTO -ERR Protocol error: invalid multibulk length\r\n");
    SMALL("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
          "EPROTO -ERR Protocol error: invalid multibulk length\r\n");
    SMALL("a b c\n", "EPROTO -ERR Protocol error: invalid multibulk length\r\n");
    SMALL("abcde\n", "command [abcde]\n");
    SMALL("abcdef\n", "EPROTO -ERR Protocol error: too big inline request\r\n");

    int head = snprintf(bytes, sizeof bytes, "*2\r\n$40000\r\n");
    memset(bytes + head, 'a', 40000);
    snprintf(bytes + head + 40000, 100, "\r\n$40000\r\n");
    ck_assert_str_eq(domt_resp_trace_decoding(&two, bytes, strlen(bytes), 0, 0),
                     "EPROTO -ERR Protocol error: too big request\r\n");
    ck_assert_str_eq(domt_resp_trace_decoding(&two, bytes, strlen(bytes), 100, 1000),
                     "EPROTO -ERR Protocol error: too big request\r\n");
}

DOMT_TEST(lines_longer_than_64_kib_are_refused)
{
    static char bytes[70000];

    memset(bytes, 'a', sizeof bytes);
    bytes[65535] = '\n';
    ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, 65536, 0, 0),
                     domt_resp_trace_decoding(NULL, bytes, 65536, 1, 1000));
    ck_assert_int_eq(
        strncmp(domt_resp_trace_decoding(NULL, bytes, 65536, 0, 0), "command [65535 bytes", 20), 0);
    bytes[65535] = 'a';
    ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, sizeof bytes, 0, 0),
                     "EPROTO -ERR Protocol error: too big inline request\r\n");
    ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, sizeof bytes, 1, 1000),
                     "EPROTO -ERR Protocol error: too big inline request\r\n");
}

/* Write a command "SET" with a key and a value of `size` bytes, and a PING behind it. Returns the
 * size of all. */
static size_t write_set_command(char *bytes, size_t room, size_t size)
{
    int head = snprintf(bytes, room, "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$%zu\r\n", size);

    for (size_t i = 0; i < size; i++)
        bytes[(size_t)head + i] = (char)(i * i >> 3);
    int tail = snprintf(bytes + head + size, 32, "\r\n*1\r\n$4\r\nPING\r\n");
    return (size_t)(head + tail) + size;
}

DOMT_TEST(long_values_are_decoded_same_in_all_pieces)
{
    static const size_t sizes[] = {16000, 16350, 16400, 65400, 65497, 65510, 66000, 200000};
    static const size_t cuts[] = {1, 4, 5, 13, 20, 25, 30, 31, 32, 33, 1000, 16384, 65535, 65536};
    static char bytes[300000];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = write_set_command(bytes, sizeof bytes, sizes[i]);
        const char *whole = domt_resp_trace_decoding(NULL, bytes, size, 0, 0);
        ck_assert_ptr_nonnull(strstr(whole, "command [SET] [key] ["));
        ck_assert_ptr_nonnull(strstr(whole, "]\ncommand [PING]\n"));
        for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
            ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size, cuts[c], 0), whole);
            ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size, cuts[c], 30011), whole);
        }
        for (size_t c = size - 20; c < size; c++)
            ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size, c, 0), whole);
    }
}

DOMT_TEST(wrong_end_of_long_value_is_refused)
{
    static char bytes[30000];
    size_t size =
        write_set_command(bytes, sizeof bytes, 20000) - strlen("\r\n*1\r\n$4\r\nPING\r\n");

    memcpy(bytes + size, "\rX", 2);
    ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size + 2, 0, 1000),
                     "EPROTO -ERR Protocol error: invalid bulk length\r\n");
    memcpy(bytes + size, "X\n", 2);
    ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size + 2, size + 1, 1),
                     "EPROTO -ERR Protocol error: invalid bulk length\r\n");
}

/* The window of the stage ends at each place within the head of an argument. */
DOMT_TEST(window_may_end_within_head_of_argument)
{
    static char bytes[100000];

    for (int first = 0; first < 9; first++) {
        size_t size = (size_t)snprintf(bytes, sizeof bytes, "*8001\r\n$%d\r\n%.*s\r\n", first,
                                       first, "abcdefgh");
        for (int i = 0; i < 8000; i++)
            size += (size_t)snprintf(bytes + size, sizeof bytes - size, "$3\r\nxyz\r\n");
        ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size, 0, 0),
                         domt_resp_trace_decoding(NULL, bytes, size, 0, 1000));
        ck_assert_ptr_nonnull(
            strstr(domt_resp_trace_decoding(NULL, bytes, size, 0, 0), "... 8001\n"));
    }
}

DOMT_TEST(many_arguments_are_decoded_same_in_all_pieces)
{
    size_t room = 600000;
    char *bytes = malloc(room);
    size_t size = (size_t)snprintf(bytes, room, "*50001\r\n$4\r\nMGET\r\n");
    char *whole = NULL;

    for (int i = 0; i < 50000; i++)
        size += (size_t)snprintf(bytes + size, room - size, "$%d\r\n%.*s\r\n", i % 3, i % 3, "key");
    whole = strdup(domt_resp_trace_decoding(NULL, bytes, size, 0, 0));
    ck_assert_ptr_nonnull(strstr(whole, "command [MGET] [] [k] [ke]"));
    ck_assert_ptr_nonnull(strstr(whole, "... 50001\n"));
    for (size_t cut = 1; cut < 40; cut += 3)
        ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size, cut, 40009), whole);
    ck_assert_str_eq(domt_resp_trace_decoding(NULL, bytes, size, 65536, 65536), whole);
    free(whole);
    free(bytes);
}

/* Slices of kept arguments stay valid when the bytes of the window are moved to other memory. */
DOMT_TEST(kept_argument_stays_valid)
{
    domt_codec resp;
    domus_stage_message message;
    domus_slice kept;

    domt_resp_make_kit(&resp, NULL);
    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, "*2\r\n$3\r\nGET\r\n$3\r\nabc\r\n", 22), 0);
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &message), 1);
    const domus_resp_command *command = message.payload;
    ck_assert_int_eq(domus_slice_keep(domus_resp_argument(command, 1), &kept), 0);
    ck_assert(domus_resp_is(domus_resp_argument(command, 0), "GET"));
    ck_assert(!domus_resp_is(domus_resp_argument(command, 0), "GE"));
    ck_assert(!domus_resp_is(domus_resp_argument(command, 0), "GETS"));
    ck_assert_uint_eq(command->version, 2);
    domt_codec_stop(&resp);
    ck_assert(domus_slice_equals(kept, "abc", 3));
    ck_assert(domus_resp_is(kept, "ABC"));
    domus_slice_free(kept);
}

DOMT_TEST(wrong_stage_options_are_refused)
{
    static const domus_resp_options wrong[] = {
        {.role = (domus_role)3}, {.bulk_max = UINT32_MAX},    {.message_max = 65535},
        {.inline_max = 65536},   {.arguments_max = 1u << 31}, {.nesting_max = 33}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_lt(domus_resp_stage.check(&wrong[i]), 0);
    ck_assert_int_eq(domus_resp_stage.check(NULL), 0);
    ck_assert_int_eq(domus_resp_stage.check(&(domus_resp_options){.nesting_max = 32}), 0);
}

DOMT_SUITE(60)
