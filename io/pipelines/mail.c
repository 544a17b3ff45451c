/* Mail that actors have for the peer of a channel is encoded and sent, and the answers of the peer
 * are given to the actors that asked.
 *
 * Asks are with the peer in the order in which they were sent, or known by their numbers. They keep
 * their envelopes: the answer to one whose asker has stopped waiting is thrown away by the serial
 * of its promise, as any late answer. */
#include "io/pipelines/mail.h"
#include "base/check.h"
#include "house/conversation/answer.h"
#include "house/conversation/dead.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"
#include "house/message/sign.h"
#include "io/channels/close.h"
#include "io/channels/state.h"
#include "io/pipelines/answers.h"

#include <errno.h>

#define INFLIGHT_DEFAULT 64u
#define QUEUE_DEFAULT    1024u

static bool is_encodable(const domus_pipeline *pipeline, const domus_type *type)
{
    const domus_type *const *at = pipeline->encodes;

    for (; at != NULL && *at != NULL; at++) {
        if (*at == type)
            return true;
    }
    return false;
}

static uint32_t inflight_max(const domi_pipe *pipe)
{
    uint32_t most = pipe->wire->pipeline->inflight_max;

    return most != 0 ? most : INFLIGHT_DEFAULT;
}

static uint32_t queue_max(const domi_pipe *pipe)
{
    uint32_t most = pipe->wire->pipeline->queue_max;

    return most != 0 ? most : QUEUE_DEFAULT;
}

/* Send an ask to the peer. */
static void send_ask(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    uint32_t number = pipe->next_ask++;
    int error = domi_wire_encode(pipe->wire, number, ask->type, domi_envelope_payload(ask));

    if (error == 0)
        error = domi_pipe_flush_out(pipe);
    if (error < 0) {
        domi_ask_fail(manager, ask, error);
        return;
    }
    ask->error = (int32_t)number;
    domi_list_push(&pipe->asks, &ask->node);
    pipe->asks_count++;
    pipe->channel->conversations++;
}

static void take_ask(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    if (pipe->channel->state != DOMI_CHANNEL_OPEN || pipe->channel->finished) {
        domi_ask_fail(manager, ask, -ENOTCONN);
    } else if (pipe->asks_count < inflight_max(pipe) && pipe->queue == NULL) {
        send_ask(manager, pipe, ask);
    } else if (pipe->queue_count < queue_max(pipe)) {
        domi_list_push(&pipe->queue, &ask->node);
        pipe->queue_count++;
    } else {
        domi_ask_fail(manager, ask, -ENOBUFS);
    }
}

/* Send asks that have waited. */
static void send_waiting(domi_manager *manager, domi_pipe *pipe)
{
    while (pipe->queue != NULL && pipe->asks_count < inflight_max(pipe) &&
           pipe->channel->state == DOMI_CHANNEL_OPEN) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take(&pipe->queue);
        pipe->queue_count--;
        if (domi_ask_is_expired(manager, ask))
            domi_ask_expire(manager, ask);
        else
            send_ask(manager, pipe, ask);
    }
}

bool domi_pipe_send_mail(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    domus_channel *channel = domi_house_is_channel(house) ? house->channels.owned : NULL;
    domi_pipe *pipe = channel != NULL ? channel->pipe : NULL;

    if (!is_encodable(house->behaviour->pipeline, message->type))
        return false;
    if (message->node.kind == DOMI_ASK) {
        if (pipe == NULL)
            domi_ask_fail(manager, message, -ENOTCONN);
        else
            take_ask(manager, pipe, message);
        return true;
    }
    int error = pipe == NULL ? -ENOTCONN
                             : domi_wire_encode(pipe->wire, DOMUS_NO_ID, message->type,
                                                domi_envelope_payload(message));
    if (error == 0)
        error = domi_pipe_flush_out(pipe);
    if (error < 0)
        domi_mailbox_drop(manager, house, &message->node, error);
    else
        domi_envelope_end(manager, message);
    return true;
}

/* --- the peer's answers -------------------------------------------------------------------------
 */

/* Take the ask with this id, or the oldest, off the list. NULL: there is none. */
static domi_envelope *take_asked(domi_pipe *pipe, uint64_t id)
{
    domi_node *before = pipe->asks;

    if (before == NULL)
        return NULL;
    if (id != DOMUS_NO_ID) {
        const domi_node *last = before;
        while ((uint32_t)((domi_envelope *)(void *)before->next)->error != (uint32_t)id) {
            before = before->next;
            if (before == last)
                return NULL;
        }
    }
    domi_envelope *ask = (domi_envelope *)(void *)before->next;
    domi_list_take_behind(&pipe->asks, before);
    pipe->asks_count--;
    return ask;
}

/* One request of this side is over. */
static void note_answered(domi_manager *manager, domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;

    channel->conversations--;
    channel->answered_bytes = channel->received_bytes;
    send_waiting(manager, pipe);
    if (channel->conversations == 0 && channel->close_due)
        (void)domi_channel_close(channel);
}

void domi_pipe_take_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *made, uint64_t id,
                           int error)
{
    domi_envelope *ask = take_asked(pipe, id);

    /* the answer goes to another actor, so it takes its bytes along */
    if (ask != NULL && made != NULL && domi_wire_own(pipe->wire) != 0)
        error = -ENOMEM;
    if (made != NULL && (ask == NULL || error != 0)) {
        if (ask == NULL)
            domi_counter_add(&manager->counters.late_replies, 1);
        domi_envelope_end(manager, made);
        made = NULL;
    }
    if (ask == NULL)
        return;
    if (made == NULL) {
        domi_ask_fail(manager, ask, error != 0 ? error : -EPROTO);
    } else {
        domus_address asker = {ask->sender, ask->sender_lease};
        *domi_envelope_return(made) = *domi_envelope_return(ask);
        domi_envelope_sign(made, made->type, pipe->channel->house);
        domi_envelope_end(manager, ask);
        if (domi_mailbox_put(manager, asker, &made->node, DOMI_REPLY) != 0) {
            domi_letters_tell_dead(manager, asker, made, -ESTALE);
            domi_answer_release(manager, made);
        }
    }
    note_answered(manager, pipe);
}

void domi_pipe_drop_asks(domi_manager *manager, domi_pipe *pipe)
{
    while (pipe->asks != NULL) {
        domi_ask_fail(manager, (domi_envelope *)(void *)domi_list_take(&pipe->asks), -EPIPE);
        pipe->channel->conversations--;
    }
    while (pipe->queue != NULL)
        domi_ask_fail(manager, (domi_envelope *)(void *)domi_list_take(&pipe->queue), -ENOTCONN);
}
