/* A channel's life, from the descriptor that was handed over to its close.
 *
 *             domus_channel_close          all sent: FIN            peer closed, or linger over
 *     OPEN ----------------------> FLUSHING ---------> LINGERING ----------------------+
 *      |                              |   all sent, and the peer had closed            |
 *      |  reset, error, idle          +---------------------------------------+        |
 *      +------------------------------+---------------------------------------v--------v
 *                                                                             CLOSING
 *                              free <-- CLOSED <---- nothing in flight: close(2) ---+
 *
 * One operation of each kind is in flight at most (M13). The descriptor is closed only when nothing
 * is in flight, so its number cannot be reused under a late completion; the slot's generation
 * changes with it all the same, and every completion is held against it. domi_channel_settle()
 * takes whatever step is due and may be called at any time. */
#include "io/channel.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/mailbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SLOTS_FIRST 64u
#define NO_SLOT     UINT32_MAX

static const uint8_t moves[DOMI_CHANNEL_STATES] = {
    [DOMI_CHANNEL_OPEN] = 1u << DOMI_CHANNEL_FLUSHING | 1u << DOMI_CHANNEL_CLOSING,
    [DOMI_CHANNEL_FLUSHING] = 1u << DOMI_CHANNEL_LINGERING | 1u << DOMI_CHANNEL_CLOSING,
    [DOMI_CHANNEL_LINGERING] = 1u << DOMI_CHANNEL_CLOSING,
    [DOMI_CHANNEL_CLOSING] = 1u << DOMI_CHANNEL_CLOSED,
};

static void move(domus_channel *channel, domi_channel_state to)
{
    DOMI_CHECK((moves[channel->state] >> to & 1) != 0);
    channel->state = (uint8_t)to;
}

/* Double the table. Returns 0; -ENOMEM, and the old one stays. */
static int grow(domi_io *io)
{
    uint32_t count = io->slot_count == 0 ? SLOTS_FIRST : io->slot_count * 2;
    domi_slot *slots = domi_memory_new(count * sizeof *slots);

    if (slots == NULL)
        return -ENOMEM;
    if (io->slot_count != 0)
        memcpy(slots, io->slots, io->slot_count * sizeof *slots);
    domi_memory_free(io->slots);
    io->slots = slots;
    io->slot_count = count;
    return 0;
}

static int slot_take(domi_io *io, uint32_t *ret_slot)
{
    if (io->free_slot != NO_SLOT) {
        *ret_slot = io->free_slot;
        io->free_slot = io->slots[io->free_slot].next_free;
        return 0;
    }
    if (io->slots_used == io->slot_count && grow(io) != 0)
        return -ENOMEM;
    *ret_slot = io->slots_used++;
    return 0;
}

static domi_channels *channels_of(domi_house *house)
{
    if (house->channels.set == NULL)
        house->channels.set = domi_memory_new(sizeof(domi_channels));
    return house->channels.set;
}

static void link_house(domi_channels *set, domus_channel *channel)
{
    channel->next = set->all;
    if (set->all != NULL)
        set->all->previous = channel;
    set->all = channel;
    set->count++;
}

static void arm_idle(domus_channel *channel, uint64_t timeout_ns)
{
    domi_wheel_cancel(&channel->io->wheel, &channel->timer.node);
    if (timeout_ns != 0)
        domi_wheel_arm(&channel->io->wheel, &channel->timer.node,
                       channel->io->manager->now_ns + timeout_ns);
}

int domi_channel_adopt(domi_io *io, domi_house *house, int fd)
{
    domi_channels *set = channels_of(house);
    domus_channel *channel = set != NULL ? domi_slab_take(&io->channel_slab) : NULL;
    uint32_t slot;

    if (channel == NULL)
        return -ENOMEM;
    if (slot_take(io, &slot) != 0) {
        domi_slab_put(&io->channel_slab, channel);
        return -ENOMEM;
    }
    *channel = (domus_channel){
        .io = io,
        .house = house,
        .fd = fd,
        .slot = slot,
        .generation = io->slots[slot].generation & DOMI_OP_GENERATION_MASK,
        .active_ns = io->manager->now_ns,
    };
    io->slots[slot].channel = channel;
    io->open++;
    link_house(set, channel);
    domi_counter_add(&io->counters.opened, 1);
    arm_idle(channel, io->config->channel.idle_timeout_ns);
    if (io->draining)
        domi_channel_drain(channel);
    domi_channel_notice(channel);
    return 0;
}

void domi_channel_notice(domus_channel *channel)
{
    domi_house *house = channel->house;
    domi_channels *set = house->channels.set;

    if (channel->noticed)
        return;
    channel->noticed = true;
    channel->next_noticed = NULL;
    if (set->noticed_head == NULL)
        set->noticed_head = channel;
    else
        set->noticed_tail->next_noticed = channel;
    set->noticed_tail = channel;
    house->marks |= DOMI_MARK_CHANNELS;
    if (house->state == DOMI_WAITING && domi_house_channels_runnable(house))
        domi_house_ready(channel->io->manager, house);
}

void domi_channel_drop_inbound(domus_channel *channel)
{
    for (domus_buffer *buffer = domi_buffer_list_take(&channel->inbound); buffer != NULL;
         buffer = domi_buffer_list_take(&channel->inbound))
        domus_buffer_free(buffer);
}

