/* This file makes the io of a thread, enters and reaps its ring, gives each completion to its
 * owner, fires the timers, and queues the sends. */
#include "io/resources/io.h"

#include "base/check.h"
#include "base/memory.h"
#include "io/acceptors/acceptor.h"
#include "io/channels/channel.h"
#include "io/channels/crowd.h"
#include "io/completions/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SHARES 16u /* a channel may hold 1/16 of the receive buffers */

static int buffers_init(domi_io *io)
{
    uint32_t count = io->config->io.buffers.count;
    uint32_t size = io->config->io.buffers.size_bytes;

    io->memory_bytes = (size_t)count * size;
    io->memory = domi_memory_map(io->memory_bytes);
    io->buffers = domi_memory_new(count * sizeof *io->buffers);
    if (io->memory == NULL || io->buffers == NULL) {
        domi_memory_unmap(io->memory, io->memory_bytes);
        domi_memory_free(io->buffers);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        io->buffers[i] = (domus_buffer){
            .io = io,
            .data = io->memory + (size_t)i * size,
            .index = i,
            .holder_slot = UINT32_MAX,
        };
    }
    io->share = count / SHARES != 0 ? count / SHARES : 1;
    io->reserve = count / 4;
    return 0;
}

int domi_io_init(domi_io *io, domi_manager *manager, const domi_backend *backend, char *error,
                 size_t error_size)
{
    io->manager = manager;
    io->backend = backend;
    io->config = manager->config;
    io->free_slot = UINT32_MAX;
    domi_slab_init(&io->channel_slab, (sizeof(domus_channel) + 63) / 64 * 64, 8, 64u * 1024);
    domi_wheel_init(&io->wheel, manager->now_ns);
    domi_wheel_node_init(&io->shortage_timer.node);
    io->shortage_timer.kind = DOMI_TIMER_SHORTAGE;
    domi_wheel_node_init(&io->sweep.timer.node);
    io->sweep.timer.kind = DOMI_TIMER_SWEEP;
    domi_io_set_bound(io, UINT64_MAX);

    io->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (io->wake_fd < 0) {
        int result = -errno;
        snprintf(error, error_size, "eventfd: %s", strerror(-result));
        return result;
    }
    int result = buffers_init(io);
    if (result != 0) {
        snprintf(error, error_size, "no memory for the receive buffers (io.buffers)");
        goto fail_buffers;
    }
    result = backend->open(io->config, error, error_size, &io->ring);
    if (result != 0)
        goto fail_ring;

    manager->io = io;
    manager->run_channels = domi_channels_run;
    manager->stop_channels = domi_channels_stop;
    manager->conversation_ended = domi_channel_conversation_ended;
    manager->conversation_failed = domi_channel_conversation_failed;
    manager->take_event = domi_channels_handle_event;
    manager->descriptor_handled = domi_descriptor_end_event;
    manager->descriptor_cancel = domi_descriptor_cancel;
    manager->descriptor_noted = domi_descriptor_carry_out_note;
    return 0;

fail_ring:
    domi_memory_unmap(io->memory, io->memory_bytes);
    domi_memory_free(io->buffers);
fail_buffers:
    (void)close(io->wake_fd);
    return result;
}

int domi_io_start(domi_io *io)
{
    int result = io->backend->start(io->ring);

    if (result != 0)
        return result;
    for (uint32_t i = 0; i < io->config->io.buffers.count; i++)
        io->backend->give(io->ring, (uint16_t)i, io->buffers[i].data,
                          io->config->io.buffers.size_bytes);
    io->backend->publish(io->ring);
    io->buffers_free = io->config->io.buffers.count;
    domi_io_arm_wake(io, false);
    return 0;
}

void domi_io_fini(domi_io *io)
{
    io->backend->close(io->ring);
    domi_memory_unmap(io->memory, io->memory_bytes);
    domi_memory_free(io->buffers);
    domi_memory_free(io->slots);
    domi_slab_fini(&io->channel_slab);
    (void)close(io->wake_fd);
}

