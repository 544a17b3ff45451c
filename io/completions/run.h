/* The side of channels that house calls: the functions that io sets in a manager. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_RUN_H
#define DOMI_IO_COMPLETIONS_RUN_H

#include "house/message/manager.h"

/* Implement domi_io_hooks.conversation_ended. */
void domi_channel_conversation_ended(domi_manager *manager, domi_house *house);

/* Reset the channel of `house`, if it belongs to one: implements domi_io_hooks.channel_failed. */
bool domi_channel_fail_actor(domi_manager *manager, domi_house *house, int error);

/* Implement domi_io_hooks.run_channels, open_channel, stop_channels and take_event. */
uint32_t domi_channels_run(domi_manager *manager, domi_house *house, uint32_t budget);
void domi_channels_open(domi_manager *manager, domi_house *house);
uint32_t domi_channels_stop(domi_manager *manager, domi_house *house);
bool domi_channels_handle_event(domi_manager *manager, domi_house *house, domi_envelope *message);

#endif
