/* The stage of RESP and redis-server: the same bytes get the same answer, and each side understands
 * the other one. */
#include "tests/resp/server.h"
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static domt_codec resp;

/* Answer a command as a server that knows ECHO and PING. */
static void answer_echo_or_ping(const domus_resp_command *command, uint64_t id)
{
    if (domus_resp_is(domus_resp_argument(command, 0), "ECHO")) {
        domus_slice text = domus_resp_argument(command, 1);
        ck_assert_int_eq(domus_stage_kit_encode(resp.kit, id, &domus_slice_type, &text), 0);
    } else {
        ck_assert(domus_resp_is(domus_resp_argument(command, 0), "PING"));
        ck_assert_int_eq(domus_stage_kit_encode(resp.kit, id, &domus_resp_simple_type,
                                                &(domus_resp_simple){"PONG"}),
                         0);
    }
}

static void decode_and_answer_commands(const char *bytes, size_t size)
{
    domus_stage_message message;
    int result;

    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, bytes, size), 0);
    domus_stage_kit_finish(resp.kit);
    while ((result = domus_stage_kit_next(resp.kit, &message)) == 1)
        answer_echo_or_ping(message.payload, message.id);
    if (result < 0)
        ck_assert_int_eq(domus_stage_kit_fail(resp.kit, DOMUS_NO_ID, NULL, result), 0);
}

/* Check that the stage and redis-server answer these bytes in the same way. */
static void check_redis_answers_same(const char *bytes, size_t size)
{
    size_t wanted;
    size_t sent;

    const char *expected = domt_redis_send_and_read_answer(bytes, size, &wanted);
    domt_resp_make_kit(&resp, NULL);
    decode_and_answer_commands(bytes, size);
    const char *output = domus_stage_kit_output(resp.kit, &sent);
    ck_assert_msg(sent == wanted && memcmp(output, expected, sent) == 0,
                  "to %.60s redis-server answers:\n%.200s\nand domus:\n%.200s", bytes, expected,
                  output);
    domt_codec_stop(&resp);
}

#define SAME(bytes) check_redis_answers_same(bytes, sizeof bytes - 1)

DOMT_TEST(commands_get_same_replies_as_from_redis)
{
    if (!domt_redis_start_server())
        return;
    SAME("PING\r\n");
    SAME("ping\n\r\n\nPING\r\n");
    SAME("*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$3\r\n\r\n\0\r\nPING\r\n");
    SAME("*0\r\n*-1\r\n*-9\r\nPING\r\n");
    SAME("ECHO \"\\x41\\x4\\xZZ\\n\\r\\t\\b\\a\\q\\\\\\\"\"\r\n");
    SAME("ECHO 'it\\'s \\n \"'\r\nECHO a\"b c\"\r\nECHO \"\"\r\nECHO ''\n");
    SAME("ECHO \x0b\x0c"
         "a\x0b"
         "b\n \t ECHO \t b \t\r\n");
    SAME("ECHO \"a\"\x0b\n");
    domt_redis_stop_server();
}

DOMT_TEST(protocol_errors_match_redis)
{
    if (!domt_redis_start_server())
        return;
    SAME("*1\n$4\r\nPING\r\n");
    SAME("*01\r\n");
    SAME("*+1\r\n");
    SAME("*-0\r\n");
    SAME("*\r\n");
    SAME("*1x\r\n");
    SAME("*9999999999\r\n");
    SAME("*99999999999999999999999\r\n");
    SAME("*1\r\n$-1\r\n");
    SAME("*1\r\n$+5\r\n");
    SAME("*1\r\n$04\r\nPING\r\n");
    SAME("*1\r\n$\r\n");
    SAME("*1\r\n$536870913\r\n");
    SAME("*1\r\n$18446744073709551620\r\n");
    SAME("*1\r\nX\r\n");
    SAME("*1\r\n\r\n");
    SAME("*2\r\n$4\r\nECHO\r\n*1\r\n");
    SAME("PING\n*1\n\r\n");
    SAME("ECHO \"a\r\n");
    SAME("ECHO \"a\\\r\n");
    SAME("ECHO 'a'b\r\n");
    SAME("ECHO \"a\"'b'\r\n");
    SAME("*1\r\n$4\r\nPIN");
    SAME("PIN");
    char *line = malloc(70000);
    memset(line, 'a', 70000);
    check_redis_answers_same(line, 70000);
    free(line);
    domt_redis_stop_server();
}

/* --- the reply of DEBUG PROTOCOL for each type ----------------------------------------------- */

static void build_reply_of_debug_type(const char *what, domus_resp_builder *b)
{
    if (strcmp(what, "string") == 0)
        domus_resp_add_bulk(b, "Hello World", 11);
    else if (strcmp(what, "integer") == 0)
        domus_resp_add_integer(b, 12345);
    else if (strcmp(what, "double") == 0)
        domus_resp_add_double(b, 3.141);
    else if (strcmp(what, "null") == 0)
        domus_resp_add_null(b);
    else if (strcmp(what, "true") == 0 || strcmp(what, "false") == 0)
        domus_resp_add_boolean(b, what[0] == 't');
    else if (strcmp(what, "verbatim") == 0)
        domus_resp_add_verbatim(b, "txt", "This is a verbatim\nstring", 25);
    else if (strcmp(what, "bignum") == 0)
        domus_resp_add_big_number(b, "1234567999999999999999999999999999999");
    else if (strcmp(what, "array") == 0)
        domus_resp_add_array(b, 3);
    else if (strcmp(what, "set") == 0)
        domus_resp_add_set(b, 3);
    else
        domus_resp_add_map(b, 3);
    for (int i = 0; i < 3 && b->values < 1; i++) {
        domus_resp_add_integer(b, i);
        if (strcmp(what, "map") == 0)
            domus_resp_add_boolean(b, i == 1);
    }
}

