/* io/wire: stages whose output is left over, and the bounds of one call of
 * domi_wire_decode_next_message(). */
#include "io/wire/wire.h"

#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- a message stage that only counts --------------------------------------------------------- */

static uint64_t seen;       /* number of bytes that `decode` has used */
static uint32_t calls;      /* number of calls of `decode` of the stages in this file */
static uint32_t window_max; /* size of the longest window that `decode` was shown */
/* number of bytes that `decode` uses in a call; 0: all that it is shown */
static uint32_t per_call;
static bool says_again;

static int use_and_count_bytes(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    calls++;
    if (says_again)
        domus_wire_again(wire);
    if (size > window_max)
        window_max = (uint32_t)size;
    size_t used = per_call != 0 && per_call < size ? per_call : size;
    seen += used;
    return (int)used;
}

static int encode_nothing(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                          const void *payload)
{
    return 0;
}

static const domus_stage counter_stage = {
    .name = "counter", .decode = use_and_count_bytes, .encode = encode_nothing};

/* A wire without a kit, because a kit calls its wire again by itself. */
typedef struct bare {
    domus_wire *wire;
    domi_out out, aside;
} bare;

static bare make_bare_wire(const domus_pipeline *pipeline)
{
    bare made = {.wire = domi_wire_new(pipeline, NULL, 0)};

    ck_assert_ptr_nonnull(made.wire);
    seen = calls = window_max = per_call = 0;
    says_again = false;
    return made;
}

static void open_stages_of_bare_wire(bare *made)
{
    made->wire->out = &made->out;
    made->wire->aside = &made->aside;
    ck_assert_int_eq(domi_wire_open_stages(made->wire), 0);
}

static void free_bare_wire(bare *made)
{
    domi_wire_free(made->wire);
    domi_out_remove_all(&made->out, true);
    domi_out_remove_all(&made->aside, true);
}

/* --- output that is left over ----------------------------------------------------------------- */

static const domus_length_options two_bytes = {.role = DOMUS_ROLE_PEER, .width = 2};
static const domt_swell_options tenfold = {.factor = 10, .per_call = 7};
static const domus_pipeline swelling = {
    .stages = (const domus_pipeline_stage[]){
        {&domt_swell_stage, &tenfold}, {&domus_length_stage, &two_bytes}, {NULL, NULL}}};
static const domus_pipeline swelling_twice = {
    .stages = (const domus_pipeline_stage[]){{&domt_swell_stage, NULL},
                                             {&domt_xor_stage, NULL},
                                             {&domt_swell_stage, &tenfold},
                                             {&domus_length_stage, &two_bytes},
                                             {NULL, NULL}}};

DOMT_TEST(output_that_is_left_over_comes_without_new_bytes)
{
    /* pairs of a number n and a byte, which the stage passes on 10 * n + 1 times: a length of 2500,
     * and then more bytes than that */
    static const char bytes[] = {0, 9, 0, (char)196, 1, 'a', (char)249, 'b', 0, 0, 0, 1, 0, 'c'};

    for (size_t step = 1; step <= sizeof bytes; step++) {
        domt_decoded decoded;
        domt_decode_in_pieces(&swelling, bytes, sizeof bytes, domt_size_of_next_equal_piece, &step,
                              &decoded, NULL);
        ck_assert_int_eq(decoded.error, -EPIPE);
        ck_assert_uint_eq(decoded.count, 1);
        ck_assert_uint_eq(decoded.size, 7 + 9 * 256 + 196);
        ck_assert_mem_eq(decoded.text, "1 2500:aaaaaaaaaaab", 19);
        domt_decoded_clear(&decoded);
    }
}

static char *make_random_bytes(size_t size)
{
    char *bytes = malloc(size);
    uint32_t value = 12345;

    for (size_t i = 0; i < size; i++) {
        value = value * 1664525u + 1013904223u;
        bytes[i] = (char)(value >> 24);
    }
    return bytes;
}

DOMT_TEST(pieces_of_any_size_decode_to_the_same_messages)
{
    const size_t size = 20000;
    char *bytes = make_random_bytes(size);
    domt_decoded whole, pieces;
    uint64_t seed = 7;
    size_t step = 1;

    domt_decode_in_pieces(&swelling_twice, bytes, size, NULL, NULL, &whole, NULL);
    ck_assert_uint_ge(whole.count, 10);
    domt_decode_in_pieces(&swelling_twice, bytes, size, domt_size_of_next_equal_piece, &step,
                          &pieces, NULL);
    ck_assert(domt_decoded_equals(&whole, &pieces));
    domt_decoded_clear(&pieces);
    domt_decode_in_pieces(&swelling_twice, bytes, size, domt_size_of_next_random_piece, &seed,
                          &pieces, NULL);
    ck_assert(domt_decoded_equals(&whole, &pieces));
    domt_decoded_clear(&pieces);
    domt_decoded_clear(&whole);
    free(bytes);
}

