/* Mail of actors for the peer of a channel, and the answers of the peer to it. Owner thread. */
#ifndef DOMI_IO_PIPELINES_MAIL_H
#define DOMI_IO_PIPELINES_MAIL_H

#include "io/pipelines/pipe.h"

/* Take mail for the peer of the channel of `house`. Returns false if its pipeline does not send
 * this mail to the peer. */
bool domi_pipe_send_mail_to_peer(domi_manager *manager, domi_house *house, domi_envelope *message);

/* Encode a notice for the peer, and queue its bytes. The payload stays the caller's. Returns 0;
 * -EPIPE; -ENOBUFS; -ENOMEM; the error of the stage. */
int domi_pipe_send_notice(domi_pipe *pipe, const domus_type *type, const void *payload);

/* Take an ask that the channel's present pipeline cannot encode, but perhaps the next one, for
 * which it waits (domus_pipeline.holds_asks). Returns false if the pipeline holds no asks. */
bool domi_pipe_hold_early_ask(domi_manager *manager, domi_house *house, domi_envelope *message);

/* Send asks that wait for the peer, also those in the pool, as many as the peer may have. */
void domi_pipe_send_waiting_asks(domi_manager *manager, domi_pipe *pipe);

/* Returns the number of asks that the peer of the channel may have at the same time. */
uint64_t domi_pipe_most_asks_with_peer(const domi_pipe *pipe);

/* True if the peer of the channel may answer an ask that is sent now. */
bool domi_pipe_may_peer_answer(const domi_pipe *pipe);

/* Close the channel if the ask that was its last one (domus_wire_last()) is answered, unless the
 * channel itself has still to handle the answer, or changes its stages because of it. */
void domi_pipe_close_after_last_ask(domi_pipe *pipe);

/* Give an answer of the peer to the oldest ask, or to the ask with this id. Consumes `made`. */
void domi_pipe_handle_answer_of_peer(domi_manager *manager, domi_pipe *pipe, domi_envelope *made,
                                     uint64_t id, int error);

/* Give an answer of the peer to the ask to which it belongs. Consumes answer and ask. Returns 0;
 * -ENOMEM, and the ask has failed; -ESTALE when its asker is gone. */
int domi_pipe_deliver_answer_to_asker(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask,
                                      domi_envelope *made);

/* Set the time at which the connection is reset if the body of the peer's answer does not go on.
 * Called when the body is read, or begins to come. */
void domi_pipe_set_reset_time_of_body(domi_manager *manager, domi_pipe *pipe);

/* End an ask to the peer when the body of its answer has ended. The time for the next answer
 * begins. */
void domi_pipe_record_end_of_answer_body(domi_manager *manager, domi_pipe *pipe);

/* Record that the body of a request of this side has ended, or was cut in the way that the protocol
 * has for that. */
void domi_pipe_record_end_of_upload(domi_manager *manager, domi_pipe *pipe);

/* Return all asks for the peer to their pools or fail them, because the connection is gone, or the
 * peer answers nothing more. */
void domi_pipe_return_or_fail_all_asks(domi_manager *manager, domi_pipe *pipe);

#endif
