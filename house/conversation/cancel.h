/* Cancels: an asker that gives up an ask tells the actor that it has asked. */
#ifndef DOMI_HOUSE_CONVERSATION_CANCEL_H
#define DOMI_HOUSE_CONVERSATION_CANCEL_H

#include "house/message/manager.h"

/* The cancel `first` has come to the house that was asked. Further cancels that wait directly
 * behind it are taken, too. For each of them, drop the ask if it still waits, or cancel the
 * conversation that answers it. */
void domi_ask_handle_cancel(domi_manager *manager, domi_house *house, const domi_envelope *first);

/* Handle all cancels among the events of `house` now. A handler that receives in a loop needs this,
 * because its house never comes to its event mailbox. True if there were any. */
bool domi_ask_handle_waiting_cancels(domi_manager *manager, domi_house *house);

#endif
