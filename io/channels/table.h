/* The channels of a thread, each in a slot for its life. An operation in the ring names its channel
 * by slot and generation. Owner thread. */
#ifndef DOMI_IO_CHANNELS_TABLE_H
#define DOMI_IO_CHANNELS_TABLE_H

#include "io/channels/channel.h"

/* Make a channel of `fd` for the actor in `house`. The channel takes over `fd` and its count on
 * `peer` (NULL: it is not counted). Returns 0; -ENOMEM, and then both still belong to the caller.
 */
int domi_channel_adopt(domi_io *io, domi_house *house, int fd, domi_peer *peer);

/* Free the channel and its slot, after on_close has returned. */
void domi_channel_free(domus_channel *channel);

/* domi_channel_key() returns a number that names the channel for ever. domi_channel_of_key()
 * returns the channel of such a number; NULL once that channel has been freed. */
uint64_t domi_channel_key(const domus_channel *channel);
domus_channel *domi_channel_of_key(const domi_io *io, uint64_t key);

#endif
