/* Inner channels in a kit of stages (domus/inner.h), with a stage that carries up to four
 * conversations: a frame is the number of a conversation, a size and so many bytes; a size of 0 is
 * the end of what the peer sends in that conversation. Answers have the same frames, of up to five
 * bytes. */
#include "tests/support/suite.h"

#include <domus/inner_kit.h>
#include <domus/pipeline.h>

#include <errno.h>
#include <string.h>

/* --- the stage -------------------------------------------------------------------------------- */

#define CARRIED 4u
#define PIECE   5u

typedef struct mux {
    domus_inner *inner[CARRIED];
    bool is_draining;
} mux;

static uint32_t count_open_inner_channels(const mux *state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < CARRIED; i++)
        count += state->inner[i] != NULL;
    return count;
}

static int decode_frames(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    mux *state = state_;
    size_t payload = size >= 2 ? (unsigned char)bytes[1] : 0;

    if (bytes[0] < '0' || bytes[0] >= '0' + (int)CARRIED) {
        domus_wire_leave(wire);
        return 0;
    }
    if (size < 2 || size < 2 + payload)
        return 0;
    domus_inner **inner = &state->inner[bytes[0] - '0'];
    int error = *inner == NULL ? domus_wire_inner_open(wire, inner, inner) : 0;
    if (error == 0 && payload != 0)
        error = domus_inner_pass(*inner, bytes + 2, payload);
    else if (error == 0)
        domus_inner_end(*inner);
    domus_wire_set_carried(wire, count_open_inner_channels(state));
    return error != 0 ? error : (int)(2 + payload);
}

static int wrap_unchanged(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

/* Send the bytes that an inner channel has queued; the channel's end ends its conversation. */
static int send_queued_bytes_in_frames(domus_wire *wire, mux *state, domus_inner *inner)
{
    domus_inner **place = domus_inner_data(inner);
    char head[2] = {(char)('0' + (place - state->inner)), 0};
    const char *bytes;
    size_t size;
    int error = 0;

    while (error == 0 && !domus_wire_is_full(wire) &&
           (bytes = domus_inner_bytes(inner, &size)) != NULL) {
        size = size < PIECE ? size : PIECE;
        head[1] = (char)size;
        error = domus_wire_append(wire, head, 2);
        if (error == 0)
            error = domus_wire_append(wire, bytes, size);
        domus_inner_took(inner, size);
    }
    if (error != 0 || domus_inner_look(inner, NULL) == DOMUS_INNER_OPEN ||
        domus_inner_bytes(inner, &size) != NULL)
        return error;
    domus_inner_drop(inner, 0);
    *place = NULL;
    domus_wire_set_carried(wire, count_open_inner_channels(state));
    head[1] = 0;
    return domus_wire_append(wire, head, 2);
}

static int carry_bytes_of_inner_channels(domus_wire *wire, void *state_)
{
    mux *state = state_;
    int error = 0;

    /* the inner channels that changed need no look of their own: the loop below looks at all inner
     * channels */
    while (domus_wire_inner_next(wire) != NULL)
        continue;
    for (uint32_t i = 0; error == 0 && i < CARRIED; i++) {
        if (state->inner[i] != NULL)
            error = send_queued_bytes_in_frames(wire, state, state->inner[i]);
    }
    if (error == 0 && domus_wire_is_draining(wire) && !state->is_draining) {
        state->is_draining = true;
        error = domus_wire_append(wire, "bye", 3);
    }
    return error;
}

static void close_stage_and_drop_inner(domus_wire *wire, void *state_)
{
    mux *state = state_;

    for (uint32_t i = 0; i < CARRIED; i++) {
        if (state->inner[i] != NULL)
            domus_inner_drop(state->inner[i], -ECONNRESET);
    }
}

static const domus_stage mux_stage = {.name = "mux",
                                      .state_size = sizeof(mux),
                                      .decode = decode_frames,
                                      .wrap = wrap_unchanged,
                                      .close = close_stage_and_drop_inner,
                                      .carry = carry_bytes_of_inner_channels};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&mux_stage, NULL}, {&domus_line_stage, NULL}, {NULL, NULL}}};

/* --- the kit ---------------------------------------------------------------------------------- */

static domus_stage_kit *kit;

static void make_kit_with_inner_channels(uint32_t most)
{
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    if (most != 0)
        ck_assert_int_eq(domus_stage_kit_allow_inner(kit, most), 0);
}

