/* io/wire/decode.c and verbs.c: errors of stages, the end of what the peer sends, the slices of
 * messages, and what happens without memory. */
#include "io/wire/wire.h"

#include "base/memory.h"

#include "tests/io/parts.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

/* --- errors ----------------------------------------------------------------------------------- */

static void expect_error_of_stage(int how, int error, uint32_t releases)
{
    const domt_parts wrong = {.how = how};
    char bytes[40];
    size_t size = domt_write_part(bytes, 10, 1);
    domus_stage_kit *kit = domt_make_parts_kit(&wrong);
    domus_stage_message message;

    size += domt_write_part(bytes + size, 10, 2);
    domt_feed_bytes_to_kit(kit, bytes, size);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), error);
        ck_assert_uint_eq(domt_seen.decodes, 1);
        ck_assert_uint_eq(domt_seen.releases, i == 0 ? 0 : releases);
    }
    domus_stage_kit_finish(kit);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), error);
    domus_stage_kit_free(kit);
    ck_assert_uint_eq(domt_seen.releases, releases);
    ck_assert_uint_eq(domt_seen.ends, 0);
    ck_assert_uint_eq(domt_seen.closes, 1);
}

DOMT_TEST(error_of_a_stage_ends_decoding)
{
    expect_error_of_stage(DOMT_FAILS_AFTER, -EBADMSG, 1);
    expect_error_of_stage(DOMT_USES_NOTHING, -EPROTO, 1);
    expect_error_of_stage(DOMT_USES_TOO_MUCH, -EPROTO, 1);
    expect_error_of_stage(DOMT_TWICE, -EALREADY, 1);
}

DOMT_TEST(peer_that_finishes_within_a_message_is_an_error)
{
    char bytes[20];
    domus_stage_kit *kit = domt_make_parts_kit(&domt_plain);
    domus_stage_message message;

    domt_write_part(bytes, 10, 1);
    domt_feed_bytes_to_kit(kit, bytes, 11);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    domus_stage_kit_finish(kit);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EPIPE);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), -EPIPE);
    ck_assert_uint_eq(domt_seen.left, 11);
    ck_assert_uint_eq(domt_seen.ends, 1);
    domus_stage_kit_free(kit);
}

DOMT_TEST(end_of_a_stage_may_make_a_message)
{
    static const domt_parts ends = {.how = DOMT_ENDS};
    domus_stage_kit *kit = domt_make_parts_kit(&ends);
    domus_stage_message message;

    domt_feed_bytes_to_kit(kit, "\0", 1);
    domus_stage_kit_finish(kit);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_int_eq(message.kind, DOMUS_STAGE_NOTICE);
    ck_assert_uint_eq(message.id, DOMUS_NO_ID);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_uint_eq(domt_seen.ends, 1);
    ck_assert_uint_eq(domt_seen.left, 1);
    domus_stage_kit_free(kit);
    ck_assert_uint_eq(domt_seen.releases, 1);
}

/* --- slices ----------------------------------------------------------------------------------- */

DOMT_TEST(slices_that_are_kept_outlive_the_wire)
{
    static char bytes[1000];
    size_t size = domt_write_parts(bytes);
    domus_slice kept[DOMT_PARTS];

    for (size_t step = 1; step < 700; step += step < 20 ? 1 : 97) {
        domus_stage_kit *kit = domt_make_parts_kit(&domt_plain);
        size_t count = 0;
        for (size_t i = 0; i < size; i += step) {
            domus_stage_message message;
            domt_feed_bytes_to_kit(kit, bytes + i, size - i < step ? size - i : step);
            while (domus_stage_kit_next(kit, &message) == 1) {
                const domt_part *made = message.payload;
                ck_assert_int_eq(domus_slice_keep(made->bytes, &kept[count++]), 0);
            }
        }
        domus_stage_kit_free(kit);
        ck_assert_uint_eq(count, DOMT_PARTS);
        for (size_t i = 0; i < DOMT_PARTS; i++) {
            for (size_t j = 0; j < domt_lengths[i]; j++)
                ck_assert_int_eq(domus_slice_data(kept[i])[j], (char)(i + j));
            domus_slice_free(kept[i]);
        }
    }
}

