/* Makes the pipeline of a channel, and ends it with the connection. */
#include "io/channels/due.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/body.h"
#include "io/pipelines/late.h"
#include "io/pipelines/life.h"
#include "io/pipelines/mail.h"
#include "io/pipelines/returned.h"
#include "io/pipelines/stream.h"
#include "io/pipelines/time.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/message/types.h"
#include "io/resources/spells.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* an idle connection takes at most 2 KiB of memory, with its stage (docs/performance.md) */
static_assert(sizeof(domi_house) + sizeof(domus_channel) + sizeof(domi_pipe) + sizeof(domus_wire) +
                      sizeof(domi_wire_stage) <=
                  1400,
              "the memory of an idle connection");

/* Make the payload of a message of the peer in the envelope in which it will be handled. It is not
 * a message of an actor, so no bound of messages refuses it. */
static void *make_payload_of_message(domus_wire *wire, domus_stage_kind kind,
                                     const domus_type *type)
{
    domi_pipe *pipe = wire->owner;
    domi_manager *manager = pipe->channel->io->manager;
    size_t head = kind == DOMUS_STAGE_NOTICE ? DOMI_ENVELOPE_HEAD : DOMI_ASK_HEAD;
    domi_envelope *envelope = pipe->channel->io->spare;

    if (type->size > DOMUS_PAYLOAD_MAX)
        return NULL;
    if (envelope != NULL && head + type->size <= domi_envelope_bytes_in_all(manager, envelope)) {
        pipe->channel->io->spare = NULL;
    } else {
        size_t bytes = head + type->size;
        envelope = domi_envelope_new(manager, bytes < 128 ? 128 : bytes);
    }
    if (envelope == NULL)
        return NULL;
    /* the message's kind is set early, because it may be released before it is handled */
    envelope->node.kind = kind == DOMUS_STAGE_REQUEST  ? DOMI_ASK
                          : kind == DOMUS_STAGE_NOTICE ? DOMI_NOTICE
                                                       : DOMI_REPLY;
    envelope->node.lease = DOMI_LEASE_OWNED;
    envelope->type = type;
    pipe->made = envelope;
    void *payload = (char *)envelope + head;
    memset(payload, 0, type->size);
    return payload;
}

#define WAKE_MOST_NS (UINT64_C(1) << 62)

static void set_time_at_which_stage_is_woken(domus_wire *wire, uint64_t delay_ns)
{
    const domi_pipe *pipe = wire->owner;
    domus_channel *channel = pipe->channel;
    uint64_t delay = delay_ns < WAKE_MOST_NS ? delay_ns : WAKE_MOST_NS;

    channel->wake_ns = delay != 0 ? channel->io->manager->now_ns + delay : 0;
    if (delay != 0)
        domi_channel_arm_timeouts(channel);
}

/* True if no further request of the peer will be answered: implements domus_wire.is_closing. */
static bool is_pipe_closing(const domus_wire *wire)
{
    const domi_pipe *pipe = wire->owner;
    const domus_channel *channel = pipe->channel;

    if (DOMI_LIKELY(!channel->drain && !pipe->failed))
        return false;
    if (pipe->answering != pipe->next - 1 || pipe->held != NULL || pipe->body.open)
        return false; /* another request follows, or may follow behind the body */
    if (pipe->failed)
        return true;
    if (channel->inbound.head != NULL || channel->drain_bytes != 0 || pipe->change != NULL)
        return false;
    /* only a request that is not complete was left unread */
    if (channel->io->draining && pipe->dry)
        return !domi_pipe_is_body_awaited(pipe);
    return wire->progress == DOMI_MESSAGE_NONE && domi_wire_has_no_undecoded_bytes(wire);
}

static uint64_t get_now_ns_of_wire(const domus_wire *wire)
{
    const domi_pipe *pipe = wire->owner;

    return pipe->channel->io->manager->now_ns;
}

static int get_peer_of_channel(const domus_wire *wire, domus_endpoint *ret_peer)
{
    const domi_pipe *pipe = wire->owner;

    return domus_channel_peer(pipe->channel, ret_peer);
}

/* Count and log that the request which is being answered has failed by a fault of this side. */
static void report_failed_request(domus_wire *wire, const char *what, int error)
{
    domi_pipe *pipe = wire->owner;
    const domus_channel *channel = pipe->channel;
    const domi_request *request = domi_pipe_find_request(pipe, pipe->answering);

    if (channel->state != DOMI_CHANNEL_OPEN)
        return; /* the handler has closed the channel, so its request needs no answer */
    if (what == NULL && request != NULL && request->type != NULL)
        what = domi_type_name(request->type);
    domi_spell_record_failed_request(channel->io,
                                     domi_behaviour_name(domi_house_get_behaviour(channel->house)),
                                     what != NULL ? what : "a request", error);
}

