/* Two kinds of waits for bytes of a channel to leave: of senders that a full mailbox has refused,
 * and of conversations that wait until the kernel has taken bytes (domus_channel_flush()).
 *
 * Such a conversation has a promise (DOMI_PROMISE_FLUSH) in a list of the channel, the one with the
 * fewest bytes to wait for first. So a send that has nobody to resume costs one comparison. A wait
 * takes no memory of its own, and scheduler.conversationsMax bounds their number. Owner thread:
 * that of the channel, which is also that of each actor that waits. */
#ifndef DOMI_IO_CHANNELS_FLUSH_H
#define DOMI_IO_CHANNELS_FLUSH_H

#include "house/conversation/promise.h"
#include "io/channels/channel.h"

/* Record whether more than sendHigh bytes wait to be sent on the channel (`high`), or at most
 * sendLow again. While this is set, the mailbox of the channel's actor is full: senders of asks and
 * notices are refused, and are told when it has room. */
void domi_channel_set_much_is_queued(domus_channel *channel, bool high);

/* Let `promise` wait until the kernel has taken all bytes that are queued in the channel now,
 * except the last `left_bytes` of them. If the channel is gone, the promise fails. */
void domi_flush_begin_wait(domus_channel *channel, domi_promise *promise, uint64_t left_bytes);

/* Complete the promises that wait for bytes which the kernel has taken by now. */
void domi_flush_complete_waits(domus_channel *channel);

/* Fail with `error` all promises that wait for bytes of the channel to leave, because the channel
 * is gone. */
void domi_flush_fail_all_waits(domus_channel *channel, int error);

/* Remove a promise that ends from its channel's list of waits. Implements
 * domi_io_hooks.flush_left. */
void domi_flush_remove_wait(domi_manager *manager, domi_promise *promise);

#endif
