/* WebSocket's messages, closes and pings are framed as the RFC says, forbidden messages are
 * refused, and a failed allocation is an error. */
#include "tests/http/trace.h"
#include "tests/support/frames.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const domus_websocket_options client = {.role = DOMUS_ROLE_CLIENT};

static int encode_control_frame(domt_codec *codec, const domus_type *type, const char *text)
{
    domus_slice slice = domt_slice_of_text(text);
    int result = domus_stage_kit_encode(codec->kit, DOMUS_NO_ID, type, &slice);

    domus_slice_free(slice);
    return result;
}

static int encode_message(domt_codec *codec, bool binary, const char *text)
{
    domus_websocket_message message = {.bytes = domt_slice_of_text(text), .binary = binary};
    int result =
        domus_stage_kit_encode(codec->kit, DOMUS_NO_ID, &domus_websocket_message_type, &message);

    domus_slice_free(message.bytes);
    return result;
}

static int encode_close(domt_codec *codec, unsigned code, const char *reason)
{
    domus_websocket_close close = {.code = (uint16_t)code, .reason = domt_slice_of_text(reason)};
    int result =
        domus_stage_kit_encode(codec->kit, DOMUS_NO_ID, &domus_websocket_close_type, &close);

    domus_slice_free(close.reason);
    return result;
}

/* The options of a server (the defaults) and of a client. */
static const domus_websocket_options *const sides[] = {NULL, &client};

DOMT_TEST(messages_and_frames_of_control_are_sent)
{
    for (size_t i = 0; i < 2; i++) {
        domt_codec codec;
        domt_codec_start(&codec, &domus_websocket_stage, sides[i]);
        ck_assert_int_eq(encode_message(&codec, false, "hello"), 0);
        ck_assert_int_eq(encode_message(&codec, true, "\xff"), 0);
        ck_assert_int_eq(encode_message(&codec, false, ""), 0);
        ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_ping_type, "p"), 0);
        ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_pong_type, ""), 0);
        ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, i == 1),
                         "81:hello 82:\\xff 81: 89:p 8a: ");
        ck_assert_int_eq(
            domus_stage_kit_feed(codec.kit, i == 0 ? "\x89\x80zzzz" : "\x89\0", i == 0 ? 6 : 2), 0);
        domus_stage_message message;
        ck_assert_int_eq(domus_stage_kit_next(codec.kit, &message), 0);
        ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, i == 1), "8a: ");
        domt_codec_stop(&codec);
    }
}

DOMT_TEST(each_length_is_sent_in_its_shortest_form)
{
    static const unsigned sizes[] = {0, 125, 126, 127, 65535, 65536, 100000};
    static char bytes[100001], sent_bytes[100100], expected[100100];

    memset(bytes, '*', sizeof bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t side = 0; side < 2; side++) {
            domt_codec codec;
            domus_websocket_message message = {.binary = true};
            size_t size;
            ck_assert_int_eq(domus_slice_copy(bytes, sizes[i], &message.bytes), 0);
            domt_codec_start(&codec, &domus_websocket_stage, sides[side]);
            ck_assert_int_eq(domus_stage_kit_encode(codec.kit, DOMUS_NO_ID,
                                                    &domus_websocket_message_type, &message),
                             0);
            const char *output = domus_stage_kit_output(codec.kit, &size);
            size_t head = domt_websocket_write_frame_head(side == 1, 0x82, sizes[i], expected);
            ck_assert_uint_eq(size, head + sizes[i]);
            /* the mask of a client is random, so it is not compared */
            ck_assert_mem_eq(output, expected, head - 4 * side);
            memcpy(sent_bytes, output, size);
            for (size_t j = 0; j < sizes[i]; j++) {
                char mask = side == 1 ? sent_bytes[head - 4 + j % 4] : '\0';
                ck_assert_int_eq((char)(sent_bytes[head + j] ^ mask), '*');
            }
            domus_slice_free(message.bytes);
            domt_codec_stop(&codec);
        }
    }
}

DOMT_TEST(masks_of_frames_differ)
{
    char masks[200][4];
    domt_codec codec;

    domt_codec_start(&codec, &domus_websocket_stage, &client);
    for (size_t i = 0; i < 200; i++) {
        size_t size;
        ck_assert_int_eq(encode_message(&codec, true, ""), 0);
        memcpy(masks[i], domus_stage_kit_output(codec.kit, &size) + 2, 4);
        domus_stage_kit_clear(codec.kit);
        /* two of 200 random masks are equal once in 200,000 runs */
        for (size_t j = 0; j < i; j++)
            ck_assert_mem_ne(masks[i], masks[j], 4);
    }
    domt_codec_stop(&codec);
}

