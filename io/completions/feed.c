/* The end of phase 2: buffers that came back go to the kernel, starved and crowded channels read
 * again, and each channel with bytes to send sends them. */
#include "io/completions/tick.h"

#include "io/channels/crowd.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/completions/ring.h"
#include "io/inner/inner.h"
#include "io/pipelines/time.h"

#define CROWDED_VISITS 16u /* most crowded channels that are checked in one iteration */

/* Let as many channels that starve for a receive buffer receive as there are free buffers. A
 * channel that again finds no buffer goes to the end of the queue. */
static void resume_starved_channels(domi_io *io)
{
    uint32_t fed = 0;

    while (io->starved.head != NULL && fed < domi_io_count_free_buffers(io)) {
        domus_channel *channel = domi_starved_take(&io->starved);

        channel->starved = false;
        domi_channel_take_due_steps(channel);
        fed++;
    }
}

/* Check some crowded channels again, if bytes were freed since their last check. (A channel is
 * crowded, and not read, if it has more queued than its part of what the thread may queue:
 * io/channels/crowd.h.) */
static void let_crowded_channels_read(domi_io *io)
{
    for (uint32_t visits = 0; io->crowd_left != 0 && visits < CROWDED_VISITS; visits++) {
        domus_channel *channel = domi_io_take_next_crowded_channel(io);

        domi_channel_decide_whether_to_receive(channel);
        domi_channel_wake_writer_of_answer(channel);
        domi_channel_take_due_steps(channel);
    }
}

/* Let each channel in the list io->dirty send its queued bytes. Returns the number of these
 * channels. */
static uint32_t send_queued_bytes_of_dirty_channels(domi_io *io)
{
    uint32_t count = 0;

    while (io->dirty != NULL) {
        domus_channel *channel = io->dirty;

        io->dirty = channel->next_dirty;
        channel->dirty = false;
        domi_channel_send_waiting_bytes(channel);
        domi_channel_take_due_steps(channel);
        count++;
    }
    return count;
}

uint32_t domi_io_resume_reads_and_queue_sends(domi_io *io)
{
    uint32_t count;

    domi_io_publish_freed_buffers(io);
    resume_starved_channels(io);
    let_crowded_channels_read(io);
    if (io->stages.begun_ns != 0)
        domi_stages_end_time_of_phase(io);
    count = send_queued_bytes_of_dirty_channels(io);
    /* stages of outer channels send the bytes that inner channels have queued */
    while (DOMI_UNLIKELY(io->carriers != NULL)) {
        domi_io_call_carrying_stages(io);
        count += send_queued_bytes_of_dirty_channels(io);
    }
    io->sends_queued = io->sends_queued || count != 0;
    return count;
}

bool domi_io_has_work_before_park(const domi_io *io)
{
    return (io->failed == 0 && io->backend->ready(io->ring)) || io->dirty != NULL ||
           io->carriers != NULL || io->unpublished != 0 || io->crowd_left != 0 ||
           (io->starved.head != NULL && domi_io_count_free_buffers(io) != 0);
}
