/* The bytes that a peer of RESP receives: replies in both versions, commands, errors, and doubles
 * in any locale. */
#include "tests/resp/trace.h"
#include "tests/support/comma.h"
#include "tests/support/suite.h"

#include <domus/resp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes that a peer of RESP receives: replies in both versions, commands, and errors. */

static domt_codec resp;

static void set_version_of_connection(uint32_t version)
{
    domus_resp_builder builder = {0};
    domus_resp_change answer = {.version = version};

    domus_resp_add_simple(&builder, "hello");
    ck_assert_int_eq(domus_resp_end(&builder, &answer.reply), 0);
    ck_assert_str_eq(domt_resp_message_to_bytes(&resp, &domus_resp_change_type, &answer),
                     "+hello\r\n");
    domus_resp_change_type.release(&answer);
}

static void make_kit_of_stage(void)
{
    domt_resp_make_kit(&resp, NULL);
}

static void free_kit_of_stage(void)
{
    domt_codec_stop(&resp);
}

#define SENDS(type, payload, expected)                                                             \
    ck_assert_str_eq(domt_resp_message_to_bytes(&resp, &domus_resp_##type##_type, payload),        \
                     expected)

DOMT_TEST(common_replies_are_encoded)
{
    domus_slice slice;

    make_kit_of_stage();
    SENDS(ok, NULL, "+OK\r\n");
    SENDS(null, NULL, "$-1\r\n");
    SENDS(null_array, NULL, "*-1\r\n");
    SENDS(integer, &(domus_resp_integer){0}, ":0\r\n");
    SENDS(integer, &(domus_resp_integer){-10}, ":-10\r\n");
    SENDS(integer, &(domus_resp_integer){123}, ":123\r\n");
    SENDS(integer, &(domus_resp_integer){INT64_MIN}, ":-9223372036854775808\r\n");
    SENDS(integer, &(domus_resp_integer){INT64_MAX}, ":9223372036854775807\r\n");
    SENDS(simple, &(domus_resp_simple){"PONG"}, "+PONG\r\n");
    SENDS(error, &(domus_resp_error){"ERR a\r\nb"}, "-ERR a  b\r\n");
    domus_resp_error cut = domus_resp_error_text("ERR %0200d", 7);
    ck_assert_uint_eq(strlen(domt_resp_message_to_bytes(&resp, &domus_resp_error_type, &cut)), 131);
    cut = domus_resp_error_text("ERR unknown command '%s'", "x");
    SENDS(error, &cut, "-ERR unknown command 'x'\r\n");
    SENDS(short, &(domus_resp_short){0}, "$0\r\n\r\n");
    SENDS(short, (&(domus_resp_short){3, "abc"}), "$3\r\nabc\r\n");
    ck_assert_int_eq(domus_slice_copy("hello world", 11, &slice), 0);
    ck_assert_str_eq(domt_resp_message_to_bytes(&resp, &domus_slice_type, &slice),
                     "$11\r\nhello world\r\n");
    domus_slice_free(slice);
    slice = (domus_slice){NULL, 0, 0};
    ck_assert_str_eq(domt_resp_message_to_bytes(&resp, &domus_slice_type, &slice), "$0\r\n\r\n");
    set_version_of_connection(3);
    SENDS(null, NULL, "_\r\n");
    SENDS(null_array, NULL, "_\r\n");
    set_version_of_connection(2);
    SENDS(null, NULL, "$-1\r\n");
    free_kit_of_stage();
}

DOMT_TEST(long_bulk_string_is_sent)
{
    static char bytes[5000];
    domus_slice slice;

    make_kit_of_stage();
    memset(bytes, 'x', sizeof bytes);
    for (uint32_t size = 2040; size <= 2060; size++) {
        char head[32];
        ck_assert_int_eq(domus_slice_copy(bytes, size, &slice), 0);
        const char *sent = domt_resp_message_to_bytes(&resp, &domus_slice_type, &slice);
        int length = snprintf(head, sizeof head, "$%u\r\n", size);
        ck_assert_uint_eq(strlen(sent), (size_t)length + size + 2);
        ck_assert_int_eq(strncmp(sent, head, (size_t)length), 0);
        ck_assert_str_eq(sent + strlen(sent) - 3, "x\r\n");
        domus_slice_free(slice);
    }
    free_kit_of_stage();
}

/* Build a reply with one value of each kind, for this version of RESP. */
static domus_resp_reply build_reply_of_all_kinds(uint8_t version)
{
    domus_resp_builder b = {.version = version};
    domus_resp_reply reply;

    domus_resp_add_array(&b, 13);
    domus_resp_add_simple(&b, "a\nb");
    domus_resp_add_error(&b, "ERR %d", 1);
    domus_resp_add_integer(&b, -5);
    domus_resp_add_bulk(&b, "b\0c", 3);
    domus_resp_add_null(&b);
    domus_resp_add_boolean(&b, true);
    domus_resp_add_boolean(&b, false);
    domus_resp_add_double(&b, 0.1);
    domus_resp_add_big_number(&b, "-123456789012345678901");
    domus_resp_add_verbatim(&b, "txt", "v\r\n", 3);
    domus_resp_add_map(&b, 1);
    domus_resp_add_bulk(&b, "k", 1);
    domus_resp_add_set(&b, 1);
    domus_resp_add_integer(&b, 1);
    domus_resp_add_push(&b, 0);
    domus_resp_add_array(&b, 0);
    ck_assert_int_eq(domus_resp_end(&b, &reply), 0);
    return reply;
}

/* Check the bytes that are sent for a reply; a zero byte is written as a dot in `expected`. */
static void expect_bytes_sent_for_reply(const domus_resp_reply *reply, const char *expected)
{
    size_t size;

    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, DOMUS_NO_ID, &domus_resp_reply_type, reply),
                     0);
    const char *sent = domus_stage_kit_output(resp.kit, &size);
    char *copy = malloc(size + 1);
    for (size_t i = 0; i <= size; i++)
        copy[i] = i == size ? '\0' : sent[i] == '\0' ? '.' : sent[i];
    ck_assert_str_eq(copy, expected);
    free(copy);
    domus_stage_kit_clear(resp.kit);
}

