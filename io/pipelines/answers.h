/* Answers to requests of the peer, which are sent in the order of the requests. Owner thread. */
#ifndef DOMI_IO_PIPELINES_ANSWERS_H
#define DOMI_IO_PIPELINES_ANSWERS_H

#include "io/pipelines/pipe.h"

/* Free the places of requests. */
void domi_pipe_free_places(domi_pipe *pipe);

/* Begin a request. Returns 0, with its number; -ENOMEM. */
int domi_pipe_begin(domi_pipe *pipe, const domus_type *type, uint64_t id, bool alone,
                    uint32_t *ret_number);

/* Returns the number of a request that this house has. */
static inline uint32_t domi_pipe_number_of(domi_envelope *ask)
{
    const domi_return *back = domi_envelope_return(ask);

    return back->promise != NULL ? (uint32_t)back->promise->answer.tag : back->serial;
}

/* Send the bytes that the stages have put into the scratch of the thread. Returns 0, or an error,
 * and then the channel was reset. */
int domi_pipe_flush_out(domi_pipe *pipe);

/* The type of the end of a stream that sends nothing behind its last piece. */
extern const domus_type domi_end_type;

/* Returns the request with this number; NULL: it is answered. */
domi_request *domi_pipe_find(domi_pipe *pipe, uint32_t number);

/* Send the bytes in the scratch when it is their turn: they are a part of the answer to a request
 * that is not over. Returns 0, or an error, and then the channel was reset. */
int domi_pipe_deliver_part(domi_pipe *pipe, uint32_t number);

/* Continue the work that waited until a request was over or decoding had stopped. */
void domi_pipe_continue_after_request(domi_pipe *pipe);

/* Answer the request `number` with the bytes that the stage encodes for `error`. */
void domi_pipe_fail(domi_pipe *pipe, uint32_t number, int error);

/* Answer a message whose rest did not come in time: the stage encodes that answer, behind the
 * answers before, and then the channel is closed. Returns false if the stage cannot do that. */
bool domi_pipe_refuse_late(domi_pipe *pipe);

/* Implement domi_io_hooks.answer_request, fail_request and answer_peer. */
void domi_pipe_answer_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                              const domus_type *type, const void *payload);
void domi_pipe_fail_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                            int error);
void domi_pipe_answer_peer(domi_manager *manager, domi_house *house, uint32_t number, int error,
                           domi_envelope *answer);

/* Forget all requests. */
void domi_pipe_drop_requests(domi_pipe *pipe);

#endif