static int append_bytes_unchanged(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

/* --- output before any byte is used ----------------------------------------------------------- */

/* When the byte stage sees two bytes, it first passes on a length of its own, and uses none of
 * them; then it passes all bytes on. */
static int pass_length_first(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    uint32_t *sent = state_;
    static const char length[2] = {0, 4};

    if (*sent == 0 && size < 2)
        return 0;
    if (*sent == 0) {
        *sent = 1;
        domus_wire_again(wire);
        return domus_wire_pass(wire, length, 2);
    }
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

static const domus_stage prefix_stage = {.name = "prefix",
                                         .state_size = sizeof(uint32_t),
                                         .decode = pass_length_first,
                                         .wrap = append_bytes_unchanged};
static const domus_pipeline prefixing = {
    .stages = (const domus_pipeline_stage[]){
        {&prefix_stage, NULL}, {&domus_length_stage, &two_bytes}, {NULL, NULL}}};

DOMT_TEST(a_stage_may_pass_on_before_it_uses_a_byte)
{
    for (size_t step = 1; step <= 4; step++) {
        domt_decoded decoded;
        domt_decode_in_pieces(&prefixing, "abcd", 4, domt_size_of_next_equal_piece, &step, &decoded,
                              NULL);
        ck_assert_int_eq(decoded.error, 0);
        ck_assert_uint_eq(decoded.count, 1);
        ck_assert_mem_eq(decoded.text, "1 4:abcd", 8);
        domt_decoded_clear(&decoded);
    }
}

/* A stage that asks to go on is called again in the same call of the wire, whether it was shown new
 * bytes or those that its window kept. */
DOMT_TEST(a_stage_that_has_used_no_byte_waits_for_none)
{
    static const domus_pipeline_stage stages[] = {
        {&prefix_stage, NULL}, {&counter_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};

    for (size_t first = 0; first <= 1; first++) {
        bare made = make_bare_wire(&pipeline);
        const char *at = "ab";
        size_t size = first;
        open_stages_of_bare_wire(&made);
        ck_assert_int_eq(domi_wire_decode_next_message(made.wire, &at, &size), 0);
        ck_assert_uint_eq(seen, 0);
        size = 2 - first;
        ck_assert_int_eq(domi_wire_decode_next_message(made.wire, &at, &size), 0);
        ck_assert_uint_eq(seen, 2 + 2);
        free_bare_wire(&made);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

/* A stage that keeps all bytes until the peer has finished, and then passes them on in threes. */
typedef struct late_state {
    char bytes[64];
    uint32_t size, done;
} late_state;

static uint32_t ends;

static int gather_bytes(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    late_state *state = state_;

    memcpy(state->bytes + state->size, bytes, size);
    state->size += (uint32_t)size;
    return (int)size;
}

static int pass_gathered_bytes_at_end(domus_wire *wire, void *state_, size_t left)
{
    late_state *state = state_;
    uint32_t part = state->size - state->done < 3 ? state->size - state->done : 3;

    ck_assert_uint_eq(left, 0);
    ends++;
    int error = domus_wire_pass(wire, state->bytes + state->done, part);
    state->done += part;
    if (state->done != state->size || part == 0)
        domus_wire_again(wire); /* this changes nothing if there was nothing to pass on */
    return error;
}

static const domus_stage late_stage = {.name = "late",
                                       .state_size = sizeof(late_state),
                                       .decode = gather_bytes,
                                       .end = pass_gathered_bytes_at_end,
                                       .wrap = append_bytes_unchanged};
static const domus_pipeline late = {
    .stages = (const domus_pipeline_stage[]){
        {&late_stage, NULL}, {&domus_length_stage, &two_bytes}, {NULL, NULL}}};

DOMT_TEST(the_end_of_a_stage_passes_on_all_that_is_left)
{
    domt_decoded decoded;

    ends = 0;
    domt_decode_in_pieces(&late, "\0\3abc\0\4defg", 11, NULL, NULL, &decoded, NULL);
    ck_assert_int_eq(decoded.error, 0);
    ck_assert_uint_eq(decoded.count, 2);
    ck_assert_uint_eq(decoded.size, 15);
    ck_assert_mem_eq(decoded.text, "1 3:abc1 4:defg", 15);
    ck_assert_uint_eq(ends, 4);
    domt_decoded_clear(&decoded);
    ends = 0;
    domt_decode_in_pieces(&late, "", 0, NULL, NULL, &decoded, NULL);
    ck_assert_int_eq(decoded.error, 0);
    ck_assert_uint_eq(ends, 1);
    domt_decoded_clear(&decoded);
}

/* --- calls for nothing ------------------------------------------------------------------------ */

static uint32_t idle_calls;

static int decode_and_ask_again(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    idle_calls++;
    domus_wire_again(wire);
    return size > 3 ? 1 : 0;
}

static const domus_stage idle_stage = {
    .name = "idle", .decode = decode_and_ask_again, .wrap = append_bytes_unchanged};

DOMT_TEST(a_stage_call_that_moves_nothing_is_not_repeated)
{
    static const domus_pipeline_stage stages[] = {
        {&idle_stage, NULL}, {&counter_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};
    bare made = make_bare_wire(&pipeline);
    const char *at = "abcdef";
    size_t size = 6;

    open_stages_of_bare_wire(&made);
    idle_calls = 0;
    ck_assert_int_eq(domi_wire_decode_next_message(made.wire, &at, &size), 0);
    ck_assert_uint_eq(size, 0);
    ck_assert_uint_ge(idle_calls, 4);
    ck_assert_uint_le(idle_calls, 8);
    free_bare_wire(&made);
}

DOMT_TEST(a_message_stage_is_not_called_without_bytes)
{
    static const domus_pipeline_stage stages[] = {{&counter_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};
    bare made = make_bare_wire(&pipeline);
    const char *at = "abcdef";
    size_t size = 6;

    open_stages_of_bare_wire(&made);
    says_again = true;
    ck_assert_int_eq(domi_wire_decode_next_message(made.wire, &at, &size), 0);
    ck_assert_uint_eq(calls, 1);
    free_bare_wire(&made);
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* A few bytes are expanded to 250 MB, of which no message is made. */
DOMT_TEST(a_bomb_is_unpacked_in_small_parts)
{
    static const domt_swell_options bomb = {.factor = 500000, .per_call = DOMUS_WINDOW_MAX};
    static const domus_pipeline_stage stages[] = {
        {&domt_swell_stage, &bomb}, {&counter_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};
    bare made = make_bare_wire(&pipeline);
    char bytes[8];
    const char *at = bytes;
    size_t size = sizeof bytes;
    uint64_t before = 0, rounds = 0;
    int result;

    open_stages_of_bare_wire(&made);
    memset(bytes, 125, sizeof bytes);
    do {
        result = domi_wire_decode_next_message(made.wire, &at, &size);
        ck_assert_uint_le(seen - before, 4 * DOMUS_WINDOW_MAX);
        before = seen;
        rounds++;
    } while (result == DOMI_WIRE_BUSY);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(seen, 4 * (UINT64_C(125) * 500000 + 1));
    ck_assert_uint_ge(rounds, 1000);
    ck_assert_uint_le(window_max, DOMUS_WINDOW_MAX);
    free_bare_wire(&made);
}

DOMT_TEST(stages_are_called_a_bounded_number_of_times)
{
    static const domus_pipeline_stage stages[] = {{&counter_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};
    bare made = make_bare_wire(&pipeline);
    char *bytes = make_random_bytes(16384);
    const char *at = bytes;
    size_t size = 16384;
    int result;

    open_stages_of_bare_wire(&made);
    per_call = 1;
    do {
        uint32_t before = calls;
        result = domi_wire_decode_next_message(made.wire, &at, &size);
        ck_assert_uint_le(calls - before, 64);
    } while (result == DOMI_WIRE_BUSY);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(calls, 16384);
    free_bare_wire(&made);
    free(bytes);
}

/* A stage sees many bytes and uses one at a time: its window is moved now and then, not for each
 * byte. */
DOMT_TEST(bytes_are_not_moved_for_each_byte_used)
{
    domi_window window = {0};
    char *bytes = make_random_bytes(65536);
    uint32_t moves = 0;

    ck_assert_int_eq(domi_window_append_bytes(&window, bytes, 65536), 0);
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t before = window.begin;
        domi_window_remove_first_bytes(&window, 1);
        ck_assert_int_eq(domi_window_append_bytes(&window, bytes + i % 65536, 1), 0);
        moves += window.begin < before + 1;
        ck_assert_int_eq(domi_window_first_byte(&window)[65535], bytes[i % 65536]);
    }
    ck_assert_uint_le(moves, 4);
    ck_assert_uint_le(window.room, DOMI_WINDOW_ROOM);
    domi_window_free_memory(&window);
    free(bytes);
}

DOMT_SUITE(60)
