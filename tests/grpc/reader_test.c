/* The reader of messages, without a channel: how much of a message it decompresses in one turn. */
#include "protocols/grpc/reader.h"

#include "protocols/grpc/gzip.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Make a frame of one message. The caller frees the slice. */
static domus_slice make_frame(const uint8_t *message, uint32_t size)
{
    const uint8_t head[] = {1, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                            (uint8_t)size};
    domus_appender bytes = {0};
    domus_slice made;

    (void)domus_append(&bytes, head, sizeof head);
    (void)domus_append(&bytes, message, size);
    ck_assert_int_eq(domus_append_end(&bytes, &made), 0);
    return made;
}

/* Read one message. Returns the number of pauses; `ret_size` gets the size of the message. */
static unsigned read_one(domus_slice frame, uint32_t *ret_size)
{
    domi_grpc_reader reader = {.max = 16u << 20, .unpacks = true};
    domus_slice message;
    unsigned pauses = 0;
    int result;

    domi_grpc_reader_put(&reader, frame);
    while ((result = domi_grpc_reader_next(&reader, &message)) == DOMI_GRPC_PAUSE)
        pauses++;
    ck_assert_int_eq(result, 1);
    ck_assert(domi_grpc_reader_is_between(&reader));
    *ret_size = message.size;
    domus_slice_free(message);
    domi_grpc_reader_drop(&reader);
    return pauses;
}

/* Many empty blocks, which zlib reads one after the other in one call, cost time although no bytes
 * come out of them. */
DOMT_TEST(blocks_of_nothing_are_read_in_turns)
{
    static const uint8_t begin[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    /* an empty block that is stored without compression */
    static const uint8_t block[] = {0, 0, 0, 0xff, 0xff};
    static const uint8_t end[] = {1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint32_t count = 100000;
    uint32_t size = sizeof begin + count * (uint32_t)sizeof block + sizeof end;
    uint8_t *message = malloc(size);
    uint32_t made;

    ck_assert_ptr_nonnull(message);
    memcpy(message, begin, sizeof begin);
    for (uint32_t i = 0; i < count; i++)
        memcpy(message + sizeof begin + i * sizeof block, block, sizeof block);
    memcpy(message + size - sizeof end, end, sizeof end);
    unsigned pauses = read_one(make_frame(message, size), &made);
    ck_assert_uint_eq(made, 0);
    ck_assert_uint_ge(pauses, size / (DOMI_GRPC_SPENT_MAX / DOMI_GRPC_COST_IN + 4096));
    free(message);
}

DOMT_TEST(bytes_that_become_many_are_read_in_turns)
{
    const uint32_t size = 8u << 20;
    uint8_t *text = calloc(1, size);
    uint8_t packed[65536];
    uint32_t made;
    z_stream zlib = {
        .next_in = text, .avail_in = size, .next_out = packed, .avail_out = sizeof packed};

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    ck_assert_int_eq(deflateEnd(&zlib), Z_OK);
    unsigned pauses = read_one(make_frame(packed, (uint32_t)zlib.total_out), &made);
    ck_assert_uint_eq(made, size);
    ck_assert_uint_ge(pauses, 7);
    free(text);
}

DOMT_SUITE(20)
