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

/* size in bytes of a buffer in which short pieces stand behind each other */
#define JOINT_BYTES 4032u

static domi_inner *get_inner_of_base(const domus_inner *base)
{
    return (domi_inner *)(void *)((char *)(uintptr_t)base - offsetof(domi_inner, base));
}

/* Returns the channel; NULL if it is closing. */
static domus_channel *get_channel_of_inner(const domus_inner *base)
{
    domus_channel *channel = get_inner_of_base(base)->channel;

    return channel != NULL && channel->state < DOMI_CHANNEL_CLOSING ? channel : NULL;
}

/* Remove the inner channel from the list of those with news. */
static void remove_from_news(domi_inner *inner)
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

static void drop_inner(domus_inner *base, int error)
{
    domi_inner *inner = get_inner_of_base(base);
    domus_channel *channel = inner->channel;

    remove_from_news(inner);
    inner->special.outer = NULL;
    if (channel == NULL)
        domi_inner_free_if_left(inner);
    else
        domi_channel_end(channel, error, error != 0);
}

/* End an inner channel whose ask the peer has refused: the ask goes back to the pool as not
 * done. */
static void refuse_inner(domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    if (channel != NULL && channel->pipe != NULL)
        channel->pipe->fate = DOMI_ASK_REFUSED;
    drop_inner(base, -ECONNREFUSED);
}

/* End an inner channel whose ask must not be sent again: the ask fails. */
static void fail_inner(domus_inner *base, int error)
{
    const domus_channel *channel = get_channel_of_inner(base);

    if (channel != NULL && channel->pipe != NULL)
        channel->pipe->fate = DOMI_ASK_UNFIT;
    drop_inner(base, error);
}

static bool has_ask(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL && channel->lent;
}

static bool is_inner_broken(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL && channel->broken;
}

static domus_address get_inner_address(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL ? domi_house_address(channel->house) : (domus_address){NULL, 0};
}

static domus_inner_state get_inner_state(const domus_inner *base, int *ret_error)
{
    const domi_inner *inner = get_inner_of_base(base);

    if (get_channel_of_inner(base) != NULL)
        return inner->finished ? DOMUS_INNER_FINISHED : DOMUS_INNER_OPEN;
    *ret_error = inner->channel != NULL ? inner->channel->error : inner->error;
    return DOMUS_INNER_CLOSED;
}

/* Copy bytes behind the last piece, or into a new piece. Returns 0; -ENOMEM. */
static int copy_bytes_in(domi_inner *inner, domus_channel *channel, const void *bytes,
                         uint32_t size)
{
    domus_buffer *last = channel->inbound.tail;

    if (last != NULL && last == inner->tail && size <= inner->tail_room) {
        memcpy(last->data + last->size, bytes, size);
        last->size += size;
        inner->tail_room -= size;
        return 0;
    }
    /* the first piece is mostly a whole request; later small pieces are parts of a body */
    uint32_t room = channel->inbound.head != NULL && size < JOINT_BYTES ? JOINT_BYTES : size;
    domus_buffer *buffer = domi_buffer_heap(channel->io, room);
    if (buffer == NULL)
        return -ENOMEM;
    memcpy(buffer->data, bytes, size);
    buffer->size = size;
    buffer->holder_slot = channel->slot;
    buffer->holder_generation = channel->slot_generation;
    channel->held++;
    domi_buffer_list_put(&channel->inbound, buffer);
    domi_channel_charge_copy(channel, domi_buffer_cost(buffer));
    inner->tail = buffer;
    inner->tail_room = room - size;
    return 0;
}

/* Copy bytes in, also more than one buffer can hold. Returns 0; -ENOMEM. */
static int copy_all_bytes_in(domi_inner *inner, domus_channel *channel, const char *bytes,
                             size_t size)
{
    int error = 0;

    while (size != 0 && error == 0) {
        uint32_t part = size < DOMI_BUFFER_MAX ? (uint32_t)size : DOMI_BUFFER_MAX;
        error = copy_bytes_in(inner, channel, bytes, part);
        bytes += part;
        size -= part;
    }
    return error;
}

static int pass_bytes_in(domus_inner *base, const void *bytes, size_t size)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (channel == NULL || channel->state != DOMI_CHANNEL_OPEN || channel->ended)
        return -EPIPE;
    int error = copy_all_bytes_in(get_inner_of_base(base), channel, bytes, size);
    if (error != 0)
        return error;
    channel->rests = false;
    channel->received_bytes += size;
    channel->active_ns = channel->io->manager->now_ns;
    channel->silent_ns = 0;
    domi_io_note_queued(channel->io);
    if (!channel->blocked)
        domi_channel_make_ready(channel);
    domi_channel_decide_receive(channel);
    domi_channel_settle(channel);
    return 0;
}

static void end_input(domus_inner *base)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (channel == NULL || channel->ended)
        return;
    channel->ended = true;
    if (channel->state == DOMI_CHANNEL_OPEN)
        domi_channel_make_ready(channel);
    domi_channel_settle(channel);
}

static void let_inner_rest(domus_inner *base)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (channel == NULL || channel->state != DOMI_CHANNEL_OPEN)
        return;
    channel->rests = true;
    channel->active_ns = channel->io->manager->now_ns;
    domi_channel_advance_timer(channel, channel->active_ns + DOMUS_INNER_REST_NS);
}

static uint64_t count_unused(const domus_inner *base)
{
    const domus_channel *channel = get_channel_of_inner(base);

    return channel != NULL ? domi_channel_inbound_bytes(channel) : 0;
}

static const char *get_next_bytes(const domus_inner *base, size_t *ret_size)
{
    const domus_channel *channel = get_channel_of_inner(base);
    const domus_buffer *head = channel != NULL ? channel->outbound.head : NULL;

    *ret_size = head != NULL ? head->size - channel->head_offset : 0;
    return head != NULL ? head->data + channel->head_offset : NULL;
}

/* Record that bytes of an inner channel have left, as another channel learns it by the completion
 * of a send. */
static void note_bytes_taken(domus_inner *base, size_t size)
{
    domus_channel *channel = get_channel_of_inner(base);

    if (size == 0)
        return;
    DOMI_CHECK(channel != NULL && size <= channel->queued_bytes);
    channel->active_ns = channel->io->manager->now_ns;
    channel->send_ns = channel->active_ns;
    channel->sent_bytes += size;
    domi_channel_drop_sent(channel, (uint32_t)size);
    channel->tail_room = 0;
    channel->sending = channel->outbound.head != NULL;
    domi_channel_decide_receive(channel);
    if (channel->answer_bytes != 0)
        domi_channel_continue_answer(channel);
    if (channel->flushes != NULL)
        domi_flush_end_sent(channel);
    domi_channel_settle(channel);
}

const domi_inner_ways domi_ways_of_inner = {
    .drop = drop_inner,
    .look = get_inner_state,
    .pass = pass_bytes_in,
    .end = end_input,
    .rest = let_inner_rest,
    .unused = count_unused,
    .bytes = get_next_bytes,
    .took = note_bytes_taken,
    .refuse = refuse_inner,
    .fail = fail_inner,
    .has_ask = has_ask,
    .is_broken = is_inner_broken,
    .address = get_inner_address,
};
