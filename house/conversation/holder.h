/* The actor that holds an ask which was passed on tells the asker (passed.h). Whoever has the ask
 * calls all this. */
#ifndef DOMI_HOUSE_CONVERSATION_HOLDER_H
#define DOMI_HOUSE_CONVERSATION_HOLDER_H

#include "base/check.h"
#include "house/message/manager.h"

#include <domus/conversation.h>

/* Tell the actor of `to` that the answer of the ask named by `back` is not awaited any more. */
void domi_ask_put_cancel(domi_manager *manager, domus_address to, const domi_return *back);

/* The slow half of domi_ask_hold(): tell the asker. Without memory for that a cancel does not find
 * the ask. */
void domi_ask_tell_holder(domi_manager *manager, const domi_house *house, domi_envelope *ask);

/* `ask` stays with `house` beyond this turn. */
DOMI_INLINE void domi_ask_hold(domi_manager *manager, const domi_house *house, domi_envelope *ask)
{
    if (DOMI_UNLIKELY((domi_envelope_return(ask)->until & DOMI_PASSED_ON) != 0))
        domi_ask_tell_holder(manager, house, ask);
}

/* The asker of an ask that `gateway` keeps has cancelled it: tell the gateway (domus/remote.h).
 * Without memory for that it is not told. */
void domi_ask_tell_cancelled(domi_manager *manager, domus_address gateway, domus_kept kept);

#endif
