/* Asks and their answers, by envelope; the public verbs of domus/conversation.h are over these. */
#ifndef DOMI_HOUSE_CONVERSATION_ASK_H
#define DOMI_HOUSE_CONVERSATION_ASK_H

#include "house/conversation/stack.h"

/* Nobody waits for this ask any more: it is dropped before it is handled, and its asker knows by
 * his own clock. */
static inline bool domi_ask_is_expired(const domi_manager *manager, domi_envelope *ask)
{
    uint64_t deadline_ns = domi_envelope_return(ask)->deadline_ns;

    return deadline_ns != 0 && deadline_ns <= manager->now_ns;
}

void domi_ask_expire(domi_manager *manager, domi_envelope *ask);

/* An ask ends without an answer: it goes back to who made it as an exception, in its own envelope.
 * What its payload owns is released, unless a handler took it. */
void domi_ask_fail(domi_manager *manager, domi_envelope *ask, int error);

/* Answer `ask` in the name of `house`; takes the ask. The size was checked. */
void domi_ask_answer(domi_manager *manager, domi_house *house, domi_envelope *ask,
                     const domus_type *type, const void *payload);

/* What travels to who works on an ask when nobody waits for it any more: a domi_return. */
extern const domus_type domi_cancel_type;

/* It has come to the house that was asked, and with it perhaps more that wait behind it, which are
 * taken too: drop the ask if it waits, cancel the conversation that answers it. */
void domi_ask_cancelled(domi_manager *manager, domi_house *house, const domi_envelope *first);

/* The cancels among the events of a house that does not come to its events: its handler receives
 * and receives. True if there were any. */
bool domi_ask_cancels_now(domi_manager *manager, domi_house *house);

#endif
