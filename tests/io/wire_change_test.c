/* io/wire: a pipeline that is changed between two messages, in whatever pieces the bytes come. */
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

/* A line stage that calls the library's, and counts open states. */
static int opened, closed, open_error;

static int open_counted(domus_wire *wire, void *state, const void *options)
{
    int error = open_error != 0 ? open_error : domus_wire_append(wire, "^", 1);
    opened += error == 0;
    return error;
}

static void close_counted(domus_wire *wire, void *state)
{
    closed++;
}

static int pass_counted(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    uint32_t *used = state;

    *used += (uint32_t)size;
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

static int append_bytes(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

static const domus_stage counted_stage = {.name = "counted",
                                          .state_size = sizeof(uint32_t),
                                          .open = open_counted,
                                          .decode = pass_counted,
                                          .wrap = append_bytes,
                                          .close = close_counted};

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

/* Both sides of a connection make the same change, so the bytes on both sides are the same. */
static const pair pairs[] = {
    /* an upgrade to another protocol */
    {{.stages = STAGES({LINES})}, {.stages = STAGES({LENGTHS})}},
    {{.stages = STAGES({LINES})}, {.stages = STAGES({XOR}, {LINES})}}, /* STARTTLS */
    {{.stages = STAGES({LINES})},
     {.stages = STAGES({STUFF}, {XOR}, {SIP}, {LENGTHS})}}, /* as many stages as may be */
    {{.stages = STAGES({XOR}, {LINES})},
     {.stages = STAGES({XOR}, {LENGTHS})}}, /* an upgrade within TLS */
    {{.stages = STAGES({XOR}, {STUFF}, {LINES})},
     {.stages = STAGES({XOR}, {STUFF}, {LENGTHS})}}, /* two stages go on */
    {{.stages = STAGES({XOR}, {LINES})},
     {.stages = STAGES({XOR}, {STUFF}, {LENGTHS})}}, /* one stage goes on, and one is new */
    /* the byte stage is removed */
    {{.stages = STAGES({SIP}, {LINES})}, {.stages = STAGES({LENGTHS})}},
    /* Byte stages that change bytes are removed. They would also change the bytes behind the
     * boundary, so the peer waits with these. */
    {{.stages = STAGES({XOR}, {STUFF}, {SIP}, {LENGTHS})},
     {.stages = STAGES({XOR}, {LINES})}}, /* one stage goes on, and two are removed */
    {{.stages = STAGES({XOR}, {LINES})},
     {.stages = STAGES({STUFF}, {XOR}, {LINES})}}, /* no stage goes on */
};
#define FIRST_THAT_WAITS 7u
#define PAIRS            (sizeof pairs / sizeof pairs[0])

static const size_t sizes[] = {0, 1, 300, 7, 5000, 2};
#define COUNT     (sizeof sizes / sizeof sizes[0])
#define CHANGE_AT 3u /* number of messages before the change */

static domus_packet packet_of(size_t size, size_t seed)
{
    char bytes[5000];
    domus_packet packet;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)('A' + (i * 7 + seed) % 61); /* no line end, but bytes that are escaped */
    ck_assert_int_eq(domus_slice_copy(bytes, size, &packet.bytes), 0);
    return packet;
}

/* Encode packets, with the change between. Returns the bytes for the peer, which the caller frees,
 * and how many bytes of them lie before the change. */
static char *encode_all(const pair *way, size_t *ret_size, size_t *ret_before)
{
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(&way->before, &kit), 0);
    for (size_t i = 0; i < COUNT; i++) {
        domus_packet packet = packet_of(sizes[i], i);
        if (i == CHANGE_AT) {
            (void)domus_stage_kit_output(kit, ret_before);
            ck_assert_int_eq(domus_stage_kit_change(kit, &way->after, DOMUS_PIPELINE_CLEAN), 0);
        }
        ck_assert_int_eq(domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_packet_type, &packet), 0);
        domus_slice_free(packet.bytes);
    }
    char *output = domt_copy_output(kit, ret_size);
    domus_stage_kit_free(kit);
    return output;
}

static domus_stage_kit *kit_of(const domus_pipeline *pipeline)
{
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(pipeline, &kit), 0);
    return kit;
}

static domus_stage_message message; /* the last message that came */

/* Feed bytes. Returns the result of the kit. */
static int next_of(domus_stage_kit *kit, const char *bytes, size_t size)
{
    ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, size), 0);
    return domus_stage_kit_next(kit, &message);
}

/* Decode the bytes that have come, and change the pipeline behind the last message before the
 * change. */
static void decode_some(domus_stage_kit *kit, const pair *way, size_t *count)
{
    int result = domus_stage_kit_next(kit, &message);

    for (; result == 1; result = domus_stage_kit_next(kit, &message)) {
        domus_packet expected = packet_of(sizes[*count], *count);
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

static void check_pieces(const pair *way, const char *bytes, size_t size, size_t before,
                         domt_cut *cut, void *context)
{
    domus_stage_kit *kit = kit_of(&way->before);
    size_t count = 0;

    while (size != 0) {
        size_t piece = cut(context, size);
        if (way >= pairs + FIRST_THAT_WAITS && before != 0 && piece > before)
            piece = before;
        before -= before < piece ? before : piece;
        ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, piece), 0);
        decode_some(kit, way, &count);
        bytes += piece;
        size -= piece;
    }
    domus_stage_kit_finish(kit);
    decode_some(kit, way, &count);
    ck_assert_uint_eq(count, COUNT);
    domus_stage_kit_free(kit);
}

