/* Tells pools the load of their connections, and by which pool an ask is taken back (load.h). */
#include "io/pipelines/load.h"

#include "io/pipelines/mail.h"

/* Returns the open channel at an address of this thread; NULL if it is closed or closing. */
static domus_channel *find_open_channel_at_address(domus_address address)
{
    const domi_house *house = address.house;
    uint64_t life = domi_house_life_word(house);

    if (DOMI_LIFE_LEASE(life) != address.lease || (life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP)) != 0)
        return NULL;
    domus_channel *channel = domi_pipe_channel_of_house(house);
    return channel != NULL && channel->state == DOMI_CHANNEL_OPEN ? channel : NULL;
}

uint32_t domi_pipe_load_of_channel(domus_address address)
{
    const domus_channel *channel = find_open_channel_at_address(address);

    if (channel == NULL || channel->pipe == NULL)
        return DOMI_PIPE_CLOSED;
    if (!domi_pipe_may_peer_answer(channel->pipe))
        return channel->pipe->asked_last ? DOMI_PIPE_ENDS | (channel->asks + channel->carried)
                                         : DOMI_PIPE_CLOSED;
    bool is_shaking = channel->wraps && domi_wire_is_in_handshake(channel->pipe->wire);
    uint32_t lent = channel->lends ? channel->carried : 0;
    return (channel->asks + lent + channel->pipe->queue_count + address.house->mail) |
           (channel->drain || channel->high || channel->pipe->upload.open ? DOMI_PIPE_LAST : 0) |
           (is_shaking ? DOMI_PIPE_SHAKES : 0);
}

uint64_t domi_pipe_most_asks_of_channel(domus_address address)
{
    const domus_channel *channel = find_open_channel_at_address(address);

    return channel != NULL && channel->pipe != NULL ? domi_pipe_most_asks_with_peer(channel->pipe)
                                                    : UINT64_MAX;
}

void domi_pipe_let_asks_return_to_pool(domus_address address, domus_address pool,
                                       domi_last_word *ret_last_word)
{
    domus_channel *channel = find_open_channel_at_address(address);

    if (channel == NULL)
        return;
    channel->pool = pool;
    channel->last_word = ret_last_word;
    channel->pulls = channel->bounds = ret_last_word != NULL;
}
