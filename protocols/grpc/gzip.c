/* Compresses and decompresses messages of gRPC by zlib, with a new state of zlib for each
 * message. */
#include "protocols/grpc/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

/* window bits for zlib's largest window; the 16 selects the format of gzip alone */
#define GZIP_WINDOW (15 + 16)
#define PACK_MEMORY 8
#define STEP        16384u /* bytes that one step of decompressing produces, at most */
#define STEP_IN     4096u  /* compressed bytes that one step gives to zlib, at most */

struct domi_grpc_unpacker {
    z_stream zlib;
    domus_slice packed; /* the compressed bytes of the message; the unpacker owns them */
    uint32_t left;      /* bytes at the end of `packed` that zlib was not shown yet */
    domus_appender to;
};

int domi_grpc_begin_to_decompress(domus_slice packed, uint32_t max,
                                  domi_grpc_unpacker **ret_unpacker)
{
    domi_grpc_unpacker *unpacker = calloc(1, sizeof *unpacker);

    if (unpacker == NULL || inflateInit2(&unpacker->zlib, GZIP_WINDOW) != Z_OK) {
        domus_slice_free(packed);
        free(unpacker);
        return -ENOMEM;
    }
    unpacker->packed = packed;
    unpacker->to.size_max = max;
    unpacker->zlib.next_in = (Bytef *)(uintptr_t)domus_slice_data(packed);
    unpacker->left = packed.size;
    *ret_unpacker = unpacker;
    return 0;
}

/* Decompress a step of a message. Returns as inflate(). `ret_cost` gets the cost of the step, and
 * `ret_error` is 0 or a negative errno if the decompressed bytes cannot be appended. */
static int decompress_step_of_message(domi_grpc_unpacker *unpacker, uint32_t *ret_cost,
                                      int *ret_error)
{
    z_stream *zlib = &unpacker->zlib;
    unsigned char bytes[STEP];
    uint32_t part = unpacker->left < STEP_IN ? unpacker->left : STEP_IN;

    zlib->avail_in = part;
    zlib->next_out = bytes;
    zlib->avail_out = sizeof bytes;
    int result = inflate(zlib, Z_NO_FLUSH);
    uint32_t used = part - zlib->avail_in;
    uint32_t made = (uint32_t)sizeof bytes - zlib->avail_out;
    unpacker->left -= used;
    *ret_cost = used * DOMI_GRPC_COST_IN + made;
    *ret_error = domus_append(&unpacker->to, bytes, made);
    return result;
}

int domi_grpc_decompress_message(domi_grpc_unpacker *unpacker, uint32_t room, uint32_t *ret_cost,
                                 domus_slice *ret_bytes)
{
    uint32_t cost = 0;
    int result = Z_OK;

    while (result == Z_OK && cost < room) {
        uint32_t more;
        int error;
        result = decompress_step_of_message(unpacker, &more, &error);
        if (error != 0)
            return error;
        cost += more;
    }
    *ret_cost = cost;
    if (result == Z_OK)
        return 0;
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    if (result != Z_STREAM_END || unpacker->left != 0)
        return -EPROTO;
    int error = domus_append_end(&unpacker->to, ret_bytes);
    return error != 0 ? error : 1;
}

domi_grpc_unpacker *domi_grpc_free_unpacker(domi_grpc_unpacker *unpacker)
{
    if (unpacker == NULL)
        return NULL;
    (void)inflateEnd(&unpacker->zlib);
    domus_slice_free(unpacker->packed);
    domus_append_drop(&unpacker->to);
    free(unpacker);
    return NULL;
}

int domi_grpc_compress_message(domus_slice bytes, domus_appender *to)
{
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)domus_slice_data(bytes),
                     .avail_in = bytes.size};
    char *room = domus_append_room(to, bytes.size);

    if (room == NULL || deflateInit2(&zlib, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, PACK_MEMORY,
                                     Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    zlib.next_out = (Bytef *)room;
    zlib.avail_out = bytes.size;
    bool is_whole = deflate(&zlib, Z_FINISH) == Z_STREAM_END;
    size_t size = zlib.total_out;
    (void)deflateEnd(&zlib);
    if (!is_whole || size >= bytes.size)
        return -EMSGSIZE;
    domus_append_written(to, size);
    return 0;
}
