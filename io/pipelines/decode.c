/* Decodes messages from the bytes of a channel, and handles them, within a run of its actor.
 *
 * One message is decoded at a time, where its bytes were received, and handled at once. The bytes
 * behind it stay in the channel, which reads no more when it holds its share of them. When the
 * message has not left this turn, its bytes are free again; otherwise they are copied. */
#include "io/pipelines/decode.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/body.h"
#include "io/pipelines/late.h"
#include "io/pipelines/life.h"
#include "io/pipelines/mail.h"
#include "io/pipelines/stream.h"
#include "io/pipelines/time.h"
#include "io/pipelines/upload.h"

#include "base/check.h"
#include "house/conversation/turn.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"

#include <errno.h>

/* --- one message ------------------------------------------------------------------------------ */

static const domus_on_peer *find_peer_row(const domus_behaviour *behaviour, const domus_type *type)
{
    const domus_on_peer *on = behaviour->on_peer;

    if (on == NULL)
        return NULL;
    for (; on->type != NULL; on++) {
        if (on->type == type)
            return on;
    }
    return on->handle != NULL ? on : NULL;
}

/* Prepare a message to outlive its turn: it gets bytes of its own, if it shows received ones; a
 * request that leaves the house or has a time-out also gets a promise. Returns 0; -ENOMEM. */
DOMI_INLINE int let_message_outlive_its_turn(domi_manager *manager, domi_pipe *pipe,
                                             domi_envelope *message, bool leaves)
{
    domi_house *house = pipe->channel->house;
    bool is_request = message->node.kind == DOMI_ASK && domi_ask_is_of_peer(message, house);
    int error =
        message == pipe->current || pipe->undone ? domi_wire_copy_slices_of_message(pipe->wire) : 0;

    if (error != 0 || !is_request || (!leaves && domi_envelope_deadline_ns(message) == 0))
        return error;
    return domi_ask_make_promise_for_peer_request(manager, house, message, &pipe->holder);
}

int domi_pipe_release_message(domi_manager *manager, domi_house *house, domi_envelope *message,
                              bool leaves)
{
    domi_pipe *pipe = domi_pipe_of_house(house);

    if (pipe == NULL) { /* the connection is gone, but the ask still counts as its peer's */
        domus_address channel;
        uint32_t number;
        return message->node.kind == DOMI_ASK &&
                       domi_ask_find_request_of_peer(message, &channel, &number) == 0
                   ? -ENOTCONN
                   : 0;
    }
    int error = let_message_outlive_its_turn(manager, pipe, message, leaves);
    if (error == 0 && message == pipe->current)
        pipe->current = NULL;
    return error;
}

/* End the channel, because the bytes of its last message are in use and there is no memory to copy
 * them. The bytes stay where they are; the channel could not go on before there is memory. */
static void end_channel_for_lack_of_memory(domi_pipe *pipe)
{
    pipe->undone = true;
    domi_channel_reset_after_error(pipe->channel, -ENOMEM);
}

/* End the turn that `message` of the peer has begun on `stack`. A notice that was taken, or whose
 * forward was refused, is no longer pipe->current, and ends with its turn all the same. */
static void end_turn_of_peer_message(domi_manager *manager, domi_pipe *pipe, domus_stack *stack,
                                     domi_envelope *message, int result, uint32_t kind)
{
    domus_channel *channel = pipe->channel;
    domi_house *house = channel->house;

    if (kind == DOMI_NOTICE && stack->message != NULL)
        domi_envelope_release_and_free(manager, message);
    if (kind == DOMI_NOTICE)
        pipe->current = NULL;
    (void)domi_turn_end_of_begun_conversation(stack, result, kind);
    if (DOMI_LIKELY(pipe->current == NULL))
        return;
    if (house->channels.owned == NULL)
        return; /* the channel is gone, and the request that waits outlives it */
    if (let_message_outlive_its_turn(manager, pipe, pipe->current, false) != 0)
        end_channel_for_lack_of_memory(pipe);
    pipe->current = NULL;
}

/* Call the behaviour's row for the message pipe->current. A message that outlives the connection
 * gets a pooled stack, so that asks which it keeps outlive it, too. */
