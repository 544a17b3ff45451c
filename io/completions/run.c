/* This file handles, in a run of a channels actor, the channels that have something for it.
 *
 * A run calls on_open, on_read, on_end and on_close for the channels on the ready list, in that
 * order for each channel, within the places that the run has left. An error of a handler resets its
 * channel and is counted; it has no other effect. */
#include "io/completions/run.h"

#include "io/acceptors/hand_over.h"
#include "io/acceptors/stop.h"
#include "io/channels/close.h"
#include "io/channels/receive.h"
#include "io/channels/set.h"
#include "io/channels/state.h"
#include "io/channels/table.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/turn.h"

#include <errno.h>

/* These types belong to no message. They name the callback that a thread is in, for stall reports,
 * and the callback that began a conversation. */
static const domus_type open_type = {.name = "on_open"};
static const domus_type read_type = {.name = "on_read"};
static const domus_type end_type = {.name = "on_end"};
static const domus_type close_type = {.name = "on_close"};

/* Count `pooled`, a conversation that the bytes of this channel began, until it has ended. */
static void count_conversation(domus_channel *channel, domus_stack *pooled)
{
    channel->conversations++;
    pooled->away |= DOMI_STACK_COUNTED;
    pooled->counted_at = domi_channel_key(channel);
}

/* End the turn of the callback that `type` names. If it returned a negative errno, the channel is
 * refused. The actor has not failed then: otherwise any peer that can send bytes could have it
 * restarted and could fill the log. */
static void end_callback(domus_stack *stack, domus_channel *channel, const domus_type *type,
                         int result)
{
    if (stack->pooled != NULL) { /* a conversation that has not parked ends with this call */
        stack->pooled->begun_by = type;
        stack->pooled->counted_at = domi_channel_key(channel);
        if (type == &read_type)
            count_conversation(channel, stack->pooled);
    }
    if (domi_turn_end_untold(stack, result) < 0) {
        domi_counter_add(&channel->io->counters.channels_refused, 1);
        domi_channel_end(channel, result, true);
    }
}

void domi_channel_conversation_ended(domi_manager *manager, uint64_t key)
{
    domus_channel *channel = domi_channel_of_key(manager->io, key);

    if (channel == NULL)
        return;
    DOMI_CHECK(channel->conversations != 0);
    if (--channel->conversations == 0 && channel->close_due)
        (void)domus_channel_close(channel);
}

bool domi_channel_conversation_failed(domi_manager *manager, const domus_stack *stack, int error)
{
    if (stack->begun_by != &open_type && stack->begun_by != &read_type &&
        stack->begun_by != &end_type)
        return false;
    domi_io *io = manager->io;
    domus_channel *channel = domi_channel_of_key(io, stack->counted_at);
    domi_counter_add(&io->counters.channels_refused, 1);
    if (channel != NULL)
        domi_channel_end(channel, error, true);
    return true;
}

DOMI_NO_CANARY static void open_channel(domi_manager *manager, domi_house *house,
                                        domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;

    channel->opened = true;
    if (behaviour->on_open != NULL) {
        domus_stack stack;
        domi_stack_begin(&stack, manager, house);
        domi_turn_begin(&stack, &open_type);
        end_callback(&stack, channel, &open_type, behaviour->on_open(&stack, house->self, channel));
    }
    domi_channel_settle(channel);
}

DOMI_NO_CANARY static void read_one(domi_manager *manager, domi_house *house,
                                    domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;
    domus_buffer *buffer = domi_channel_take_inbound(channel);

    domi_counter_add(&channel->io->counters.reads, 1);
    if (behaviour->on_read == NULL) {
        domus_buffer_free(buffer);
        return;
    }
    domus_stack stack;
    domi_stack_begin(&stack, manager, house);
    domi_turn_begin(&stack, &read_type);
    end_callback(&stack, channel, &read_type,
                 behaviour->on_read(&stack, house->self, channel, buffer));
}

DOMI_NO_CANARY static void end_channel(domi_manager *manager, domi_house *house,
                                       domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;

    channel->end_told = true;
    if (behaviour->on_end == NULL) {
        domi_channel_close_when_answered(channel);
        return;
    }
    domus_stack stack;
    domi_stack_begin(&stack, manager, house);
    domi_turn_begin(&stack, &end_type);
    end_callback(&stack, channel, &end_type, behaviour->on_end(&stack, house->self, channel));
}

DOMI_NO_CANARY static void close_channel(domi_manager *manager, domi_house *house,
                                         domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;

    if (behaviour->on_close != NULL && channel->opened) {
        domus_stack stack;
        domi_stack_begin(&stack, manager, house);
        domi_turn_begin(&stack, &close_type);
        behaviour->on_close(&stack, house->self, channel, channel->error);
        domi_turn_end(&stack, 0);
    }
    domi_channel_free(channel);
}

