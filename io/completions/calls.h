/* Calls of the functions in the behaviour of a channel: on_open, on_read, on_end, on_close. Each
 * call is a turn. If the function, or a conversation of the channel, ends with a negative errno,
 * the channel is reset. Owner thread, within a run of the channel's actor. */
#ifndef DOMI_IO_COMPLETIONS_CALLS_H
#define DOMI_IO_COMPLETIONS_CALLS_H

#include "io/channels/channel.h"

/* Call on_open, and begin to receive. */
void domi_channel_call_open(domi_manager *manager, domi_house *house, domus_channel *channel);

/* Take the first piece of `inbound`, and call on_read for it; without an on_read the piece is
 * freed. */
void domi_channel_call_read(domi_manager *manager, domi_house *house, domus_channel *channel);

/* Call on_end; without an on_end, close the channel when all is answered. */
void domi_channel_call_end(domi_manager *manager, domi_house *house, domus_channel *channel);

/* Call on_close, if on_open was called, and free the channel. */
void domi_channel_call_close(domi_manager *manager, domi_house *house, domus_channel *channel);

#endif
