/* Computes how many bytes a channel owes its peer, and counts them when the library ends the
 * channel by itself. */
#include "io/channels/ends.h"

#include "io/channels/receive.h"
#include "io/resources/socket.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Returns the number of the channel's sent bytes that the peer has not acknowledged. Bytes sent on
 * a Unix socket lie with the peer already and survive the close, so they do not count. The kernel
 * counts a FIN on a TCP socket as one byte until it is acknowledged; that byte is subtracted. */
static uint64_t count_unacknowledged_bytes(const domus_channel *channel)
{
    const domi_io *io = channel->io;
    int domain = AF_UNIX;
    socklen_t size = sizeof domain;
    uint64_t bytes =
        channel->special == NULL ? domi_socket_count_bytes_in_kernel(io, channel->fd, SIOCOUTQ) : 0;

    if (bytes == 0 ||
        io->backend->sockets->option_get(io->ring, channel->fd, SOL_SOCKET, SO_DOMAIN, &domain,
                                         &size) != 0 ||
        domain == AF_UNIX)
        return 0;
    return channel->fin_sent ? bytes - 1 : bytes;
}

bool domi_channel_has_unacknowledged_bytes(const domus_channel *channel)
{
    return count_unacknowledged_bytes(channel) != 0;
}

void domi_channel_count_as_cut(domus_channel *channel, uint64_t lost_bytes)
{
    domi_io *io = channel->io;
    uint64_t bytes = lost_bytes + channel->queued_bytes +
                     domi_channel_count_inbound_bytes(channel) +
                     count_unacknowledged_bytes(channel);

    if (channel->state == DOMI_CHANNEL_OPEN && channel->special == NULL)
        bytes += domi_socket_count_bytes_in_kernel(io, channel->fd, FIONREAD);
    /* In a drain a conversation may owe the peer an answer of unknown size, too; but a peer that
     * has sent nothing is owed nothing. */
    bool is_owed = io->draining && channel->state < DOMI_CHANNEL_LINGERING &&
                   (channel->silent_ns == 0 || channel->drain_bytes != 0);
    if (bytes == 0 && !is_owed)
        return;
    channel->cut = true;
    domi_counter_add(&io->counters.channels_cut, 1);
    domi_counter_add(&io->counters.cut_bytes, bytes);
}
