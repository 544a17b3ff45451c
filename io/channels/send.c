/* This file sends the queued buffers of a channel. The buffers of one iteration leave in one
 * operation per channel, and one send at most is in flight, because two could overtake each other.
 * The kernel reads the buffers until the completion. A short send is followed by another one.
 * (MSG_WAITALL, which asks for all of it, would after some tries hand a send to a slow peer to a
 * kernel worker.) */
#include "io/channels/send.h"

#include "base/check.h"
#include "io/channels/crowd.h"
#include "io/channels/flush.h"
#include "io/channels/receive.h"

#include <errno.h>

void domi_channel_mark_dirty(domus_channel *channel)
{
    if (channel->dirty)
        return;
    channel->dirty = true;
    channel->next_dirty = channel->io->dirty;
    channel->io->dirty = channel;
}

int domi_channel_write(domus_channel *channel, domus_buffer *bytes)
{
    domi_io *io = channel->io;
    int error = 0;

    if (channel->state != DOMI_CHANNEL_OPEN || channel->finished)
        error = -EPIPE;
    else if (channel->queued_bytes + bytes->size > channel->settings->send_max_bytes ||
             domi_channel_is_refused(channel, bytes->size))
        error = -ENOBUFS;
    if (error != 0 || bytes->size == 0) {
        domus_buffer_free(bytes);
        return error;
    }
    domi_buffer_list_put(&channel->outbound, bytes);
    channel->queued_bytes += bytes->size;
    channel->answered_bytes = channel->received_bytes;
    domi_channel_charge(channel, &channel->cost, domi_buffer_cost(bytes));
    domi_io_note_queued(io);
    if (!channel->sending)
        domi_channel_mark_dirty(channel);
    domi_channel_decide_receive(channel);
    return 0;
}

/* Let `pieces` point to the queued buffers. Returns how many pieces there are. */
static uint32_t gather_pieces(const domus_channel *channel, struct iovec pieces[DOMI_PIECES_MAX])
{
    uint32_t count = 0;

    for (const domus_buffer *buffer = channel->outbound.head;
         buffer != NULL && count < DOMI_PIECES_MAX; buffer = buffer->next) {
        uint32_t offset = count == 0 ? channel->head_offset : 0;
        pieces[count++] = (struct iovec){
            .iov_base = buffer->data + offset,
            .iov_len = buffer->size - offset,
        };
    }
    return count;
}

/* Queue one send of several buffers. */
__attribute__((noinline)) static void send_gathered(const domus_channel *channel, uint64_t data)
{
    const domi_io *io = channel->io;
    struct iovec pieces[DOMI_PIECES_MAX];
    struct msghdr message = {.msg_iov = pieces};

    message.msg_iovlen = gather_pieces(channel, pieces);
    io->backend->send_message(io->ring, channel->fd, &message, data);
}

/* One timer serves all time-outs of a channel, and fires at the earliest. Once it is armed for a
 * send, later sends are due after it, so this costs one comparison per send. */
static void arm_send_timeout(domus_channel *channel)
{
    domi_wheel_node *node = &channel->timer.node;
    uint64_t timeout_ns = channel->settings->send_timeout_ns;
    uint64_t due_ns = channel->send_ns + timeout_ns;

    if (timeout_ns == 0 || (domi_wheel_is_armed(node) && node->expires_ns <= due_ns))
        return;
    domi_wheel_cancel(&channel->io->wheel, node);
    domi_wheel_arm(&channel->io->wheel, node, due_ns);
}

void domi_channel_send(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (channel->sending || channel->outbound.head == NULL ||
        channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    if (DOMI_UNLIKELY(channel->datagrams != NULL)) {
        domi_datagram_ways_of(channel)->send(channel);
        return;
    }

    uint64_t data = domi_op_data(DOMI_OP_SEND, channel->slot_generation, channel->slot);
    const domus_buffer *head = channel->outbound.head;
    channel->sending = true;
    channel->send_ns = io->manager->now_ns;
    arm_send_timeout(channel);
    if (head->next == NULL)
        io->backend->send(io->ring, channel->fd, head->data + channel->head_offset,
                          head->size - channel->head_offset, data);
    else
        send_gathered(channel, data);
}

/* Free the first buffer of outbound, which is not needed any more. */
static void free_outbound_head(domus_channel *channel)
{
    domus_buffer *buffer = domi_buffer_list_take(&channel->outbound);

    domi_channel_discharge(channel, &channel->cost, domi_buffer_cost(buffer));
    domus_buffer_free(buffer);
}

void domi_channel_drop_outbound(domus_channel *channel)
{
    DOMI_CHECK(!channel->sending);
    if (channel->datagrams != NULL)
        domi_datagram_ways_of(channel)->forget_outbound(channel);
    channel->unsent_bytes += channel->queued_bytes;
    while (channel->outbound.head != NULL)
        free_outbound_head(channel);
    channel->queued_bytes = 0;
    channel->head_offset = 0;
    if (channel->high)
        domi_channel_set_high(channel, false);
}

void domi_channel_drop_sent(domus_channel *channel, uint32_t size)
{
    channel->queued_bytes -= size;
    while (size != 0) {
        domus_buffer *buffer = channel->outbound.head;
        uint32_t left = buffer->size - channel->head_offset;

        if (size < left) {
            channel->head_offset += size;
            return;
        }
        size -= left;
        channel->head_offset = 0;
        free_outbound_head(channel);
    }
}
