/* What a careful thread does beside serving: it goes through its channels, some of them at each
 * tick, ends receives that would bring more than one piece, and notes whose peers take anything.
 *
 * A peer is deaf when for memory.resetAfter the kernel has had next to no acknowledgements from it,
 * while bytes wait: for at most a sixteenth of those that wait. One byte now and then must not be
 * enough, else many peers that take a byte in time hold all there is. It is told by SIOCOUTQ,
 * because a send that has not completed says nothing of a peer that reads slowly. Each pass
 * remembers the deaf channels that hold most. At its end, while the library is above its budget, or
 * so much is queued here that long answers are refused, these are reset, the worst first, until
 * that is over. So the work of a turn is bounded, and no list has to be kept in order while all is
 * well. */
#include "io/channels/crowd.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#define VISITS_PER_TICK 256u
#define TAKES_LEAST     16u /* parts of what waits, of which a peer that is not deaf takes one */
#define PASS_EVERY_NS   UINT64_C(250000000)

/* Bytes that closing this channel would give back. */
static uint64_t holding(const domus_channel *channel, uint64_t in_kernel)
{
    uint64_t sockets = channel->io->pressure.counts_sockets ? in_kernel : 0;

    return channel->cost + channel->copied + sockets;
}

static void remember(domi_sweep *sweep, const domus_channel *channel, uint64_t bytes)
{
    uint32_t at = sweep->worst_count;

    if (at == DOMI_WORST_MAX && sweep->worst[at - 1].bytes >= bytes)
        return;
    if (at < DOMI_WORST_MAX)
        sweep->worst_count++;
    else
        at--;
    for (; at != 0 && sweep->worst[at - 1].bytes < bytes; at--)
        sweep->worst[at] = sweep->worst[at - 1];
    sweep->worst[at] = (domi_worst){channel->slot, channel->generation, bytes};
}

static void look_at_peer(domus_channel *channel)
{
    domi_io *io = channel->io;
    uint64_t in_kernel = domi_socket_bytes(channel->fd, SIOCOUTQ);
    uint64_t taken = channel->sent_bytes - in_kernel;
    uint64_t waiting = in_kernel + channel->queued_bytes;
    /* Below zero while a send has given bytes to the kernel and its completion is not reaped. */
    int64_t progress = (int64_t)(taken - channel->peer_took);

    /* What was seen before this thread became careful is too old to count from. */
    if (waiting == 0 || progress > (int64_t)(waiting / TAKES_LEAST) ||
        channel->peer_seen_ns < io->sweep.begun_ns) {
        channel->peer_took = taken;
        channel->peer_seen_ns = io->manager->now_ns;
        return;
    }
    uint64_t bytes = holding(channel, in_kernel);
    if (bytes != 0 &&
        io->manager->now_ns - channel->peer_seen_ns >= io->config->memory.reset_after_ns)
        remember(&io->sweep, channel, bytes);
}

static void visit(domus_channel *channel)
{
    if (channel->state == DOMI_CHANNEL_OPEN) {
        domi_channel_pressure(channel);
        if (channel->io->careful && !channel->once)
            domi_channel_end_receive(channel);
        domi_channel_settle(channel);
    }
    if (channel->state <= DOMI_CHANNEL_FLUSHING)
        look_at_peer(channel);
}

/* Long answers are refused; that begins here, and is over an eighth of the bound below. */
static bool is_crammed(domi_io *io, uint64_t queued)
{
    uint64_t queue_max = io->pressure.queue_max;

    if (queued >= domi_queue_mark(queue_max))
        io->sweep.is_clearing = true;
    else if (queued <= domi_queue_mark(queue_max) - queue_max / 8)
        io->sweep.is_clearing = false;
    return io->sweep.is_clearing;
}

static bool is_to_shed(domi_io *io, uint64_t queued)
{
    /* Relaxed: a number of bytes that guards nothing. */
    return is_crammed(io, queued) ||
           (io->shared != NULL &&
            atomic_load_explicit(&io->shared->excess, memory_order_relaxed) > 0);
}

/* Relaxed, all: numbers that guard nothing. */
static void shed(domi_io *io, domus_channel *channel, uint64_t bytes)
{
    domi_counter_add(&io->counters.shed, 1);
    if (io->shared != NULL) {
        atomic_fetch_sub_explicit(&io->shared->excess, (int64_t)bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&io->shared->shed, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&io->shared->shed_bytes, bytes, memory_order_relaxed);
    }
    domi_channel_count_cut(channel, 0);
    domi_channel_shut(channel, -ENOBUFS, true);
}

/* The worst first. What they have queued is free only when their sends have ended, so it is taken
 * off here. Returns whether more would have to go. */
static bool shed_worst(domi_io *io)
{
    domi_sweep *sweep = &io->sweep;
    uint64_t queued = domi_io_queued(io);
    uint32_t count = 0;

    for (uint32_t i = 0; i < sweep->worst_count && is_to_shed(io, queued); i++) {
        const domi_worst *worst = &sweep->worst[i];
        domus_channel *channel = io->slots[worst->slot].channel;

        if (channel == NULL || channel->generation != worst->generation ||
            channel->state > DOMI_CHANNEL_FLUSHING)
            continue; /* closed since it was looked at */
        queued -= channel->cost + channel->copied;
        shed(io, channel, worst->bytes);
        count++;
    }
    sweep->worst_count = 0;
    return count != 0 && is_to_shed(io, queued);
}

static bool stays_careful(const domi_io *io)
{
    return io->pressure.pauses || io->pressure.spares ||
           domi_io_queued(io) > io->careful_mark - io->careful_mark / 4;
}

/* Returns after how long to go on; 0: not. */
static uint64_t end_pass(domi_io *io)
{
    bool was_careful = io->careful;
    bool has_more = shed_worst(io);

    io->sweep.next = 0;
    io->careful = was_careful && stays_careful(io);
    if (io->careful)
        return has_more ? DOMI_WHEEL_TICK_NS : PASS_EVERY_NS;
    /* Once more through all: what was paused by what is over now goes on. */
    return was_careful ? DOMI_WHEEL_TICK_NS : 0;
}

void domi_io_sweep(domi_io *io)
{
    domi_sweep *sweep = &io->sweep;
    uint64_t again_ns = DOMI_WHEEL_TICK_NS;

    for (uint32_t visits = 0; sweep->next < io->slots_used && visits < VISITS_PER_TICK; visits++) {
        domus_channel *channel = io->slots[sweep->next++].channel;
        if (channel != NULL)
            visit(channel);
    }
    if (sweep->next >= io->slots_used)
        again_ns = end_pass(io);
    if (again_ns != 0)
        domi_wheel_arm(&io->wheel, &sweep->timer.node, io->manager->now_ns + again_ns);
}

void domi_io_sweep_stop(domi_io *io)
{
    domi_wheel_cancel(&io->wheel, &io->sweep.timer.node);
    io->careful = false;
    io->sweep.next = io->sweep.worst_count = 0;
}