DOMT_TEST(message_that_lives_on_owns_its_bytes)
{
    char bytes[600];
    const char *at = bytes;
    domt_bare *bare = domt_bare_wire_new(&domt_plain);

    for (size_t length = 0; length < 500; length += 100) {
        size_t size = domt_write_part(bytes, length, 7);
        at = bytes;
        ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
        /* an empty slice has no bytes to copy, so no memory is needed */
        if (length == 0)
            domi_memory_fail_allocation_after(0, 1);
        ck_assert_int_eq(domi_wire_copy_slices_of_message(bare->wire), 0);
        domi_memory_fail_allocation_after(-1, 0);
        domt_part parked = bare->part;
        bare->part = (domt_part){0};
        ck_assert_int_eq(domi_wire_prepare_next_message(bare->wire), 0);
        memset(bytes, 0, sizeof bytes);
        ck_assert_uint_eq(parked.bytes.size, length);
        for (size_t i = 0; i < length; i++)
            ck_assert_int_eq(domus_slice_data(parked.bytes)[i], (char)(7 + i));
        domt_release_part(&parked);
    }
    domt_bare_wire_free(bare);
}

/* The slice of a message reaches beyond the bytes that the message used. When it is kept, all bytes
 * that it shows are copied. */
DOMT_TEST(slice_may_reach_beyond_the_used_bytes)
{
    static const domt_parts peeks = {.how = DOMT_PEEKS};
    char bytes[40];
    size_t size = domt_write_part(bytes, 10, 1);
    domus_stage_kit *kit = domt_make_parts_kit(&peeks);
    domus_stage_message message;
    domus_slice kept;

    size += domt_write_part(bytes + size, 4, 9);
    domt_feed_bytes_to_kit(kit, bytes, size);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    const domt_part *made = message.payload;
    ck_assert_int_eq(domus_slice_keep(made->bytes, &kept), 0);
    domus_stage_kit_free(kit);
    ck_assert_uint_eq(kept.size, 11);
    ck_assert_mem_eq(domus_slice_data(kept), bytes + 2, 11);
    domus_slice_free(kept);
}

DOMT_TEST(slices_of_a_stage_outlive_its_call)
{
    static const domt_parts leaves = {.how = DOMT_LEAVES_SLICE};
    static const domt_parts keeps = {.how = DOMT_KEEPS};

    for (int how = 0; how < 2; how++) {
        for (size_t step = 1; step < 30; step++) {
            char bytes[60];
            size_t size = domt_write_part(bytes, 10, 1);
            domus_stage_kit *kit = domt_make_parts_kit(how != 0 ? &keeps : &leaves);
            domus_stage_message message;
            int result = 0;
            size += domt_write_part(bytes + size, 11, 2);
            for (size_t i = 0; i < size && result == 0; i += step) {
                domt_feed_bytes_to_kit(kit, bytes + i, size - i < step ? size - i : step);
                result = domus_stage_kit_next(kit, &message);
            }
            ck_assert_int_eq(result, 1);
            const domt_part *made = message.payload;
            if (how == 0) {
                domt_expect_part(&message, 11, 2);
                ck_assert(domus_slice_equals(made->more, bytes, 12));
            } else {
                domt_expect_part(&message, 10, 1);
                ck_assert(domus_slice_equals(made->more, bytes, 2));
            }
            domus_stage_kit_free(kit);
        }
    }
}

/* A slice that owns its bytes leaves without a copy, in its place between the bytes before and
 * after it. */
