/* The stages of packets without a runtime: line, delimiter, length and fixed. */
#include <domus/pipeline.h>

#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static domus_stage_kit *make_kit_of_stage(const domus_stage *stage, const void *options)
{
    /* static: a kit uses its pipeline as long as it lives */
    static domus_pipeline_stage stages[2];
    static domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit = NULL;

    stages[0] = (domus_pipeline_stage){stage, options};
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    return kit;
}

/* Check that `bytes` are decoded to these packets, each with its kind and its size, and that then
 * `error` comes; in pieces of every size. */
static void expect_decoded_packets(const domus_stage *stage, const void *options, const char *bytes,
                                   size_t size, const char *packets, int error)
{
    const domus_pipeline_stage stages[] = {{stage, options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};

    for (size_t step = 1; step <= size; step += step < 40 ? 1 : step) {
        domt_decoded decoded;
        domt_decode_in_pieces(&pipeline, bytes, size, domt_size_of_next_equal_piece, &step,
                              &decoded, NULL);
        ck_assert_msg(decoded.size == strlen(packets) &&
                          (decoded.size == 0 || memcmp(decoded.text, packets, decoded.size) == 0),
                      "step %zu: %.*s, not %s", step, (int)decoded.size,
                      decoded.text != NULL ? decoded.text : "", packets);
        ck_assert_int_eq(decoded.error, error);
        domt_decoded_clear(&decoded);
    }
}

/* Check that a packet of `bytes` is encoded to the expected bytes. */
static void expect_encoded_packet(const domus_stage *stage, const void *options, const char *bytes,
                                  size_t size, const char *expected, size_t expected_size)
{
    domus_stage_kit *kit = make_kit_of_stage(stage, options);
    domus_packet packet = {.bytes = {NULL, 0, 0}};
    size_t sent;

    ck_assert_int_eq(domus_slice_copy(bytes, size, &packet.bytes), 0);
    ck_assert_int_eq(domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_packet_type, &packet), 0);
    const char *output = domus_stage_kit_output(kit, &sent);
    ck_assert_uint_eq(sent, expected_size);
    ck_assert_mem_eq(output, expected, sent);
    domus_slice_free(packet.bytes);
    domus_stage_kit_free(kit);
}

static int error_of_encode(const domus_stage *stage, const void *options, const domus_type *type,
                           const char *bytes, size_t size)
{
    domus_stage_kit *kit = make_kit_of_stage(stage, options);
    domus_packet packet = {.bytes = {NULL, 0, 0}};
    size_t sent;

    ck_assert_int_eq(domus_slice_copy(bytes, size, &packet.bytes), 0);
    int error = domus_stage_kit_encode(kit, DOMUS_NO_ID, type, &packet);
    (void)domus_stage_kit_output(kit, &sent);
    ck_assert(error == 0 || sent == 0);
    domus_slice_free(packet.bytes);
    domus_stage_kit_free(kit);
    return error;
}

