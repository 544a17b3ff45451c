/* Sends answers in pieces, and lets their writers wait. */
#include "io/pipelines/stream.h"

#include "base/memory.h"
#include "house/conversation/answer.h"
#include "io/channels/crowd.h"
#include "io/pipelines/answers.h"

#include <errno.h>

static void release_part(void *payload)
{
    domi_part *part = payload;

    if (part->head != NULL && part->type->release != NULL)
        part->type->release(part->head);
    domi_memory_free(part->head);
    domus_slice_free(part->bytes);
}

const domus_type domi_part_type = {
    .name = "stream part", .size = sizeof(domi_part), .release = release_part};

static const domus_type taken_type = {.name = "stream part taken"};

static const domi_part *part_of(domi_envelope *ask)
{
    return domi_envelope_payload(ask);
}

/* The next piece of the stream may come. */
static bool is_free(domi_pipe *pipe, uint32_t number)
{
    const domus_channel *channel = pipe->channel;

    return number == pipe->first && !channel->high && !channel->crowded;
}

/* True if a write to this answer waits. */
static bool has_writer(const domi_pipe *pipe, uint32_t number)
{
    const domi_node *last = pipe->writers;
    const domi_node *node = last;

    while (node != NULL) {
        node = node->next;
        if (part_of((domi_envelope *)(uintptr_t)node)->number == number)
            return true;
        if (node == last)
            break;
    }
    return false;
}

static int encode_head(domi_pipe *pipe, domi_request *request, const domi_part *part)
{
    if (request->streaming)
        return -EALREADY;
    if (!pipe->wire->stages[pipe->wire->count - 1].stage->has_bodies)
        return -EOPNOTSUPP;
    pipe->wire->stream = &request->note;
    int error = domi_wire_encode(pipe->wire, request->id, part->type, part->head);
    pipe->wire->stream = NULL;
    request->streaming = error == 0;
    return error;
}

static int encode_piece(domi_pipe *pipe, domi_request *request, const domi_part *part)
{
    const domus_piece piece = {part->bytes, false};

    if (!request->streaming)
        return -EINVAL;
    if (has_writer(pipe, part->number))
        return -EBUSY;
    if (domi_channel_is_refused(pipe->channel, part->bytes.size))
        return -ENOBUFS;
    if (part->bytes.size == 0)
        return 0;
    pipe->wire->stream = &request->note;
    int error = domi_wire_encode(pipe->wire, request->id, &domus_piece_type, &piece);
    pipe->wire->stream = NULL;
    return error;
}

void domi_stream_take(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    const domi_part *part = part_of(ask);
    domi_request *request = domi_pipe_find(pipe, part->number);
    int error = request == NULL      ? -EPIPE
                : part->type != NULL ? encode_head(pipe, request, part)
                                     : encode_piece(pipe, request, part);

    if (error == 0 && !domi_out_is_empty(pipe->wire->out))
        error = domi_pipe_deliver_part(pipe, part->number);
    if (error < 0) {
        domi_ask_fail(manager, ask, error);
    } else if (part->type != NULL || is_free(pipe, part->number)) {
        domi_ask_answer(manager, pipe->channel->house, ask, &taken_type, NULL);
    } else {
        domi_list_push(&pipe->writers, &ask->node);
        pipe->writer_count++;
    }
}

void domi_stream_go_on(domi_manager *manager, domi_pipe *pipe)
{
    domi_node *waiting = pipe->writers;

    pipe->writers = NULL;
    pipe->writer_count = 0;
    while (waiting != NULL) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take(&waiting);
        uint32_t number = part_of(ask)->number;
        if (domi_pipe_find(pipe, number) == NULL) {
            domi_ask_fail(manager, ask, -EPIPE);
        } else if (is_free(pipe, number)) {
            domi_ask_answer(manager, pipe->channel->house, ask, &taken_type, NULL);
        } else {
            domi_list_push(&pipe->writers, &ask->node);
            pipe->writer_count++;
        }
    }
}

void domi_stream_end(domi_manager *manager, domi_pipe *pipe)
{
    while (pipe->writers != NULL)
        domi_ask_fail(manager, (domi_envelope *)(void *)domi_list_take(&pipe->writers), -EPIPE);
    pipe->writer_count = 0;
}