/* Cut once, at the byte that `context` says. */
static size_t cut_once(void *context, size_t left)
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
        char *bytes = encode_all(&pairs[i], &size, &before);
        check_pieces(&pairs[i], bytes, size, before, domt_cut_same, &step);
        step = size;
        check_pieces(&pairs[i], bytes, size, before, domt_cut_same, &step);
        check_pieces(&pairs[i], bytes, size, before, domt_cut_random, &seed);
        for (size_t at = before - 5; at < before + 30; at++) {
            size_t once = at;
            check_pieces(&pairs[i], bytes, size, before, cut_once, &once);
        }
        free(bytes);
    }
}

/* --- bytes that came too early ---------------------------------------------------------------- */

static const pair into_tls = {{.stages = STAGES({LINES})}, {.stages = STAGES({XOR}, {LINES})}};

DOMT_TEST(a_clean_change_suffers_no_byte_behind_the_message)
{
    static const char *const asked[] = {"go\nx", "go\nx\n", "go\n\n"};
    domus_stage_kit *kit;

    for (size_t i = 0; i < 3; i++) {
        for (size_t first = 3; first <= strlen(asked[i]); first++) {
            kit = kit_of(&into_tls.before);
            ck_assert_int_eq(next_of(kit, asked[i], first), 1);
            if (first < strlen(asked[i]))
                ck_assert_int_eq(
                    domus_stage_kit_feed(kit, asked[i] + first, strlen(asked[i]) - first), 0);
            ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, DOMUS_PIPELINE_CLEAN),
                             -EPROTO);
            ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, 0), 0);
            domus_stage_kit_free(kit);
        }
    }
    /* A message that came in pieces lies in the window; that is no byte behind the message. */
    kit = kit_of(&into_tls.before);
    ck_assert_int_eq(next_of(kit, "g", 1), 0);
    ck_assert_int_eq(next_of(kit, "o\n", 2), 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, DOMUS_PIPELINE_CLEAN), 0);
    domus_stage_kit_free(kit);
}

static const pair with_rest = {{.stages = STAGES({SWELL}, {LINES})}, {.stages = STAGES({LINES})}};

DOMT_TEST(a_stage_that_goes_may_have_nothing_left_over)
{
    static const char bytes[] = {0, 'a', 0, '\n', 15, 'b', 15, 'b', 15, 'b', 15, 'b'};
    domus_stage_kit *kit = kit_of(&with_rest.before);

    ck_assert_int_eq(next_of(kit, bytes, sizeof bytes), 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &with_rest.after, 0), -EPROTO);
    domus_stage_kit_free(kit);
}

/* The byte stage waits for the second byte of a pair. The bytes that it has passed on lie in the
 * line stage, and came before. */
DOMT_TEST(bytes_that_several_stages_have_not_used_keep_their_order)
{
    static const char bytes[] = {0, 'a', 0, '\n', 0, 'b', 'c'};
    domus_stage_kit *kit = kit_of(&with_rest.before);

    ck_assert_int_eq(next_of(kit, bytes, sizeof bytes), 1);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_change(kit, &with_rest.after, 0), 0);
    ck_assert_int_eq(next_of(kit, "d\n", 2), 1);
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
    kit = kit_of(&one_stays.before);
    domt_expect_output(kit, "^^");
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_change(kit, &one_stays.after, 0), 0);
    domt_expect_output(kit, "^"); /* the first stage goes on: it is not opened again */
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
    kit = kit_of(&both_open.before);
    open_error = -EACCES;
    ck_assert_int_eq(domus_stage_kit_change(kit, &both_open.after, 0), -EACCES);
    ck_assert_int_eq(closed, 1);
    domus_stage_kit_free(kit);
    ck_assert_int_eq(opened, 1);
    ck_assert_int_eq(closed, 1);
}

static const pair without_messages = {{.stages = STAGES({LINES})}, {.stages = STAGES({XOR})}};

DOMT_TEST(a_wrong_change_changes_nothing)
{
    domus_stage_kit *kit = kit_of(&without_messages.before);

    ck_assert_int_eq(domus_stage_kit_change(kit, &without_messages.after, 0), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_change(kit, &without_messages.before, 2), -EINVAL);
    ck_assert_int_eq(next_of(kit, "a\n", 2), 1);
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
        kit = kit_of(&to_more.before);
        ck_assert_int_eq(next_of(kit, "go\n\0\1", 5), 1);
        domi_memory_fail_after(fail_after, 0);
        error = domus_stage_kit_change(kit, &to_more.after, 0);
        domi_memory_fail_after(-1, 0);
        ck_assert(error == 0 || error == -ENOMEM);
        if (error == 0) {
            ck_assert_int_eq(next_of(kit, "x", 1), 1);
            ck_assert(domus_slice_equals(((domus_packet *)message.payload)->bytes, "x", 1));
        }
        domus_stage_kit_free(kit);
        ck_assert_int_eq(opened, closed);
    }
    ck_assert_int_ge(fail_after, 5);
}

DOMT_SUITE(60)
