/* Messages of gRPC that are compressed by gzip. Any thread. */
#ifndef DOMI_PROTOCOLS_GRPC_GZIP_H
#define DOMI_PROTOCOLS_GRPC_GZIP_H

#include <domus/slice.h>

/* A compressed message that is being decompressed, in several steps if it is large. */
typedef struct domi_grpc_unpacker domi_grpc_unpacker;

/* Begin to decompress a message, which may become at most `max` bytes. Consumes the slice in every
 * case. Returns 0; -ENOMEM. */
int domi_grpc_begin_to_decompress(domus_slice packed, uint32_t max,
                                  domi_grpc_unpacker **ret_unpacker);

/* Continue to decompress a message until the cost reaches about `room`, and set `ret_cost` to it. A
 * decompressed byte costs 1, and a compressed byte costs DOMI_GRPC_COST_IN, because 11 compressed
 * bytes may be a block that only defines codes, which takes longer than 1,000 bytes of text and
 * yields nothing. Returns 1 with the whole message, which the caller owns; 0 if there is more to
 * do; -EMSGSIZE; -EPROTO for bytes that are not gzip, are cut off, or are followed by other bytes;
 * -ENOMEM. */
#define DOMI_GRPC_COST_IN 16u
int domi_grpc_decompress_message(domi_grpc_unpacker *unpacker, uint32_t room, uint32_t *ret_cost,
                                 domus_slice *ret_bytes);

/* Free the state of a message that is being decompressed. Returns NULL. NULL is allowed. */
domi_grpc_unpacker *domi_grpc_free_unpacker(domi_grpc_unpacker *unpacker);

/* Append the compressed form of a message. Returns 0; -EMSGSIZE if it is not smaller than the
 * message; -ENOMEM. With an error nothing is appended. */
int domi_grpc_compress_message(domus_slice bytes, domus_appender *to);

#endif
