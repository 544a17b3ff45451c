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

#define DOMI_PIPE_CLOSED UINT32_MAX
#define DOMI_PIPE_LAST   (1u << 30)
#define DOMI_PIPE_ENDS   (1u << 31)

/* Returns how many asks the channel at this address of this thread has, in its mailbox, waiting and
 * with its peer, or'ed with DOMI_PIPE_LAST if others are better: it has more than sendHigh to send,
 * or will close when it has none. DOMI_PIPE_CLOSED if it takes none; DOMI_PIPE_ENDS or'ed with
 * those that are with its peer if these are the last. */
uint32_t domi_pipe_load(domus_address address);

/* Returns how many asks it may have with its peer. */
uint64_t domi_pipe_room(domus_address address);

/* Asks that the channel at this address cannot have answered go back to `pool`. With
 * `ret_was_used` the channel also takes the asks that wait there, its parent, when it has room,
 * and says at its end, in the memory of the pool, whether it has sent one. */
void domi_pipe_return_asks_to(domus_address address, domus_address pool, bool *ret_was_used);

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

/* The body of an answer is read, or comes: set when its connection is reset if it does not go on.
 */
void domi_pipe_set_due_of_body(domi_manager *manager, domi_pipe *pipe);

/* The body of an answer has ended, and so has its ask. The time of the next answer begins. */
void domi_pipe_note_body_over(domi_manager *manager, domi_pipe *pipe);

/* The body of a request of this side has ended, or was cut in the words of the protocol. */
void domi_pipe_note_upload_over(domi_manager *manager, domi_pipe *pipe);

/* The connection is gone, or the peer answers nothing more: no ask is left. */
void domi_pipe_drop_asks(domi_manager *manager, domi_pipe *pipe);

#endif
