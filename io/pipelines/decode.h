/* Messages of the peer are decoded and handled, within the run of the channel's actor.
 * Owner thread. */
#ifndef DOMI_IO_PIPELINES_DECODE_H
#define DOMI_IO_PIPELINES_DECODE_H

#include "io/pipelines/pipe.h"

/* Decode and handle up to `budget` messages. Returns how many. */
uint32_t domi_pipe_run(domi_manager *manager, domi_house *house, domus_channel *channel,
                       uint32_t budget);

/* True if domi_pipe_run() would find something. */
bool domi_pipe_has_work(const domus_channel *channel);

/* True if there are bytes that were not looked at, or a request that has not begun: a drain waits
 * for both. */
bool domi_pipe_is_behind(const domus_channel *channel);

/* True if the peer has finished sending and everything that it has sent was handled. */
bool domi_pipe_has_ended(const domus_channel *channel);

/* True if a request that is alone is not answered, and no bytes have come behind it; or whatever
 * has come, if it is DOMUS_HEARS_END. */
bool domi_pipe_ends_alone(const domus_channel *channel);

/* Returns whether a request that is alone is about to hear of the end early. It
 * hears of it once. */
bool domi_pipe_hears_end(domus_channel *channel);

/* True if a request that is alone is over when the peer has ended. */
static inline bool domi_pipe_ends_with_peer(const domus_channel *channel)
{
    return channel->pipe->alone && channel->pipe->ends;
}

/* This function is domi_io_hooks.release_message. */
int domi_pipe_release_message(domi_manager *manager, domi_house *house, domi_envelope *message,
                              bool leaves);

#endif
