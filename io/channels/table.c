/* This file makes channels and frees them. The table doubles when it is full, and freed slots are
 * reused, the last one first; the generation of a slot grows with each channel that it had. */
#include "io/channels/table.h"

#include "base/check.h"
#include "base/memory.h"
#include "io/channels/close.h"
#include "io/channels/set.h"
#include "io/channels/timeouts.h"

#include <errno.h>
#include <string.h>

#define SLOTS_FIRST 64u
#define NO_SLOT     UINT32_MAX

/* Double the table of slots. Returns 0; -ENOMEM, and then the old table stays. */
static int grow_table(domi_io *io)
{
    uint32_t count = io->slot_count == 0 ? SLOTS_FIRST : io->slot_count * 2;
    domi_channel_slot *slots = domi_memory_new(count * sizeof *slots);

    if (slots == NULL)
        return -ENOMEM;
    if (io->slot_count != 0)
        memcpy(slots, io->slots, io->slot_count * sizeof *slots);
    domi_memory_free(io->slots);
    io->slots = slots;
    io->slot_count = count;
    return 0;
}

static int slot_take(domi_io *io, uint32_t *ret_slot)
{
    if (io->free_slot != NO_SLOT) {
        *ret_slot = io->free_slot;
        io->free_slot = io->slots[io->free_slot].next_free;
        return 0;
    }
    if (io->slots_used == io->slot_count && grow_table(io) != 0)
        return -ENOMEM;
    *ret_slot = io->slots_used++;
    return 0;
}

int domi_channel_adopt(domi_io *io, domi_house *house, int fd, domi_peer *peer)
{
    domi_channels *set = io->failed == 0 ? domi_channels_of(house) : NULL;
    domus_channel *channel = set != NULL ? domi_slab_take(&io->channel_slab) : NULL;
    uint32_t slot;

    if (channel == NULL)
        return -ENOMEM;
    if (slot_take(io, &slot) != 0) {
        domi_slab_put(&io->channel_slab, channel);
        return -ENOMEM;
    }
    *channel = (domus_channel){
        .io = io,
        .house = house,
        .peer = peer,
        .fd = fd,
        .slot = slot,
        .slot_generation = io->slots[slot].generation & DOMI_OP_GENERATION_MASK,
        .active_ns = io->manager->now_ns,
        .silent_ns = io->manager->now_ns,
    };
    io->slots[slot].channel = channel;
    io->open++;
    domi_channels_add(set, channel);
    domi_counter_add(&io->counters.opened, 1);
    domi_channel_arm_timeouts(channel);
    if (io->draining)
        domi_channel_drain(channel);
    domi_channel_make_ready(channel);
    return 0;
}

void domi_channel_free(domus_channel *channel)
{
    domi_io *io = channel->io;

    DOMI_CHECK(channel->state == DOMI_CHANNEL_CLOSED && !channel->dirty && !channel->starved);
    domi_channels_remove(channel->house->channels.set, channel);
    io->slots[channel->slot].channel = NULL;
    io->slots[channel->slot].generation++;
    io->slots[channel->slot].next_free = io->free_slot;
    io->free_slot = channel->slot;
    io->open--;
    domi_counter_add(&io->counters.closed, 1);
    if (channel->error != 0)
        domi_counter_add(&io->counters.reset, 1);
    /* release: a thread that sees that no connection is left (domi_system_connections) also sees
     * the counts of what was cut. */
    atomic_fetch_sub_explicit(&io->connections, 1, memory_order_release);
    domi_peers_count_out(io->peers, channel->peer);
    domi_slab_put(&io->channel_slab, channel);
}

uint64_t domi_channel_key(const domus_channel *channel)
{
    return (uint64_t)channel->io->slots[channel->slot].generation << 32 | channel->slot;
}

domus_channel *domi_channel_of_key(const domi_io *io, uint64_t key)
{
    const domi_channel_slot *slot = &io->slots[(uint32_t)key];

    return slot->generation == key >> 32 ? slot->channel : NULL;
}
