/* Receives bytes: each channel has one multishot receive, into the provided buffers of the thread.
 *
 * The receive is armed again when it has ended (no DOMI_MORE), whatever its last result was. If
 * there are no buffers (-ENOBUFS), the channel waits in the queue of the starved until some come
 * back. If a channel holds its share of the buffers, the receive is cancelled, and pieces that
 * still come are copied to the heap; the completion queue bounds how many the kernel delivers until
 * the receive has ended. */
#include "base/check.h"
#include "io/channels/crowd.h"

#include <errno.h>
#include <string.h>

bool domi_channel_wants_receive(const domus_channel *channel)
{
    if (channel->ended || channel->starved || channel->cancelling)
        return false;
    if (channel->state == DOMI_CHANNEL_OPEN)
        return !channel->paused && !(channel->io->careful && channel->inbound.head != NULL);
    return channel->state == DOMI_CHANNEL_FLUSHING || channel->state == DOMI_CHANNEL_LINGERING;
}

void domi_channel_arm_receive(domus_channel *channel)
{
    channel->receiving = true;
    if (channel->silent_ns != 0) /* the time in which this side did not read does not count */
        channel->silent_ns = channel->io->manager->now_ns;
    channel->once = channel->io->careful;
    channel->io->backend->receive(
        channel->io->ring, channel->fd, channel->once,
        domi_op_data(DOMI_OP_RECEIVE, channel->generation, channel->slot));
}

void domi_channel_end_receive(domus_channel *channel)
{
    if (!channel->receiving || channel->cancelling)
        return;
    channel->cancelling = true;
    channel->cancels++;
    channel->io->backend->cancel(channel->io->ring,
                                 domi_op_data(DOMI_OP_RECEIVE, channel->generation, channel->slot),
                                 domi_op_data(DOMI_OP_CANCEL, channel->generation, channel->slot));
}

static void note_high(domus_channel *channel)
{
    const domus_config *config = channel->io->config;

    if (channel->queued_bytes > config->channel.send_high_bytes)
        channel->high = true;
    else if (channel->queued_bytes <= config->channel.send_low_bytes)
        channel->high = false;
}

/* Returns how many pieces the channel may hold and still receive. While memory is critical the next
 * piece is received when the last one has been handled, so that a request that frees memory still
 * gets in. */
static uint32_t held_max(const domus_channel *channel)
{
    if (channel->io->pressure.spares)
        return 0;
    return channel->paused ? channel->io->share / 2 : channel->io->share - 1;
}

void domi_channel_decide_receive(domus_channel *channel)
{
    domi_io *io = channel->io;
    bool was_blocked = channel->blocked;
    bool was_paused = channel->paused;

    note_high(channel);
    domi_channel_note_crowded(channel);
    channel->blocked = channel->high || channel->crowded;
    if (was_blocked && !channel->blocked &&
        (channel->inbound.head != NULL || (channel->ended && !channel->end_told)))
        domi_channel_make_ready(channel);
    /* Pieces that are held go on to the actor unless the channel is blocked, because otherwise
     * their buffers would never come back. */
    channel->paused = channel->blocked || channel->held > held_max(channel) ||
                      (channel->copied != 0 &&
                       domi_channel_is_above_part(channel, channel->cost + channel->copied));
    if (was_paused && !channel->paused)
        channel->active_ns = io->manager->now_ns; /* this side did not read it until now */
    /* A receive that brings one piece is not ended: the piece can wait here as well as in the
     * kernel. */
    if (channel->paused && channel->state == DOMI_CHANNEL_OPEN && !channel->once)
        domi_channel_end_receive(channel);
}

