/* Mail that a channel with a pipeline handles without a row of its behaviour. Owner thread. */
#ifndef DOMI_IO_PIPELINES_VERBS_H
#define DOMI_IO_PIPELINES_VERBS_H

#include "io/pipelines/pipe.h"

/* Take mail for the peer, and the asks of domus/stream.h: implements domi_io_hooks.send_mail. */
bool domi_pipe_handle_mail(domi_manager *manager, domi_house *house, domi_envelope *message);

#endif
