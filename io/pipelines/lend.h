/* Asks for the peer of a channel that go to its inner channels: the inside of domus/lend.h. Owner
 * thread. */
#ifndef DOMI_IO_PIPELINES_LEND_H
#define DOMI_IO_PIPELINES_LEND_H

#include "io/pipelines/pipe.h"

/* Give an ask to an inner channel that the stage of the outer one lends. Consumes `ask`. */
void domi_pipe_lend_inner_to_ask(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* Tell the stage of the outer channel that the ask for which an inner channel was lent is over, or
 * was not sent. */
void domi_pipe_end_lend_of_inner(domus_channel *channel);

#endif
