/* Handles the channel of a channels actor in a run of the actor.
 *
 * A run calls on_open, on_read, on_end and on_close for its channel, in that order, as
 * many times as the run may still handle messages (calls.c). */
#include "io/completions/actor.h"

#include "io/acceptors/acceptors.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "io/connectors/connect.h"
#include "io/pipelines/decode.h"
#include "io/pipelines/life.h"

#include "base/check.h"
#include "house/conversation/turn.h"
#include "house/message/family.h"

#include <errno.h>

/* Returns the channel to which a house belongs; NULL when the channel is gone. */
static domus_channel *get_channel_of_house(const domi_house *house)
{
    return house->channels.owned;
}

void domi_channel_handle_ended_conversation(domi_manager *manager, domi_house *house)
{
    domus_channel *channel = get_channel_of_house(house);

    (void)manager;
    if (channel == NULL)
        return;
    DOMI_CHECK(channel->conversations != 0);
    channel->answered_bytes = channel->received_bytes;
    channel->conversations--;
    if (channel->busy)
        domi_channel_update_busy_flag(channel);
    if (channel->close_due && domi_channel_has_answered_all(channel))
        (void)domi_channel_close(channel);
}

bool domi_channel_reset_for_failed_actor(domi_manager *manager, domi_house *house, int error)
{
    (void)manager;
    if (!domi_house_is_channel(house))
        return false;
    if (get_channel_of_house(house) != NULL)
        domi_channel_reset_after_error(get_channel_of_house(house), error);
    return true;
}

/* True if the actor may get the next received piece of its channel. While much is queued this is
 * decided anew for each piece: other channels have written since the last one, and an answer to it
 * may find no room any more. */
static bool may_actor_get_next_piece(domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN || channel->inbound.head == NULL || channel->blocked)
        return false;
    if (DOMI_UNLIKELY(channel->io->careful))
        domi_channel_decide_whether_to_receive(channel);
    return !channel->blocked;
}

/* True if the channel's actor has got all bytes that came before the end of the peer. */
static bool has_actor_got_all_bytes(const domus_channel *channel)
{
    return channel->inbound.head == NULL &&
           (channel->pipe == NULL || domi_pipe_has_handled_all_of_peer(channel));
}

/* True if the channel's actor has to be told that the peer has finished sending. It has got all
 * bytes, and has not paused the channel. An actor with an on_end is also told while a request that
 * DOMUS_ALONE marks is not answered, if no bytes came behind that request, or if the request asks
 * for it; such a request may end with its peer. */
static bool must_actor_be_told_of_peers_end(const domus_channel *channel)
{
    return channel->state == DOMI_CHANNEL_OPEN && channel->ended && !channel->end_told &&
           !channel->halted &&
           (has_actor_got_all_bytes(channel) ||
            (channel->pipe != NULL && domi_pipe_has_lone_open_request(channel) &&
             (channel->house->behaviour->on_end.handle != NULL ||
              domi_pipe_does_request_end_with_peer(channel))));
}

/* Call the channel's on_end, or end the channel with its peer. */
static void call_on_end_or_end_with_peer(domi_manager *manager, domi_house *house,
                                         domus_channel *channel)
{
    bool is_early = channel->pipe != NULL && domi_pipe_has_to_tell_end_early(channel);

    if (channel->pipe != NULL && domi_pipe_does_request_end_with_peer(channel)) {
        channel->end_told = true;
        (void)domi_channel_close(channel);
        return;
    }
    domi_channel_call_on_end(manager, house, channel);
    if (DOMI_UNLIKELY(is_early) && channel->state == DOMI_CHANNEL_OPEN)
        /* the actor was told of the peer's end early; it is told again when what follows the
         * request has ended */
        channel->end_told = false;
}

/* Open a channel for its actor, with its pipeline if it has one, and call on_open. */
static void open_channel_of_actor(domi_manager *manager, domi_house *house, domus_channel *channel)
{
    int error = house->behaviour->pipeline != NULL ? domi_pipe_open(channel) : 0;

    if (error != 0)
        domi_channel_reset_after_error(channel, error);
    else
        domi_channel_call_on_open(manager, house, channel);
}

/* Handle the channel of an actor, by at most `budget` calls that count as messages of the run.
 * Returns how many calls were made. */
