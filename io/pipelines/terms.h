/* The moment at which the stages of a channel have come to terms with the peer. Owner thread. */
#ifndef DOMI_IO_PIPELINES_TERMS_H
#define DOMI_IO_PIPELINES_TERMS_H

#include "io/pipelines/pipe.h"

/* Send the asks that have waited for the end of the handshake. The number of asks that the
 * connection takes is now known, so its pool looks at the asks that wait there: it may have made no
 * other connection for them. */
void domi_pipe_come_to_terms(domi_manager *manager, domi_pipe *pipe);

#endif
