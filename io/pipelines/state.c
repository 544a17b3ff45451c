/* Implements domus_channel_stage_state(), by which the library of a stage reaches its state, also
 * that of an outer channel. Owner thread. */
#include "io/pipelines/pipe.h"

void *domus_channel_stage_state(domus_stack *stack, domus_channel *channel,
                                const domus_stage *stage)
{
    if (domi_stack_get_house(stack) != channel->house || channel->pipe == NULL)
        return NULL;
    void *state = domi_wire_get_state_of_stage(channel->pipe->wire, stage);
    if (state != NULL || !domi_channel_is_inner(channel))
        return state;
    const domus_channel *outer = channel->special->outer;
    return outer != NULL && outer->pipe != NULL
               ? domi_wire_get_state_of_stage(outer->pipe->wire, stage)
               : NULL;
}
