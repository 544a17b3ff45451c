/* Answers of this side to requests of the peer, which are sent in the order of the requests. Owner
 * thread. */
#ifndef DOMI_IO_PIPELINES_ANSWERS_H
#define DOMI_IO_PIPELINES_ANSWERS_H

#include "io/pipelines/pipe.h"

/* Free the places of a pipeline's requests. */
void domi_pipe_free_request_places(domi_pipe *pipe);

/* Begin a request of the peer. Returns 0, with its number; -ENOMEM. */
int domi_pipe_begin_request_of_peer(domi_pipe *pipe, const domus_type *type, uint64_t id,
                                    bool alone, uint32_t *ret_number);

/* Returns the number of a request whose envelope this house has. */
static inline uint32_t domi_pipe_number_of_request(domi_envelope *ask)
{
    const domi_return *back = domi_envelope_get_return_of_ask(ask);

    return back->promise != NULL ? (uint32_t)back->promise->answer.tag : back->serial;
}

/* Queue the bytes that the stages have put into the scratch of the thread for sending. Returns 0,
 * or an error, and then the channel was reset. */
int domi_pipe_queue_encoded_bytes(domi_pipe *pipe);

/* The type that ends an answer in pieces without sending anything behind its last piece. */
extern const domus_type domi_end_type;

/* Returns the peer's request with this number; NULL: it is answered. */
domi_request *domi_pipe_find_request(domi_pipe *pipe, uint32_t number);

/* Send the bytes of the scratch when all answers before have left: they are a part of the answer to
 * a request that is not over. Returns 0, or an error, and then the channel was reset. */
int domi_pipe_send_part_of_answer(domi_pipe *pipe, uint32_t number);

/* Continue the work of a pipeline that has waited until a request was over, or until decoding had
 * stopped. */
void domi_pipe_continue_after_request(domi_pipe *pipe);

/* Answer the request `number` with the bytes that the stage encodes for the errno `error`. */
void domi_pipe_answer_with_error(domi_pipe *pipe, uint32_t number, int error);

/* Answer a message whose rest did not come in time: the stage encodes that answer, behind the
 * answers before, and then the channel is closed. Returns false if the stage cannot do that. */
bool domi_pipe_answer_late_message_and_close(domi_pipe *pipe);

/* Implement the hooks answer_request, fail_request and answer_peer of domi_io_hooks. */
void domi_pipe_answer_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                              const domus_type *type, const void *payload);
void domi_pipe_fail_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                            int error);
void domi_pipe_answer_peer_by_number(domi_manager *manager, domi_house *house, uint32_t number,
                                     int error, domi_envelope *answer);

/* Forget all requests of the peer, because the channel ends. */
void domi_pipe_forget_requests(domi_pipe *pipe);

#endif
