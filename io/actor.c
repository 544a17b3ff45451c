/* The actor's side of channels: what a run does for the channels that have something.
 *
 * A run calls on_open, on_read, on_end and on_close for the channels on the ready list, in that
 * order for each, within the places that the run has left. An error of a handler resets its
 * channel and is counted; it ends nothing else. */
#include "io/acceptor.h"
#include "io/channel.h"

#include "base/memory.h"
#include "house/stack.h"

#include <errno.h>

/* No messages: what a thread says that it handles. */
static const domus_type open_type = {.name = "on_open"};
static const domus_type read_type = {.name = "on_read"};
static const domus_type end_type = {.name = "on_end"};
static const domus_type close_type = {.name = "on_close"};

/* The handler returned: park or end its conversation; an error resets the channel. */
static void returned(domus_stack *stack, domus_channel *channel, int result)
{
    domi_stack_return(stack, result);
    if (result < 0)
        domi_channel_shut(channel, result, true);
}

static void open_channel(domi_manager *manager, domi_house *house, domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;

    channel->opened = true;
    if (behaviour->on_open != NULL) {
        domus_stack stack;
        domi_stack_begin(&stack, manager, house);
        domi_manager_handles(manager, &open_type);
        returned(&stack, channel, behaviour->on_open(&stack, house->self, channel));
    }
    domi_channel_settle(channel);
}

static void read_one(domi_manager *manager, domi_house *house, domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;
    domus_buffer *buffer = domi_buffer_list_take(&channel->inbound);

    domi_counter_add(&channel->io->counters.reads, 1);
    if (behaviour->on_read == NULL) {
        domus_buffer_free(buffer);
        return;
    }
    domus_stack stack;
    domi_stack_begin(&stack, manager, house);
    domi_manager_handles(manager, &read_type);
    returned(&stack, channel, behaviour->on_read(&stack, house->self, channel, buffer));
}

static void end_channel(domi_manager *manager, domi_house *house, domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;

    channel->end_told = true;
    if (behaviour->on_end == NULL) {
        (void)domus_channel_close(channel);
        return;
    }
    domus_stack stack;
    domi_stack_begin(&stack, manager, house);
    domi_manager_handles(manager, &end_type);
    returned(&stack, channel, behaviour->on_end(&stack, house->self, channel));
}

static void close_channel(domi_manager *manager, domi_house *house, domus_channel *channel)
{
    const domus_behaviour *behaviour = house->behaviour;

    if (behaviour->on_close != NULL && channel->opened) {
        domus_stack stack;
        domi_stack_begin(&stack, manager, house);
        domi_manager_handles(manager, &close_type);
        behaviour->on_close(&stack, house->self, channel, channel->error);
        domi_stack_return(&stack, 0);
    }
    domi_channel_free(channel);
}

/* Returns how many places it used. */
static uint32_t run_channel(domi_manager *manager, domi_house *house, domus_channel *channel,
                            uint32_t budget)
{
    uint32_t used = 0;

    if (!channel->opened && channel->state == DOMI_CHANNEL_OPEN) {
        open_channel(manager, house, channel);
        used++;
    }
    while (channel->state == DOMI_CHANNEL_OPEN && channel->inbound.head != NULL &&
           !channel->blocked && (house->marks & DOMI_MARK_SATURATED) == 0 && used < budget) {
        read_one(manager, house, channel);
        used++;
    }
    if (channel->state == DOMI_CHANNEL_OPEN && channel->ended && !channel->end_told &&
        channel->inbound.head == NULL && used < budget) {
        end_channel(manager, house, channel);
        used++;
    }
    domi_channel_drain_step(channel);
    /* Closed from within a handler it is on the list again, and its turn comes by that. */
    if (channel->state == DOMI_CHANNEL_CLOSED && !channel->noticed && used < budget) {
        close_channel(manager, house, channel);
        return used + 1;
    }
    bool more = channel->state == DOMI_CHANNEL_CLOSED ||
                (channel->state == DOMI_CHANNEL_OPEN && !channel->blocked &&
                 (channel->inbound.head != NULL || (channel->ended && !channel->end_told)));
    if (more)
        domi_channel_notice(channel);
    return used;
}

uint32_t domi_channels_run(domi_manager *manager, domi_house *house, uint32_t budget)
{
    domi_channels *set = house->channels.set;
    uint32_t used = 0;

    while (set->noticed_head != NULL && used < budget &&
           (house->marks & DOMI_MARK_SATURATED) == 0) {
        domus_channel *channel = set->noticed_head;

        set->noticed_head = channel->next_noticed;
        channel->noticed = false;
        used += run_channel(manager, house, channel, budget - used);
    }
    if (set->noticed_head == NULL)
        house->marks &= (uint16_t)~DOMI_MARK_CHANNELS;
    return used;
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
        left = set->count;
    }
    if (left != 0 && set->acceptor != NULL && manager->stopping)
        left = 0; /* its thread has ended: the ring's end cancels what is in flight */
    if (left == 0) {
        domi_memory_free(set);
        house->channels.set = NULL;
    }
    return left;
}

bool domi_channels_event(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    if (message->type != &domi_accepted_type)
        return false;
    const domi_accepted *accepted = domi_envelope_payload(message);
    if (house->behaviour->kind != DOMUS_CHANNELS || manager->io != accepted->io ||
        domi_channel_adopt(accepted->io, house, accepted->fd) != 0)
        domi_accepted_type.drop(domi_envelope_payload(message));
    return true;
}

int domus_channel_close(domus_channel *channel)
{
    return domi_channel_flush(channel);
}

void domus_channel_reset(domus_channel *channel, int error)
{
    domi_channel_shut(channel, error < 0 ? error : -ECONNABORTED, true);
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
    return channel->queued_bytes;
}
