/* io/wire: a pipeline that is changed between two messages, in whatever pieces the bytes of these
 * come. */
#include "io/wire/wire.h"

#include "base/memory.h"

#include "tests/io/parts.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- stages that count ------------------------------------------------------------------------ */

/* A line stage that calls the library's functions, and counts its open states. */
static int opened, closed, open_error;

static int open_stage_and_count(domus_wire *wire, void *state, const void *options)
{
    int error = open_error != 0 ? open_error : domus_wire_append(wire, "^", 1);
    opened += error == 0;
    return error;
}

static void close_stage_and_count(domus_wire *wire, void *state)
{
    closed++;
}

static int pass_and_count_bytes(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    uint32_t *used = state;

    *used += (uint32_t)size;
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

static int append_bytes_unchanged(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

static const domus_stage counted_stage = {.name = "counted",
                                          .state_size = sizeof(uint32_t),
                                          .open = open_stage_and_count,
                                          .decode = pass_and_count_bytes,
                                          .wrap = append_bytes_unchanged,
                                          .close = close_stage_and_count};

/* --- pipelines -------------------------------------------------------------------------------- */

static const domus_line_options line = {.role = DOMUS_ROLE_PEER};
static const domus_length_options two_bytes = {.role = DOMUS_ROLE_PEER, .width = 2};
static const int other_options;

#define STAGES(...)                                                                                \
    (const domus_pipeline_stage[])                                                                 \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }
#define LINES   &domus_line_stage, &line
#define LENGTHS &domus_length_stage, &two_bytes
#define XOR     &domt_xor_stage, NULL
#define STUFF   &domt_stuff_stage, NULL
#define SIP     &domt_sip_stage, NULL
#define COUNTED &counted_stage, NULL
#define OTHER   &counted_stage, &other_options
#define SWELL   &domt_swell_stage, NULL

typedef struct pair {
    domus_pipeline before, after;
} pair;

/* Pairs of pipelines, before and after a change. Both sides of a connection make the same change,
 * so the bytes on both sides are the same. */
static const pair pairs[] = {
    /* an upgrade from lines to another protocol */
    {{.stages = STAGES({LINES})}, {.stages = STAGES({LENGTHS})}},
    /* a byte stage is added, as by STARTTLS */
    {{.stages = STAGES({LINES})}, {.stages = STAGES({XOR}, {LINES})}},
    {{.stages = STAGES({LINES})},
     /* the change to as many stages as a pipeline may have */
     {.stages = STAGES({STUFF}, {XOR}, {SIP}, {LENGTHS})}},
    {{.stages = STAGES({XOR}, {LINES})},
     {.stages = STAGES({XOR}, {LENGTHS})}}, /* an upgrade within TLS: the byte stage goes on */
    {{.stages = STAGES({XOR}, {STUFF}, {LINES})},
     {.stages = STAGES({XOR}, {STUFF}, {LENGTHS})}}, /* both byte stages go on */
    {{.stages = STAGES({XOR}, {LINES})},
     {.stages = STAGES({XOR}, {STUFF}, {LENGTHS})}}, /* one byte stage goes on, and one is new */
    /* the one byte stage is removed */
    {{.stages = STAGES({SIP}, {LINES})}, {.stages = STAGES({LENGTHS})}},
    /* Byte stages that change bytes are removed. They would also change the bytes behind the
     * boundary, so the peer sends these later. */
    {{.stages = STAGES({XOR}, {STUFF}, {SIP}, {LENGTHS})},
     {.stages = STAGES({XOR}, {LINES})}}, /* one byte stage goes on, and two are removed */
    {{.stages = STAGES({XOR}, {LINES})},
     /* no byte stage goes on, because their order changes */
     {.stages = STAGES({STUFF}, {XOR}, {LINES})}},
};
#define FIRST_THAT_WAITS 7u
#define PAIRS            (sizeof pairs / sizeof pairs[0])

static const size_t sizes[] = {0, 1, 300, 7, 5000, 2};
#define COUNT     (sizeof sizes / sizeof sizes[0])
#define CHANGE_AT 3u /* number of messages before the change of the pipeline */

static domus_packet make_packet_of_size(size_t size, size_t seed)
{
    char bytes[5000];
    domus_packet packet;

    /* the packet has no line end, but bytes that a byte stage escapes */
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)('A' + (i * 7 + seed) % 61);
    ck_assert_int_eq(domus_slice_copy(bytes, size, &packet.bytes), 0);
    return packet;
}

/* Encode packets, with the change between two of them. Returns the bytes for the peer, which the
 * caller frees, and how many of them come before the change. */
static char *encode_packets_around_change(const pair *way, size_t *ret_size, size_t *ret_before)
{
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(&way->before, &kit), 0);
    for (size_t i = 0; i < COUNT; i++) {
        domus_packet packet = make_packet_of_size(sizes[i], i);
        if (i == CHANGE_AT) {
            (void)domus_stage_kit_output(kit, ret_before);
            ck_assert_int_eq(domus_stage_kit_change(kit, &way->after, DOMUS_PIPELINE_CLEAN), 0);
        }
        ck_assert_int_eq(domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_packet_type, &packet), 0);
        domus_slice_free(packet.bytes);
    }
    char *output = domt_copy_output_of_kit(kit, ret_size);
    domus_stage_kit_free(kit);
    return output;
}