DOMT_TEST(messages_and_closes_that_cannot_be_sent_are_refused)
{
    static const unsigned codes[] = {1, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535};
    char long_text[127];
    domt_codec codec;

    memset(long_text, 'a', sizeof long_text);
    long_text[126] = '\0';
    domt_codec_start(&codec, &domus_websocket_stage, NULL);
    ck_assert_int_eq(encode_message(&codec, false, "\xc3"), -EILSEQ);
    ck_assert_int_eq(encode_message(&codec, false, "a\xff"), -EILSEQ);
    ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_ping_type, long_text),
                     -EMSGSIZE);
    ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_pong_type, long_text),
                     -EMSGSIZE);
    ck_assert_int_eq(encode_control_frame(&codec, &domus_slice_type, "x"), -EOPNOTSUPP);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        ck_assert_int_eq(encode_close(&codec, codes[i], ""), -EINVAL);
    ck_assert_int_eq(encode_close(&codec, 0, "why"), -EINVAL);
    ck_assert_int_eq(encode_close(&codec, 1000, "\xc3"), -EILSEQ);
    ck_assert_int_eq(encode_close(&codec, 1000, long_text + 2), -EMSGSIZE);
    /* a message that is an ask would need an answer, so it is refused */
    ck_assert_int_eq(domus_stage_kit_encode(codec.kit, 7, &domus_websocket_message_type,
                                            &(domus_websocket_message){.binary = true}),
                     -EOPNOTSUPP);
    ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, false), "");
    long_text[125] = '\0';
    ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_ping_type, long_text), 0);
    /* the longest reason has 123 bytes */
    ck_assert_int_eq(encode_close(&codec, 1000, long_text + 2), 0);
    domt_codec_stop(&codec);
}

DOMT_TEST(no_frame_is_sent_behind_a_close)
{
    for (size_t i = 0; i < 2; i++) {
        domt_codec codec;
        domt_codec_start(&codec, &domus_websocket_stage, sides[i]);
        ck_assert_int_eq(encode_close(&codec, i == 0 ? 0 : 3000, i == 0 ? "" : "why"), 0);
        ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, i == 1),
                         i == 0 ? "88: " : "88:\\x0b\\xb8why ");
        ck_assert_uint_eq(domus_stage_kit_wake_ns(codec.kit), 5000000000);
        ck_assert_int_eq(encode_close(&codec, 1000, ""), -EPIPE);
        ck_assert_int_eq(encode_message(&codec, true, "x"), -EPIPE);
        ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_ping_type, ""), -EPIPE);
        ck_assert_int_eq(domus_stage_kit_end_output(codec.kit), 0);
        ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, i == 1), "");
        /* no ping is sent, because the output of the stage has ended */
        ck_assert_int_eq(domus_stage_kit_wake(codec.kit, false), 0);
        domt_codec_stop(&codec);
    }
}

DOMT_TEST(channel_ends_when_the_time_for_a_close_is_over)
{
    static const domus_websocket_options options = {.close_ns = 1000000};
    domt_codec codec;

    domt_codec_start(&codec, &domus_websocket_stage, &options);
    ck_assert_uint_eq(domus_stage_kit_wake_ns(codec.kit), 30000000000);
    /* no ping is sent while bytes of this side wait to be sent */
    ck_assert_int_eq(domus_stage_kit_wake(codec.kit, true), 0);
    ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, false), "");
    ck_assert_int_eq(domus_stage_kit_wake(codec.kit, false), 0);
    ck_assert_str_eq(domt_take_sent_frames_as_text(&codec, false), "89: ");
    ck_assert_int_eq(encode_close(&codec, 1000, ""), 0);
    ck_assert_uint_eq(domus_stage_kit_wake_ns(codec.kit), 1000000);
    ck_assert_int_eq(domus_stage_kit_wake(codec.kit, true), -ETIMEDOUT);
    domt_codec_stop(&codec);
}

/* --- frames for many -------------------------------------------------------------------------- */

