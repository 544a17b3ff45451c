/* The io timers of a thread: time-outs of channels, pauses of acceptors, and steps of sweeps. Owner
 * thread. */
#ifndef DOMI_IO_COMPLETIONS_TIMERS_H
#define DOMI_IO_COMPLETIONS_TIMERS_H

#include "io/resources/io.h"

/* Fire the io timers that are due, once everything that had arrived by now is collected; in a
 * drain, also check some channels. Returns the amount of work, completions included. */
uint32_t domi_io_fire_timers(domi_io *io);

/* Correct the times of activity after the thread was held up while it reaped. Bytes that were taken
 * at the old time `since_ns` may have come at any time until now, so their channels count as active
 * now. This visits each channel. */
void domi_io_refresh_activity(domi_io *io, uint64_t since_ns);

#endif
