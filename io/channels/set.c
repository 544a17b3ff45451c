/* This file keeps the set of an actor's channels, and its ready list (set.h). */
#include "io/channels/set.h"

#include "base/memory.h"
#include "house/message/mailbox.h"

domi_channels *domi_channels_of(domi_house *house)
{
    if (house->channels.set == NULL)
        house->channels.set = domi_memory_new(sizeof(domi_channels));
    return house->channels.set;
}

void domi_channels_add(domi_channels *set, domus_channel *channel)
{
    channel->next = set->all;
    if (set->all != NULL)
        set->all->previous = channel;
    set->all = channel;
    set->count++;
}

void domi_channels_remove(domi_channels *set, domus_channel *channel)
{
    if (channel->next != NULL)
        channel->next->previous = channel->previous;
    if (channel->previous != NULL)
        channel->previous->next = channel->next;
    else
        set->all = channel->next;
    set->count--;
}

void domi_channel_make_ready(domus_channel *channel)
{
    domi_house *house = channel->house;
    domi_channels *set = house->channels.set;

    if (channel->ready)
        return;
    channel->ready = true;
    domi_ready_channels_put(&set->ready, channel);
    house->marks |= DOMI_MARK_CHANNELS;
    if (house->state == DOMI_WAITING &&
        (domi_house_may_run_channels(house) || domi_house_is_stopping_unmounted(house)))
        domi_house_make_ready(channel->io->manager, house);
}