static domus_stage_kit *make_kit_of_pipeline(const domus_pipeline *pipeline)
{
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(pipeline, &kit), 0);
    return kit;
}

static domus_stage_message message; /* the last message that the kit has decoded */

/* Feed bytes to the kit, and decode the next message into `message`. Returns the result of
 * domus_stage_kit_next(). */
static int feed_and_take_next_message(domus_stage_kit *kit, const char *bytes, size_t size)
{
    ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, size), 0);
    return domus_stage_kit_next(kit, &message);
}

/* Decode the bytes that have come, and change the pipeline behind the last message before the
 * change. */
static void decode_and_change_pipeline_when_due(domus_stage_kit *kit, const pair *way,
                                                size_t *count)
{
    int result = domus_stage_kit_next(kit, &message);

    for (; result == 1; result = domus_stage_kit_next(kit, &message)) {
        domus_packet expected = make_packet_of_size(sizes[*count], *count);
        const domus_packet *packet = message.payload;
        ck_assert_msg(domus_slice_equals(packet->bytes, domus_slice_data(expected.bytes),
                                         expected.bytes.size),
                      "message %zu", *count);
        domus_slice_free(expected.bytes);
        if (++*count == CHANGE_AT)
            ck_assert_int_eq(domus_stage_kit_change(kit, &way->after, 0), 0);
    }
    ck_assert_int_eq(result, 0);
}

static void check_change_with_cuts(const pair *way, const char *bytes, size_t size, size_t before,
                                   domt_cut *cut, void *context)
{
    domus_stage_kit *kit = make_kit_of_pipeline(&way->before);
    size_t count = 0;

    while (size != 0) {
        size_t piece = cut(context, size);
        if (way >= pairs + FIRST_THAT_WAITS && before != 0 && piece > before)
            piece = before;
        before -= before < piece ? before : piece;
        ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, piece), 0);
        decode_and_change_pipeline_when_due(kit, way, &count);
        bytes += piece;
        size -= piece;
    }
    domus_stage_kit_finish(kit);
    decode_and_change_pipeline_when_due(kit, way, &count);
    ck_assert_uint_eq(count, COUNT);
    domus_stage_kit_free(kit);
}

/* Feed the bytes in two pieces, cut at the byte that `context` says. */
static size_t size_of_one_cut(void *context, size_t left)
{
    size_t *at = context;
    size_t piece = *at != 0 && *at < left ? *at : left;

    *at = 0;
    return piece;
}

DOMT_TEST(bytes_behind_the_change_go_to_the_new_stages)
{
    for (size_t i = 0; i < PAIRS; i++) {
        size_t size, before, step = 1;
        uint64_t seed = i + 1;
        char *bytes = encode_packets_around_change(&pairs[i], &size, &before);
        check_change_with_cuts(&pairs[i], bytes, size, before, domt_size_of_next_equal_piece,
                               &step);
        step = size;
        check_change_with_cuts(&pairs[i], bytes, size, before, domt_size_of_next_equal_piece,
                               &step);
        check_change_with_cuts(&pairs[i], bytes, size, before, domt_size_of_next_random_piece,
                               &seed);
        for (size_t at = before - 5; at < before + 30; at++) {
            size_t once = at;
            check_change_with_cuts(&pairs[i], bytes, size, before, size_of_one_cut, &once);
        }
        free(bytes);
    }
}

/* --- bytes that came too early ---------------------------------------------------------------- */

static const pair into_tls = {{.stages = STAGES({LINES})}, {.stages = STAGES({XOR}, {LINES})}};

DOMT_TEST(a_clean_change_is_refused_if_bytes_follow_the_message)
{
    static const char *const asked[] = {"go\nx", "go\nx\n", "go\n\n"};
    domus_stage_kit *kit;

    for (size_t i = 0; i < 3; i++) {
        for (size_t first = 3; first <= strlen(asked[i]); first++) {
            kit = make_kit_of_pipeline(&into_tls.before);
            ck_assert_int_eq(feed_and_take_next_message(kit, asked[i], first), 1);
            if (first < strlen(asked[i]))
                ck_assert_int_eq(
                    domus_stage_kit_feed(kit, asked[i] + first, strlen(asked[i]) - first), 0);
            ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, DOMUS_PIPELINE_CLEAN),
                             -EPROTO);
            ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, 0), 0);
            domus_stage_kit_free(kit);
        }
    }
    /* A message that came in pieces lies in the window; its bytes there do not count as bytes
     * behind the message. */
    kit = make_kit_of_pipeline(&into_tls.before);
    ck_assert_int_eq(feed_and_take_next_message(kit, "g", 1), 0);
    ck_assert_int_eq(feed_and_take_next_message(kit, "o\n", 2), 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, DOMUS_PIPELINE_CLEAN), 0);
    domus_stage_kit_free(kit);
}

