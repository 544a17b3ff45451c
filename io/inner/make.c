/* Makes inner channels for the stage of an outer channel, and tells the stage properties of the
 * outer one. */
#include "io/inner/inner.h"

#include "base/memory.h"
#include "io/channels/table.h"
#include "io/pipelines/returned.h"

#include <errno.h>

/* Returns the channel to which a wire belongs. If the stage that calls carries inner channels, this
 * channel is their outer one. */
static domus_channel *get_channel_of_wire(const domus_wire *wire)
{
    const domi_pipe *pipe = wire->owner;

    return pipe->channel;
}

/* Returns the behaviour for inner channels of this outer channel; NULL: the one that the behaviour
 * of the owner names, with which they may share a state. */
static const domus_behaviour *choose_behaviour_of_inner(const domus_channel *outer)
{
    const domus_behaviour *of_owner = domi_house_get_behaviour(outer->house->parent);
    const domus_behaviour *own = domi_house_get_behaviour(outer->house);

    return own == (of_owner->channel != NULL ? of_owner->channel : of_owner) ? NULL : own;
}

/* Make the channel of the record `inner`. It is a child of the outer channel's owner. */
static int make_channel_for_inner_record(domi_inner *inner, domus_channel *outer, uint32_t skipped)
{
    domi_io *io = outer->io;
    domi_connection connection = {
        .fd = -1, .settings = outer->settings, .is_outbound = outer->is_outbound};
    domus_channel *channel;

    /* The inner channel also counts on the address of the peer: otherwise one connection could use
     * up the places of all others. */
    if (outer->peer != NULL &&
        domi_peers_count_connection(io->peers, &outer->peer->key, &connection.peer) != 0)
        return -ENOBUFS;
    /* Relaxed: the numbers of connections only serve to choose a thread, and to check a bound. */
    atomic_fetch_add_explicit(&io->connections, 1, memory_order_relaxed);
    int error = domi_channel_adopt_with_behaviour(
        io, outer->house->parent, choose_behaviour_of_inner(outer), &connection, &channel);
    if (error != 0) {
        atomic_fetch_sub_explicit(&io->connections, 1, memory_order_relaxed);
        domi_peers_uncount_connection(io->peers, connection.peer);
        return error;
    }
    if (channel->is_outbound)
        atomic_fetch_add_explicit(&io->outbound, 1, memory_order_relaxed);
    channel->special = &inner->special;
    channel->skipped = (uint8_t)skipped;
    inner->channel = channel;
    return 0;
}

/* True if no further connection of the outer channel's kind is allowed: one that the actors of the
 * thread have opened, or one that the system has accepted. */
static bool has_thread_all_connections(const domus_channel *outer)
{
    return outer->is_outbound ? domi_io_has_opened_maximum(outer->io)
                              : domi_io_has_accepted_maximum(outer->io);
}

static int open_inner_channel(domus_wire *wire, uint32_t skipped, void *data,
                              domus_inner **ret_inner)
{
    domus_channel *outer = get_channel_of_wire(wire);

    if (outer->state != DOMI_CHANNEL_OPEN)
        return -EPIPE;
    /* a state actor cannot be the owner, because it may run on another thread */
    if (outer->is_outbound &&
        domi_house_get_behaviour(outer->house->parent)->kind != DOMUS_CHANNELS)
        return -EOPNOTSUPP;
    if (outer->io->pressure.pauses || has_thread_all_connections(outer))
        return -ENOBUFS;
    domi_inner *inner = domi_memory_new(sizeof *inner);
    if (inner == NULL)
        return -ENOMEM;
    *inner = (domi_inner){.special = {&domi_ways_of_inner_channels, outer},
                          .base = {&domi_ways_of_inner, data},
                          .carrier = wire->stages[wire->current].stage->name};
    int error = make_channel_for_inner_record(inner, outer, skipped);
    if (error != 0) {
        domi_memory_free(inner);
        return error;
    }
    *ret_inner = &inner->base;
    return 0;
}

static domus_inner *take_next_inner_with_news(domus_wire *wire)
{
    domi_pipe *pipe = wire->owner;
    domi_inner *inner = pipe->news;

    if (inner == NULL)
        return NULL;
    pipe->news = inner->next_news;
    inner->has_news = false;
    return &inner->base;
}

static void set_count_carried_by_outer_channel(domus_wire *wire, uint32_t count)
{
    domus_channel *outer = get_channel_of_wire(wire);

    /* An ask may wait for the place of the inner channel that has ended. */
    if (count < outer->carried && outer->lends)
        domi_channel_schedule_carrying_stage(outer);
    outer->carried = count;
}

static bool is_outer_channel_full(const domus_wire *wire)
{
    const domus_channel *outer = get_channel_of_wire(wire);

    return outer->state != DOMI_CHANNEL_OPEN || outer->finished || outer->high || outer->crowded ||
           outer->queued_bytes + domi_out_count_bytes(wire->out) > outer->settings->send_high_bytes;
}

static bool is_outer_channel_draining(const domus_wire *wire)
{
    return get_channel_of_wire(wire)->drain;
}

static void set_most_lent_inner_channels(domus_wire *wire, uint32_t most)
{
    domi_pipe *pipe = wire->owner;

    pipe->channel->lends = true;
    pipe->channel->lent_most = most;
    if (most == 0) {
        domi_pipe_return_waiting_asks(pipe->channel->io->manager, pipe);
        /* the stage is called again, so that it ends the outer channel if nothing is under way */
        domi_channel_schedule_carrying_stage(pipe->channel);
    }
}

static bool is_channel_inner(const domus_wire *wire)
{
    return domi_channel_is_inner(get_channel_of_wire(wire));
}

static void update_marks_after_carrying_stage_left(domus_wire *wire)
{
    domus_channel *channel = get_channel_of_wire(wire);

    channel->wraps = wire->count > 1;
    channel->says_end = domi_wire_has_end_of_output(wire);
    channel->carries = domi_wire_carries_inner_channels(wire);
}

bool domus_channel_is_inner(const domus_channel *channel)
{
    return domi_channel_is_inner(channel);
}

const domi_inners domi_ways_of_inners = {
    .open = open_inner_channel,
    .next = take_next_inner_with_news,
    .set_carried = set_count_carried_by_outer_channel,
    .is_full = is_outer_channel_full,
    .is_draining = is_outer_channel_draining,
    .is_inner = is_channel_inner,
    .note_left = update_marks_after_carrying_stage_left,
    .lend = set_most_lent_inner_channels,
};
