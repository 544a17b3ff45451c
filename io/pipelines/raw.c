/* Sends bytes of channels with a pipeline that belong to no message (hooks.h). */
#include "io/pipelines/hooks.h"

#include "house/conversation/asks.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/send.h"
#include "io/channels/verbs.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/late.h"
#include "io/pipelines/life.h"
#include "io/pipelines/mail.h"

#include <errno.h>

static int write_bytes_of_actor(domus_channel *channel, const void *data, size_t size,
                                domus_slice slice)
{
    domi_pipe *pipe = channel->pipe;
    int error = domi_channel_check_may_write(channel, data != NULL ? size : slice.size);

    if (error != 0 || pipe == NULL) /* when on_mount is called, the stages are not open yet */
        return error != 0 ? error : -EPIPE;
    if (pipe->change != NULL)
        domi_pipe_change_stages(pipe);
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EPIPE; /* the change of the pipeline that was due has reset the channel */
    error = data != NULL ? domi_wire_append_bytes_of_owner(pipe->wire, data, size)
                         : domi_wire_append_slice_of_owner(pipe->wire, slice);
    if (error != 0 && pipe->wire->broken != 0)
        domi_channel_reset_after_error(channel, error);
    return error != 0 ? error : domi_pipe_queue_encoded_bytes(pipe);
}

static int queue_end_of_output_of_stages(domus_channel *channel)
{
    domi_pipe *pipe = channel->pipe;
    int error = domi_wire_append_end_of_output(pipe->wire);

    if (error == 0 && !domi_out_is_empty(pipe->wire->out))
        error = domi_pipe_queue_encoded_bytes(pipe);
    return error;
}

static int wake_message_stage_and_queue_output(domus_channel *channel, bool owed)
{
    domi_pipe *pipe = channel->pipe;
    int error = domi_wire_call_wake_of_stage(pipe->wire, owed);

    if (error == 0 && !domi_out_is_empty(pipe->wire->out))
        error = domi_pipe_queue_encoded_bytes(pipe);
    if (pipe->writers != NULL) /* the stage may have made room for a write that waits */
        domi_channel_make_actor_ready(channel);
    return error;
}

static void cancel_kept_asks_of_peer(domus_channel *channel)
{
    domi_stack_cancel_kept_requests_of_peer(channel->io->manager, channel->house,
                                            channel->pipe->holder);
}

const domi_pipe_ways domi_ways_of_pipes = {.write = write_bytes_of_actor,
                                           .end_output = queue_end_of_output_of_stages,
                                           .wake = wake_message_stage_and_queue_output,
                                           .is_late = domi_pipe_is_message_late,
                                           .answer_late = domi_pipe_answer_late_peer,
                                           .cancel_kept = cancel_kept_asks_of_peer,
                                           .await_body = domi_pipe_check_body_awaited_in_drain};

int domus_channel_send(domus_stack *stack, domus_channel *channel, const domus_type *type,
                       const void *payload)
{
    domi_pipe *pipe = channel->pipe;

    if (!domi_channel_may_be_used_by(stack, channel))
        return -EPERM;
    if (channel->house->behaviour->pipeline == NULL)
        return -EINVAL;
    if (pipe == NULL)
        return -EPIPE;
    if (pipe->change != NULL)
        domi_pipe_change_stages(pipe);
    return pipe->change == NULL ? domi_pipe_send_notice(pipe, type, payload) : -EBUSY;
}
