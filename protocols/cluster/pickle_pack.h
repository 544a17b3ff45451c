/* The bridge to msgpack-c, which writes all tokens: its packer passes each token to
 * domi_pickle_write_packed_bytes(). The compiler sees both, so a token costs a comparison and a
 * store. */
#ifndef DOMI_PROTOCOLS_CLUSTER_PICKLE_PACK_H
#define DOMI_PROTOCOLS_CLUSTER_PICKLE_PACK_H

#include "protocols/cluster/pickle.h"

#include <msgpack/pack.h>

/* Write bytes that msgpack-c has made to the writer, `data`. Returns 0, or a negative errno, which
 * is also recorded as the message's fault. */
static inline int domi_pickle_write_packed_bytes(void *data, const char *bytes, size_t size)
{
    domus_pickle_writer *writer = data;

    if ((size_t)(writer->end - writer->at) < size) {
        int error = domi_pickle_make_room_to_write(writer, size);
        if (error != 0)
            return error;
    }
    memcpy(writer->at, bytes, size);
    writer->at += size;
    return 0;
}

static inline msgpack_packer domi_pickle_packer_of_writer(domus_pickle_writer *writer)
{
    return (msgpack_packer){writer, domi_pickle_write_packed_bytes};
}

#endif
