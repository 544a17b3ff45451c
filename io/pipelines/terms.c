/* Sends asks that have waited until the handshake of the stages was over (life.h). */
#include "io/pipelines/life.h"

#include "base/pipeline.h"
#include "house/conversation/receive.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "io/pipelines/mail.h"

void domi_pipe_send_asks_after_handshake(domi_manager *manager, domi_pipe *pipe)
{
    domi_house *pool = pipe->channel->pool.house;

    domi_pipe_send_waiting_asks(manager, pipe);
    if (!pipe->channel->pulls || pool->family == NULL || pool->family->stashed == 0 ||
        !domi_pipeline_may_lend(pipe->wire->pipeline))
        return;
    domi_house_put_stash_back(pool);
    if (pool->state == DOMI_WAITING)
        domi_house_make_ready(manager, pool);
}