static uint32_t run_channel_of_actor(domi_manager *manager, domi_house *house,
                                     domus_channel *channel, uint32_t budget)
{
    uint32_t used = 0;

    /* the actor of a proxy's channel is mounted only when the PROXY header is complete */
    DOMI_CHECK(channel->proxy == NULL);
    if (!channel->opened && channel->state == DOMI_CHANNEL_OPEN) {
        open_channel_of_actor(manager, house, channel);
        used++;
    }
    if (channel->pipe != NULL && used < budget)
        used += domi_pipe_run_messages(manager, house, channel, budget - used);
    while ((house->marks & DOMI_MARK_SATURATED) == 0 && used < budget && channel->pipe == NULL &&
           may_actor_get_next_piece(channel)) {
        domi_channel_call_on_read(manager, house, channel);
        used++;
    }
    if (must_actor_be_told_of_peers_end(channel) && used < budget) {
        call_on_end_or_end_with_peer(manager, house, channel);
        used++;
    }
    if (channel->io->careful)
        /* a careful thread (io/channels/crowd.h) arms the receive of the next piece only now */
        domi_channel_take_due_steps(channel);
    if (channel->pipe != NULL)
        channel->behind = domi_pipe_has_undecoded_work(channel);
    domi_channel_close_if_drained(channel);
    if (channel->state == DOMI_CHANNEL_CLOSED && used < budget) {
        domi_channel_call_on_close(manager, house, channel);
        return used + 1;
    }
    bool more = channel->state == DOMI_CHANNEL_CLOSED || must_actor_be_told_of_peers_end(channel) ||
                (channel->state == DOMI_CHANNEL_OPEN && !channel->blocked &&
                 (channel->pipe != NULL ? domi_pipe_has_work_for_run(channel)
                                        : channel->inbound.head != NULL));
    if (more)
        domi_channel_make_actor_ready(channel);
    return used;
}

/* True if the owner of the channel is a channels actor, which runs on this thread and nowhere else,
 * so that its marks may be read. */
static inline bool is_owner_on_this_thread(const domi_house *house)
{
    return domi_house_get_behaviour(house->parent)->kind == DOMUS_CHANNELS;
}

uint32_t domi_channels_run_channel_of_actor(domi_manager *manager, domi_house *house,
                                            uint32_t budget)
{
    domus_channel *channel = get_channel_of_house(house);

    if (budget == 0)
        return 0;
    house->marks &= (uint16_t)~DOMI_MARK_CHANNELS;
    if (channel == NULL)
        return 0;
    /* The actor that owns the channel does not count as idle while its channels are busy. */
    if (is_owner_on_this_thread(house) &&
        DOMI_UNLIKELY((house->parent->marks & DOMI_MARK_PASSIVATES) != 0))
        house->parent->family->last_ns = manager->now_ns;
    return run_channel_of_actor(manager, house, channel, budget);
}

void domi_channels_open_channel_of_actor(domi_manager *manager, domi_house *house)
{
    domus_channel *channel = get_channel_of_house(house);

    /* A channel that on_mount has ended is not opened, and its next run frees it. */
    if (channel->state == DOMI_CHANNEL_OPEN)
        open_channel_of_actor(manager, house, channel);
}

/* Begin to close a channel, because its actor stops. If a restart waits for the stop, the close
 * does not wait for the peer. Returns 0 if the channel was freed at once; else 1. */
static uint32_t begin_to_stop_channel(domi_house *house, domus_channel *channel)
{
    if ((domi_house_life_word(house) & DOMI_LIFE_HASTE) != 0)
        domi_channel_end_at_once(channel, -ECANCELED, true);
    else
        (void)domi_channel_close(channel);
    /* if on_mount has failed, or was not called, no callback runs for the channel */
    if (channel->state == DOMI_CHANNEL_CLOSED && domi_house_is_stopping_unmounted(house)) {
        domi_channel_free(channel);
        return 0;
    }
    return 1;
}

static uint32_t begin_to_stop_acceptor(const domi_manager *manager, domi_house *house,
                                       domi_acceptor *acceptor)
{
    uint32_t left = domi_acceptor_begin_stop(acceptor);

    /* if the thread has ended, the close of the ring cancels the acceptor's operations in flight */
    if (left != 0 && !manager->ending.has_stopped)
        return left;
    house->channels.owned = NULL;
    /* an acceptor whose actor was mounted is freed by the actor's on_stop */
    if (domi_house_is_stopping_unmounted(house) || house->state == DOMI_MOUNTING)
        domi_acceptor_close_and_free(acceptor);
    return 0;
}

uint32_t domi_channels_stop_owned_by_actor(domi_manager *manager, domi_house *house)
{
    if (house->channels.owned == NULL)
        return 0;
    switch ((enum domi_owns)house->channels.owns) {
    case DOMI_OWNS_CHANNEL:
        return begin_to_stop_channel(house, get_channel_of_house(house));
    case DOMI_OWNS_ACCEPTOR:
        return begin_to_stop_acceptor(manager, house, house->channels.owned);
    case DOMI_OWNS_CONNECT:
        return domi_connecting_take_back(house);
    case DOMI_OWNS_NOTHING:
        break;
    }
    return 0;
}

bool domi_channels_handle_accepted_event(domi_manager *manager, domi_house *house,
                                         domi_envelope *message)
{
    if (message->type != &domi_accepted_type)
        return false;
    /* If the actor is not mounted, the event of a connection becomes a dead letter: it is counted,
     * subscribers are told, and the connection is reset. */
    if ((house->marks & DOMI_MARK_UNMOUNTED) != 0)
        return false;
    const domi_accepted *accepted = domi_envelope_get_payload(message);
    if (house->behaviour->kind != DOMUS_CHANNELS || manager->io != accepted->io)
        domi_accepted_type.release(domi_envelope_get_payload(message));
    else
        domi_accepted_make_channel_or_reset(accepted, house);
    return true;
}
