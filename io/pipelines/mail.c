/* Encodes and sends mail for the peer of a channel, and gives its answers to those who asked.
 *
 * Asks are with the peer in the order in which they were sent, or known by their numbers. They keep
 * their envelopes: an answer whose asker has stopped waiting is dropped by the serial of its
 * promise, as any late answer. */
#include "io/pipelines/mail.h"
#include "base/check.h"
#include "house/conversation/asks.h"
#include "house/conversation/dead.h"
#include "house/message/family.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/sign.h"
#include "io/channels/due.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/lend.h"
#include "io/pipelines/life.h"
#include "io/pipelines/returned.h"
#include "io/pipelines/upload.h"

#include <assert.h>
#include <errno.h>

#define MS UINT64_C(1000000)

static_assert((UINT64_C(1) << DOMI_TRIES_SHIFT) * MS > UINT64_C(2) * 3600 * 1000 * MS,
              "answerTimeout is at most 1 h, and times are compared within half of the range");

uint64_t domi_pipe_most_asks_with_peer(const domi_pipe *pipe)
{
    uint32_t most = pipe->wire->pipeline->inflight_max;

    if (pipe->channel->lends)
        return pipe->channel->lent_most;
    return most != 0 ? most : pipe->channel->settings->inflight_max;
}

static uint64_t get_most_waiting_asks(const domi_pipe *pipe)
{
    uint32_t most = pipe->wire->pipeline->queue_max;

    return most != 0 ? most : pipe->channel->settings->ask_queue_max;
}

static uint64_t get_answer_timeout_ns(const domi_pipe *pipe)
{
    uint64_t timeout_ns = pipe->wire->pipeline->answer_timeout_ns;

    return timeout_ns != 0 ? timeout_ns : pipe->channel->settings->answer_timeout_ns;
}

/* --- the time of the oldest ask --------------------------------------------------------------- */

/* Record in an ask the time in ms at which it was sent. The upper bits of its note stay, because
 * they belong to the pool. */
static void record_send_time_in_ask(const domi_manager *manager, domi_envelope *ask)
{
    uint32_t *note = &domi_envelope_get_return_of_ask(ask)->note;

    *note = (*note & ~DOMI_NOTE_MASK) | ((uint32_t)(manager->now_ns / MS) & DOMI_NOTE_MASK);
}

/* Set the time at which a late answer of the peer resets the channel to `due_ns`; 0: never. */
static void set_time_of_reset(domus_channel *channel, uint64_t due_ns)
{
    channel->ask_due_ns = due_ns;
    domi_channel_set_timer_no_later(channel, due_ns);
}

/* Set the time at which the peer's answer to its oldest ask is too late. */
static void set_due_time_of_oldest_ask(const domi_manager *manager, domi_pipe *pipe)
{
    uint64_t timeout_ns = get_answer_timeout_ns(pipe);
    domus_channel *channel = pipe->channel;

    if (DOMI_LIKELY(timeout_ns == 0 && channel->ask_due_ns == 0 && !channel->bounds))
        return;
    if (pipe->body.open && pipe->body.of_answer)
        return; /* the body of the present answer has a time of its own */
    domi_envelope *oldest = domi_asked_get_oldest(&pipe->asked);
    uint64_t deadline_ns =
        channel->bounds && oldest != NULL ? domi_envelope_deadline_ns(oldest) : 0;
    bool is_bound = timeout_ns != 0 || deadline_ns != 0;
    if (!is_bound || oldest == NULL || (pipe->upload.open && oldest == pipe->upload.ask)) {
        channel->ask_due_ns = 0;
        return;
    }
    uint32_t sent = domi_envelope_get_return_of_ask(oldest)->note;
    uint64_t age_ms = ((uint32_t)(manager->now_ns / MS) - sent) & DOMI_NOTE_MASK;
    uint64_t due_ns = timeout_ns != 0 ? manager->now_ns - age_ms * MS + timeout_ns : deadline_ns;
    set_time_of_reset(channel, deadline_ns != 0 && deadline_ns < due_ns ? deadline_ns : due_ns);
}

