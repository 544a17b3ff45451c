/* Serves a call of gRPC in the conversation of its HTTP request, on the channel. */
#include "protocols/grpc/grpc.h"

#include <assert.h>
#include <errno.h>

typedef struct serving {
    domi_grpc_inside *inside; /* the call, of which the conversation of the request owns a share */
    /* the message of the call, if it has only one, until the handler is asked; then the fields of
     * the call's end, until it is known whether they follow a stream; owned */
    domus_slice message;
    bool has_message;
} serving;

static_assert(sizeof(serving) <= DOMUS_GRPC_FRAME, "the row of requests has too small a frame");

static void drop_call_and_message_of_frame(serving *frame)
{
    domi_grpc_free_call_if_last_owner(frame->inside);
    domus_slice_free(frame->message);
    frame->inside = NULL;
    frame->message = (domus_slice){NULL, 0, 0};
}

/* End the stream of the answer: its begin has left by now, or has failed and cannot be sent any
 * more. */
static int end_stream_after_second_begin(domus_stack *stack, void *self, const domus_answer *answer)
{
    serving *frame = domus_frame(stack);
    domus_slice fields = frame->message;

    (void)self;
    frame->message = (domus_slice){NULL, 0, 0};
    return domi_grpc_end_call_with_fields(stack, fields,
                                          answer->error == 0 || answer->error == -EALREADY);
}

/* End a call whose handler has sent a begin of the answer. Only the channel knows whether that
 * begin has arrived and was accepted, so this sends another begin: the channel refuses it by
 * -EALREADY, or takes it in place of the first. */
static int end_begun_call_by_second_begin(domus_stack *stack, serving *frame,
                                          const domus_grpc_answer *answer)
{
    static const domus_http_response head = {.status = 200, .media = DOMI_GRPC_MEDIA};

    drop_call_and_message_of_frame(frame);
    int result = domi_grpc_make_trailers_of_ended_call(answer, &frame->message);
    if (result == 0)
        result = domus_reply_begin(stack, &domus_http_response_type, &head,
                                   end_stream_after_second_begin);
    if (result < 0)
        drop_call_and_message_of_frame(frame);
    return result;
}

/* End the call, and drop the share of the call that the conversation of the request owns. */
static int end_call_with_answer(domus_stack *stack, serving *frame, const domus_grpc_answer *answer)
{
    /* relaxed: messages order this access, see domi_grpc_inside.begins */
    if (atomic_load_explicit(&frame->inside->begins, memory_order_relaxed))
        return end_begun_call_by_second_begin(stack, frame, answer);
    int result = domi_grpc_end_unanswered_call(stack, frame->inside, answer);
    drop_call_and_message_of_frame(frame);
    return result;
}

static int end_call_with_error(domus_stack *stack, serving *frame, int error)
{
    return end_call_with_answer(stack, frame,
                                &(domus_grpc_answer){.status = domus_grpc_status_of(error)});
}

/* Finish the call when its handler has answered or failed, or when the time of the call is over. */
static int end_call_as_handler_answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    serving *frame = domus_frame(stack);

    (void)self;
    if (answer->error != 0)
        return end_call_with_error(stack, frame, answer->error);
    if (answer->type == &domus_grpc_answer_type)
        return end_call_with_answer(stack, frame, answer->payload);
    return end_call_with_error(stack, frame, -ENOMSG);
}

/* Ask the handler of the call's method. */
static int ask_handler_of_method(domus_stack *stack, serving *frame)
{
    domi_grpc_inside *inside = frame->inside;
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);
    uint64_t now_ns = domus_now_ns(stack);
    domus_grpc_call call = {.method = inside->method, .message = frame->message, .inside = inside};

    if (inside->due_ns != 0 && inside->due_ns <= now_ns + 1)
        return end_call_with_error(stack, frame, -ETIMEDOUT);
    int error = request != NULL ? domus_slice_keep(request->fields, &call.fields) : -ECANCELED;
    if (error != 0)
        return end_call_with_error(stack, frame, error);
    /* Relaxed: the ask itself hands the new share to the handler. */
    atomic_fetch_add_explicit(&inside->owners, 1, memory_order_relaxed);
    frame->message = (domus_slice){NULL, 0, 0};
    int result = domus_ask_within(stack, domus_self(stack), &domus_grpc_call_type, &call,
                                  inside->due_ns != 0 ? inside->due_ns - now_ns : 0,
                                  end_call_as_handler_answered);
    if (result >= 0)
        return result;
    domus_grpc_call_type.release(&call);
    return end_call_with_error(stack, frame, result);
}

/* Read the message of a call that has only one, and check that no second one follows. */
static int read_single_message_of_call(domus_stack *stack, serving *frame,
                                       const domus_answer *answer, domus_resumed *then)
{
    domi_grpc_inside *inside = frame->inside;

    while (!domi_grpc_read_message(stack, inside, answer, then)) {
        if (inside->error == -ENODATA && frame->has_message)
            return ask_handler_of_method(stack, frame);
        if (inside->error != 0 || frame->has_message) /* no message has come, or a second one has */
            return end_call_with_error(
                stack, frame,
                inside->error != 0 && inside->error != -ENODATA ? inside->error : -EPROTO);
        frame->message = inside->message;
        frame->has_message = true;
        inside->message = (domus_slice){NULL, 0, 0};
    }
    return DOMUS_PARKED;
}

static int continue_to_read_single_message(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    (void)self;
    return read_single_message_of_call(stack, domus_frame(stack), answer,
                                       continue_to_read_single_message);
}

int domus_grpc_serve(domus_stack *stack, void *self, const domus_http_request *request,
                     const domus_grpc_service *service)
{
    static const domus_answer none = {.error = 0};
    serving *frame = domus_frame(stack);
    domi_grpc_refusal refusal;

    (void)self;
    if (frame == NULL)
        return -EINVAL;
    int result = domi_grpc_make_call_of_request(stack, request, service, &frame->inside, &refusal);
    if (result != 0)
        return result < 0 ? result : domi_grpc_refuse_request(stack, &refusal);
    return domi_grpc_is_request_a_stream(frame->inside)
               ? ask_handler_of_method(stack, frame)
               : read_single_message_of_call(stack, frame, &none, continue_to_read_single_message);
}

int domus_grpc_dispatch(domus_stack *stack, void *self, const void *payload)
{
    const domus_grpc_call *call = payload;

    return call->method->handle(stack, self, payload);
}
