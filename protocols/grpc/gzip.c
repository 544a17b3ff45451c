/* Compresses and decompresses by zlib, whose state is there for one message at a time; see the
 * header. */
#include "protocols/grpc/gzip.h"

#include <errno.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest window, and what gzip makes alone */
#define PACK_MEMORY 8
#define STEP        16384u /* bytes that come out in one step */

/* Decompress into an appender that is bounded. Returns 0, or an error. */
static int inflate_all(z_stream *zlib, domus_appender *to)
{
    int result = Z_OK;

    while (result == Z_OK) {
        unsigned char room[STEP];
        zlib->next_out = room;
        zlib->avail_out = sizeof room;
        result = inflate(zlib, Z_NO_FLUSH);
        int error = domus_append(to, room, sizeof room - zlib->avail_out);
        if (error != 0)
            return error;
    }
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    return result == Z_STREAM_END && zlib->avail_in == 0 ? 0 : -EPROTO;
}

int domi_grpc_unpack(domus_slice packed, uint32_t max, domus_slice *ret_bytes)
{
    domus_appender to = {.size_max = max};
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)domus_slice_data(packed),
                     .avail_in = packed.size};

    if (inflateInit2(&zlib, GZIP_WINDOW) != Z_OK)
        return -ENOMEM;
    int error = inflate_all(&zlib, &to);
    (void)inflateEnd(&zlib);
    if (error == 0)
        return domus_append_end(&to, ret_bytes);
    domus_append_drop(&to);
    return error;
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
