/* The end of the handshake between the stages of a channel and the peer. Owner thread. */
#ifndef DOMI_IO_PIPELINES_TERMS_H
#define DOMI_IO_PIPELINES_TERMS_H

#include "io/pipelines/pipe.h"

/* Send the asks that have waited for the end of the handshake. The number of asks that the
 * connection may have is now known, so its pool handles its waiting asks again: it may have made no
 * other connection for them. */
void domi_pipe_end_handshake(domi_manager *manager, domi_pipe *pipe);

#endif
