/* The life of a pipeline: it begins and ends with its channel, comes to terms with the peer, and
 * may change between two messages. Owner thread. */
#ifndef DOMI_IO_PIPELINES_LIFE_H
#define DOMI_IO_PIPELINES_LIFE_H

#include "io/pipelines/pipe.h"

/* ---- open.c -----------------------------------------------------------------------------------*/

/* The begin of a channel's pipeline, and its end with the channel. Owner thread. */

/* Make the pipeline of a channel that opens, and open its stages. Returns 0; a negative errno. */
int domi_pipe_open(domus_channel *channel);

/* Free the pipeline of a channel whose connection is gone, and end all that waits for that
 * connection. */
void domi_pipe_end_and_free(domus_channel *channel);

/* ---- terms.c ----------------------------------------------------------------------------------*/

/* The end of the handshake between the stages of a channel and its peer. Owner thread. */

/* Send the asks that have waited for the end of the handshake. The number of asks that the
 * connection may have is now known, so its pool handles its waiting asks again: it may have made no
 * other connection for them. */
void domi_pipe_send_asks_after_handshake(domi_manager *manager, domi_pipe *pipe);

/* ---- change.c ---------------------------------------------------------------------------------*/

/* Changes of the pipeline of an open channel, between two messages. Owner thread. */

/* True if a change of the pipeline waits, and all requests before it are answered, with their
 * bodies. */
static inline bool domi_pipe_change_is_due(const domi_pipe *pipe)
{
    return pipe->change != NULL && domi_pipe_count_requests(pipe) == 0 && !pipe->body.open &&
           pipe->channel->state == DOMI_CHANNEL_OPEN;
}

/* Carry out the waiting change of the pipeline, if it is due and no message is in hand. */
void domi_pipe_change_stages(domi_pipe *pipe);

#endif
