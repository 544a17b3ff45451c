/* The functions by which a stage acts on an inner channel: it passes on bytes of the peer, and
 * takes the bytes that are queued for the peer. */
#include "io/inner/inner.h"

#include "base/check.h"
#include "io/channels/crowd.h"
#include "io/channels/due.h"
#include "io/channels/flush.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/pipelines/pipe.h"
#include "io/pipelines/returned.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* size in bytes of a buffer in which short pieces for an inner channel stand behind each other */
#define JOINT_BYTES 4032u

static domi_inner *get_inner_of_base(const domus_inner *base)
{
    return (domi_inner *)(void *)((char *)(uintptr_t)base - offsetof(domi_inner, base));
}

/* Returns the inner channel that a stage names; NULL if it is closing. */
static domus_channel *get_channel_of_inner(const domus_inner *base)
{
    domus_channel *channel = get_inner_of_base(base)->channel;

    return channel != NULL && channel->state < DOMI_CHANNEL_CLOSING ? channel : NULL;
}

/* Remove the inner channel from the list of inner channels with news for the stage. */
static void remove_inner_from_list_of_news(domi_inner *inner)
{
    domi_pipe *pipe = inner->special.outer->pipe;
    domi_inner **link = pipe != NULL ? &pipe->news : NULL;
    domi_inner *before = NULL;

    if (!inner->has_news || link == NULL)
        return;
    for (; *link != inner; link = &before->next_news)
        before = *link;
    *link = inner->next_news;
    if (pipe->news_last == inner)
        pipe->news_last = before;
    inner->has_news = false;
}

static void drop_inner_channel(domus_inner *base, int error)
{
    domi_inner *inner = get_inner_of_base(base);
    domus_channel *channel = inner->channel;

    remove_inner_from_list_of_news(inner);
    inner->special.outer = NULL;
    if (channel == NULL)
        domi_inner_free_if_unused(inner);
    else
        domi_channel_end_at_once(channel, error, error != 0);
}

/* End an inner channel whose ask the peer has refused: the ask goes back to the pool as one that
 * was not carried out. */
static void end_inner_with_refused_ask(domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    if (channel != NULL && channel->pipe != NULL)
        channel->pipe->fate = DOMI_ASK_REFUSED;
    drop_inner_channel(base, -ECONNREFUSED);
}

/* End an inner channel whose ask must not be sent again: the ask fails. */
static void end_inner_with_failed_ask(domus_inner *base, int error)
{
    const domus_channel *channel = get_channel_of_inner(base);

    if (channel != NULL && channel->pipe != NULL)
        channel->pipe->fate = DOMI_ASK_UNFIT;
    drop_inner_channel(base, error);
}

static bool has_inner_channel_ask(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL && channel->lent;
}

static bool is_inner_channel_broken(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL && channel->broken;
}

static domus_address get_address_of_inner_channel(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL ? domi_house_get_address(channel->house) : (domus_address){NULL, 0};
}

static domus_inner_state get_state_of_inner_channel(const domus_inner *base, int *ret_error)
{
    const domi_inner *inner = get_inner_of_base(base);

    if (get_channel_of_inner(base) != NULL)
        return inner->finished ? DOMUS_INNER_FINISHED : DOMUS_INNER_OPEN;
    *ret_error = inner->channel != NULL ? inner->channel->error : inner->error;
    return DOMUS_INNER_CLOSED;
}

/* Copy bytes of the peer behind the last piece of an inner channel, or into a new piece. Returns 0;
 * -ENOMEM. */
static int copy_piece_to_inner_channel(domi_inner *inner, domus_channel *channel, const void *bytes,
                                       uint32_t size)
{
    domus_buffer *last = channel->inbound.tail;

    if (last != NULL && last == inner->tail && size <= inner->tail_room) {
        memcpy(last->data + last->size, bytes, size);
        last->size += size;
        inner->tail_room -= size;
        return 0;
    }
    /* the first piece of an inner channel is mostly a whole request; later small pieces are parts
     * of a body */
    uint32_t room = channel->inbound.head != NULL && size < JOINT_BYTES ? JOINT_BYTES : size;
    domus_buffer *buffer = domi_buffer_new_from_heap(channel->io, room);
    if (buffer == NULL)
        return -ENOMEM;
    memcpy(buffer->data, bytes, size);
    buffer->size = size;
    buffer->holder_slot = channel->slot;
    buffer->holder_generation = channel->slot_generation;
    channel->held++;
    domi_buffer_list_put(&channel->inbound, buffer);
    domi_channel_count_copied_piece(channel, domi_buffer_cost_in_memory(buffer));
    inner->tail = buffer;
    inner->tail_room = room - size;
    return 0;
}

