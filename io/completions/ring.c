/* Enters and reaps the ring of a thread, and gives each completion to its owner, which follows from
 * the kind of the operation. A failed ring is not used any more, and a thread that waits is woken
 * by its wake descriptor alone. */
#include "io/completions/ring.h"

#include "base/check.h"
#include "io/acceptors/acceptors.h"
#include "io/channels/complete.h"
#include "io/completions/descriptor.h"
#include "io/completions/file.h"
#include "io/connectors/connect.h"
#include "io/datagrams/datagrams.h"

#include <errno.h>

/* wait between two tries to enter the ring when the kernel has no room, in nanoseconds; without it
 * the loop would retry without a pause */
#define REFUSED_WAIT_NS UINT64_C(1000000)

void domi_io_arm_wake_poll(domi_io *io, bool again)
{
    if (io->wake_armed && !again)
        return;
    if (again)
        io->backend->cancel(io->ring, io->wake_fd, domi_op_user_data(DOMI_OP_WAKE, 0, 0),
                            DOMI_OP_IGNORED);
    io->backend->poll(io->ring, io->wake_fd, domi_op_user_data(DOMI_OP_WAKE, 0, 0));
    io->wake_armed = true;
}

static void handle_failed_enter(domi_io *io, int error)
{
    if (error != -EBUSY && error != -EAGAIN && error != -ENOMEM) {
        io->failed = error;
        return;
    }
    domi_counter_add(&io->counters.enters_refused, 1);
    io->refusals++;
    /* if completions wait, the next reap makes room, and no wait is needed */
    if (!io->backend->ready(io->ring))
        io->backend->sockets->pause(io->ring, REFUSED_WAIT_NS);
}

static inline void handle_or_clear_enter_failure(domi_io *io, int result)
{
    if (DOMI_UNLIKELY(result != 0))
        handle_failed_enter(io, result);
    else
        io->refusals = 0;
}

void domi_io_enter_ring(domi_io *io, uint32_t min_complete, uint64_t timeout_ns)
{
    if (DOMI_UNLIKELY(io->failed != 0)) {
        if (min_complete != 0)
            io->backend->sockets->wake_wait(io->ring, io->wake_fd, timeout_ns);
        return;
    }
    io->sends_queued = false;
    domi_counter_add(&io->counters.enters, 1);
    handle_or_clear_enter_failure(io, io->backend->enter(io->ring, min_complete, timeout_ns));
}

static void give_completion_to_owner(domi_io *io, const domi_completion *completion)
{
    enum domi_op op = (enum domi_op)(completion->user_data >> 56);

    switch (op) {
    case DOMI_OP_RECEIVE:
    case DOMI_OP_SEND:
    case DOMI_OP_CANCEL:
        domi_channel_handle_completion(io, op, completion);
        break;
    case DOMI_OP_ACCEPT:
    case DOMI_OP_CANCEL_ACCEPT:
        domi_acceptor_handle_completion(io, op, completion);
        break;
    case DOMI_OP_DESCRIPTOR:
        domi_descriptor_handle_poll_result(
            io, (domi_descriptor *)(uintptr_t)(completion->user_data & DOMI_OP_ADDRESS),
            completion->result);
        break;
    case DOMI_OP_CONNECT:
        domi_connect_handle_poll_of_attempt(
            io, (domi_attempt *)(uintptr_t)(completion->user_data & DOMI_OP_ADDRESS),
            completion->result);
        break;
    case DOMI_OP_DATAGRAM:
        domi_datagram_handle_send_result(
            (domi_datagram *)(uintptr_t)(completion->user_data & DOMI_OP_ADDRESS),
            completion->result);
        break;
    case DOMI_OP_ROOM:
        domi_datagrams_send_after_poll(io, completion);
        break;
    case DOMI_OP_FILE:
        domi_file_handle_try_result(
            io, (domi_file_try *)(uintptr_t)(completion->user_data & DOMI_OP_ADDRESS),
            completion->result);
        break;
    case DOMI_OP_WAKE:
        io->wakes++;
        if ((completion->flags & DOMI_MORE) == 0 && completion->result != -ECANCELED)
            io->wake_armed = false;
        break;
    }
}

/* Reap completions of the ring and give each to its owner. They are copied out of the ring first,
 * because the handling of one queues operations, which may submit. */
static uint32_t reap_and_dispatch_completions(domi_io *io)
{
    domi_completion completions[DOMI_COMPLETIONS_BATCH];
    uint32_t limit = io->config->io.completions_per_poll;
    uint32_t total = 0;

    while (total < limit) {
        uint32_t most =
            limit - total < DOMI_COMPLETIONS_BATCH ? limit - total : DOMI_COMPLETIONS_BATCH;
        uint32_t count = io->backend->reap(io->ring, completions, most);
        for (uint32_t i = 0; i < count; i++)
            give_completion_to_owner(io, &completions[i]);
        total += count;
        if (count < most)
            break;
    }
    if (total != 0)
        domi_counter_add(&io->counters.completions, total);
    return total;
}

bool domi_io_enter_ring_if_useful(domi_io *io)
{
    if (io->failed != 0 || io->backend->ready(io->ring) || !io->backend->pending(io->ring))
        return false;
    domi_io_enter_ring(io, 0, 0);
    return true;
}

bool domi_io_carry_out_queued_sends(domi_io *io)
{
    if (!io->sends_queued || io->failed != 0 || io->backend->submit == NULL)
        return false;
    io->sends_queued = false;
    handle_or_clear_enter_failure(io, io->backend->submit(io->ring));
    return true;
}

uint32_t domi_io_reap_completions(domi_io *io)
{
    uint32_t count =
        io->failed == 0 && io->backend->ready(io->ring) ? reap_and_dispatch_completions(io) : 0;

    domi_io_publish_freed_buffers(io);
    return count;
}

/* Enter and reap the ring until nothing comes. Buffers that come back meanwhile are published only
 * at the end, so this reaps at most as many bytes as the free buffers hold: a peer that sends
 * faster than this thread reads cannot keep it here. */
bool domi_io_enter_and_reap_all(domi_io *io, uint32_t limit, uint32_t *ret_taken)
{
    uint32_t taken = 0;
    bool more = true;

    for (uint32_t enters = 0; more && taken < limit && enters < limit; enters++) {
        domi_io_enter_ring(io, 0, 0);
        uint32_t count = io->failed == 0 ? reap_and_dispatch_completions(io) : 0;
        taken += count;
        more = io->failed == 0 && (count != 0 || io->backend->pending(io->ring));
        if (io->refusals != 0 && count == 0)
            break; /* the kernel has no room now, and the next iteration tries again */
    }
    domi_io_publish_freed_buffers(io);
    *ret_taken = taken;
    return !more;
}

void domi_io_publish_freed_buffers(domi_io *io)
{
    if (io->unpublished == 0)
        return;
    io->unpublished = 0;
    io->backend->publish(io->ring);
}
