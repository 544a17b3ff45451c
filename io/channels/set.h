/* The channels of an actor: all of them, and those that have something for it. Owner thread. */
#ifndef DOMI_IO_CHANNELS_SET_H
#define DOMI_IO_CHANNELS_SET_H

#include "base/fifo.h"
#include "io/channels/channel.h"

DOMI_FIFO(domi_ready_channels, domus_channel, next_ready);

/* The channels of a house, in `house->channels.set`. */
typedef struct domi_channels {
    domus_channel *all;
    domi_ready_channels ready; /* those that the next run of the actor handles */
    uint32_t count;
    struct domi_acceptor *acceptor; /* only in the house of an acceptor, which has no channels */
} domi_channels;

/* Returns the set of `house`, which is made at the first call; NULL when there is no memory. */
domi_channels *domi_channels_of(domi_house *house);

/* Let a channel join the set of its house; take it out of the set. */
void domi_channels_add(domi_channels *set, domus_channel *channel);
void domi_channels_remove(domi_channels *set, domus_channel *channel);

/* Put the channel on the ready list of its actor, and make the house ready, because the actor has
 * something to do for it. */
void domi_channel_make_ready(domus_channel *channel);

#endif
