/* Kept asks of a peer that has finished sending; see the header. */
#include "io/channels/kept.h"

#include "house/conversation/peer.h"

void domi_channel_cancel_kept(domus_channel *channel)
{
    domi_manager *manager = channel->io->manager;

    channel->kept_ns = manager->now_ns + channel->settings->half_close_kept_ns;
    if (channel->pipe != NULL)
        channel->io->pipe_ways->cancel_kept(channel);
    else
        domi_stack_cancel_kept_of_peer(manager, channel->house, NULL);
}