static const char *const kinds[] = {"string", "integer", "double",   "null",   "array", "set",
                                    "map",    "true",    "verbatim", "bignum", "false"};

/* Check that the redis-server, when it speaks `version`, sends the same bytes for the type `what`
 * as a stage of that version, also if the stage's reply was built for the other version. */
static void check_redis_sends_same_reply(const char *what, uint32_t version, uint8_t built_for)
{
    domus_resp_builder builder = {.version = built_for};
    domus_resp_change hello = {.version = version};
    char command[100];
    size_t wanted;
    size_t sent;

    snprintf(command, sizeof command, "%sDEBUG PROTOCOL %s\r\n", version == 3 ? "HELLO 3\r\n" : "",
             what);
    const char *expected = domt_redis_send_and_read_answer(command, strlen(command), &wanted);
    if (version == 3) {
        const char *end = strstr(expected, "modules\r\n*0\r\n");
        ck_assert_ptr_nonnull(end);
        wanted -= (size_t)(end + 13 - expected);
        expected = end + 13;
    }
    domt_resp_make_kit(&resp, NULL);
    build_reply_of_debug_type(what, &builder);
    ck_assert_int_eq(domus_resp_end(&builder, &hello.reply), 0);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_change_type, &hello), 0);
    const char *output = domus_stage_kit_output(resp.kit, &sent);
    ck_assert_msg(sent == wanted && memcmp(output, expected, sent) == 0,
                  "%s: redis-server sends:\n%s\nand domus:\n%s", what, expected, output);
    domus_slice_free(hello.reply.bytes);
    domt_codec_stop(&resp);
}

DOMT_TEST(replies_of_both_versions_match_redis)
{
    if (!domt_redis_start_server())
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        check_redis_sends_same_reply(kinds[i], 2, 2);
        check_redis_sends_same_reply(kinds[i], 2, 3);
        check_redis_sends_same_reply(kinds[i], 3, 3);
    }
    domt_redis_stop_server();
}

/* --- a client --------------------------------------------------------------------------------- */

static void ask_redis_by_command_line(const char *line)
{
    domus_resp_bytes words[8];
    domus_resp_command command;
    char copy[200];
    char *next = NULL;
    uint32_t count = 0;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &next); word != NULL; word = strtok_r(NULL, " ", &next))
        words[count++] = (domus_resp_bytes){word, strlen(word)};
    ck_assert_int_eq(domus_resp_command_make(words, count, &command), 0);
    ck_assert_int_eq(
        domus_stage_kit_encode(resp.kit, DOMUS_NO_ID, &domus_resp_command_type, &command), 0);
    domus_resp_command_type.release(&command);
}

DOMT_TEST(client_decodes_replies_of_redis)
{
    static const domus_resp_options client = {.role = DOMUS_ROLE_CLIENT};
    static const char *const asked[] = {"SET key value",
                                        "GET key",
                                        "GET none",
                                        "LPUSH list a b",
                                        "LRANGE list 0 -1",
                                        "GET list",
                                        "HELLO 3",
                                        "DEBUG PROTOCOL map",
                                        "DEBUG PROTOCOL push",
                                        "DEBUG PROTOCOL attrib",
                                        "DEBUG PROTOCOL double",
                                        "GET none"};
    static const char *const told[] = {
        "reply 0 +[OK]",
        "reply 0 $[value]",
        "reply 0 _",
        "reply 0 :2",
        "reply 0 *2 $[b] $[a]",
        "reply 0 -[",
        "reply 2 %14 $[server] $[redis]",
        "reply 2 %6 :0 #0 :1 #1 :2 #0",
        "push 1 >2 $[server-cpu-usage] :42",
        "reply 0 $[Some real reply following the push reply]",
        "reply 2 |2 $[key-popularity] *2 $[key:123] :90 $[Some real reply following the attribute]",
        "reply 2 ,3.141",
        "reply 2 _"};
    domus_stage_message message;
    char line[2000];
    size_t size;

    if (!domt_redis_start_server())
        return;
    domt_resp_make_kit(&resp, &client);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        ask_redis_by_command_line(asked[i]);
    const char *bytes = domus_stage_kit_output(resp.kit, &size);
    bytes = domt_redis_send_and_read_answer(bytes, size, &size);
    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, bytes, size), 0);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        ck_assert_int_eq(domus_stage_kit_next(resp.kit, &message), 1);
        domt_resp_print_message(&message, line, sizeof line);
        ck_assert_msg(strncmp(line, told[i], strlen(told[i])) == 0, "%s, not %s", line, told[i]);
    }
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &message), 0);
    domt_codec_stop(&resp);
    domt_redis_stop_server();
}

DOMT_SUITE(60)
