/* The set of an actor's channels: a list of all of them, and a list of those that have something
 * for the actor. Owner thread. */
#ifndef DOMI_IO_CHANNELS_SET_H
#define DOMI_IO_CHANNELS_SET_H

#include "base/fifo.h"
#include "io/channels/channel.h"

DOMI_FIFO(domi_ready_channels, domus_channel, next_ready);

/* The channels of a house, in `house->channels.set`. */
typedef struct domi_channels {
    domus_channel *all;
    domi_ready_channels ready; /* the channels that the next run of the actor handles */
    uint32_t count;
    struct domi_acceptor *acceptor; /* only in the house of an acceptor, which has no channels */
} domi_channels;

/* Returns the set of `house`, which is made at the first call; NULL if there is no memory. */
domi_channels *domi_channels_of(domi_house *house);

/* domi_channels_add() lets a channel join the set of its house, domi_channels_remove() takes it
 * out. */
void domi_channels_add(domi_channels *set, domus_channel *channel);
void domi_channels_remove(domi_channels *set, domus_channel *channel);

/* Put the channel on the ready list of its actor, and make the house ready, because the actor has
 * something to do for it. */
void domi_channel_make_ready(domus_channel *channel);

#endif
