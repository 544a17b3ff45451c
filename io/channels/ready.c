/* Makes the house of a channel ready when the channel has work for its actor; the actor's run then
 * finds out which work. */
#include "io/channels/ready.h"

#include "io/channels/crowd.h"

#include "house/message/mailbox.h"

void domi_channel_make_actor_ready(domus_channel *channel)
{
    domi_house *house = channel->house;

    house->marks |= DOMI_MARK_CHANNELS;
    if (house->state == DOMI_WAITING &&
        (domi_house_may_run_channels(house) || domi_house_is_stopping_unmounted(house)))
        domi_house_make_ready(channel->io->manager, house);
}

void domi_channel_wake_writer_of_answer(domus_channel *channel)
{
    if ((channel->high || channel->crowded) && domi_channel_may_oldest_answer_go_on(channel))
        domi_channel_make_actor_ready(channel);
}
