/* A call as the library sees it, and the functions that its files call of each other.
 *
 * Two conversations share a call. The conversation of the request (serve.c), on the channel, looks
 * at the request (admit.c), reads the message if it comes alone, asks the handler, and answers the
 * client (answer.c). The conversation of the handler, perhaps on another thread, reads (read.c) and
 * writes (write.c). Each conversation owns a share of the call, and the last share frees it. The
 * reader belongs to the conversation of the request until it has asked the handler, and then to the
 * conversation of the handler. All other members are constant from then on, except `begins`. */
#ifndef DOMI_PROTOCOLS_GRPC_H
#define DOMI_PROTOCOLS_GRPC_H

#include <domus/grpc.h>

#include "protocols/grpc/reader.h"

#include <stdatomic.h>

#define DOMI_GRPC_MESSAGE_MAX (4u << 20) /* bytes of a message at most, by default */
#define DOMI_GRPC_PREFIX      5u         /* bytes before each message */

typedef struct domi_grpc_inside {
    _Atomic uint32_t owners;
    const domus_grpc_service *service;
    const domus_grpc_method *method;
    domus_stream stream; /* the stream of the answer */
    /* the body of the request; of number 0: there is no body, or it has ended */
    domus_body body;
    uint64_t due_ns; /* time at which the call is over, in ns; 0: never */
    bool packs;      /* the client accepts gzip, and the service wants it */
    /* True once the handler has sent a begin of the answer, which may fail or be on its way yet.
     * The handler sets it before it sends the begin, and the conversation of the request reads it
     * after the ask is over: the messages order both accesses, except after a time-out. */
    _Atomic bool begins;
    domi_grpc_reader reader;
    domus_slice message; /* the message that was read last; owned */
    int error;           /* result of the last read: 0, -ENODATA at the end, or another errno */
    bool waits;          /* the reader waits for a piece of the body, or for its next turn */
    bool pauses;
    bool is_timed; /* a sleep until due_ns is under way in the conversation of the request */
} domi_grpc_inside;

static inline bool domi_grpc_streams_in(const domi_grpc_inside *inside)
{
    return inside->method->kind == DOMUS_GRPC_CLIENT_STREAMING ||
           inside->method->kind == DOMUS_GRPC_BIDIRECTIONAL;
}

static inline bool domi_grpc_streams_out(const domi_grpc_inside *inside)
{
    return inside->method->kind == DOMUS_GRPC_SERVER_STREAMING ||
           inside->method->kind == DOMUS_GRPC_BIDIRECTIONAL;
}

/* Returns the call that the handler answers; NULL if the call is over. */
static inline domi_grpc_inside *domi_grpc_inside_of(const domus_stack *stack)
{
    const domus_grpc_call *call = domus_asked(stack, &domus_grpc_call_type);

    return call != NULL ? call->inside : NULL;
}

/* Give a share of a call back. NULL is allowed. (types.c) */
void domi_grpc_drop(domi_grpc_inside *inside);

/* --- admit.c ---------------------------------------------------------------------------------- */

/* The refusal of a request that never becomes a call: a status of HTTP if that is not 0, else a
 * status of gRPC. Its text is a constant, followed by `path` if that is not empty. */
typedef struct domi_grpc_refusal {
    uint16_t http;
    domus_grpc_status status;
    const char *text;
    domus_slice path;
} domi_grpc_refusal;

/* Look at a request. Returns 0, with a call of one share; 1 with a refusal; -EINVAL for a service
 * that is wrong; -ENOMEM. */
int domi_grpc_admit(domus_stack *stack, const domus_http_request *request,
                    const domus_grpc_service *service, domi_grpc_inside **ret_inside,
                    domi_grpc_refusal *ret_refusal);

/* --- read.c ----------------------------------------------------------------------------------- */

/* Continue a read, as domus_grpc_read_goes_on() does. The read of a message that comes alone ends
 * with -ETIMEDOUT at due_ns, because the conversation of a request has no deadline of its own. */
bool domi_grpc_read(domus_stack *stack, domi_grpc_inside *inside, const domus_answer *answer,
                    domus_resumed *then);

/* --- metadata.c ------------------------------------------------------------------------------- */

/* Check metadata: its fields must be such as HTTP can send, and must not be those that describe the
 * message or the call. Returns 0; -EINVAL. */
int domi_grpc_check_metadata(domus_slice fields);

/* --- answer.c --------------------------------------------------------------------------------- */

#define DOMI_GRPC_MEDIA "application/grpc"

/* Make the fields of the end of a call. The slice is the caller's. Returns 0; -ENOMEM. */
int domi_grpc_make_end(const domus_grpc_answer *answer, domus_slice *ret_fields);

/* End the call with the fields that domi_grpc_make_end() has made: behind its stream, if that has
 * begun, or else alone. Takes `fields` in every case. Returns as a handler does. */
int domi_grpc_reply_end(domus_stack *stack, domus_slice fields, bool has_begun);

/* Make the head of an answer with a stream of messages. Takes `metadata` in every case. Returns 0;
 * -EINVAL; -ENOMEM. */
int domi_grpc_make_head(const domi_grpc_inside *inside, domus_slice metadata,
                        domus_http_response *ret_response);

/* Make a frame of a message, compressed if the client and the service want that. Returns as
 * domus_grpc_frame(). */
int domi_grpc_pack_frame(const domi_grpc_inside *inside, domus_slice message,
                         domus_slice *ret_frame);

/* End the call of the request that is handled, of whose answer nothing was sent yet, with `answer`,
 * which may be a failure. Returns as a handler does. */
int domi_grpc_end(domus_stack *stack, const domi_grpc_inside *inside,
                  const domus_grpc_answer *answer);
int domi_grpc_refuse(domus_stack *stack, const domi_grpc_refusal *refusal);

#endif
