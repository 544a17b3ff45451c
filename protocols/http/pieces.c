/* Encodes the pieces of a body, its end and its trailers, when the head of its message has left. */
#include "protocols/http/coding.h"
#include "protocols/http/write.h"

#include <errno.h>
#include <stdio.h>

/* --- compressed pieces ------------------------------------------------------------------------ */

static bool is_stream_compressed(const uint64_t *stream)
{
    return (*stream & DOMI_HTTP_STREAM_HOW) == DOMI_HTTP_STREAM_GZIP;
}

static domi_http_deflater *deflater_in_word_of_stream(const uint64_t *stream)
{
    return (domi_http_deflater *)(uintptr_t)(*stream & ~DOMI_HTTP_STREAM_HOW);
}

/* Append the compressed form of some bytes of a body, in chunks. */
static int append_compressed_bytes(domus_wire *wire, domi_http_deflater *deflater,
                                   domus_slice bytes, bool is_last)
{
    char head[16];
    const char *some;
    uint32_t count;
    int error = 0;

    domi_http_deflate_set_input(deflater, domus_slice_data(bytes), bytes.size, is_last);
    while (error == 0 && (count = domi_http_deflate_next_output(deflater, &some)) != 0) {
        int size = snprintf(head, sizeof head, "%x\r\n", count);
        error = domus_wire_append(wire, head, (size_t)size);
        if (error == 0)
            error = domus_wire_append(wire, some, count);
        if (error == 0)
            error = domus_wire_append(wire, "\r\n", 2);
    }
    return error;
}

void domi_http_give_back_deflater_of_stream(uint64_t *stream)
{
    if (!is_stream_compressed(stream))
        return;
    domi_http_deflater_give_back(deflater_in_word_of_stream(stream));
    *stream = DOMI_HTTP_STREAM_NONE;
}

/* Append a piece of an answer whose body is compressed. */
static int append_compressed_piece(domus_wire *wire, const uint64_t *stream, domus_slice bytes)
{
    domi_http_deflater *deflater = deflater_in_word_of_stream(stream);

    if (bytes.size == 0)
        return 0;
    return domi_http_deflater_count_body_bytes(deflater, bytes.size)
               ? append_compressed_bytes(wire, deflater, bytes, false)
               : -EMSGSIZE;
}

/* Append the end of the compressed bytes of a body. From then on its stream is one in plain
 * chunks. */
static int end_compressed_stream(domus_wire *wire, uint64_t *stream)
{
    domi_http_deflater *deflater = deflater_in_word_of_stream(stream);

    if (!domi_http_deflater_is_announced_length_reached(deflater))
        return -EINVAL;
    int error = append_compressed_bytes(wire, deflater, (domus_slice){NULL, 0, 0}, true);
    if (error != 0)
        return error;
    domi_http_deflater_give_back(deflater);
    *stream = DOMI_HTTP_STREAM_CHUNKS;
    return 0;
}

/* --- plain pieces ----------------------------------------------------------------------------- */

static int append_chunk_of_body(domus_wire *wire, domus_slice bytes)
{
    char head[16];
    int size = snprintf(head, sizeof head, "%x\r\n", bytes.size);
    int error = domus_wire_append(wire, head, (size_t)size);

    if (error == 0)
        error = domus_wire_append_slice(wire, bytes);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

/* End a body that was sent in pieces; if its length was announced, it must have been reached. */
static int end_body_in_pieces(domus_wire *wire, uint64_t *stream)
{
    int error = is_stream_compressed(stream) ? end_compressed_stream(wire, stream) : 0;

    if (error != 0)
        return error;
    if ((*stream & DOMI_HTTP_STREAM_HOW) == DOMI_HTTP_STREAM_CHUNKS)
        return domus_wire_append(wire, "0\r\n\r\n", 5);
    return (*stream & DOMI_HTTP_LENGTH_MAX) != 0 ? -EINVAL : 0;
}

int domi_http_append_piece_of_stream(domus_wire *wire, uint64_t *stream, const domus_piece *piece)
{
    if (stream == NULL || *stream == 0)
        return -EOPNOTSUPP;
    if (piece->last)
        return end_body_in_pieces(wire, stream);
    switch (*stream & DOMI_HTTP_STREAM_HOW) {
    case DOMI_HTTP_STREAM_CHUNKS:
        return piece->bytes.size != 0 ? append_chunk_of_body(wire, piece->bytes) : 0;
    case DOMI_HTTP_STREAM_COUNTED:
        if (piece->bytes.size > (*stream & DOMI_HTTP_LENGTH_MAX))
            return -EMSGSIZE;
        *stream -= piece->bytes.size;
        return domus_wire_append_slice(wire, piece->bytes);
    case DOMI_HTTP_STREAM_GZIP:
        return append_compressed_piece(wire, stream, piece->bytes);
    case DOMI_HTTP_STREAM_PLAIN:
    case DOMI_HTTP_STREAM_TUNNEL:
        return domus_wire_append_slice(wire, piece->bytes);
    /* for an answer to HEAD: its writer may stop, because the rest of the body may be endless */
    default:
        return piece->bytes.size != 0 ? -EPIPE : 0;
    }
}

int domi_http_append_trailers_of_stream(domus_wire *wire, uint64_t *stream,
                                        const domus_http_trailers *trailers)
{
    if (stream == NULL || *stream == 0)
        return -EOPNOTSUPP;
    if (domi_http_check_trailers(trailers->fields) != 0)
        return -EINVAL;
    int error = is_stream_compressed(stream) ? end_compressed_stream(wire, stream) : 0;
    if (error != 0)
        return error;
    if ((*stream & DOMI_HTTP_STREAM_HOW) != DOMI_HTTP_STREAM_CHUNKS)
        return end_body_in_pieces(wire, stream);
    error = domus_wire_append(wire, "0\r\n", 3);
    if (error == 0)
        error = domus_wire_append_slice(wire, trailers->fields);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}
