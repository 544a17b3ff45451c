/* Why and how the library itself ends a channel, and which bytes its peer would miss then. Owner
 * thread. */
#ifndef DOMI_IO_CHANNELS_ENDS_H
#define DOMI_IO_CHANNELS_ENDS_H

#include "io/channels/channel.h"

/* ---- close.c ----------------------------------------------------------------------------------*/

/* The closes that the library itself begins: everything is answered in a drain, or the ring has
 * failed. (For a peer that has finished: half_close.c.) Owner thread. */

/* Begin a drain of the channel: record how many bytes have come so far, which will be answered
 * before the channel closes. */
void domi_channel_begin_drain(domus_channel *channel);

/* Close a draining channel if everything that it had received is answered, and no rest of a body is
 * awaited. A channel that drains only because it is too old (timeouts.c) waits for the end of any
 * message that is under way, for shutdown.drainTimeout at most. */
void domi_channel_close_if_drained(domus_channel *channel);

/* End the drain of an open channel that drains only because it was too old, if its settings have
 * changed and it is not too old by the new ones. */
void domi_channel_end_drain_if_not_too_old(domus_channel *channel);

/* Count a channel that is freed as answered, cut or idle, if a drain has ended it. A channel that
 * its peer or its actor has reset during the drain does not count, because not the drain has ended
 * it. */
void domi_channel_count_result_of_drain(const domus_channel *channel);

/* End the channel with `error` and RST, because the ring has failed and its operations do not come
 * back. The bytes that are lost are counted (domi_channel_count_as_cut). The socket is disconnected
 * first: the kernel may still hold a send of bytes that are freed here, and a send on a socket
 * without a peer reads none of them. */
void domi_channel_end_on_failed_ring(domus_channel *channel, int error);

/* Reset the channel because a function of its actor has returned an error. */
void domi_channel_reset_after_error(domus_channel *channel, int error);

/* Count an error of the channel's actor, or of the bytes of its peer, once for each channel. */
void domi_channel_count_refused_once(domus_channel *channel);

/* ---- half_close.c -----------------------------------------------------------------------------*/

/* The close of a channel whose peer has finished sending, once everything is answered. Owner
 * thread. */

/* Close the channel when the last conversation that its bytes began has ended; at once if there is
 * none. Called when the peer has finished sending and the actor has no on_end. */
void domi_channel_close_when_answered(domus_channel *channel);

/* True if no work for the peer is under way: neither on the channel nor in an inner channel that it
 * carries. */
static inline bool domi_channel_has_answered_all(const domus_channel *channel)
{
    return channel->conversations == 0 && channel->asks == 0 && channel->carried == 0;
}

/* ---- kept.c -----------------------------------------------------------------------------------*/

/* The cancel of asks that actors keep for a peer which has finished sending: the peer may be gone,
 * and the asks would wait for ever. Owner thread. */

/* Cancel those asks of the peer's requests that actors keep, because channel.halfCloseKept has
 * passed since the peer has finished, or since the last call of this function. */
void domi_channel_cancel_kept_asks(domus_channel *channel);

/* ---- owed.c -----------------------------------------------------------------------------------*/

/* The bytes that a channel owes: those that its peer would miss if the channel ended now. The
 * functions of this section run on the owner thread. */

/* True if the kernel still holds bytes of the channel that the peer has not acknowledged. */
bool domi_channel_has_unacknowledged_bytes(const domus_channel *channel);

/* Count a channel that the library is about to end by itself as cut, with the bytes that it owes:
 * bytes that were received and not answered, answers that were not delivered, and `lost_bytes`,
 * which the channel no longer holds. A channel that owes nothing is not counted. */
void domi_channel_count_as_cut(domus_channel *channel, uint64_t lost_bytes);

#endif