/* Copy bytes of the peer to an inner channel, also more than one buffer can hold. Returns 0;
 * -ENOMEM. */
static int copy_all_bytes_to_inner_channel(domi_inner *inner, domus_channel *channel,
                                           const char *bytes, size_t size)
{
    int error = 0;

    while (size != 0 && error == 0) {
        uint32_t part = size < DOMI_BUFFER_MAX ? (uint32_t)size : DOMI_BUFFER_MAX;
        error = copy_piece_to_inner_channel(inner, channel, bytes, part);
        bytes += part;
        size -= part;
    }
    return error;
}

static int pass_bytes_to_inner_channel(domus_inner *base, const void *bytes, size_t size)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (channel == NULL || channel->state != DOMI_CHANNEL_OPEN || channel->ended)
        return -EPIPE;
    int error = copy_all_bytes_to_inner_channel(get_inner_of_base(base), channel, bytes, size);
    if (error != 0)
        return error;
    channel->rests = false;
    channel->received_bytes += size;
    channel->active_ns = channel->io->manager->now_ns;
    channel->silent_ns = 0;
    domi_io_become_careful_if_much_queued(channel->io);
    if (!channel->blocked)
        domi_channel_make_actor_ready(channel);
    domi_channel_decide_whether_to_receive(channel);
    domi_channel_take_due_steps(channel);
    return 0;
}

static void end_input_of_inner_channel(domus_inner *base)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (channel == NULL || channel->ended)
        return;
    channel->ended = true;
    if (channel->state == DOMI_CHANNEL_OPEN)
        domi_channel_make_actor_ready(channel);
    domi_channel_take_due_steps(channel);
}

static void mark_inner_channel_as_resting(domus_inner *base)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (channel == NULL || channel->state != DOMI_CHANNEL_OPEN)
        return;
    channel->rests = true;
    channel->active_ns = channel->io->manager->now_ns;
    domi_channel_set_timer_no_later(channel, channel->active_ns + DOMUS_INNER_REST_NS);
}

static uint64_t count_unused_bytes_of_inner(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL ? domi_channel_count_inbound_bytes(channel) : 0;
}

static const char *get_next_bytes_to_send(const domus_inner *base, size_t *ret_size)
{
    const domus_channel *channel = get_channel_of_inner(base);
    const domus_buffer *head = channel != NULL ? channel->outbound.head : NULL;

    *ret_size = head != NULL ? head->size - channel->head_offset : 0;
    return head != NULL ? head->data + channel->head_offset : NULL;
}

/* Record that bytes of an inner channel have left, which a channel with a socket learns by the
 * completion of a send. */
static void note_bytes_taken_from_inner(domus_inner *base, size_t size)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (size == 0)
        return;
    DOMI_CHECK(channel != NULL && size <= channel->queued_bytes);
    channel->active_ns = channel->io->manager->now_ns;
    channel->send_ns = channel->active_ns;
    channel->sent_bytes += size;
    domi_channel_free_sent_buffers(channel, (uint32_t)size);
    channel->tail_room = 0;
    channel->sending = channel->outbound.head != NULL;
    domi_channel_decide_whether_to_receive(channel);
    if (channel->answer_bytes != 0)
        domi_channel_wake_writer_of_answer(channel);
    if (channel->flushes != NULL)
        domi_flush_complete_waits(channel);
    domi_channel_take_due_steps(channel);
}

const domi_inner_ways domi_ways_of_inner = {
    .drop = drop_inner_channel,
    .look = get_state_of_inner_channel,
    .pass = pass_bytes_to_inner_channel,
    .end = end_input_of_inner_channel,
    .rest = mark_inner_channel_as_resting,
    .unused = count_unused_bytes_of_inner,
    .bytes = get_next_bytes_to_send,
    .took = note_bytes_taken_from_inner,
    .refuse = end_inner_with_refused_ask,
    .fail = end_inner_with_failed_ask,
    .has_ask = has_inner_channel_ask,
    .is_broken = is_inner_channel_broken,
    .address = get_address_of_inner_channel,
};
