/* The shortage of memory, as the io of a thread is told of it. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_PRESSURE_H
#define DOMI_IO_COMPLETIONS_PRESSURE_H

#include "io/resources/io.h"

/* Set how short memory is now: acceptors pause or continue, channels read less or more. In a drain
 * this does nothing, because a drain has to read. */
void domi_io_set_pressure(domi_io *io, const domi_io_pressure *now);

/* End the shortage when a drain begins: from now on nothing pauses and nothing is reset because
 * memory is short. */
void domi_io_end_shortage(domi_io *io);

#endif
