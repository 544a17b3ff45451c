/* Encodes what follows the head of a message that leaves in pieces. */
#include "protocols/http/write.h"

#include <errno.h>
#include <stdio.h>

static int append_chunk(domus_wire *wire, domus_slice bytes)
{
    char head[16];
    int size = snprintf(head, sizeof head, "%x\r\n", bytes.size);
    int error = domus_wire_append(wire, head, (size_t)size);

    if (error == 0)
        error = domus_wire_append_slice(wire, bytes);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

/* The body is over: a known length has to be met. */
static int end_stream(domus_wire *wire, const uint64_t *stream)
{
    if ((*stream & DOMI_HTTP_STREAM_HOW) == DOMI_HTTP_STREAM_CHUNKS)
        return domus_wire_append(wire, "0\r\n\r\n", 5);
    return (*stream & DOMI_HTTP_LENGTH_MAX) != 0 ? -EINVAL : 0;
}

int domi_http_encode_piece(domus_wire *wire, uint64_t *stream, const domus_piece *piece)
{
    if (stream == NULL || *stream == 0)
        return -EOPNOTSUPP;
    if (piece->last)
        return end_stream(wire, stream);
    switch (*stream & DOMI_HTTP_STREAM_HOW) {
    case DOMI_HTTP_STREAM_CHUNKS:
        return piece->bytes.size != 0 ? append_chunk(wire, piece->bytes) : 0;
    case DOMI_HTTP_STREAM_COUNTED:
        if (piece->bytes.size > (*stream & DOMI_HTTP_LENGTH_MAX))
            return -EMSGSIZE;
        *stream -= piece->bytes.size;
        return domus_wire_append_slice(wire, piece->bytes);
    case DOMI_HTTP_STREAM_PLAIN:
        return domus_wire_append_slice(wire, piece->bytes);
    default: /* an answer to HEAD: its writer need not make the rest, which may have no end */
        return piece->bytes.size != 0 ? -EPIPE : 0;
    }
}

int domi_http_encode_trailers(domus_wire *wire, const uint64_t *stream,
                              const domus_http_trailers *trailers)
{
    int has = domi_http_check_fields(trailers->fields);

    if (stream == NULL || *stream == 0)
        return -EOPNOTSUPP;
    if (has < 0 || (has & DOMI_HTTP_FIELD_HOST) != 0)
        return -EINVAL;
    if ((*stream & DOMI_HTTP_STREAM_HOW) != DOMI_HTTP_STREAM_CHUNKS)
        return end_stream(wire, stream);
    int error = domus_wire_append(wire, "0\r\n", 3);
    if (error == 0)
        error = domus_wire_append_slice(wire, trailers->fields);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}
