/* Lets the library of a stage reach its state. Owner thread. */
#include "io/pipelines/pipe.h"

void *domus_channel_stage_state(domus_stack *stack, domus_channel *channel,
                                const domus_stage *stage)
{
    if (domi_stack_house(stack) != channel->house || channel->pipe == NULL)
        return NULL;
    return domi_wire_state_of(channel->pipe->wire, stage);
}
