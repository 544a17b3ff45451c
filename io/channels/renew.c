/* Applies changed settings to open channels: time-outs that are over by the new values end at once,
 * and the channel decides again whether it reads its peer. The rate of the peer is measured from
 * the change on. */
#include "io/channels/renew.h"

#include "io/channels/due.h"
#include "io/channels/ends.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"

void domi_channel_apply_settings(domus_channel *channel)
{
    domi_channel_end_drain_if_not_too_old(channel);
    domi_channel_update_busy_flag(channel);
    channel->rate = (domi_rate_span){.begun_ns = channel->io->manager->now_ns,
                                     .received = channel->received_bytes,
                                     .answered = UINT64_MAX};
    domi_channel_decide_whether_to_receive(channel);
    domi_channel_arm_timeouts(channel);
    domi_channel_take_due_steps(channel);
}

void domi_io_apply_settings_to_channels(domi_io *io)
{
    for (uint32_t i = 0; i < io->slots_used; i++) {
        domus_channel *channel = io->slots[i].channel;

        if (channel != NULL && channel->state == DOMI_CHANNEL_OPEN &&
            channel->settings->users == DOMI_SETTINGS_UNCOUNTED)
            domi_channel_apply_settings(channel);
    }
}
