/* A client of RESP decodes replies in the same way in pieces of any size; bytes that are no reply
 * end the connection. */
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const domus_resp_options client = {.role = DOMUS_ROLE_CLIENT};
static const domus_resp_options subscriber = {.role = DOMUS_ROLE_PEER};

#define HOLDS(bytes, expected) domt_resp_expect_trace(&client, bytes, sizeof bytes - 1, expected)
#define REFUSED(bytes)         HOLDS(bytes, "EPROTO\n")

DOMT_TEST(resp_2_reply_is_decoded_into_values)
{
    HOLDS("+OK\r\n", "reply 0 +[OK]\n");
    HOLDS("+\r\n-ERR no\r\n", "reply 0 +[]\nreply 0 -[ERR no]\n");
    HOLDS(":-9223372036854775808\r\n:9223372036854775807\r\n:0\r\n",
          "reply 0 :-9223372036854775808\nreply 0 :9223372036854775807\nreply 0 :0\n");
    HOLDS("$3\r\n\r\n\0\r\n$0\r\n\r\n", "reply 0 $[\\x0d\\x0a\\x00]\nreply 0 $[]\n");
    HOLDS("$-1\r\n*-1\r\n*0\r\n", "reply 0 _\nreply 0 _\nreply 0 *[]\n");
    HOLDS("*3\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n$-1\r\n", "reply 0 *3 $[a] *2 :1 *[] _\n");
}

DOMT_TEST(resp_3_reply_is_decoded_into_values)
{
    HOLDS("_\r\n#t\r\n#f\r\n", "reply 2 _\nreply 2 #1\nreply 2 #0\n");
    HOLDS(",1.5\r\n,-inf\r\n,nan\r\n,1e+3\r\n,10\r\n",
          "reply 2 ,1.5\nreply 2 ,-inf\nreply 2 ,nan\nreply 2 ,1000\nreply 2 ,10\n");
    HOLDS("(-123456789012345678901234567890\r\n", "reply 2 ([-123456789012345678901234567890]\n");
    HOLDS("!5\r\nERR a\r\n=7\r\ntxt:a\r\n\r\n", "reply 2 ![ERR a]\nreply 2 =[a\\x0d\\x0a]\n");
    HOLDS("%2\r\n+a\r\n:1\r\n+b\r\n~2\r\n:2\r\n:3\r\n", "reply 2 %4 +[a] :1 +[b] ~2 :2 :3\n");
    HOLDS("%0\r\n~0\r\n", "reply 2 %[]\nreply 2 ~[]\n");
}

/* An attribute comes before a value, and is not counted as an element. */
DOMT_TEST(attribute_belongs_to_the_next_value)
{
    HOLDS("|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n", "reply 2 |2 +[ttl] :3 $[a]\n");
    HOLDS("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:5\r\n|0\r\n:6\r\n:7\r\n",
          "reply 2 *2 |2 +[a] *1 :1 :5 |[] :6\nreply 0 :7\n");
    HOLDS("|1\r\n+a\r\n:1\r\n*1\r\n:2\r\n*1\r\n:3\r\n",
          "reply 2 |2 +[a] :1 *1 :2\nreply 0 *1 :3\n");
}

DOMT_TEST(push_is_decoded_as_notice)
{
    HOLDS(">2\r\n+message\r\n$1\r\na\r\n+OK\r\n", "push 1 >2 +[message] $[a]\nreply 0 +[OK]\n");
    HOLDS(">1\r\n#t\r\n", "push 2 >1 #1\n");
    HOLDS("*1\r\n>1\r\n:1\r\n", "reply 2 *1 >1 :1\n");
    domt_resp_expect_trace(&subscriber, "*1\r\n:1\r\n:2\r\n", 12, "push 0 *1 :1\npush 0 :2\n");
}

DOMT_TEST(wrong_replies_end_the_connection)
{
    REFUSED("PING\r\n");
    REFUSED(":+5\r\n");
    REFUSED(":05\r\n");
    REFUSED(":-0\r\n");
    REFUSED(":-\r\n");
    REFUSED(":\r\n");
    REFUSED(":9223372036854775808\r\n");
    REFUSED("+a\n");
    REFUSED("+a\nb\r\n");
    REFUSED("+a\rb\r\n");
    REFUSED("$-2\r\n");
    REFUSED("$?\r\n");
    REFUSED("*?\r\n");
    REFUSED("*-2\r\n");
    REFUSED("%-1\r\n");
    REFUSED("$2147483648\r\n");
    REFUSED("*2147483648\r\n");
    REFUSED("$1\r\nab\r\n");
    REFUSED("$1\r\na\n\n");
    REFUSED("$1\r\na\rx");
    REFUSED("#x\r\n");
    REFUSED("#\r\n");
    REFUSED("_x\r\n");
    REFUSED(",\r\n");
    REFUSED(",1x\r\n");
    REFUSED(",-\r\n");
    REFUSED("(\r\n");
    REFUSED("(1.5\r\n");
    REFUSED("=3\r\ntxt\r\n");
    HOLDS(":1\r\nx", "reply 0 :1\nEPROTO\n");
}

DOMT_TEST(end_of_stream_within_reply_is_error)
{
    HOLDS("*2\r\n:1\r\n", "EPIPE\n");
    HOLDS("$100000\r\nabc", "EPIPE\n");
    HOLDS("+", "EPIPE\n");
}

