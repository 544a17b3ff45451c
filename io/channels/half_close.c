/* Closes a channel whose peer has sent FIN, once everything is answered (ends.h). */
#include "io/channels/ends.h"

#include "io/channels/due.h"
#include "io/channels/state.h"

void domi_channel_close_when_answered(domus_channel *channel)
{
    uint64_t kept_ns = channel->settings->half_close_kept_ns;

    channel->close_due = true;
    if (domi_channel_has_answered_all(channel)) {
        (void)domi_channel_close(channel);
    } else if (kept_ns != 0) {
        channel->finished_ns = channel->io->manager->now_ns;
        channel->kept_ns = channel->finished_ns + kept_ns;
        domi_channel_set_timer_no_later(channel, channel->kept_ns);
    }
}
