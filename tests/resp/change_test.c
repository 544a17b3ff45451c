/* A connection of RESP that changes: replies are switched off, the peer is known from then on, and
 * each allocation fails in turn. */
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Answers that change a connection of RESP: replies are switched off, or the peer is known from
 * then on. */

static domt_codec resp;

static void make_kit_of_stage(void)
{
    domt_resp_make_kit(&resp, NULL);
}

static void free_kit_of_stage(void)
{
    domt_codec_stop(&resp);
}

/* Feed commands, and answer each with its first word; the words "off", "skip", "on", "known" and
 * "stranger" change the connection. */
static void answer_commands_with_first_word(const char *bytes)
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
        answer_commands_with_first_word(bytes);                                                    \
        ck_assert_str_eq(domt_codec_take_output(&resp), expected);                                 \
    } while (0)

DOMT_TEST(silenced_connection_gets_no_replies)
{
    make_kit_of_stage();
    CONVERSES("a\n*1\r\n$1\r\nb\r\n", "$1\r\na\r\n$1\r\nb\r\n");
    CONVERSES("off\na\n*1\r\n$1\r\nb\r\nfail\nchange\n", "");
    CONVERSES("push\n", "+changed\r\n");
    CONVERSES("skip\na\nb\n", ""); /* replies are off already, so SKIP changes nothing */
    CONVERSES("on\na\n", "+changed\r\n$1\r\na\r\n");
    CONVERSES("skip\na\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\n*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n", "$1\r\nb\r\n");
    CONVERSES("skip\nfail\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\nskip\na\nb\n", "$1\r\nb\r\n");
    /* SKIP skips the reply to an empty command, as redis-server does. */
    CONVERSES("skip\n\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\n*0\r\nb\n", "$1\r\nb\r\n");
    CONVERSES("skip\non\nb\n", "+changed\r\n$1\r\nb\r\n");
    CONVERSES("off\n*x\r\n", "");
    free_kit_of_stage();
}

/* The answer to the first command after SKIP is not sent, in whatever order the commands are
 * answered. */
DOMT_TEST(skipped_reply_belongs_to_its_command)
{
    domus_resp_change skip = {.answering = DOMUS_RESP_SKIPS};
    domus_stage_message first, second;
    uint64_t id;

    make_kit_of_stage();
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, 0, &domus_resp_change_type, &skip), 0);
    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, "a\nb\n", 4), 0);
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &first), 1);
    id = first.id;
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &second), 1);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, second.id, &domus_resp_ok_type, NULL), 0);
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, id, &domus_resp_null_type, NULL), 0);
    ck_assert_str_eq(domt_codec_take_output(&resp), "+OK\r\n");
    free_kit_of_stage();
}

DOMT_TEST(unknown_peers_have_own_limits)
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
        domt_resp_make_kit(&resp, &guarded);
        CONVERSES("*2\r\n$1\r\na\r\n$5\r\nabcde\r\n", "$1\r\na\r\n");
        CONVERSES("a long line with many words\n", "$1\r\na\r\n");
        CONVERSES(refused[i].bytes, refused[i].sent);
        free_kit_of_stage();
    }
    domt_resp_make_kit(&resp, &guarded);
    CONVERSES("known\n", "+changed\r\n");
    CONVERSES("*3\r\n$6\r\nabcdef\r\n$1\r\nb\r\n$1\r\nc\r\n", "$6\r\nabcdef\r\n");
    CONVERSES("change\n*3\r\n$1\r\nA\r\n$1\r\nb\r\n$1\r\nc\r\n", "+changed\r\n$1\r\nA\r\n");
    CONVERSES("stranger\n", "+changed\r\n");
    CONVERSES(refused[0].bytes, refused[0].sent);
    free_kit_of_stage();
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Each allocation fails in turn: the stage of RESP returns -ENOMEM, leaks no memory, and goes on
 * when there is memory again. And memory is only allocated for bytes that have come. */

static void fail_each_allocation_of_decoding(const domus_resp_options *options, const char *bytes,
                                             size_t size, size_t step)
{
    domt_codec_work work = {{&domus_resp_stage, options}, NULL, bytes, size, step};

    domt_fail_each_allocation(domt_codec_decode_as_work_says, &work);
}

static const domus_resp_options client = {.role = DOMUS_ROLE_CLIENT};

DOMT_TEST(allocation_failure_while_decoding_is_returned)
{
    static char bytes[100000];
    static const char many[] =
        "*10\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\n"
        "f\r\n$1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n";
    static const char quoted[] = "SET 'a b' \"c\" d e f g h i j k l\r\n";
    size_t size = (size_t)snprintf(bytes, sizeof bytes, "*2\r\n$3\r\nGET\r\n$80000\r\n") + 80002;

    memcpy(bytes + size - 2, "\r\n", 2);
    fail_each_allocation_of_decoding(NULL, many, sizeof many - 1, 1000);
    fail_each_allocation_of_decoding(NULL, many, sizeof many - 1, 7);
    fail_each_allocation_of_decoding(NULL, quoted, sizeof quoted - 1, 1000);
    fail_each_allocation_of_decoding(NULL, bytes, size, 3000);
    fail_each_allocation_of_decoding(NULL, bytes, size, sizeof bytes);
    fail_each_allocation_of_decoding(&client, bytes, size, 3000);
    fail_each_allocation_of_decoding(&client, "*2\r\n:1\r\n:2\r\n>0\r\n", 16, 3);
}