void domi_pipe_set_reset_time_of_body(domi_manager *manager, domi_pipe *pipe)
{
    bool is_read = pipe->body.reader != NULL;
    /* both sides of a tunnel may take any time, as long as its asker is there */
    bool is_unbound = pipe->body.is_rest && (is_read || pipe->upload.open);
    uint64_t timeout_ns = is_unbound                   ? 0
                          : is_read || pipe->body.over ? get_answer_timeout_ns(pipe)
                                                       : pipe->channel->settings->body_timeout_ns;

    set_time_of_reset(pipe->channel, timeout_ns != 0 ? manager->now_ns + timeout_ns : 0);
}

/* --- asks for the peer ------------------------------------------------------------------------ */

bool domi_pipe_may_peer_answer(const domi_pipe *pipe)
{
    const domus_channel *channel = pipe->channel;

    return channel->state == DOMI_CHANNEL_OPEN && !channel->finished && !channel->ended &&
           !pipe->failed && !pipe->asked_last && pipe->upload.doomed == 0;
}

static bool may_send_ask(const domi_pipe *pipe)
{
    const domus_channel *channel = pipe->channel;

    if (DOMI_UNLIKELY(pipe->change != NULL || pipe->upload.open || pipe->upload.ended))
        return false;
    /* nothing is sent to a peer that is not verified yet; bytes that the channel has to send before
     * it accepts asks wait in the stage */
    if (DOMI_UNLIKELY(channel->wraps && domi_wire_is_in_handshake(pipe->wire)) &&
        !pipe->wire->pipeline->holds_asks)
        return false;
    uint32_t under_way = channel->lends ? channel->carried : channel->asks;
    return under_way < domi_pipe_most_asks_with_peer(pipe) && !channel->high && !channel->crowded;
}

static void count_ask_as_no_more_under_way(domus_channel *channel)
{
    DOMI_CHECK(channel->asks != 0);
    channel->asks--;
    if (DOMI_UNLIKELY(channel->lent) && channel->asks == 0)
        domi_pipe_end_lend_of_inner(channel);
    if (DOMI_UNLIKELY(channel->asks == 0 && (channel->high || channel->crowded)))
        domi_channel_decide_whether_to_receive(channel);
}

/* Encode a message for the peer, and queue its bytes. Returns 0; or an error. */
static int encode_message(domi_pipe *pipe, uint64_t id, const domus_type *type, const void *payload)
{
    int error = domi_wire_encode_message(pipe->wire, id, type, payload);

    if (error == 0)
        return domi_pipe_queue_encoded_bytes(pipe);
    if (DOMI_UNLIKELY(pipe->wire->broken != 0)) /* the byte stages can encode nothing more */
        domi_channel_reset_after_error(pipe->channel, error);
    return error;
}

/* Record that the stage has declared the ask at hand the last one of this connection. */
static void return_waiting_asks_behind_last_one(domi_manager *manager, domi_pipe *pipe)
{
    pipe->failed = false; /* answers of the peer are decoded nevertheless */
    domi_pipe_return_waiting_asks(manager, pipe);
}

/* Send an ask to the peer. It is counted before its bytes are queued, so that the channel goes on
 * to receive however many bytes these are. */
static void send_ask_to_peer(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    if (DOMI_UNLIKELY(pipe->channel->lends)) {
        domi_pipe_lend_inner_to_ask(manager, pipe, ask);
        return;
    }
    uint32_t number = pipe->next_ask++;
    pipe->channel->asks++;
    int error = domi_asked_make_room_for_ask(&pipe->asked);
    if (error == 0)
        error = DOMI_LIKELY(ask->type != &domi_upload_type)
                    ? encode_message(pipe, number, ask->type, domi_envelope_get_payload(ask))
                    : domi_upload_begin(manager, pipe, ask, number);
    if (error < 0) {
        pipe->failed = false; /* an ask that was not sent is not the last one of the connection */
        count_ask_as_no_more_under_way(pipe->channel);
        set_due_time_of_oldest_ask(manager, pipe);
        domi_ask_fail_unsent(manager, ask, error == -EPIPE ? -ENOTCONN : error);
        return;
    }
    record_send_time_in_ask(manager, ask);
    domi_asked_put_ask(&pipe->asked, ask, number);
    if (DOMI_UNLIKELY(pipe->failed))
        return_waiting_asks_behind_last_one(manager, pipe);
    if (pipe->asked.count == 1)
        set_due_time_of_oldest_ask(manager, pipe);
}

