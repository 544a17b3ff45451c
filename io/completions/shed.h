/* The sweep over the channels of a careful thread (crowd.h), which sheds some of them. Owner
 * thread. */
#ifndef DOMI_IO_COMPLETIONS_SHED_H
#define DOMI_IO_COMPLETIONS_SHED_H

#include "io/resources/io.h"

/* Do the next step of the sweep. Called by its timer. */
void domi_io_sweep(domi_io *io);

/* End the sweep, and let the thread be careful no more. */
void domi_io_sweep_stop(domi_io *io);

#endif
