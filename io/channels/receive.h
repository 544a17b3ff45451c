/* The way in of a channel: these functions decide whether it receives (back-pressure), and hand out
 * the pieces of bytes that wait for its actor. domus_buffer_free() is here, too, because the
 * channel that held the buffer may receive again. Owner thread. */
#ifndef DOMI_IO_CHANNELS_RECEIVE_H
#define DOMI_IO_CHANNELS_RECEIVE_H

#include "io/channels/crowd.h"

DOMI_FIFO_VERBS(domi_starved, domus_channel, next_starved);

/* Arm a receive if none is in flight, and one is wanted. */
void domi_channel_arm_receive(domus_channel *channel);

/* Cancel the receive that is in flight, if one is. */
void domi_channel_end_receive(domus_channel *channel);

/* Do the same as domi_channel_decide_receive(), for a channel that something hinders, or soon may.
 */
void domi_channel_decide_hindered(domus_channel *channel);

/* Back-pressure: decide by the bytes queued and the buffers held whether the channel receives. This
 * is asked some times for each message, and nothing changes for a channel that nothing hinders. */
static inline void domi_channel_decide_receive(domus_channel *channel)
{
    if (DOMI_UNLIKELY(!domi_channel_is_unhindered(channel)))
        domi_channel_decide_hindered(channel);
}

/* Time in which the channel was not read does not count for the rest of a message (message_due_ns):
 * add it, up to now. */
void domi_channel_add_unread_time(domus_channel *channel);

/* Decide by the conversations that on_read began whether the actor is shown more (requestsMax).
 * Called when one has parked, and when one has ended while the channel is `busy`. */
void domi_channel_note_requests(domus_channel *channel);

/* Let the channel wait for a receive buffer. */
void domi_channel_starve(domus_channel *channel);

/* Take the channel off the queue of starved receivers, because it will never receive again. */
void domi_channel_unstarve(domus_channel *channel);

/* Take the next piece for the actor. Returns NULL when there is none. */
domus_buffer *domi_channel_take_inbound(domus_channel *channel);

/* Throw away the received bytes that were not read. */
void domi_channel_drop_inbound(domus_channel *channel);
uint64_t domi_channel_inbound_bytes(const domus_channel *channel);

#endif
