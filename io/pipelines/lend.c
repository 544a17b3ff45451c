/* Gives asks for the peer of a channel to inner channels that its stage lends (lend.h). */
#include "io/pipelines/lend.h"

#include "base/check.h"
#include "house/message/mailbox.h"
#include "io/channels/due.h"
#include "io/pipelines/returned.h"
#include "io/wire/inner.h"

/* Give an ask to an inner channel. The deadline of the ask bounds the inner channel, because its
 * end costs no connection, and returns the ask to where the outer channel would return it. The
 * bound holds from now on: the ask may run out of time in the mailbox, and nobody tells the channel
 * then. */
void domi_pipe_lend_inner_to_ask(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    domus_inner *inner;
    int error = domi_wire_choose_inner_for_ask(pipe->wire, &inner);

    if (error == 0) {
        domus_address address = inner->ways->address(inner);
        domus_channel *channel = domi_pipe_channel_of_house(address.house);
        /* the inner channel exists, because the stage has just lent it */
        DOMI_CHECK(channel != NULL);
        pipe->next_ask++;
        channel->pool = pipe->channel->pool;
        channel->bounds = true;
        channel->lent = true;
        channel->rests = false;
        channel->ask_due_ns = domi_envelope_deadline_ns(ask);
        domi_channel_set_timer_no_later(channel, channel->ask_due_ns);
        error = domi_mailbox_put_passed_on(manager, address, &ask->node, DOMI_ASK);
        if (error != 0)
            domi_pipe_end_lend_of_inner(channel);
    }
    if (error != 0)
        domi_ask_fail_unsent(manager, ask, error);
}

void domi_pipe_end_lend_of_inner(domus_channel *channel)
{
    channel->lent = false;
    /* The inner channel may be CLOSED, because its ask could not be queued. */
    if (channel->special != NULL)
        domi_channel_get_special_functions(channel)->note_used(channel);
}
