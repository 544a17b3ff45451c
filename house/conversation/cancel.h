/* Handles cancels, by which an asker tells the asked actor that it has given up an ask. */
#ifndef DOMI_HOUSE_CONVERSATION_CANCEL_H
#define DOMI_HOUSE_CONVERSATION_CANCEL_H

#include "house/message/manager.h"

/* Handle the cancel `first`, which has come to the asked house, and all cancels that wait directly
 * behind it. For each of them drop the ask if it still waits in a mailbox, else cancel the
 * conversation that answers it. */
void domi_ask_handle_cancel(domi_manager *manager, domi_house *house, const domi_envelope *first);

/* Handle all cancels among the events of `house` now. A handler that receives in a loop calls this,
 * because its house takes nothing from the event mailbox meanwhile. True if there was any
 * cancel. */
bool domi_ask_handle_waiting_cancels(domi_manager *manager, domi_house *house);

#endif
