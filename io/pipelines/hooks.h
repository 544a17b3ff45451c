/* The functions by which io and house reach the pipeline of a channel. Owner thread. */
#ifndef DOMI_IO_PIPELINES_HOOKS_H
#define DOMI_IO_PIPELINES_HOOKS_H

#include "io/pipelines/pipe.h"

/* ---- raw.c ------------------------------------------------------------------------------------*/

/* The bytes that a channel with a pipeline sends outside of messages: those that its actor writes
 * itself, and those that end the output of its stages. Owner thread. */

extern const domi_pipe_ways domi_ways_of_pipes;

/* ---- verbs.c ----------------------------------------------------------------------------------*/

/* Mail that a channel with a pipeline handles without a row of its behaviour. Owner thread. */

/* Take mail for the peer of a channel, and the asks of domus/stream.h: implements
 * domi_io_hooks.send_mail. */
bool domi_pipe_send_mail_or_handle_stream(domi_manager *manager, domi_house *house,
                                          domi_envelope *message);

#endif
