/* Answers that change the connection: replies are switched off, or the peer is known from then
 * on. */
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static domt_codec resp;

static void set_up(void)
{
    domt_resp_start(&resp, NULL);
}

static void tear_down(void)
{
    domt_codec_stop(&resp);
}

/* Feed commands, and answer each with its first word; "off", "skip", "on", "known" and "stranger"
 * change the connection. */
static void answer_commands(const char *bytes)
{
    domus_stage_message message;
    int result;

    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, bytes, strlen(bytes)), 0);
    while ((result = domus_stage_kit_next(resp.kit, &message)) == 1) {
        domus_slice word = domus_resp_argument(message.payload, 0);
        domus_resp_change change = {.answering = domus_resp_is(word, "OFF")    ? DOMUS_RESP_SILENT
                                                 : domus_resp_is(word, "SKIP") ? DOMUS_RESP_SKIPS
                                                 : domus_resp_is(word, "ON")   ? DOMUS_RESP_ANSWERS
                                                                             : DOMUS_RESP_AS_BEFORE,
                                    .peer = domus_resp_is(word, "KNOWN") ? DOMUS_RESP_PEER_KNOWN
                                            : domus_resp_is(word, "STRANGER")
                                                ? DOMUS_RESP_PEER_STRANGER
                                                : DOMUS_RESP_PEER_AS_BEFORE};
        bool is_change = change.answering != DOMUS_RESP_AS_BEFORE ||
                         change.peer != DOMUS_RESP_PEER_AS_BEFORE || domus_resp_is(word, "CHANGE");
        domus_resp_builder builder = {0};
        int error;
        domus_resp_add_simple(&builder, "changed");
        ck_assert_int_eq(domus_resp_end(&builder, &change.reply), 0);
        if (is_change)
            error = domus_stage_kit_encode(resp.kit, message.id, &domus_resp_change_type, &change);
        else if (domus_resp_is(word, "PUSH"))
            error =
                domus_stage_kit_encode(resp.kit, message.id, &domus_resp_push_type, &change.reply);
        else if (domus_resp_is(word, "FAIL"))
            error = domus_stage_kit_fail(resp.kit, message.id, &domus_resp_command_type, -EBUSY);
        else
            error = domus_stage_kit_encode(resp.kit, message.id, &domus_slice_type, &word);
        ck_assert_int_eq(error, 0);
        domus_resp_change_type.release(&change);
    }
    if (result < 0)
        ck_assert_int_eq(domus_stage_kit_fail(resp.kit, DOMUS_NO_ID, NULL, result), 0);
}

#define CONVERSES(bytes, expected)                                                                 \
    do {                                                                                           \
        answer_commands(bytes);                                                                    \
        ck_assert_str_eq(domt_codec_sent(&resp), expected);                                        \
    } while (0)

DOMT_TEST(a_silenced_connection_gets_no_answers)
{
    set_up();
    CONVERSES("a\n*1\r\n$1\r\nb\r\n", "$1\r\na\r\n$1\r\nb\r\n");
    CONVERSES("off\na\n*1\r\n$1\r\nb\r\nfail\nchange\n", "");
    CONVERSES("push\n", "+changed\r\n");
    CONVERSES("skip\na\nb\n", ""); /* replies are off already */
    CONVERSES("on\na\n", "+changed\r\n$1\r\na\r\n");
    CONVERSES("skip\na\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\n*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n", "$1\r\nb\r\n");
    CONVERSES("skip\nfail\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\nskip\na\nb\n", "$1\r\nb\r\n");
    /* SKIP counts an empty command, as redis-server does */
    CONVERSES("skip\n\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\n*0\r\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\non\nb\n", "+changed\r\n$1\r\nb\r\n");
    CONVERSES("off\n*x\r\n", "");
    tear_down();
}

/* The answer to the first command after SKIP is not sent, in whatever order the answers are
 * given. */
DOMT_TEST(a_skipped_answer_is_that_of_its_command)
{
    domus_resp_change skip = {.answering = DOMUS_RESP_SKIPS};
    domus_stage_message first, second;
    uint64_t id;

    set_up();
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_change_type, &skip), 0);
    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, "a\nb\n", 4), 0);
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &first), 1);
    id = first.id;
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &second), 1);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, second.id, &domus_resp_ok_type, NULL), 0);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, id, &domus_resp_null_type, NULL), 0);
    ck_assert_str_eq(domt_codec_sent(&resp), "+OK\r\n");
    tear_down();
}

DOMT_TEST(strangers_have_limits_of_their_own)
{
    static const domus_resp_options guarded = {.stranger_arguments_max = 2, .stranger_bulk_max = 5};
    static const struct {
        const char *bytes, *sent;
    } refused[] = {
        {"*3\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"},
        {"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
         "-ERR Protocol error: unauthenticated multibulk length\r\n"},
        {"*1\r\n$6\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n"},
        {"*1\r\n$6\r\nabcdef\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n"},
        {"*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
        {"*1\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
    };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        domt_resp_start(&resp, &guarded);
        CONVERSES("*2\r\n$1\r\na\r\n$5\r\nabcde\r\n", "$1\r\na\r\n");
        CONVERSES("a long line with many words\n", "$1\r\na\r\n");
        CONVERSES(refused[i].bytes, refused[i].sent);
        tear_down();
    }
    domt_resp_start(&resp, &guarded);
    CONVERSES("known\n", "+changed\r\n");
    CONVERSES("*3\r\n$6\r\nabcdef\r\n$1\r\nb\r\n$1\r\nc\r\n", "$6\r\nabcdef\r\n");
    CONVERSES("change\n*3\r\n$1\r\nA\r\n$1\r\nb\r\n$1\r\nc\r\n", "+changed\r\n$1\r\nA\r\n");
    CONVERSES("stranger\n", "+changed\r\n");
    CONVERSES(refused[0].bytes, refused[0].sent);
    tear_down();
}

DOMT_SUITE(60)
