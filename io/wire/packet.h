/* Code that all stages of packets (domus/pipeline.h) share. */
#ifndef DOMI_IO_WIRE_PACKET_H
#define DOMI_IO_WIRE_PACKET_H

#include <domus/pipeline.h>

/* Make a message that is a packet of `size` bytes at `bytes`, as the role of the stage (a request,
 * a notice, an answer) says. Returns 0; -ENOMEM. */
int domi_packet_make_message(domus_wire *wire, domus_role role, const char *bytes, size_t size);

#endif