/* Drop expired asks from the queue of asks for the peer, once for each reading of the clock. */
static void drop_expired_asks(domi_manager *manager, domi_pipe *pipe)
{
    domi_node *waiting = pipe->queue;

    if (pipe->looked_ns == manager->now_ns)
        return;
    pipe->looked_ns = manager->now_ns;
    pipe->queue = NULL;
    pipe->queue_count = 0;
    while (waiting != NULL) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take_first_node(&waiting);
        if (domi_ask_is_expired(manager, ask)) {
            domi_ask_drop_expired(manager, ask);
        } else {
            domi_list_append_node(&pipe->queue, &ask->node);
            pipe->queue_count++;
        }
    }
}

/* With `holds_asks`, true only if the channel itself asks; otherwise true if no ask waits. */
static bool may_ask_go_before_waiting_ones(const domi_pipe *pipe, const domi_envelope *ask)
{
    if (DOMI_UNLIKELY(pipe->wire->pipeline->holds_asks))
        return ask->sender == pipe->channel->house;
    return pipe->queue == NULL;
}

static void send_ask_or_let_it_wait(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    if (DOMI_UNLIKELY(!domi_pipe_may_peer_answer(pipe))) { /* the connection takes no more asks */
        domi_ask_return_to_pool(manager, pipe->channel->pool, ask, DOMI_ASK_UNSENT);
        return;
    }
    if (DOMI_LIKELY(may_ask_go_before_waiting_ones(pipe, ask) && may_send_ask(pipe))) {
        send_ask_to_peer(manager, pipe, ask);
        return;
    }
    if (pipe->queue_count >= get_most_waiting_asks(pipe))
        drop_expired_asks(manager, pipe);
    if (pipe->queue_count >= get_most_waiting_asks(pipe)) {
        domi_ask_fail_unsent(manager, ask, -ENOBUFS);
        return;
    }
    domi_list_append_node(&pipe->queue, &ask->node);
    pipe->queue_count++;
}

/* Send asks that wait in the pool, the oldest first. They cannot be in the pool's mailbox
 * meanwhile: the pool stashes an ask only while no connection has room for it. */
static void send_asks_of_pool(domi_manager *manager, domi_pipe *pipe)
{
    domi_family *family = pipe->channel->pool.house->family;

    while (family != NULL && family->stash[0] != NULL && may_send_ask(pipe) &&
           domi_pipe_may_peer_answer(pipe)) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take_first_node(&family->stash[0]);
        family->stashed--;
        if (domi_ask_is_expired(manager, ask))
            domi_ask_drop_expired(manager, ask);
        else
            send_ask_to_peer(manager, pipe, ask);
    }
}

void domi_pipe_send_waiting_asks(domi_manager *manager, domi_pipe *pipe)
{
    const domus_pipeline *pipeline = pipe->wire->pipeline;

    while (pipe->queue != NULL && may_send_ask(pipe) && domi_pipe_may_peer_answer(pipe) &&
           !pipeline->holds_asks) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take_first_node(&pipe->queue);
        pipe->queue_count--;
        if (domi_ask_is_expired(manager, ask))
            domi_ask_drop_expired(manager, ask);
        /* the ask was held, but this pipeline cannot encode it either */
        else if (!domi_pipeline_encodes_type(pipeline, domi_mail_type_of_ask(ask)))
            domi_ask_fail_unsent(manager, ask, -EOPNOTSUPP);
        else
            send_ask_to_peer(manager, pipe, ask);
    }
    if (pipe->channel->pulls)
        send_asks_of_pool(manager, pipe);
}

/* Returns 0 if a notice may be sent to the peer; -EPIPE; -ENOBUFS when too many bytes wait for it;
 * -ENOMEM when the stages have to change first, but there is no memory to copy a message in hand.
 * Called before the notice is encoded, because a stage may remember what it has encoded. */
static int check_may_send_notice(const domi_pipe *pipe)
{
    const domus_channel *channel = pipe->channel;
    uint64_t waiting = channel->queued_bytes + channel->answer_bytes;

    if (channel->state != DOMI_CHANNEL_OPEN || channel->finished)
        return -EPIPE;
    if (DOMI_UNLIKELY(domi_pipe_change_is_due(pipe)))
        return -ENOMEM;
    return waiting > channel->settings->send_max_bytes ? -ENOBUFS : 0;
}

int domi_pipe_send_notice(domi_pipe *pipe, const domus_type *type, const void *payload)
{
    int error = check_may_send_notice(pipe);
    return error != 0 ? error : encode_message(pipe, DOMUS_NO_ID, type, payload);
}

