/* Sends datagrams. Each waits in the channel's `outbound` until its send has come back. */
#include "io/channels/send.h"
#include "base/check.h"
#include "io/channels/complete.h"
#include "io/channels/crowd.h"
#include "io/channels/due.h"
#include "io/channels/flush.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/channels/verbs.h"
#include "io/datagrams/datagrams.h"
#include "io/resources/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define FLYING_MAX 64u /* most sends of one channel of datagrams in flight */

/* most bytes of a UDP datagram: 65,535 minus its header, and over IPv4 also minus the header of
 * IP */
#define BYTES_MAX_IPV4 65507u
#define BYTES_MAX_IPV6 65527u

/* --- queue ------------------------------------------------------------------------------------ */

static uint32_t get_most_bytes_of_datagram(const domi_datagrams *datagrams)
{
    if (datagrams->family == AF_UNIX)
        return DOMI_BUFFER_MAX;
    return datagrams->family == AF_INET ? BYTES_MAX_IPV4 : BYTES_MAX_IPV6;
}

/* Returns 0 if the channel accepts a datagram of `size` bytes to be sent; else a negative errno. */
static int check_room_for_datagram(const domus_channel *channel, uint32_t size)
{
    uint64_t counted = (uint64_t)size + DOMI_DATAGRAM_COST;

    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EPIPE;
    if (size > get_most_bytes_of_datagram(domi_datagrams_of_channel(channel)))
        return -EMSGSIZE;
    if (channel->queued_bytes + counted > channel->settings->send_max_bytes ||
        domi_channel_is_write_refused(channel, counted))
        return -ENOBUFS;
    return 0;
}

/* Queue the datagram `bytes` for the socket address `name`. If this fails, the caller still has
 * `bytes`. */
static int queue_datagram(domus_channel *channel, const void *name, size_t name_size,
                          domus_buffer *bytes)
{
    domi_io *io = channel->io;
    int error = check_room_for_datagram(channel, bytes->size);

    if (error != 0)
        return error;
    domi_datagram *datagram = domi_slab_take_object(&io->datagram_slab);
    if (datagram == NULL)
        return -ENOMEM;
    datagram->channel = channel;
    datagram->buffer = bytes;
    datagram->name_size = (uint8_t)name_size;
    if (name_size != 0)
        memcpy(datagram->name, name, name_size);
    bytes->datagram = datagram;
    domi_buffer_list_put(&channel->outbound, bytes);
    channel->queued_bytes += (uint64_t)bytes->size + DOMI_DATAGRAM_COST;
    domi_channel_count_queued_buffer(channel, &channel->cost, bytes);
    domi_channel_count_queued_bytes(channel, &channel->cost, DOMI_DATAGRAM_COST);
    domi_io_become_careful_if_much_queued(io);
    if (!channel->sending)
        domi_channel_mark_to_be_sent(channel);
    domi_channel_decide_whether_to_receive(channel);
    return 0;
}

int domi_datagrams_write_to_peer(domus_channel *channel, domus_buffer *bytes)
{
    int error = domi_datagrams_of_channel(channel)->is_connected
                    ? queue_datagram(channel, NULL, 0, bytes)
                    : -EDESTADDRREQ;

    if (error != 0)
        domus_buffer_free(bytes);
    return error;
}

/* Queue an answer for the sender of the received datagram `bytes`. */
static int queue_answer_datagram(domus_channel *channel, domus_buffer *bytes)
{
    domi_datagram_head head;

    if (!domi_datagram_read_head(bytes, &head) || head.name_size <= sizeof(sa_family_t) ||
        head.name_size > sizeof(((domi_datagram *)NULL)->name))
        return -EDESTADDRREQ;
    return queue_datagram(channel, head.name, head.name_size, bytes);
}

