/* io/wire: pipelines of several stages. The byte stages change sizes and hold a state, so a byte
 * that is lost, comes twice, or goes past a stage is seen. */
#include "io/wire/wire.h"

#include "base/memory.h"

#include "tests/io/parts.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const domus_length_options two_bytes = {.role = DOMUS_ROLE_PEER, .width = 2};

#define PACKETS      &domus_length_stage, &two_bytes
#define BYTES(stage) &domt_##stage##_stage, NULL
#define NONE         NULL, NULL

/* Pipelines of one stage up to DOMUS_STAGES_MAX. */
static const domus_pipeline_stage rows[][DOMUS_STAGES_MAX + 1] = {
    {{PACKETS}, {NONE}},
    {{BYTES(sip)}, {PACKETS}, {NONE}},
    {{BYTES(stuff)}, {PACKETS}, {NONE}},
    {{BYTES(xor)}, {PACKETS}, {NONE}},
    {{BYTES(xor)}, {BYTES(stuff)}, {PACKETS}, {NONE}},
    {{BYTES(stuff)}, {BYTES(xor)}, {PACKETS}, {NONE}},
    {{BYTES(sip)}, {BYTES(stuff)}, {BYTES(sip)}, {PACKETS}, {NONE}},
    {{BYTES(xor)}, {BYTES(stuff)}, {BYTES(xor)}, {PACKETS}, {NONE}},
};
#define ROWS (sizeof rows / sizeof rows[0])

static domus_packet make_packet_of_size(size_t size, int seed)
{
    static char bytes[200000];
    domus_packet packet;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)((i * 31 + (size_t)seed * 7) >> (i & 3));
    ck_assert_int_eq(domus_slice_copy(bytes, size, &packet.bytes), 0);
    return packet;
}

static const size_t sizes[] = {0, 1, 5, 2047, 2048, 3, 5000, 65528, 2};

/* Encode packets of all sizes. Returns the bytes for the peer, which the caller frees. */
static char *encode_packets_of_all_sizes(const domus_pipeline *pipeline, size_t *ret_size)
{
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(pipeline, &kit), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        domus_packet packet = make_packet_of_size(sizes[i], (int)i);
        ck_assert_int_eq(domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_packet_type, &packet), 0);
        domus_slice_free(packet.bytes);
    }
    char *output = domt_copy_output_of_kit(kit, ret_size);
    domus_stage_kit_free(kit);
    return output;
}

DOMT_TEST(packets_pass_any_pipeline_in_any_pieces)
{
    domt_decoded first = {0};

    for (size_t row = 0; row < ROWS; row++) {
        const domus_pipeline pipeline = {.stages = rows[row]};
        uint64_t seed = row + 1;
        size_t size;
        char *bytes = encode_packets_of_all_sizes(&pipeline, &size);
        for (int i = 0; i < 4; i++) {
            domt_decoded decoded;
            size_t step = i == 1 ? 1 : 1448;
            domt_cut *cut = i == 0  ? NULL
                            : i < 3 ? domt_size_of_next_equal_piece
                                    : domt_size_of_next_random_piece;
            domt_decode_in_pieces(&pipeline, bytes, size, cut,
                                  i < 3 ? (void *)&step : (void *)&seed, &decoded, NULL);
            ck_assert_int_eq(decoded.error, 0);
            ck_assert_uint_eq(decoded.count, sizeof sizes / sizeof sizes[0]);
            if (first.text == NULL)
                first = decoded;
            ck_assert_msg(domt_decoded_equals(&decoded, &first), "row %zu, cut %d", row, i);
            if (decoded.text != first.text)
                domt_decoded_clear(&decoded);
        }
        free(bytes);
    }
    domt_decoded_clear(&first);
}

/* A packet that was decoded is encoded again to the same bytes. */
DOMT_TEST(pipelines_encode_what_they_decode)
{
    for (size_t row = 0; row < ROWS; row++) {
        const domus_pipeline pipeline = {.stages = rows[row]};
        domt_decoded decoded;
        domt_decoded encoded;
        size_t size;
        char *bytes = encode_packets_of_all_sizes(&pipeline, &size);
        domt_decode_in_pieces(&pipeline, bytes, size, NULL, NULL, &decoded, &encoded);
        ck_assert_uint_eq(encoded.size, size);
        ck_assert_mem_eq(encoded.text, bytes, size);
        domt_decoded_clear(&decoded);
        domt_decoded_clear(&encoded);
        free(bytes);
    }
}

