/* Compresses and decompresses by zlib, whose state is there for one message; see the
 * header. */
#include "protocols/grpc/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest window, and what gzip makes alone */
#define PACK_MEMORY 8
#define STEP        16384u /* bytes that come out in one step */

struct domi_grpc_unpacker {
    z_stream zlib;
    domus_slice packed; /* owned */
    domus_appender to;
};

int domi_grpc_unpack_begin(domus_slice packed, uint32_t max, domi_grpc_unpacker **ret_unpacker)
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
    unpacker->zlib.avail_in = packed.size;
    *ret_unpacker = unpacker;
    return 0;
}

int domi_grpc_unpack(domi_grpc_unpacker *unpacker, uint32_t room, uint32_t *ret_count,
                     domus_slice *ret_bytes)
{
    z_stream *zlib = &unpacker->zlib;
    uint32_t before = unpacker->to.size;
    int result = Z_OK;

    while (result == Z_OK && unpacker->to.size - before < room) {
        unsigned char bytes[STEP];
        zlib->next_out = bytes;
        zlib->avail_out = sizeof bytes;
        result = inflate(zlib, Z_NO_FLUSH);
        int error = domus_append(&unpacker->to, bytes, sizeof bytes - zlib->avail_out);
        if (error != 0)
            return error;
    }
    *ret_count = unpacker->to.size - before;
    if (result == Z_OK)
        return 0;
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    if (result != Z_STREAM_END || zlib->avail_in != 0)
        return -EPROTO;
    int error = domus_append_end(&unpacker->to, ret_bytes);
    return error != 0 ? error : 1;
}

domi_grpc_unpacker *domi_grpc_unpack_end(domi_grpc_unpacker *unpacker)
{
    if (unpacker == NULL)
        return NULL;
    (void)inflateEnd(&unpacker->zlib);
    domus_slice_free(unpacker->packed);
    domus_append_drop(&unpacker->to);
    free(unpacker);
    return NULL;
}

int domi_grpc_pack(domus_slice bytes, domus_appender *to)
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