static int queue_datagram_to_endpoint(domus_channel *channel, const domus_endpoint *to,
                                      domus_buffer *bytes)
{
    struct sockaddr_storage address;
    const domi_datagrams *datagrams = domi_datagrams_of_channel(channel);

    if (datagrams == NULL)
        return -EINVAL;
    if (datagrams->is_connected)
        return -EISCONN;
    if (to == NULL)
        return queue_answer_datagram(channel, bytes);
    int size = domi_endpoint_to_socket_address(to, &address);
    if (size < 0)
        return size;
    /* an IPv6 socket can send to IPv4 addresses, too */
    if (to->family != datagrams->family &&
        !(to->family == AF_INET && datagrams->family == AF_INET6))
        return -EAFNOSUPPORT;
    return queue_datagram(channel, &address, (size_t)size, bytes);
}

int domus_channel_send_to(domus_stack *stack, domus_channel *channel, const domus_endpoint *to,
                          domus_buffer *bytes)
{
    int error = domi_channel_may_be_used_by(stack, channel)
                    ? queue_datagram_to_endpoint(channel, to, bytes)
                    : -EPERM;

    if (error != 0)
        domus_buffer_free(bytes);
    return error;
}

/* --- send ------------------------------------------------------------------------------------- */

void domi_datagrams_send_waiting(domus_channel *channel)
{
    domi_io *io = channel->io;
    domi_datagrams *datagrams = domi_datagrams_of_channel(channel);
    uint32_t most = datagrams->family == AF_UNIX ? 1 : FLYING_MAX;

    DOMI_CHECK(datagrams->flying == 0);
    datagrams->is_full = false;
    channel->sending = true;
    channel->send_ns = io->manager->now_ns;
    for (const domus_buffer *buffer = channel->outbound.head;
         buffer != NULL && datagrams->flying < most; buffer = buffer->next) {
        const domi_datagram *datagram = buffer->datagram;
        const domi_datagram_out out = {
            .data = buffer->data,
            .address = datagram->name_size != 0 ? datagram->name : NULL,
            .size = buffer->size,
            .address_size = datagram->name_size,
        };
        datagrams->flying++;
        io->backend->send_datagram(io->ring, channel->fd, &out,
                                   (uint64_t)DOMI_OP_DATAGRAM << 56 | (uintptr_t)datagram);
    }
}

/* Free a datagram that was taken out of the channel's `outbound`. */
static void free_queued_datagram(domus_channel *channel, domus_buffer *buffer)
{
    domi_slab_put_object(&channel->io->datagram_slab, buffer->datagram);
    buffer->datagram = NULL;
    channel->queued_bytes -= (uint64_t)buffer->size + DOMI_DATAGRAM_COST;
    /* The sum has the same addends as the one in flush.c, with which it is compared. */
    channel->sent_bytes += (uint64_t)buffer->size + DOMI_DATAGRAM_COST;
    domi_channel_uncount_queued_buffer(channel, &channel->cost, buffer);
    domi_channel_uncount_queued_bytes(channel, &channel->cost, DOMI_DATAGRAM_COST);
    domus_buffer_free(buffer);
}

static void count_unsent_datagram(domus_channel *channel, int error)
{
    domi_datagrams *datagrams = domi_datagrams_of_channel(channel);

    datagrams->counts.unsent++;
    datagrams->counts.last_error = error;
    domi_counter_add(&channel->io->counters.datagrams_unsent, 1);
}

/* True if the channel of datagrams waits for room in the kernel, for which the backend needs a
 * poll_once(). An unconnected Unix channel does not wait: a stranger that reads nothing would hold
 * up all others, and no poll would tell of the stranger's room. */
static bool waits_for_room_in_kernel(const domus_channel *channel)
{
    const domi_datagrams *datagrams = domi_datagrams_of_channel(channel);

    return channel->state <= DOMI_CHANNEL_FLUSHING && channel->io->backend->poll_once != NULL &&
           (datagrams->is_connected || datagrams->family != AF_UNIX);
}