static void begin_closing(domus_channel *channel, int error, bool abort)
{
    if (channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    channel->error = error;
    channel->abort = abort;
    move(channel, DOMI_CHANNEL_CLOSING);
    domi_channel_drop_inbound(channel);
    if (!channel->sending) /* else the kernel still reads from it: when the send has ended */
        domi_channel_drop_outbound(channel);
}

int domi_channel_flush(domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EALREADY;
    move(channel, DOMI_CHANNEL_FLUSHING);
    domi_channel_drop_inbound(channel);
    domi_channel_settle(channel);
    return 0;
}

static void settle_flushing(domus_channel *channel)
{
    if (channel->sending || channel->outbound.head != NULL)
        return;
    if (channel->ended) {
        begin_closing(channel, 0, false);
        return;
    }
    /* FIN, and then wait for the peer's: closing with bytes unread would send a reset, which can
     * overtake what we sent. */
    (void)shutdown(channel->fd, SHUT_WR);
    move(channel, DOMI_CHANNEL_LINGERING);
    arm_idle(channel, channel->io->config->channel.linger_ns);
}

static void cancel_all(domus_channel *channel)
{
    if (channel->cancelled_all)
        return;
    channel->cancelled_all = true;
    if (!channel->abort)
        (void)shutdown(channel->fd, SHUT_RDWR);
    channel->cancels++;
    channel->io->backend->cancel_fd(
        channel->io->ring, channel->fd,
        domi_op_data(DOMI_OP_CANCEL, channel->generation, channel->slot));
}

static void settle_closing(domus_channel *channel)
{
    if (channel->receiving || channel->sending) {
        cancel_all(channel);
        return;
    }
    if (channel->cancels != 0 || channel->dirty) /* the flush of this tick comes back here */
        return;
    domi_channel_unstarve(channel);
    if (channel->abort) {
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(channel->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    domi_channel_drop_outbound(channel);
    domi_wheel_cancel(&channel->io->wheel, &channel->timer.node);
    (void)close(channel->fd);
    channel->fd = -1;
    move(channel, DOMI_CHANNEL_CLOSED);
    domi_channel_notice(channel);
}

void domi_channel_settle(domus_channel *channel)
{
    if (channel->state == DOMI_CHANNEL_FLUSHING)
        settle_flushing(channel);
    if (channel->state == DOMI_CHANNEL_LINGERING && channel->ended)
        begin_closing(channel, 0, false);
    if (channel->state == DOMI_CHANNEL_CLOSING)
        settle_closing(channel);
    else if (!channel->receiving && (channel->opened || channel->state != DOMI_CHANNEL_OPEN) &&
             domi_channel_wants_receive(channel))
        domi_channel_arm_receive(channel);
}

void domi_channel_shut(domus_channel *channel, int error, bool abort)
{
    begin_closing(channel, error, abort);
    domi_channel_settle(channel);
}

/* When a time-out that is due at `since_ns + timeout_ns` falls: the earlier one of it and
 * `next_ns`. A time-out of 0 never falls. */
static uint64_t earlier(uint64_t next_ns, uint64_t since_ns, uint64_t timeout_ns)
{
    uint64_t due_ns = since_ns + timeout_ns;

    return timeout_ns != 0 && due_ns < next_ns ? due_ns : next_ns;
}

/* Time-outs are armed once and looked at when they fire: no work per message. */
void domi_channel_timer(domus_channel *channel)
{
    const domus_config *config = channel->io->config;
    uint64_t now_ns = channel->io->manager->now_ns;
    uint64_t next_ns = UINT64_MAX;

    if (channel->state == DOMI_CHANNEL_LINGERING) {
        domi_channel_shut(channel, 0, false);
        return;
    }
    if (channel->io->pressed)
        channel->active_ns = now_ns; /* whom nobody reads is not idle */
    if (channel->state <= DOMI_CHANNEL_FLUSHING)
        next_ns = earlier(next_ns, channel->active_ns, config->channel.idle_timeout_ns);
    if (channel->sending)
        next_ns = earlier(next_ns, channel->send_ns, config->channel.send_timeout_ns);
    if (next_ns <= now_ns)
        domi_channel_shut(channel, -ETIMEDOUT, channel->sending);
    else if (next_ns != UINT64_MAX)
        domi_wheel_arm(&channel->io->wheel, &channel->timer.node, next_ns);
}

void domi_channel_free(domus_channel *channel)
{
    domi_io *io = channel->io;
    domi_channels *set = channel->house->channels.set;

    DOMI_CHECK(channel->state == DOMI_CHANNEL_CLOSED && !channel->dirty && !channel->starved);
    if (channel->next != NULL)
        channel->next->previous = channel->previous;
    if (channel->previous != NULL)
        channel->previous->next = channel->next;
    else
        set->all = channel->next;
    set->count--;
    io->slots[channel->slot].channel = NULL;
    io->slots[channel->slot].generation++;
    io->slots[channel->slot].next_free = io->free_slot;
    io->free_slot = channel->slot;
    io->open--;
    domi_counter_add(&io->counters.closed, 1);
    if (channel->error != 0)
        domi_counter_add(&io->counters.reset, 1);
    /* Relaxed: a number for choosing a thread; nothing is published by it. */
    atomic_fetch_sub_explicit(&io->connections, 1, memory_order_relaxed);
    domi_slab_put(&io->channel_slab, channel);
}

void domi_channel_drain(domus_channel *channel)
{
    int waiting = 0;

    channel->drain = true;
    if (channel->fd >= 0 && ioctl(channel->fd, FIONREAD, &waiting) == 0 && waiting > 0)
        channel->drain_bytes = (uint64_t)waiting;
}

void domi_channel_drain_step(domus_channel *channel)
{
    if (channel->drain && channel->state == DOMI_CHANNEL_OPEN && channel->opened &&
        channel->inbound.head == NULL && (channel->drain_bytes == 0 || channel->ended) &&
        channel->house->stacks == NULL)
        (void)domus_channel_close(channel);
}
