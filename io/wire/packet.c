/* The type of packets, and the function by which their stages make them. */
#include "io/wire/packet.h"

#include <errno.h>

static void release_packet(void *payload)
{
    domus_slice_free(((domus_packet *)payload)->bytes);
}

const domus_type domus_packet_type = {
    .name = "packet", .size = sizeof(domus_packet), .release = release_packet};

int domi_packet_make_message(domus_wire *wire, domus_role role, const char *bytes, size_t size)
{
    domus_packet *packet =
        role == DOMUS_ROLE_SERVER   ? domus_wire_request(wire, &domus_packet_type, DOMUS_NO_ID)
        : role == DOMUS_ROLE_CLIENT ? domus_wire_answer(wire, &domus_packet_type, DOMUS_NO_ID)
                                    : domus_wire_notice(wire, &domus_packet_type);

    if (packet == NULL)
        return -ENOMEM;
    packet->bytes = domus_wire_slice(wire, bytes, size);
    return 0;
}
