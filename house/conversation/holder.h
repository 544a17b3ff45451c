/* Events to the asker of an ask that was passed on: the actor that holds the ask sends them
 * (asks.h). The thread that has the ask calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_HOLDER_H
#define DOMI_HOUSE_CONVERSATION_HOLDER_H

#include "base/check.h"
#include "house/message/manager.h"

#include <domus/conversation.h>

/* Tell the actor `to`, by an event, that nobody waits any more for the answer of the ask named by
 * `back`. */
void domi_ask_tell_actor_of_cancel(domi_manager *manager, domus_address to,
                                   const domi_return *back);

/* Tell the asker of `ask`, by an event, which actor holds the ask: the slow half of
 * domi_ask_record_hold_beyond_turn(). Without memory for the event a later cancel does not find the
 * ask.
 */
void domi_ask_tell_asker_of_holder(domi_manager *manager, const domi_house *house,
                                   domi_envelope *ask);

/* Record that `house` holds `ask` beyond this turn; if the ask was passed on, its asker is told. */
DOMI_INLINE void domi_ask_record_hold_beyond_turn(domi_manager *manager, const domi_house *house,
                                                  domi_envelope *ask)
{
    if (DOMI_UNLIKELY((domi_envelope_get_return_of_ask(ask)->until & DOMI_PASSED_ON) != 0))
        domi_ask_tell_asker_of_holder(manager, house, ask);
}

/* Tell the gateway that keeps an ask (domus/remote.h), by an event, that the asker has cancelled
 * the ask. Without memory for the event the gateway is not told. */
void domi_ask_tell_gateway_of_cancel(domi_manager *manager, domus_address gateway, domus_kept kept);

#endif
