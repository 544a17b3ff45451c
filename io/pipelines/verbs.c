/* Implements the verbs of domus/stream.h, and receives their asks. Each verb is an ask to the actor
 * of the channel, so it works from any actor on any thread. */
#include "io/pipelines/hooks.h"

#include "base/memory.h"
#include "house/conversation/asks.h"
#include "house/conversation/owed.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/body.h"
#include "io/pipelines/mail.h"
#include "io/pipelines/stream.h"
#include "io/pipelines/upload.h"

#include <domus/channel.h>
#include <domus/stream.h>

#include <errno.h>

/* --- bodies ----------------------------------------------------------------------------------- */

int domus_body_read(domus_stack *stack, domus_body body, domus_resumed *then)
{
    return body.number != 0
               ? domi_ask_for_earlier_work(stack, body.channel, &domi_read_type, &body, then)
               : -EINVAL;
}

int domus_body_read_add(domus_stack *stack, domus_body body, uint64_t tag)
{
    return body.number != 0
               ? domi_ask_add_for_earlier_work(stack, body.channel, &domi_read_type, &body, tag)
               : -EINVAL;
}

/* --- streams ---------------------------------------------------------------------------------- */

int domus_reply_stream(domus_stack *stack, domus_stream *ret_stream)
{
    domus_stream stream = {.number = 0};
    int error = domi_stack_find_request_of_peer(stack, &stream.channel, &stream.number);

    if (error == 0)
        *ret_stream = stream;
    return error;
}

int domus_kept_stream(domus_stack *stack, domus_kept kept, domus_stream *ret_stream)
{
    domus_stream stream = {.number = 0};
    int error = domi_kept_find_request_of_peer(stack, kept, &stream.channel, &stream.number);

    if (error == 0)
        *ret_stream = stream;
    return error;
}

int domus_stream_begin(domus_stack *stack, domus_stream stream, const domus_type *type,
                       const void *payload, domus_resumed *then)
{
    domi_part part = {.number = stream.number, .kind = DOMI_PART_HEAD};
    int error = stream.of_request ? -EINVAL : domi_stream_part_set_message(&part, type, payload);

    if (error != 0)
        return error;
    int result = domi_ask_for_earlier_work(stack, stream.channel, &domi_part_type, &part, then);
    if (result < 0)
        /* on failure the caller still owns the members of the head */
        domi_memory_free(part.message);
    return result;
}

int domus_stream_write(domus_stack *stack, domus_stream stream, domus_slice bytes,
                       domus_resumed *then)
{
    const domi_part part = {.number = stream.number,
                            .kind = DOMI_PART_PIECE,
                            .of_request = stream.of_request,
                            .bytes = bytes};

    int result = domi_ask_for_earlier_work(stack, stream.channel, &domi_part_type, &part, then);
    if (result < 0)
        domus_slice_free(bytes);
    return result;
}

int domus_stream_write_add(domus_stack *stack, domus_stream stream, domus_slice bytes, uint64_t tag)
{
    const domi_part part = {.number = stream.number,
                            .kind = DOMI_PART_PIECE,
                            .of_request = stream.of_request,
                            .bytes = bytes};

    int error = domi_ask_add_for_earlier_work(stack, stream.channel, &domi_part_type, &part, tag);
    if (error != 0)
        domus_slice_free(bytes);
    return error;
}

int domus_reply_await_turn(domus_stack *stack, const domus_type *type, const void *payload,
                           domus_resumed *then)
{
    domus_stream stream;
    domi_part part = {.kind = DOMI_PART_TURN};
    int error = domus_reply_stream(stack, &stream);

    if (error == 0)
        error = domi_stream_part_set_message(&part, type, payload);
    if (error != 0)
        return error;
    part.number = stream.number;
    int result = domi_ask_for_earlier_work(stack, stream.channel, &domi_part_type, &part, then);
    if (result < 0)
        /* on failure the caller still owns the members of the payload */
        domi_memory_free(part.message);
    return result;
}

bool domus_reply_has_turn(domus_stack *stack)
{
    const domus_channel *channel = domus_channel_running(stack);
    domus_stream stream;

    return channel != NULL && channel->pipe != NULL && domus_reply_stream(stack, &stream) == 0 &&
           stream.channel.house == channel->house && stream.number == channel->pipe->first;
}

