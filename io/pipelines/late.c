/* Bounds the time that a peer has for the rest of a message (late.h). */
#include "io/pipelines/late.h"

#include "io/channels/due.h"
#include "io/channels/receive.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/body.h"

#include <errno.h>

#define SECOND_NS UINT64_C(1000000000)

/* True if a body is open that the peer of a server still has to send. */
static bool has_open_request_body(const domi_pipe *pipe)
{
    return pipe->body.open && !pipe->body.of_answer;
}

/* True if a piece of the open body is wanted: somebody reads the body, or the rest is skipped. */
static bool is_request_body_wanted(const domi_pipe *pipe)
{
    return pipe->body.skipping || (pipe->body.reader != NULL && !pipe->body.over);
}

static domi_progress get_awaited_part_of_message(const domi_pipe *pipe)
{
    if (pipe->channel->state != DOMI_CHANNEL_OPEN || pipe->channel->ended)
        return DOMI_MESSAGE_NONE;
    /* a tunnel awaits nothing, because its peer may send at any time */
    if (has_open_request_body(pipe))
        return is_request_body_wanted(pipe) && !pipe->body.is_rest ? DOMI_MESSAGE_IN_BODY
                                                                   : DOMI_MESSAGE_NONE;
    return pipe->failed ? DOMI_MESSAGE_NONE : (domi_progress)pipe->wire->progress;
}

/* Returns the stock of time for a body after `bytes` of it have added to the stock. */
static uint64_t add_time_earned_by_body_bytes(uint64_t left_ns, uint64_t bytes, uint64_t rate,
                                              uint64_t most_ns)
{
    if (bytes > UINT32_MAX) /* for so many bytes the product would overflow */
        return most_ns;
    uint64_t ns = left_ns + bytes * SECOND_NS / rate;
    return ns < most_ns ? ns : most_ns;
}

/* Count the bytes of a body that came since the last call, and add their time to the stock;
 * `is_new` begins with a new body. The time is in stock (left_ns) while the time for the body
 * stands still. */
static void count_new_bytes_and_add_their_time(domi_pipe *pipe, bool is_new)
{
    const domus_channel *channel = pipe->channel;
    const domi_channel_settings *settings = channel->settings;
    domi_awaited *awaited = &pipe->awaited;

    awaited->left_ns = is_new ? settings->rate_grace_ns
                              : add_time_earned_by_body_bytes(
                                    awaited->left_ns, channel->received_bytes - awaited->seen,
                                    settings->body_rate_bytes, settings->rate_grace_ns);
    awaited->seen = channel->received_bytes;
}

/* Let the time for the rest of a body stand still, and put what is left of it into the stock. */
static void pause_time_for_rest_of_body(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;
    uint64_t now_ns = channel->io->manager->now_ns;
    uint64_t due_ns = channel->message_due_ns;

    if (due_ns == 0)
        return;
    pipe->awaited.left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    channel->message_due_ns = 0;
}

static void update_time_for_rest_of_body(domi_pipe *pipe, bool is_wanted)
{
    domus_channel *channel = pipe->channel;
    uint32_t number = has_open_request_body(pipe) ? pipe->body.number : 0;
    bool is_new = pipe->awaited.body != number || (number == 0 && pipe->wire->progress_new);

    if (channel->settings->body_rate_bytes == 0) {
        channel->message_due_ns = 0;
        return;
    }
    pause_time_for_rest_of_body(pipe);
    count_new_bytes_and_add_their_time(pipe, is_new);
    pipe->awaited.body = number;
    if (is_wanted)
        channel->message_due_ns = channel->io->manager->now_ns + pipe->awaited.left_ns;
}

void domi_pipe_update_due_time_of_peer(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;
    uint64_t timeout_ns = channel->settings->head_timeout_ns;
    domi_progress part = get_awaited_part_of_message(pipe);

    domi_channel_add_unread_time(channel);
    if (has_open_request_body(pipe) || part == DOMI_MESSAGE_IN_BODY)
        update_time_for_rest_of_body(pipe, part == DOMI_MESSAGE_IN_BODY);
    else if (part != DOMI_MESSAGE_IN_HEAD || timeout_ns == 0)
        channel->message_due_ns = 0;
    else if (pipe->wire->progress_new)
        channel->message_due_ns = channel->io->manager->now_ns + timeout_ns;
    if (pipe->seen_all && pipe->wire->progress_new)
        pipe->has_newer = true;
    pipe->wire->progress_new = false;
    domi_channel_set_timer_no_later(channel, channel->message_due_ns);
}

bool domi_pipe_is_message_late(domus_channel *channel)
{
    domi_pipe_update_due_time_of_peer(channel->pipe);
    return channel->message_due_ns != 0 && channel->message_due_ns <= channel->io->manager->now_ns;
}

/* Let the body of a request fail, because the body is late: the conversation that reads it gets the
 * error, and the request is answered. */
static void fail_late_body(domi_pipe *pipe)
{
    domi_request *request = domi_pipe_find_request(pipe, pipe->body.request);

    if (request != NULL)
        request->late = true;
    domi_body_fail_and_close(pipe->channel->io->manager, pipe, -ETIMEDOUT);
}

bool domi_pipe_answer_late_peer(domus_channel *channel)
{
    domi_pipe *pipe = channel->pipe;

    if (has_open_request_body(pipe)) {
        bool is_wanted = is_request_body_wanted(pipe);
        if (is_wanted)
            fail_late_body(pipe);
        return is_wanted;
    }
    /* bytes that were not decoded may be a whole message that this side lets wait, so the peer is
     * not late */
    if (pipe->failed || pipe->alone || pipe->stopped || !pipe->dry || channel->finished ||
        (pipe->wire->progress == DOMI_MESSAGE_NONE && domi_wire_has_no_undecoded_bytes(pipe->wire)))
        return false;
    return domi_pipe_answer_late_message_and_close(pipe);
}

bool domi_pipe_check_body_awaited_in_drain(domus_channel *channel)
{
    domi_pipe *pipe = channel->pipe;

    if (pipe->dry && channel->drain_bytes == 0 && channel->inbound.head == NULL)
        pipe->seen_all = true;
    return domi_pipe_is_body_awaited(pipe);
}

bool domi_pipe_begin_body_or_refuse_in_drain(domi_pipe *pipe, domi_envelope *message)
{
    if (!pipe->seen_all || pipe->wire->made.kind != DOMUS_STAGE_REQUEST) {
        domi_body_begin(pipe);
        return true;
    }
    domi_pipe_drop_message(pipe->channel->io->manager, message);
    pipe->failed = true;
    return false;
}
