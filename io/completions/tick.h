/* The work of a thread on all of its channels at once: it fires their timers, queues their sends,
 * follows the shortage of memory, and ends them. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_TICK_H
#define DOMI_IO_COMPLETIONS_TICK_H

#include "io/resources/io.h"

/* ---- timers.c ---------------------------------------------------------------------------------*/

/* The io timers of a thread: time-outs of channels, pauses of acceptors, and steps of sweeps. Owner
 * thread. */

/* Fire the io timers that are due, once everything that had arrived by now is collected; in a
 * drain, also check some channels. Returns the amount of work, completions included. */
uint32_t domi_io_fire_timers(domi_io *io);

/* Correct the times at which channels were last active, after the thread was held up while it
 * reaped. Bytes that were reaped at the old time `since_ns` may have come at any time until now, so
 * their channels count as active now. This visits each channel. */
void domi_io_refresh_times_of_activity(domi_io *io, uint64_t since_ns);

/* ---- feed.c -----------------------------------------------------------------------------------*/

/* The end of phase 2: sends are queued, and channels that waited continue. Owner thread. */

/* Arm starved receives for which there are buffers, and queue a send for every channel that has
 * bytes to send. Called at the end of phase 2. Returns the number of channels with bytes to
 * send. */
uint32_t domi_io_resume_reads_and_queue_sends(domi_io *io);

/* True if work is left before the thread parks (M3): completions wait, sends are not queued, or
 * receives starve although buffers are free. */
bool domi_io_has_work_before_park(const domi_io *io);

/* ---- pressure.c -------------------------------------------------------------------------------*/

/* The shortage of memory, of which the io of a thread is told here. Owner thread. */

/* Set how short memory is now: acceptors pause or continue, channels read less or more. In a drain
 * this does nothing, because a drain has to read. */
void domi_io_set_memory_shortage(domi_io *io, const domi_io_pressure *now);

/* End the shortage of memory for this thread when a drain begins: from now on nothing pauses and
 * nothing is reset because memory is short. */
void domi_io_end_memory_shortage(domi_io *io);

/* ---- shed.c -----------------------------------------------------------------------------------*/

/* The sweep over the channels of a careful thread (crowd.h), which sheds (resets) some of them.
 * Owner thread. */

/* Do the next step of the sweep over the thread's channels. Called by its timer. */
void domi_io_take_step_of_sweep(domi_io *io);

/* End the sweep over the thread's channels, and let the thread be careful (crowd.h) no more. */
void domi_io_stop_sweep(domi_io *io);

/* ---- drain.c ----------------------------------------------------------------------------------*/

/* The end of all channels of a thread: in a drain, or because the ring has failed. Owner thread. */

/* Collect what has arrived before a drain begins, at most io.completionEntries completions in a
 * call. Returns whether the drain may begin. If it may not, the thread calls this again in its next
 * iteration, at most DOMI_POSTPONED_MAX times. */
bool domi_io_collect_arrivals_before_drain(domi_io *io);

/* Begin the drain of a thread's channels. The connections that wait at the listeners are accepted,
 * and no later ones. Every channel that was accepted answers the bytes that it has got, sends the
 * answers, and closes. */
void domi_io_drain_accepted_channels(domi_io *io);

/* Begin to drain the channels that this side has connected, too: either the accepted channels,
 * which use them, are gone on all threads, or the time of the drain is over. */
void domi_io_drain_outgoing_channels(domi_io *io);

/* Continue the drain of some channels of the thread. Called once in each iteration of a drain. */
void domi_io_check_draining_channels(domi_io *io);

/* End all channels of the thread that are still open, and count those that are cut. Returns the
 * number of ended channels. */
uint32_t domi_io_end_all_open_channels(domi_io *io);

/* End all operations in the ring, because the ring has failed. Channels are reset with its error,
 * acceptors stop, and actors that watch a descriptor are told the error. From then on the ring is
 * not used, and connections are refused. */
void domi_io_end_all_on_failed_ring(domi_io *io);

#endif
