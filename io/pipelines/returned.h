/* The return of asks that a connection will not answer: they go back to the pool that has sent
 * them, or fail.
 *
 * The note of an ask (domi_return) says its fate: the upper 8 bits count how often a connection may
 * have done it, and belong to the pool; the lower 24 bits are the time at which it was sent, or, on
 * the way back, one of the values below. Owner thread. */
#ifndef DOMI_IO_PIPELINES_RETURNED_H
#define DOMI_IO_PIPELINES_RETURNED_H

#include "io/pipelines/upload.h"

#define DOMI_TRIES_SHIFT    24u
#define DOMI_NOTE_MASK      ((1u << DOMI_TRIES_SHIFT) - 1)
#define DOMI_ASK_UNSENT     1u /* fate of an ask: the peer has not got it */
#define DOMI_ASK_MAYBE_DONE 2u /* fate of an ask: the peer may have carried it out */
/* fate of an ask: the peer has got it, and has carried out no part of it */
#define DOMI_ASK_REFUSED 3u
/* fate of an ask: no peer can get it, so it fails with the error of the channel */
#define DOMI_ASK_UNFIT 4u

/* True if the pipeline encodes mail of this type for the peer. */
bool domi_pipeline_encodes_type(const domus_pipeline *pipeline, const domus_type *type);

/* Fail an ask that was not sent on this connection: with `error`, or with -EPIPE if another
 * connection may have carried it out. */
void domi_ask_fail_unsent(domi_manager *manager, domi_envelope *ask, int error);

/* Give an ask that the connection will not answer back to `pool`. The ask fails if there is no
 * pool, or if the pool accepts it no more. `fate` is one of the values above. */
void domi_ask_return_to_pool(domi_manager *manager, domus_address pool, domi_envelope *ask,
                             uint32_t fate);

/* Return an ask that was sent to the peer to its pool, with the fate that the stage has
 * declared. */
void domi_pipe_return_sent_ask_to_pool(domi_manager *manager, const domi_pipe *pipe,
                                       domi_envelope *ask);

/* Send no further ask on this connection: asks that wait go to other connections of the pool,
 * unless the stages will change. */
void domi_pipe_return_waiting_asks(domi_manager *manager, domi_pipe *pipe);

/* Give the asks for the peer in the mailbox of a channel's actor back to `pool`, or let them fail,
 * because the actor takes no mail any more. */
void domi_pipe_return_mail_to_pool(domi_manager *manager, domi_house *house, domus_address pool);

/* Find the asks in the house of a channel that were not sent yet: implements
 * domi_io_hooks.unsent_asks. */
bool domi_pipe_find_unsent_asks(domi_house *house, uint32_t index, domi_node ***ret_list,
                                uint32_t **ret_count);

#endif