/* Feed bytes of the peer to the kit. Returns the result of the stages. */
static int feed_bytes_to_kit(const char *bytes, size_t size)
{
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, size), 0);
    return domus_stage_kit_next(kit, &message);
}

static domus_kit_inner *inner_channel_at(uint32_t index)
{
    domus_kit_inner *inner = domus_stage_kit_inner(kit, index);

    ck_assert_ptr_nonnull(inner);
    return inner;
}

static void check_bytes_of_inner(const domus_kit_inner *inner, const char *text)
{
    size_t size;
    const char *got = domus_kit_inner_got(inner, &size);

    ck_assert_uint_eq(size, strlen(text));
    ck_assert_mem_eq(got, text, size);
}

/* Call `carry`, and check that these bytes go to the peer. */
static void check_carried_bytes(const char *bytes, size_t size)
{
    size_t sent;

    ck_assert_int_eq(domus_stage_kit_carry(kit), 0);
    const char *output = domus_stage_kit_output(kit, &sent);
    ck_assert_uint_eq(sent, size);
    ck_assert_mem_eq(output, bytes, size);
    domus_stage_kit_clear(kit);
}

#define HOLD_SENT(bytes) check_carried_bytes(bytes, sizeof(bytes) - 1)

/* --- tests ------------------------------------------------------------------------------------ */

/* The bytes of two conversations come in two pieces, split at each place. */
DOMT_TEST(inner_channels_get_bytes_however_they_are_split)
{
    static const char frames[] = "1\3one2\2tw1\4more2\1o1\0";
    const size_t size = sizeof frames - 1;

    for (size_t at = 1; at < size; at++) {
        make_kit_with_inner_channels(2);
        ck_assert_int_eq(feed_bytes_to_kit(frames, at), 0);
        ck_assert_int_eq(feed_bytes_to_kit(frames + at, size - at), 0);
        check_bytes_of_inner(inner_channel_at(0), "onemore");
        check_bytes_of_inner(inner_channel_at(1), "two");
        ck_assert(domus_kit_inner_has_end(inner_channel_at(0)) &&
                  !domus_kit_inner_has_end(inner_channel_at(1)));
        ck_assert_ptr_null(domus_stage_kit_inner(kit, 2));
        ck_assert_uint_eq(domus_stage_kit_carried(kit), 2);
        domus_stage_kit_free(kit);
    }
}

DOMT_TEST(inner_channels_send_bytes_in_order_and_then_the_end)
{
    make_kit_with_inner_channels(2);
    ck_assert_int_eq(feed_bytes_to_kit("1\1a2\1b", 6), 0);
    HOLD_SENT("");
    ck_assert_int_eq(domus_kit_inner_send(inner_channel_at(1), "second", 6), 0);
    ck_assert_int_eq(domus_kit_inner_send(inner_channel_at(0), "first", 5), 0);
    ck_assert_uint_eq(domus_kit_inner_queued(inner_channel_at(1)), 6);
    HOLD_SENT("1\5first2\5secon2\1d");
    ck_assert_uint_eq(domus_kit_inner_queued(inner_channel_at(1)), 0);
    HOLD_SENT("");
    ck_assert_int_eq(domus_kit_inner_send(inner_channel_at(0), "x", 1), 0);
    domus_kit_inner_finish(inner_channel_at(0));
    ck_assert_int_eq(domus_kit_inner_send(inner_channel_at(0), "y", 1), -EPIPE);
    HOLD_SENT("1\1x1\0");
    int error = 1;
    ck_assert(domus_kit_inner_is_dropped(inner_channel_at(0), &error));
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(domus_stage_kit_carried(kit), 1);
    /* Bytes that an inner channel has queued are lost if it is closed with an error. */
    ck_assert_int_eq(domus_kit_inner_send(inner_channel_at(1), "z", 1), 0);
    domus_kit_inner_close(inner_channel_at(1), -ETIMEDOUT);
    HOLD_SENT("2\0");
    ck_assert_uint_eq(domus_stage_kit_carried(kit), 0);
    domus_stage_kit_free(kit);
}