static void call_row_of_message(domi_manager *manager, domi_pipe *pipe, const domus_on_peer *on,
                                domi_envelope *message, uint32_t kind, bool outlives)
{
    domi_house *house = pipe->channel->house;
    const void *payload = domi_envelope_payload_by_kind(message, kind);
    domus_stack local;
    domus_stack *stack = &local;

    if (DOMI_UNLIKELY(on->peer_frame_size != 0 || outlives)) {
        stack = domi_stack_new(manager, house, on->peer_frame_size);
        if (stack == NULL) {
            pipe->current = NULL;
            if (kind == DOMI_ASK)
                domi_pipe_fail_request(manager, house, message, -ENOMEM);
            else
                domi_envelope_release_and_free(manager, message);
            return;
        }
        stack->outlives = outlives;
        stack->begun_by = message->type;
    } else {
        domi_stack_set_up_in_frame_of_run(stack, manager, house);
    }
    stack->message = message;
    stack->ask = kind == DOMI_ASK ? message : NULL;
    domi_turn_begin(stack, message->type);
    int result = on->handle(stack, house->self, payload);
    end_turn_of_peer_message(manager, pipe, stack, message, result, kind);
}

static void handle_notice_of_peer(domi_manager *manager, domi_pipe *pipe, domi_envelope *message)
{
    domi_house *house = pipe->channel->house;
    const domus_on_peer *on = find_peer_row(house->behaviour, message->type);

    message->sender = house;
    message->sender_lease = domi_house_get_address(house).lease;
    if (on == NULL) {
        domi_envelope_release_and_free(manager, message);
        return;
    }
    pipe->current = message;
    uint32_t marks = on->marks;
    if (on->marks_of != NULL)
        marks |= on->marks_of(domi_envelope_payload_by_kind(message, DOMI_NOTICE));
    call_row_of_message(manager, pipe, on, message, DOMI_NOTICE, (marks & DOMUS_OUTLIVES) != 0);
}

static void begin_request_of_peer(domi_manager *manager, domi_pipe *pipe, domi_envelope *message,
                                  const domus_on_peer *on, uint64_t id, uint32_t marks)
{
    domus_channel *channel = pipe->channel;
    domi_house *house = channel->house;
    uint64_t timeout_ns = pipe->wire->pipeline->request_timeout_ns;
    uint32_t number;

    if (domi_pipe_begin_request_of_peer(pipe, message->type, id, (marks & DOMUS_ALONE) != 0,
                                        &number) != 0) {
        domi_envelope_release_and_free(manager, message);
        /* without a place for the request its answer could not be sent in order */
        domi_channel_reset_after_error(channel, -ENOMEM);
        return;
    }
    pipe->hears = pipe->heard = (marks & (DOMUS_HEARS_END | DOMUS_ENDS_WITH_PEER)) != 0;
    pipe->ends = (marks & DOMUS_ENDS_WITH_PEER) != 0;
    domi_ask_make_request_of_peer(message, message->type, house, number,
                                  timeout_ns != 0 ? manager->now_ns + timeout_ns : 0);
    if (on == NULL) {
        domi_manager_report_mistake(manager, house, DOMI_TYPE_UNKNOWN, message->type, -EOPNOTSUPP);
        domi_pipe_fail_request(manager, house, message, -EOPNOTSUPP);
        return;
    }
    pipe->current = message;
    call_row_of_message(manager, pipe, on, message, DOMI_ASK, (marks & DOMUS_OUTLIVES) != 0);
}

static void handle_request_of_peer(domi_manager *manager, domi_pipe *pipe, domi_envelope *message,
                                   uint64_t id)
{
    const domus_on_peer *on = find_peer_row(pipe->channel->house->behaviour, message->type);
    uint32_t marks = on != NULL ? on->marks : 0;

    if (DOMI_UNLIKELY(on != NULL && on->marks_of != NULL))
        marks |= on->marks_of(domi_envelope_payload_by_kind(message, DOMI_ASK));
    if (DOMI_UNLIKELY((marks & DOMUS_ALONE) != 0 && domi_pipe_count_requests(pipe) != 0)) {
        pipe->held = message;
        pipe->held_id = id;
        pipe->held_marks = marks;
        return;
    }
    begin_request_of_peer(manager, pipe, message, on, id, marks);
}

