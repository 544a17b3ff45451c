/* Checks the invariants of a channel in each of its states, which state.c draws. */
#include "io/channels/channel.h"

#include "base/check.h"

/* Returns whether `then` is true whenever `when` is (the logical implication). */
static bool implies(bool when, bool then)
{
    return !when || then;
}

/* True if an OPEN channel has a descriptor, or is an inner channel, which needs none. */
static bool has_descriptor_or_is_inner(const domus_channel *channel)
{
    return channel->fd >= 0 || domi_channel_is_inner(channel);
}

/* Check a channel in the state CLOSED: nothing is in flight and nothing is kept; only on_close is
 * due, and then the slot is freed. */
static void check_closed_channel(const domus_channel *channel)
{
    DOMI_CHECK(channel->fd == -1);
    DOMI_CHECK(!channel->receiving && !channel->sending && channel->cancels == 0);
    DOMI_CHECK(channel->outbound.head == NULL && channel->inbound.head == NULL);
    DOMI_CHECK(!channel->starved && !channel->crowded && !channel->high);
    DOMI_CHECK(channel->flushes == NULL);
    DOMI_CHECK(!domi_wheel_is_armed(&channel->timer.node));
}

/* Check what holds for a channel in every state. */
static void check_channel_in_every_state(const domus_channel *channel)
{
    DOMI_CHECK(implies(channel->cancelling, channel->receiving));
    DOMI_CHECK(implies(channel->outbound.head == NULL, channel->queued_bytes == 0));
    DOMI_CHECK(implies(channel->outbound.head == NULL, channel->cost == channel->answer_cost));
    DOMI_CHECK(
        implies(channel->sending && channel->special == NULL, channel->outbound.head != NULL));
    DOMI_CHECK(implies(channel->crowded, channel->state == DOMI_CHANNEL_OPEN));
    DOMI_CHECK(implies(channel->end_told, channel->ended));
    DOMI_CHECK(channel->high == channel->house->channels.backlogged);
    DOMI_CHECK(implies(channel->close_due, channel->ended));
}

bool domi_channel_fits_its_state(const domus_channel *channel)
{
    check_channel_in_every_state(channel);
    switch (channel->state) {
    case DOMI_CHANNEL_OPEN:
        DOMI_CHECK(has_descriptor_or_is_inner(channel));
        break;
    case DOMI_CHANNEL_FLUSHING:
        DOMI_CHECK(has_descriptor_or_is_inner(channel) && channel->inbound.head == NULL);
        break;
    /* In LINGERING everything is sent, and arriving bytes are thrown away. */
    case DOMI_CHANNEL_LINGERING:
        DOMI_CHECK(has_descriptor_or_is_inner(channel) && channel->inbound.head == NULL);
        DOMI_CHECK(channel->outbound.head == NULL && !channel->sending);
        break;
    case DOMI_CHANNEL_CLOSING:
        DOMI_CHECK(has_descriptor_or_is_inner(channel) && channel->inbound.head == NULL);
        DOMI_CHECK(implies(!channel->sending, channel->outbound.head == NULL));
        break;
    case DOMI_CHANNEL_CLOSED:
        check_closed_channel(channel);
        break;
    default:
        DOMI_NEVER("a channel is in no state");
    }
    return true;
}
