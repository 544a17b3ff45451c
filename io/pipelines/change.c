/* Changes the pipeline of a channel at a message boundary.
 *
 * The verb only records the change. It is carried out when the last request before it is answered
 * and no message is in hand: in the run of the channel, or before mail is encoded, if that comes
 * first. So bytes that are sent before leave by the old stages, and these have decoded nothing
 * behind the boundary. */
#include "io/pipelines/life.h"

#include "base/pipeline.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/pipelines/answers.h"

#include <errno.h>

/* True if the peer has sent bytes that were not decoded yet. */
static bool has_undecoded_bytes(const domi_pipe *pipe)
{
    return pipe->channel->inbound.head != NULL || !domi_wire_has_no_undecoded_bytes(pipe->wire);
}

/* True if further messages behind the request of this conversation were decoded. */
static bool has_decoded_messages_behind_request(const domi_pipe *pipe, const domus_stack *stack)
{
    domi_envelope *ask = stack->ask;

    if (ask == NULL || !domi_ask_is_of_peer(ask, pipe->channel->house))
        return false;
    return domi_pipe_number_of_request(ask) != pipe->next - 1;
}

static int may_pipeline_change(const domus_stack *stack, const domus_channel *channel,
                               const domus_pipeline *next, uint32_t flags)
{
    const domi_pipe *pipe = channel->pipe;

    if (domi_stack_get_house(stack) != channel->house)
        return -EPERM;
    if (next == NULL || (flags & ~DOMUS_PIPELINE_CLEAN) != 0 ||
        channel->house->behaviour->pipeline == NULL)
        return -EINVAL;
    if (pipe == NULL || channel->state != DOMI_CHANNEL_OPEN || channel->finished ||
        (pipe->failed && !domi_wire_has_decoded_last_message(pipe->wire)))
        return -EPIPE;
    if (pipe->change != NULL || pipe->held != NULL || channel->asks != 0)
        return -EBUSY;
    return has_decoded_messages_behind_request(pipe, stack) ? -EPERM : domi_pipeline_check(next);
}

int domus_channel_set_pipeline(domus_stack *stack, domus_channel *channel,
                               const domus_pipeline *next, uint32_t flags)
{
    domi_pipe *pipe = channel->pipe;
    int error = may_pipeline_change(stack, channel, next, flags);

    if (error != 0)
        return error;
    bool clean = (flags & DOMUS_PIPELINE_CLEAN) != 0;
    if (clean && !pipe->body.open && has_undecoded_bytes(pipe)) {
        domi_channel_reset_after_error(channel, -EPROTO);
        return -EPROTO;
    }
    pipe->change = next;
    /* a last message of the old protocol does not end the new protocol */
    pipe->failed = false;
    pipe->change_clean = clean;
    pipe->stopped = true;
    if (!pipe->running)
        domi_channel_make_actor_ready(channel);
    return 0;
}

void domi_pipe_change_stages(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;
    const domus_pipeline *next = pipe->change;

    /* a message is still in hand although it was answered in its turn: a handler may write behind
     * the answer */
    if (!domi_pipe_change_is_due(pipe) || pipe->current != NULL || pipe->undone ||
        pipe->wire->made.any)
        return;
    pipe->change = NULL;
    channel->wake_ns = 0; /* the call at this time was wanted by the stage that is removed */
    int error = pipe->change_clean && has_undecoded_bytes(pipe) ? -EPROTO : 0;
    if (error == 0)
        error = domi_wire_change_pipeline(pipe->wire, next);
    if (error != 0) {
        /* The scratch has to be empty, because other channels of the thread use it, too. */
        domi_out_remove_all(pipe->wire->out, false);
        domi_channel_reset_after_error(channel, error);
        return;
    }
    pipe->dry = pipe->asked_last = false;
    channel->wraps = pipe->wire->count > 1;
    channel->says_end = domi_wire_has_end_of_output(pipe->wire);
    if (!domi_out_is_empty(pipe->wire->out))
        (void)domi_pipe_queue_encoded_bytes(pipe);
    if (!pipe->running && channel->state == DOMI_CHANNEL_OPEN)
        domi_channel_make_actor_ready(channel);
}
