/* The functions by which the handler of a call of gRPC answers it. */
#include "protocols/grpc/grpc.h"

#include <errno.h>
#include <string.h>

/* Answer the call, and release the memory of the answer if it was not sent. */
static int reply_with_answer_or_release(domus_stack *stack, domus_grpc_answer *answer)
{
    int error = domus_reply(stack, &domus_grpc_answer_type, answer);

    if (error != 0)
        domus_grpc_answer_type.release(answer);
    return error;
}

int domus_grpc_reply(domus_stack *stack, domus_slice message)
{
    return reply_with_answer_or_release(stack, &(domus_grpc_answer){.message = message});
}

int domus_grpc_fail(domus_stack *stack, domus_grpc_status status, const char *text)
{
    domus_grpc_answer answer = {.status = status};
    int error = text != NULL ? domus_slice_copy(text, strlen(text), &answer.text) : 0;

    return error != 0 ? error : reply_with_answer_or_release(stack, &answer);
}

int domus_grpc_begin(domus_stack *stack, domus_slice metadata, domus_resumed *then)
{
    domi_grpc_inside *inside = domi_grpc_call_of_handler(stack);
    domus_http_response head;

    if (inside == NULL || !domi_grpc_is_answer_a_stream(inside)) {
        domus_slice_free(metadata);
        return inside == NULL ? -ECANCELED : -EOPNOTSUPP;
    }
    int result = domi_grpc_make_head_of_stream(inside, metadata, &head);
    if (result != 0)
        return result;
    /* Relaxed, all three accesses: messages order them, see domi_grpc_inside.begins. */
    bool before = atomic_load_explicit(&inside->begins, memory_order_relaxed);
    atomic_store_explicit(&inside->begins, true, memory_order_relaxed);
    result = domus_stream_begin(stack, inside->stream, &domus_http_response_type, &head, then);
    if (result < 0) {
        atomic_store_explicit(&inside->begins, before, memory_order_relaxed);
        domus_http_response_type.release(&head);
    }
    return result;
}

int domus_grpc_write(domus_stack *stack, domus_slice message, domus_resumed *then)
{
    const domi_grpc_inside *inside = domi_grpc_call_of_handler(stack);
    domus_slice frame;
    int error = inside == NULL                          ? -ECANCELED
                : !domi_grpc_is_answer_a_stream(inside) ? -EOPNOTSUPP
                /* relaxed: messages order this access, see domi_grpc_inside.begins */
                : !atomic_load_explicit(&inside->begins, memory_order_relaxed)
                    ? -EINVAL
                    : domi_grpc_make_frame_of_message(inside, message, &frame);

    domus_slice_free(message);
    return error != 0 ? error : domus_stream_write(stack, inside->stream, frame, then);
}

int domus_grpc_stream(domus_stack *stack, domus_stream *ret_stream)
{
    const domi_grpc_inside *inside = domi_grpc_call_of_handler(stack);

    if (inside == NULL)
        return -ECANCELED;
    *ret_stream = inside->stream;
    return 0;
}