#define ALL_2                                                                                      \
    "*13\r\n+a b\r\n-ERR 1\r\n:-5\r\n$3\r\nb.c\r\n$-1\r\n:1\r\n:0\r\n$3\r\n0.1\r\n"                \
    "$22\r\n-123456789012345678901\r\n$3\r\nv\r\n\r\n*2\r\n$1\r\nk\r\n*1\r\n:1\r\n*0\r\n*0\r\n"
#define ALL_3                                                                                      \
    "*13\r\n+a b\r\n-ERR 1\r\n:-5\r\n$3\r\nb.c\r\n_\r\n#t\r\n#f\r\n,0.1\r\n"                       \
    "(-123456789012345678901\r\n=7\r\ntxt:v\r\n\r\n%1\r\n$1\r\nk\r\n~1\r\n:1\r\n>0\r\n*0\r\n"

DOMT_TEST(resp_2_gets_replies_in_its_own_types)
{
    domus_resp_reply for_2 = build_reply_of_all_kinds(2);
    domus_resp_reply for_3 = build_reply_of_all_kinds(3);
    domus_resp_reply for_all = build_reply_of_all_kinds(0);

    make_kit_of_stage();
    ck_assert_int_eq(for_2.form, DOMUS_RESP_EXACT);
    expect_bytes_sent_for_reply(&for_2, ALL_2);
    expect_bytes_sent_for_reply(&for_3, ALL_2);
    expect_bytes_sent_for_reply(&for_all, ALL_2);
    set_version_of_connection(3);
    expect_bytes_sent_for_reply(&for_2, ALL_2);
    expect_bytes_sent_for_reply(&for_3, ALL_3);
    expect_bytes_sent_for_reply(&for_all, ALL_3);
    free_kit_of_stage();
    domus_slice_free(for_2.bytes);
    domus_slice_free(for_3.bytes);
    domus_slice_free(for_all.bytes);
}

