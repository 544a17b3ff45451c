/* io/wire/decode.c and window.c: the way of bytes through a wire with one stage, in pieces of any
 * size and up to the limit, and which bytes are copied. */
#include "io/wire/wire.h"

#include "base/memory.h"

#include "tests/io/parts.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

/* --- splits ----------------------------------------------------------------------------------- */

/* Read the messages that the kit has. `*next` is the number of the first one. */
static void check_next_messages_of_kit(domus_stage_kit *kit, size_t *next)
{
    domus_stage_message message;
    int result;

    while ((result = domus_stage_kit_next(kit, &message)) == 1) {
        ck_assert_uint_lt(*next, DOMT_PARTS);
        domt_expect_part(&message, domt_lengths[*next], (int)*next);
        (*next)++;
    }
    ck_assert_int_eq(result, 0);
}

DOMT_TEST(wire_brings_the_same_messages_at_every_split)
{
    static char bytes[1000];
    size_t size = domt_write_parts(bytes);

    for (size_t first = 0; first <= size; first++) {
        domus_stage_kit *kit = domt_make_parts_kit(first % 2 != 0 ? &domt_needs : &domt_plain);
        size_t second = first + (size - first) * (first % 7) / 7;
        size_t next = 0;
        domt_feed_bytes_to_kit(kit, bytes, first);
        check_next_messages_of_kit(kit, &next);
        domt_feed_bytes_to_kit(kit, bytes + first, second - first);
        check_next_messages_of_kit(kit, &next);
        domt_feed_bytes_to_kit(kit, bytes + second, size - second);
        domus_stage_kit_finish(kit);
        check_next_messages_of_kit(kit, &next);
        ck_assert_uint_eq(next, DOMT_PARTS);
        ck_assert_uint_eq(domt_seen.ends, 1);
        domus_stage_kit_free(kit);
        ck_assert_uint_eq(domt_seen.closes, 1);
        ck_assert_uint_eq(domt_seen.releases, DOMT_PARTS);
    }
}

DOMT_TEST(wire_takes_messages_in_pieces_of_any_size)
{
    static char bytes[1000];
    size_t size = domt_write_parts(bytes);

    for (size_t step = 1; step < 300; step++) {
        domus_stage_kit *kit = domt_make_parts_kit(step % 2 != 0 ? &domt_needs : &domt_plain);
        size_t next = 0;
        for (size_t i = 0; i < size; i += step) {
            domt_feed_bytes_to_kit(kit, bytes + i, size - i < step ? size - i : step);
            if (i % 3 != 0) /* for each third piece the messages stay in the kit */
                check_next_messages_of_kit(kit, &next);
        }
        check_next_messages_of_kit(kit, &next);
        ck_assert_uint_eq(next, DOMT_PARTS);
        domus_stage_kit_free(kit);
    }
}

/* --- what a stage is shown -------------------------------------------------------------------- */

DOMT_TEST(whole_messages_are_shown_where_they_lie)
{
    char bytes[100];
    size_t size = domt_write_part(bytes, 10, 1);
    const char *at = bytes;
    domt_bare *bare = domt_bare_wire_new(&domt_plain);

    size += domt_write_part(bytes + size, 20, 2);
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
    ck_assert_ptr_eq(domus_slice_data(bare->part.bytes), bytes + 2);
    ck_assert_ptr_eq(at, bytes + 12);
    /* no memory is needed: nothing is copied, and the page is used again */
    domi_memory_fail_allocation_after(0, 1);
    domt_bare_wire_tell_message_done(bare);
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_ptr_eq(domus_slice_data(bare->part.bytes), bytes + 14);
    domt_bare_wire_tell_message_done(bare);
    ck_assert_uint_eq(size, 0);
    ck_assert(domi_wire_has_no_undecoded_bytes(bare->wire));
    domt_bare_wire_free(bare);
}

/* Only the message that lies in both of two pieces is copied together, and no byte behind it. */
DOMT_TEST(only_the_message_between_two_pieces_is_copied)
{
    static char bytes[5000];
    size_t first = domt_write_part(bytes, 600, 1);
    size_t all = first + domt_write_part(bytes + first, 4000, 2);
    const char *at = bytes;
    size_t size = 50;

    for (int how = 0; how < 2; how++) {
        domt_bare *bare = domt_bare_wire_new(how != 0 ? &domt_needs : &domt_plain);
        at = bytes;
        size = 50;
        ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
        ck_assert(size == 0 && !domi_wire_has_no_undecoded_bytes(bare->wire));
        size = all - 50;
        ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
        ck_assert_ptr_eq(at, bytes + first);
        ck_assert_uint_eq(domt_seen.size, how != 0 ? 602 : 612);
        ck_assert(domus_slice_data(bare->part.bytes) < bytes ||
                  domus_slice_data(bare->part.bytes) > bytes + all);
        ck_assert_uint_eq(bare->part.bytes.size, 600);
        domt_bare_wire_tell_message_done(bare);
        ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
        ck_assert_ptr_eq(domus_slice_data(bare->part.bytes), bytes + first + 2);
        domt_bare_wire_tell_message_done(bare);
        ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
        ck_assert_ptr_null(bare->wire->stages[0].window.memory);
        ck_assert_ptr_null(bare->wire->page);
        /* `decode` was shown 50, 306 and 602 bytes, and the second message */
        ck_assert_uint_eq(domt_seen.decodes, how != 0 ? 3 : 4);
        domt_bare_wire_free(bare);
    }
}

