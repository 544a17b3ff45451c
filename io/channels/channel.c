/* The life of a channel, from the descriptor that is handed over until its close.
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
 * is in flight, so its number cannot be reused while a completion may still come. The generation of
 * the slot changes with it all the same, and is compared with that of every completion.
 * domi_channel_settle() takes every step that is due, and may be called at any time. */
#include "io/channels/channel.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "io/channels/crowd.h"

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

static void move_channel(domus_channel *channel, domi_channel_state to)
{
    DOMI_CHECK((moves[channel->state] >> to & 1) != 0);
    domi_channel_leave_crowd(channel);
    channel->state = (uint8_t)to;
}

/* Double the table of slots. Returns 0; -ENOMEM, and then the old table stays. */
static int grow_table(domi_io *io)
{
    uint32_t count = io->slot_count == 0 ? SLOTS_FIRST : io->slot_count * 2;
    domi_channel_slot *slots = domi_memory_new(count * sizeof *slots);

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
    if (io->slots_used == io->slot_count && grow_table(io) != 0)
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

/* Returns the earlier of `next_ns` and `since_ns + timeout_ns`. A time-out of 0 is never due. */
static uint64_t earlier_of(uint64_t next_ns, uint64_t since_ns, uint64_t timeout_ns)
{
    uint64_t due_ns = since_ns + timeout_ns;

    return timeout_ns != 0 && due_ns < next_ns ? due_ns : next_ns;
}

/* Whether the first byte of the peer is still waited for. It is not if the actor has closed the
 * channel, or if the peer has finished sending. */
static bool is_silent(const domus_channel *channel)
{
    return channel->silent_ns != 0 && !channel->ended && channel->state == DOMI_CHANNEL_OPEN;
}

/* Returns when the first time-out of the channel is due; UINT64_MAX when none is set. */
static uint64_t next_timeout_ns(const domus_channel *channel)
{
    const domus_config *config = channel->io->config;
    uint64_t next_ns = UINT64_MAX;

    if (channel->state <= DOMI_CHANNEL_FLUSHING)
        next_ns = earlier_of(next_ns, channel->active_ns, config->channel.idle_timeout_ns);
    if (is_silent(channel))
        next_ns = earlier_of(next_ns, channel->silent_ns, config->connection.first_byte_timeout_ns);
    if (channel->sending)
        next_ns = earlier_of(next_ns, channel->send_ns, config->channel.send_timeout_ns);
    return next_ns;
}

static void arm_timer(domus_channel *channel, uint64_t due_ns)
{
    domi_wheel_cancel(&channel->io->wheel, &channel->timer.node);
    if (due_ns != UINT64_MAX)
        domi_wheel_arm(&channel->io->wheel, &channel->timer.node, due_ns);
}

int domi_channel_adopt(domi_io *io, domi_house *house, int fd, domi_peer *peer)
{
    domi_channels *set = io->failed == 0 ? channels_of(house) : NULL;
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
        .peer = peer,
        .fd = fd,
        .slot = slot,
        .generation = io->slots[slot].generation & DOMI_OP_GENERATION_MASK,
        .active_ns = io->manager->now_ns,
        .silent_ns = io->manager->now_ns,
    };
    io->slots[slot].channel = channel;
    io->open++;
    link_house(set, channel);
    domi_counter_add(&io->counters.opened, 1);
    arm_timer(channel, next_timeout_ns(channel));
    if (io->draining)
        domi_channel_drain(channel);
    domi_channel_make_ready(channel);
    return 0;
}

void domi_channel_make_ready(domus_channel *channel)
{
    domi_house *house = channel->house;
    domi_channels *set = house->channels.set;

    if (channel->ready)
        return;
    channel->ready = true;
    channel->next_ready = NULL;
    if (set->ready_head == NULL)
        set->ready_head = channel;
    else
        set->ready_tail->next_ready = channel;
    set->ready_tail = channel;
    house->marks |= DOMI_MARK_CHANNELS;
    if (house->state == DOMI_WAITING &&
        (domi_house_may_run_channels(house) || domi_house_is_stopping_unmounted(house)))
        domi_house_make_ready(channel->io->manager, house);
}