/* A proxy sends the attributes and long errors of another server on. */
DOMT_TEST(resp_2_gets_no_attributes)
{
    static const char text[] = "*2\r\n|1\r\n+a\r\n%1\r\n:1\r\n:2\r\n:3\r\n!6\r\nERR\r\nb\r\n";
    domus_resp_reply reply = {.values = 1, .form = DOMUS_RESP_ONLY_3};

    make_kit_of_stage();
    ck_assert_int_eq(domus_slice_copy(text, sizeof text - 1, &reply.bytes), 0);
    expect_bytes_sent_for_reply(&reply, "*2\r\n:3\r\n-ERR  b\r\n");
    reply.bytes.size -= 1;
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, DOMUS_NO_ID, &domus_resp_reply_type, &reply),
                     -EINVAL);
    ck_assert_str_eq(domt_codec_take_output(&resp), "");
    domus_slice_free(reply.bytes);
    free_kit_of_stage();
}

DOMT_TEST(push_is_encoded_for_both_versions)
{
    domus_resp_builder b = {0};
    domus_resp_reply push;

    make_kit_of_stage();
    domus_resp_add_push(&b, 2);
    domus_resp_add_bulk(&b, "message", 7);
    domus_resp_add_bulk(&b, "a", 1);
    ck_assert_int_eq(domus_resp_end(&b, &push), 0);
    ck_assert_int_eq(push.form, DOMUS_RESP_PUSHED);
    SENDS(push, &push, "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n");
    set_version_of_connection(3);
    SENDS(push, &push, ">2\r\n$7\r\nmessage\r\n$1\r\na\r\n");
    domus_slice_free(push.bytes);
    free_kit_of_stage();
}

DOMT_TEST(doubles_are_short_and_exact)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, ",0\r\n"},
                {3.141, ",3.141\r\n"},
                {-1e300, ",-1e+300\r\n"},
                {1.0 / 3, ",0.3333333333333333\r\n"},
                {INFINITY, ",inf\r\n"},
                {-INFINITY, ",-inf\r\n"},
                {NAN, ",nan\r\n"},
                {1e15, ",1e+15\r\n"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_resp_builder b = {0};
        domus_resp_reply reply;
        ck_assert_int_eq(domus_resp_add_double(&b, rows[i].value), 0);
        ck_assert_int_eq(domus_resp_end(&b, &reply), 0);
        ck_assert_msg(domus_slice_equals(reply.bytes, rows[i].text, strlen(rows[i].text)), "%s",
                      rows[i].text);
        domus_slice_free(reply.bytes);
    }
}

/* The elements of an array may be added before their count is known. */
DOMT_TEST(parts_are_joined_to_one_reply)
{
    domus_resp_builder elements = {0};
    domus_resp_builder whole = {.version = 2};
    domus_resp_reply part;
    domus_resp_reply reply;

    make_kit_of_stage();
    domus_resp_add_integer(&elements, 1);
    domus_resp_add_map(&elements, 0);
    domus_resp_add_null(&elements);
    ck_assert_int_eq(domus_resp_end(&elements, &part), 0);
    ck_assert_uint_eq(part.values, 3);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, DOMUS_NO_ID, &domus_resp_reply_type, &part),
                     -EINVAL);
    domus_resp_add_array(&whole, part.values);
    domus_resp_add_reply(&whole, &part);
    ck_assert_int_eq(domus_resp_end(&whole, &reply), 0);
    SENDS(reply, &reply, "*3\r\n:1\r\n*0\r\n$-1\r\n");
    domus_slice_free(reply.bytes);
    domus_resp_add_array(&whole, part.values);
    whole.version = 0;
    domus_resp_add_reply(&whole, &part);
    ck_assert_int_eq(domus_resp_end(&whole, &reply), 0);
    SENDS(reply, &reply, "*3\r\n:1\r\n*0\r\n$-1\r\n");
    set_version_of_connection(3);
    SENDS(reply, &reply, "*3\r\n:1\r\n%0\r\n_\r\n");
    domus_slice_free(reply.bytes);
    domus_slice_free(part.bytes);
    free_kit_of_stage();
}

