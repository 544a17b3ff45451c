/* Returns asks that a connection does not answer to their pools (returned.h). */
#include "io/pipelines/returned.h"

#include "house/conversation/asks.h"
#include "house/dispatch/rows.h"
#include "house/message/mailbox.h"

#include <errno.h>

bool domi_pipeline_encodes(const domus_pipeline *pipeline, const domus_type *type)
{
    const domus_type *const *at = pipeline->encodes;

    for (; at != NULL && *at != NULL; at++) {
        if (*at == type)
            return true;
    }
    return false;
}

void domi_ask_fail_unsent(domi_manager *manager, domi_envelope *ask, int error)
{
    bool was_sent_before = domi_envelope_return(ask)->note >> DOMI_TRIES_SHIFT != 0;

    domi_ask_fail(manager, ask, was_sent_before ? -EPIPE : error);
}

void domi_ask_return(domi_manager *manager, domus_address pool, domi_envelope *ask, uint32_t fate)
{
    if (domi_ask_is_expired(manager, ask)) {
        domi_ask_expire(manager, ask);
        return;
    }
    if (pool.house != NULL) {
        uint32_t *note = &domi_envelope_return(ask)->note;
        *note = (*note & ~DOMI_NOTE_MASK) | fate;
        if (domi_mailbox_put_passed(manager, pool, &ask->node, DOMI_ASK) == 0)
            return;
    }
    domi_ask_fail_unsent(manager, ask, fate == DOMI_ASK_MAYBE_DONE ? -EPIPE : -ENOTCONN);
}

void domi_pipe_return_asked(domi_manager *manager, const domi_pipe *pipe, domi_envelope *ask)
{
    bool is_undone = pipe->fate == DOMI_ASK_REFUSED && ask->type != &domi_upload_type;

    if (pipe->fate == DOMI_ASK_UNFIT)
        domi_ask_fail_unsent(manager, ask, pipe->channel->error);
    else
        domi_ask_return(manager, pipe->channel->pool, ask,
                        is_undone ? DOMI_ASK_REFUSED : DOMI_ASK_MAYBE_DONE);
}

void domi_pipe_return_waiting_asks(domi_manager *manager, domi_pipe *pipe)
{
    pipe->asked_last = true;
    while (pipe->queue != NULL && !pipe->wire->pipeline->holds_asks) {
        pipe->queue_count--;
        domi_ask_return(manager, pipe->channel->pool,
                        (domi_envelope *)(void *)domi_list_take(&pipe->queue), DOMI_ASK_UNSENT);
    }
}

void domi_pipe_return_mail(domi_manager *manager, domi_house *house, domus_address pool)
{
    const domi_pipe *pipe = domi_pipe_of(house);
    const domus_pipeline *pipeline =
        pipe != NULL ? pipe->wire->pipeline : house->behaviour->pipeline;
    domi_node *waiting = house->tails[DOMI_ASK];
    uint32_t returned = 0;

    house->tails[DOMI_ASK] = NULL;
    while (waiting != NULL) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take(&waiting);
        if (domi_pipeline_encodes(pipeline, domi_mail_type(ask)) &&
            domi_row_of(house->behaviour, ask->type) == NULL) {
            domi_ask_return(manager, pool, ask, DOMI_ASK_UNSENT);
            returned++;
        } else {
            domi_list_push(&house->tails[DOMI_ASK], &ask->node);
        }
    }
    house->mail -= returned;
    if (returned != 0)
        domi_mailbox_restart_receives(house);
}

bool domi_pipe_unsent_asks(domi_house *house, uint32_t index, domi_node ***ret_list,
                           uint32_t **ret_count)
{
    domi_pipe *pipe = domi_pipe_of(house);

    if (pipe == NULL || index > 2)
        return false;
    *ret_list = index == 0 ? &pipe->queue : index == 1 ? &pipe->body.reader : &pipe->writers;
    *ret_count = index == 0   ? &pipe->queue_count
                 : index == 1 ? &pipe->body.readers
                              : &pipe->writer_count;
    return true;
}
