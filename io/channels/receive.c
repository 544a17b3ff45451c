/* Decides whether a channel receives, and limits the buffers that it holds.
 *
 * Each channel has one multishot receive, into the provided buffers of the thread. The receive is
 * armed again when it has ended (no DOMI_MORE), whatever its last result was. If there are no
 * buffers (-ENOBUFS), the channel waits in the queue of the starved until some come back. If a
 * channel holds its share of the buffers, the receive is cancelled, and pieces that still come are
 * copied to the heap (complete.c); the completion queue bounds how many the kernel delivers until
 * the receive has ended. */
#include "io/channels/receive.h"

#include "base/check.h"
#include "io/channels/crowd.h"
#include "io/channels/due.h"
#include "io/channels/flush.h"
#include "io/channels/ready.h"
#include "io/resources/spells.h"

/* True if a receive of the channel should be in flight now. */
static bool wants_channel_receive(const domus_channel *channel)
{
    if (channel->ended || channel->starved || channel->cancelling)
        return false;
    if (channel->state == DOMI_CHANNEL_OPEN)
        return !channel->paused && !(channel->io->careful && channel->inbound.head != NULL);
    return (channel->state == DOMI_CHANNEL_FLUSHING || channel->state == DOMI_CHANNEL_LINGERING) &&
           channel->special == NULL;
}

void domi_channel_arm_receive(domus_channel *channel)
{
    bool is_opened =
        channel->opened || channel->proxy != NULL || channel->state != DOMI_CHANNEL_OPEN;

    if (channel->receiving || !is_opened || !wants_channel_receive(channel))
        return;
    channel->receiving = true;
    /* Time in which this side did not read does not count against the peer. But the time for a
     * proxy's header that has begun goes on: otherwise each of its bytes would prolong it, where a
     * receive brings one piece. */
    if (channel->silent_ns != 0 && (channel->proxy == NULL || channel->proxy->taken == 0))
        channel->silent_ns = channel->io->manager->now_ns;
    if (channel->special != NULL) {
        domi_channel_get_special_functions(channel)->receive(channel);
        return;
    }
    channel->once = channel->io->careful;
    channel->io->backend->receive(
        channel->io->ring, channel->fd, channel->once,
        domi_op_user_data(DOMI_OP_RECEIVE, channel->slot_generation, channel->slot));
}

void domi_channel_end_receive(domus_channel *channel)
{
    if (!channel->receiving || channel->cancelling)
        return;
    /* the stage of the outer channel may go on to pass bytes to this inner channel */
    if (DOMI_UNLIKELY(domi_channel_is_inner(channel))) {
        channel->receiving = false;
        return;
    }
    channel->cancelling = true;
    channel->cancels++;
    channel->io->backend->cancel(
        channel->io->ring, channel->fd,
        domi_op_user_data(DOMI_OP_RECEIVE, channel->slot_generation, channel->slot),
        domi_op_user_data(DOMI_OP_CANCEL, channel->slot_generation, channel->slot));
}

static void update_flag_much_is_queued(domus_channel *channel)
{
    const domi_channel_settings *settings = channel->settings;

    if (DOMI_UNLIKELY(channel->high)) {
        if (channel->queued_bytes + channel->answer_bytes <= settings->send_low_bytes)
            domi_channel_set_much_is_queued(channel, false);
    } else if (DOMI_UNLIKELY(channel->queued_bytes + channel->answer_bytes >
                             settings->send_high_bytes)) {
        domi_channel_set_much_is_queued(channel, true);
    }
}

/* Returns the number of received pieces that the channel may hold and still receive. While memory
 * is critical the next piece is received when the last one has been handled, so that a request that
 * frees memory still gets in. */
static uint32_t get_most_received_pieces_held(const domus_channel *channel)
{
    if (channel->io->pressure.spares)
        return 0;
    return channel->paused ? channel->io->share / 2 : channel->io->share - 1;
}

/* True if so many bytes wait for the peer that the channel's input is not handled. A piece of a
 * body that is wanted is handled nevertheless: its reader may be another actor than the one that
 * has to wait for the peer. While the peer has asks to answer, its answers are handled, too: it may
 * take no bytes before it has sent them, and then both sides would wait for each other. Such
 * answers cause no bytes for the peer. */
static bool is_too_much_output_waiting(const domus_channel *channel)
{
    return (channel->high || channel->crowded) && channel->asks == 0 && !channel->reading;
}

/* True if the receive of a blocked channel has to end, and not only the handling of its input. A
 * channel that is only busy receives until a piece comes that has to wait: most peers send nothing
 * before they have their answer, and a receive that is ended and begun again for each request would
 * cost two operations. */
static bool must_receive_be_ended(const domus_channel *channel)
{
    if (DOMI_LIKELY(!channel->blocked))
        return false;
    return is_too_much_output_waiting(channel) || channel->halted || channel->inbound.head != NULL;
}

void domi_channel_add_unread_time(domus_channel *channel)
{
    uint64_t now_ns = channel->io->manager->now_ns;

    if (channel->unread_ns == 0)
        return;
    if (channel->message_due_ns != 0)
        channel->message_due_ns += now_ns - channel->unread_ns;
    channel->unread_ns = channel->paused ? now_ns : 0;
}