/* A wire that has used all bytes keeps no memory, and says whether it must be called again. */
DOMT_TEST(idle_wire_keeps_no_memory)
{
    static char bytes[2000];
    size_t all = domt_write_part(bytes, 600, 1);
    domt_bare *bare = domt_bare_wire_new(&domt_plain);
    const char *at = bytes;
    size_t size = all;

    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
    ck_assert_ptr_nonnull(bare->wire->page);
    domt_bare_wire_tell_message_done(bare);
    ck_assert(domi_wire_return_page_if_all_bytes_used(bare->wire));
    ck_assert_ptr_null(bare->wire->page);
    at = bytes;
    size = 50;
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
    /* the start of a message waits in the window, so the wire need not be called again */
    ck_assert(!domi_wire_return_page_if_all_bytes_used(bare->wire));
    domt_bare_wire_free(bare);
}

/* The caller stops after a message, and later passes the rest of its bytes to the wire at another
 * place in memory. */
DOMT_TEST(bytes_that_were_not_taken_may_move)
{
    static char bytes[2000];
    static char elsewhere[2000];
    size_t first = domt_write_part(bytes, 600, 1);
    size_t size = 50;
    const char *at = bytes;
    domt_bare *bare = domt_bare_wire_new(&domt_plain);
    size_t all = first + domt_write_part(bytes + first, 700, 2);

    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
    size = all - 50;
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
    domt_bare_wire_tell_message_done(bare);
    memcpy(elsewhere, at, size);
    memset(bytes, 0, sizeof bytes);
    at = elsewhere;
    size -= 1; /* holds one byte back, for a later call */
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
    ck_assert_uint_eq(size, 0);
    size = 1;
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
    ck_assert_uint_eq(bare->part.bytes.size, 700);
    ck_assert_int_eq(domus_slice_data(bare->part.bytes)[0], 2);
    domt_bare_wire_tell_message_done(bare);
    domt_bare_wire_free(bare);
}

DOMT_TEST(stage_that_says_what_it_needs_is_not_called_before)
{
    static char bytes[40000];
    size_t size = domt_write_part(bytes, 30000, 1);
    domus_stage_kit *kit = domt_make_parts_kit(&domt_needs);
    domus_stage_message message;

    for (size_t i = 0; i < size; i++) {
        domt_feed_bytes_to_kit(kit, bytes + i, 1);
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), i + 1 == size);
    }
    domt_expect_part(&message, 30000, 1);
    /* `decode` was called with 1 byte, with 2 bytes, and with the whole message */
    ck_assert_uint_eq(domt_seen.decodes, 3);
    domus_stage_kit_free(kit);
}

DOMT_TEST(stage_is_called_once_for_each_piece)
{
    static char bytes[1000];
    size_t size = domt_write_part(bytes, 900, 1);
    static const domt_parts asks_for_less = {.how = DOMT_NO_ASKS};

    for (int how = 0; how < 2; how++) {
        domus_stage_kit *kit = domt_make_parts_kit(how != 0 ? &asks_for_less : &domt_plain);
        domus_stage_message message;
        for (size_t i = 0; i < size; i++) {
            domt_feed_bytes_to_kit(kit, bytes + i, 1);
            ck_assert_int_eq(domus_stage_kit_next(kit, &message), i + 1 == size);
            ck_assert_uint_eq(domt_seen.size, i + 1);
            ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
        }
        ck_assert_uint_eq(domt_seen.decodes, size);
        domus_stage_kit_free(kit);
    }
}

/* A window is appended to at its end, and moves its bytes to the front when it has no room behind
 * them. */
DOMT_TEST(window_keeps_its_bytes_in_order)
{
    static char bytes[DOMI_WINDOW_ROOM];
    domi_window window = {0};
    uint32_t first = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < DOMI_WINDOW_ROOM; i++)
        bytes[i] = (char)(i * 7 >> 3);
    while (next < DOMI_WINDOW_ROOM - 300) {
        ck_assert_int_eq(domi_window_append_bytes(&window, bytes + next, 300), 0);
        next += 300;
        domi_window_remove_first_bytes(&window, 290);
        first += 290;
        ck_assert_uint_eq(window.size, next - first);
        ck_assert_mem_eq(domi_window_first_byte(&window), bytes + first, window.size);
        ck_assert_uint_le(window.room, 8192);
    }
    domi_window_free_memory(&window);
}