DOMT_TEST(builder_counts_elements_and_is_limited)
{
    domus_resp_builder b = {.bytes = {.size_max = 10}};
    domus_resp_reply reply;

    domus_resp_add_array(&b, 2);
    domus_resp_add_null(&b);
    ck_assert_int_eq(domus_resp_end(&b, &reply), -EINVAL);
    ck_assert_int_eq(domus_resp_end(&b, &reply), -EINVAL);
    ck_assert_int_eq(domus_resp_add_bulk(&b, "0123456789", 10), -EMSGSIZE);
    ck_assert_int_eq(domus_resp_add_null(&b), -EMSGSIZE);
    ck_assert_int_eq(domus_resp_end(&b, &reply), -EMSGSIZE);
    ck_assert_int_eq(domus_resp_add_simple(&b, "01234567"), -EMSGSIZE);
    domus_resp_drop(&b);
    ck_assert_int_eq(domus_resp_add_big_number(&b, "1x"), -EINVAL);
    ck_assert_int_eq(domus_resp_add_big_number(&b, "-"), -EINVAL);
    ck_assert_int_eq(domus_resp_add_verbatim(&b, "text", "", 0), -EINVAL);
    ck_assert_int_eq(domus_resp_add_simple(&b, "OK"), 0);
    ck_assert_int_eq(domus_resp_end(&b, &reply), 0);
    domus_slice_free(reply.bytes);
}

DOMT_TEST(stage_refuses_wrong_replies)
{
    domus_resp_change version = {.version = 4};
    domus_resp_command none = {.count = 0};

    make_kit_of_stage();
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_packet_type, &version),
                     -EOPNOTSUPP);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_command_type, &none),
                     -EOPNOTSUPP);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_change_type, &version),
                     -EINVAL);
    version.version = 3;
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_change_type, &version),
                     -EINVAL);
    SENDS(null, NULL, "$-1\r\n"); /* the refused change has left the version 2 */
    free_kit_of_stage();
}

/* A command knows the version of its client, whichever of four ways decodes it: within the window,
 * with a table, as a line, or collected. */
DOMT_TEST(commands_know_the_version_of_their_client)
{
    static const char head[] =
        "*1\r\n$4\r\nPING\r\n*9\r\n$1\r\na\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"
        "$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\nPING\r\n*1\r\n$70000\r\n";
    static char body[70002];
    domus_stage_message message;

    memcpy(body + 70000, "\r\n", 2);
    make_kit_of_stage();
    for (uint32_t version = 3; version >= 2; version--) {
        set_version_of_connection(version);
        ck_assert_int_eq(domus_stage_kit_feed(resp.kit, head, sizeof head - 1), 0);
        for (int i = 0; i < 4; i++) {
            if (i == 3)
                ck_assert_int_eq(domus_stage_kit_feed(resp.kit, body, sizeof body), 0);
            ck_assert_int_eq(domus_stage_kit_next(resp.kit, &message), 1);
            ck_assert_uint_eq(((const domus_resp_command *)message.payload)->version, version);
        }
    }
    free_kit_of_stage();
}

DOMT_TEST(commands_are_encoded)
{
    static const domus_resp_options client = {.role = DOMUS_ROLE_CLIENT};
    static char big[70000];
    domus_resp_bytes words[12] = {{"SET", 3}, {"key", 3}, {"", 0}, {"\r\n", 2}};
    domus_resp_command command;

    domt_resp_make_kit(&resp, &client);
    ck_assert_int_eq(domus_resp_command_make(words, 0, &command), -EINVAL);
    ck_assert_int_eq(domus_resp_command_make(words, 4, &command), 0);
    ck_assert_ptr_null(command.table);
    SENDS(command, &command, "*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n$2\r\n\r\n\r\n");
    domus_resp_command_type.release(&command);
    for (int i = 4; i < 12; i++)
        words[i] = (domus_resp_bytes){"x", 1};
    ck_assert_int_eq(domus_resp_command_make(words, 9, &command), 0);
    ck_assert(domus_slice_equals(domus_resp_argument(&command, 8), "x", 1));
    ck_assert(domus_slice_equals(domus_resp_argument(&command, 1), "key", 3));
    domus_resp_command_type.release(&command);
    words[0] = (domus_resp_bytes){big, sizeof big};
    ck_assert_int_eq(domus_resp_command_make(words, 2, &command), 0);
    ck_assert_uint_eq(domus_resp_argument(&command, 0).size, sizeof big);
    ck_assert(domus_slice_equals(domus_resp_argument(&command, 1), "key", 3));
    domus_resp_command_type.release(&command);
    words[0] = words[1] = (domus_resp_bytes){big, 40000};
    ck_assert_int_eq(domus_resp_command_make(words, 5, &command), 0);
    ck_assert(domus_slice_equals(domus_resp_argument(&command, 3), "\r\n", 2));
    domus_resp_command_type.release(&command);
    words[0] = (domus_resp_bytes){"", 0};
    ck_assert_int_eq(domus_resp_command_make(words, 1, &command), 0);
    SENDS(command, &command, "*1\r\n$0\r\n\r\n");
    domus_resp_command none = {.count = 0};
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_command_type, &none), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_ok_type, NULL), -EOPNOTSUPP);
    domt_codec_stop(&resp);
}

