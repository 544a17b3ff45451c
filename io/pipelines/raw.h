/* Bytes of a channel with a pipeline that are not a message: those that its actor writes itself,
 * and those that end the output of its stages. Owner thread. */
#ifndef DOMI_IO_PIPELINES_RAW_H
#define DOMI_IO_PIPELINES_RAW_H

#include "io/pipelines/pipe.h"

extern const domi_pipe_ways domi_ways_of_pipes;

#endif
