/* Returns asks that a connection does not answer to their pools (returned.h). */
#include "io/pipelines/returned.h"

#include "house/conversation/asks.h"
#include "house/dispatch/rows.h"
#include "house/message/mailbox.h"

#include <errno.h>

bool domi_pipeline_encodes_type(const domus_pipeline *pipeline, const domus_type *type)
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
    bool was_sent_before = domi_envelope_get_return_of_ask(ask)->note >> DOMI_TRIES_SHIFT != 0;

    domi_ask_fail(manager, ask, was_sent_before ? -EPIPE : error);
}

void domi_ask_return_to_pool(domi_manager *manager, domus_address pool, domi_envelope *ask,
                             uint32_t fate)
{
    if (domi_ask_is_expired(manager, ask)) {
        domi_ask_drop_expired(manager, ask);
        return;
    }
    if (pool.house != NULL) {
        uint32_t *note = &domi_envelope_get_return_of_ask(ask)->note;
        *note = (*note & ~DOMI_NOTE_MASK) | fate;
        if (domi_mailbox_put_passed_on(manager, pool, &ask->node, DOMI_ASK) == 0)
            return;
    }
    domi_ask_fail_unsent(manager, ask, fate == DOMI_ASK_MAYBE_DONE ? -EPIPE : -ENOTCONN);
}

void domi_pipe_return_sent_ask_to_pool(domi_manager *manager, const domi_pipe *pipe,
                                       domi_envelope *ask)
{
    bool is_undone = pipe->fate == DOMI_ASK_REFUSED && ask->type != &domi_upload_type;

    if (pipe->fate == DOMI_ASK_UNFIT)
        domi_ask_fail_unsent(manager, ask, pipe->channel->error);
    else
        domi_ask_return_to_pool(manager, pipe->channel->pool, ask,
                                is_undone ? DOMI_ASK_REFUSED : DOMI_ASK_MAYBE_DONE);
}

void domi_pipe_return_waiting_asks(domi_manager *manager, domi_pipe *pipe)
{
    pipe->asked_last = true;
    while (pipe->queue != NULL && !pipe->wire->pipeline->holds_asks) {
        pipe->queue_count--;
        domi_ask_return_to_pool(manager, pipe->channel->pool,
                                (domi_envelope *)(void *)domi_list_take_first_node(&pipe->queue),
                                DOMI_ASK_UNSENT);
    }
}

void domi_pipe_return_mail_to_pool(domi_manager *manager, domi_house *house, domus_address pool)
{
    const domi_pipe *pipe = domi_pipe_of_house(house);
    const domus_pipeline *pipeline =
        pipe != NULL ? pipe->wire->pipeline : house->behaviour->pipeline;
    domi_node *waiting = house->tails[DOMI_ASK];
    uint32_t returned = 0;

    house->tails[DOMI_ASK] = NULL;
    while (waiting != NULL) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take_first_node(&waiting);
        if (domi_pipeline_encodes_type(pipeline, domi_mail_type_of_ask(ask)) &&
            domi_row_for_type(house->behaviour, ask->type) == NULL) {
            domi_ask_return_to_pool(manager, pool, ask, DOMI_ASK_UNSENT);
            returned++;
        } else {
            domi_list_append_node(&house->tails[DOMI_ASK], &ask->node);
        }
    }
    house->mail -= returned;
    if (returned != 0)
        domi_mailbox_let_receives_look_again(house);
}

bool domi_pipe_find_unsent_asks(domi_house *house, uint32_t index, domi_node ***ret_list,
                                uint32_t **ret_count)
{
    domi_pipe *pipe = domi_pipe_of_house(house);

    if (pipe == NULL || index > 2)
        return false;
    *ret_list = index == 0 ? &pipe->queue : index == 1 ? &pipe->body.reader : &pipe->writers;
    *ret_count = index == 0   ? &pipe->queue_count
                 : index == 1 ? &pipe->body.readers
                              : &pipe->writer_count;
    return true;
}
