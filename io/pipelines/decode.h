/* Decodes and handles messages of the peer, within the run of the channel's actor. Owner thread. */
#ifndef DOMI_IO_PIPELINES_DECODE_H
#define DOMI_IO_PIPELINES_DECODE_H

#include "io/pipelines/pipe.h"

/* Decode and handle up to `budget` messages of the peer. Returns their number. */
uint32_t domi_pipe_run_messages(domi_manager *manager, domi_house *house, domus_channel *channel,
                                uint32_t budget);

/* True if a call of domi_pipe_run_messages() would find work to do. */
bool domi_pipe_has_work_for_run(const domus_channel *channel);

/* True if received bytes were not decoded yet, or a decoded request has not begun; a drain waits
 * for both. */
bool domi_pipe_has_undecoded_work(const domus_channel *channel);

/* True if the peer has finished sending and everything that it has sent was handled. */
bool domi_pipe_has_handled_all_of_peer(const domus_channel *channel);

/* True if a request that is alone (DOMUS_ALONE) is not answered, and no bytes have come behind it;
 * for DOMUS_HEARS_END bytes may have come. */
bool domi_pipe_has_lone_open_request(const domus_channel *channel);

/* Returns whether the handler of a request that is alone has to be told of the peer's end before it
 * has answered. It is told once. */
bool domi_pipe_has_to_tell_end_early(domus_channel *channel);

/* True if the end of the peer ends a request that is alone (DOMUS_ENDS_WITH_PEER). */
static inline bool domi_pipe_does_request_end_with_peer(const domus_channel *channel)
{
    return channel->pipe->alone && channel->pipe->ends;
}

/* Implement domi_io_hooks.release_message: let a message outlive its turn. */
int domi_pipe_release_message(domi_manager *manager, domi_house *house, domi_envelope *message,
                              bool leaves);

#endif