static const pair with_rest = {{.stages = STAGES({SWELL}, {LINES})}, {.stages = STAGES({LINES})}};

DOMT_TEST(a_stage_that_goes_may_have_nothing_left_over)
{
    static const char bytes[] = {0, 'a', 0, '\n', 15, 'b', 15, 'b', 15, 'b', 15, 'b'};
    domus_stage_kit *kit = make_kit_of_pipeline(&with_rest.before);

    ck_assert_int_eq(feed_and_take_next_message(kit, bytes, sizeof bytes), 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &with_rest.after, 0), -EPROTO);
    domus_stage_kit_free(kit);
}

/* The byte stage waits for the second byte of a pair. The bytes that it has passed on before lie in
 * the line stage, and came too early. */
DOMT_TEST(bytes_that_several_stages_have_not_used_keep_their_order)
{
    static const char bytes[] = {0, 'a', 0, '\n', 0, 'b', 'c'};
    domus_stage_kit *kit = make_kit_of_pipeline(&with_rest.before);

    ck_assert_int_eq(feed_and_take_next_message(kit, bytes, sizeof bytes), 1);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_change(kit, &with_rest.after, 0), 0);
    ck_assert_int_eq(feed_and_take_next_message(kit, "d\n", 2), 1);
    ck_assert(domus_slice_equals(((const domus_packet *)message.payload)->bytes, "bcd", 3));
    domus_stage_kit_free(kit);
}

/* --- open and close --------------------------------------------------------------------------- */

static const pair one_stays = {{.stages = STAGES({COUNTED}, {OTHER}, {LINES})},
                               {.stages = STAGES({COUNTED}, {COUNTED}, {LENGTHS})}};

DOMT_TEST(stages_that_go_are_closed_once_and_others_go_on)
{
    domus_stage_kit *kit;

    opened = closed = open_error = 0;
    kit = make_kit_of_pipeline(&one_stays.before);
    domt_expect_output_of_kit(kit, "^^");
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_change(kit, &one_stays.after, 0), 0);
    domt_expect_output_of_kit(kit, "^"); /* the first stage goes on, so it is not opened again */
    ck_assert_int_eq(opened, 3);
    ck_assert_int_eq(closed, 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &one_stays.before, 0), 0);
    ck_assert_int_eq(closed, 2);
    domus_stage_kit_free(kit);
    ck_assert_int_eq(opened, 4);
    ck_assert_int_eq(closed, 4);
}

static const pair both_open = {{.stages = STAGES({COUNTED}, {LINES})},
                               {.stages = STAGES({OTHER}, {COUNTED}, {LINES})}};

DOMT_TEST(a_new_stage_that_does_not_open_is_not_closed)
{
    domus_stage_kit *kit;

    opened = closed = open_error = 0;
    kit = make_kit_of_pipeline(&both_open.before);
    open_error = -EACCES;
    ck_assert_int_eq(domus_stage_kit_change(kit, &both_open.after, 0), -EACCES);
    ck_assert_int_eq(closed, 1);
    domus_stage_kit_free(kit);
    ck_assert_int_eq(opened, 1);
    ck_assert_int_eq(closed, 1);
}

static const pair without_messages = {{.stages = STAGES({LINES})}, {.stages = STAGES({XOR})}};

DOMT_TEST(a_wrong_change_of_pipeline_is_refused_and_changes_nothing)
{
    domus_stage_kit *kit = make_kit_of_pipeline(&without_messages.before);

    ck_assert_int_eq(domus_stage_kit_change(kit, &without_messages.after, 0), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_change(kit, &without_messages.before, 2), -EINVAL);
    ck_assert_int_eq(feed_and_take_next_message(kit, "a\n", 2), 1);
    domus_stage_kit_free(kit);
}

static const pair to_more = {{.stages = STAGES({COUNTED}, {LINES})},
                             {.stages = STAGES({SIP}, {OTHER}, {SIP}, {LENGTHS})}};

DOMT_TEST(a_change_without_memory_changes_nothing)
{
    domus_stage_kit *kit;
    int error = -ENOMEM;
    int fail_after;

    for (fail_after = 0; error != 0; fail_after++) {
        opened = closed = open_error = 0;
        kit = make_kit_of_pipeline(&to_more.before);
        ck_assert_int_eq(feed_and_take_next_message(kit, "go\n\0\1", 5), 1);
        domi_memory_fail_allocation_after(fail_after, 0);
        error = domus_stage_kit_change(kit, &to_more.after, 0);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(error == 0 || error == -ENOMEM);
        if (error == 0) {
            ck_assert_int_eq(feed_and_take_next_message(kit, "x", 1), 1);
            ck_assert(domus_slice_equals(((domus_packet *)message.payload)->bytes, "x", 1));
        }
        domus_stage_kit_free(kit);
        ck_assert_int_eq(opened, closed);
    }
    ck_assert_int_ge(fail_after, 5);
}

DOMT_SUITE(60)