/* Resume the conversations that wait until datagrams have left `outbound`, and let the channel read
 * again. */
static void resume_waiting_senders(domus_channel *channel)
{
    if (channel->flushes != NULL)
        domi_flush_complete_waits(channel);
    domi_channel_decide_whether_to_receive(channel);
    domi_channel_take_due_steps(channel);
}

/* Finish a batch of sends when every send of it has come back. */
static void end_batch_of_sends(domus_channel *channel)
{
    const domi_io *io = channel->io;
    const domi_datagrams *datagrams = domi_datagrams_of_channel(channel);

    if (datagrams->is_full && waits_for_room_in_kernel(channel)) {
        io->backend->poll_once(
            io->ring, channel->fd, POLLOUT,
            domi_op_user_data(DOMI_OP_ROOM, channel->slot_generation, channel->slot));
        domi_channel_arm_timeouts(channel);
        return;
    }
    channel->sending = false;
    if (channel->state >= DOMI_CHANNEL_CLOSING)
        domi_channel_drop_unsent_bytes(channel);
    else if (channel->outbound.head != NULL)
        domi_channel_mark_to_be_sent(channel);
    resume_waiting_senders(channel);
}

void domi_datagram_handle_send_result(domi_datagram *datagram, int result)
{
    domus_channel *channel = datagram->channel;
    domus_buffer *buffer = datagram->buffer;
    domi_datagrams *datagrams = domi_datagrams_of_channel(channel);

    DOMI_CHECK(channel->sending && datagrams->flying != 0);
    datagrams->flying--;
    if (result == -EAGAIN && waits_for_room_in_kernel(channel)) {
        /* the datagram that found no room keeps its place in `outbound` */
        datagrams->is_full = true;
    } else {
        if (result >= 0) {
            channel->active_ns = channel->io->manager->now_ns;
            domi_counter_add(&channel->io->counters.sent_bytes, (uint32_t)result);
            datagrams->counts.sent++;
        } else {
            count_unsent_datagram(channel, result);
        }
        domi_buffer_list_remove(&channel->outbound, buffer);
        free_queued_datagram(channel, buffer);
        if (result < 0 && datagrams->ends_on_error)
            domi_channel_end_at_once(channel, result, false);
    }
    if (datagrams->flying == 0)
        end_batch_of_sends(channel);
}

void domi_datagrams_send_after_poll(domi_io *io, const domi_completion *completion)
{
    domus_channel *channel = domi_channel_of_completion(io, completion);

    DOMI_CHECK(channel->special != NULL && channel->sending);
    domi_datagrams_of_channel(channel)->is_full = false;
    end_batch_of_sends(channel);
}

void domi_datagrams_handle_send_timeout(domus_channel *channel)
{
    if (domi_datagrams_of_channel(channel)->flying != 0)
        return; /* sends in flight come back with the next enter, so nothing is late */
    for (domus_buffer *buffer = domi_buffer_list_take(&channel->outbound); buffer != NULL;
         buffer = domi_buffer_list_take(&channel->outbound)) {
        count_unsent_datagram(channel, -ETIMEDOUT);
        free_queued_datagram(channel, buffer);
    }
    /* the poll for room in the socket is still in flight */
    channel->send_ns = channel->io->manager->now_ns;
    resume_waiting_senders(channel);
}

void domi_datagrams_drop_waiting(domus_channel *channel)
{
    domi_datagrams_of_channel(channel)->flying = 0;
    for (domus_buffer *buffer = channel->outbound.head; buffer != NULL; buffer = buffer->next) {
        count_unsent_datagram(channel, channel->error != 0 ? channel->error : -ECANCELED);
        domi_slab_put_object(&channel->io->datagram_slab, buffer->datagram);
        buffer->datagram = NULL;
        domi_channel_uncount_queued_bytes(channel, &channel->cost, DOMI_DATAGRAM_COST);
    }
}
