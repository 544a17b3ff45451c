/* How the channels of a thread end when the system stops.
 *
 * Everything that had been received is answered, then FIN follows. The channel stays open for as
 * long as the kernel has bytes that the peer has not acknowledged: closing a descriptor while input
 * is unread sends a reset, and a reset throws those bytes away. The kernel does not tell when the
 * last byte is acknowledged, so this looks from time to time, at a bounded number of channels in an
 * iteration. A channel that the library ends before that counts as cut, with the bytes that it
 * owed. Owner thread. */
#include "io/acceptors/acceptor.h"
#include "io/channels/channel.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define LOOK_NS   UINT64_C(10000000) /* time between two looks at a channel, at least */
#define LOOKS_MAX 1024u              /* looks in one iteration */

uint64_t domi_socket_bytes(int fd, unsigned long request)
{
    int bytes = 0;

    return fd >= 0 && ioctl(fd, request, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

/* Returns how many bytes the peer has not acknowledged. Bytes sent on a Unix socket lie with the
 * peer already and survive the close. On a TCP socket a FIN that is not acknowledged counts as one
 * byte. */
static uint64_t undelivered_bytes(const domus_channel *channel)
{
    int domain = AF_UNIX;
    socklen_t size = sizeof domain;
    uint64_t bytes = domi_socket_bytes(channel->fd, SIOCOUTQ);

    if (bytes == 0 || getsockopt(channel->fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
        domain == AF_UNIX)
        return 0;
    return channel->state == DOMI_CHANNEL_LINGERING ? bytes - 1 : bytes;
}

bool domi_channel_has_undelivered(const domus_channel *channel)
{
    return undelivered_bytes(channel) != 0;
}

void domi_channel_count_cut(domus_channel *channel, uint64_t lost_bytes)
{
    domi_io *io = channel->io;
    uint64_t bytes = lost_bytes + channel->queued_bytes + domi_channel_inbound_bytes(channel) +
                     undelivered_bytes(channel);

    if (channel->state == DOMI_CHANNEL_OPEN)
        bytes += domi_socket_bytes(channel->fd, FIONREAD);
    /* In a drain a conversation may owe an answer, too, whose size nobody knows; but a peer that
     * has sent nothing is owed nothing. */
    bool is_owed = io->draining && channel->state < DOMI_CHANNEL_LINGERING &&
                   (channel->silent_ns == 0 || channel->drain_bytes != 0);
    if (bytes == 0 && !is_owed)
        return;
    domi_counter_add(&io->counters.cut, 1);
    domi_counter_add(&io->counters.cut_bytes, bytes);
}

/* --- the drain ------------------------------------------------------------------------------- */

void domi_channel_drain(domus_channel *channel)
{
    channel->drain = true;
    channel->drain_bytes = domi_socket_bytes(channel->fd, FIONREAD);
}

void domi_channel_drain_step(domus_channel *channel)
{
    if (channel->drain && channel->state == DOMI_CHANNEL_OPEN && channel->opened &&
        channel->inbound.head == NULL && (channel->drain_bytes == 0 || channel->ended) &&
        channel->house->stacks == NULL)
        (void)domus_channel_close(channel);
}

/* Returns the error of the socket if the peer has finished sending, because no receive is armed
 * then that would tell of a reset; otherwise 0. */
static int pending_error(const domus_channel *channel)
{
    int error = 0;
    socklen_t size = sizeof error;

    return channel->ended && getsockopt(channel->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0
               ? -error
               : 0;
}

/* While the peer has not acknowledged everything, its time to close begins anew. */
static void look_at_lingering(domus_channel *channel)
{
    domi_io *io = channel->io;
    int error = pending_error(channel);

    if (error != 0) {
        domi_channel_end(channel, error, false);
    } else if (domi_channel_has_undelivered(channel)) {
        domi_wheel_cancel(&io->wheel, &channel->timer.node);
        domi_wheel_arm(&io->wheel, &channel->timer.node,
                       io->manager->now_ns + io->config->channel.linger_ns);
    } else {
        domi_channel_settle(channel);
    }
}

void domi_io_look_at_draining(domi_io *io)
{
    uint64_t now_ns = io->manager->now_ns;

    if (io->look_slot == 0) {
        if (now_ns < io->look_ns)
            return;
        io->look_ns = now_ns + LOOK_NS;
    }
    for (uint32_t looks = 0; looks < LOOKS_MAX && io->look_slot < io->slots_used; looks++) {
        domus_channel *channel = io->slots[io->look_slot++].channel;
        if (channel == NULL)
            continue;
        domi_channel_drain_step(channel);
        if (channel->state == DOMI_CHANNEL_LINGERING)
            look_at_lingering(channel);
    }
    if (io->look_slot >= io->slots_used)
        io->look_slot = 0;
}

bool domi_io_collect_before_drain(domi_io *io)
{
    uint32_t taken;

    domi_io_end_shortage(io);
    return domi_io_collect(io, io->config->io.completion_entries, &taken) ||
           ++io->drain_postponed >= DOMI_POSTPONED_MAX;
}

void domi_io_drain(domi_io *io)
{
    uint32_t taken;

    if (io->draining)
        return;
    domi_io_end_shortage(io);
    /* Everything that has completed by now, also completions that overflowed into the kernel, is
     * handled before the sockets are asked how many bytes are left in them. */
    (void)domi_io_collect(io, io->config->io.completion_entries, &taken);
    io->draining = true;
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        domus_channel *channel = io->slots[slot].channel;
        if (channel == NULL)
            continue;
        domi_channel_drain(channel);
        if (channel->state == DOMI_CHANNEL_OPEN) {
            domi_channel_decide_receive(channel); /* it may have paused because memory was short */
            domi_channel_settle(channel);
        }
    }
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL)
            domi_acceptor_drain(io->acceptors[i]);
    }
}

/* --- its end --------------------------------------------------------------------------------- */

/* End a channel. If its peer has acknowledged everything, a close loses nothing, and it does not
 * count as cut. */
static void cut_channel(domus_channel *channel)
{
    domi_channel_drain_step(channel);
    if (channel->state == DOMI_CHANNEL_LINGERING && !domi_channel_has_undelivered(channel)) {
        domi_channel_end(channel, 0, false);
        return;
    }
    domi_channel_count_cut(channel, 0);
    domi_channel_end(channel, -ECONNABORTED, true);
}

uint32_t domi_io_abort(domi_io *io)
{
    uint32_t count = 0;
    uint32_t taken;

    (void)domi_io_collect(io, io->config->io.completion_entries, &taken);
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL && io->draining)
            domi_acceptor_abort_drain(io->acceptors[i]);
    }
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        domus_channel *channel = io->slots[slot].channel;
        if (channel == NULL || channel->state >= DOMI_CHANNEL_CLOSING)
            continue;
        cut_channel(channel);
        count++;
    }
    return count;
}
