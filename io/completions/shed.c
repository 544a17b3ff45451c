/* The sweep of a careful thread (crowd.h). In each tick it visits some of its channels, ends
 * receives that would bring more than one piece, and records which peers acknowledge bytes.
 *
 * A peer is deaf if bytes wait for it and if for memory.resetAfter it has acknowledged at most a
 * sixteenth of those that wait. A byte now and then must not be enough, because otherwise many
 * peers that take a byte in time could hold all the memory. SIOCOUTQ tells how much was
 * acknowledged; the completion of a send does not, because a send to a slow peer may just take
 * long.
 *
 * Each pass remembers the deaf channels that hold most. At its end these are reset, the largest
 * first, while the library is above its budget or so much is queued here that long answers are
 * refused. So the work of one tick is bounded, and no list has to be kept in order in normal
 * times. */
#include "io/completions/tick.h"

#include "io/channels/crowd.h"
#include "io/channels/ends.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#define VISITS_PER_TICK 256u /* most slots of channels that one step of the sweep visits */
/* divisor: a peer that has acknowledged more than 1/16 of its waiting bytes is not deaf */
#define TAKES_LEAST 16u
/* time from the end of one pass of the sweep to the next, in nanoseconds */
#define PASS_EVERY_NS UINT64_C(250000000)

/* Returns the number of bytes that a reset of this channel would give back. */
static uint64_t count_bytes_freed_by_reset(const domus_channel *channel, uint64_t in_kernel)
{
    uint64_t sockets = channel->io->pressure.counts_sockets ? in_kernel : 0;

    return channel->cost + channel->copied + sockets;
}

static void remember_if_among_largest_channels(domi_sweep *sweep, const domus_channel *channel,
                                               uint64_t bytes)
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
    sweep->worst[at] = (domi_worst){channel->slot, channel->slot_generation, bytes};
}

static void check_whether_peer_is_deaf(domus_channel *channel)
{
    domi_io *io = channel->io;
    uint64_t in_kernel = domi_socket_count_bytes_in_kernel(io, channel->fd, SIOCOUTQ);
    uint64_t taken = channel->sent_bytes - in_kernel;
    uint64_t waiting = in_kernel + channel->queued_bytes;
    /* `progress` is negative while a send has given bytes to the kernel and its completion was not
     * reaped yet. */
    int64_t progress = (int64_t)(taken - channel->peer_took);

    /* The observation of the peer begins again: no bytes wait, or the peer made progress, or the
     * last observation is older than the time at which this thread became careful. */
    if (waiting == 0 || progress > (int64_t)(waiting / TAKES_LEAST) ||
        channel->peer_seen_ns < io->sweep.begun_ns) {
        channel->peer_took = taken;
        channel->peer_seen_ns = io->manager->now_ns;
        return;
    }
    uint64_t bytes = count_bytes_freed_by_reset(channel, in_kernel);
    if (bytes != 0 &&
        io->manager->now_ns - channel->peer_seen_ns >= io->config->memory.reset_after_ns)
        remember_if_among_largest_channels(&io->sweep, channel, bytes);
}

/* Apply the present shortage of memory to one channel that the sweep visits. */
static void apply_memory_shortage_to_channel(domus_channel *channel)
{
    if (channel->state == DOMI_CHANNEL_OPEN) {
        domi_channel_decide_whether_to_receive(channel);
        if (channel->io->careful && !channel->once)
            domi_channel_end_receive(channel);
        domi_channel_take_due_steps(channel);
    }
    if (channel->state <= DOMI_CHANNEL_FLUSHING && channel->special == NULL)
        check_whether_peer_is_deaf(channel);
}

/* Update whether the thread refuses long answers, and return it. The refusal begins at the mark
 * (crowd.h), and ends when an eighth of the bound less is queued. */
static bool update_refusal_of_long_answers(domi_io *io, uint64_t queued)
{
    uint64_t queue_max = io->pressure.queue_max;

    if (queued >= domi_io_mark_for_small_answers_only(queue_max))
        io->sweep.is_clearing = true;
    else if (queued <= domi_io_mark_for_small_answers_only(queue_max) - queue_max / 8)
        io->sweep.is_clearing = false;
    return io->sweep.is_clearing;
}