DOMT_TEST(long_slices_leave_without_a_copy)
{
    domi_out out = {0};
    static char bytes[100000];
    domus_slice large;

    ck_assert_int_eq(domus_slice_copy(bytes, sizeof bytes, &large), 0);
    ck_assert_int_eq(domi_out_append_bytes(&out, "ab", 2), 0);
    ck_assert_int_eq(domi_out_append_slice(&out, large), 0);
    ck_assert_int_eq(domi_out_append_bytes(&out, "cd", 2), 0);
    ck_assert_uint_eq(out.size, 4);
    ck_assert_uint_eq(out.pieces_count, 1);
    ck_assert_uint_eq(out.pieces[0].at, 2);
    ck_assert_ptr_eq(domus_slice_data(out.pieces[0].slice), domus_slice_data(large));
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(domi_out_append_slice(&out, large), 0);
    domi_out_cut_back(&out, 3, 1);
    ck_assert(out.size == 3 && out.pieces_count == 1);
    domi_out_remove_all(&out, false);
    ck_assert(domi_out_is_empty(&out) && out.bytes != NULL);
    ck_assert_ptr_null(domi_out_make_room(&out, SIZE_MAX));
    ck_assert_ptr_nonnull(domi_out_make_room(&out, 70000));
    domi_out_remove_all(&out, false); /* a block of this size is not kept for later bytes */
    ck_assert_ptr_null(out.bytes);
    domi_out_remove_all(&out, true);
    ck_assert(atomic_load(&domi_page_of_slice(large)->count) == 1);
    domus_slice_free(large);
}

/* A small part of a page is copied, because it would keep the whole page for a peer that does not
 * read. */
DOMT_TEST(small_parts_of_large_pages_leave_as_copies)
{
    domi_out out = {0};
    static char bytes[100000];
    domus_slice large;

    ck_assert_int_eq(domus_slice_copy(bytes, sizeof bytes, &large), 0);
    domus_slice part = large;
    part.offset = 10;
    part.size = 12000;
    ck_assert_int_eq(domi_out_append_slice(&out, part), 0);
    ck_assert(out.size == 12000 && out.pieces_count == 0);
    part.size = 13000;
    ck_assert_int_eq(domi_out_append_slice(&out, part), 0);
    ck_assert(out.size == 12000 && out.pieces_count == 1);
    domi_out_remove_all(&out, true);
    domus_slice_free(large);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Decode messages and keep their slices, with few bytes at a time. Returns the first error. */
static int decode_and_keep_slices(const domt_parts *how)
{
    static char bytes[1000];
    size_t size = domt_write_parts(bytes);
    domus_stage_kit *kit;
    const domus_pipeline_stage stages[] = {{&domt_part_stage, how}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    domus_slice kept[DOMT_PARTS];
    size_t count = 0;
    int error = domus_stage_kit_new(&pipeline, &kit);

    if (error != 0)
        return error;
    for (size_t i = 0; i < size && error == 0; i += 70) {
        domus_stage_message message;
        error = domus_stage_kit_feed(kit, bytes + i, size - i < 70 ? size - i : 70);
        int result = error;
        while (error == 0 && (result = domus_stage_kit_next(kit, &message)) == 1) {
            const domt_part *made = message.payload;
            error = domus_slice_keep(made->bytes, &kept[count]);
            if (error == 0)
                count++;
            if (error == 0)
                error = domus_stage_kit_encode(kit, 0, message.type, made);
        }
        if (error == 0)
            error = result;
    }
    domus_stage_kit_free(kit);
    ck_assert(error != 0 || count == DOMT_PARTS);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(kept[i].size, domt_lengths[i]);
        ck_assert(domt_lengths[i] == 0 || domus_slice_data(kept[i])[domt_lengths[i] - 1] ==
                                              (char)(i + domt_lengths[i] - 1));
        domus_slice_free(kept[i]);
    }
    return error;
}

DOMT_TEST(wire_without_memory_fails_and_leaks_nothing)
{
    static const domt_parts kinds[] = {{.how = 0}, {.how = DOMT_NEEDS}};

    for (size_t kind = 0; kind < 2; kind++) {
        int error = -ENOMEM;
        int n = 0;
        for (; error != 0; n++) {
            ck_assert_int_lt(n, 200);
            domi_memory_fail_allocation_after(n, 0);
            error = decode_and_keep_slices(&kinds[kind]);
            domi_memory_fail_allocation_after(-1, 0);
            ck_assert(error == 0 || error == -ENOMEM);
        }
        ck_assert_int_gt(n, 20);
    }
}

DOMT_SUITE(60)
