/* What a lent house's home does for it: arm and disarm on its wheels, and in its ring.
 *
 * These are home's. While another thread runs a house, what it arms or gives up is noted in
 * that thread's manager, each by its own node, so a note costs no memory and cannot fail; home
 * carries the notes out when the house is back. What is on a wheel is not freed before. A time that
 * comes while the house is away is looked at again a tick later. */
#ifndef DOMI_HOUSE_CONVERSATION_NOTES_H
#define DOMI_HOUSE_CONVERSATION_NOTES_H

#include "house/conversation/promise.h"
#include "house/conversation/timer.h"

/* `house` is run by the thread of `manager`, and is not its own. */
static inline bool domi_is_lent(const domi_manager *manager, const domi_house *house)
{
    return DOMI_UNLIKELY(house->home != manager);
}

/* Seen from home: it is away, or may be taken at any moment. */
static inline bool domi_is_away(const domi_house *house)
{
    return DOMI_UNLIKELY(domi_house_is_exposed(house));
}

/* Note a timer, a promise, or a watch on a descriptor; its node is in no list. */
void domi_lent_note(domi_manager *manager, domi_node *node);

/* A promise is to be queued, and its node is a note: take it out again. */
void domi_lent_unnote(domi_manager *manager, domi_promise *promise);

/* What the runner noted; it has none then. */
typedef struct domi_notes {
    domi_node *tail; /* circular */
    uint32_t timers; /* made less freed: home counts them; wraps */
} domi_notes;

domi_notes domi_lent_take(domi_manager *manager);

/* The house is back: do it. Home. */
void domi_lent_carry_out(domi_manager *home, domi_notes notes);

#endif
