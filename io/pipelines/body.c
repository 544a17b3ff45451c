/* Gives the bodies that the peer sends to their readers, piece by piece, and skips bodies without a
 * reader. */
#include "io/pipelines/body.h"

#include "base/check.h"
#include "house/conversation/asks.h"
#include "house/conversation/owed.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/mail.h"

#include <errno.h>

const domus_type domi_read_type = {.name = "body read", .size = sizeof(domus_body)};

/* Record whether somebody wants a piece of the open body, and decide whether the channel
 * receives. */
static void set_body_piece_is_wanted(domi_pipe *pipe, bool reading)
{
    domus_channel *channel = pipe->channel;

    if (channel->reading == reading)
        return;
    channel->reading = reading;
    if (channel->state != DOMI_CHANNEL_OPEN)
        return;
    domi_channel_decide_whether_to_receive(channel);
    domi_channel_take_due_steps(channel);
}

static domi_envelope *detach_reader_of_body(domi_body *body)
{
    if (body->reader == NULL)
        return NULL;
    body->readers = 0;
    return (domi_envelope *)(void *)domi_list_take_first_node(&body->reader);
}

static void fail_reader_of_body(domi_manager *manager, domi_body *body, int error)
{
    domi_envelope *ask = detach_reader_of_body(body);

    if (ask != NULL)
        domi_ask_fail(manager, ask, error);
}

/* Mark the peer's body as closed: it has ended, was cut, or has failed, and its reader gets no
 * further piece. */
static void close_incoming_body(domi_manager *manager, domi_pipe *pipe, int error)
{
    domi_body *body = &pipe->body;

    body->open = body->skipping = false;
    body->error = error;
    fail_reader_of_body(manager, body, error);
    set_body_piece_is_wanted(pipe, false);
}

void domi_body_begin(domi_pipe *pipe)
{
    pipe->body = (domi_body){
        .number = pipe->wire->bodies,
        .request = pipe->next,
        .open = true,
        .of_answer = pipe->wire->made.kind == DOMUS_STAGE_ANSWER,
        .is_rest = pipe->wire->made.is_rest,
    };
}

/* Returns 0 if all that the peer still sends can be a body of the request in hand; else the error
 * that says why not. */
static int check_may_open_rest_as_body(domus_stack *stack, domus_channel *channel,
                                       uint32_t *ret_number)
{
    domi_pipe *pipe = channel->pipe;
    domus_address owner;

    *ret_number = 0;
    if (domi_stack_get_house(stack) != channel->house)
        return -EPERM;
    if (pipe == NULL || channel->state != DOMI_CHANNEL_OPEN || channel->finished)
        return -EPIPE;
    int error = domi_stack_find_request_of_peer(stack, &owner, ret_number);
    if (error != 0)
        return error;
    if (!pipe->alone || *ret_number != pipe->next - 1)
        return -EPERM; /* refused, because bytes behind the request may have been decoded already */
    return pipe->body.open || pipe->change != NULL ? -EBUSY : 0;
}

int domus_channel_open_rest(domus_stack *stack, domus_channel *channel, domus_body *ret_body)
{
    domi_pipe *pipe = channel->pipe;
    uint32_t request;
    int error = check_may_open_rest_as_body(stack, channel, &request);

    if (error != 0 || ret_body == NULL)
        return error;
    uint32_t number = domi_wire_open_body_of_rest(pipe->wire);
    if (number == 0)
        return -EOPNOTSUPP;
    pipe->body = (domi_body){.number = number, .request = request, .open = true, .is_rest = true};
    pipe->ends = pipe->hears = false; /* from now on the end of the peer is the end of this body */
    pipe->heard = true;
    channel->tunnels = true;
    *ret_body = (domus_body){pipe->wire->self, number};
    return 0;
}

/* Let the stage tell the peer, once, that its body is wanted. Returns 0; a negative errno. */
static int tell_peer_body_is_wanted(domi_pipe *pipe)
{
    if (pipe->body.wanted)
        return 0;
    pipe->body.wanted = true;
    int error = domi_wire_encode_that_body_is_wanted(pipe->wire);
    if (error == 0 && !domi_out_is_empty(pipe->wire->out))
        error = pipe->body.of_answer ? domi_pipe_queue_encoded_bytes(pipe)
                                     : domi_pipe_send_part_of_answer(pipe, pipe->body.request);
    return error;
}