void domi_channel_decide_receive_by_slow_path(domus_channel *channel)
{
    domi_io *io = channel->io;
    bool was_blocked = channel->blocked;
    bool was_paused = channel->paused;
    bool had_room = !channel->high && !channel->crowded;

    update_flag_much_is_queued(channel);
    domi_channel_update_crowded_flag(channel);
    channel->blocked = is_too_much_output_waiting(channel) || channel->halted ||
                       (channel->busy && !channel->reading);
    if (DOMI_UNLIKELY(!had_room) && channel->pipe != NULL && !channel->high && !channel->crowded) {
        /* asks that wait in a pool may wait for this channel to be free again */
        domi_channel_make_actor_ready(channel);
        domi_channel_schedule_carrying_stage(channel);
    }
    if (was_blocked && !channel->blocked &&
        (channel->inbound.head != NULL || channel->pipe != NULL ||
         (channel->ended && !channel->end_told)))
        domi_channel_make_actor_ready(channel);
    /* Pieces that the channel holds are handed to its actor unless the channel is blocked, because
     * otherwise their buffers would never come back. */
    channel->paused = (channel->sated && channel->asks == 0 && !channel->reading) ||
                      must_receive_be_ended(channel) ||
                      channel->held > get_most_received_pieces_held(channel) ||
                      (channel->copied != 0 &&
                       domi_channel_is_above_its_part(channel, channel->cost + channel->copied));
    if (!was_paused && channel->paused)
        channel->unread_ns = io->manager->now_ns;
    if (was_paused && !channel->paused)
        domi_channel_add_unread_time(channel);
    if (was_paused && !channel->paused) {
        /* this side did not read until now, so the channel was not idle and the peer not slow */
        channel->active_ns = io->manager->now_ns;
        domi_channel_void_rate_measurement(channel);
    }
    /* A receive that brings one piece only is not cancelled: the piece can wait in the channel as
     * well as in the kernel. */
    if (channel->paused && channel->state == DOMI_CHANNEL_OPEN && !channel->once)
        domi_channel_end_receive(channel);
}

void domi_channel_update_busy_flag(domus_channel *channel)
{
    uint64_t most = channel->settings->requests_max;
    bool busy = most != 0 && channel->conversations >= most;

    if (busy == channel->busy)
        return;
    channel->busy = busy;
    if (busy)
        domi_counter_add(&channel->io->counters.channels_busy, 1);
    if (channel->state != DOMI_CHANNEL_OPEN)
        return;
    domi_channel_decide_whether_to_receive(channel);
    if (!busy)
        domi_channel_arm_receive(channel);
}

void domi_channel_queue_for_receive_buffer(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (channel->starved || channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    channel->starved = true;
    domi_channel_void_rate_measurement(channel);
    domi_starved_put(&io->starved, channel);
    domi_counter_add(&io->counters.receivers_starved, 1);
    domi_spell_record_no_free_buffer(io);
}

void domi_channel_leave_queue_for_buffer(domus_channel *channel)
{
    if (!channel->starved)
        return;
    domi_starved_remove(&channel->io->starved, channel);
    channel->starved = false;
}

domus_buffer *domi_channel_take_inbound_piece(domus_channel *channel)
{
    domus_buffer *buffer = domi_buffer_list_take(&channel->inbound);

    if (buffer != NULL && buffer->index == DOMI_BUFFER_HEAP) {
        domi_channel_uncount_copied_piece(channel, domi_buffer_cost_in_memory(buffer));
        if (domi_channel_is_inner(channel))
            domi_channel_get_special_functions(channel)->note_used(channel);
    }
    return buffer;
}

void domi_channel_drop_inbound_bytes(domus_channel *channel)
{
    /* a handler that ends its channel may still use a message whose bytes lie in the first piece */
    if (channel->pipe != NULL && channel->shown == NULL)
        channel->shown = domi_channel_take_inbound_piece(channel);
    for (domus_buffer *buffer = domi_channel_take_inbound_piece(channel); buffer != NULL;
         buffer = domi_channel_take_inbound_piece(channel))
        domus_buffer_free(buffer);
}

uint64_t domi_channel_count_inbound_bytes(const domus_channel *channel)
{
    uint64_t sum = 0;

    for (const domus_buffer *buffer = channel->inbound.head; buffer != NULL; buffer = buffer->next)
        sum += buffer->size;
    return sum;
}

/* Count a buffer off the share of receive buffers of the channel that held it. The channel receives
 * again if it holds few enough buffers now. */
static void release_held_receive_buffer(domi_io *io, uint32_t slot, uint32_t generation)
{
    if (slot >= io->slot_count)
        return;
    domus_channel *channel = io->slots[slot].channel;
    if (channel == NULL || channel->slot_generation != generation)
        return;
    DOMI_CHECK(channel->held > 0);
    channel->held--;
    if (channel->paused && channel->state == DOMI_CHANNEL_OPEN) {
        domi_channel_decide_whether_to_receive(channel);
        if (!channel->paused) {
            domi_channel_arm_receive(channel);
            DOMI_CHECK_SLOW(domi_channel_fits_its_state(channel));
        }
    }
}

void domus_buffer_free(domus_buffer *buffer)
{
    if (buffer == NULL)
        return;
    domi_io *io = buffer->io;
    uint32_t slot = buffer->holder_slot;
    uint32_t generation = buffer->holder_generation;
    domi_buffer_free_or_recycle(buffer);
    release_held_receive_buffer(io, slot, generation);
}
