/* Changes of the pipeline of an open channel, between two messages. Owner thread. */
#ifndef DOMI_IO_PIPELINES_CHANGE_H
#define DOMI_IO_PIPELINES_CHANGE_H

#include "io/pipelines/pipe.h"

/* True if a change waits, and all requests before it are answered, with their bodies. */
static inline bool domi_pipe_change_is_due(const domi_pipe *pipe)
{
    return pipe->change != NULL && domi_pipe_requests(pipe) == 0 && !pipe->body.open &&
           pipe->channel->state == DOMI_CHANNEL_OPEN;
}

/* Carry out the waiting change, if it is due and no message is in hand. */
void domi_pipe_change(domi_pipe *pipe);

#endif