static int build_and_encode_reply(void *context)
{
    domus_pipeline_stage stages[2] = {{&domus_resp_stage, NULL}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_resp_builder b = {0};
    domus_resp_reply reply;
    domus_stage_kit *kit;
    int result = domus_stage_kit_new(&pipeline, &kit);

    if (result != 0)
        return result;
    domus_resp_add_map(&b, 20);
    for (int i = 0; i < 20; i++) {
        domus_resp_add_bulk(&b, "a key of some bytes", 19);
        domus_resp_add_double(&b, i);
    }
    result = domus_resp_end(&b, &reply);
    if (result == 0) {
        result = domus_stage_kit_encode(kit, 0, &domus_resp_reply_type, &reply);
        domus_slice_free(reply.bytes);
    }
    domus_stage_kit_free(kit);
    return result;
}

static int make_command_of_size(void *context)
{
    domus_resp_bytes words[10];
    domus_resp_command command;

    for (int i = 0; i < 10; i++)
        words[i] = (domus_resp_bytes){"0123456789012345678901234567890123456789", 40};
    int result = domus_resp_command_make(words, 10, &command);
    if (result == 0)
        domus_resp_command_type.release(&command);
    return result;
}

DOMT_TEST(allocation_failure_while_encoding_is_returned)
{
    domt_fail_each_allocation(build_and_encode_reply, NULL);
    domt_fail_each_allocation(make_command_of_size, NULL);
}

static size_t measure_greatest_memory_block(const domus_resp_options *options, const char *bytes)
{
    domt_codec_work work = {{&domus_resp_stage, options}, NULL, bytes, strlen(bytes), 1000};

    return domt_largest_allocated_block(domt_codec_decode_as_work_says, &work);
}

DOMT_TEST(no_memory_is_taken_for_announced_sizes)
{
    ck_assert_uint_lt(measure_greatest_memory_block(NULL, "*1048576\r\n$536870912\r\nabc"), 4096);
    ck_assert_uint_lt(
        measure_greatest_memory_block(NULL, "*1048576\r\n$1\r\na\r\n$536870912\r\nabc"), 4096);
    ck_assert_uint_lt(measure_greatest_memory_block(&client, "*2147483647\r\n$536870912\r\nabc"),
                      4096);
    ck_assert_uint_lt(measure_greatest_memory_block(&client, "%2147483647\r\n%1000000\r\n"), 4096);
}

DOMT_TEST(incomplete_commands_share_a_budget)
{
    static const char body[400002] = {[400000] = '\r', [400001] = '\n'};
    domus_budget budget = {0};
    const domus_resp_options options = {.role = DOMUS_ROLE_SERVER, .budget = &budget};

    domt_check_gathered_share_budget(&(domt_gathered){.stage = {&domus_resp_stage, &options},
                                                      .budget = &budget,
                                                      .head = "*2\r\n$3\r\nSET\r\n$400000\r\n",
                                                      .body = body,
                                                      .size = sizeof body,
                                                      /* the budget is in use until the command that
                                                       * was decoded is released */
                                                      .whole_least = 400000,
                                                      .refused = "-OOM out of memory\r\n"});
}

/* Feed a command in pieces, and return the used bytes of the budget after it was decoded. */
static uint64_t decode_and_read_used_budget(const domus_pipeline *pipeline,
                                            const domus_budget *budget, const char *bytes,
                                            size_t size, size_t step)
{
    domus_stage_message message;
    domus_stage_kit *kit;
    int result = 0;

    ck_assert_int_eq(domus_stage_kit_new(pipeline, &kit), 0);
    for (size_t at = 0; at < size; at += step) {
        ck_assert_int_eq(domus_stage_kit_feed(kit, bytes + at, size - at < step ? size - at : step),
                         0);
        result = domus_stage_kit_next(kit, &message);
    }
    ck_assert_int_eq(result, 1);
    uint64_t charge = budget->used_bytes;
    domus_stage_kit_free(kit);
    ck_assert_uint_eq(budget->used_bytes, 0);
    return charge;
}

DOMT_TEST(whole_commands_use_budget_until_released)
{
    domus_budget budget = {.bytes_max = 300000};
    const domus_resp_options options = {.role = DOMUS_ROLE_SERVER, .budget = &budget};
    const domus_pipeline_stage stages[2] = {{&domus_resp_stage, &options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    static const size_t sizes[] = {1, 500, 513, 4000, 4200, 16000, 40000, 100000};
    static char bytes[110000];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int head = snprintf(bytes, sizeof bytes, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", sizes[i]);
        memset(bytes + head, 'a', sizes[i]);
        memcpy(bytes + head + sizes[i], "\r\n", 2);
        size_t size = (size_t)head + sizes[i] + 2;
        for (size_t step = size; step > 100; step /= 3) {
            uint64_t charge = decode_and_read_used_budget(&pipeline, &budget, bytes, size, step);
            if (sizes[i] > 4096)
                ck_assert_uint_ge(charge, sizes[i]);
            else
                ck_assert_uint_eq(charge, 0);
        }
    }
}

DOMT_SUITE(60)
