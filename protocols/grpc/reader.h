/* Reads messages of gRPC out of the pieces of a body. Before each message stand 5 bytes: whether it
 * is compressed (1 if so), and its length; a message may begin and end anywhere in a piece. Bytes
 * are copied only if a message lies in several pieces, and memory is taken for what has come, never
 * for what is announced. The reader does no IO. */
#ifndef DOMI_PROTOCOLS_GRPC_READER_H
#define DOMI_PROTOCOLS_GRPC_READER_H

#include <domus/slice.h>

typedef struct domi_grpc_reader {
    uint32_t max; /* bytes of a message, at most, both as it came and decompressed */
    /* compressed messages are decompressed by gzip; if not set, they are an error */
    bool unpacks;
    uint8_t head[5];      /* the 5 bytes before the message that comes next */
    uint8_t have;         /* bytes of `head` that have come */
    uint32_t left;        /* bytes of the current message that have not come, once its head has */
    domus_slice piece;    /* bytes of the body that the reader has not read yet, and owns */
    domus_appender bytes; /* the bytes that have come of a message that lies in several pieces */
    /* decompresses the current message; NULL: it is not compressed */
    struct domi_grpc_unpacker *unpacker;
    /* cost of decompressing (gzip.h) since the reader's last pause */
    uint32_t spent;
} domi_grpc_reader;

/* Give the reader the next piece of the body, after all bytes of the piece before were read. The
 * reader owns the slice then. */
void domi_grpc_reader_put_piece(domi_grpc_reader *reader, domus_slice piece);

/* Cost of decompressing (gzip.h) after which the reader pauses, so that others have their turns: a
 * message may grow large or decompress slowly, and a piece may hold many small ones. */
#define DOMI_GRPC_SPENT_MAX (1u << 20)

/* Read the next message. Returns 1 with the message, which the caller owns; 0 if another piece is
 * needed; DOMI_GRPC_PAUSE if this must be called again after a pause; -EMSGSIZE; -EPROTO; -ENOMEM.
 * It must not be called again after an error. */
#define DOMI_GRPC_PAUSE 2
int domi_grpc_reader_read_message(domi_grpc_reader *reader, domus_slice *ret_message);

/* Returns whether the bytes that the reader has read end with a complete message. */
bool domi_grpc_reader_is_between_messages(const domi_grpc_reader *reader);

void domi_grpc_reader_free_bytes(domi_grpc_reader *reader);

#endif