DOMT_TEST(prepared_frame_is_made_once_and_sent_unchanged)
{
    static const unsigned sizes[] = {0, 125, 126, 65535, 65536};
    static char bytes[65536];
    domt_codec codec;

    domt_codec_start(&codec, &domus_websocket_stage, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        domus_websocket_message message = {.binary = i % 2 == 0};
        domus_slice frame;
        size_t size;
        ck_assert_int_eq(domus_slice_copy(bytes, sizes[i], &message.bytes), 0);
        ck_assert_int_eq(domus_websocket_frame(&message, &frame), 0);
        ck_assert_int_eq(
            domus_stage_kit_encode(codec.kit, DOMUS_NO_ID, &domus_websocket_frame_type, &frame), 0);
        const char *output = domus_stage_kit_output(codec.kit, &size);
        ck_assert(domus_slice_equals(frame, output, size));
        domus_stage_kit_clear(codec.kit);
        ck_assert_int_eq(
            domus_stage_kit_encode(codec.kit, DOMUS_NO_ID, &domus_websocket_message_type, &message),
            0);
        output = domus_stage_kit_output(codec.kit, &size);
        ck_assert(domus_slice_equals(frame, output, size));
        domus_stage_kit_clear(codec.kit);
        domus_slice_free(frame);
        domus_slice_free(message.bytes);
    }
    domus_websocket_message wrong = {.bytes = domt_slice_of_text("\xff")};
    domus_slice none;
    ck_assert_int_eq(domus_websocket_frame(&wrong, &none), -EILSEQ);
    domus_slice_free(wrong.bytes);
    domt_codec_stop(&codec);
}

DOMT_TEST(slice_that_is_no_frame_is_refused)
{
    static const char *const wrong[] = {"",           "\x81",      "hello",     "\201\002a",
                                        "\201\001ab", "\001\001a", "\211\001a", "\x81\x81zzzza",
                                        "\301\001a",  "\x81~",     "\x81~\x01"};
    domt_codec codec;

    domt_codec_start(&codec, &domus_websocket_stage, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_frame_type, wrong[i]),
                         -EINVAL);
    ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_frame_type, "\201\001a"), 0);
    domt_codec_stop(&codec);
    domt_codec_start(&codec, &domus_websocket_stage, &client);
    ck_assert_int_eq(encode_control_frame(&codec, &domus_websocket_frame_type, "\201\001a"),
                     -EINVAL);
    domt_codec_stop(&codec);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int echo_received_message(domus_stage_kit *kit, const domus_stage_message *message)
{
    return message->type == &domus_websocket_message_type
               ? domus_stage_kit_encode(kit, DOMUS_NO_ID, message->type, message->payload)
               : 0;
}

DOMT_TEST(each_failure_of_memory_is_returned)
{
    static char bytes[DOMT_FRAMES_ROOM];
    size_t size = domt_websocket_write_frames(
        true, "01:hello 89:x 80:you 82:*40000 81:bye 8a:x 88:\x03\xe8why", bytes);
    static const domus_websocket_options pongs = {.pongs = true};

    for (size_t step = 70; step < 100000; step *= 100) {
        domt_codec_work work = {
            {&domus_websocket_stage, &pongs}, echo_received_message, bytes, size, step};
        domt_fail_each_allocation(domt_codec_decode_as_work_says, &work);
    }
}

DOMT_TEST(announced_length_of_a_frame_takes_no_memory)
{
    static const domus_websocket_options large = {.role = DOMUS_ROLE_CLIENT,
                                                  .message_max = 1u << 30};
    domt_codec_work work = {
        {&domus_websocket_stage, &large}, NULL, "\x82\x7f\0\0\0\0\x20\0\0\0abc", 13, 13};

    ck_assert_uint_lt(domt_largest_allocated_block(domt_codec_decode_as_work_says, &work), 4096);
}

/* The message comes in fragments, whose headers are written into the body, because a string literal
 * may not be that long. */
DOMT_TEST(unfinished_messages_share_a_memory_bound)
{
    static char body[400000];
    domus_budget budget = {0};
    const domus_websocket_options options = {.role = DOMUS_ROLE_CLIENT, .budget = &budget};
    size_t at = 0xfffe;

    for (; at + 4 + 0xfffe <= sizeof body; at += 4 + 0xfffe)
        memcpy(body + at, "\0\x7e\xff\xfe", 4);
    (void)domt_websocket_write_frame_head(false, 0x80, sizeof body - at - 4, body + at);
    domt_check_gathered_share_budget(&(domt_gathered){.stage = {&domus_websocket_stage, &options},
                                                      .budget = &budget,
                                                      .head = "\x02\x7e\xff\xfe",
                                                      .body = body,
                                                      .size = sizeof body,
                                                      .refused = "\x88\x82"});
}

DOMT_SUITE(60)