DOMT_TEST(error_of_a_byte_stage_comes_behind_the_messages_before)
{
    static const domus_pipeline pipeline = {.stages = rows[2]};
    /* the bytes "~}", "a", and one that must not come, to a stage that escapes */
    static const char bytes[] = "\0\2}^}]\0\1a~\0\1b";

    for (size_t step = 1; step < sizeof bytes; step++) {
        domt_decoded decoded;
        domt_decode_in_pieces(&pipeline, bytes, sizeof bytes - 1, domt_size_of_next_equal_piece,
                              &step, &decoded, NULL);
        ck_assert_int_eq(decoded.error, -EBADMSG);
        ck_assert_uint_eq(decoded.count, 2);
        ck_assert_mem_eq(decoded.text, "1 2:~}1 1:a", 11);
        domt_decoded_clear(&decoded);
    }
}

DOMT_TEST(each_stage_hears_of_the_end)
{
    static const domus_pipeline pipeline = {.stages = rows[2]};
    static const char *const wrong[] = {"}", "\0", "\0\2a"};

    for (size_t i = 0; i < 3; i++) {
        domt_decoded decoded;
        domt_decode_in_pieces(&pipeline, wrong[i], i < 2 ? 1 : 3, NULL, NULL, &decoded, NULL);
        ck_assert_int_eq(decoded.error, -EPIPE);
        ck_assert_uint_eq(decoded.count, 0);
        domt_decoded_clear(&decoded);
    }
}

/* --- stages that talk by themselves ----------------------------------------------------------- */

/* A byte stage that passes on the gathered bytes only when the peer has finished, greets the peer,
 * and answers each piece; its wrap fails when the test says so. */
typedef struct greeter {
    char gathered[64];
    size_t count;
} greeter;

static int wrap_error;
static uint32_t opens, closes;

static int open_stage_and_greet_peer(domus_wire *wire, void *state, const void *options)
{
    opens++;
    int error = domus_wire_append(wire, "<", 1);
    return error != 0 ? error : options != NULL ? -EACCES : 0;
}

static int gather_bytes_and_answer(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    greeter *state = state_;

    ck_assert_uint_le(state->count + size, sizeof state->gathered);
    ck_assert_uint_ge(domus_wire_pass_room(wire), DOMUS_WINDOW_MAX);
    memcpy(state->gathered + state->count, bytes, size);
    state->count += size;
    int error = domus_wire_append(wire, "!", 1);
    return error != 0 ? error : (int)size;
}

static int pass_gathered_bytes_at_end(domus_wire *wire, void *state_, size_t left)
{
    greeter *state = state_;

    ck_assert_uint_eq(left, 0);
    int error = domus_wire_append(wire, ">", 1);
    ck_assert_ptr_null(domus_wire_pass_space(wire, 0));
    ck_assert_ptr_null(domus_wire_pass_space(wire, domus_wire_pass_room(wire) + 1));
    char *to = error == 0 ? domus_wire_pass_space(wire, state->count + 300) : NULL;
    if (to == NULL)
        return error != 0 ? error : -ENOMEM;
    memcpy(to, state->gathered, state->count);
    domus_wire_passed(wire, state->count);
    return 0;
}

static int wrap_in_upper_case(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    ck_assert(size >= 1 && size <= DOMUS_WINDOW_MAX);
    for (size_t i = 0; i < size; i++) {
        char byte = bytes[i] >= 'a' && bytes[i] <= 'z' ? (char)(bytes[i] - 'a' + 'A') : bytes[i];
        int error = domus_wire_append(wire, &byte, 1);
        if (error != 0)
            return error;
    }
    return wrap_error;
}

static void count_close_of_stage(domus_wire *wire, void *state)
{
    closes++;
}

static const domus_stage greeter_stage = {
    .name = "greeter",
    .state_size = sizeof(greeter),
    .open = open_stage_and_greet_peer,
    .decode = gather_bytes_and_answer,
    .end = pass_gathered_bytes_at_end,
    .wrap = wrap_in_upper_case,
    .close = count_close_of_stage,
};

/* A message stage that greets the peer, and says what it decodes. */
static int open_with_hello(domus_wire *wire, void *state, const void *options)
{
    return domus_wire_append(wire, "hello ", 6);
}

static int answer_what_was_decoded(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    int error = domus_wire_append_text(wire, "got %.*s ", (int)size, bytes);
    return error != 0 ? error : bytes[0] == '?' ? -EBADMSG : (int)size;
}

static int say_bye_at_end(domus_wire *wire, void *state, size_t left)
{
    return domus_wire_append(wire, "bye", 3);
}

static int encode_packet_as_text(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                                 const void *payload)
{
    int error = domus_wire_append_slice(wire, ((const domus_packet *)payload)->bytes);
    return error != 0 ? error : type != &domus_packet_type ? -EOPNOTSUPP : 0;
}

