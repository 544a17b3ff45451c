/* The mail that a channel with a pipeline takes by itself. Owner thread. */
#ifndef DOMI_IO_PIPELINES_VERBS_H
#define DOMI_IO_PIPELINES_VERBS_H

#include "io/pipelines/pipe.h"

/* This function is domi_io_hooks.send_mail: it takes mail for the peer, and the asks of
 * domus/stream.h. */
bool domi_pipe_take_mail(domi_manager *manager, domi_house *house, domi_envelope *message);

#endif
