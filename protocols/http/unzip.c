/* Decompresses bodies by zlib. A gzip body consists of members, each with its own checksum, and
 * nothing else: bytes behind the last member that begin no further one are an error. */
#include "protocols/http/coding.h"

#include <errno.h>

#define ROOM 16384u

/* Decompress until the input, its current member, or the room for output ends. Returns 0, or a
 * negative errno; `ret_more` tells whether there may be more output. */
static int decompress_step_of_body(domi_http_state *state, bool *ret_more)
{
    struct domi_http_inflater *inflater = state->inflater;
    z_stream *zlib = &inflater->zlib;
    unsigned char room[ROOM];

    if (inflater->is_whole)
        (void)inflateReset(zlib);
    inflater->is_whole = false;
    zlib->next_out = room;
    zlib->avail_out = sizeof room;
    int result = inflate(zlib, Z_NO_FLUSH);
    inflater->is_whole = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return -EPROTO;
    *ret_more = zlib->avail_in != 0 || (zlib->avail_out == 0 && !inflater->is_whole);
    return domi_http_gather_body_bytes(state, (const char *)room, sizeof room - zlib->avail_out);
}

int domi_http_decompress_and_gather(domi_http_state *state, const char *bytes, size_t size)
{
    struct domi_http_inflater *inflater = state->inflater;
    bool has_more = size != 0;
    int error = 0;

    inflater->is_begun |= has_more;
    inflater->zlib.next_in = (Bytef *)(uintptr_t)bytes;
    inflater->zlib.avail_in = (uInt)size;
    while (has_more && error == 0)
        error = decompress_step_of_body(state, &has_more);
    return error;
}
