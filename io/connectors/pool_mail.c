/* The mail of a pool that other parts of the library handle: cancels find it here, and mail goes
 * back when a connection or the pool ends. The library calls these functions for every house. */
#include "house/conversation/asks.h"
#include "house/message/family.h"
#include "io/channels/channel.h"
#include "io/connectors/pool.h"
#include "io/pipelines/load.h"
#include "io/pipelines/mail.h"
#include "io/pipelines/returned.h"

#include <errno.h>

bool domi_pool_find_list_of_unsent_asks(domi_house *house, uint32_t index, domi_node ***ret_list,
                                        uint32_t **ret_count)
{
    if (house->behaviour != &domi_pool_behaviour)
        return domi_pipe_find_unsent_asks(house, index, ret_list, ret_count);
    const domi_connection_pool *pool = house->self;
    for (uint32_t i = 0; i < pool->options.connections_max; i++) {
        const domi_place *place = &pool->places[i];
        bool is_open = place->state == DOMI_PLACE_OPEN &&
                       domi_pipe_load_of_channel(place->channel) != DOMI_PIPE_CLOSED;
        if (is_open && index-- == 0)
            return domi_pipe_find_unsent_asks(place->channel.house, 0, ret_list, ret_count);
    }
    return false;
}

/* Fail those asks in the list that the peer of a lost connection may have carried out. Returns
 * their number. */
static uint32_t fail_asks_that_may_be_done(domi_manager *manager, domi_node **list)
{
    domi_node *waiting = *list;
    uint32_t failed = 0;

    *list = NULL;
    while (waiting != NULL) {
        domi_envelope *ask = (domi_envelope *)(void *)domi_list_take_first_node(&waiting);
        uint32_t note = domi_envelope_get_return_of_ask(ask)->note;
        if (note == DOMI_ASK_MAYBE_DONE || note >> DOMI_TRIES_SHIFT != 0) {
            domi_ask_fail(manager, ask, -EPIPE);
            failed++;
        } else {
            domi_list_append_node(list, &ask->node);
        }
    }
    return failed;
}

void domi_pool_return_mail_of_ending_actor(domi_manager *manager, domi_house *house)
{
    const domus_behaviour *behaviour = house->behaviour;

    if (behaviour == &domi_pool_behaviour) {
        house->mail -= fail_asks_that_may_be_done(manager, &house->tails[DOMI_ASK]);
        if (house->family != NULL)
            house->family->stashed -= fail_asks_that_may_be_done(manager, &house->family->stash[0]);
    } else if (behaviour->pipeline != NULL && domi_house_is_channel(house)) {
        bool is_pooled = house->parent->behaviour == &domi_pool_behaviour;
        domi_pipe_return_mail_to_pool(manager, house,
                                      is_pooled ? domi_house_get_address(house->parent)
                                                : (domus_address){NULL, 0});
    }
}
