/* The reader of messages; see the header. */
#include "protocols/grpc/reader.h"

#include "protocols/grpc/gzip.h"

#include <errno.h>
#include <string.h>

void domi_grpc_reader_put(domi_grpc_reader *reader, domus_slice piece)
{
    domus_slice_free(reader->piece);
    reader->piece = piece;
}

bool domi_grpc_reader_is_between(const domi_grpc_reader *reader)
{
    return reader->have == 0 && reader->piece.size == 0;
}

void domi_grpc_reader_drop(domi_grpc_reader *reader)
{
    domus_slice_free(reader->piece);
    reader->piece = (domus_slice){NULL, 0, 0};
    domus_append_drop(&reader->bytes);
}

/* Take bytes off the begin of the piece. */
static void pass_over(domi_grpc_reader *reader, uint32_t size)
{
    reader->piece.offset += size;
    reader->piece.size -= size;
}

/* Read the bytes before a message. Returns 1 when they are there; 0; -EPROTO; -EMSGSIZE. */
static int read_head(domi_grpc_reader *reader)
{
    uint32_t part = sizeof reader->head - reader->have;

    if (part > reader->piece.size)
        part = reader->piece.size;
    memcpy(reader->head + reader->have, domus_slice_data(reader->piece), part);
    reader->have = (uint8_t)(reader->have + part);
    pass_over(reader, part);
    if (reader->have < sizeof reader->head)
        return 0;
    const uint8_t *head = reader->head;
    reader->left = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 |
                   (uint32_t)head[4];
    if (head[0] > 1 || (head[0] == 1 && !reader->unpacks))
        return -EPROTO;
    return reader->left > reader->max ? -EMSGSIZE : 1;
}

/* Gather a part of a message that goes on in the next piece, or has begun in one before. Returns 1
 * at its end; 0; -ENOMEM. */
static int gather(domi_grpc_reader *reader, domus_slice *ret_message)
{
    uint32_t part = reader->left < reader->piece.size ? reader->left : reader->piece.size;
    int error = domus_append(&reader->bytes, domus_slice_data(reader->piece), part);

    if (error != 0)
        return error;
    pass_over(reader, part);
    reader->left -= part;
    if (reader->left != 0)
        return 0;
    error = domus_append_end(&reader->bytes, ret_message);
    return error != 0 ? error : 1;
}

/* Cut a whole message out of its piece. Returns 1; -ENOMEM. */
static int cut(domi_grpc_reader *reader, domus_slice *ret_message)
{
    domus_slice part = reader->piece;

    part.size = reader->left;
    if (part.size == 0)
        part = (domus_slice){NULL, 0, 0};
    int error = domus_slice_keep(part, ret_message);
    if (error != 0)
        return error;
    pass_over(reader, reader->left);
    reader->left = 0;
    return 1;
}

int domi_grpc_reader_next(domi_grpc_reader *reader, domus_slice *ret_message)
{
    bool is_new = reader->have < sizeof reader->head;
    int result = is_new ? read_head(reader) : 1;
    domus_slice message;

    if (result != 1)
        return result;
    result = reader->bytes.size == 0 && reader->piece.size >= reader->left
                 ? cut(reader, &message)
                 : gather(reader, &message);
    if (result != 1)
        return result;
    reader->have = 0;
    if (reader->head[0] == 1) {
        int error = domi_grpc_unpack(message, reader->max, ret_message);
        domus_slice_free(message);
        if (error != 0)
            return error;
        reader->unpacked += ret_message->size;
        return 1;
    }
    *ret_message = message;
    return 1;
}