void domi_io_arm_wake(domi_io *io, bool again)
{
    if (io->wake_armed && !again)
        return;
    if (again)
        io->backend->cancel(io->ring, domi_op_data(DOMI_OP_WAKE, 0, 0), DOMI_OP_IGNORED);
    io->backend->poll(io->ring, io->wake_fd, domi_op_data(DOMI_OP_WAKE, 0, 0));
    io->wake_armed = true;
}

static void complete_channel(domi_io *io, enum domi_op op, const domi_completion *completion)
{
    uint32_t slot = (uint32_t)completion->user_data;
    uint32_t generation = (uint32_t)(completion->user_data >> 32) & DOMI_OP_GENERATION_MASK;

    /* A slot is freed only when nothing is in flight for it, so another generation here is a bug.
     */
    DOMI_CHECK(slot < io->slot_count && io->slots[slot].channel != NULL &&
               io->slots[slot].channel->generation == generation);
    domus_channel *channel = io->slots[slot].channel;
    if (op == DOMI_OP_RECEIVE) {
        domi_channel_handle_receive(channel, completion);
    } else if (op == DOMI_OP_SEND) {
        domi_channel_handle_send(channel, completion);
    } else {
        DOMI_CHECK(channel->cancels > 0);
        channel->cancels--;
        domi_channel_settle(channel);
    }
}

static void complete_acceptor(domi_io *io, enum domi_op op, const domi_completion *completion)
{
    uint32_t slot = (uint32_t)completion->user_data;

    if (slot >= DOMI_ACCEPTORS_MAX)
        return; /* DOMI_OP_IGNORED */
    DOMI_CHECK(io->acceptors[slot] != NULL);
    if (op == DOMI_OP_ACCEPT) {
        domi_acceptor_handle_completion(io->acceptors[slot], completion);
    } else {
        io->acceptors[slot]->cancelling = false;
        domi_acceptor_handle_cancel(io->acceptors[slot]);
    }
}

static void dispatch_completion(domi_io *io, const domi_completion *completion)
{
    enum domi_op op = (enum domi_op)(completion->user_data >> 56);

    switch (op) {
    case DOMI_OP_RECEIVE:
    case DOMI_OP_SEND:
    case DOMI_OP_CANCEL:
        complete_channel(io, op, completion);
        break;
    case DOMI_OP_ACCEPT:
    case DOMI_OP_CANCEL_ACCEPT:
        complete_acceptor(io, op, completion);
        break;
    case DOMI_OP_DESCRIPTOR:
        domi_descriptor_handle_completion(
            io, (domi_descriptor *)(uintptr_t)(completion->user_data & DOMI_OP_ADDRESS),
            completion->result);
        break;
    case DOMI_OP_WAKE:
        io->wakes++;
        if ((completion->flags & DOMI_MORE) == 0 && completion->result != -ECANCELED)
            io->wake_armed = false;
        break;
    }
}

/* Completions are copied out before they are handled, because handling one queues operations, which
 * may submit. */
static uint32_t reap(domi_io *io)
{
    domi_completion completions[DOMI_COMPLETIONS_BATCH];
    uint32_t limit = io->config->io.completions_per_poll;
    uint32_t total = 0;

    while (total < limit) {
        uint32_t most =
            limit - total < DOMI_COMPLETIONS_BATCH ? limit - total : DOMI_COMPLETIONS_BATCH;
        uint32_t count = io->backend->reap(io->ring, completions, most);
        for (uint32_t i = 0; i < count; i++)
            dispatch_completion(io, &completions[i]);
        total += count;
        if (count < most)
            break;
    }
    if (total != 0)
        domi_counter_add(&io->counters.completions, total);
    return total;
}

static void publish(domi_io *io)
{
    if (io->unpublished == 0)
        return;
    io->unpublished = 0;
    io->backend->publish(io->ring);
}

