/* Each invariant of a channel is broken once, and the check for it ends the process. */
#include "io/channels/channel.h"

#include "tests/support/death.h"
#include "tests/support/suite.h"

static void check_that_channel_is_sound(void *channel)
{
    (void)domi_channel_fits_its_state(channel);
}

DOMT_TEST(each_invariant_of_a_channel_is_checked)
{
    /* a pointer that is no buffer, and is only compared with NULL */
    domus_buffer *some = (domus_buffer *)(void *)(uintptr_t)64;
    /* a pointer that is no promise, and is only compared with NULL */
    struct domi_promise *wait = (struct domi_promise *)(void *)some;
    static domi_house house;
    const domus_channel open = {.fd = 3, .state = DOMI_CHANNEL_OPEN};
    const domus_channel closed = {.fd = -1, .state = DOMI_CHANNEL_CLOSED};
    struct {
        domus_channel channel;
        const char *text; /* what the failed check prints; NULL: the channel is sound */
    } rows[] = {
        {open, NULL},
        {closed, NULL},
        {{.fd = -1, .state = DOMI_CHANNEL_OPEN}, "has_descriptor_or_is_inner(channel)"},
        {{.fd = 3, .cancelling = true}, "channel->cancelling"},
        {{.fd = 3, .queued_bytes = 1}, "channel->queued_bytes == 0"},
        {{.fd = 3, .cost = 1}, "channel->cost == channel->answer_cost"},
        {{.fd = 3, .sending = true}, "channel->sending"},
        {{.fd = 3, .end_told = true}, "channel->end_told"},
        {{.fd = 3, .close_due = true}, "channel->close_due"},
        {{.fd = 3, .state = DOMI_CHANNEL_FLUSHING, .crowded = true}, "channel->crowded"},
        {{.fd = 3, .state = DOMI_CHANNEL_FLUSHING, .inbound.head = some}, "inbound.head == NULL"},
        {{.fd = 3, .state = DOMI_CHANNEL_LINGERING, .inbound.head = some}, "inbound.head == NULL"},
        {{.fd = 3, .state = DOMI_CHANNEL_LINGERING, .outbound.head = some},
         "outbound.head == NULL"},
        {{.fd = 3, .state = DOMI_CHANNEL_CLOSING, .inbound.head = some}, "inbound.head == NULL"},
        {{.fd = 3, .state = DOMI_CHANNEL_CLOSING, .outbound.head = some}, "outbound.head == NULL"},
        {{.fd = 3, .state = DOMI_CHANNEL_CLOSED}, "channel->fd == -1"},
        {{.fd = -1, .state = DOMI_CHANNEL_CLOSED, .receiving = true}, "!channel->receiving"},
        {{.fd = -1, .state = DOMI_CHANNEL_CLOSED, .cancels = 1}, "channel->cancels == 0"},
        {{.fd = -1, .state = DOMI_CHANNEL_CLOSED, .inbound.head = some}, "inbound.head == NULL"},
        {{.fd = -1, .state = DOMI_CHANNEL_CLOSED, .starved = true}, "!channel->starved"},
        {{.fd = 3, .high = true}, "channels.backlogged"},
        {{.fd = -1, .state = DOMI_CHANNEL_CLOSED, .flushes = wait}, "channel->flushes == NULL"},
        {{.fd = 3, .state = DOMI_CHANNEL_STATES}, "no state"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domi_wheel_node_init(&rows[i].channel.timer.node);
        rows[i].channel.house = &house;
        if (rows[i].text != NULL)
            domt_check_child_aborts(check_that_channel_is_sound, &rows[i].channel, rows[i].text);
        else
            ck_assert(domi_channel_fits_its_state(&rows[i].channel));
    }
}

DOMT_SUITE(60)
