/* Bytes of a stranger are read or refused, and a message is read from the memory in which it was
 * received. */
#include "base/random.h"
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <domus/pipeline.h>
#include <domus/stage_kit.h>
#include <errno.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a stranger: messages that are cut off at each place, have flipped bits, or are random.
 * They are read or refused, all memory is freed, and a payload that was read can be written again.
 */

/* Read a message from a copy of exactly its size, so that a sanitizer sees a read beyond it. */
static int read_from_exact_buffer(const domus_picklers *picklers, const char *data, size_t size)
{
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_slice bytes;
    domt_all all;

    ck_assert_int_eq(domus_slice_copy(data, size, &bytes), 0);
    int result = domt_unpickle_message(picklers, &domt_addresses, bytes, &all, error, sizeof error);
    if (result == 0) {
        domus_slice again = domt_pickle_payload(picklers, &domt_addresses, &domt_all_type, &all);
        domus_slice_free(again);
        domt_all_free(&all);
    } else {
        ck_assert(error[0] != '\0' && strchr(error, ':') != NULL);
    }
    domus_slice_free(bytes);
    return result;
}

DOMT_TEST(message_that_is_cut_off_anywhere_is_refused)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    domt_all all;

    for (uint64_t seed = 0; seed < 4; seed++) {
        domt_all_fill_at_random(&all, seed, (int)seed);
        domus_slice bytes = domt_pickle_payload(picklers, &domt_addresses, &domt_all_type, &all);
        uint32_t step = 1 + bytes.size / 500; /* a long message is cut at some of its places only */
        for (uint32_t cut = 0; cut < bytes.size; cut += cut < 1000 ? 1 : step)
            ck_assert_int_eq(read_from_exact_buffer(picklers, domus_slice_data(bytes), cut),
                             -EBADMSG);
        ck_assert_int_eq(read_from_exact_buffer(picklers, domus_slice_data(bytes), bytes.size), 0);
        domus_slice_free(bytes);
        domt_all_free(&all);
    }
    domus_picklers_free(picklers);
}

DOMT_TEST(message_with_turned_bits_is_read_or_refused)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    uint32_t read = 0;
    uint32_t refused = 0;
    domi_random random;
    domt_all all;

    domi_random_init(&random, 33);
    for (uint32_t seed = 0; seed < domt_tenfold_if_tests_are_long(20); seed++) {
        domt_all_fill_at_random(&all, seed, seed % 4 == 0 ? 3 : 2);
        domus_slice bytes = domt_pickle_payload(picklers, &domt_addresses, &domt_all_type, &all);
        char *copy = malloc(bytes.size);
        for (uint32_t i = 0; i < (bytes.size < 10000 ? 500 : 50); i++) {
            memcpy(copy, domus_slice_data(bytes), bytes.size);
            for (uint64_t turned = 1 + domi_random_below(&random, 3); turned != 0; turned--) {
                size_t at = 11 + domi_random_below(&random, bytes.size - 11);
                copy[at] = (char)(copy[at] ^ 1 << domi_random_below(&random, 8));
            }
            if (read_from_exact_buffer(picklers, copy, bytes.size) == 0)
                read++;
            else
                refused++;
        }
        free(copy);
        domus_slice_free(bytes);
        domt_all_free(&all);
    }
    ck_assert_uint_gt(read, 100);
    ck_assert_uint_gt(refused, 100);
    domus_picklers_free(picklers);
}

/* --- beside msgpack-c ---------------------------------------------------------------------------
 */

static int write_nil(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_nil(writer);
}

static int skip_value(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    return domus_pickle_skip(reader);
}

static const domus_type any_type = {"any", 0, NULL};
static const domus_pickler anys[] = {
    {.type = &any_type, .version = 1, .write = write_nil, .read = skip_value}, {.type = NULL}};

/* Returns whether msgpack-c reads these bytes as one value; -1: unknown. */
static int is_read_by_msgpack(const char *bytes, size_t size)
{
    msgpack_unpacked unpacked;
    size_t end = 0;

    msgpack_unpacked_init(&unpacked);
    msgpack_unpack_return result = msgpack_unpack_next(&unpacked, bytes, size, &end);
    msgpack_unpacked_destroy(&unpacked);
    if (result == MSGPACK_UNPACK_NOMEM_ERROR) /* the value nests deeper than msgpack-c reads */
        return -1;
    return result == MSGPACK_UNPACK_SUCCESS && end == size;
}

/* Make random bytes, among which first bytes of MessagePack's values are frequent. Headers with a
 * size of 4 bytes are left out, because msgpack-c allocates as much memory as they announce. */
static size_t make_random_bytes(domi_random *random, char bytes[40])
{
    size_t size = domi_random_below(random, 40);

    for (size_t i = 0; i < size; i++) {
        uint64_t choice = domi_random_below(random, 4);
        unsigned char byte = choice == 0   ? (unsigned char)domi_random_below(random, 4)
                             : choice == 1 ? (unsigned char)(0x80 + domi_random_below(random, 0x24))
                             : choice == 2 ? (unsigned char)(0xc0 + domi_random_below(random, 0x20))
                                           : (unsigned char)domi_random_next_bits(random);
        bytes[i] = (char)(byte == 0xdd || byte == 0xdf ? 0x92 : byte);
    }
    return size;
}

