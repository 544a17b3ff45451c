/* A call of gRPC as the library sees it, and the functions that its files call of each other.
 *
 * Two conversations share a call. The conversation of the request (serve.c), on the channel, looks
 * at the request (admit.c), reads the message if the call has only one, asks the handler, and
 * answers the client (answer.c). The conversation of the handler, perhaps on another thread, reads
 * (read.c) and writes (write.c). Each conversation owns a share of the call, and the last share
 * frees it. The reader belongs to the conversation of the request until it has asked the handler,
 * and then to the conversation of the handler. All other members are constant from then on, except
 * `begins`. */
#ifndef DOMI_PROTOCOLS_GRPC_H
#define DOMI_PROTOCOLS_GRPC_H

#include <domus/grpc.h>

#include "protocols/grpc/reader.h"

#include <stdatomic.h>

/* bytes of a message of gRPC at most, if the service sets no bound */
#define DOMI_GRPC_MESSAGE_MAX (4u << 20)
#define DOMI_GRPC_PREFIX      5u /* bytes of the prefix before each message: a flag and the size */

typedef struct domi_grpc_inside {
    _Atomic uint32_t owners;
    const domus_grpc_service *service;
    const domus_grpc_method *method;
    domus_stream stream; /* the stream by which the answer of the call is sent */
    /* the body of the request; with number 0 there is none, or it has ended */
    domus_body body;
    uint64_t due_ns; /* time in ns at which the time of the call is over; 0: it has no bound */
    /* messages of the answer are compressed: the client accepts gzip, and the service wants it */
    bool packs;
    /* True once the handler has sent a begin of the answer, which may fail or still be on its way.
     * The handler sets it before it sends the begin, and the conversation of the request reads it
     * after the ask is over: the messages order both accesses, except after a time-out. */
    _Atomic bool begins;
    domi_grpc_reader reader;
    domus_slice message; /* the message of the call that was read last; the call owns it */
    /* result of the last read: 0, -ENODATA at the end of the messages, or another errno */
    int error;
    bool waits; /* the reader waits for a piece of the request's body, or for its next turn */
    bool pauses;
    bool is_timed; /* in the conversation of the request, a sleep until `due_ns` is under way */
} domi_grpc_inside;

static inline bool domi_grpc_is_request_a_stream(const domi_grpc_inside *inside)
{
    return inside->method->kind == DOMUS_GRPC_CLIENT_STREAMING ||
           inside->method->kind == DOMUS_GRPC_BIDIRECTIONAL;
}

static inline bool domi_grpc_is_answer_a_stream(const domi_grpc_inside *inside)
{
    return inside->method->kind == DOMUS_GRPC_SERVER_STREAMING ||
           inside->method->kind == DOMUS_GRPC_BIDIRECTIONAL;
}

/* Returns the call that the current handler answers; NULL if the call is over. */
static inline domi_grpc_inside *domi_grpc_call_of_handler(const domus_stack *stack)
{
    const domus_grpc_call *call = domus_asked(stack, &domus_grpc_call_type);

    return call != NULL ? call->inside : NULL;
}

/* Give back a share of a call, which the last share frees. NULL is allowed (types.c). */
void domi_grpc_free_call_if_last_owner(domi_grpc_inside *inside);

/* --- admit.c ---------------------------------------------------------------------------------- */

/* The refusal of a request that never becomes a call: by a status of HTTP if `http` is not 0, else
 * by a status of gRPC. Its text is a constant, followed by `path` if that is not empty. */
typedef struct domi_grpc_refusal {
    uint16_t http;
    domus_grpc_status status;
    const char *text;
    domus_slice path;
} domi_grpc_refusal;

/* Look at a request, and make a call of it. Returns 0, with a call of one share; 1 with a refusal;
 * -EINVAL for a service that is wrong; -ENOMEM. */
int domi_grpc_make_call_of_request(domus_stack *stack, const domus_http_request *request,
                                   const domus_grpc_service *service, domi_grpc_inside **ret_inside,
                                   domi_grpc_refusal *ret_refusal);

/* --- read.c ----------------------------------------------------------------------------------- */

/* Continue to read a message, as domus_grpc_read_goes_on() does. If the method has only one
 * message, the read ends with -ETIMEDOUT at `due_ns`, because the conversation of a request has no
 * deadline of its own. */
bool domi_grpc_read_message(domus_stack *stack, domi_grpc_inside *inside,
                            const domus_answer *answer, domus_resumed *then);

/* --- metadata.c ------------------------------------------------------------------------------- */

/* Check the metadata of a call before it is sent: its fields must be such as HTTP can send, and
 * must not be those that describe the message or the call. Returns 0; -EINVAL. */
int domi_grpc_check_metadata(domus_slice fields);

/* --- answer.c --------------------------------------------------------------------------------- */

#define DOMI_GRPC_MEDIA "application/grpc"

/* Make the fields of the end of a call. The caller owns the slice. Returns 0; -ENOMEM. */
int domi_grpc_make_trailers_of_ended_call(const domus_grpc_answer *answer, domus_slice *ret_fields);

/* End the call with the fields that domi_grpc_make_trailers_of_ended_call() has made: behind its
 * stream of messages, if that has begun, or else alone. Consumes `fields` in every case. Returns as
 * a handler does. */
int domi_grpc_end_call_with_fields(domus_stack *stack, domus_slice fields, bool has_begun);

/* Make the head of an answer that is a stream of messages. Consumes `metadata` in every case.
 * Returns 0; -EINVAL; -ENOMEM. */
int domi_grpc_make_head_of_stream(const domi_grpc_inside *inside, domus_slice metadata,
                                  domus_http_response *ret_response);

/* Make the frame of a message, compressed if the client and the service want that. Returns as
 * domus_grpc_frame(). */
int domi_grpc_make_frame_of_message(const domi_grpc_inside *inside, domus_slice message,
                                    domus_slice *ret_frame);

/* End the call of the request that is being handled with `answer`, which may be a failure. Nothing
 * of its answer must have been sent yet. Returns as a handler does. */
int domi_grpc_end_unanswered_call(domus_stack *stack, const domi_grpc_inside *inside,
                                  const domus_grpc_answer *answer);
int domi_grpc_refuse_request(domus_stack *stack, const domi_grpc_refusal *refusal);

#endif
