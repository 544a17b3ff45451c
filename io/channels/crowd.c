/* Keeps the list of crowded channels (crowd.h), and sets the bound on the bytes that a thread may
 * queue. A channel leaves the list when it has a quarter less than its part. */
#include "io/channels/crowd.h"

static void join_crowded_channels(domus_channel *channel)
{
    domi_io *io = channel->io;

    channel->next_crowded = NULL;
    channel->previous_crowded = io->crowd_tail;
    if (io->crowd_tail != NULL)
        io->crowd_tail->next_crowded = channel;
    else
        io->crowd_head = channel;
    io->crowd_tail = channel;
}

static void unlink_crowded_channel(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (channel->next_crowded != NULL)
        channel->next_crowded->previous_crowded = channel->previous_crowded;
    else
        io->crowd_tail = channel->previous_crowded;
    if (channel->previous_crowded != NULL)
        channel->previous_crowded->next_crowded = channel->next_crowded;
    else
        io->crowd_head = channel->next_crowded;
}

void domi_channel_leave_crowded_list(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (!channel->crowded)
        return;
    unlink_crowded_channel(channel);
    channel->crowded = false;
    io->crowd_count--;
    if (io->crowd_left > io->crowd_count)
        io->crowd_left = io->crowd_count;
}

/* True if a crowded channel may read again. It has to be a quarter below its part of the bound of
 * the thread, so that it does not stop and start with every piece. A channel that has nothing
 * queued needs no such margin. */
static bool may_crowded_channel_read_again(const domus_channel *channel)
{
    const domi_io *io = channel->io;
    uint64_t part = domi_io_part_of_one_channel(io);

    if (channel->cost == 0)
        return !domi_channel_is_above_its_part(channel, 0);
    return channel->cost + io->piece <= part - part / 4;
}

void domi_channel_update_crowded_flag(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (channel->crowded) {
        if (may_crowded_channel_read_again(channel))
            domi_channel_leave_crowded_list(channel);
    } else if (DOMI_UNLIKELY(domi_channel_is_above_its_part(channel, channel->cost)) &&
               channel->state == DOMI_CHANNEL_OPEN) {
        join_crowded_channels(channel);
        channel->crowded = true;
        io->crowd_count++;
    }
}

domus_channel *domi_io_take_next_crowded_channel(domi_io *io)
{
    domus_channel *channel = io->crowd_head;

    unlink_crowded_channel(channel);
    join_crowded_channels(channel);
    io->crowd_left--;
    return channel;
}

void domi_io_set_bound_of_queued_bytes(domi_io *io, uint64_t queue_max)
{
    uint64_t size = io->config->io.buffers.size_bytes;

    if (queue_max > io->pressure.queue_max)
        io->crowd_left = io->crowd_count;
    io->pressure.queue_max = queue_max;
    domi_pages_set_most_bytes(&io->pages, queue_max / 2);
    io->careful_mark = queue_max / 4;
    /* With a small bound a piece counts as less than a whole buffer, because it must not be larger
     * than the part that a channel may have. */
    io->piece = size < domi_bound_part_of_one_channel(queue_max, 0) / 4
                    ? size
                    : domi_bound_part_of_one_channel(queue_max, 0) / 4;
    domi_io_become_careful_if_much_queued(io);
}

void domi_io_begin_to_receive_carefully(domi_io *io)
{
    if (io->draining)
        return;
    io->careful = true;
    io->sweep.begun_ns = io->manager->now_ns;
    io->sweep.next = 0;
    /* if the thread was careful before, the timer may still be armed for the last pass of that
     * sweep */
    domi_wheel_disarm_node(&io->wheel, &io->sweep.timer.node);
    domi_wheel_arm_node(&io->wheel, &io->sweep.timer.node,
                        io->manager->now_ns + DOMI_WHEEL_TICK_NS);
}
