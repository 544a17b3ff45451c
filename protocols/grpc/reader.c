/* Reads the messages of gRPC out of the pieces of a request's body, without IO. */
#include "protocols/grpc/reader.h"

#include "protocols/grpc/gzip.h"

#include <errno.h>
#include <string.h>

void domi_grpc_reader_put_piece(domi_grpc_reader *reader, domus_slice piece)
{
    domus_slice_free(reader->piece);
    reader->piece = piece;
}

bool domi_grpc_reader_is_between_messages(const domi_grpc_reader *reader)
{
    return reader->have == 0 && reader->piece.size == 0;
}

void domi_grpc_reader_free_bytes(domi_grpc_reader *reader)
{
    domus_slice_free(reader->piece);
    reader->piece = (domus_slice){NULL, 0, 0};
    domus_append_drop(&reader->bytes);
    reader->unpacker = domi_grpc_free_unpacker(reader->unpacker);
}

/* Remove the first `size` bytes of the reader's piece. */
static void remove_first_bytes_of_piece(domi_grpc_reader *reader, uint32_t size)
{
    reader->piece.offset += size;
    reader->piece.size -= size;
}

/* Read the 5 bytes of the prefix before a message. Returns 1 when all of them have come; 0 before;
 * -EPROTO; -EMSGSIZE. */
static int read_prefix_of_message(domi_grpc_reader *reader)
{
    uint32_t part = sizeof reader->head - reader->have;

    if (part > reader->piece.size)
        part = reader->piece.size;
    memcpy(reader->head + reader->have, domus_slice_data(reader->piece), part);
    reader->have = (uint8_t)(reader->have + part);
    remove_first_bytes_of_piece(reader, part);
    if (reader->have < sizeof reader->head)
        return 0;
    const uint8_t *head = reader->head;
    reader->left = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 |
                   (uint32_t)head[4];
    if (head[0] > 1 || (head[0] == 1 && !reader->unpacks))
        return -EPROTO;
    return reader->left > reader->max ? -EMSGSIZE : 1;
}

/* Append the next bytes of a message that lies in several pieces. Returns 1 when the message is
 * complete; 0 before; -ENOMEM. */
static int append_next_bytes_of_split_message(domi_grpc_reader *reader, domus_slice *ret_message)
{
    uint32_t part = reader->left < reader->piece.size ? reader->left : reader->piece.size;
    int error = domus_append(&reader->bytes, domus_slice_data(reader->piece), part);

    if (error != 0)
        return error;
    remove_first_bytes_of_piece(reader, part);
    reader->left -= part;
    if (reader->left != 0)
        return 0;
    error = domus_append_end(&reader->bytes, ret_message);
    return error != 0 ? error : 1;
}

/* Cut out a message that lies as a whole in the reader's piece. Returns 1; -ENOMEM. */
static int share_message_that_is_whole_in_piece(domi_grpc_reader *reader, domus_slice *ret_message)
{
    domus_slice part = reader->piece;

    part.size = reader->left;
    if (part.size == 0)
        part = (domus_slice){NULL, 0, 0};
    int error = domus_slice_keep(part, ret_message);
    if (error != 0)
        return error;
    remove_first_bytes_of_piece(reader, reader->left);
    reader->left = 0;
    return 1;
}

/* Continue to decompress the current message. Returns as domi_grpc_reader_read_message(). */
static int decompress_current_message(domi_grpc_reader *reader, domus_slice *ret_message)
{
    uint32_t cost;
    int result;

    do {
        if (reader->spent >= DOMI_GRPC_SPENT_MAX) {
            reader->spent = 0;
            return DOMI_GRPC_PAUSE;
        }
        result = domi_grpc_decompress_message(reader->unpacker, DOMI_GRPC_SPENT_MAX - reader->spent,
                                              &cost, ret_message);
        if (result < 0)
            return result;
        reader->spent += cost;
    } while (result == 0);
    reader->unpacker = domi_grpc_free_unpacker(reader->unpacker);
    return 1;
}

/* Read the bytes of the next message, as they came, without decompressing them. Returns 1 with the
 * message; 0 if more bytes are needed; a negative errno. */
static int read_message_as_it_came(domi_grpc_reader *reader, domus_slice *ret_message)
{
    bool is_new = reader->have < sizeof reader->head;
    int result = is_new ? read_prefix_of_message(reader) : 1;

    if (result == 1)
        result = reader->bytes.size == 0 && reader->piece.size >= reader->left
                     ? share_message_that_is_whole_in_piece(reader, ret_message)
                     : append_next_bytes_of_split_message(reader, ret_message);
    if (result == 1)
        reader->have = 0;
    return result;
}

int domi_grpc_reader_read_message(domi_grpc_reader *reader, domus_slice *ret_message)
{
    domus_slice message;

    if (reader->unpacker != NULL)
        return decompress_current_message(reader, ret_message);
    int result = read_message_as_it_came(reader, &message);
    if (result != 1)
        return result;
    if (reader->head[0] == 0) {
        *ret_message = message;
        return 1;
    }
    int error = domi_grpc_begin_to_decompress(message, reader->max, &reader->unpacker);
    return error != 0 ? error : decompress_current_message(reader, ret_message);
}
