/* Mail of actors goes to the peer of a channel, and its answers come back. Owner thread. */
#ifndef DOMI_IO_PIPELINES_MAIL_H
#define DOMI_IO_PIPELINES_MAIL_H

#include "io/pipelines/pipe.h"

/* This is domi_io_hooks.send_mail. */
bool domi_pipe_send_mail(domi_manager *manager, domi_house *house, domi_envelope *message);

/* The peer has answered: give the oldest ask, or the one with this id, its answer. Takes `made`. */
void domi_pipe_take_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *made, uint64_t id,
                           int error);

/* The connection is gone: the asks fail. */
void domi_pipe_drop_asks(domi_manager *manager, domi_pipe *pipe);

#endif
