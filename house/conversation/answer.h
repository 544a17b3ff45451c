/* The three ends of an ask: it is answered, it fails, or its deadline passes. These functions work
 * on envelopes and know no conversation; the verbs of domus/conversation.h are built on them. */
#ifndef DOMI_HOUSE_CONVERSATION_ANSWER_H
#define DOMI_HOUSE_CONVERSATION_ANSWER_H

#include "house/message/manager.h"

/* True if the deadline of an ask has passed. The actor drops such an ask before it is handled; the
 * asker needs no answer, because it watches the deadline by its own clock. */
static inline bool domi_ask_is_expired(const domi_manager *manager, domi_envelope *ask)
{
    uint64_t deadline_ns = domi_envelope_deadline_ns(ask);

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

#endif
