/* Reads the messages of a call: a piece of the body is asked for when the reader needs one. */
#include "protocols/grpc/grpc.h"

#include <errno.h>

/* The error of a read: a client that is gone has taken its calls back. */
static int error_of(int error)
{
    bool is_gone =
        error == -ECONNRESET || error == -ECONNABORTED || error == -EPIPE || error == -ESTALE;

    return is_gone ? -ECANCELED : error;
}

/* Take what a wait has brought: a piece, the end, or nothing behind a pause. Returns 0, or an
 * error. */
static int take_piece(domus_stack *stack, domi_grpc_inside *inside, const domus_answer *answer)
{
    bool is_pause = inside->pauses;

    inside->waits = inside->pauses = false;
    if (answer->error != 0)
        return error_of(answer->error);
    if (is_pause)
        return 0;
    if (answer->type != &domus_piece_type) { /* trailers, which say nothing to a server */
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
        domi_grpc_reader_put(&inside->reader, piece->bytes);
    return error;
}

/* Take the next message, or ask for a piece. Returns whether a wait has begun; otherwise `error`
 * says how the read has ended. */
static bool seek_message(domus_stack *stack, domi_grpc_inside *inside, domus_resumed *then)
{
    int result = domi_grpc_reader_next(&inside->reader, &inside->message);

    if (result == DOMI_GRPC_PAUSE) {
        result = domus_sleep(stack, 1, then);
        inside->waits = inside->pauses = result == DOMUS_PARKED;
        inside->error = result < 0 ? result : 0;
        return inside->waits;
    }
    if (result == 0 && inside->body.number == 0)
        result = domi_grpc_reader_is_between(&inside->reader) ? -ENODATA : -EPROTO;
    else if (result == 0) {
        result = domus_body_read(stack, inside->body, then);
        inside->waits = result == DOMUS_PARKED;
    }
    inside->error = result < 0 ? result : 0;
    return inside->waits;
}

bool domi_grpc_read(domus_stack *stack, domi_grpc_inside *inside, const domus_answer *answer,
                    domus_resumed *then)
{
    if (!inside->waits) { /* a new read */
        domus_slice_free(inside->message);
        inside->message = (domus_slice){NULL, 0, 0};
    } else {
        inside->error = take_piece(stack, inside, answer);
    }
    return inside->error == 0 && seek_message(stack, inside, then);
}

bool domus_grpc_read_goes_on(domus_stack *stack, const domus_answer *answer, domus_resumed *then)
{
    domi_grpc_inside *inside = domi_grpc_inside_of(stack);

    return inside != NULL && domi_grpc_read(stack, inside, answer, then);
}

int domus_grpc_message(domus_stack *stack, domus_slice *ret_message)
{
    const domi_grpc_inside *inside = domi_grpc_inside_of(stack);

    if (inside == NULL)
        return -ECANCELED;
    if (inside->error == 0)
        *ret_message = inside->message;
    return inside->error;
}
