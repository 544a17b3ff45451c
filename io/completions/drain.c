/* Ends the channels of a thread, because the system stops.
 *
 * Everything that had been received is answered, then FIN follows. The channel stays open for as
 * long as the kernel has bytes that the peer has not acknowledged: to close a descriptor while
 * input is unread sends a reset, and a reset throws those bytes away. The kernel does not tell when
 * the last byte is acknowledged, so a bounded number of channels is checked from time to time. A
 * channel that the library ends before that counts as cut, with the bytes that it owed. Owner
 * thread. */
#include "io/completions/tick.h"

#include "io/acceptors/acceptors.h"
#include "io/channels/ends.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/completions/descriptor.h"
#include "io/completions/file.h"
#include "io/completions/ring.h"
#include "io/connectors/connect.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <sys/socket.h>

/* least time between two checks of a draining channel, in nanoseconds */
#define LOOK_NS   UINT64_C(10000000)
#define LOOKS_MAX 1024u /* most draining channels that are checked in one iteration */

/* Returns the error of the channel's socket if the peer has finished sending; otherwise 0. */
static int get_pending_error_of_socket(const domus_channel *channel)
{
    return channel->ended && channel->fd >= 0 ? domi_socket_take_error(channel->io, channel->fd)
                                              : 0;
}

/* Check a lingering channel in a drain. While the peer has not acknowledged everything, the time
 * that it has to close begins again with each check. */
static void check_lingering_channel_in_drain(domus_channel *channel)
{
    domi_io *io = channel->io;
    int error = get_pending_error_of_socket(channel);

    if (error != 0) {
        domi_channel_end_at_once(channel, error, false);
    } else if (domi_channel_has_unacknowledged_bytes(channel)) {
        domi_channel_set_timer(channel, io->manager->now_ns + channel->settings->linger_ns);
    } else {
        domi_channel_take_due_steps(channel);
    }
}

void domi_io_check_draining_channels(domi_io *io)
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
        domi_channel_close_if_drained(channel);
        if (channel->state == DOMI_CHANNEL_LINGERING)
            check_lingering_channel_in_drain(channel);
    }
    if (io->look_slot >= io->slots_used)
        io->look_slot = 0;
}

bool domi_io_collect_arrivals_before_drain(domi_io *io)
{
    uint32_t taken;

    domi_io_end_memory_shortage(io);
    return domi_io_enter_and_reap_all(io, io->config->io.completion_entries, &taken) ||
           ++io->drain_postponed >= DOMI_POSTPONED_MAX;
}

/* Begin to drain the channels of the thread that were accepted, or (`outbound`) those that this
 * side has connected. */
static void begin_drain_of_channels(domi_io *io, bool outbound)
{
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        domus_channel *channel = io->slots[slot].channel;
        if (channel == NULL || channel->is_outbound != outbound)
            continue;
        domi_channel_begin_drain(channel);
        if (channel->state == DOMI_CHANNEL_OPEN) {
            /* a channel may have paused because memory was short, and reads again in a drain */
            domi_channel_decide_whether_to_receive(channel);
            domi_channel_take_due_steps(channel);
        }
    }
}

void domi_io_drain_outgoing_channels(domi_io *io)
{
    if (io->draining_upstream)
        return;
    io->draining_upstream = true;
    begin_drain_of_channels(io, true);
}

void domi_io_drain_accepted_channels(domi_io *io)
{
    uint32_t taken;

    if (io->draining)
        return;
    domi_io_end_memory_shortage(io);
    /* The sockets will be asked how many bytes are left in them. Before that all completions so far
     * are handled, also those that overflowed into the kernel. */
    (void)domi_io_enter_and_reap_all(io, io->config->io.completion_entries, &taken);
    io->draining = true;
    begin_drain_of_channels(io, false);
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL)
            domi_acceptor_begin_drain(io->acceptors[i]);
    }
}

/* --- its end --------------------------------------------------------------------------------- */

/* End a channel that is left at the end of a drain. If its peer has acknowledged everything, the
 * close loses nothing, and the channel does not count as cut. */
static void end_channel_left_after_drain(domus_channel *channel)
{
    domi_channel_close_if_drained(channel);
    if (channel->state >= DOMI_CHANNEL_CLOSING)
        return; /* an idle channel is closed by this step, and is not cut */
    if (channel->state == DOMI_CHANNEL_LINGERING &&
        !domi_channel_has_unacknowledged_bytes(channel)) {
        domi_channel_end_at_once(channel, 0, false);
        return;
    }
    domi_channel_count_as_cut(channel, 0);
    domi_channel_end_at_once(channel, -ECONNABORTED, true);
}

uint32_t domi_io_end_all_open_channels(domi_io *io)
{
    uint32_t count = 0;
    uint32_t taken;

    (void)domi_io_enter_and_reap_all(io, io->config->io.completion_entries, &taken);
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL && io->draining)
            domi_acceptor_abort_drain(io->acceptors[i]);
    }
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        domus_channel *channel = io->slots[slot].channel;
        if (channel == NULL || channel->state >= DOMI_CHANNEL_CLOSING)
            continue;
        end_channel_left_after_drain(channel);
        count++;
    }
    return count;
}

void domi_io_end_all_on_failed_ring(domi_io *io)
{
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL)
            domi_acceptor_stop_after_ring_failure(io->acceptors[i]);
    }
    domi_descriptors_tell_ring_failed(io);
    domi_file_fail_all_tries(io, io->failed);
    domi_connects_end_on_failed_ring(io);
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        if (io->slots[slot].channel != NULL)
            domi_channel_end_on_failed_ring(io->slots[slot].channel, io->failed);
    }
}
