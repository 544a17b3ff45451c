/* Code that all stages of packets share. */
#ifndef DOMI_IO_WIRE_PACKET_H
#define DOMI_IO_WIRE_PACKET_H

#include <domus/pipeline.h>

/* Make a packet of `size` bytes at `bytes`, as the role says. Returns 0; -ENOMEM. */
int domi_packet_make(domus_wire *wire, domus_role role, const char *bytes, size_t size);

#endif