static int answer_failure_with_text(domus_wire *wire, void *state, uint64_t id,
                                    const domus_type *request, int error)
{
    int appended = domus_wire_append_text(wire, "failed %d ", error);
    return appended != 0 ? appended : error == -EIO ? error : 0;
}

static const domus_stage teller_stage = {
    .name = "teller",
    .open = open_with_hello,
    .decode = answer_what_was_decoded,
    .end = say_bye_at_end,
    .encode = encode_packet_as_text,
    .fail = answer_failure_with_text,
};

static const domus_pipeline talkers = {
    .stages = (const domus_pipeline_stage[]){
        {&domt_stuff_stage, NULL}, {&greeter_stage, NULL}, {&teller_stage, NULL}, {NONE}}};

DOMT_TEST(bytes_that_stages_append_by_themselves_are_wrapped)
{
    domus_stage_kit *kit;
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_new(&talkers, &kit), 0);
    domt_expect_output_of_kit(kit, "<HELLO ");
    ck_assert_int_eq(domus_stage_kit_feed(kit, "ab", 2), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    domt_expect_output_of_kit(kit,
                              "<HELLO !"); /* the bytes "ab" still wait in the greeting stage */
    domus_stage_kit_clear(kit);
    domus_stage_kit_finish(kit);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    domt_expect_output_of_kit(kit, ">GOT AB BYE");
    domus_stage_kit_free(kit);
}

DOMT_TEST(failed_stage_leaves_no_bytes)
{
    domus_packet packet = make_packet_of_size(3, 1);
    domus_packet large = make_packet_of_size(10000, 1);
    domus_stage_kit *kit;
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_new(&talkers, &kit), 0);
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_slice_type, &large), -EOPNOTSUPP);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_slice_type, &packet), -EOPNOTSUPP);
    ck_assert_int_eq(domus_stage_kit_fail(kit, 1, NULL, -EIO), -EIO);
    domt_expect_output_of_kit(kit, "");
    ck_assert_int_eq(domus_stage_kit_fail(kit, 1, NULL, -EPERM), 0);
    domt_expect_output_of_kit(kit, "FAILED -1 ");
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "?", 1), 0);
    domus_stage_kit_finish(kit);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EBADMSG);
    /* the bytes that `decode` appended before it failed are not sent */
    domt_expect_output_of_kit(kit, "!>");
    domus_stage_kit_free(kit);
    domus_slice_free(packet.bytes);
    domus_slice_free(large.bytes);
}

DOMT_TEST(failed_stage_without_others_leaves_no_bytes)
{
    static const domus_pipeline_stage alone[] = {{&teller_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = alone};
    domus_packet packet = make_packet_of_size(3000, 1);
    domus_stage_kit *kit;
    domus_stage_message message;

    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_slice_type, &packet), -EOPNOTSUPP);
    ck_assert_int_eq(domus_stage_kit_fail(kit, 1, NULL, -EIO), -EIO);
    ck_assert_int_eq(domus_stage_kit_feed(kit, "?", 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EBADMSG);
    domt_expect_output_of_kit(kit, "hello ");
    domus_stage_kit_free(kit);
    domus_slice_free(packet.bytes);
}

DOMT_TEST(failed_wrap_ends_encoding)
{
    domus_packet packet = {.bytes = {NULL, 0, 0}};
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_slice_copy("abc", 3, &packet.bytes), 0);
    wrap_error = 0;
    ck_assert_int_eq(domus_stage_kit_new(&talkers, &kit), 0);
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_packet_type, &packet), 0);
    wrap_error = -ENOSPC;
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_packet_type, &packet), -ENOSPC);
    domt_expect_output_of_kit(kit, "ABC");
    wrap_error = 0;
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_packet_type, &packet), -ENOSPC);
    ck_assert_int_eq(domus_stage_kit_fail(kit, 1, NULL, -EPERM), -ENOSPC);
    domt_expect_output_of_kit(kit, "ABC");
    domus_stage_kit_free(kit);
    domus_slice_free(packet.bytes);
}

DOMT_TEST(long_slices_are_wrapped_in_pieces)
{
    domus_packet packet = make_packet_of_size(3 * DOMUS_WINDOW_MAX + 1, 1);
    domus_stage_kit *kit;
    size_t size;

    ck_assert_int_eq(domus_stage_kit_new(&talkers, &kit), 0);
    domus_stage_kit_clear(kit);
    ck_assert_int_eq(domus_stage_kit_encode(kit, 1, &domus_packet_type, &packet), 0);
    (void)domus_stage_kit_output(kit, &size);
    ck_assert_uint_ge(size, packet.bytes.size);
    domus_stage_kit_free(kit);
    domus_slice_free(packet.bytes);
}

