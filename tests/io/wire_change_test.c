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

/* A line stage that is called by the library's, and counts what is open. */
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

static int pass(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    uint32_t *used = state;

    *used += (uint32_t)size;
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

static int append(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

static const domus_stage counted_stage = {.name = "counted",
                                          .state_size = sizeof(uint32_t),
                                          .open = open_counted,
                                          .decode = pass,
                                          .wrap = append,
                                          .close = close_counted};

/* --- pipelines -------------------------------------------------------------------------------- */

static const domus_line_options line = {.role = DOMUS_ROLE_PEER};
static const domus_length_options two_bytes = {.role = DOMUS_ROLE_PEER, .width = 2};
static const int other_options;

#define STAGES(...)                                                                                \
    {                                                                                              \
        .stages = (const domus_pipeline_stage[])                                                   \
        {                                                                                          \
            __VA_ARGS__,                                                                           \
            {                                                                                      \
                NULL, NULL                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
#define LINES                                                                                      \
    {                                                                                              \
        &domus_line_stage, &line                                                                   \
    }
#define LENGTHS                                                                                    \
    {                                                                                              \
        &domus_length_stage, &two_bytes                                                            \
    }
#define XOR                                                                                        \
    {                                                                                              \
        &domt_xor_stage, NULL                                                                      \
    }
#define STUFF                                                                                      \
    {                                                                                              \
        &domt_stuff_stage, NULL                                                                    \
    }
#define SIP                                                                                        \
    {                                                                                              \
        &domt_sip_stage, NULL                                                                      \
    }
#define COUNTED                                                                                    \
    {                                                                                              \
        &counted_stage, NULL                                                                       \
    }
#define OTHER                                                                                      \
    {                                                                                              \
        &counted_stage, &other_options                                                             \
    }
#define SWELL                                                                                      \
    {                                                                                              \
        &domt_swell_stage, NULL                                                                    \
    }

typedef struct pair {
    domus_pipeline before, after;
} pair;

/* Both sides of a connection make the same change, so bytes are the same on both. */
static const pair pairs[] = {
    {STAGES(LINES), STAGES(LENGTHS)},                         /* an upgrade */
    {STAGES(LINES), STAGES(XOR, LINES)},                      /* STARTTLS */
    {STAGES(LINES), STAGES(STUFF, XOR, SIP, LENGTHS)},        /* as many as may be */
    {STAGES(XOR, LINES), STAGES(XOR, LENGTHS)},               /* an upgrade within TLS */
    {STAGES(XOR, STUFF, LINES), STAGES(XOR, STUFF, LENGTHS)}, /* two that go on */
    {STAGES(XOR, LINES), STAGES(XOR, STUFF, LENGTHS)},        /* one that goes on, one more */
    {STAGES(SIP, LINES), STAGES(LENGTHS)},                    /* the byte stage goes */
    /* Byte stages go that change bytes. They would change those behind the boundary, too, so the
     * peer waits with these. */
    {STAGES(XOR, STUFF, SIP, LENGTHS), STAGES(XOR, LINES)}, /* one goes on, two go */
    {STAGES(XOR, LINES), STAGES(STUFF, XOR, LINES)},        /* nothing goes on */
};
#define FIRST_THAT_WAITS 7u
#define PAIRS            (sizeof pairs / sizeof pairs[0])

static const size_t sizes[] = {0, 1, 300, 7, 5000, 2};
#define COUNT     (sizeof sizes / sizeof sizes[0])
#define CHANGE_AT 3u /* the change comes behind so many messages */

static domus_packet packet_of(size_t size, size_t seed)
{
    char bytes[5000];
    domus_packet packet;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)('A' + (i * 7 + seed) % 61); /* no line end; escapes are among them */
    ck_assert_int_eq(domus_slice_copy(bytes, size, &packet.bytes), 0);
    return packet;
}

/* Encode packets, with the change between. Returns what goes to the peer, the caller's, and how
 * many bytes of it lie before the change. */
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

/* Decode what has come, and change behind the message that is the last before the change. */
static void decode_some(domus_stage_kit *kit, const pair *way, size_t *count)
{
    domus_stage_message message;
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

static void hold_pieces(const pair *way, const char *bytes, size_t size, size_t before,
                        domt_cut *cut, void *context)
{
    domus_stage_kit *kit;
    size_t count = 0;

    ck_assert_int_eq(domus_stage_kit_new(&way->before, &kit), 0);
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

/* One cut, at the byte that `context` says. */
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
        hold_pieces(&pairs[i], bytes, size, before, domt_cut_same, &step);
        step = size;
        hold_pieces(&pairs[i], bytes, size, before, domt_cut_same, &step);
        hold_pieces(&pairs[i], bytes, size, before, domt_cut_random, &seed);
        for (size_t at = before - 5; at < before + 30; at++) {
            size_t once = at;
            hold_pieces(&pairs[i], bytes, size, before, cut_once, &once);
        }
        free(bytes);
    }
}

/* --- bytes that came too early ---------------------------------------------------------------- */

static const pair into_tls = {STAGES(LINES), STAGES(XOR, LINES)};

DOMT_TEST(a_clean_change_suffers_no_byte_behind_the_message)
{
    static const char *const asked[] = {"go\nx", "go\nx\n", "go\n\n"};
    domus_stage_message message;
    domus_stage_kit *kit;

    for (size_t i = 0; i < 3; i++) {
        for (size_t first = 3; first <= strlen(asked[i]); first++) {
            ck_assert_int_eq(domus_stage_kit_new(&into_tls.before, &kit), 0);
            ck_assert_int_eq(domus_stage_kit_feed(kit, asked[i], first), 0);
            ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
            if (first < strlen(asked[i]))
                ck_assert_int_eq(
                    domus_stage_kit_feed(kit, asked[i] + first, strlen(asked[i]) - first), 0);
            ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, DOMUS_PIPELINE_CLEAN),
                             -EPROTO);
            ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, 0), 0);
            domus_stage_kit_free(kit);
        }
    }
    /* a message that came in pieces lies in the window; that is no byte behind it */
    ck_assert_int_eq(domus_stage_kit_new(&into_tls.before, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "g", 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "o\n", 2), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &into_tls.after, DOMUS_PIPELINE_CLEAN), 0);
    domus_stage_kit_free(kit);
}