/* The wait between two tries when the kernel has no room; without it the loop would ask without a
 * pause. */
#define REFUSED_WAIT_MS 1

/* Wait to be woken without a ring. The eventfd, which otherwise only the ring polls, is read here,
 * so that it can be waited for again. */
static void wait_without_ring(domi_io *io, uint64_t timeout_ns)
{
    struct pollfd wake = {.fd = io->wake_fd, .events = POLLIN};
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000u),
        .tv_nsec = (long)(timeout_ns % 1000000000u),
    };
    eventfd_t wakes;

    if (ppoll(&wake, 1, &timeout, NULL) > 0)
        (void)eventfd_read(io->wake_fd, &wakes);
}

static void enter_failed(domi_io *io, int error)
{
    if (error != -EBUSY && error != -EAGAIN && error != -ENOMEM) {
        io->failed = error;
        return;
    }
    domi_counter_add(&io->counters.enters_refused, 1);
    io->refusals++;
    if (!io->backend->ready(io->ring)) /* otherwise the next reap makes room */
        (void)poll(NULL, 0, REFUSED_WAIT_MS);
}

void domi_io_enter(domi_io *io, uint32_t min_complete, uint64_t timeout_ns)
{
    if (DOMI_UNLIKELY(io->failed != 0)) {
        if (min_complete != 0)
            wait_without_ring(io, timeout_ns);
        return;
    }
    domi_counter_add(&io->counters.enters, 1);
    int result = io->backend->enter(io->ring, min_complete, timeout_ns);
    if (DOMI_UNLIKELY(result != 0))
        enter_failed(io, result);
    else
        io->refusals = 0;
}

bool domi_io_submit(domi_io *io)
{
    if (io->failed != 0 || io->backend->ready(io->ring) || !io->backend->pending(io->ring))
        return false;
    domi_io_enter(io, 0, 0);
    return true;
}

uint32_t domi_io_reap(domi_io *io)
{
    uint32_t count = io->failed == 0 && io->backend->ready(io->ring) ? reap(io) : 0;

    publish(io);
    return count;
}

/* Buffers that come back meanwhile are published only at the end, so this takes at most as many
 * bytes as the free buffers hold. A peer that sends faster than this thread reads therefore cannot
 * keep it here. */
bool domi_io_collect(domi_io *io, uint32_t limit, uint32_t *ret_taken)
{
    uint32_t taken = 0;
    bool more = true;

    for (uint32_t enters = 0; more && taken < limit && enters < limit; enters++) {
        domi_io_enter(io, 0, 0);
        uint32_t count = io->failed == 0 ? reap(io) : 0;
        taken += count;
        more = io->failed == 0 && (count != 0 || io->backend->pending(io->ring));
        if (io->refusals != 0 && count == 0)
            break; /* the kernel has no room: the next iteration asks again */
    }
    publish(io);
    *ret_taken = taken;
    return !more;
}

void domi_io_refresh_activity(domi_io *io, uint64_t since_ns)
{
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        domus_channel *channel = io->slots[slot].channel;
        if (channel != NULL && channel->active_ns == since_ns)
            channel->active_ns = io->manager->now_ns;
    }
}

/* Let as many starved channels receive as there are free buffers. A channel that finds none again
 * goes to the end of the queue. */
static void feed_starved(domi_io *io)
{
    uint32_t fed = 0;

    while (io->starved_head != NULL && fed < io->buffers_free) {
        domus_channel *channel = io->starved_head;

        io->starved_head = channel->next_starved;
        channel->starved = false;
        domi_channel_settle(channel);
        fed++;
    }
}

