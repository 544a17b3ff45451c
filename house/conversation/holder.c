/* Puts the events about passed-on asks that holder.h declares. */
#include "house/conversation/holder.h"

#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <domus/remote.h>

#include <string.h>

const domus_type domus_remote_cancel_type = {.name = "remote cancel",
                                             .size = sizeof(domus_remote_cancelled_ask)};

static_assert(sizeof(domus_remote_cancelled_ask) <= sizeof(domi_return),
              "put_event_about_ask() copies it");

/* Put an event about an ask to the actor `to`. Returns 0, also without memory for the event;
 * -ESTALE if the actor has ended. */
static int put_event_about_ask(domi_manager *manager, domus_address to, const domus_type *type,
                               const domi_return *back, domus_address sender)
{
    domi_envelope *envelope = domi_envelope_new(manager, sizeof(domi_envelope));

    if (envelope == NULL)
        return 0;
    envelope->type = type;
    envelope->sender = sender.house;
    envelope->sender_lease = sender.lease;
    memcpy(envelope->payload, back, sizeof *back);
    int error = domi_mailbox_put(manager, to, &envelope->node, DOMI_EVENT);
    if (error != 0)
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

void domi_ask_tell_actor_of_cancel(domi_manager *manager, domus_address to, const domi_return *back)
{
    (void)put_event_about_ask(manager, to, &domi_cancel_type, back, (domus_address){NULL, 0});
}

void domi_ask_tell_asker_of_holder(domi_manager *manager, const domi_house *house,
                                   domi_envelope *ask)
{
    domi_return *back = domi_envelope_get_return_of_ask(ask);
    domus_address self = domi_house_get_address(house);
    domus_address asker = {ask->sender, ask->sender_lease};

    back->until &= ~DOMI_PASSED_ON;
    if ((back->until & DOMI_UNFOLLOWED) != 0)
        return;
    const domi_return held = {.promise = back->promise, .serial = back->serial};
    if (put_event_about_ask(manager, asker, &domi_held_type, &held, self) != 0)
        domi_ask_tell_actor_of_cancel(manager, self, &held);
}

void domi_ask_tell_gateway_of_cancel(domi_manager *manager, domus_address gateway, domus_kept kept)
{
    const domus_remote_cancelled_ask cancelled = {kept};
    domi_return what = {.note = 0};

    memcpy(&what, &cancelled, sizeof cancelled);
    (void)put_event_about_ask(manager, gateway, &domus_remote_cancel_type, &what,
                              (domus_address){NULL, 0});
}
