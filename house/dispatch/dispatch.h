/* Runs: a run is one visit to a house, from SCHEDULED to its settling. The runner is home, or a
 * thief while the house is lent; only home settles. */
#ifndef DOMI_HOUSE_DISPATCH_DISPATCH_H
#define DOMI_HOUSE_DISPATCH_DISPATCH_H

#include "house/message/manager.h"

/* The number of places of a run that are kept for each later kind of mail that waits, so that no
 * kind starves. A run has `messages_per_run_max` places; one with fewer than 64 keeps an eighth of
 * them for each kind. A run of fewer than 8 places keeps none; instead each such run begins with
 * another kind than the run before. */
#define DOMI_RUN_KEPT 8u

/* Set the number of messages that a run handles at most, and from it the number of places that are
 * kept for a later kind. */
static inline void domi_manager_set_messages_per_run(domi_manager *manager, uint32_t messages)
{
    /* A run of fewer than 64 messages keeps an eighth, so that all kept places together are fewer
     * than the run has. */
    manager->limits.messages_per_run_max = messages;
    manager->limits.run_kept = messages / 8 < DOMI_RUN_KEPT ? messages / 8 : DOMI_RUN_KEPT;
}

/* Run `house`, which is READY and was just taken from its queue, and settle it: it becomes READY
 * again at the tail of its queue, WAITING, or free. Returns the number of messages and pieces of
 * channel work that it handled. Home. */
uint32_t domi_house_run_and_settle(domi_manager *manager, domi_house *house);

/* Run a house that is lent, as its thief: the first half of domi_house_run_and_settle(). Home
 * settles the house when it is back (settle.h). Returns as domi_house_run_and_settle(). */
uint32_t domi_house_run_lent(domi_manager *manager, domi_house *house);

#endif