DOMT_TEST(used_bytes_of_an_inner_channel_are_gone)
{
    make_kit_with_inner_channels(1);
    ck_assert_int_eq(feed_bytes_to_kit("0\5hello", 7), 0);
    domus_kit_inner_use(inner_channel_at(0), 2);
    check_bytes_of_inner(inner_channel_at(0), "llo");
    domus_kit_inner_use(inner_channel_at(0), 3);
    check_bytes_of_inner(inner_channel_at(0), "");
    domus_stage_kit_free(kit);
}

/* At most four conversations are open at a time; one that is given up makes room for another
 * one. */
DOMT_TEST(number_of_open_inner_channels_is_bounded)
{
    make_kit_with_inner_channels(2);
    ck_assert_int_eq(feed_bytes_to_kit("0\1a1\1b", 6), 0);
    domus_kit_inner_finish(inner_channel_at(0));
    HOLD_SENT("0\0");
    ck_assert_int_eq(feed_bytes_to_kit("2\1c", 3), 0);
    check_bytes_of_inner(inner_channel_at(2), "c");
    ck_assert_int_eq(feed_bytes_to_kit("3\1d", 3), -ENOBUFS);
    domus_stage_kit_free(kit);
    make_kit_with_inner_channels(0);
    ck_assert_int_eq(feed_bytes_to_kit("0\1a", 3), -EOPNOTSUPP);
    domus_stage_kit_free(kit);
}

DOMT_TEST(a_full_peer_gets_no_bytes_until_it_has_room)
{
    make_kit_with_inner_channels(1);
    ck_assert_int_eq(feed_bytes_to_kit("0\1a", 3), 0);
    domus_stage_kit_fill(kit, true);
    ck_assert_int_eq(domus_kit_inner_send(inner_channel_at(0), "b", 1), 0);
    HOLD_SENT("");
    ck_assert_uint_eq(domus_kit_inner_queued(inner_channel_at(0)), 1);
    domus_stage_kit_fill(kit, false);
    HOLD_SENT("0\1b");
    domus_stage_kit_drain(kit);
    HOLD_SENT("bye");
    HOLD_SENT("");
    domus_stage_kit_free(kit);
}

/* Bytes behind the last one of a stage that leaves belong to the next stage. */
DOMT_TEST(a_stage_that_leaves_gives_later_bytes_to_the_next)
{
    domus_stage_message message;

    make_kit_with_inner_channels(1);
    ck_assert_int_eq(feed_bytes_to_kit("lines\n0\1a\n", 10), 1);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_ptr_null(domus_stage_kit_state(kit, &mux_stage));
    ck_assert_ptr_null(domus_stage_kit_inner(kit, 0));
    domus_stage_kit_free(kit);
}

static int pass_bytes_unchanged(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

static const domus_stage same = {
    .name = "same", .decode = pass_bytes_unchanged, .wrap = wrap_unchanged};
static const domus_pipeline behind = {
    .stages = (const domus_pipeline_stage[]){
        {&same, NULL}, {&mux_stage, NULL}, {&domus_line_stage, NULL}, {NULL, NULL}}};

/* A carrying stage that stands behind another stage can leave: however its bytes are split, it then
 * does nothing any more. */
DOMT_TEST(a_stage_behind_another_one_leaves)
{
    static const char text[] = "a line\n0\1x\n";
    const size_t size = sizeof text - 1;

    for (size_t at = 1; at < size; at++) {
        domus_stage_message message;
        unsigned lines = 0;
        ck_assert_int_eq(domus_stage_kit_new(&behind, &kit), 0);
        ck_assert_int_eq(domus_stage_kit_allow_inner(kit, 1), 0);
        for (unsigned half = 0; half < 2; half++) {
            ck_assert_int_eq(
                domus_stage_kit_feed(kit, text + (half != 0 ? at : 0), half != 0 ? size - at : at),
                0);
            for (; domus_stage_kit_next(kit, &message) == 1; lines++) {
                const domus_packet *line = message.payload;
                ck_assert_uint_eq(line->bytes.size, lines == 0 ? 6 : 3);
                ck_assert_int_eq(domus_stage_kit_encode(kit, message.id, message.type, line), 0);
            }
        }
        ck_assert_uint_eq(lines, 2);
        check_carried_bytes(text, size);
        ck_assert_ptr_null(domus_stage_kit_inner(kit, 0));
        domus_stage_kit_finish(kit);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
        domus_stage_kit_free(kit);
    }
}

DOMT_SUITE(20)
