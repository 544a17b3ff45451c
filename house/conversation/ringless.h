/* Refusing verbs that need a ring: an actor of a pool cannot use these, because no runner has a
 * ring. */
#ifndef DOMI_HOUSE_CONVERSATION_RINGLESS_H
#define DOMI_HOUSE_CONVERSATION_RINGLESS_H

#include "house/conversation/stack.h"

/* Refuse a verb that needs a ring, on a thread that has none. If the actor is one of a pool, the
 * log says so, once for each behaviour and type of message. Returns -EOPNOTSUPP. */
int domi_refuse_verb_without_ring(domus_stack *stack);

#endif