/* Returns 0 if the body with this number can be read; else the error that says why it cannot. */
static int check_body_may_be_read(domi_manager *manager, domi_body *body, uint32_t number)
{
    if (body->number != number || body->over)
        return -ESTALE;
    if (!body->open)
        return body->error != 0 ? body->error : -ENODATA;
    if (body->reader != NULL && domi_ask_is_expired(manager, (domi_envelope *)(void *)body->reader))
        domi_ask_drop_expired(manager, detach_reader_of_body(body));
    return body->reader != NULL ? -EBUSY : 0;
}

void domi_body_handle_ask_for_piece(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    const domus_body *which = domi_envelope_get_payload(ask);
    domi_body *body = &pipe->body;
    int error = check_body_may_be_read(manager, body, which->number);

    if (error == 0) {
        error = tell_peer_body_is_wanted(pipe);
        if (error != 0)
            domi_body_fail_and_close(manager, pipe, error);
    }
    if (error != 0) {
        domi_ask_fail(manager, ask, error);
        return;
    }
    domi_list_append_node(&body->reader, &ask->node);
    body->readers = 1;
    if (body->of_answer)
        domi_pipe_set_reset_time_of_body(manager, pipe);
    set_body_piece_is_wanted(pipe, true);
    if (!pipe->running)
        domi_channel_make_actor_ready(pipe->channel);
}

bool domi_body_is_next_piece_wanted(domi_manager *manager, domi_pipe *pipe)
{
    domi_body *body = &pipe->body;

    if (body->reader != NULL && domi_ask_is_expired(manager, (domi_envelope *)(void *)body->reader))
        domi_ask_drop_expired(manager, detach_reader_of_body(body));
    if (body->reader == NULL && !body->skipping)
        set_body_piece_is_wanted(pipe, false);
    return body->skipping || body->reader != NULL;
}

void domi_body_give_piece_or_throw_away(domi_manager *manager, domi_pipe *pipe, domi_envelope *made,
                                        bool last)
{
    domi_body *body = &pipe->body;
    domi_envelope *ask = detach_reader_of_body(body);
    int error = 0;

    DOMI_CHECK(body->open && (ask != NULL || body->skipping));
    if (ask == NULL)
        domi_pipe_drop_message(manager, made);
    else
        error = domi_pipe_deliver_answer_to_asker(manager, pipe, ask, made);
    if (error == -ENOMEM) {
        /* a piece that could not be handed out is lost, so the body cannot be complete */
        domi_body_fail_and_close(manager, pipe, error);
        return;
    }
    if (!last) {
        if (!body->skipping)
            set_body_piece_is_wanted(pipe, false);
        if (body->of_answer)
            domi_pipe_set_reset_time_of_body(manager, pipe);
        return;
    }
    close_incoming_body(manager, pipe, 0);
    if (body->of_answer)
        domi_pipe_record_end_of_answer_body(manager, pipe);
}

int domi_body_count_skipped_bytes(domi_pipe *pipe, uint64_t size)
{
    domi_body *body = &pipe->body;

    if (size > body->skip_left)
        return -EMSGSIZE;
    body->skip_left -= size;
    return 0;
}

void domi_body_fail_and_close(domi_manager *manager, domi_pipe *pipe, int error)
{
    close_incoming_body(manager, pipe, error);
    pipe->failed = true;
    pipe->wire->last_decoded = false;
    if (pipe->body.of_answer)
        domi_channel_reset_after_error(pipe->channel, error);
    else
        domi_pipe_continue_after_request(pipe);
}

void domi_body_skip_if_unreadable(domi_manager *manager, domi_pipe *pipe)
{
    domi_body *body = &pipe->body;

    if (body->open && body->of_answer && body->reader == NULL && pipe->channel->ask_due_ns == 0)
        /* the ask for the body's next piece was cancelled */
        domi_pipe_set_reset_time_of_body(manager, pipe);
    if (!body->open || !body->over || body->skipping)
        return;
    fail_reader_of_body(manager, body, -ESTALE);
    body->skipping = true;
    body->skip_left = pipe->channel->settings->skip_max_bytes;
    /* a tunnel whose asker is gone is reset, because it has no end to which it could be skipped */
    if (body->skip_left == 0 || (body->is_rest && body->of_answer)) {
        domi_body_fail_and_close(manager, pipe, -EMSGSIZE);
        return;
    }
    set_body_piece_is_wanted(pipe, true);
    domi_channel_make_actor_ready(pipe->channel);
}

void domi_body_end_with_channel(domi_manager *manager, domi_pipe *pipe)
{
    int error = pipe->channel->error;

    if (pipe->body.open)
        close_incoming_body(manager, pipe, error < 0 ? error : -EPIPE);
}
