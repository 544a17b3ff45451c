/* Receives datagrams. Each is one provided buffer, whose content begins behind the datagram's head,
 * so that it need not be moved. Phase 1, except domus_buffer_peer(). */
#include "io/channels/receive.h"
#include "io/channels/complete.h"
#include "io/channels/state.h"
#include "io/datagrams/datagrams.h"
#include "io/resources/endpoint.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

/* time between two questions to the kernel about datagrams that it has thrown away, in
 * nanoseconds */
#define LOOK_NS UINT64_C(1000000000)

void domi_datagrams_begin_receive(const domus_channel *channel)
{
    const domi_io *io = channel->io;

    io->backend->receive_datagrams(
        io->ring, channel->fd,
        domi_op_user_data(DOMI_OP_RECEIVE, channel->slot_generation, channel->slot));
}

void domi_datagrams_count_lost_in_kernel(domus_channel *channel)
{
    domi_io *io = channel->io;
    domi_datagrams *datagrams = domi_datagrams_of_channel(channel);
    uint32_t figures[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof figures;

    datagrams->looked_ns = io->manager->now_ns;
    if (io->backend->sockets->option_get(io->ring, channel->fd, SOL_SOCKET, SO_MEMINFO, figures,
                                         &size) != 0)
        return;
    uint32_t lost = figures[SK_MEMINFO_DROPS] - datagrams->lost_seen;
    datagrams->lost_seen = figures[SK_MEMINFO_DROPS];
    datagrams->counts.lost += lost;
    domi_counter_add(&io->counters.datagrams_lost, lost);
}

static void drop_received_datagram(domus_channel *channel, domus_buffer *buffer, uint64_t *counter)
{
    (*counter)++;
    domi_counter_add(&channel->io->counters.datagrams_dropped, 1);
    domi_buffer_give_to_kernel(channel->io, buffer);
}

/* True if a channel of UDP may not keep one more received datagram: its thread is careful
 * (crowd.h), and the channel does not read and holds its share of the buffers. A stream would keep
 * bytes that come before its receive has ended, but UDP may be thrown away. */
static bool must_received_datagram_be_dropped(const domus_channel *channel)
{
    return channel->io->careful && channel->paused && channel->held >= channel->io->share &&
           domi_datagrams_of_channel(channel)->family != AF_UNIX;
}

void domi_datagrams_keep_or_drop_received(domus_channel *channel, domus_buffer *buffer,
                                          uint32_t size)
{
    domi_io *io = channel->io;
    domi_datagrams *datagrams = domi_datagrams_of_channel(channel);
    domi_datagram_head head;

    memcpy(&head, buffer->data, offsetof(domi_datagram_head, name));
    buffer->data += sizeof head;
    buffer->size = size - (uint32_t)sizeof head;
    if (channel->state != DOMI_CHANNEL_OPEN) {
        domi_counter_add(&io->counters.discarded_bytes, buffer->size);
        domi_buffer_give_to_kernel(io, buffer);
        return;
    }
    if (io->manager->now_ns - datagrams->looked_ns >= LOOK_NS)
        domi_datagrams_count_lost_in_kernel(channel);
    channel->silent_ns = 0;
    channel->active_ns = io->manager->now_ns;
    datagrams->counts.received++;
    domi_counter_add(&io->counters.received_bytes, buffer->size);
    channel->received_bytes += buffer->size;
    if ((head.flags & MSG_TRUNC) != 0) {
        drop_received_datagram(channel, buffer, &datagrams->counts.too_long);
    } else if (must_received_datagram_be_dropped(channel)) {
        drop_received_datagram(channel, buffer, &datagrams->counts.dropped);
    } else {
        domi_channel_keep_received_piece(channel, buffer);
        domi_channel_decide_whether_to_receive(channel);
    }
}

void domi_datagrams_handle_receive_failure(domus_channel *channel, int error)
{
    domi_datagrams *datagrams = domi_datagrams_of_channel(channel);

    switch (error) {
    case -ENOBUFS:
    case -ENOMEM:
        domi_channel_queue_for_receive_buffer(channel);
        break;
    case 0: /* the result 0 says that the socket was shut down */
    case -ECANCELED:
    case -EINTR:
    case -EAGAIN:
        break;
    case -EBADF: /* these errors concern the socket itself, and would come again and again */
    case -EFAULT:
    case -EINVAL:
    case -ENOTCONN:
    case -ENOTSOCK:
    case -EOPNOTSUPP:
        channel->ended = true;
        domi_channel_end_at_once(channel, error, false);
        break;
    default: /* any other error concerns the peer, and the kernel tells it once */
        datagrams->counts.errors++;
        datagrams->counts.last_error = error;
        if (datagrams->ends_on_error)
            domi_channel_end_at_once(channel, error, false);
        break;
    }
}

bool domi_datagram_read_head(const domus_buffer *buffer, domi_datagram_head *ret_head)
{
    if (domi_buffer_size_of_head(buffer) != sizeof *ret_head)
        return false;
    memcpy(ret_head, buffer->data - sizeof *ret_head, sizeof *ret_head);
    return true;
}

int domus_buffer_peer(const domus_buffer *buffer, domus_endpoint *ret_peer)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    domi_datagram_head head;
    socklen_t size = 0;

    if (domi_datagram_read_head(buffer, &head)) {
        size = head.name_size < sizeof head.name ? head.name_size : sizeof head.name;
        memcpy(&address, head.name, size);
    }
    domi_endpoint_from_socket_address(&address, size, ret_peer);
    return ret_peer->size != 0 ? 0 : -ENOENT;
}
