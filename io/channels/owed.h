/* The bytes that a channel owes: those that its peer would miss if the channel ended now. Owner
 * thread. */
#ifndef DOMI_IO_CHANNELS_OWED_H
#define DOMI_IO_CHANNELS_OWED_H

#include "io/channels/channel.h"

/* True if the kernel still holds bytes that the peer has not acknowledged. */
bool domi_channel_has_undelivered(const domus_channel *channel);

/* Count a channel that the library will end by itself, with the bytes that it owes. These are bytes
 * that were received and not answered, answers that were not delivered, and `lost_bytes`, which the
 * channel no longer holds. A channel that owes nothing is not counted. */
void domi_channel_count_cut(domus_channel *channel, uint64_t lost_bytes);

#endif
