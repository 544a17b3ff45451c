/* The bytes that the stage of RESP sends, read by hiredis. Its reader knows RESP 2 only, so it also
 * checks the form in RESP 2 of replies that were built for RESP 3. */
#include "tests/resp/trace.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#ifdef DOMT_HIREDIS
#include <hiredis.h>

static domt_codec resp;
static redisReader *reader;

/* Let hiredis read one reply from the output of the stage. */
static redisReply *read_next_reply_by_hiredis(void)
{
    void *reply = NULL;
    size_t size;
    const char *output = domus_stage_kit_output(resp.kit, &size);

    ck_assert_int_eq(redisReaderFeed(reader, output, size), REDIS_OK);
    domus_stage_kit_clear(resp.kit);
    ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    ck_assert_msg(reply != NULL, "the reply is not whole");
    return reply;
}

static redisReply *encode_and_read_by_hiredis(const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_stage_kit_encode(resp.kit, DOMUS_NO_ID, type, payload), 0);
    return read_next_reply_by_hiredis();
}

static void expect_reply_read_by_hiredis(redisReply *reply, int type, const char *text,
                                         long long integer)
{
    ck_assert_int_eq(reply->type, type);
    if (text != NULL)
        ck_assert_str_eq(reply->str, text);
    ck_assert_int_eq(reply->integer, integer);
}

#define UNDERSTOOD(type, payload, as, text, integer)                                               \
    do {                                                                                           \
        redisReply *reply_ = encode_and_read_by_hiredis(&domus_resp_##type##_type, payload);       \
        expect_reply_read_by_hiredis(reply_, as, text, integer);                                   \
        freeReplyObject(reply_);                                                                   \
    } while (0)

DOMT_TEST(hiredis_reads_common_replies)
{
    reader = redisReaderCreate();
    domt_resp_make_kit(&resp, NULL);
    UNDERSTOOD(ok, NULL, REDIS_REPLY_STATUS, "OK", 0);
    UNDERSTOOD(null, NULL, REDIS_REPLY_NIL, NULL, 0);
    UNDERSTOOD(null_array, NULL, REDIS_REPLY_NIL, NULL, 0);
    UNDERSTOOD(integer, &(domus_resp_integer){-42}, REDIS_REPLY_INTEGER, NULL, -42);
    UNDERSTOOD(integer, &(domus_resp_integer){INT64_MIN}, REDIS_REPLY_INTEGER, NULL, INT64_MIN);
    UNDERSTOOD(simple, &(domus_resp_simple){"PONG"}, REDIS_REPLY_STATUS, "PONG", 0);
    UNDERSTOOD(error, &(domus_resp_error){"ERR no"}, REDIS_REPLY_ERROR, "ERR no", 0);
    UNDERSTOOD(short, (&(domus_resp_short){3, "abc"}), REDIS_REPLY_STRING, "abc", 0);
    ck_assert_int_eq(domus_stage_kit_fail(resp.kit, 0, &domus_resp_command_type, -16), 0);
    redisReply *reply = read_next_reply_by_hiredis();
    expect_reply_read_by_hiredis(reply, REDIS_REPLY_ERROR,
                                 "BUSY the server is busy, try again later", 0);
    freeReplyObject(reply);
    domt_codec_stop(&resp);
    redisReaderFree(reader);
}

DOMT_TEST(hiredis_reads_long_strings)
{
    static char bytes[300000];
    domus_slice slice;

    reader = redisReaderCreate();
    domt_resp_make_kit(&resp, NULL);
    memset(bytes, 'a', sizeof bytes);
    for (size_t size = 1; size <= sizeof bytes; size = size * 3 + 1) {
        ck_assert_int_eq(domus_slice_copy(bytes, size, &slice), 0);
        redisReply *reply = encode_and_read_by_hiredis(&domus_slice_type, &slice);
        ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
        ck_assert_uint_eq(reply->len, size);
        freeReplyObject(reply);
        domus_slice_free(slice);
    }
    domt_codec_stop(&resp);
    redisReaderFree(reader);
}

DOMT_TEST(hiredis_reads_resp_3_replies_sent_as_resp_2)
{
    static const struct {
        int type;
        const char *text;
        long long integer;
    } wanted[] = {{REDIS_REPLY_NIL, NULL, 0},      {REDIS_REPLY_INTEGER, NULL, 1},
                  {REDIS_REPLY_STRING, "0.5", 0},  {REDIS_REPLY_STRING, "-123", 0},
                  {REDIS_REPLY_STRING, "text", 0}, {REDIS_REPLY_ARRAY, NULL, 0},
                  {REDIS_REPLY_ARRAY, NULL, 0}};

    reader = redisReaderCreate();
    for (uint8_t version = 2; version <= 3; version++) {
        domus_resp_builder b = {.version = version};
        domus_resp_reply built;
        domt_resp_make_kit(&resp, NULL);
        domus_resp_add_array(&b, 7);
        domus_resp_add_null(&b);
        domus_resp_add_boolean(&b, true);
        domus_resp_add_double(&b, 0.5);
        domus_resp_add_big_number(&b, "-123");
        domus_resp_add_verbatim(&b, "txt", "text", 4);
        domus_resp_add_map(&b, 1);
        domus_resp_add_integer(&b, 1);
        domus_resp_add_integer(&b, 2);
        domus_resp_add_set(&b, 0);
        ck_assert_int_eq(domus_resp_end(&b, &built), 0);
        redisReply *reply = encode_and_read_by_hiredis(&domus_resp_reply_type, &built);
        ck_assert_uint_eq(reply->elements, 7);
        for (size_t i = 0; i < 7; i++)
            expect_reply_read_by_hiredis(reply->element[i], wanted[i].type, wanted[i].text,
                                         wanted[i].integer);
        ck_assert_uint_eq(reply->element[5]->elements, 2);
        ck_assert_uint_eq(reply->element[6]->elements, 0);
        freeReplyObject(reply);
        domus_slice_free(built.bytes);
        domt_codec_stop(&resp);
    }
    redisReaderFree(reader);
}

/* Commands that hiredis encodes are decoded by the stage. */
DOMT_TEST(commands_of_hiredis_are_decoded)
{
    domus_stage_message message;
    char line[200];
    char *command = NULL;
    int size = redisFormatCommand(&command, "SET %s %b", "key", "a\0b", (size_t)3);

    ck_assert_int_gt(size, 0);
    domt_resp_make_kit(&resp, NULL);
    ck_assert_int_eq(domus_stage_kit_feed(resp.kit, command, (size_t)size), 0);
    ck_assert_int_eq(domus_stage_kit_next(resp.kit, &message), 1);
    domt_resp_print_message(&message, line, sizeof line);
    ck_assert_str_eq(line, "command [SET] [key] [a\\x00b]");
    redisFreeCommand(command);
    domt_codec_stop(&resp);
}

#else

DOMT_TEST(hiredis_tests_are_skipped_without_it)
{
    printf("no hiredis (Debian: libhiredis-dev): nothing is compared\n");
}

#endif

DOMT_SUITE(60)
