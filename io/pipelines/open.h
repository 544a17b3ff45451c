/* The begin and the end of the pipeline of a channel. Owner thread. */
#ifndef DOMI_IO_PIPELINES_OPEN_H
#define DOMI_IO_PIPELINES_OPEN_H

#include "io/pipelines/pipe.h"

/* Make the pipeline of a channel that opens. Returns 0; a negative errno. */
int domi_pipe_open(domus_channel *channel);

/* End all that waits for the connection, which is gone, and free the pipeline. */
void domi_pipe_end(domus_channel *channel);

#endif
