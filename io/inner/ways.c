/* The functions of an inner channel (domi_channel_ways): where other channels use a completion or a
 * socket, it uses the stage of its outer channel. */
#include "io/inner/inner.h"

#include "base/memory.h"
#include "io/channels/due.h"
#include "io/channels/send.h"
#include "io/pipelines/pipe.h"

static domi_inner *get_inner_of_channel(const domus_channel *channel)
{
    return (domi_inner *)(void *)channel->special;
}

void domi_inner_tell_stage_news(domi_inner *inner)
{
    domus_channel *outer = inner->special.outer;

    if (outer == NULL || inner->has_news || outer->pipe == NULL)
        return;
    domi_pipe *pipe = outer->pipe;
    inner->has_news = true;
    inner->next_news = NULL;
    if (pipe->news != NULL)
        pipe->news_last->next_news = inner;
    else
        pipe->news = inner;
    pipe->news_last = inner;
    domi_channel_schedule_carrying_stage(outer);
}

void domi_inner_free_if_unused(domi_inner *inner)
{
    if (inner->special.outer == NULL && inner->channel == NULL)
        domi_memory_free(inner);
}

/* Begin no receive operation, because the stage of the outer channel passes bytes on at any
 * time. */
static void begin_receive_of_inner_channel(const domus_channel *channel)
{
    (void)channel;
}

/* Let the queued bytes of an inner channel wait for the stage of the outer one. From now on nothing
 * is copied behind the last piece, because a part of it may leave at any time. */
static void let_queued_bytes_wait_for_stage(domus_channel *channel)
{
    uint64_t timeout_ns = channel->settings->send_timeout_ns;

    channel->tail_room = 0;
    channel->sending = true;
    channel->send_ns = channel->io->manager->now_ns;
    domi_channel_set_timer_no_later(channel, timeout_ns != 0 ? channel->send_ns + timeout_ns : 0);
    domi_inner_tell_stage_news(get_inner_of_channel(channel));
}

static void forget_no_outbound_of_inner_channel(domus_channel *channel)
{
    (void)channel;
}

static void tell_stage_of_end_of_inner_channel(domus_channel *channel)
{
    domi_inner *inner = get_inner_of_channel(channel);

    inner->error = channel->error;
    inner->channel = NULL;
    inner->tail = NULL;
    channel->special = NULL;
    domi_inner_tell_stage_news(inner);
    domi_inner_free_if_unused(inner);
}

static void finish_sending_of_inner_channel(domus_channel *channel)
{
    get_inner_of_channel(channel)->finished = true;
    domi_inner_tell_stage_news(get_inner_of_channel(channel));
}

static void tell_stage_of_used_piece_of_inner(domus_channel *channel)
{
    domi_inner *inner = get_inner_of_channel(channel);

    if (channel->inbound.head == NULL)
        inner->tail = NULL;
    domi_inner_tell_stage_news(inner);
}

const domi_channel_ways domi_ways_of_inner_channels = {
    .is_inner = true,
    .receive = begin_receive_of_inner_channel,
    .write = domi_channel_write,
    .send = let_queued_bytes_wait_for_stage,
    .forget_outbound = forget_no_outbound_of_inner_channel,
    .note_end = tell_stage_of_end_of_inner_channel,
    .finish = finish_sending_of_inner_channel,
    .note_used = tell_stage_of_used_piece_of_inner,
};

const char *domus_channel_carrier(const domus_channel *channel)
{
    return domi_channel_is_inner(channel) ? get_inner_of_channel(channel)->carrier : NULL;
}
