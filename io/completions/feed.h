/* The end of phase 2: sends are queued, and channels that waited go on. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_FEED_H
#define DOMI_IO_COMPLETIONS_FEED_H

#include "io/resources/io.h"

/* At the end of phase 2: arm starved receives for which there are buffers, and queue a send for
 * every channel that has bytes to send. Returns how many channels had something. */
uint32_t domi_io_queue_sends(domi_io *io);

/* True if something has to be done before the thread parks (M3). That is so if completions wait,
 * sends are not queued, or receivers starve although buffers are free. */
bool domi_io_has_work(const domi_io *io);

#endif
