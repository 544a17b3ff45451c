/* The end of phase 2: sends are queued, and channels that waited continue. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_FEED_H
#define DOMI_IO_COMPLETIONS_FEED_H

#include "io/resources/io.h"

/* Arm starved receives for which there are buffers, and queue a send for every channel that has
 * bytes to send. Called at the end of phase 2. Returns the number of channels with bytes to
 * send. */
uint32_t domi_io_queue_sends(domi_io *io);

/* True if work is left before the thread parks (M3): completions wait, sends are not queued, or
 * receives starve although buffers are free. */
bool domi_io_has_work(const domi_io *io);

#endif
