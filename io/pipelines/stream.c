/* Sends answers in pieces, and lets the writers of all streams wait until they may go on. */
#include "io/pipelines/stream.h"

#include "base/memory.h"
#include "house/conversation/asks.h"
#include "io/channels/crowd.h"
#include "io/pipelines/answers.h"

#include <errno.h>
#include <string.h>

static void release_part_of_stream(void *payload)
{
    domi_part *part = payload;

    if (part->message != NULL && part->type->release != NULL)
        part->type->release(part->message);
    domi_memory_free(part->message);
    domus_slice_free(part->bytes);
}

const domus_type domi_part_type = {
    .name = "stream part", .size = sizeof(domi_part), .release = release_part_of_stream};

const domus_type domi_taken_type = {.name = "stream part taken"};

int domi_stream_part_set_message(domi_part *part, const domus_type *type, const void *payload)
{
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    part->message = domi_memory_new(type->size != 0 ? type->size : 1);
    if (part->message == NULL)
        return -ENOMEM;
    part->type = type;
    if (type->size != 0)
        memcpy(part->message, payload, type->size);
    return 0;
}

static const domi_part *get_stream_part_of_ask(domi_envelope *ask)
{
    return domi_envelope_get_payload(ask);
}

/* True if the stream has ended: its upload is not open, or its request is answered. */
static bool is_stream_over(domi_pipe *pipe, const domi_part *part)
{
    return part->of_request ? !domi_upload_is_open(pipe, part->number)
                            : domi_pipe_find_request(pipe, part->number) == NULL;
}

/* True if the next piece of the stream may be sent. */
static bool may_next_piece_be_sent(const domi_pipe *pipe, const domi_part *part)
{
    const domus_channel *channel = pipe->channel;

    if (part->of_request)
        return !channel->high && !channel->crowded && !pipe->wire->holds;
    return part->number == pipe->first &&
           ((!channel->high && !channel->crowded) || domi_channel_may_oldest_answer_go_on(channel));
}

bool domi_stream_has_waiting_write(const domi_pipe *pipe, const domi_part *part)
{
    const domi_node *last = pipe->writers;
    const domi_node *node = last;

    while (node != NULL) {
        node = node->next;
        const domi_part *other = get_stream_part_of_ask((domi_envelope *)(uintptr_t)node);
        if (other->number == part->number && other->of_request == part->of_request)
            return true;
        if (node == last)
            break;
    }
    return false;
}

static int encode_head_of_stream(domi_pipe *pipe, domi_request *request, const domi_part *part)
{
    if (request->streaming)
        return -EALREADY;
    if (!pipe->wire->stages[pipe->wire->count - 1].stage->has_bodies)
        return -EOPNOTSUPP;
    pipe->wire->stream = &request->note;
    domi_pipe_begin_encoding_answer(pipe, part->number);
    int error = domi_wire_encode_message(pipe->wire, request->id, part->type, part->message);
    pipe->wire->stream = NULL;
    request->streaming = error == 0;
    pipe->channel->streams += error == 0;
    return error;
}

static int encode_piece_of_stream(domi_pipe *pipe, domi_request *request, const domi_part *part)
{
    const domus_piece piece = {part->bytes, false};

    if (!request->streaming)
        return -EINVAL;
    if (domi_stream_has_waiting_write(pipe, part))
        return -EBUSY;
    if (domi_channel_is_write_refused(
            pipe->channel, domi_io_count_further_bytes_of_slice(pipe->channel->io, part->bytes)))
        return -ENOBUFS;
    if (part->bytes.size == 0)
        return 0;
    domi_pipe_begin_encoding_answer(pipe, part->number);
    pipe->wire->stream = &request->note;
    int error = domi_wire_encode_message(pipe->wire, request->id, &domus_piece_type, &piece);
    pipe->wire->stream = NULL;
    return error;
}

/* Tell the writer of a part of a stream that it may send the next one. */
static void answer_writer_of_part(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    domi_part *part = domi_envelope_get_payload(ask);
    void *message = part->message;

    if (part->kind != DOMI_PART_TURN) {
        domi_ask_answer_for_house(manager, pipe->channel->house, ask, &domi_taken_type, NULL);
        return;
    }
    part->message = NULL; /* the answer to the writer owns the members of the message now */
    domi_ask_answer_for_house(manager, pipe->channel->house, ask, part->type, message);
    domi_memory_free(message);
}

void domi_stream_answer_writer_or_wait(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    const domi_part *part = get_stream_part_of_ask(ask);

    if (part->of_request && domi_upload_take_news_of_answer(pipe)) {
        domi_ask_fail(manager, ask, -EALREADY);
    } else if (may_next_piece_be_sent(pipe, part)) {
        answer_writer_of_part(manager, pipe, ask);
    } else {
        domi_list_append_node(&pipe->writers, &ask->node);
        pipe->writer_count++;
    }
}

void domi_stream_send_part_of_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    const domi_part *part = get_stream_part_of_ask(ask);

    domi_request *request = domi_pipe_find_request(pipe, part->number);
    int error = request == NULL                ? -EPIPE
                : part->kind == DOMI_PART_TURN ? 0
                : part->kind == DOMI_PART_HEAD ? encode_head_of_stream(pipe, request, part)
                                               : encode_piece_of_stream(pipe, request, part);

    if (error == 0 && !domi_out_is_empty(pipe->wire->out))
        error = domi_pipe_send_part_of_answer(pipe, part->number);
    if (error < 0)
        domi_ask_fail(manager, ask, error);
    else if (part->kind == DOMI_PART_HEAD)
        domi_ask_answer_for_house(manager, pipe->channel->house, ask, &domi_taken_type, NULL);
    else
        domi_stream_answer_writer_or_wait(manager, pipe, ask);
}

void domi_stream_continue_writes(domi_manager *manager, domi_pipe *pipe)
{
    domi_node *waiting = pipe->writers;

    pipe->writers = NULL;
    pipe->writer_count = 0;
    while (waiting != NULL) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take_first_node(&waiting);
        if (is_stream_over(pipe, get_stream_part_of_ask(ask)))
            domi_ask_fail(manager, ask, -EPIPE);
        else
            domi_stream_answer_writer_or_wait(manager, pipe, ask);
    }
}

void domi_stream_end_waiting_writes(domi_manager *manager, domi_pipe *pipe)
{
    while (pipe->writers != NULL)
        domi_ask_fail(manager, (domi_envelope *)(void *)domi_list_take_first_node(&pipe->writers),
                      -EPIPE);
    pipe->writer_count = 0;
}