static const domi_wire_services services = {.make = make_payload_of_message,
                                            .wake = set_time_at_which_stage_is_woken,
                                            .is_closing = is_pipe_closing,
                                            .now_ns = get_now_ns_of_wire,
                                            .peer = get_peer_of_channel,
                                            .tell_failure = report_failed_request};

int domi_pipe_open(domus_channel *channel)
{
    const domus_pipeline *pipeline = channel->house->behaviour->pipeline;
    domi_pipe *pipe;
    DOMI_CHECK(!domi_channel_is_of_datagrams(channel));
    pipe = domi_memory_new(sizeof *pipe);
    if (pipe == NULL)
        return -ENOMEM;
    pipe->wire = domi_wire_new(pipeline, channel->skipped == 0 ? channel->settings->front : NULL,
                               channel->skipped);
    if (pipe->wire == NULL) {
        domi_memory_free(pipe);
        return -ENOMEM;
    }
    pipe->channel = channel;
    pipe->dry = true;
    pipe->places = &pipe->place;
    pipe->places_count = 1;
    pipe->wire->out = &channel->io->out;
    pipe->wire->aside = &channel->io->aside;
    pipe->wire->services = &services;
    pipe->wire->inners = channel->io->inners;
    pipe->wire->owner = pipe;
    pipe->wire->last = &pipe->failed;
    pipe->wire->self = domi_house_get_address(channel->house);
    pipe->wire->server = channel->server != NULL ? channel->server->name : NULL;
    pipe->wire->server_port = channel->server != NULL ? channel->server->port : 0;
    channel->pipe = pipe;
    channel->wraps = pipe->wire->count > 1;
    channel->says_end = domi_wire_has_end_of_output(pipe->wire);
    channel->carries = domi_wire_carries_inner_channels(pipe->wire);
    int error = domi_wire_open_stages(pipe->wire);
    if (error != 0)
        /* The scratch has to be empty, because other channels of the thread use it, too. */
        domi_out_remove_all(pipe->wire->out, false);
    /* a byte stage may wait for the handshake of the peer, and the time for that begins now */
    if (error == 0 && domi_pipe_must_update_due_time(pipe))
        domi_pipe_update_due_time_of_peer(pipe);
    return error != 0 ? error : domi_pipe_queue_encoded_bytes(pipe);
}

static void free_held_buffer(void *buffer)
{
    domus_buffer_free(buffer);
}

/* Let a conversation hold received bytes that it still shows, because there was no memory to copy
 * them. It may outlive the channel, and then it keeps the buffer in which they lie: the piece whose
 * last byte was used, or the one that was the first when the channel closed. */
static void hold_bytes_for_conversation(domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;
    domus_buffer **piece = pipe->used != NULL ? &pipe->used : &channel->shown;

    if (domi_wire_copy_slices_of_message(pipe->wire) != 0 &&
        domi_wire_hold_memory_of_slices(pipe->wire, (domi_lender){free_held_buffer, *piece}))
        *piece = NULL;
}

void domi_pipe_end_and_free(domus_channel *channel)
{
    domi_pipe *pipe = channel->pipe;
    domi_manager *manager = channel->io->manager;

    if (pipe == NULL)
        return;
    domi_body_end_with_channel(manager, pipe);
    domi_stream_end_waiting_writes(manager, pipe);
    domi_stages_end_wait_of_ended_pipe(pipe);
    domi_pipe_return_or_fail_all_asks(manager, pipe);
    domi_pipe_return_mail_to_pool(manager, channel->house, channel->pool);
    channel->pipe = NULL;
    domi_pipe_forget_requests(pipe);
    domi_pipe_drop_message(manager, pipe->held);
    domi_stack_cancel_asks_promised_to_peer(manager, pipe->holder);
    if (pipe->undone)
        hold_bytes_for_conversation(pipe);
    domi_wire_free(pipe->wire);
    domi_asked_free_lists(&pipe->asked);
    domi_pipe_free_used_piece(pipe);
    domus_buffer_free(channel->shown);
    channel->shown = NULL;
    domi_pipe_free_request_places(pipe);
    domi_memory_free(pipe);
}
