/* The side of a channel that its actor sees: runs of the actor, and calls of the functions of its
 * behaviour. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_ACTOR_H
#define DOMI_IO_COMPLETIONS_ACTOR_H

#include "house/message/manager.h"
#include "io/channels/channel.h"

/* ---- run.c ------------------------------------------------------------------------------------*/

/* The functions that house calls for a channel in a run of its actor: io sets them in a manager
 * (domi_io_hooks). Owner thread. */

/* Implement domi_io_hooks.conversation_ended: handle the end of a conversation that a channel
 * began. */
void domi_channel_handle_ended_conversation(domi_manager *manager, domi_house *house);

/* Reset the channel of `house`, if it belongs to one: implements domi_io_hooks.channel_failed. */
bool domi_channel_reset_for_failed_actor(domi_manager *manager, domi_house *house, int error);

/* Implement the hooks run_channels, open_channel, stop_channels and take_event of domi_io_hooks. */
uint32_t domi_channels_run_channel_of_actor(domi_manager *manager, domi_house *house,
                                            uint32_t budget);
void domi_channels_open_channel_of_actor(domi_manager *manager, domi_house *house);
uint32_t domi_channels_stop_owned_by_actor(domi_manager *manager, domi_house *house);
bool domi_channels_handle_accepted_event(domi_manager *manager, domi_house *house,
                                         domi_envelope *message);

/* ---- calls.c ----------------------------------------------------------------------------------*/

/* Calls of the functions in the behaviour of a channel: on_open, on_read, on_end, on_close. Each
 * call is a turn. If the function, or a conversation of the channel, ends with a negative errno,
 * the channel is reset. Owner thread, within a run of the channel's actor. */

/* Call the channel's on_open, and begin to receive. */
void domi_channel_call_on_open(domi_manager *manager, domi_house *house, domus_channel *channel);

/* Take the first received piece of the channel, and call on_read for it; without an on_read the
 * piece is freed. */
void domi_channel_call_on_read(domi_manager *manager, domi_house *house, domus_channel *channel);

/* Call the channel's on_end; without an on_end, close the channel when all is answered. */
void domi_channel_call_on_end(domi_manager *manager, domi_house *house, domus_channel *channel);

/* Call the channel's on_close, if on_open was called, and free the channel. */
void domi_channel_call_on_close(domi_manager *manager, domi_house *house, domus_channel *channel);

#endif