DOMT_TEST(what_msgpack_reads_is_read_and_nothing_else)
{
    domus_picklers *picklers = domt_make_picklers(anys);
    uint32_t taken = 0;
    domi_random random;
    char bytes[40];

    domi_random_init(&random, 7);
    for (uint32_t i = 0; i < domt_tenfold_if_tests_are_long(300000); i++) {
        size_t size = make_random_bytes(&random, bytes);
        int expected = is_read_by_msgpack(bytes, size);
        domus_slice message = domt_make_pickled_message("any", 1, bytes, size);
        int result = domt_unpickle_message(picklers, NULL, message, NULL, NULL, 0);
        domus_slice_free(message);
        ck_assert(result == 0 || result == -EBADMSG);
        if (expected < 0)
            continue;
        ck_assert_msg((result == 0) == (expected != 0), "round %u: %d, msgpack-c %d", i, result,
                      expected);
        taken += expected != 0;
    }
    ck_assert_uint_gt(taken, 1000);
    domus_picklers_free(picklers);
}

/* A million nested arrays are skipped, and so is a map whose keys are such arrays. */
DOMT_TEST(unknown_value_of_any_depth_is_passed_over)
{
    enum { DEPTH = 500000 };
    domus_picklers *picklers = domt_make_picklers(anys);
    char *bytes = malloc(2 * DEPTH + 1);

    memset(bytes, 0x91, DEPTH);
    bytes[DEPTH] = (char)0xc0;
    domus_slice message = domt_make_pickled_message("any", 1, bytes, DEPTH + 1);
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, message, NULL, NULL, 0), 0);
    domus_slice_free(message);
    memset(bytes, 0x81, DEPTH);
    memset(bytes + DEPTH, 1, DEPTH + 1);
    message = domt_make_pickled_message("any", 1, bytes, 2 * DEPTH + 1);
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, message, NULL, NULL, 0), 0);
    domus_slice_free(message);
    message = domt_make_pickled_message("any", 1, bytes, 2 * DEPTH);
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, message, NULL, NULL, 0), -EBADMSG);
    domus_slice_free(message);
    free(bytes);
    domus_picklers_free(picklers);
}

/* --- received --------------------------------------------------------------------------------- */

/* A message is unpickled from the memory in which it was received. If slices are to share its
 * page, the bytes are first moved to a page of their own, and are read there. */

static const domus_length_options options = {.role = DOMUS_ROLE_SERVER, .width = 4};
static const domus_pipeline_stage stages[] = {{&domus_length_stage, &options}, {NULL, NULL}};
static const domus_pipeline pipeline = {.stages = stages};

/* Feed a kit with a message behind its length, so that the kit decodes it without a copy. */
static domus_stage_message receive_bytes_with_length(domus_stage_kit *kit, domus_slice bytes)
{
    domus_stage_message message;
    char length[4];

    for (int i = 0; i < 4; i++)
        length[i] = (char)(bytes.size >> (24 - 8 * i));
    ck_assert_int_eq(domus_stage_kit_feed(kit, length, sizeof length), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, domus_slice_data(bytes), bytes.size), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_ptr_eq(message.type, &domus_packet_type);
    return message;
}

DOMT_TEST(message_is_read_on_where_its_page_was_moved)
{
    domus_pickle_context context = domt_addresses;
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_stage_kit *kit = NULL;
    domt_all all;
    domt_all read;

    context.share_min = 1;
    domt_all_fill_at_random(&all, 4, 3);
    ck_assert_uint_gt(all.slice.size, 0);
    /* long texts are cut, so that the message fits into the kit's window */
    for (uint16_t i = 0; i < all.text_count; i++) {
        if (all.texts[i] != NULL && strlen(all.texts[i]) > 100)
            all.texts[i][100] = '\0';
    }
    domus_slice bytes = domt_pickle_payload(picklers, &context, &domt_all_type, &all);
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    domus_stage_message message = receive_bytes_with_length(kit, bytes);
    const domus_slice *received = &((const domus_packet *)message.payload)->bytes;
    const char *before = domus_slice_data(*received);
    int result = domt_unpickle_message(picklers, &context, *received, &read, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    /* the bytes lie in a page of their own now */
    ck_assert_ptr_ne(domus_slice_data(*received), before);
    /* frees the memory in which the message came */
    domus_stage_kit_free(kit);
    ck_assert(domt_all_is_same_as_other(&all, &read));
    ck_assert(domus_slice_equals(read.slice, domus_slice_data(all.slice), all.slice.size));
    domus_slice_free(bytes);
    domt_all_free(&all);
    domt_all_free(&read);
    domus_picklers_free(picklers);
}

DOMT_SUITE(120)