static int error_of_options(const domus_stage *stage, const void *options)
{
    const domus_pipeline_stage stages[] = {{stage, options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit = NULL;
    int error = domus_stage_kit_new(&pipeline, &kit);

    domus_stage_kit_free(kit);
    return error;
}

/* Write `size` bytes that are `byte`, and then `end`. The caller frees them. */
static char *make_equal_bytes_with_end(char byte, size_t size, const char *end)
{
    char *bytes = malloc(size + strlen(end) + 1);

    memset(bytes, byte, size);
    memcpy(bytes + size, end, strlen(end) + 1);
    return bytes;
}

/* Returns the error with which a packet of `size` bytes is refused; it must be the same in one
 * piece and in small ones. */
static int error_of_packet_size(const domus_stage *stage, const void *options, const char *begin,
                                size_t begin_size, size_t size, const char *end)
{
    const domus_pipeline_stage stages[] = {{stage, options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    char *text = make_equal_bytes_with_end('x', begin_size + size, end);
    size_t all = begin_size + size + strlen(end);
    size_t step = 13;
    domt_decoded whole;
    domt_decoded pieces;

    memcpy(text, begin, begin_size);
    domt_decode_in_pieces(&pipeline, text, all, NULL, NULL, &whole, NULL);
    domt_decode_in_pieces(&pipeline, text, all, domt_size_of_next_equal_piece, &step, &pieces,
                          NULL);
    ck_assert(domt_decoded_equals(&whole, &pieces));
    ck_assert_uint_eq(whole.count, whole.error == 0 ? 1 : 0);
    int error = whole.error;
    domt_decoded_clear(&whole);
    domt_decoded_clear(&pieces);
    free(text);
    return error;
}

/* --- lines ------------------------------------------------------------------------------------ */

DOMT_TEST(lines_end_with_either_end)
{
    static const domus_line_options peer = {.role = DOMUS_ROLE_PEER};
    static const domus_line_options client = {.role = DOMUS_ROLE_CLIENT};

    expect_decoded_packets(&domus_line_stage, NULL, "one\ntwo\r\n\n\r\nth\rree\r\r\n", 21,
                           "0 3:one0 3:two0 0:0 0:0 7:th\rree\r", 0);
    expect_decoded_packets(&domus_line_stage, &peer, "a\nb", 3, "1 1:a", -EPIPE);
    expect_decoded_packets(&domus_line_stage, &client, "a\n\r", 3, "2 1:a", -EPIPE);
}

DOMT_TEST(lines_are_sent_with_the_chosen_line_end)
{
    static const domus_line_options crlf = {.crlf = true};

    expect_encoded_packet(&domus_line_stage, NULL, "line", 4, "line\n", 5);
    expect_encoded_packet(&domus_line_stage, NULL, "", 0, "\n", 1);
    expect_encoded_packet(&domus_line_stage, &crlf, "line", 4, "line\r\n", 6);
    expect_encoded_packet(&domus_line_stage, NULL, "line\r", 5, "line\r\r\n", 7);
    expect_encoded_packet(&domus_line_stage, &crlf, "line\r", 5, "line\r\r\n", 7);
    ck_assert_int_eq(error_of_encode(&domus_line_stage, NULL, &domus_packet_type, "a\nb", 3),
                     -EINVAL);
    ck_assert_int_eq(error_of_encode(&domus_line_stage, NULL, &domus_slice_type, "a", 1),
                     -EOPNOTSUPP);
}

DOMT_TEST(lines_have_a_largest_size)
{
    static const domus_line_options ten = {.size_max = 10};
    static const domus_line_options most = {.size_max = 65534};
    static const domus_line_options more = {.size_max = 65535};
    static const domus_line_options role = {.role = (domus_role)3};

    for (int crlf = 0; crlf < 2; crlf++) {
        const char *end = crlf != 0 ? "\r\n" : "\n";
        ck_assert_int_eq(error_of_packet_size(&domus_line_stage, &ten, "", 0, 10, end), 0);
        ck_assert_int_eq(error_of_packet_size(&domus_line_stage, &ten, "", 0, 11, end), -EMSGSIZE);
        ck_assert_int_eq(error_of_packet_size(&domus_line_stage, NULL, "", 0, 8192, end), 0);
        ck_assert_int_eq(error_of_packet_size(&domus_line_stage, NULL, "", 0, 8193, end),
                         -EMSGSIZE);
        ck_assert_int_eq(error_of_packet_size(&domus_line_stage, &most, "", 0, 65534, end), 0);
        ck_assert_int_eq(error_of_packet_size(&domus_line_stage, &most, "", 0, 65535, end),
                         -EMSGSIZE);
    }
    ck_assert_int_eq(error_of_packet_size(&domus_line_stage, &ten, "", 0, 11, ""), -EPIPE);
    ck_assert_int_eq(error_of_packet_size(&domus_line_stage, &ten, "", 0, 12, ""), -EMSGSIZE);
    ck_assert_int_eq(error_of_options(&domus_line_stage, &most), 0);
    ck_assert_int_eq(error_of_options(&domus_line_stage, &more), -EINVAL);
    ck_assert_int_eq(error_of_options(&domus_line_stage, &role), -EINVAL);
}

static void expect_answer_to_failure(const void *options, int error, const char *text)
{
    domus_stage_kit *kit = make_kit_of_stage(&domus_line_stage, options);
    size_t size;
    int result = domus_stage_kit_fail(kit, DOMUS_NO_ID, &domus_packet_type, error);
    const char *output = domus_stage_kit_output(kit, &size);

    ck_assert_int_eq(result, text != NULL ? 0 : error);
    ck_assert_uint_eq(size, text != NULL ? strlen(text) : 0);
    ck_assert_mem_eq(output, text != NULL ? text : "", size);
    domus_stage_kit_free(kit);
}

DOMT_TEST(request_line_that_fails_gets_a_line)
{
    static const domus_line_options sorry = {.failed = "SORRY", .crlf = true};
    static const domus_line_options client = {.role = DOMUS_ROLE_CLIENT};

    expect_answer_to_failure(NULL, -ETIMEDOUT, "error: ETIMEDOUT\n");
    expect_answer_to_failure(NULL, -12345, "error: unknown\n");
    expect_answer_to_failure(&sorry, -EINVAL, "SORRY\r\n");
    expect_answer_to_failure(&client, -EINVAL, NULL);
}

/* --- delimiters ------------------------------------------------------------------------------- */

DOMT_TEST(delimiter_ends_a_packet)
{
    static const domus_delimiter_options zero = {.delimiter = '\0'};
    static const domus_delimiter_options high = {.delimiter = '\xff', .role = DOMUS_ROLE_PEER};

    expect_decoded_packets(&domus_delimiter_stage, &zero, "one\0\0two\n\0", 10,
                           "0 3:one0 0:0 4:two\n", 0);
    expect_decoded_packets(&domus_delimiter_stage, &high, "a\xff\x7f\xff.", 5, "1 1:a1 1:\x7f",
                           -EPIPE);
    expect_encoded_packet(&domus_delimiter_stage, &high, "a\n", 2, "a\n\xff", 3);
    ck_assert_int_eq(error_of_encode(&domus_delimiter_stage, &zero, &domus_packet_type, "a\0b", 3),
                     -EINVAL);
    ck_assert_int_eq(error_of_encode(&domus_delimiter_stage, &zero, &domus_slice_type, "a", 1),
                     -EOPNOTSUPP);
}

DOMT_TEST(delimited_packets_have_a_largest_size)
{
    static const domus_delimiter_options plain = {.delimiter = ';'};
    static const domus_delimiter_options one = {.delimiter = ';', .size_max = 1};
    static const domus_delimiter_options most = {.delimiter = ';', .size_max = 65535};
    static const domus_delimiter_options more = {.delimiter = ';', .size_max = 65536};
    const domus_stage *stage = &domus_delimiter_stage;

    ck_assert_int_eq(error_of_packet_size(stage, &one, "", 0, 1, ";"), 0);
    ck_assert_int_eq(error_of_packet_size(stage, &one, "", 0, 2, ";"), -EMSGSIZE);
    ck_assert_int_eq(error_of_packet_size(stage, &one, "", 0, 2, ""), -EMSGSIZE);
    ck_assert_int_eq(error_of_packet_size(stage, &plain, "", 0, 8192, ";"), 0);
    ck_assert_int_eq(error_of_packet_size(stage, &plain, "", 0, 8193, ";"), -EMSGSIZE);
    ck_assert_int_eq(error_of_packet_size(stage, &most, "", 0, 65535, ";"), 0);
    ck_assert_int_eq(error_of_packet_size(stage, &most, "", 0, 65536, ";"), -EMSGSIZE);
    ck_assert_int_eq(error_of_options(stage, &more), -EINVAL);
    ck_assert_int_eq(error_of_options(stage, NULL), -EINVAL);
}

/* --- lengths ---------------------------------------------------------------------------------- */

DOMT_TEST(length_begins_a_packet)
{
    static const domus_length_options one = {.width = 1};
    static const domus_length_options big = {.width = 2, .role = DOMUS_ROLE_CLIENT};
    static const domus_length_options little = {.width = 4, .little_endian = true};
    static const domus_length_options eight = {.width = 8, .counts_itself = true};
    const domus_stage *stage = &domus_length_stage;

    expect_decoded_packets(stage, &one, "\3abc\0\1x", 7, "0 3:abc0 0:0 1:x", 0);
    expect_decoded_packets(stage, &big, "\0\3abc\0\0\0", 8, "2 3:abc2 0:", -EPIPE);
    expect_decoded_packets(stage, &little, "\3\0\0\0abc", 7, "0 3:abc", 0);
    expect_decoded_packets(stage, &eight, "\0\0\0\0\0\0\0\013abc\0\0\0\0\0\0\0\10", 19,
                           "0 3:abc0 0:", 0);
    expect_encoded_packet(stage, &one, "abc", 3, "\3abc", 4);
    expect_encoded_packet(stage, &big, "abc", 3, "\0\3abc", 5);
    expect_encoded_packet(stage, &little, "abc", 3, "\3\0\0\0abc", 7);
    expect_encoded_packet(stage, &eight, "", 0, "\0\0\0\0\0\0\0\10", 8);
    ck_assert_int_eq(error_of_encode(stage, &one, &domus_slice_type, "a", 1), -EOPNOTSUPP);
}

DOMT_TEST(lengths_too_small_or_too_large_are_refused)
{
    static const domus_length_options itself = {.width = 2, .counts_itself = true};
    static const domus_length_options eight = {.width = 8, .counts_itself = true};
    static const domus_length_options little = {.width = 8, .little_endian = true};
    const domus_stage *stage = &domus_length_stage;

    expect_decoded_packets(stage, &itself, "\0\2\0\1x", 5, "0 0:", -EBADMSG);
    expect_decoded_packets(stage, &itself, "\0\0", 2, "", -EBADMSG);
    expect_decoded_packets(stage, &eight, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, "", -EMSGSIZE);
    expect_decoded_packets(stage, &little, "\0\0\0\0\0\0\0\x80", 8, "", -EMSGSIZE);
}

DOMT_TEST(packets_with_a_length_have_a_largest_size)
{
    static const domus_length_options one = {.width = 1};
    static const domus_length_options itself = {.width = 1, .counts_itself = true};
    static const domus_length_options ten = {.width = 4, .size_max = 10};
    static const domus_length_options eight = {.width = 8};
    static const domus_length_options wide = {.width = 3};
    static const domus_length_options none = {.width = 0};
    static const domus_length_options more = {.width = 2, .size_max = 65529};
    const domus_stage *stage = &domus_length_stage;
    char *bytes = make_equal_bytes_with_end('x', 70000, "");

    ck_assert_int_eq(error_of_packet_size(stage, &ten, "\0\0\0\12", 4, 10, ""), 0);
    ck_assert_int_eq(error_of_packet_size(stage, &ten, "\0\0\0\13", 4, 11, ""), -EMSGSIZE);
    ck_assert_int_eq(error_of_packet_size(stage, &eight, "\0\0\0\0\0\0\xff\xf8", 8, 65528, ""), 0);
    ck_assert_int_eq(error_of_packet_size(stage, &eight, "\0\0\0\0\0\0\xff\xf9", 8, 65529, ""),
                     -EMSGSIZE);
    ck_assert_int_eq(error_of_encode(stage, &one, &domus_packet_type, bytes, 255), 0);
    ck_assert_int_eq(error_of_encode(stage, &one, &domus_packet_type, bytes, 256), -EMSGSIZE);
    ck_assert_int_eq(error_of_encode(stage, &itself, &domus_packet_type, bytes, 254), 0);
    ck_assert_int_eq(error_of_encode(stage, &itself, &domus_packet_type, bytes, 255), -EMSGSIZE);
    ck_assert_int_eq(error_of_encode(stage, &eight, &domus_packet_type, bytes, 70000), 0);
    ck_assert_int_eq(error_of_options(stage, &wide), -EINVAL);
    ck_assert_int_eq(error_of_options(stage, &none), -EINVAL);
    ck_assert_int_eq(error_of_options(stage, &more), -EINVAL);
    ck_assert_int_eq(error_of_options(stage, NULL), -EINVAL);
    free(bytes);
}

/* --- one size --------------------------------------------------------------------------------- */

DOMT_TEST(packets_of_one_fixed_size_are_decoded)
{
    static const domus_fixed_options three = {.size = 3};
    static const domus_fixed_options most = {.size = 65536, .role = DOMUS_ROLE_PEER};
    static const domus_fixed_options more = {.size = 65537};
    static const domus_fixed_options none = {.size = 0};
    const domus_stage *stage = &domus_fixed_stage;

    expect_decoded_packets(stage, &three, "abcdefgh", 8, "0 3:abc0 3:def", -EPIPE);
    expect_decoded_packets(stage, &three, "abc", 3, "0 3:abc", 0);
    ck_assert_int_eq(error_of_packet_size(stage, &most, "", 0, 65536, ""), 0);
    ck_assert_int_eq(error_of_packet_size(stage, &most, "", 0, 65535, ""), -EPIPE);
    expect_encoded_packet(stage, &three, "abc", 3, "abc", 3);
    ck_assert_int_eq(error_of_encode(stage, &three, &domus_packet_type, "ab", 2), -EINVAL);
    ck_assert_int_eq(error_of_encode(stage, &three, &domus_packet_type, "abcd", 4), -EINVAL);
    ck_assert_int_eq(error_of_encode(stage, &three, &domus_slice_type, "abc", 3), -EOPNOTSUPP);
    ck_assert_int_eq(error_of_options(stage, &more), -EINVAL);
    ck_assert_int_eq(error_of_options(stage, &none), -EINVAL);
    ck_assert_int_eq(error_of_options(stage, NULL), -EINVAL);
}

/* A request that fails ends the channel, with each of these stages but that of lines. */
DOMT_TEST(stages_other_than_lines_answer_nothing_to_a_failure)
{
    static const domus_fixed_options three = {.size = 3};
    domus_stage_kit *kit = make_kit_of_stage(&domus_fixed_stage, &three);

    ck_assert_int_eq(domus_stage_kit_fail(kit, DOMUS_NO_ID, NULL, -EIO), -EIO);
    domus_stage_kit_free(kit);
}

DOMT_SUITE(60)