bool domi_pipe_send_mail_to_peer(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    domi_pipe *pipe = domi_pipe_of_house(house);

    if (pipe != NULL && DOMI_UNLIKELY(pipe->change != NULL))
        domi_pipe_change_stages(pipe);
    const domus_pipeline *pipeline =
        pipe != NULL ? pipe->wire->pipeline : house->behaviour->pipeline;
    if (!domi_pipeline_encodes_type(pipeline, domi_mail_type_of_ask(message))) {
        if (message->type != &domi_upload_type || (pipe != NULL && pipeline->holds_asks))
            return false;
        domi_ask_fail(manager, message, -EOPNOTSUPP);
        return true;
    }
    if (message->node.kind == DOMI_ASK) {
        if (pipe == NULL)
            domi_ask_fail(manager, message, -ENOTCONN);
        else
            send_ask_or_let_it_wait(manager, pipe, message);
        return true;
    }
    const void *payload = domi_envelope_get_payload(message);
    int error = pipe != NULL ? domi_pipe_send_notice(pipe, message->type, payload) : -ENOTCONN;
    if (error < 0)
        domi_mailbox_end_unhandled_message(manager, house, &message->node, error);
    else
        domi_envelope_release_and_free(manager, message);
    return true;
}

bool domi_pipe_hold_early_ask(domi_manager *manager, domi_house *house, domi_envelope *message)
{
    domi_pipe *pipe = domi_pipe_of_house(house);

    if (pipe == NULL || !pipe->wire->pipeline->holds_asks || message->node.kind != DOMI_ASK ||
        message->sender == house)
        return false;
    send_ask_or_let_it_wait(manager, pipe, message);
    return true;
}

/* --- the peer's answers ----------------------------------------------------------------------- */

/* Remove and return the ask that an answer names by its id, or the oldest one; NULL: none. */
static domi_envelope *take_ask_of_answer(domi_pipe *pipe, uint64_t id)
{
    if (DOMI_LIKELY(id == DOMUS_NO_ID))
        return domi_asked_take_oldest(&pipe->asked);
    return id <= UINT32_MAX ? domi_asked_take_by_number(&pipe->asked, (uint32_t)id) : NULL;
}

/* Record that the peer has answered one ask of this side, or will not answer it. */
static void record_answered_ask(domi_manager *manager, domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;

    channel->answered_bytes = channel->received_bytes;
    if (DOMI_UNLIKELY(pipe->upload.answered) && domi_upload_record_answer(pipe))
        return;
    count_ask_as_no_more_under_way(channel);
    set_due_time_of_oldest_ask(manager, pipe);
    if (DOMI_UNLIKELY(pipe->queue != NULL) || DOMI_UNLIKELY(channel->pulls))
        domi_pipe_send_waiting_asks(manager, pipe);
    if (DOMI_LIKELY(channel->asks != 0 ||
                    !(channel->close_due || channel->drain || pipe->asked_last)))
        return;
    if (pipe->asked_last) {
        domi_pipe_close_after_last_ask(pipe);
        return;
    }
    if (channel->close_due && domi_channel_has_answered_all(channel))
        (void)domi_channel_close(channel);
    else if (channel->drain && !pipe->running)
        domi_channel_make_actor_ready(channel);
}

void domi_pipe_close_after_last_ask(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;

    if (pipe->asked_last && channel->asks == 0 && !pipe->own_answer && pipe->change == NULL)
        domi_channel_close_when_answered(channel);
}

/* Handle an answer to which there is no ask. If answers have ids, it is thrown away. Otherwise the
 * peer is out of step, and its next answers would go to wrong askers, so the channel is reset. */
static void drop_stray_answer_or_reset_channel(domi_manager *manager, domi_pipe *pipe,
                                               domi_envelope *made, uint64_t id)
{
    domi_counter_add(&manager->counters.late_replies, 1);
    domi_pipe_drop_message(manager, made);
    if (id == DOMUS_NO_ID)
        domi_channel_reset_after_error(pipe->channel, -EPROTO);
}

