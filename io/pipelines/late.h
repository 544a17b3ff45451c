/* The time that the peer of a pipeline has for the rest of a message that has begun.
 *
 * A head has a fixed time (channel.headTimeout). The time for a body grows as the peer sends: each
 * byte adds the time that it takes at channel.bodyRate, up to channel.minRateGrace in stock, so
 * that a burst does not pay for hours of silence. The time for a body stands still while nobody
 * reads it, and all these times stand still while the channel does not receive (receive.c). Nothing
 * here is done for a message that comes as a whole. Owner thread. */
#ifndef DOMI_IO_PIPELINES_LATE_H
#define DOMI_IO_PIPELINES_LATE_H

#include "io/pipelines/pipe.h"

/* True if a run of the pipeline has to end with domi_pipe_update_due_time_of_peer(). */
static inline bool domi_pipe_must_update_due_time(const domi_pipe *pipe)
{
    return pipe->wire->progress >= DOMI_MESSAGE_IN_HEAD || pipe->channel->message_due_ns != 0 ||
           pipe->body.open;
}

/* Find out what the peer still has to send, and set the time that it has for it
 * (channel->message_due_ns). */
void domi_pipe_update_due_time_of_peer(domi_pipe *pipe);

/* True if a drain waits for the rest of a body that does not come in pieces, and whose head had
 * come. (The reader of a body in pieces waits for that body.) */
static inline bool domi_pipe_is_body_awaited(const domi_pipe *pipe)
{
    return pipe->wire->progress == DOMI_MESSAGE_IN_BODY && !pipe->failed && !pipe->has_newer;
}

/* Implement domi_pipe_ways.await_body. When all bytes that had come before the drain were decoded,
 * no later body is awaited: the end of each body may come together with the begin of the next
 * one. */
bool domi_pipe_check_body_awaited_in_drain(domus_channel *channel);

/* Begin the body of `message`, which was just decoded and whose body comes in pieces. A request
 * that a drain does not await (seen_all) is dropped instead, and the channel closes behind the
 * answers before: its reader would wait for the body. Returns whether the message has to be
 * handled. */
bool domi_pipe_begin_body_or_refuse_in_drain(domi_pipe *pipe, domi_envelope *message);

/* Implement is_late and answer_late of domi_pipe_ways. */
bool domi_pipe_is_message_late(domus_channel *channel);
bool domi_pipe_answer_late_peer(domus_channel *channel);

#endif
