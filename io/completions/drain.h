/* The end of all channels of a thread: in a drain, or because the ring has failed. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_DRAIN_H
#define DOMI_IO_COMPLETIONS_DRAIN_H

#include "io/resources/io.h"

/* Before a drain: collect what has arrived, at most io.completionEntries completions in a call.
 * Returns whether the drain may begin. If it may not, the thread calls this again in its next
 * iteration, at most DOMI_POSTPONED_MAX times. */
bool domi_io_collect_before_drain(domi_io *io);

/* Begin the drain. The connections that wait at the listeners are accepted, and then no more. Every
 * channel that was accepted answers the bytes that it was given, sends the answers, and closes. */
void domi_io_drain(domi_io *io);

/* Let the channels that this side has connected drain, too. The channels that were accepted use
 * them and are gone, on all threads, or the time of the drain is over. */
void domi_io_drain_upstream(domi_io *io);

/* Drain some of the channels; called once in each iteration of a drain. */
void domi_io_look_at_draining(domi_io *io);

/* End all channels that are still open, and count those that are cut. Returns how many
 * channels it ended. */
uint32_t domi_io_abort(domi_io *io);

/* End everything that was asked of the ring, because the ring has failed. Channels are reset with
 * its error, acceptors stop, and actors that watch a descriptor are told the error. From then on
 * nothing is asked of the ring, and connections are refused. */
void domi_io_fail(domi_io *io);

#endif
