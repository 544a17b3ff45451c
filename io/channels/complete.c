/* Gives the results of completed operations to their channels. This happens in phase 1, so no code
 * of the user runs here: pieces of bytes wait in the channel until the run of its actor. */
#include "io/channels/complete.h"

#include "base/check.h"
#include "io/channels/crowd.h"
#include "io/channels/flush.h"
#include "io/channels/proxy.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"

#include <errno.h>
#include <string.h>

/* Copy a received piece to a heap buffer, and give its provided buffer back to the ring. Without
 * memory for that, the provided buffer is returned. */
static domus_buffer *copy_piece_to_heap_buffer(domus_channel *channel, domus_buffer *buffer)
{
    domi_io *io = channel->io;
    uint32_t front =
        domi_buffer_size_of_head(buffer); /* the copy of a datagram includes its head */
    domus_buffer *copy = domi_buffer_new_from_heap(io, front + buffer->size);

    if (copy == NULL)
        return buffer;
    memcpy(copy->data, buffer->data - front, front + buffer->size);
    copy->data += front;
    copy->size = buffer->size;
    domi_buffer_give_to_kernel(io, buffer);
    domi_channel_count_copied_piece(channel, domi_buffer_cost_in_memory(copy));
    domi_io_become_careful_if_much_queued(io);
    return copy;
}

/* Keep a received piece for the channel's actor. It is copied if the channel holds its share of
 * provided buffers or if few of them are free, so that many channels that hold their buffers for
 * long cannot starve the others. */
void domi_channel_keep_received_piece(domus_channel *channel, domus_buffer *buffer)
{
    domi_io *io = channel->io;

    if (channel->held >= io->share || domi_io_count_free_buffers(io) < io->reserve)
        buffer = copy_piece_to_heap_buffer(channel, buffer);
    buffer->holder_slot = channel->slot;
    buffer->holder_generation = channel->slot_generation;
    channel->held++;
    domi_buffer_list_put(&channel->inbound, buffer);
    if (!channel->blocked)
        domi_channel_make_actor_ready(channel);
}

static void handle_received_bytes(domus_channel *channel, const domi_completion *completion)
{
    domi_io *io = channel->io;
    domus_buffer *buffer = &io->buffers[completion->buffer];
    uint32_t size = (uint32_t)completion->result;

    buffer->size = size;
    channel->drain_bytes -= size < channel->drain_bytes ? size : channel->drain_bytes;
    if (channel->state != DOMI_CHANNEL_OPEN) {
        channel->silent_ns = 0;
        domi_counter_add(&io->counters.discarded_bytes, size);
        /* a channel that is being closed throws received bytes away */
        domi_buffer_give_to_kernel(io, buffer);
        /* bytes that come for a closing channel do not prolong its life */
        return;
    }
    channel->active_ns = io->manager->now_ns;
    if (DOMI_UNLIKELY(channel->proxy != NULL)) {
        if (!domi_channel_read_proxy_header(channel, buffer))
            return;
        size = buffer->size;
    }
    channel->silent_ns = 0;
    domi_counter_add(&io->counters.received_bytes, size);
    channel->received_bytes += size;
    domi_channel_keep_received_piece(channel, buffer);
    domi_channel_decide_whether_to_receive(channel);
}

static void handle_failed_receive(domus_channel *channel, int result)
{
    if (channel->special != NULL) {
        domi_channel_get_special_functions(channel)->receive_failed(channel, result);
        return;
    }
    switch (result) {
    case 0:
        channel->ended = true;
        if (channel->state == DOMI_CHANNEL_OPEN && channel->proxy != NULL)
            domi_channel_end_at_once(channel, 0,
                                     /* no reset is sent, because a proxy sometimes connects only to
                                      * see whether this side lives */
                                     false);
        else if (channel->state == DOMI_CHANNEL_OPEN)
            domi_channel_make_actor_ready(channel);
        break;
    case -ENOBUFS:
        domi_channel_queue_for_receive_buffer(channel);
        break;
    /* the receive was cancelled by domi_channel_end_receive(), or by the close of the channel */
    case -ECANCELED:
    case -EINTR:
    case -EAGAIN:
        break;
    default:
        channel->ended = true;
        domi_channel_end_at_once(channel, result, false);
        break;
    }
}

static void handle_receive_completion(domus_channel *channel, const domi_completion *completion)
{
    DOMI_CHECK(channel->receiving);
    if ((completion->flags & DOMI_BUFFERED) != 0) {
        DOMI_CHECK(completion->buffer < channel->io->config->io.buffers.count);
        domi_counter_add(&channel->io->buffers_used, 1);
        channel->io->buffers[completion->buffer].holder_slot = UINT32_MAX;
    }
    if ((completion->flags & DOMI_MORE) == 0) {
        channel->receiving = false;
        channel->cancelling = false;
    }
    if (completion->result > 0) {
        DOMI_CHECK((completion->flags & DOMI_BUFFERED) != 0);
        if (DOMI_UNLIKELY(channel->special != NULL))
            domi_channel_get_special_functions(channel)->take(
                channel, &channel->io->buffers[completion->buffer], (uint32_t)completion->result);
        else
            handle_received_bytes(channel, completion);
    } else {
        if ((completion->flags & DOMI_BUFFERED) != 0)
            domi_buffer_give_to_kernel(channel->io, &channel->io->buffers[completion->buffer]);
        handle_failed_receive(channel, completion->result);
    }
    domi_channel_take_due_steps(channel);
}

static void handle_send_completion(domus_channel *channel, const domi_completion *completion)
{
    domi_io *io = channel->io;

    DOMI_CHECK(channel->sending);
    channel->sending = false;
    if (channel->state >= DOMI_CHANNEL_CLOSING) {
        domi_channel_drop_unsent_bytes(channel);
    } else if (completion->result > 0) {
        channel->active_ns = io->manager->now_ns;
        domi_counter_add(&io->counters.sends, 1);
        domi_counter_add(&io->counters.sent_bytes, (uint32_t)completion->result);
        channel->sent_bytes += (uint32_t)completion->result;
        domi_channel_free_sent_buffers(channel, (uint32_t)completion->result);
        domi_channel_decide_whether_to_receive(channel);
        if (DOMI_UNLIKELY(channel->answer_bytes != 0))
            domi_channel_wake_writer_of_answer(channel);
        if (DOMI_UNLIKELY(channel->flushes != NULL))
            domi_flush_complete_waits(channel);
    } else if (completion->result != -EINTR && completion->result != -EAGAIN) {
        domi_channel_end_at_once(channel, completion->result == 0 ? -EPIPE : completion->result,
                                 false);
    }
    if (channel->outbound.head != NULL)
        domi_channel_mark_to_be_sent(channel);
    domi_channel_take_due_steps(channel);
}

void domi_channel_handle_completion(domi_io *io, enum domi_op op, const domi_completion *completion)
{
    domus_channel *channel = domi_channel_of_completion(io, completion);

    if (op == DOMI_OP_RECEIVE) {
        handle_receive_completion(channel, completion);
    } else if (op == DOMI_OP_SEND) {
        handle_send_completion(channel, completion);
    } else {
        DOMI_CHECK(channel->cancels > 0);
        channel->cancels--;
        domi_channel_take_due_steps(channel);
    }
}
