/* The pipeline of one channel: its wire (io/wire/), the requests of its peer that are not answered
 * yet, and the asks that the peer has to answer. The inside of domus/pipeline.h.
 *
 * Its parts: decode.c takes messages out of the bytes and handles them, within the run of the
 * channel's actor; answers.c brings answers back in the order of the requests; mail.c sends what
 * actors have for the peer, and gives them its answers.
 *
 * Requests are numbered in the order in which they came. A window of numbers, from the oldest that
 * is not answered to the newest, has a place each in `places`. The request at the front may write
 * to the channel; an answer behind it is encoded when it is there, and its bytes wait in its place.
 *
 * Owner thread. */
#ifndef DOMI_IO_PIPELINES_PIPE_H
#define DOMI_IO_PIPELINES_PIPE_H

#include "house/conversation/peer.h"
#include "io/channels/channel.h"
#include "io/wire/wire.h"

/* A request, from its decoding until its answer is queued. */
typedef struct domi_request {
    uint64_t id;            /* that the stage has given it */
    const domus_type *type; /* NULL: it stands for bytes that are wrong */
    domi_buffer_list bytes; /* its answer, which waits for its turn */
    uint64_t size;          /* bytes of that */
    bool answered;
    bool alone; /* DOMUS_ALONE */
} domi_request;

typedef struct domi_pipe {
    domus_channel *channel;
    domus_wire *wire;
    domus_stack *holder; /* the promises of requests that have left the house; NULL: none yet */

    domi_request *places; /* the request n is in places[n & (places_count - 1)] */
    uint32_t places_count;
    uint32_t first; /* number of the oldest request that is not over */
    uint32_t next;  /* number that the next request gets */

    domi_envelope *made;    /* the envelope in which a stage fills a payload; NULL: none */
    domi_envelope *spare;   /* one that can be used again; NULL: none */
    domi_envelope *current; /* the message that is handled now and that has not left; NULL: none */
    domi_envelope *held;    /* a request that may not begin yet */
    uint32_t held_marks;    /* of `held` */
    uint64_t held_id;
    domus_buffer *used; /* the piece whose last byte the message at hand has used */

    domi_node *asks;  /* asks with the peer, the oldest first (a circular list) */
    domi_node *queue; /* asks that wait */
    uint32_t asks_count;
    uint32_t queue_count;
    uint32_t next_ask; /* the number that the next ask gets, for protocols with ids */

    bool alone;  /* a request that is alone is not answered yet */
    bool undone; /* the last message still shows bytes where they were received */
    bool dry;    /* everything that came was looked at */
    bool failed; /* the bytes are wrong: nothing more is decoded, and the channel will close */
} domi_pipe;

/* Make the pipeline of a channel that opens. Returns 0; a negative errno. */
int domi_pipe_open(domus_channel *channel);

/* The connection is gone: let all that waits for it end, and free the pipeline. */
void domi_pipe_end(domus_channel *channel);

/* Requests that are not over. */
static inline uint32_t domi_pipe_requests(const domi_pipe *pipe)
{
    return pipe->next - pipe->first;
}

static inline domi_request *domi_pipe_request(domi_pipe *pipe, uint32_t number)
{
    return &pipe->places[number & (pipe->places_count - 1)];
}

/* --- decode.c -----------------------------------------------------------------------------------
 */

/* Decode and handle up to `budget` messages. Returns how many. */
uint32_t domi_pipe_run(domi_manager *manager, domi_house *house, domus_channel *channel,
                       uint32_t budget);

/* True if domi_pipe_run() would find something. */
bool domi_pipe_has_work(const domus_channel *channel);

/* True if the peer has finished sending and everything that it has sent was handled. */
bool domi_pipe_has_ended(const domus_channel *channel);

/* This is domi_io_hooks.release_message. */
int domi_pipe_release_message(domi_manager *manager, domi_house *house, domi_envelope *message);

/* --- answers.c ----------------------------------------------------------------------------------
 */

/* Begin a request. Returns 0, with its number; -ENOMEM. */
int domi_pipe_begin(domi_pipe *pipe, const domus_type *type, uint64_t id, bool alone,
                    uint32_t *ret_number);

/* Send what the stages have put into the scratch of the thread. Returns 0, or an error, and then
 * the channel was reset. */
int domi_pipe_flush_out(domi_pipe *pipe);

/* The request `number` gets what the stage makes of `error`. */
void domi_pipe_fail(domi_pipe *pipe, uint32_t number, int error);

/* These are domi_io_hooks.answer_request, fail_request and answer_peer. */
void domi_pipe_answer_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                              const domus_type *type, const void *payload);
void domi_pipe_fail_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                            int error);
void domi_pipe_answer_peer(domi_manager *manager, domi_house *house, uint32_t number, int error,
                           domi_envelope *answer);

/* Forget all requests. */
void domi_pipe_drop_requests(domi_pipe *pipe);

/* --- mail.c -------------------------------------------------------------------------------------
 */

/* This is domi_io_hooks.send_mail. */
bool domi_pipe_send_mail(domi_manager *manager, domi_house *house, domi_envelope *message);

/* The peer has answered: give the oldest ask, or the one with this id, its answer. Takes `made`. */
void domi_pipe_take_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *made, uint64_t id,
                           int error);

/* The connection is gone: the asks fail. */
void domi_pipe_drop_asks(domi_manager *manager, domi_pipe *pipe);

#endif
