/* Calls the stages of outer channels at the end of phase 2, when their inner channels have run: so
 * the bytes that many inner channels have queued leave in one piece. */
#include "io/inner/inner.h"

#include "io/channels/ends.h"
#include "io/channels/state.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/mail.h"

static void call_carrying_stage_of_channel(domus_channel *channel)
{
    domi_pipe *pipe = channel->pipe;

    if (channel->state != DOMI_CHANNEL_OPEN || pipe == NULL)
        return;
    int error = domi_wire_call_carry_of_stage(pipe->wire);
    if (error != 0)
        domi_channel_reset_after_error(channel, error);
    else if (!domi_out_is_empty(pipe->wire->out))
        (void)domi_pipe_queue_encoded_bytes(pipe);
    if (channel->lends && channel->state == DOMI_CHANNEL_OPEN)
        /* inner channels that were busy may be free for a waiting ask now */
        domi_pipe_send_waiting_asks(channel->io->manager, pipe);
    if (channel->lends && pipe->asked_last && channel->carried == 0)
        (void)domi_channel_close(channel);
    if (channel->drain)
        /* the run of the outer channel's actor finds out whether its drain is over */
        domi_channel_make_actor_ready(channel);
    if (channel->close_due && domi_channel_has_answered_all(channel))
        (void)domi_channel_close(channel);
}

void domi_io_call_carrying_stages(domi_io *io)
{
    while (io->carriers != NULL) {
        domus_channel *channel = io->carriers;

        io->carriers = channel->next_carrier;
        channel->carry_due = false;
        call_carrying_stage_of_channel(channel);
        domi_channel_take_due_steps(channel);
    }
}