static void handle_message_made_by_stage(domi_manager *manager, domi_pipe *pipe)
{
    const domi_made made = pipe->wire->made;
    domi_envelope *message = pipe->made;

    pipe->made = NULL;
    if (DOMI_UNLIKELY(made.has_body) && !domi_pipe_begin_body_or_refuse_in_drain(pipe, message))
        return;
    switch (made.kind) {
    case DOMUS_STAGE_REQUEST:
        handle_request_of_peer(manager, pipe, message, made.id);
        break;
    case DOMUS_STAGE_NOTICE:
        handle_notice_of_peer(manager, pipe, message);
        break;
    case DOMUS_STAGE_ANSWER:
        domi_pipe_handle_answer_of_peer(manager, pipe, message, made.id, made.error);
        break;
    case DOMUS_STAGE_PIECE:
        domi_body_give_piece_or_throw_away(manager, pipe, message, made.last);
        break;
    }
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Give back the received bytes of the message at hand. Returns false if the message still shows
 * them because there was no memory to copy them; then the channel was reset. */
static bool give_back_bytes_of_message(domi_pipe *pipe)
{
    if (pipe->undone)
        return false;
    if (domi_wire_prepare_next_message(pipe->wire) != 0) {
        end_channel_for_lack_of_memory(pipe);
        return false;
    }
    domi_pipe_free_used_piece(pipe);
    return true;
}

/* Throw away the message that a stage has made before it failed, or before bytes that it has
 * appended reset the channel. Returns 0. */
static int drop_decoded_message(domi_pipe *pipe)
{
    domi_pipe_drop_message(pipe->channel->io->manager, pipe->made);
    pipe->made = NULL;
    return 0;
}

/* Answer wrong bytes of the peer with an error, behind earlier answers, and close the channel. */
static void answer_wrong_bytes_and_close(domi_pipe *pipe, int error)
{
    domus_channel *channel = pipe->channel;
    uint32_t number;

    pipe->failed = true;
    (void)drop_decoded_message(pipe);
    if (DOMI_UNLIKELY(pipe->body.open)) { /* the answer to the body's request tells the error */
        domi_channel_count_refused_once(channel);
        domi_body_fail_and_close(channel->io->manager, pipe, error);
        return;
    }
    if (domi_pipe_begin_request_of_peer(pipe, NULL, DOMUS_NO_ID, false, &number) != 0) {
        domi_channel_reset_after_error(channel, -ENOMEM);
        return;
    }
    domi_channel_count_refused_once(channel);
    domi_pipe_answer_with_error(pipe, number, error);
}

#define PIECES_MOST 8u /* most received pieces in which one call searches for the next message */

/* Decode received bytes up to the next message. Returns 1 if a message was made; 0 if there is none
 * yet; DOMI_WIRE_BUSY if that may change without new bytes; or an error. */
static int decode_next_message(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;
    uint32_t pieces = PIECES_MOST;
    int result;

    do {
        domus_buffer *buffer = channel->inbound.head;
        const char *bytes = buffer != NULL ? buffer->data : NULL;
        size_t size = buffer != NULL ? buffer->size : 0;

        if (buffer == NULL && channel->ended)
            domi_wire_record_end_of_peer(pipe->wire);
        size_t before = size;
        result = domi_wire_decode_next_message(pipe->wire, &bytes, &size);
        if (DOMI_UNLIKELY(pipe->body.skipping) && result >= 0 &&
            domi_body_count_skipped_bytes(pipe, before - size) != 0)
            result = -EMSGSIZE;
        if (buffer != NULL && size == 0) {
            pipe->used = domi_channel_take_inbound_piece(channel);
            domi_counter_add(&channel->io->counters.reads, 1);
        } else if (buffer != NULL) {
            buffer->data += buffer->size - size;
            buffer->size = (uint32_t)size;
        }
        if (result == 0)
            domi_pipe_free_used_piece(pipe);
        if (!domi_out_is_empty(pipe->wire->out))
            (void)domi_pipe_queue_encoded_bytes(pipe); /* this may reset or end the channel */
        if (result == 0 && buffer == NULL)
            pipe->dry = true;
    } while (result == 0 && !pipe->dry && --pieces != 0 && channel->state == DOMI_CHANNEL_OPEN);
    if (DOMI_UNLIKELY(pieces == 0) && result == 0)
        result = DOMI_WIRE_BUSY;
    return DOMI_LIKELY(channel->state == DOMI_CHANNEL_OPEN) ? result : drop_decoded_message(pipe);
}

DOMI_INLINE bool may_decode_next(const domi_pipe *pipe)
{
    const domus_channel *channel = pipe->channel;

    /* a piece of a wanted body waits for no other request */
    if (DOMI_UNLIKELY(pipe->body.open) && pipe->held == NULL)
        return channel->state == DOMI_CHANNEL_OPEN && !channel->halted &&
               (pipe->body.skipping || (pipe->body.reader != NULL && !pipe->body.over));
    return channel->state == DOMI_CHANNEL_OPEN && !channel->blocked && !pipe->alone &&
           !pipe->stopped && (!pipe->failed || pipe->held != NULL) &&
           (pipe->held == NULL || domi_pipe_count_requests(pipe) == 0) &&
           domi_pipe_count_requests(pipe) < DOMI_REQUESTS_MOST;
}

bool domi_pipe_has_work_for_run(const domus_channel *channel)
{
    const domi_pipe *pipe = channel->pipe;

    if (DOMI_UNLIKELY(pipe->stopped) && !pipe->body.open)
        return pipe->own_answer || domi_pipe_change_is_due(pipe);
    if (!may_decode_next(pipe))
        return false;
    return pipe->held != NULL || !pipe->dry || channel->inbound.head != NULL ||
           (channel->ended && !pipe->wire->finished);
}

bool domi_pipe_has_undecoded_work(const domus_channel *channel)
{
    const domi_pipe *pipe = channel->pipe;

    return pipe->held != NULL || (!pipe->failed && !pipe->dry);
}

bool domi_pipe_has_handled_all_of_peer(const domus_channel *channel)
{
    const domi_pipe *pipe = channel->pipe;

    return pipe->held == NULL && !pipe->body.open &&
           (pipe->failed || (pipe->wire->finished && pipe->dry));
}

bool domi_pipe_has_lone_open_request(const domus_channel *channel)
{
    const domi_pipe *pipe = channel->pipe;

    return pipe->alone &&
           (pipe->hears || (!pipe->heard && pipe->held == NULL && channel->inbound.head == NULL &&
                            domi_wire_has_no_undecoded_bytes(pipe->wire)));
}

bool domi_pipe_has_to_tell_end_early(domus_channel *channel)
{
    domi_pipe *pipe = channel->pipe;
    bool hears = pipe->alone && pipe->hears;

    pipe->hears = false;
    return hears;
}

/* Handle one message of the peer, or decode further. Returns false if there is nothing to do. */
static bool handle_held_or_decode_next_message(domi_manager *manager, domi_pipe *pipe)
{
    if (DOMI_UNLIKELY(pipe->held != NULL)) {
        domi_envelope *held = pipe->held;
        pipe->held = NULL;
        begin_request_of_peer(manager, pipe, held,
                              find_peer_row(pipe->channel->house->behaviour, held->type),
                              pipe->held_id, pipe->held_marks);
        return true;
    }
    if (DOMI_UNLIKELY(pipe->body.open) && !domi_body_is_next_piece_wanted(manager, pipe))
        return false;
    bool was_shaking = pipe->channel->wraps && domi_wire_is_in_handshake(pipe->wire);
    int result = decode_next_message(pipe);
    if (result < 0) {
        answer_wrong_bytes_and_close(pipe, result);
        return true;
    }
    if (DOMI_UNLIKELY(was_shaking) && !domi_wire_is_in_handshake(pipe->wire))
        domi_pipe_send_asks_after_handshake(manager, pipe);
    if (result == 1)
        handle_message_made_by_stage(manager, pipe);
    else if (pipe->wire->yields) /* the stage has taken long, so the clock is read now */
        pipe->channel->io->stages.steps = 1;
    return result != 0;
}

/* Continue to decode if it has stopped behind a message, and the reason for that is over. */
static void continue_decoding_after_stop(domi_manager *manager, domi_pipe *pipe)
{
    const domi_house *house = pipe->channel->house;

    if (pipe->upload.ended && pipe->channel->state == DOMI_CHANNEL_OPEN)
        domi_pipe_record_end_of_upload(manager, pipe);
    if (pipe->own_answer) /* a run takes the channel's own answer before it decodes */
        pipe->own_answer = house->tails[DOMI_REPLY] != NULL || house->tails[DOMI_EXCEPTION] != NULL;
    if (pipe->change != NULL)
        domi_pipe_change_stages(pipe);
    pipe->stopped = pipe->own_answer || pipe->change != NULL;
    if (DOMI_UNLIKELY(pipe->asked_last))
        domi_pipe_close_after_last_ask(pipe);
    if (!pipe->stopped && (pipe->queue != NULL || pipe->channel->pulls))
        domi_pipe_send_waiting_asks(manager, pipe);
}

/* True if the peer will answer nothing more: its last byte was decoded, or the channel closes. In a
 * tunnel this side may go on to send. */
static bool gets_no_more_answers(const domus_channel *channel)
{
    const domi_pipe *pipe = channel->pipe;
    bool may_send = pipe->upload.open && pipe->upload.answered && pipe->body.is_rest;

    return channel->state != DOMI_CHANNEL_OPEN ||
           (domi_pipe_has_handled_all_of_peer(channel) && !may_send);
}

/* Do the work of bodies and of streams (answers in pieces) that waits for the end of a run. */
static void work_on_bodies_and_streams_after_run(domi_manager *manager, domi_pipe *pipe)
{
    if (pipe->channel->state == DOMI_CHANNEL_OPEN) {
        domi_body_skip_if_unreadable(manager, pipe);
        if (pipe->upload.open)
            domi_upload_cut_if_asker_is_gone(manager, pipe);
        domi_stream_continue_writes(manager, pipe);
    }
    if (pipe->channel->state != DOMI_CHANNEL_OPEN) { /* a body was too long to be skipped */
        domi_body_end_with_channel(manager, pipe);
        domi_stream_end_waiting_writes(manager, pipe);
    }
}

/* Give back the piece in which the message at hand may have lain, because the channel was closed
 * and its received bytes were dropped: the peer decides how long the channel lives from now on. */
static void free_shown_piece(domi_pipe *pipe)
{
    if (pipe->undone || pipe->current != NULL)
        return;
    domus_buffer_free(pipe->channel->shown);
    pipe->channel->shown = NULL;
}

uint32_t domi_pipe_run_messages(domi_manager *manager, domi_house *house, domus_channel *channel,
                                uint32_t budget)
{
    domi_pipe *pipe = channel->pipe;
    uint64_t spent_ns = 0;
    uint32_t used = 0;

    pipe->running = true;
    if (channel->inbound.head != NULL || channel->ended)
        pipe->dry = false;
    if (DOMI_UNLIKELY(pipe->queue != NULL))
        domi_pipe_send_waiting_asks(manager, pipe);
    if (DOMI_UNLIKELY(pipe->stopped))
        continue_decoding_after_stop(manager, pipe);
    if (DOMI_UNLIKELY(domi_stages_are_measured(pipe)) &&
        !domi_stages_begin_measured_run(pipe, domi_pipe_has_work_for_run(channel)))
        budget = 0;
    while (used < budget && (house->marks & DOMI_MARK_SATURATED) == 0 && may_decode_next(pipe) &&
           !(pipe->dry && pipe->held == NULL)) {
        if (DOMI_UNLIKELY(channel->io->careful)) {
            domi_channel_decide_whether_to_receive(channel);
            if (channel->blocked)
                break;
        }
        if (!handle_held_or_decode_next_message(manager, pipe))
            break;
        used++;
        if (pipe->current != NULL || !give_back_bytes_of_message(pipe))
            break;
        if (channel->inbound.head == NULL && !channel->ended)
            pipe->dry = domi_wire_return_page_if_all_bytes_used(pipe->wire);
        if (DOMI_UNLIKELY(pipe->stopped))
            continue_decoding_after_stop(manager, pipe);
        if (!domi_stages_count_step_of_run(pipe, &spent_ns))
            break;
    }
    pipe->running = false;
    if (DOMI_UNLIKELY(pipe->body.open || pipe->writers != NULL || pipe->upload.open))
        work_on_bodies_and_streams_after_run(manager, pipe);
    if (DOMI_UNLIKELY(domi_pipe_must_update_due_time(pipe)))
        domi_pipe_update_due_time_of_peer(pipe);
    if (DOMI_UNLIKELY(channel->shown != NULL))
        free_shown_piece(pipe);
    if (DOMI_UNLIKELY(channel->asks != 0 || pipe->queue != NULL) && gets_no_more_answers(channel))
        domi_pipe_return_or_fail_all_asks(manager, pipe);
    if (DOMI_UNLIKELY(pipe->failed) && !pipe->body.open && domi_pipe_count_requests(pipe) == 0 &&
        pipe->held == NULL)
        (void)domi_channel_close(channel);
    return used;
}
