/* The bound on the bytes that the channels of a thread have queued, and the part of it that each
 * channel may use.
 *
 * The bound of a thread is a share of the budget of the library (domi_io_pressure.queue_max). Half
 * of it is shared: a channel may use an eighth of what is still free there, so the more is queued,
 * the less each channel may have. This is a dynamic threshold, as in the shared buffers of switches
 * (Choudhury and Hahne). In a switch all queues drain. Here a peer that reads nothing keeps its
 * bytes, and a row of such peers would leave nothing free for the next channel. So the other half
 * is kept for channels that have nothing queued, each of which may read one piece; and half of this
 * half is kept for short answers. Pieces that are copied to the heap, because receive buffers are
 * short, count from the copy until their actor has taken them.
 *
 * A channel above its part is crowded: it is not read, and its actor does not get what has been
 * read already. The channel waits in a list, and is checked again when less is queued.
 *
 * While much is queued, or the library is above its budget, the thread is careful: a receive brings
 * one piece, and the next receive is armed when that piece has been handled. (A multishot receive
 * brings up to 32 pieces before it can be ended.)
 *
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_CROWD_H
#define DOMI_IO_CHANNELS_CROWD_H

#include "base/memory.h"
#include "io/channels/channel.h"

/* Returns how many bytes one channel may have queued (its part), while all channels of the thread
 * together have `queued` bytes queued of at most `queue_max`. */
static inline uint64_t domi_bound_part_of_one_channel(uint64_t queue_max, uint64_t queued)
{
    uint64_t shared = queue_max / 2;

    return queued < shared ? (shared - queued) / 8 : 0;
}

/* True if `queued` bytes, of at most `queue_max`, leave room for the first piece of a channel that
 * has nothing queued. The last sixteenth of `queue_max` stays free. */
static inline bool domi_bound_has_room_for_first_piece(uint64_t queue_max, uint64_t queued,
                                                       uint64_t piece)
{
    uint64_t most = queue_max - queue_max / 16;

    return queued < most && most - queued >= piece;
}

static inline uint64_t domi_io_count_queued_bytes(const domi_io *io)
{
    return domi_counter_read(&io->queued);
}

/* Returns the number of queued bytes of the thread that wait for peers: all but copied pieces,
 * which wait for their actor. */
static inline uint64_t domi_io_count_bytes_waiting_for_peers(const domi_io *io)
{
    return domi_io_count_queued_bytes(io) - io->copied;
}

/* Returns the mark: the number of queued bytes of the thread from which on only small answers are
 * accepted. */
static inline uint64_t domi_io_mark_for_small_answers_only(uint64_t queue_max)
{
    return queue_max - queue_max / 4;
}

/* Returns how many of `queued` bytes count against other channels. Pages (pages.h) count only up to
 * half of the bound: otherwise one page that is larger than the bound would stop all channels while
 * it waits. */
static inline uint64_t domi_io_count_bytes_in_way_of_others(const domi_io *io, uint64_t queued)
{
    return queued - io->pages.beyond;
}

/* Returns the bytes of memory that a slice takes when it is queued: none if its page is queued
 * already. */
static inline uint64_t domi_io_count_further_bytes_of_slice(const domi_io *io, domus_slice slice)
{
    return domi_pages_has_waiting_slice(&io->pages, slice.page) ? 0 : slice.size;
}

/* True if a write that takes `size` bytes of further memory is refused because of the thread's
 * bound. The last quarter is kept for small answers (at most one piece) of channels that have
 * nothing else queued. Without it, a few channels whose actors write much for peers that take
 * nothing would stop all others. */
static inline bool domi_channel_is_write_refused(const domus_channel *channel, uint64_t size)
{
    const domi_io *io = channel->io;
    bool is_small =
        channel->queued_bytes + channel->answer_bytes + size <= io->config->io.buffers.size_bytes;
    uint64_t queue_max = io->pressure.queue_max;

    return is_small ? domi_io_count_bytes_in_way_of_others(
                          io, domi_io_count_bytes_waiting_for_peers(io)) >= queue_max
                    : domi_io_count_bytes_waiting_for_peers(io) >=
                          domi_io_mark_for_small_answers_only(queue_max);
}

DOMI_INLINE uint64_t domi_io_part_of_one_channel(const domi_io *io)
{
    return domi_bound_part_of_one_channel(
        io->pressure.queue_max,
        domi_io_count_bytes_in_way_of_others(io, domi_io_count_queued_bytes(io)));
}

/* Returns the bytes of memory that a queued buffer counts for its channel. A heap buffer counts all
 * that was allocated for it, also after it was trimmed. A provided buffer counts the bytes in it,
 * because its memory exists in any case. A buffer of a slice counts the bytes of the slice, also if
 * its page waits for other channels, too: they are what this peer has not taken. */
static inline uint64_t domi_buffer_cost_in_memory(const domus_buffer *buffer)
{
    if (DOMI_LIKELY(buffer->index == DOMI_BUFFER_HEAP))
        return domi_memory_bytes_of_block(buffer);
    return buffer->index == DOMI_BUFFER_SLICE ? domi_memory_bytes_of_block(buffer) + buffer->size
                                              : buffer->size;
}

/* Count `cost` bytes of memory as queued, on the thread and in `of`, a sum of this channel.
 * domi_channel_uncount_queued_bytes() subtracts them again. */
static inline void domi_channel_count_queued_bytes(domus_channel *channel, uint64_t *of,
                                                   uint64_t cost)
{
    domi_counter_add(&channel->io->queued, cost);
    *of += cost;
}