/* True if the actor may get the next piece. While much is queued this is decided anew for each
 * piece: other channels have written since it came, and an answer to it may find no room any more.
 * */
static bool may_be_shown(domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN || channel->inbound.head == NULL || channel->blocked)
        return false;
    if (DOMI_UNLIKELY(channel->io->careful))
        domi_channel_decide_receive(channel);
    return !channel->blocked;
}

/* Handle one channel, within `budget` places of the run. Returns how many places it used. */
static uint32_t run_channel(domi_manager *manager, domi_house *house, domus_channel *channel,
                            uint32_t budget)
{
    uint32_t used = 0;

    if (!channel->opened && channel->state == DOMI_CHANNEL_OPEN) {
        open_channel(manager, house, channel);
        used++;
    }
    while ((house->marks & DOMI_MARK_SATURATED) == 0 && used < budget && may_be_shown(channel)) {
        read_one(manager, house, channel);
        used++;
    }
    if (channel->state == DOMI_CHANNEL_OPEN && channel->ended && !channel->end_told &&
        channel->inbound.head == NULL && used < budget) {
        end_channel(manager, house, channel);
        used++;
    }
    if (channel->io->careful)
        domi_channel_settle(channel); /* a careful thread asks for the next piece only now */
    domi_channel_drain_step(channel);
    /* A channel that was closed within a handler is on the ready list again, and its on_close comes
     * from there. */
    if (channel->state == DOMI_CHANNEL_CLOSED && !channel->ready && used < budget) {
        close_channel(manager, house, channel);
        return used + 1;
    }
    bool more = channel->state == DOMI_CHANNEL_CLOSED ||
                (channel->state == DOMI_CHANNEL_OPEN && !channel->blocked &&
                 (channel->inbound.head != NULL || (channel->ended && !channel->end_told)));
    if (more)
        domi_channel_make_ready(channel);
    return used;
}

uint32_t domi_channels_run(domi_manager *manager, domi_house *house, uint32_t budget)
{
    domi_channels *set = house->channels.set;
    uint32_t used = 0;

    while (set->ready.head != NULL && used < budget && (house->marks & DOMI_MARK_SATURATED) == 0) {
        domus_channel *channel = domi_ready_channels_take(&set->ready);

        channel->ready = false;
        used += run_channel(manager, house, channel, budget - used);
    }
    if (set->ready.head == NULL)
        house->marks &= (uint16_t)~DOMI_MARK_CHANNELS;
    return used;
}

/* Free closed channels of an actor that stops without being mounted, because a restart of it has
 * failed. Its on_close is not called. Channels that are not closed yet are freed when they are. */
static void free_closed_unseen(domi_channels *set)
{
    for (domus_channel *channel = domi_ready_channels_take(&set->ready); channel != NULL;
         channel = domi_ready_channels_take(&set->ready)) {
        channel->ready = false;
        if (channel->state == DOMI_CHANNEL_CLOSED)
            domi_channel_free(channel);
    }
}

uint32_t domi_channels_stop(domi_manager *manager, domi_house *house)
{
    domi_channels *set = house->channels.set;
    uint32_t left;

    if (set == NULL)
        return 0;
    if (set->acceptor != NULL) {
        left = domi_acceptor_stop(set->acceptor);
    } else {
        for (domus_channel *channel = set->all; channel != NULL; channel = channel->next)
            (void)domus_channel_close(channel);
        if (domi_house_is_stopping_unmounted(house))
            free_closed_unseen(set);
        left = set->count;
    }
    if (left != 0 && set->acceptor != NULL && manager->ending.has_stopped)
        left = 0; /* the thread has ended: closing the ring cancels the operations in flight */
    if (left == 0) {
        domi_memory_free(set);
        house->channels.set = NULL;
    }
    return left;
}

bool domi_channels_handle_event(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    if (message->type != &domi_accepted_type)
        return false;
    /* If the actor is not mounted, the event becomes a dead letter: it is counted, subscribers hear
     * of it, and its connection is reset. */
    if ((house->marks & DOMI_MARK_UNMOUNTED) != 0)
        return false;
    const domi_accepted *accepted = domi_envelope_payload(message);
    if (house->behaviour->kind != DOMUS_CHANNELS || manager->io != accepted->io ||
        domi_channel_adopt(accepted->io, house, accepted->fd, accepted->peer) != 0)
        domi_accepted_type.release(domi_envelope_payload(message));
    return true;
}

void domus_channel_set_data(domus_channel *channel, void *data)
{
    channel->data = data;
}

void *domus_channel_data(const domus_channel *channel)
{
    return channel->data;
}

uint64_t domus_channel_queued(const domus_channel *channel)
{
    return channel->queued_bytes + channel->unsent_bytes;
}
