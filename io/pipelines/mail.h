/* Mail of actors goes to the peer of a channel, and its answers come back. Owner thread. */
#ifndef DOMI_IO_PIPELINES_MAIL_H
#define DOMI_IO_PIPELINES_MAIL_H

#include "io/pipelines/pipe.h"

/* Take mail for the peer of the channel of `house`. Returns false if it is none. */
bool domi_pipe_send_mail(domi_manager *manager, domi_house *house, domi_envelope *message);

/* Encode a notice for the peer, and queue its bytes. The payload stays the caller's. Returns 0;
 * -EPIPE; -ENOBUFS; -ENOMEM; what the stage returned. */
int domi_pipe_send_notice(domi_pipe *pipe, const domus_type *type, const void *payload);

/* Take an ask that is of no use to this pipeline, but perhaps to the next one, for which it waits
 * (domus_pipeline.holds_asks). Returns false if nothing is held. */
bool domi_pipe_hold_mail(domi_manager *manager, domi_house *house, domi_envelope *message);

/* Send asks that have waited, also in the pool, as many as may be with the peer. */
void domi_pipe_send_waiting(domi_manager *manager, domi_pipe *pipe);

/* Returns how many asks may be with the peer. */
uint64_t domi_pipe_inflight_max(const domi_pipe *pipe);

/* True if the peer may answer an ask that is sent now. */
bool domi_pipe_is_answering(const domi_pipe *pipe);

/* Close the channel if its last ask is answered (domus_wire_last()), unless the channel itself has
 * still to hear of the answer, or changes its stages because of it. */
void domi_pipe_end_asked(domi_pipe *pipe);

/* The peer has answered: give the oldest ask, or the one with this id, its answer. Takes `made`. */
void domi_pipe_take_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *made, uint64_t id,
                           int error);

/* Give an ask its answer, which the peer has sent; both are taken. Returns 0; -ENOMEM, and the ask
 * has failed; -ESTALE when its asker is gone. */
int domi_pipe_give_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask,
                          domi_envelope *made);

/* The body of an answer is read, or comes: set when its connection is reset if it
 * does not go on. */
void domi_pipe_set_due_of_body(domi_manager *manager, domi_pipe *pipe);

/* The body of an answer has ended, and so has its ask. The time of the next answer begins. */
void domi_pipe_note_body_over(domi_manager *manager, domi_pipe *pipe);

/* The body of a request of this side has ended, or was cut in the words of the protocol. */
void domi_pipe_note_upload_over(domi_manager *manager, domi_pipe *pipe);

/* The connection is gone, or the peer answers nothing more: no ask is left. */
void domi_pipe_drop_asks(domi_manager *manager, domi_pipe *pipe);

#endif