static inline void domi_channel_uncount_queued_bytes(domus_channel *channel, uint64_t *of,
                                                     uint64_t cost)
{
    domi_io *io = channel->io;

    *of -= cost;
    domi_counter_add(&io->queued, -cost);
    io->crowd_left = io->crowd_count;
}

/* Count a buffer as queued: in `of`, a sum of this channel, by its cost for the channel; on the
 * thread the page of a slice counts once, as a whole (pages.h). */
static inline void domi_channel_count_queued_buffer(domus_channel *channel, uint64_t *of,
                                                    const domus_buffer *buffer)
{
    domi_io *io = channel->io;
    uint64_t cost = domi_buffer_cost_in_memory(buffer);

    *of += cost;
    if (DOMI_UNLIKELY(buffer->index == DOMI_BUFFER_SLICE))
        cost = cost - buffer->size + domi_pages_count_waiting_slice(&io->pages, buffer->page);
    domi_counter_add(&io->queued, cost);
}

static inline void domi_channel_uncount_queued_buffer(domus_channel *channel, uint64_t *of,
                                                      const domus_buffer *buffer)
{
    domi_io *io = channel->io;
    uint64_t cost = domi_buffer_cost_in_memory(buffer);

    *of -= cost;
    if (DOMI_UNLIKELY(buffer->index == DOMI_BUFFER_SLICE))
        cost = cost - buffer->size + domi_pages_uncount_waiting_slice(&io->pages, buffer->page);
    domi_counter_add(&io->queued, -cost);
    io->crowd_left = io->crowd_count;
}

/* Count a received piece that was copied to the heap, while it waits for its actor. */
static inline void domi_channel_count_copied_piece(domus_channel *channel, uint64_t cost)
{
    channel->io->copied += cost;
    domi_channel_count_queued_bytes(channel, &channel->copied, cost);
}

static inline void domi_channel_uncount_copied_piece(domus_channel *channel, uint64_t cost)
{
    channel->io->copied -= cost;
    domi_channel_uncount_queued_bytes(channel, &channel->copied, cost);
}

/* True if the actor of a channel that has nothing queued may get its first piece. If that piece is
 * a copy, it is counted already, so only bytes that wait for peers can forbid it. Otherwise copies
 * could fill the bound and wait for each other for ever. */
static inline bool domi_channel_has_room_for_first_piece(const domus_channel *channel)
{
    const domi_io *io = channel->io;
    uint64_t in_its_way = channel->copied != 0 ? domi_io_count_bytes_waiting_for_peers(io)
                                               : domi_io_count_queued_bytes(io);

    return domi_bound_has_room_for_first_piece(
        io->pressure.queue_max, domi_io_count_bytes_in_way_of_others(io, in_its_way), io->piece);
}

/* True if a channel that has `bytes` queued has more than its part, so that it may not read another
 * piece. */
static inline bool domi_channel_is_above_its_part(const domus_channel *channel, uint64_t bytes)
{
    const domi_io *io = channel->io;

    return bytes + io->piece > domi_io_part_of_one_channel(io) &&
           !(bytes == 0 && domi_channel_has_room_for_first_piece(channel));
}

/* True if nothing keeps the channel from receiving, and a new check would find nothing either: it
 * is neither blocked nor paused, and it has fewer bytes queued than sendHigh and than its part. */
static inline bool domi_channel_is_free_to_receive(const domus_channel *channel)
{
    const domi_io *io = channel->io;

    return !(channel->paused || channel->blocked || channel->high || channel->crowded ||
             channel->halted || channel->busy) &&
           channel->held < io->share && channel->copied == 0 && !io->pressure.spares &&
           channel->queued_bytes + channel->answer_bytes <= channel->settings->send_high_bytes &&
           channel->cost + io->piece <= domi_io_part_of_one_channel(io);
}

/* True if the answer to the channel's oldest request may bring more bytes although the channel
 * has too much queued: other answers wait behind it, and the channel has next to nothing left to
 * send. The others cannot leave before it has ended, so if it waited for them, both would wait
 * for ever. */
static inline bool domi_channel_may_oldest_answer_go_on(const domus_channel *channel)
{
    return channel->answer_bytes != 0 &&
           channel->queued_bytes <= channel->settings->send_low_bytes &&
           !domi_channel_is_above_its_part(channel, channel->cost - channel->answer_cost);
}

/* Set the channel's flag `crowded` by the number of queued bytes, and let the channel join or leave
 * the list of crowded ones. */
void domi_channel_update_crowded_flag(domus_channel *channel);

/* Remove a channel that is being closed from the list of crowded ones. */
void domi_channel_leave_crowded_list(domus_channel *channel);

/* Returns the next crowded channel that has to be checked again, because bytes were freed since its
 * last check; `crowd_left` says how many such channels there are, at least one. The channel goes to
 * the end of the list, so that each is checked in turn. */
domus_channel *domi_io_take_next_crowded_channel(domi_io *io);

/* Make the thread careful (see the head of this file), because much is queued: it receives piece by
 * piece from now on. */
void domi_io_begin_to_receive_carefully(domi_io *io);

/* Make the thread careful (see the head of this file) if too much is queued. Called after each
 * charge. */
static inline void domi_io_become_careful_if_much_queued(domi_io *io)
{
    if (DOMI_UNLIKELY(domi_io_count_queued_bytes(io) > io->careful_mark) && !io->careful)
        domi_io_begin_to_receive_carefully(io);
}

/* Set the bound on the bytes that this thread may queue for peers, and the fields that follow from
 * it: the mark above which the thread is careful, and the size of a piece. */
void domi_io_set_bound_of_queued_bytes(domi_io *io, uint64_t queue_max);

#endif