static const int refuse;
static const domus_pipeline refusing = {
    .stages = (const domus_pipeline_stage[]){
        {&greeter_stage, NULL}, {&greeter_stage, &refuse}, {&teller_stage, NULL}, {NONE}}};

DOMT_TEST(stages_that_were_opened_are_closed)
{
    domus_stage_kit *kit = NULL;

    opens = closes = 0;
    ck_assert_int_eq(domus_stage_kit_new(&refusing, &kit), -EACCES);
    ck_assert_ptr_null(kit);
    ck_assert_uint_eq(opens, 2);
    ck_assert_uint_eq(closes, 1);
}

/* --- wrong pipelines -------------------------------------------------------------------------- */

static void expect_pipeline_refused(const domus_pipeline_stage *stages)
{
    const domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit = NULL;

    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), -EINVAL);
    ck_assert_ptr_null(kit);
}

DOMT_TEST(wrong_pipelines_are_refused)
{
    domus_stage odd = teller_stage;
    const domus_pipeline_stage alone[] = {{&odd, NULL}, {NONE}};

    expect_pipeline_refused(NULL);
    expect_pipeline_refused((const domus_pipeline_stage[]){{NONE}});
    expect_pipeline_refused((const domus_pipeline_stage[]){{BYTES(sip)}, {NONE}});
    expect_pipeline_refused((const domus_pipeline_stage[]){{PACKETS}, {PACKETS}, {NONE}});
    expect_pipeline_refused((const domus_pipeline_stage[]){{PACKETS}, {BYTES(sip)}, {NONE}});
    expect_pipeline_refused((const domus_pipeline_stage[]){
        {BYTES(sip)}, {BYTES(sip)}, {BYTES(sip)}, {BYTES(sip)}, {PACKETS}, {NONE}});
    expect_pipeline_refused((const domus_pipeline_stage[]){{&domus_length_stage, NULL}, {NONE}});
    odd.wrap = wrap_in_upper_case;
    expect_pipeline_refused(alone);
    odd = teller_stage;
    odd.decode = NULL;
    expect_pipeline_refused(alone);
    odd = teller_stage;
    odd.encode = NULL;
    expect_pipeline_refused(alone);
    odd = teller_stage;
    odd.name = NULL;
    expect_pipeline_refused(alone);
    odd = teller_stage;
    odd.state_size = 65537;
    expect_pipeline_refused(alone);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Encode and decode messages with a pipeline, while allocations fail. Returns the first error. */
static int encode_and_decode_echo(const domus_pipeline *pipeline, int fail_after)
{
    domus_packet packet = make_packet_of_size(5000, 1);
    domus_packet echo = {.bytes = {NULL, 0, 0}};
    domus_stage_kit *kit = NULL;
    domus_stage_message message;
    size_t size = 0;

    /* allocations fail only from here on, because make_packet_of_size() needs memory */
    domi_memory_fail_allocation_after(fail_after, 0);
    int error = domus_stage_kit_new(pipeline, &kit);
    if (error == 0)
        error = domus_stage_kit_encode(kit, 0, &domus_packet_type, &packet);
    const char *output = error == 0 ? domus_stage_kit_output(kit, &size) : NULL;
    for (size_t i = 0; i < size && error == 0; i += 999) {
        error = domus_stage_kit_feed(kit, output + i, size - i < 999 ? size - i : 999);
        int result = error == 0 ? domus_stage_kit_next(kit, &message) : error;
        if (result == 1)
            error = domus_slice_keep(((domus_packet *)message.payload)->bytes, &echo.bytes);
        else
            error = result;
    }
    domi_memory_fail_allocation_after(-1, 0);
    if (error == 0 && size != 0)
        ck_assert(domus_slice_equals(echo.bytes, domus_slice_data(packet.bytes), 5000));
    domus_slice_free(echo.bytes);
    domus_stage_kit_free(kit);
    domus_slice_free(packet.bytes);
    return error == 0 && size == 0 ? -ENOMEM : error;
}

DOMT_TEST(pipelines_without_memory_fail_and_leak_nothing)
{
    for (size_t row = 0; row < ROWS; row++) {
        const domus_pipeline pipeline = {.stages = rows[row]};
        int error = -ENOMEM;
        int fail_after;
        for (fail_after = 0; error != 0; fail_after++) {
            ck_assert_msg(fail_after < 200, "row %zu: %d", row, error);
            error = encode_and_decode_echo(&pipeline, fail_after);
            ck_assert(error == 0 || error == -ENOMEM);
        }
        ck_assert_int_gt(fail_after, 10);
    }
}

DOMT_SUITE(60)
