/* Sends answers to the peer of a channel, in the order of its requests. */
#include "io/pipelines/answers.h"
#include "base/check.h"
#include "base/memory.h"
#include "io/channels/crowd.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/pipelines/stored.h"

#include <errno.h>
#include <string.h>

const domus_type domi_end_type = {.name = "stream end"};

#define PLACES_LEAST 4u

/* --- places ----------------------------------------------------------------------------------- */

void domi_pipe_free_request_places(domi_pipe *pipe)
{
    if (pipe->places != &pipe->place)
        domi_memory_free(pipe->places);
}

static int grow_request_places(domi_pipe *pipe)
{
    uint32_t count = pipe->places_count == 1 ? PLACES_LEAST : 2 * pipe->places_count;
    domi_request *places = domi_memory_new(count * sizeof *places);

    if (places == NULL)
        return -ENOMEM;
    for (uint32_t number = pipe->first; number != pipe->next; number++)
        places[number & (count - 1)] = *domi_pipe_place_of_request(pipe, number);
    domi_pipe_free_request_places(pipe);
    pipe->places = places;
    pipe->places_count = count;
    return 0;
}

int domi_pipe_begin_request_of_peer(domi_pipe *pipe, const domus_type *type, uint64_t id,
                                    bool alone, uint32_t *ret_number)
{
    domus_channel *channel = pipe->channel;

    if (domi_pipe_count_requests(pipe) == pipe->places_count && grow_request_places(pipe) != 0)
        return -ENOMEM;
    *ret_number = pipe->next++;
    *domi_pipe_place_of_request(pipe, *ret_number) =
        (domi_request){.id = id, .type = type, .alone = alone};
    pipe->alone = alone;
    channel->conversations++;
    if (DOMI_UNLIKELY(channel->conversations >= channel->settings->requests_max))
        domi_channel_update_busy_flag(channel);
    return 0;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Reset a channel of which an answer cannot be queued, because the order of its answers would have
 * a hole. A channel that is being closed accepts no bytes any more, and is left alone. */
static void reset_channel_for_missing_answer(domus_channel *channel, int error)
{
    if (channel->state == DOMI_CHANNEL_OPEN && !channel->finished)
        domi_channel_reset_after_error(channel, error);
}

int domi_pipe_queue_encoded_bytes(domi_pipe *pipe)
{
    int error = domi_stored_queue_output(pipe->channel, pipe->wire->out);

    if (error != 0)
        reset_channel_for_missing_answer(pipe->channel, error);
    return error;
}

/* --- order ------------------------------------------------------------------------------------ */

/* Count a part of an answer that waits for its turn, until that part is queued or thrown away. */
static void count_waiting_answer_part(domus_channel *channel, const domi_buffer_list *part,
                                      uint64_t size)
{
    uint64_t before = channel->cost;

    for (const domus_buffer *buffer = part->head; buffer != NULL; buffer = buffer->next)
        domi_channel_count_queued_buffer(channel, &channel->cost, buffer);
    channel->answer_bytes += size;
    channel->answer_cost += channel->cost - before;
}

/* Subtract the waiting answer of a request from the counts, because it does not wait any longer. */
static void uncount_waiting_answer(domus_channel *channel, domi_request *request)
{
    uint64_t before = channel->cost;

    for (const domus_buffer *buffer = request->bytes.head; buffer != NULL; buffer = buffer->next)
        domi_channel_uncount_queued_buffer(channel, &channel->cost, buffer);
    channel->answer_bytes -= request->size;
    request->size = 0;
    channel->answer_cost -= before - channel->cost;
}

/* Subtract a request that is over from the requests under way, which makes room for another one. */
static void uncount_request_under_way(domus_channel *channel)
{
    channel->conversations--;
    if (DOMI_UNLIKELY(channel->busy))
        domi_channel_update_busy_flag(channel);
}

/* Remove the place of the oldest request, which is over. */
static void remove_oldest_request(domi_pipe *pipe)
{
    domi_request *request = domi_pipe_place_of_request(pipe, pipe->first);

    if (request->alone)
        pipe->alone = false;
    pipe->first++;
    if (DOMI_LIKELY(!request->over))
        uncount_request_under_way(pipe->channel);
}

void domi_pipe_continue_after_request(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;

    if (channel->state != DOMI_CHANNEL_OPEN)
        return;
    if (domi_pipe_count_requests(pipe) == 0 && pipe->failed && pipe->held == NULL) {
        if (!domi_wire_has_decoded_last_message(pipe->wire) || pipe->body.open)
            (void)domi_channel_close(channel);
        /* a handler may still change the stages after the last message, so not this function but
         * the run closes the channel */
        else if (!pipe->running)
            domi_channel_make_actor_ready(channel);
        return;
    }
    if (channel->close_due && domi_channel_has_answered_all(channel))
        (void)domi_channel_close(channel);
    else if (!pipe->running && (channel->drain || !pipe->dry || pipe->held != NULL ||
                                pipe->writers != NULL || pipe->change != NULL))
        domi_channel_make_actor_ready(channel);
}

/* Send the bytes of the answer to the oldest request that wait in its place. */
static void send_stored_answer(domus_channel *channel, domi_request *request)
{
    uncount_waiting_answer(channel, request);
    int error = DOMI_UNLIKELY(channel->wraps)
                    ? domi_stored_wrap_and_send(channel->pipe, &request->bytes)
                    : domi_channel_write_list_of_buffers(channel, &request->bytes);
    /* a closed channel may have answers left, but no marks to update */
    if (channel->state == DOMI_CHANNEL_OPEN)
        domi_channel_decide_whether_to_receive(channel);
    if (error != 0)
        reset_channel_for_missing_answer(channel, error);
}

/* Send the complete answers to the oldest requests, and then the first bytes of an answer that
 * leaves in pieces. */
static void send_answers_in_order(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;

    while (domi_pipe_count_requests(pipe) != 0) {
        domi_request *request = domi_pipe_place_of_request(pipe, pipe->first);
        if (request->bytes.head != NULL)
            send_stored_answer(channel, request);
        if (!request->answered)
            break;
        if (DOMI_UNLIKELY(request->cut != 0)) {
            (void)domi_channel_reset_when_sent(channel, request->cut);
            break;
        }
        remove_oldest_request(pipe);
    }
    domi_pipe_continue_after_request(pipe);
}

/* Store the bytes of the scratch (the thread's output of stages) in the place of the request that
 * they answer. Returns 0; an error as domi_stored_turn_output_into_buffers(). */
static int store_part_of_answer(domi_pipe *pipe, domi_request *request)
{
    domus_channel *channel = pipe->channel;
    domi_buffer_list part = {NULL, NULL};
    uint64_t size;
    int error = domi_stored_turn_output_into_buffers(channel, pipe->wire->out, &part, &size);

    if (error != 0)
        return error;
    request->size += size;
    count_waiting_answer_part(channel, &part, size);
    for (domus_buffer *buffer = domi_buffer_list_take(&part); buffer != NULL;
         buffer = domi_buffer_list_take(&part))
        domi_buffer_list_put(&request->bytes, buffer);
    domi_io_become_careful_if_much_queued(channel->io);
    domi_channel_decide_whether_to_receive(channel);
    return 0;
}

int domi_pipe_send_part_of_answer(domi_pipe *pipe, uint32_t number)
{
    int error = number == pipe->first
                    ? domi_stored_queue_output(pipe->channel, pipe->wire->out)
                    : store_part_of_answer(pipe, domi_pipe_place_of_request(pipe, number));

    if (error != 0)
        reset_channel_for_missing_answer(pipe->channel, error);
    return error;
}

/* Send the bytes of the scratch, which are the answer to a request, when all answers before have
 * left. */
static void send_or_store_answer(domi_pipe *pipe, uint32_t number)
{
    domus_channel *channel = pipe->channel;
    domi_request *request = domi_pipe_place_of_request(pipe, number);
    int error;

    request->answered = true;
    if (DOMI_UNLIKELY(pipe->body.open) && pipe->body.request == number && !pipe->body.of_answer)
        domi_pipe_mark_body_unreadable(pipe);
    if (DOMI_LIKELY(number == pipe->first)) {
        error = domi_stored_queue_output(channel, pipe->wire->out);
        if (DOMI_UNLIKELY(error != 0))
            reset_channel_for_missing_answer(channel, error);
        remove_oldest_request(pipe);
        if (DOMI_LIKELY(domi_pipe_count_requests(pipe) == 0))
            domi_pipe_continue_after_request(pipe);
        else
            send_answers_in_order(pipe);
        return;
    }
    if (pipe->wire->pipeline->by_id) {
        error = domi_stored_queue_output(channel, pipe->wire->out);
        request->over = true;
        uncount_request_under_way(channel);
    } else {
        error = store_part_of_answer(pipe, request);
    }
    if (error != 0)
        reset_channel_for_missing_answer(channel, error);
}

/* --- answers ---------------------------------------------------------------------------------- */

domi_request *domi_pipe_find_request(domi_pipe *pipe, uint32_t number)
{
    if (number - pipe->first >= domi_pipe_count_requests(pipe))
        return NULL;
    domi_request *request = domi_pipe_place_of_request(pipe, number);
    return request->answered ? NULL : request;
}

/* Cut an answer that has begun: end it with `error`, before its end. */
static void cut_answer_in_pieces(domi_pipe *pipe, uint32_t number, domi_request *request, int error)
{
    pipe->wire->stream = &request->note;
    int result = domi_wire_encode_cut_of_answer(pipe->wire, request->id, error);
    pipe->wire->stream = NULL;
    pipe->channel->streams--;
    if (result < 0) {
        request->cut = result;
        request->answered = true;
        if (number == pipe->first)
            send_answers_in_order(pipe);
    } else {
        send_or_store_answer(pipe, number);
    }
}

void domi_pipe_answer_with_error(domi_pipe *pipe, uint32_t number, int error)
{
    domi_request *request = domi_pipe_find_request(pipe, number);

    if (request == NULL)
        return;
    if (request->type != NULL && error != -ECANCELED && pipe->channel->state == DOMI_CHANNEL_OPEN)
        domi_counter_add(&pipe->channel->io->counters.requests_failed, 1);
    domi_pipe_begin_encoding_answer(pipe, number);
    if (DOMI_UNLIKELY(request->streaming)) {
        cut_answer_in_pieces(pipe, number, request, error);
        return;
    }
    if (DOMI_UNLIKELY(request->late) && error == -ETIMEDOUT)
        error = -ETIME; /* not the answer is too late, but the rest of the peer's request */
    int result = domi_wire_encode_failure_of_request(pipe->wire, request->id, request->type, error);
    if (result < 0) {
        domi_pipe_place_of_request(pipe, number)->answered = true;
        reset_channel_for_missing_answer(pipe->channel, result);
        return;
    }
    send_or_store_answer(pipe, number);
}

bool domi_pipe_answer_late_message_and_close(domi_pipe *pipe)
{
    uint32_t number;

    domi_pipe_begin_encoding_answer(pipe, pipe->next);
    if (domi_wire_encode_failure_of_request(pipe->wire, DOMUS_NO_ID, NULL, -ETIMEDOUT) < 0)
        return false;
    if (domi_pipe_begin_request_of_peer(pipe, NULL, DOMUS_NO_ID, false, &number) != 0) {
        domi_out_remove_all(pipe->wire->out, false);
        return false;
    }
    pipe->failed = true;
    pipe->wire->last_decoded = false;
    send_or_store_answer(pipe, number);
    return true;
}

/* Encode the end of an answer that leaves in pieces: the library's own end type, or a message of
 * the protocol. */
static int encode_end_of_answer_in_pieces(domi_pipe *pipe, domi_request *request,
                                          const domus_type *type, const void *payload)
{
    static const domus_piece end = {{NULL, 0, 0}, true};

    if (type == &domi_end_type) {
        type = &domus_piece_type;
        payload = &end;
    }
    pipe->wire->stream = &request->note;
    int error = domi_wire_encode_message(pipe->wire, request->id, type, payload);
    pipe->wire->stream = NULL;
    pipe->channel->streams -= error == 0;
    return error;
}

static void answer_request_with_message(domi_pipe *pipe, uint32_t number, const domus_type *type,
                                        const void *payload)
{
    domi_request *request = domi_pipe_find_request(pipe, number);

    if (request == NULL)
        return;
    domi_pipe_begin_encoding_answer(pipe, number);
    int error = DOMI_UNLIKELY(request->streaming)
                    ? encode_end_of_answer_in_pieces(pipe, request, type, payload)
                    : domi_wire_encode_message(pipe->wire, request->id, type, payload);
    if (DOMI_UNLIKELY(error < 0)) {
        if (error != -ENOMEM)
            domi_manager_report_mistake(pipe->channel->io->manager, pipe->channel->house,
                                        DOMI_ANSWER_UNWRITTEN, type, error);
        domi_pipe_answer_with_error(pipe, number, error);
    } else {
        send_or_store_answer(pipe, number);
    }
}

/* Free the envelope of a request that is answered, or keep it for the channel's next message. */
static void free_or_keep_envelope_of_request(domi_manager *manager, domi_pipe *pipe,
                                             domi_envelope *ask)
{
    if (pipe != NULL && pipe->current == ask)
        pipe->current = NULL;
    domi_envelope_release_payload(ask);
    if (pipe != NULL && pipe->channel->io->spare == NULL)
        pipe->channel->io->spare = ask;
    else
        domi_pool_free_object(manager, &ask->node);
}

/* Returns the number of a request whose envelope this house has, and ends its promise, if it has
 * one. */
static uint32_t get_number_and_end_request_promise(domi_manager *manager, domi_envelope *ask)
{
    domi_promise *promise = domi_envelope_get_return_of_ask(ask)->promise;
    uint32_t number = domi_pipe_number_of_request(ask);

    if (promise != NULL)
        domi_promise_abandon(manager, promise);
    return number;
}

void domi_pipe_answer_request(domi_manager *manager, domi_house *house, domi_envelope *ask,
                              const domus_type *type, const void *payload)
{
    domi_pipe *pipe = domi_pipe_of_house(house);
    uint32_t number = get_number_and_end_request_promise(manager, ask);

    if (DOMI_LIKELY(pipe != NULL))
        answer_request_with_message(pipe, number, type, payload);
    if (type->release != NULL)
        type->release((void *)(uintptr_t)payload);
    free_or_keep_envelope_of_request(manager, pipe, ask);
}

void domi_pipe_fail_request(domi_manager *manager, domi_house *house, domi_envelope *ask, int error)
{
    domi_pipe *pipe = domi_pipe_of_house(house);
    uint32_t number = get_number_and_end_request_promise(manager, ask);

    if (pipe != NULL && error == -ENOMSG && pipe->channel->state == DOMI_CHANNEL_OPEN)
        domi_manager_report_mistake(manager, house, DOMI_ASK_UNANSWERED, ask->type, 0);
    if (pipe != NULL)
        domi_pipe_answer_with_error(pipe, number, error);
    free_or_keep_envelope_of_request(manager, pipe, ask);
}

void domi_pipe_answer_peer_by_number(domi_manager *manager, domi_house *house, uint32_t number,
                                     int error, domi_envelope *message)
{
    domi_pipe *pipe = domi_pipe_of_house(house);

    if (message != NULL && message->node.kind == DOMI_EXCEPTION)
        error = message->error;
    if (pipe != NULL && (message == NULL || message->node.kind == DOMI_EXCEPTION))
        domi_pipe_answer_with_error(pipe, number, error);
    else if (pipe != NULL)
        answer_request_with_message(pipe, number, message->type,
                                    domi_envelope_get_payload(message));
    if (message != NULL)
        domi_answer_release_and_free(manager, message);
}

void domi_pipe_forget_requests(domi_pipe *pipe)
{
    for (; domi_pipe_count_requests(pipe) != 0; pipe->first++) {
        domi_request *request = domi_pipe_place_of_request(pipe, pipe->first);
        if (request->bytes.head != NULL) {
            uncount_waiting_answer(pipe->channel, request);
            domi_stored_drop_buffers(&request->bytes);
        }
        pipe->channel->conversations -= !request->over;
    }
}
