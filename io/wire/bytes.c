/* The stage of packets that are any bytes (domus/pipeline.h): the bytes of one read are a
 * packet. */
#include "io/wire/packet.h"

#include <errno.h>

static int decode_bytes_as_packet(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    (void)state;
    int error = domi_packet_make_message(wire, DOMUS_ROLE_PEER, bytes, size);
    return error != 0 ? error : (int)size;
}

static int encode_packet_as_bytes(domus_wire *wire, void *state, uint64_t id,
                                  const domus_type *type, const void *payload)
{
    const domus_packet *packet = payload;

    (void)state, (void)id;
    return type == &domus_packet_type ? domus_wire_append_slice(wire, packet->bytes) : -EOPNOTSUPP;
}

const domus_stage domus_bytes_stage = {
    .name = "bytes",
    .decode = decode_bytes_as_packet,
    .encode = encode_packet_as_bytes,
};