DOMT_TEST(nesting_of_replies_is_limited)
{
    static const domus_resp_options two = {.role = DOMUS_ROLE_CLIENT, .nesting_max = 2};
    char deep[200] = "";

    for (int i = 0; i < 32; i++)
        memcpy(deep + 4 * i, "*1\r\n", 5);
    memcpy(deep + 128, ":1\r\n", 5);
    ck_assert_int_eq(
        strncmp(domt_resp_trace_decoding(&client, deep, 132, 0, 0), "reply 0 *1 *1", 13), 0);
    memcpy(deep + 128, "*1\r\n:1\r\n", 9);
    ck_assert_str_eq(domt_resp_trace_decoding(&client, deep, 136, 0, 0), "EPROTO\n");
    domt_resp_expect_trace(&two, "*1\r\n*2\r\n*0\r\n:1\r\n", 16, "reply 0 *1 *2 *[] :1\n");
    domt_resp_expect_trace(&two, "*1\r\n*1\r\n*1\r\n", 12, "EPROTO\n");
}

DOMT_TEST(limits_of_replies_hold)
{
    static const domus_resp_options small = {.role = DOMUS_ROLE_CLIENT, .bulk_max = 3};
    static const domus_resp_options all = {.role = DOMUS_ROLE_CLIENT, .message_max = 65536};
    size_t size = 70000;
    char *bytes = malloc(size);

    domt_resp_expect_trace(&small, "$3\r\nabc\r\n$4\r\n", 13, "reply 0 $[abc]\nEPROTO\n");
    domt_resp_expect_trace(&all, "*9\r\n$65536\r\n", 12, "EPROTO\n");
    memcpy(bytes, "*20000\r\n", 8);
    for (size_t i = 8; i + 4 <= size; i += 4)
        memcpy(bytes + i, ":1\r\n", 4);
    ck_assert_str_eq(domt_resp_trace_decoding(&all, bytes, size, 0, 1000), "EPROTO\n");
    ck_assert_str_eq(domt_resp_trace_decoding(&all, bytes, size, 0, 0), "EPROTO\n");
    memset(bytes, 'a', size);
    bytes[0] = '+';
    ck_assert_str_eq(domt_resp_trace_decoding(&client, bytes, size, 0, 0), "EMSGSIZE\n");
    ck_assert_str_eq(domt_resp_trace_decoding(&client, bytes, size, 0, 5000), "EMSGSIZE\n");
    free(bytes);
}

/* An array of a long string, many integers, and a long string is decoded in pieces of each size. */
DOMT_TEST(long_replies_are_decoded_same_in_all_pieces)
{
    static const size_t sizes[] = {10, 16360, 30000, 65530, 150000};
    static const size_t cuts[] = {1, 3, 6, 7, 16, 17, 18, 19, 20, 5000, 16384, 65535, 65536};
    size_t room = 500000;
    char *bytes = malloc(room);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = (size_t)snprintf(bytes, room, "*202\r\n$%zu\r\n", sizes[i]);
        memset(bytes + size, '\r', sizes[i]);
        size += sizes[i];
        memcpy(bytes + size, "\r\n", 2);
        size += 2;
        for (int n = 0; n < 200; n++)
            size += (size_t)snprintf(bytes + size, room - size, ":%d\r\n", n);
        size_t head = (size_t)snprintf(bytes + size, room - size, "$%zu\r\n", 2 * sizes[i]);
        size += head;
        memset(bytes + size, '\n', 2 * sizes[i]);
        size += 2 * sizes[i];
        memcpy(bytes + size, "\r\n+OK\r\n", 7);
        size += 7;
        const char *whole = domt_resp_trace_decoding(&client, bytes, size, 0, 0);
        ck_assert_int_eq(strncmp(whole, "reply 0 *202 $[", 15), 0);
        ck_assert_ptr_nonnull(strstr(whole, "reply 0 +[OK]\n"));
        for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
            ck_assert_str_eq(domt_resp_trace_decoding(&client, bytes, size, cuts[c], 0), whole);
            ck_assert_str_eq(domt_resp_trace_decoding(&client, bytes, size, cuts[c], 10007), whole);
        }
    }
    free(bytes);
}

DOMT_TEST(reader_skips_elements)
{
    domus_slice bytes;
    domus_resp_value value;
    static const char text[] = "*3\r\n|1\r\n+a\r\n:1\r\n%1\r\n+b\r\n*1\r\n:2\r\n:3\r\n:4\r\n:5\r\n";

    ck_assert_int_eq(domus_slice_copy(text, sizeof text - 1, &bytes), 0);
    domus_resp_reader reader = {bytes, 0};
    ck_assert_int_eq(domus_resp_read(&reader, &value), 1);
    ck_assert_int_eq(domus_resp_skip(&reader, &value), 0);
    ck_assert_int_eq(domus_resp_read(&reader, &value), 1);
    ck_assert_int_eq(value.integer, 5);
    ck_assert_int_eq(domus_resp_read(&reader, &value), 0);
    reader = (domus_resp_reader){bytes, 0};
    reader.bytes.size -= 5;
    ck_assert_int_eq(domus_resp_read(&reader, &value), 1);
    reader.bytes.size -= 4;
    ck_assert_int_lt(domus_resp_skip(&reader, &value), 0);
    domus_slice_free(bytes);
}

DOMT_TEST(reader_stays_within_its_bytes)
{
    domus_slice bytes;
    domus_resp_value value;

    ck_assert_int_eq(domus_slice_copy("$2\r\nab\r\n", 8, &bytes), 0);
    for (uint32_t size = 1; size < 8; size++) {
        domus_resp_reader reader = {{bytes.page, bytes.offset, size}, 0};
        ck_assert_int_lt(domus_resp_read(&reader, &value), 0);
        ck_assert_uint_eq(reader.at, 0);
    }
    domus_slice_free(bytes);
}

DOMT_SUITE(60)
