/* The end of all channels of a thread: in a drain, or because the ring has failed. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_DRAIN_H
#define DOMI_IO_COMPLETIONS_DRAIN_H

#include "io/resources/io.h"

/* Collect what has arrived before a drain begins, at most io.completionEntries completions in a
 * call. Returns whether the drain may begin. If it may not, the thread calls this again in its next
 * iteration, at most DOMI_POSTPONED_MAX times. */
bool domi_io_collect_before_drain(domi_io *io);

/* Begin the drain. The connections that wait at the listeners are accepted, and no later ones.
 * Every channel that was accepted answers the bytes that it has got, sends the answers, and
 * closes. */
void domi_io_drain(domi_io *io);

/* Begin to drain the channels that this side has connected, too, because the accepted channels,
 * which use them, are gone on all threads, or because the time of the drain is over. */
void domi_io_drain_upstream(domi_io *io);

/* Continue the drain of some channels. Called once in each iteration of a drain. */
void domi_io_look_at_draining(domi_io *io);

/* End all channels that are still open, and count those that are cut. Returns the number of ended
 * channels. */
uint32_t domi_io_abort(domi_io *io);

/* End all operations in the ring, because the ring has failed. Channels are reset with its error,
 * acceptors stop, and actors that watch a descriptor are told the error. From then on the ring is
 * not used, and connections are refused. */
void domi_io_fail(domi_io *io);

#endif
