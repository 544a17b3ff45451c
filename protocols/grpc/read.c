/* Reads the messages that a client sends in a call; a piece of the request's body is asked for only
 * when the reader needs one. */
#include "protocols/grpc/grpc.h"

#include <errno.h>

/* tag of the answer to a sleep that lasts until the time of the call is over */
#define TAG_OF_TIME 1u

/* Translate the errno of a read: each one that means a client that is gone becomes -ECANCELED. */
static int translate_gone_client_to_ecanceled(int error)
{
    bool is_gone =
        error == -ECONNRESET || error == -ECONNABORTED || error == -EPIPE || error == -ESTALE;

    return is_gone ? -ECANCELED : error;
}

/* Handle the answer for which a read has waited: a piece of the body, its end, or the end of a
 * pause. Returns 0, or a negative errno. */
static int store_piece_for_waiting_read(domus_stack *stack, domi_grpc_inside *inside,
                                        const domus_answer *answer)
{
    bool is_pause = inside->pauses;

    inside->waits = inside->pauses = false;
    if (answer->error != 0)
        return translate_gone_client_to_ecanceled(answer->error);
    if (inside->is_timed && answer->tag == TAG_OF_TIME)
        return -ETIMEDOUT;
    if (is_pause)
        return 0;
    /* an answer that is no piece is the trailers, which end the body and mean nothing to a
     * server */
    if (answer->type != &domus_piece_type) {
        inside->body.number = 0;
        return 0;
    }
    const domus_piece *piece = answer->payload;
    if (piece->last)
        inside->body.number = 0;
    if (piece->bytes.size == 0)
        return 0;
    int error = domus_take_answer(stack, answer);
    if (error == 0)
        domi_grpc_reader_put_piece(&inside->reader, piece->bytes);
    return error;
}

/* Begin to measure the time of the call by a sleep, if that was not done yet. Returns 0;
 * -ETIMEDOUT; a negative errno. */
static int start_timer_of_call_once(domus_stack *stack, domi_grpc_inside *inside)
{
    uint64_t now_ns = domus_now_ns(stack);

    if (inside->is_timed)
        return 0;
    if (inside->due_ns <= now_ns)
        return -ETIMEDOUT;
    int error = domus_sleep_add(stack, inside->due_ns - now_ns, TAG_OF_TIME);
    inside->is_timed = error == 0;
    return error;
}

/* Wait for a piece of the body, or for the next turn, and also for the end of the call's time. A
 * handler that reads has a deadline instead. Returns DOMUS_PARKED; a negative errno. */
static int wait_for_piece_pause_or_call_timeout(domus_stack *stack, domi_grpc_inside *inside,
                                                bool is_pause, domus_resumed *then)
{
    if (inside->due_ns == 0 || domi_grpc_is_request_a_stream(inside))
        return is_pause ? domus_sleep(stack, 1, then) : domus_body_read(stack, inside->body, then);
    int error = start_timer_of_call_once(stack, inside);
    if (error == 0)
        error =
            is_pause ? domus_sleep_add(stack, 1, 0) : domus_body_read_add(stack, inside->body, 0);
    return error != 0 ? error : domus_wait_first(stack, then);
}

/* Read the next message from the bytes that have come, or ask for a piece of the body. Returns true
 * if the read waits now; otherwise `error` of the call is its result. */
static bool read_next_message_or_wait(domus_stack *stack, domi_grpc_inside *inside,
                                      domus_resumed *then)
{
    int result = domi_grpc_reader_read_message(&inside->reader, &inside->message);

    if (result == 0 && inside->body.number == 0) {
        result = domi_grpc_reader_is_between_messages(&inside->reader) ? -ENODATA : -EPROTO;
    } else if (result == 0 || result == DOMI_GRPC_PAUSE) {
        bool is_pause = result == DOMI_GRPC_PAUSE;
        result = wait_for_piece_pause_or_call_timeout(stack, inside, is_pause, then);
        inside->waits = result == DOMUS_PARKED;
        inside->pauses = inside->waits && is_pause;
    }
    inside->error = result < 0 ? result : 0;
    return inside->waits;
}

bool domi_grpc_read_message(domus_stack *stack, domi_grpc_inside *inside,
                            const domus_answer *answer, domus_resumed *then)
{
    if (!inside->waits) { /* a new read begins, since none was waiting */
        domus_slice_free(inside->message);
        inside->message = (domus_slice){NULL, 0, 0};
    } else {
        inside->error = store_piece_for_waiting_read(stack, inside, answer);
    }
    return inside->error == 0 && read_next_message_or_wait(stack, inside, then);
}

bool domus_grpc_read_goes_on(domus_stack *stack, const domus_answer *answer, domus_resumed *then)
{
    domi_grpc_inside *inside = domi_grpc_call_of_handler(stack);

    return inside != NULL && domi_grpc_read_message(stack, inside, answer, then);
}

int domus_grpc_message(domus_stack *stack, domus_slice *ret_message)
{
    const domi_grpc_inside *inside = domi_grpc_call_of_handler(stack);

    if (inside == NULL)
        return -ECANCELED;
    if (inside->error == 0)
        *ret_message = inside->message;
    return inside->error;
}
