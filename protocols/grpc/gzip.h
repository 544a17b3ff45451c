/* Messages compressed by gzip. Any thread. */
#ifndef DOMI_PROTOCOLS_GRPC_GZIP_H
#define DOMI_PROTOCOLS_GRPC_GZIP_H

#include <domus/slice.h>

/* A message that is being decompressed, in several steps if it is large. */
typedef struct domi_grpc_unpacker domi_grpc_unpacker;

/* Begin with a message that becomes at most `max` bytes. Ownership: this takes the slice in every
 * case. Returns 0; -ENOMEM. */
int domi_grpc_unpack_begin(domus_slice packed, uint32_t max, domi_grpc_unpacker **ret_unpacker);

/* Decompress until that has cost about `room`, and set `ret_cost` to what it was: a byte that comes
 * out costs 1, and one that goes in DOMI_GRPC_COST_IN, because 11 bytes may be a block with codes
 * of its own of which nothing comes out, and that takes longer than 1,000 bytes of text. Returns 1
 * with the whole message, which the caller owns; 0: there is more; -EMSGSIZE; -EPROTO for bytes
 * that are no gzip, are cut off, or are followed by others; -ENOMEM. */
#define DOMI_GRPC_COST_IN 16u
int domi_grpc_unpack(domi_grpc_unpacker *unpacker, uint32_t room, uint32_t *ret_cost,
                     domus_slice *ret_bytes);

/* Free it. Returns NULL. NULL is allowed. */
domi_grpc_unpacker *domi_grpc_unpack_end(domi_grpc_unpacker *unpacker);

/* Append a message, compressed. Returns 0; -EMSGSIZE if it does not become smaller; -ENOMEM. With
 * an error nothing is appended. */
int domi_grpc_pack(domus_slice bytes, domus_appender *to);

#endif