DOMT_TEST(window_that_is_nearly_empty_shrinks)
{
    static char bytes[60000];
    domi_window window = {0};

    memcpy(bytes + sizeof bytes - 5, "abcde", 5);
    ck_assert_int_eq(domi_window_append_bytes(&window, bytes, sizeof bytes), 0);
    domi_window_remove_first_bytes(&window, 30000);
    domi_window_shrink_memory(&window);
    ck_assert_uint_eq(window.room, 65536);
    domi_window_remove_first_bytes(&window, 29995);
    domi_memory_fail_allocation_after(0, 0);
    domi_window_shrink_memory(&window);
    /* without memory for a smaller one, the window stays as it is */
    ck_assert_uint_eq(window.room, 65536);
    domi_window_shrink_memory(&window);
    ck_assert_uint_eq(window.room, 256);
    ck_assert_mem_eq(domi_window_first_byte(&window), "abcde", 5);
    domi_window_remove_first_bytes(&window, 5);
    domi_window_shrink_memory(&window);
    ck_assert_ptr_null(window.memory);
}

/* --- sizes ------------------------------------------------------------------------------------ */

static int result_of_message_in_steps(const domt_parts *how, size_t length, size_t step)
{
    static char bytes[70000];
    size_t size = domt_write_part(bytes, length, 3);
    domus_stage_kit *kit = domt_make_parts_kit(how);
    domus_stage_message message;
    int result = 0;

    for (size_t i = 0; i < size && result == 0; i += step) {
        domt_feed_bytes_to_kit(kit, bytes + i, size - i < step ? size - i : step);
        result = domus_stage_kit_next(kit, &message);
    }
    if (result == 1)
        domt_expect_part(&message, length, 3);
    else
        ck_assert_int_eq(domus_stage_kit_next(kit, &message), result);
    domus_stage_kit_free(kit);
    return result;
}

DOMT_TEST(message_as_large_as_the_window_is_decoded)
{
    static const size_t steps[] = {1, 255, 4096, 65535, 65536, 70000};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        ck_assert_int_eq(result_of_message_in_steps(&domt_needs, DOMUS_WINDOW_MAX - 2, steps[i]),
                         1);
        ck_assert_int_eq(result_of_message_in_steps(&domt_plain, DOMUS_WINDOW_MAX - 2,
                                                    steps[i] < 16 ? 16 : steps[i]),
                         1);
    }
}

DOMT_TEST(message_beyond_the_window_is_refused)
{
    static const size_t steps[] = {16, 4096, 65535, 65536, 65537, 70000};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        ck_assert_int_eq(result_of_message_in_steps(&domt_needs, DOMUS_WINDOW_MAX - 1, steps[i]),
                         -EMSGSIZE);
        /* the stage is called once, because the length alone shows that the message is too large */
        ck_assert_uint_eq(domt_seen.decodes, 1);
        ck_assert_int_eq(result_of_message_in_steps(&domt_plain, DOMUS_WINDOW_MAX - 1, steps[i]),
                         -EMSGSIZE);
    }
}

DOMT_TEST(need_beyond_the_window_is_refused)
{
    static const domt_parts most = {.how = DOMT_NEEDS, .need = DOMUS_WINDOW_MAX};
    static const domt_parts more = {.how = DOMT_NEEDS, .need = DOMUS_WINDOW_MAX + 1};
    static const domt_parts all = {.how = DOMT_NEEDS, .need = UINT32_MAX};

    ck_assert_int_eq(result_of_message_in_steps(&most, 100, 50), 0);
    ck_assert_int_eq(result_of_message_in_steps(&more, 100, 50), -EMSGSIZE);
    ck_assert_int_eq(result_of_message_in_steps(&all, 100, 50), -EMSGSIZE);
    /* the bytes that the stage needs had all come, so nothing is refused */
    ck_assert_int_eq(result_of_message_in_steps(&more, 100, 102), 1);
}

/* A window keeps little more memory than its bytes need. */
DOMT_TEST(window_grows_and_shrinks_with_its_bytes)
{
    static char bytes[65536];
    domt_bare *bare = domt_bare_wire_new(&domt_plain);
    const domi_window *window = &bare->wire->stages[0].window;
    const char *at = bytes;
    size_t size;

    domt_write_part(bytes, 65000, 1);
    for (size_t i = 0; i < 64000; i += 100) {
        size = 100;
        ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
        ck_assert_uint_le(window->room, i < 128 ? 256 : 2 * (i + 100));
    }
    size = 1536;
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 1);
    domt_bare_wire_tell_message_done(bare);
    ck_assert_uint_eq(size, 64000 + 1536 - 65002);
    size = 0;
    ck_assert_int_eq(domi_wire_decode_next_message(bare->wire, &at, &size), 0);
    ck_assert_ptr_null(window->memory);
    domt_bare_wire_free(bare);
}

DOMT_SUITE(60)
