/* Asks and their answers, as operations on envelopes. The public verbs of domus/conversation.h are
 * built on these. */
#ifndef DOMI_HOUSE_CONVERSATION_ASK_H
#define DOMI_HOUSE_CONVERSATION_ASK_H

#include "house/conversation/stack.h"

/* True if the deadline of an ask has passed. Such an ask is dropped before it is handled; its asker
 * needs no answer, because it knows the deadline by its own clock. */
static inline bool domi_ask_is_expired(const domi_manager *manager, domi_envelope *ask)
{
    uint64_t deadline_ns = domi_envelope_return(ask)->deadline_ns;

    return deadline_ns != 0 && deadline_ns <= manager->now_ns;
}

void domi_ask_expire(domi_manager *manager, domi_envelope *ask);

/* Let an ask fail with `error`: its own envelope goes back to the asker as an exception. The
 * library releases what the payload owns, unless a handler took it. */
void domi_ask_fail(domi_manager *manager, domi_envelope *ask, int error);

/* Answer `ask` in the name of `house`. This takes over `ask`; the caller has checked the size of
 * the payload. */
void domi_ask_answer(domi_manager *manager, domi_house *house, domi_envelope *ask,
                     const domus_type *type, const void *payload);

/* Type of the event that is sent to the asked actor when the asker has cancelled. Its payload is
 * the domi_return of that ask. */
extern const domus_type domi_cancel_type;

/* The cancel `first` has come to the house that was asked. Further cancels that wait directly
 * behind it are taken, too. For each of them, drop the ask if it still waits, or cancel the
 * conversation that answers it. */
void domi_ask_handle_cancel(domi_manager *manager, domi_house *house, const domi_envelope *first);

/* Handle all cancels among the events of `house` now. A handler that receives in a loop needs this,
 * because its house never comes to its event mailbox. True if there were any. */
bool domi_ask_handle_waiting_cancels(domi_manager *manager, domi_house *house);

#endif
