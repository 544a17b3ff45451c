/* Reads messages out of the pieces of a body: 5 bytes (1 if it is compressed, and its length), and
 * the message, which may begin and end anywhere. Bytes are copied only if a message lies in several
 * pieces, and memory is taken for what has come, never for what is announced. It does no IO. */
#ifndef DOMI_PROTOCOLS_GRPC_READER_H
#define DOMI_PROTOCOLS_GRPC_READER_H

#include <domus/slice.h>

typedef struct domi_grpc_reader {
    uint32_t max; /* bytes of a message at most, as it came and decompressed */
    /* compressed messages are decompressed by gzip; if false, they are an error */
    bool unpacks;
    uint8_t head[5];      /* the bytes before the message that comes next */
    uint8_t have;         /* bytes of `head` that have come */
    uint32_t left;        /* bytes of the message that have not come yet, once its head has */
    domus_slice piece;    /* bytes of the body that were not read yet; owned */
    domus_appender bytes; /* the bytes so far of a message that lies in several pieces */
    /* decompresses the current message; NULL if it is not compressed */
    struct domi_grpc_unpacker *unpacker;
    /* cost of decompressing since the last pause, as in gzip.h */
    uint32_t spent;
} domi_grpc_reader;

/* Give the reader the next piece of the body, after all bytes of the piece before were read. The
 * reader owns the slice then. */
void domi_grpc_reader_put(domi_grpc_reader *reader, domus_slice piece);

/* The cost of decompressing (gzip.h) after which the reader pauses, so that others have their
 * turns: a message may grow large or decompress slowly, and a piece may hold many small ones. */
#define DOMI_GRPC_SPENT_MAX (1u << 20)

/* Read the next message. Returns 1 with the message, which the caller owns; 0 if another piece is
 * needed; DOMI_GRPC_PAUSE if this is to be called again after a pause; -EMSGSIZE; -EPROTO; -ENOMEM.
 * It must not be called again after an error. */
#define DOMI_GRPC_PAUSE 2
int domi_grpc_reader_next(domi_grpc_reader *reader, domus_slice *ret_message);

/* Returns whether the bytes read so far end with a complete message. */
bool domi_grpc_reader_is_between(const domi_grpc_reader *reader);

void domi_grpc_reader_drop(domi_grpc_reader *reader);

#endif
