/* Reads messages out of the pieces of a body: 5 bytes (1 if it is compressed, and its length), and
 * the message, which may begin and end anywhere. Bytes are copied only if a message lies in several
 * pieces, and memory is taken for what has come, never for what is announced. It does no IO. */
#ifndef DOMI_PROTOCOLS_GRPC_READER_H
#define DOMI_PROTOCOLS_GRPC_READER_H

#include <domus/slice.h>

typedef struct domi_grpc_reader {
    uint32_t max;         /* bytes of a message, as it is and decompressed */
    bool unpacks;         /* compressed messages are those of gzip; otherwise they are wrong */
    uint8_t head[5];      /* of the message that comes, */
    uint8_t have;         /* of which so many bytes have come */
    uint32_t left;        /* bytes of the message that have not come, when its head has */
    domus_slice piece;    /* bytes that were not looked at; owned */
    domus_appender bytes; /* of a message that does not lie in one piece */
    struct domi_grpc_unpacker *unpacker; /* of the message in hand; NULL: it is not compressed */
    uint32_t spent;                      /* cost of decompressing since the last pause */
} domi_grpc_reader;

/* Give the reader the next piece, when it has used the one before it. It owns the slice then. */
void domi_grpc_reader_put(domi_grpc_reader *reader, domus_slice piece);

/* The cost of decompressing (gzip.h) until others have their turns: one message may become large,
 * or take long to become small, and a piece may hold many small ones that do. */
#define DOMI_GRPC_SPENT_MAX (1u << 20)

/* Take the next message. Returns 1 with a message, which the caller owns; 0: more is needed;
 * DOMI_GRPC_PAUSE: this is to be called again, behind a pause; -EMSGSIZE; -EPROTO; -ENOMEM. Behind
 * an error it is not called any more. */
#define DOMI_GRPC_PAUSE 2
int domi_grpc_reader_next(domi_grpc_reader *reader, domus_slice *ret_message);

/* Whether the bytes so far end with a whole message. */
bool domi_grpc_reader_is_between(const domi_grpc_reader *reader);

void domi_grpc_reader_drop(domi_grpc_reader *reader);

#endif
