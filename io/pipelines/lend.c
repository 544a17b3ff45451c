/* Lets asks go to inner channels; see the header. */
#include "io/pipelines/lend.h"

#include "base/pipeline.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "io/pipelines/mail.h"
#include "io/pipelines/returned.h"
#include "io/wire/inner.h"

/* The inner channel is bound by the deadline of its ask, because its end costs no connection, and
 * returns the ask to where this one would. */
void domi_pipe_lend(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    domus_inner *inner;
    int error = domi_wire_lend(pipe->wire, &inner);

    if (error == 0) {
        domus_address address = inner->ways->address(inner);
        domus_channel *channel = domi_pipe_channel_of(address.house);
        pipe->next_ask++;
        channel->pool = pipe->channel->pool;
        channel->bounds = true;
        error = domi_mailbox_put_passed(manager, address, &ask->node, DOMI_ASK);
    }
    if (error != 0)
        domi_ask_fail_unsent(manager, ask, error);
}

void domi_pipe_come_to_terms(domi_manager *manager, domi_pipe *pipe)
{
    domi_house *pool = pipe->channel->pool.house;

    domi_pipe_send_waiting(manager, pipe);
    if (!pipe->channel->pulls || pool->family == NULL || pool->family->stashed == 0 ||
        !domi_pipeline_lends(pipe->wire->pipeline))
        return;
    domi_mailbox_unstash(pool);
    if (pool->state == DOMI_WAITING)
        domi_house_make_ready(manager, pool);
}
