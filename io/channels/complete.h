/* Gives completions of the operations of channels to the channels. Owner thread. */
#ifndef DOMI_IO_CHANNELS_COMPLETE_H
#define DOMI_IO_CHANNELS_COMPLETE_H

#include "base/check.h"
#include "io/channels/channel.h"

/* Returns the channel that a completion names. A slot is freed only when nothing is in flight for
 * it, so another generation in it is a bug. */
static inline domus_channel *domi_channel_of_completion(const domi_io *io,
                                                        const domi_completion *completion)
{
    uint32_t slot = (uint32_t)completion->user_data;
    uint32_t generation = (uint32_t)(completion->user_data >> 32) & DOMI_OP_GENERATION_MASK;

    DOMI_CHECK(slot < io->slot_count && io->slots[slot].channel != NULL &&
               (io->slots[slot].channel->slot_generation & DOMI_OP_GENERATION_MASK) == generation);
    return io->slots[slot].channel;
}

/* Give a completion of the operation `op` (a receive, a send, or a cancel) to the channel that it
 * names. */
void domi_channel_handle_completion(domi_io *io, enum domi_op op,
                                    const domi_completion *completion);

/* Keep a piece of received bytes in the channel until the run of its actor. */
void domi_channel_keep_received_piece(domus_channel *channel, domus_buffer *buffer);

#endif
