/* How many bytes the channels of a thread may have queued, and what each of them may.
 *
 * The thread has one bound, a share of the library's budget (domi_io_pressure.queue_max). Half of
 * it is shared: a channel may use a fixed part of what is still free there, an eighth, so the more
 * is queued the less each may have. This is a dynamic threshold, as in the shared buffers of
 * switches (Choudhury and Hahne). In a switch all queues drain; here a peer that reads nothing
 * keeps what it has, and a row of such peers would leave nothing free for the next. So the other
 * half is kept for channels that have nothing queued, each of which may read one piece; and of this
 * half one half is kept for short answers. Copies of
 * what came, for want of receive buffers, are counted from then on until their actor has seen them.
 *
 * Above its part a channel is crowded: it is not read, and its actor is not shown what has been
 * read already. It waits in a list, and is looked at again when less is queued.
 *
 * While much is queued, or the library is above its budget, the thread is careful: a receive brings
 * one piece, and the next one is begun when that has been handled, because a multishot receive
 * brings up to 32 before it can be ended.
 *
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_CROWD_H
#define DOMI_IO_CHANNELS_CROWD_H

#include "base/memory.h"
#include "io/channels/channel.h"

/* The threshold itself: what a channel may have queued when `queued` bytes of `queue_max` are. */
static inline uint64_t domi_part_of(uint64_t queue_max, uint64_t queued)
{
    uint64_t shared = queue_max / 2;

    return queued < shared ? (shared - queued) / 8 : 0;
}

/* There is room for the first piece of a channel that has nothing queued. */
static inline bool domi_has_room_for_first(uint64_t queue_max, uint64_t queued, uint64_t piece)
{
    uint64_t most = queue_max - queue_max / 16;

    return queued < most && most - queued >= piece;
}

static inline uint64_t domi_io_queued(const domi_io *io)
{
    return domi_counter_read(&io->queued);
}

/* Without copies of what came, which are not for peers yet. */
static inline uint64_t domi_io_outbound(const domi_io *io)
{
    return domi_io_queued(io) - io->copied;
}

/* With so much queued only small answers are taken. */
static inline uint64_t domi_queue_mark(uint64_t queue_max)
{
    return queue_max - queue_max / 4;
}

/* Whether a write of `size` bytes finds the bound reached. The last quarter is kept for answers
 * that are no longer than a piece, of channels that have nothing else queued: else a few channels
 * whose actors write much for peers that take nothing would silence all others. */
static inline bool domi_channel_is_refused(const domus_channel *channel, uint64_t size)
{
    const domi_io *io = channel->io;
    bool is_small = channel->queued_bytes + size <= io->config->io.buffers.size_bytes;
    uint64_t queue_max = io->pressure.queue_max;

    return domi_io_outbound(io) >= (is_small ? queue_max : domi_queue_mark(queue_max));
}

static inline uint64_t domi_io_part(const domi_io *io)
{
    return domi_part_of(io->pressure.queue_max, domi_io_queued(io));
}

/* What a buffer costs while it waits: a heap buffer all that was allocated for it, also when it was
 * trimmed; a provided one the bytes in it, because its memory is there in any case. */
static inline uint64_t domi_buffer_cost(const domus_buffer *buffer)
{
    return buffer->index == DOMI_BUFFER_HEAP ? domi_memory_bytes(buffer) : buffer->size;
}

/* Count what a channel has queued, or not any more. */
static inline void domi_channel_charge(domus_channel *channel, uint64_t *of, uint64_t cost)
{
    domi_counter_add(&channel->io->queued, cost);
    *of += cost;
}

static inline void domi_channel_discharge(domus_channel *channel, uint64_t *of, uint64_t cost)
{
    domi_io *io = channel->io;

    *of -= cost;
    domi_counter_add(&io->queued, -cost);
    io->crowd_left = io->crowd_count;
}

/* Count a copy of what came, as long as it waits for its actor. */
static inline void domi_channel_charge_copy(domus_channel *channel, uint64_t cost)
{
    channel->io->copied += cost;
    domi_channel_charge(channel, &channel->copied, cost);
}

static inline void domi_channel_discharge_copy(domus_channel *channel, uint64_t cost)
{
    channel->io->copied -= cost;
    domi_channel_discharge(channel, &channel->copied, cost);
}

/* Whether a channel that has nothing queued may be shown its first piece. A copy of it is counted
 * already, so only what waits for peers can be in its way: else copies could fill the bound and
 * wait for each other, for ever. */
static inline bool domi_channel_has_room_for_first(const domus_channel *channel)
{
    const domi_io *io = channel->io;
    uint64_t in_its_way = channel->copied != 0 ? domi_io_outbound(io) : domi_io_queued(io);

    return domi_has_room_for_first(io->pressure.queue_max, in_its_way, io->piece);
}

/* A channel that has `bytes` queued may not read another piece. */
static inline bool domi_channel_is_above_part(const domus_channel *channel, uint64_t bytes)
{
    const domi_io *io = channel->io;

    return bytes + io->piece > domi_io_part(io) &&
           !(bytes == 0 && domi_channel_has_room_for_first(channel));
}

/* Set `crowded` by what the channel has queued, and join or leave the list by it. */
void domi_channel_note_crowded(domus_channel *channel);

/* It closes: leave the list. */
void domi_channel_leave_crowd(domus_channel *channel);

/* Look at some crowded channels again, if that may have become of use. */
void domi_io_feed_crowd(domi_io *io);

/* Much is queued: receive piece by piece from now on. */
void domi_io_receive_carefully(domi_io *io);

/* Called after each charge. */
static inline void domi_io_note_queued(domi_io *io)
{
    if (DOMI_UNLIKELY(domi_io_queued(io) > io->careful_mark) && !io->careful)
        domi_io_receive_carefully(io);
}

/* A bound was set: what follows from it. */
void domi_io_set_bound(domi_io *io, uint64_t queue_max);

/* The next look at the channels of a careful thread is due; see shed.c. */
void domi_io_sweep(domi_io *io);
void domi_io_sweep_stop(domi_io *io);

#endif