static void fire_timer(domi_io *io, domi_wheel_node *node)
{
    domi_io_timer *timer = (domi_io_timer *)(void *)node;

    switch (timer->kind) {
    case DOMI_TIMER_CHANNEL:
        domi_channel_handle_timer(
            (domus_channel *)(void *)((char *)timer - offsetof(domus_channel, timer)));
        break;
    case DOMI_TIMER_ACCEPTOR:
        domi_acceptor_handle_timer(
            (domi_acceptor *)(void *)((char *)timer - offsetof(domi_acceptor, timer)));
        break;
    case DOMI_TIMER_SWEEP:
        domi_io_sweep(io);
        break;
    case DOMI_TIMER_SHORTAGE:
        domi_shortages_handle_timer(
            (domi_io *)(void *)((char *)timer - offsetof(domi_io, shortage_timer)));
        break;
    }
}

/* Collect everything that had arrived by now, if a timer is due. Otherwise a thread that was held
 * up would take a peer for silent while the bytes of the peer wait in the ring. Returns false if
 * the timers have to wait for the next iteration, because a flood brought more than one iteration
 * takes; this happens at most DOMI_POSTPONED_MAX times in a row. */
static bool collect_before_timers(domi_io *io, uint32_t *ret_taken)
{
    if (domi_wheel_next_ns(&io->wheel) > io->manager->now_ns)
        return true;
    if (domi_io_collect(io, io->config->io.completion_entries, ret_taken) ||
        ++io->postponed == DOMI_POSTPONED_MAX)
        io->postponed = 0;
    return io->postponed == 0;
}

static uint32_t fire_timers(domi_io *io)
{
    uint32_t done = 0;

    domi_wheel_advance(&io->wheel, io->manager->now_ns);
    for (domi_wheel_node *node = domi_wheel_take(&io->wheel); node != NULL;
         node = domi_wheel_take(&io->wheel)) {
        fire_timer(io, node);
        done++;
    }
    return done;
}

uint32_t domi_io_fire_timers(domi_io *io)
{
    uint32_t done = 0;

    if (collect_before_timers(io, &done))
        done += fire_timers(io);

    if (io->draining)
        domi_io_look_at_draining(io);
    return done;
}

uint32_t domi_io_queue_sends(domi_io *io)
{
    uint32_t count = 0;

    publish(io);
    feed_starved(io);
    domi_io_feed_crowd(io);
    while (io->dirty != NULL) {
        domus_channel *channel = io->dirty;

        io->dirty = channel->next_dirty;
        channel->dirty = false;
        domi_channel_send(channel);
        domi_channel_settle(channel);
        count++;
    }
    return count;
}

bool domi_io_has_work(const domi_io *io)
{
    return (io->failed == 0 && io->backend->ready(io->ring)) || io->dirty != NULL ||
           io->unpublished != 0 || io->crowd_left != 0 ||
           (io->starved_head != NULL && io->buffers_free != 0);
}

/* Channels that have to read less from now on are found by the sweep, or when something comes for
 * them; channels that may read more are found by the last pass of the sweep. */
void domi_io_set_pressure(domi_io *io, const domi_io_pressure *now)
{
    bool begins = now->pauses && !io->pressure.pauses;

    if (io->draining)
        return;
    if (now->queue_max != io->pressure.queue_max)
        domi_io_set_bound(io, now->queue_max);
    io->pressure = *now;
    if ((now->pauses || now->spares) && !io->careful)
        domi_io_receive_carefully(io);
    if (!begins)
        return;
    domi_counter_add(&io->counters.pressed, 1);
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL)
            domi_acceptor_look_at_pressure(io->acceptors[i]);
    }
}

/* A drain reads everything that has come, however little memory there is. */
void domi_io_end_shortage(domi_io *io)
{
    domi_io_set_pressure(io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    domi_io_sweep_stop(io);
    io->crowd_left = io->crowd_count;
}

void domi_io_fail(domi_io *io)
{
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] != NULL)
            domi_acceptor_fail(io->acceptors[i]);
    }
    domi_descriptors_fail(io);
    for (uint32_t slot = 0; slot < io->slots_used; slot++) {
        if (io->slots[slot].channel != NULL)
            domi_channel_fail(io->slots[slot].channel, io->failed);
    }
}
