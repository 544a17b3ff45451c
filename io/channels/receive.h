/* The receiving side of a channel: it decides whether the channel receives (back-pressure), and
 * hands out the pieces of bytes that wait for its actor. domus_buffer_free() is here, too, because
 * the channel that held the buffer may receive again. Owner thread. */
#ifndef DOMI_IO_CHANNELS_RECEIVE_H
#define DOMI_IO_CHANNELS_RECEIVE_H

#include "io/channels/crowd.h"

DOMI_FIFO_VERBS(domi_starved, domus_channel, next_starved);

/* Arm a receive for the channel if none is in flight, and one is wanted. */
void domi_channel_arm_receive(domus_channel *channel);

/* Cancel the receive of the channel that is in flight, if one is. */
void domi_channel_end_receive(domus_channel *channel);

/* Decide whether the channel receives, as domi_channel_decide_whether_to_receive() does, for a
 * channel that something keeps from receiving, or soon may. */
void domi_channel_decide_receive_by_slow_path(domus_channel *channel);

/* Decide by the queued bytes and the held buffers whether the channel receives (back-pressure).
 * This is called some times for each message, and changes nothing for a channel that nothing keeps
 * from receiving. */
static inline void domi_channel_decide_whether_to_receive(domus_channel *channel)
{
    if (DOMI_UNLIKELY(!domi_channel_is_free_to_receive(channel)))
        domi_channel_decide_receive_by_slow_path(channel);
}

/* Add the time in which the channel was not read, up to now, to the time that the peer has for the
 * rest of a message (message_due_ns). */
void domi_channel_add_unread_time(domus_channel *channel);

/* Decide by the conversations that on_read has begun whether the channel's actor gets more input
 * (requestsMax). Called when one of these has parked, and when one has ended while the channel is
 * `busy`. */
void domi_channel_update_busy_flag(domus_channel *channel);

/* Put the channel into the queue of channels that wait for a receive buffer. */
void domi_channel_queue_for_receive_buffer(domus_channel *channel);

/* Remove the channel from the queue of starved channels, because it will never receive again. */
void domi_channel_leave_queue_for_buffer(domus_channel *channel);

/* Take the next received piece of the channel for its actor. Returns NULL when there is none. */
domus_buffer *domi_channel_take_inbound_piece(domus_channel *channel);

/* Throw away the received bytes that the channel's actor has not read. */
void domi_channel_drop_inbound_bytes(domus_channel *channel);
uint64_t domi_channel_count_inbound_bytes(const domus_channel *channel);

#endif