int domus_reply_begin(domus_stack *stack, const domus_type *type, const void *payload,
                      domus_resumed *then)
{
    domus_stream stream;
    int error = domus_reply_stream(stack, &stream);

    return error != 0 ? error : domus_stream_begin(stack, stream, type, payload, then);
}

int domus_reply_write(domus_stack *stack, domus_slice bytes, domus_resumed *then)
{
    domus_stream stream;
    int error = domus_reply_stream(stack, &stream);

    if (error == 0)
        return domus_stream_write(stack, stream, bytes, then);
    domus_slice_free(bytes);
    return error;
}

int domus_reply_end(domus_stack *stack, const domus_type *type, const void *payload)
{
    return type != NULL ? domus_reply(stack, type, payload)
                        : domus_reply(stack, &domi_end_type, NULL);
}

/* --- requests in pieces ----------------------------------------------------------------------- */

int domus_request_begin(domus_stack *stack, domus_address to, const domus_type *type,
                        const void *payload, uint64_t timeout_ns, domus_resumed *then)
{
    domi_part part = {.number = 0};
    int error = domi_stream_part_set_message(&part, type, payload);

    if (error != 0)
        return error;
    domi_upload_head head = {.type = type, .message = part.message};
    int result = domi_ask_put_first_part_and_wait(stack, to, &domi_upload_type, &head, &head.begin,
                                                  timeout_ns, then);
    if (result < 0)
        /* on failure the caller still owns the members of the head */
        domi_memory_free(head.message);
    return result;
}

int domus_request_write(domus_stack *stack, domus_request request, domus_slice bytes,
                        domus_resumed *then)
{
    return domus_stream_write(stack, request.stream, bytes, then);
}

/* Send the last part of a request in pieces, and wait for the answer. If no conversation waits for
 * the answer any more, wait until the part is sent. */
static int end_request_in_pieces(domus_stack *stack, domus_request request, domi_part *part,
                                 domus_resumed *then)
{
    const domi_asking asking = {request.promise, request.serial};
    int error = domi_ask_check_under_way(stack, asking);

    part->number = request.stream.number;
    part->of_request = true;
    part->serial = request.serial;
    part->waits = error == -ENOENT;
    if (error == -ENOENT)
        return domi_ask_for_earlier_work(stack, request.stream.channel, &domi_part_type, part,
                                         then);
    return error != 0 ? error
                      : domi_ask_put_last_part_and_wait(stack, asking, request.stream.channel,
                                                        &domi_part_type, part, then);
}

int domus_request_end(domus_stack *stack, domus_request request, const domus_type *type,
                      const void *payload, domus_resumed *then)
{
    domi_part part = {.kind = DOMI_PART_END};
    int error = type != NULL ? domi_stream_part_set_message(&part, type, payload) : 0;

    if (error != 0)
        return error;
    int result = end_request_in_pieces(stack, request, &part, then);
    if (result < 0)
        /* on failure the caller still owns the members of the payload */
        domi_memory_free(part.message);
    return result;
}

int domus_request_cut(domus_stack *stack, domus_request request, domus_resumed *then)
{
    domi_part part = {.kind = DOMI_PART_CUT};

    return end_request_in_pieces(stack, request, &part, then);
}

/* --- their asks ------------------------------------------------------------------------------- */

bool domi_pipe_send_mail_or_handle_stream(domi_manager *manager, domi_house *house,
                                          domi_envelope *message)
{
    bool is_read = message->type == &domi_read_type;

    if (domi_pipe_send_mail_to_peer(manager, house, message))
        return true;
    if (message->node.kind != DOMI_ASK || (!is_read && message->type != &domi_part_type))
        return domi_pipe_hold_early_ask(manager, house, message);
    domi_pipe *pipe = domi_pipe_of_house(house);
    if (pipe == NULL || pipe->channel->state != DOMI_CHANNEL_OPEN)
        domi_ask_fail(manager, message, -EPIPE);
    else if (is_read)
        domi_body_handle_ask_for_piece(manager, pipe, message);
    else if (((const domi_part *)domi_envelope_get_payload(message))->of_request)
        domi_upload_send_piece_or_end(manager, pipe, message);
    else
        domi_stream_send_part_of_answer(manager, pipe, message);
    return true;
}
