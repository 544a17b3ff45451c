/* A call as the library sees it, and the doors between its files.
 *
 * Two conversations have a call. That of the request (serve.c), on the channel, looks at the
 * request (admit.c), reads the message if it comes alone, asks for the handler, and answers the
 * client (answer.c). That of the handler, perhaps on another thread, reads (read.c) and writes
 * (write.c). Each has an owner's share of the call, and the last one frees it. The reader belongs
 * to the conversation of the request until it has asked, and then to that of the handler. All else
 * is constant from then on, but for `begins`. */
#ifndef DOMI_PROTOCOLS_GRPC_H
#define DOMI_PROTOCOLS_GRPC_H

#include <domus/grpc.h>

#include "protocols/grpc/reader.h"

#include <stdatomic.h>

#define DOMI_GRPC_MESSAGE_MAX (4u << 20) /* bytes of a message, by default */
#define DOMI_GRPC_PREFIX      5u         /* bytes before each message */

typedef struct domi_grpc_inside {
    _Atomic uint32_t owners;
    const domus_grpc_service *service;
    const domus_grpc_method *method;
    domus_stream stream; /* of the answer */
    domus_body body;     /* of number 0: there is none, or it has ended */
    uint64_t due_ns;     /* when its time is over; 0: never */
    bool packs;          /* the client accepts gzip, and the service wants it */
    /* The handler has sent a begin of the answer, which may fail, or be on its way yet. It sets
     * this before, and the other conversation reads it when the ask is over: both in the order of
     * messages, but after a time-out. */
    _Atomic bool begins;
    domi_grpc_reader reader;
    domus_slice message; /* the message that was read last; owned */
    int error;           /* of the last read: 0, -ENODATA, or why there is none */
    bool waits;          /* for a piece of the body, or for its next turn: */
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

/* The call that the handler answers; NULL: it is over. */
static inline domi_grpc_inside *domi_grpc_inside_of(const domus_stack *stack)
{
    const domus_grpc_call *call = domus_asked(stack, &domus_grpc_call_type);

    return call != NULL ? call->inside : NULL;
}

/* Give a share of a call back. NULL is allowed. (types.c) */
void domi_grpc_drop(domi_grpc_inside *inside);

/* --- admit.c ---------------------------------------------------------------------------------- */

/* The end of a request that never becomes a call: a status of HTTP, if it is not 0; or else one of
 * gRPC. Its words are constants, which `path` follows, if it is not empty. */
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

/* Go on with a read, as domus_grpc_read_goes_on() does. That of a message that comes alone ends
 * with -ETIMEDOUT at due_ns: the conversation of a request has no deadline. */
bool domi_grpc_read(domus_stack *stack, domi_grpc_inside *inside, const domus_answer *answer,
                    domus_resumed *then);

/* --- metadata.c ------------------------------------------------------------------------------- */

/* Check metadata: fields that HTTP can send, and that say nothing of the message or the call.
 * Returns 0; -EINVAL. */
int domi_grpc_check_metadata(domus_slice fields);

/* --- answer.c --------------------------------------------------------------------------------- */

#define DOMI_GRPC_MEDIA "application/grpc"

/* Make the fields of the end of a call. The slice is the caller's. Returns 0; -ENOMEM. */
int domi_grpc_make_end(const domus_grpc_answer *answer, domus_slice *ret_fields);

/* End the call with such fields: behind its stream, if that has begun, or else alone. Takes them in
 * every case. Returns as a handler does. */
int domi_grpc_reply_end(domus_stack *stack, domus_slice fields, bool has_begun);

/* Make the head of an answer with a stream of messages. Takes `metadata` in every case. Returns 0;
 * -EINVAL; -ENOMEM. */
int domi_grpc_make_head(const domi_grpc_inside *inside, domus_slice metadata,
                        domus_http_response *ret_response);

/* Make a frame of a message, compressed if that is wanted. Returns as domus_grpc_frame(). */
int domi_grpc_pack_frame(const domi_grpc_inside *inside, domus_slice message,
                         domus_slice *ret_frame);

/* Answer the request that is handled, of whose answer nothing was sent: to end its call, or to
 * refuse it. `answer` is not changed. Return as a handler does. */
int domi_grpc_end(domus_stack *stack, const domi_grpc_inside *inside,
                  const domus_grpc_answer *answer);
int domi_grpc_refuse(domus_stack *stack, const domi_grpc_refusal *refusal);

#endif