static const pair with_rest = {STAGES(SWELL, LINES), STAGES(LINES)};

DOMT_TEST(a_stage_that_goes_may_have_nothing_left_over)
{
    static const char bytes[] = {0, 'a', 0, '\n', 15, 'b', 15, 'b', 15, 'b', 15, 'b'};
    domus_stage_message message;
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(&with_rest.before, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, sizeof bytes), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &with_rest.after, 0), -EPROTO);
    domus_stage_kit_free(kit);
}

/* The byte stage waits for the second byte of a pair. The bytes that it has passed on lie in the
 * line stage, and came before. */
DOMT_TEST(bytes_that_several_stages_have_not_used_keep_their_order)
{
    static const char bytes[] = {0, 'a', 0, '\n', 0, 'b', 'c'};
    domus_stage_message message;
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(&with_rest.before, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, sizeof bytes), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_change(kit, &with_rest.after, 0), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "d\n", 2), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert(domus_slice_equals(((const domus_packet *)message.payload)->bytes, "bcd", 3));
    domus_stage_kit_free(kit);
}

/* --- open and close --------------------------------------------------------------------------- */

static const pair one_stays = {STAGES(COUNTED, OTHER, LINES), STAGES(COUNTED, COUNTED, LENGTHS)};

DOMT_TEST(stages_that_go_are_closed_once_and_others_go_on)
{
    domus_stage_kit *kit;

    opened = closed = open_error = 0;
    ck_assert_int_eq(domus_stage_kit_new(&one_stays.before, &kit), 0);
    domt_expect_output(kit, "^^");
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_change(kit, &one_stays.after, 0), 0);
    domt_expect_output(kit, "^"); /* the first one goes on: it is not opened again */
    ck_assert_int_eq(opened, 3);
    ck_assert_int_eq(closed, 1);
    ck_assert_int_eq(domus_stage_kit_change(kit, &one_stays.before, 0), 0);
    ck_assert_int_eq(closed, 2);
    domus_stage_kit_free(kit);
    ck_assert_int_eq(opened, 4);
    ck_assert_int_eq(closed, 4);
}

static const pair both_open = {STAGES(COUNTED, LINES), STAGES(OTHER, COUNTED, LINES)};

DOMT_TEST(a_new_stage_that_does_not_open_is_not_closed)
{
    domus_stage_kit *kit;

    opened = closed = open_error = 0;
    ck_assert_int_eq(domus_stage_kit_new(&both_open.before, &kit), 0);
    open_error = -EACCES;
    ck_assert_int_eq(domus_stage_kit_change(kit, &both_open.after, 0), -EACCES);
    ck_assert_int_eq(closed, 1);
    domus_stage_kit_free(kit);
    ck_assert_int_eq(opened, 1);
    ck_assert_int_eq(closed, 1);
}

static const pair without_messages = {STAGES(LINES), STAGES(XOR)};

DOMT_TEST(a_wrong_change_changes_nothing)
{
    domus_stage_message message;
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(&without_messages.before, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_change(kit, &without_messages.after, 0), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_change(kit, &without_messages.before, 2), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "a\n", 2), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    domus_stage_kit_free(kit);
}

static const pair to_more = {STAGES(COUNTED, LINES), STAGES(SIP, OTHER, SIP, LENGTHS)};

DOMT_TEST(a_change_without_memory_changes_nothing)
{
    domus_stage_message message;
    domus_stage_kit *kit;
    int error = -ENOMEM;
    int fail_after;

    for (fail_after = 0; error != 0; fail_after++) {
        opened = closed = open_error = 0;
        ck_assert_int_eq(domus_stage_kit_new(&to_more.before, &kit), 0);
        ck_assert_int_eq(domus_stage_kit_feed(kit, "go\n\0\1", 5), 0);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
        domi_memory_fail_after(fail_after, 0);
        error = domus_stage_kit_change(kit, &to_more.after, 0);
        domi_memory_fail_after(-1, 0);
        ck_assert(error == 0 || error == -ENOMEM);
        if (error == 0) {
            ck_assert_int_eq(domus_stage_kit_feed(kit, "x", 1), 0);
            ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
            ck_assert(domus_slice_equals(((domus_packet *)message.payload)->bytes, "x", 1));
        }
        domus_stage_kit_free(kit);
        ck_assert_int_eq(opened, closed);
    }
    ck_assert_int_ge(fail_after, 5);
}

DOMT_SUITE(60)