uint64_t domi_channel_inbound_bytes(const domus_channel *channel)
{
    uint64_t sum = 0;

    for (const domus_buffer *buffer = channel->inbound.head; buffer != NULL; buffer = buffer->next)
        sum += buffer->size;
    return sum;
}

void domi_channel_drop_inbound(domus_channel *channel)
{
    for (domus_buffer *buffer = domi_channel_take_inbound(channel); buffer != NULL;
         buffer = domi_channel_take_inbound(channel))
        domus_buffer_free(buffer);
}

static void begin_closing(domus_channel *channel, int error, bool abort)
{
    if (channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    channel->error = error;
    channel->abort = abort;
    move_channel(channel, DOMI_CHANNEL_CLOSING);
    domi_channel_drop_inbound(channel);
    /* While a send is in flight the kernel reads the buffers; they are dropped when it ends. */
    if (!channel->sending)
        domi_channel_drop_outbound(channel);
}

int domi_channel_flush(domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EALREADY;
    move_channel(channel, DOMI_CHANNEL_FLUSHING);
    domi_counter_add(&channel->io->counters.discarded_bytes, domi_channel_inbound_bytes(channel));
    domi_channel_drop_inbound(channel);
    domi_channel_settle(channel);
    return 0;
}

static void settle_flushing(domus_channel *channel)
{
    if (channel->sending || channel->outbound.head != NULL)
        return;
    /* The peer has finished sending, so nothing has to be waited for, except in a drain: then the
     * channel stays open until the peer has acknowledged everything. */
    if (channel->ended && !channel->io->draining) {
        begin_closing(channel, 0, false);
        return;
    }
    /* Send FIN and wait for that of the peer: a close with bytes unread would send a reset, which
     * can overtake the bytes that were sent. */
    (void)shutdown(channel->fd, SHUT_WR);
    move_channel(channel, DOMI_CHANNEL_LINGERING);
    arm_timer(channel, channel->io->manager->now_ns + channel->io->config->channel.linger_ns);
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
    /* If the channel is dirty, domi_io_queue_sends() settles it again. */
    if (channel->cancels != 0 || channel->dirty)
        return;
    domi_channel_unstarve(channel);
    if (channel->abort) {
        static const struct linger reset = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(channel->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    domi_channel_drop_outbound(channel);
    domi_wheel_cancel(&channel->io->wheel, &channel->timer.node);
    (void)close(channel->fd);
    channel->fd = -1;
    move_channel(channel, DOMI_CHANNEL_CLOSED);
    domi_channel_make_ready(channel);
}

void domi_channel_settle(domus_channel *channel)
{
    if (channel->state == DOMI_CHANNEL_FLUSHING)
        settle_flushing(channel);
    if (channel->state == DOMI_CHANNEL_LINGERING && channel->ended &&
        !(channel->io->draining && domi_channel_has_undelivered(channel)))
        begin_closing(channel, 0, false);
    if (channel->state == DOMI_CHANNEL_CLOSING)
        settle_closing(channel);
    else if (!channel->receiving && (channel->opened || channel->state != DOMI_CHANNEL_OPEN) &&
             domi_channel_wants_receive(channel))
        domi_channel_arm_receive(channel);
    DOMI_CHECK_SLOW(domi_channel_is_sound(channel));
}

void domi_channel_end(domus_channel *channel, int error, bool abort)
{
    begin_closing(channel, error, abort);
    domi_channel_settle(channel);
}

/* Whether bytes of the peer wait for this side: in the channel for its actor, or in the socket
 * because the thread had no buffer. A peer that takes no answers (`blocked`) does not count. */
static bool waits_to_be_read(const domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN || channel->blocked)
        return false;
    return channel->inbound.head != NULL || domi_socket_bytes(channel->fd, FIONREAD) != 0;
}

/* Take the queued bytes away from the kernel and reset the connection. The ring still holds the
 * socket, so a close would leave the connection open; and after a FIN the peer would take half an
 * answer for a whole one. */
static void disconnect(int fd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    (void)connect(fd, &nobody, sizeof nobody);
    /* this is this is for a Unix socket, which cannot be disconnected */
    (void)shutdown(fd, SHUT_RDWR);
}

void domi_channel_fail(domus_channel *channel, int error)
{
    if (channel->state == DOMI_CHANNEL_CLOSED)
        return;
    if (channel->state < DOMI_CHANNEL_CLOSING)
        domi_channel_count_cut(channel, 0);
    disconnect(channel->fd);
    channel->receiving = channel->cancelling = channel->sending = false;
    channel->cancels = 0;
    if (channel->state == DOMI_CHANNEL_CLOSING)
        channel->abort = true;
    domi_channel_end(channel, error, true);
}

/* The timer is not moved when bytes come or go. When it fires, this looks whether a time-out is
 * really over and arms the timer again if not, so time-outs cost no work per message. */
void domi_channel_handle_timer(domus_channel *channel)
{
    uint64_t now_ns = channel->io->manager->now_ns;

    if (channel->state == DOMI_CHANNEL_LINGERING) {
        if (channel->io->draining && domi_channel_has_undelivered(channel)) {
            arm_timer(channel, now_ns + channel->io->config->channel.linger_ns);
            return;
        }
        domi_channel_count_cut(channel, 0);
        domi_channel_end(channel, 0, false);
        return;
    }
    bool is_unread = waits_to_be_read(channel);
    bool is_crowded =
        !channel->ended && (channel->crowded || (channel->paused && channel->io->pressure.spares));
    if (is_crowded || is_unread)
        channel->active_ns = now_ns; /* a channel that this side does not read is not idle */
    if (channel->silent_ns != 0 && (is_unread || !channel->receiving || channel->cancelling))
        /* this side did not read, so the peer's first byte may have come long ago */
        channel->silent_ns = now_ns;
    uint64_t next_ns = next_timeout_ns(channel);
    if (next_ns > now_ns) {
        arm_timer(channel, next_ns);
        return;
    }
    if (is_silent(channel) &&
        earlier_of(UINT64_MAX, channel->silent_ns,
                   channel->io->config->connection.first_byte_timeout_ns) <= now_ns)
        domi_counter_add(&channel->io->counters.silent, 1);
    domi_channel_count_cut(channel, 0);
    domi_channel_end(channel, -ETIMEDOUT, channel->sending);
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
    /* release: a thread that sees that no connection is left (domi_system_connections) also sees
     * the counts of what was cut. */
    atomic_fetch_sub_explicit(&io->connections, 1, memory_order_release);
    domi_peers_count_out(io->peers, channel->peer);
    domi_slab_put(&io->channel_slab, channel);
}

/* --- conversations --------------------------------------------------------------------------- */

uint64_t domi_channel_key(const domus_channel *channel)
{
    return (uint64_t)channel->io->slots[channel->slot].generation << 32 | channel->slot;
}

domus_channel *domi_channel_of_key(const domi_io *io, uint64_t key)
{
    const domi_channel_slot *slot = &io->slots[(uint32_t)key];

    return slot->generation == key >> 32 ? slot->channel : NULL;
}

void domi_channel_count_conversation(domus_channel *channel, domus_stack *pooled)
{
    channel->conversations++;
    pooled->away |= DOMI_STACK_COUNTED;
    pooled->counted_at = domi_channel_key(channel);
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

void domi_channel_close_when_answered(domus_channel *channel)
{
    channel->close_due = true;
    if (channel->conversations == 0)
        (void)domus_channel_close(channel);
}