int domi_pipe_deliver_answer_to_asker(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask,
                                      domi_envelope *made)
{
    domus_address asker = {ask->sender, ask->sender_lease};

    /* the answer leaves for another actor, so it needs bytes of its own */
    if (domi_wire_copy_slices_of_message(pipe->wire) != 0) {
        domi_pipe_drop_message(manager, made);
        domi_ask_fail(manager, ask, -ENOMEM);
        return -ENOMEM;
    }
    *domi_envelope_get_return_of_ask(made) = *domi_envelope_get_return_of_ask(ask);
    domi_envelope_set_type_and_sender(made, made->type, pipe->channel->house);
    domi_envelope_release_and_free(manager, ask);
    int error = domi_mailbox_put(manager, asker, &made->node, DOMI_REPLY);
    if (DOMI_UNLIKELY(error != 0)) {
        domi_letters_report_dead_letter(manager, asker, made, -ESTALE);
        domi_answer_release_and_free(manager, made);
    }
    return error;
}

void domi_pipe_record_end_of_answer_body(domi_manager *manager, domi_pipe *pipe)
{
    domi_envelope *oldest = domi_asked_get_oldest(&pipe->asked);

    if (oldest != NULL) /* the peer could not answer the oldest ask before this time */
        record_send_time_in_ask(manager, oldest);
    record_answered_ask(manager, pipe);
}

void domi_pipe_record_end_of_upload(domi_manager *manager, domi_pipe *pipe)
{
    domi_upload *upload = &pipe->upload;

    upload->ended = false;
    if (upload->ask_over) {
        upload->answered = false;
        record_answered_ask(manager, pipe);
        return;
    }
    if (upload->ask != NULL) /* the time for the answer to the upload begins */
        record_send_time_in_ask(manager, upload->ask);
    set_due_time_of_oldest_ask(manager, pipe);
}

void domi_pipe_handle_answer_of_peer(domi_manager *manager, domi_pipe *pipe, domi_envelope *made,
                                     uint64_t id, int error)
{
    domi_envelope *ask = take_ask_of_answer(pipe, id);

    if (ask == NULL) {
        drop_stray_answer_or_reset_channel(manager, pipe, made, id);
        return;
    }
    if (DOMI_UNLIKELY(ask == pipe->upload.ask)) {
        pipe->upload.answered = pipe->upload.open;
        pipe->upload.ask = NULL;
        if (pipe->body.open && pipe->body.is_rest)
            pipe->upload.deadline_ns = 0; /* the deadline was for the answer, not for its body */
    }
    if (DOMI_UNLIKELY(ask->sender == pipe->channel->house))
        pipe->own_answer = pipe->stopped = true;
    if (made == NULL || error != 0) {
        domi_pipe_drop_message(manager, made);
        domi_ask_fail(manager, ask, error != 0 ? error : -EPROTO);
    } else {
        bool is_late = domi_ask_is_expired(manager, ask);
        error = domi_pipe_deliver_answer_to_asker(manager, pipe, ask, made);
        if (is_late)
            error = -ETIMEDOUT;
    }
    if (DOMI_LIKELY(!pipe->body.open)) {
        record_answered_ask(manager, pipe);
        return;
    }
    if (error != 0) /* nobody has learnt of the answer's body, so nobody will read it */
        domi_pipe_mark_body_unreadable(pipe);
    domi_pipe_set_reset_time_of_body(manager, pipe);
}

/* --- the end ---------------------------------------------------------------------------------- */

void domi_pipe_return_or_fail_all_asks(domi_manager *manager, domi_pipe *pipe)
{
    domi_envelope *ask;

    if (pipe->channel->pulls) {
        int error =
            domi_wire_is_in_handshake(pipe->wire) ? pipe->channel->error : pipe->wire->failed;
        *pipe->channel->last_word = (domi_last_word){pipe->next_ask != 0, error};
    }
    domi_upload_reset_channel_if_open(pipe);
    pipe->upload.ask = NULL;
    pipe->upload.answered = pipe->upload.ask_over = false; /* the upload is over */
    while ((ask = domi_asked_take_oldest(&pipe->asked)) != NULL)
        domi_pipe_return_sent_ask_to_pool(manager, pipe, ask);
    while (pipe->queue != NULL)
        domi_ask_return_to_pool(manager, pipe->channel->pool,
                                (domi_envelope *)(void *)domi_list_take_first_node(&pipe->queue),
                                DOMI_ASK_UNSENT);
    pipe->queue_count = 0;
    pipe->channel->asks = 0;
    pipe->channel->ask_due_ns = 0;
}