static void starve_channel(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (channel->starved || channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    channel->starved = true;
    channel->next_starved = NULL;
    if (io->starved_head == NULL)
        io->starved_head = channel;
    else
        io->starved_tail->next_starved = channel;
    io->starved_tail = channel;
    domi_counter_add(&io->counters.starved, 1);
    domi_shortage_of_buffers(io);
}

void domi_channel_unstarve(domus_channel *channel)
{
    domi_io *io = channel->io;
    domus_channel *before = NULL;

    if (!channel->starved)
        return;
    for (domus_channel *at = io->starved_head; at != channel; at = at->next_starved)
        before = at;
    if (before == NULL)
        io->starved_head = channel->next_starved;
    else
        before->next_starved = channel->next_starved;
    if (io->starved_tail == channel)
        io->starved_tail = before;
    channel->starved = false;
}

/* Copy a piece to a heap buffer, and recycle the provided buffer. If there is no memory for that,
 * the provided buffer is returned. */
static domus_buffer *copy_out(domus_channel *channel, domus_buffer *buffer)
{
    domi_io *io = channel->io;
    domus_buffer *copy = domi_buffer_heap(io, buffer->size);

    if (copy == NULL)
        return buffer;
    memcpy(copy->data, buffer->data, buffer->size);
    domi_buffer_recycle(io, buffer);
    domi_channel_charge_copy(channel, domi_buffer_cost(copy));
    domi_io_note_queued(io);
    return copy;
}

/* Keep a piece for the actor. It is copied out if the channel holds its share or if few buffers are
 * free, so that many channels that hold their buffers for long cannot starve the others. */
static void keep_piece(domus_channel *channel, domus_buffer *buffer)
{
    domi_io *io = channel->io;

    if (channel->held >= io->share || io->buffers_free < io->reserve)
        buffer = copy_out(channel, buffer);
    buffer->holder_slot = channel->slot;
    buffer->holder_generation = channel->generation;
    channel->held++;
    domi_buffer_list_put(&channel->inbound, buffer);
    if (!channel->blocked)
        domi_channel_make_ready(channel);
}

domus_buffer *domi_channel_take_inbound(domus_channel *channel)
{
    domus_buffer *buffer = domi_buffer_list_take(&channel->inbound);

    if (buffer != NULL && buffer->index == DOMI_BUFFER_HEAP)
        domi_channel_discharge_copy(channel, domi_buffer_cost(buffer));
    return buffer;
}

static void take_bytes(domus_channel *channel, const domi_completion *completion)
{
    domi_io *io = channel->io;
    domus_buffer *buffer = &io->buffers[completion->buffer];
    uint32_t size = (uint32_t)completion->result;

    buffer->size = size;
    channel->silent_ns = 0;
    if (channel->state == DOMI_CHANNEL_OPEN) /* discarded bytes do not keep a channel alive */
        channel->active_ns = io->manager->now_ns;
    channel->drain_bytes -= size < channel->drain_bytes ? size : channel->drain_bytes;
    if (channel->state != DOMI_CHANNEL_OPEN) {
        domi_counter_add(&io->counters.discarded_bytes, size);
        domi_buffer_recycle(io, buffer); /* after a close bytes are read and thrown away */
        return;
    }
    domi_counter_add(&io->counters.received_bytes, size);
    keep_piece(channel, buffer);
    domi_channel_decide_receive(channel);
}

static void receive_failed(domus_channel *channel, int result)
{
    switch (result) {
    case 0:
        channel->ended = true;
        if (channel->state == DOMI_CHANNEL_OPEN)
            domi_channel_make_ready(channel);
        break;
    case -ENOBUFS:
        starve_channel(channel);
        break;
    case -ECANCELED: /* domi_channel_end_receive() has ended it */
    case -EINTR:
    case -EAGAIN:
        break;
    default:
        channel->ended = true;
        domi_channel_end(channel, result, false);
        break;
    }
}

void domi_channel_handle_receive(domus_channel *channel, const domi_completion *completion)
{
    DOMI_CHECK(channel->receiving);
    if ((completion->flags & DOMI_BUFFERED) != 0) {
        DOMI_CHECK(completion->buffer < channel->io->config->io.buffers.count);
        channel->io->buffers_free--;
        channel->io->buffers[completion->buffer].holder_slot = UINT32_MAX;
    }
    if ((completion->flags & DOMI_MORE) == 0) {
        channel->receiving = false;
        channel->cancelling = false;
    }
    if (completion->result > 0) {
        DOMI_CHECK((completion->flags & DOMI_BUFFERED) != 0);
        take_bytes(channel, completion);
    } else {
        if ((completion->flags & DOMI_BUFFERED) != 0)
            domi_buffer_recycle(channel->io, &channel->io->buffers[completion->buffer]);
        receive_failed(channel, completion->result);
    }
    domi_channel_settle(channel);
}
