/* Cancels asks that actors keep for a peer that has finished sending (ends.h). */
#include "io/channels/ends.h"

#include "house/conversation/asks.h"

void domi_channel_cancel_kept_asks(domus_channel *channel)
{
    domi_manager *manager = channel->io->manager;
    uint64_t kept_ns = channel->settings->half_close_kept_ns;
    uint64_t since_ns = manager->now_ns - channel->finished_ns;

    /* An actor that works for the peer may begin to keep the ask later, so the cancel is repeated;
     * but each time sends messages to all actors that work for the peer, so the time between two of
     * them doubles. */
    channel->kept_ns =
        kept_ns != 0 ? manager->now_ns + (since_ns > kept_ns ? since_ns : kept_ns) : 0;
    if (kept_ns == 0)
        return;
    if (channel->pipe != NULL)
        channel->io->pipe_ways->cancel_kept(channel);
    else
        domi_stack_cancel_kept_requests_of_peer(manager, channel->house, NULL);
}