/* True if a channel has to be reset to free memory. */
static bool must_channels_be_shed(domi_io *io, uint64_t queued)
{
    /* Relaxed: the number of bytes over the budget publishes no other data. */
    return update_refusal_of_long_answers(io, queued) ||
           (io->shared != NULL &&
            atomic_load_explicit(&io->shared->excess, memory_order_relaxed) > 0);
}

/* Reset a deaf channel to get its memory back. The additions are relaxed, because the counted
 * numbers publish no other data. */
static void shed_channel(domi_io *io, domus_channel *channel, uint64_t bytes)
{
    domi_counter_add(&io->counters.channels_shed, 1);
    if (io->shared != NULL) {
        atomic_fetch_sub_explicit(&io->shared->excess, (int64_t)bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&io->shared->shed, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&io->shared->shed_bytes, bytes, memory_order_relaxed);
    }
    domi_channel_count_as_cut(channel, 0);
    domi_channel_end_at_once(channel, -ENOBUFS, true);
}

/* Shed (reset) the channels that the pass has remembered, the largest first. Their queued bytes are
 * free only when their sends have ended, so they are subtracted from a local copy here. A pass that
 * remembered no channel calls must_channels_be_shed(), too, because that also finds out when the
 * queued bytes have fallen below the mark. Returns whether more channels have to be shed. */
static bool shed_remembered_channels(domi_io *io)
{
    domi_sweep *sweep = &io->sweep;
    uint64_t queued = domi_io_count_queued_bytes(io);
    uint32_t count = 0;
    bool more = must_channels_be_shed(io, queued);

    for (uint32_t i = 0; i < sweep->worst_count && more; i++) {
        const domi_worst *worst = &sweep->worst[i];
        domus_channel *channel = io->slots[worst->slot].channel;

        if (channel == NULL || channel->slot_generation != worst->generation ||
            channel->state > DOMI_CHANNEL_FLUSHING)
            continue; /* this channel was closed after the sweep had visited it */
        /* less memory is freed where pages wait for other channels, too: then the next pass sheds
         * more */
        uint64_t freed = channel->cost + channel->copied;
        queued -= freed < queued ? freed : queued;
        shed_channel(io, channel, worst->bytes);
        more = must_channels_be_shed(io, queued);
        count++;
    }
    sweep->worst_count = 0;
    return count != 0 && more;
}

/* True if the thread has to stay careful (io/channels/crowd.h), because much is still queued for
 * peers or memory is still short. */
static bool must_thread_stay_careful(const domi_io *io)
{
    return io->pressure.pauses || io->pressure.spares ||
           domi_io_count_queued_bytes(io) > io->careful_mark - io->careful_mark / 4;
}

/* End a pass of the sweep over all channels. Returns the time until the next step, in nanoseconds;
 * 0: there is none. */
static uint64_t end_pass_of_sweep(domi_io *io)
{
    bool was_careful = io->careful;
    bool has_more = shed_remembered_channels(io);

    io->sweep.next = 0;
    io->careful = was_careful && must_thread_stay_careful(io);
    if (io->careful)
        return has_more ? DOMI_WHEEL_TICK_NS : PASS_EVERY_NS;
    /* One more pass of the sweep visits all channels, so that channels whose reason to pause is
     * over go on. */
    return was_careful ? DOMI_WHEEL_TICK_NS : 0;
}

void domi_io_take_step_of_sweep(domi_io *io)
{
    domi_sweep *sweep = &io->sweep;
    uint64_t again_ns = DOMI_WHEEL_TICK_NS;

    for (uint32_t visits = 0; sweep->next < io->slots_used && visits < VISITS_PER_TICK; visits++) {
        domus_channel *channel = io->slots[sweep->next++].channel;
        if (channel != NULL)
            apply_memory_shortage_to_channel(channel);
    }
    if (sweep->next >= io->slots_used)
        again_ns = end_pass_of_sweep(io);
    if (again_ns != 0)
        domi_wheel_arm_node(&io->wheel, &sweep->timer.node, io->manager->now_ns + again_ns);
}

void domi_io_stop_sweep(domi_io *io)
{
    domi_wheel_disarm_node(&io->wheel, &io->sweep.timer.node);
    io->careful = false;
    io->sweep.next = io->sweep.worst_count = 0;
}
