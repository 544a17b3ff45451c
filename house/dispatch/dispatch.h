/* A run: one visit to a house, from SCHEDULED to its settling. The runner is home, or a thief while
 * the house is lent; only home settles. */
#ifndef DOMI_HOUSE_DISPATCH_DISPATCH_H
#define DOMI_HOUSE_DISPATCH_DISPATCH_H

#include "house/message/manager.h"

/* A run has `messages_per_run_max` places. While one kind of mail is taken, this many places (an
 * eighth of a run of fewer than 64) are kept for each later kind that waits, so that no kind
 * starves. A run of fewer than 8 places keeps none; each such run begins with another kind than the
 * one before. */
#define DOMI_RUN_KEPT 8u

/* Let each run handle at most `messages`, and set how many places it keeps for a later kind. */
static inline void domi_manager_set_run_limit(domi_manager *manager, uint32_t messages)
{
    /* In runs of fewer than 64 messages an eighth is kept, so that all kept places together are
     * fewer than the run has. */
    manager->limits.messages_per_run_max = messages;
    manager->limits.run_kept = messages / 8 < DOMI_RUN_KEPT ? messages / 8 : DOMI_RUN_KEPT;
}

/* Run `house`, which is READY and was just taken from its queue, and settle it: it becomes READY
 * again at the tail of its queue, WAITING, or free. Returns how many messages and pieces of io it
 * handled. Home. */
uint32_t domi_house_run(domi_manager *manager, domi_house *house);

/* The first half of domi_house_run(), for a house that is lent: the thief runs it, and home settles
 * it when it is back (settle.h). Returns as domi_house_run(). */
uint32_t domi_house_run_lent(domi_manager *manager, domi_house *house);

#endif
