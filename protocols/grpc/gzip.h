/* Messages compressed by gzip, whole ones. Any thread. */
#ifndef DOMI_PROTOCOLS_GRPC_GZIP_H
#define DOMI_PROTOCOLS_GRPC_GZIP_H

#include <domus/slice.h>

/* Decompress a message to at most `max` bytes. The caller owns the outcome. Returns 0; -EMSGSIZE;
 * -EPROTO for bytes that are no gzip, are cut off, or are followed by others; -ENOMEM. */
int domi_grpc_unpack(domus_slice packed, uint32_t max, domus_slice *ret_bytes);

/* Append a message, compressed. Returns 0; -EMSGSIZE if it does not become smaller; -ENOMEM. With
 * an error nothing is appended. */
int domi_grpc_pack(domus_slice bytes, domus_appender *to);

#endif