static void expect_reply_is_refused(int error, const char *expected)
{
    ck_assert_int_eq(domus_stage_kit_fail(resp.kit, 0, &domus_resp_command_type, error), 0);
    ck_assert_str_eq(domt_codec_take_output(&resp), expected);
}

DOMT_TEST(failed_command_gets_error_reply)
{
    static const domus_resp_options client = {.role = DOMUS_ROLE_CLIENT};

    make_kit_of_stage();
    expect_reply_is_refused(-ENOMEM,
                            "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    expect_reply_is_refused(-ETIMEDOUT, "-ERR timed out\r\n");
    expect_reply_is_refused(-EBUSY, "-BUSY the server is busy, try again later\r\n");
    expect_reply_is_refused(-ENOBUFS, "-BUSY the server is busy, try again later\r\n");
    expect_reply_is_refused(-EPERM, "-NOPERM this command is not allowed\r\n");
    expect_reply_is_refused(-EMSGSIZE, "-ERR the command or its answer is too large\r\n");
    expect_reply_is_refused(-EHOSTDOWN,
                            "-CLUSTERDOWN the node that has to answer cannot be reached\r\n");
    expect_reply_is_refused(-ESTALE, "-TRYAGAIN the actor that has to answer has ended\r\n");
    expect_reply_is_refused(-ENXIO, "-ERR internal error (ENXIO)\r\n");
    expect_reply_is_refused(-54321, "-ERR internal error (unknown)\r\n");
    ck_assert_int_eq(domus_stage_kit_fail(resp.kit, DOMUS_NO_ID, NULL, -ENOMEM), 0);
    ck_assert_str_eq(domt_codec_take_output(&resp), "-OOM out of memory\r\n");
    free_kit_of_stage();
    domt_resp_make_kit(&resp, &client);
    ck_assert_int_eq(domus_stage_kit_fail(resp.kit, DOMUS_NO_ID, NULL, -EPROTO), -EPROTO);
    free_kit_of_stage();
}

/* --- double ----------------------------------------------------------------------------------- */

/* Doubles of RESP are written and read with a point, also in a program whose locale has a comma. */

/* --- doubles ---------------------------------------------------------------------------------- */

static void check_double_is_written_as(double value, const char *text)
{
    domus_resp_builder builder = {0};
    domus_resp_reply reply;
    domus_resp_value read;

    ck_assert_int_eq(domus_resp_add_double(&builder, value), 0);
    ck_assert_int_eq(domus_resp_end(&builder, &reply), 0);
    ck_assert_msg(domus_slice_equals(reply.bytes, text, strlen(text)), "%.*s",
                  (int)reply.bytes.size, domus_slice_data(reply.bytes));
    domus_resp_reader reader = {.bytes = reply.bytes};
    ck_assert_int_eq(domus_resp_read(&reader, &read), 1);
    ck_assert(read.kind == DOMUS_RESP_DOUBLE);
    ck_assert(read.number == value || (isnan(read.number) && isnan(value)));
    domus_slice_free(reply.bytes);
}

DOMT_TEST(doubles_have_a_point_in_every_locale)
{
    char text[8];

    domt_use_locale_with_comma();
    check_double_is_written_as(3.5, ",3.5\r\n");
    check_double_is_written_as(-0.1, ",-0.1\r\n");
    check_double_is_written_as(1.0 / 3, ",0.3333333333333333\r\n");
    check_double_is_written_as(1.5e300, ",1.5e+300\r\n");
    check_double_is_written_as(7, ",7\r\n");
    check_double_is_written_as(NAN, ",nan\r\n");
    check_double_is_written_as(-INFINITY, ",-inf\r\n");
    /* The locale of the program has to be as it was. */
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
}

DOMT_SUITE(60)
