/* A run: what a house handles between SCHEDULED and what comes next. By the runner. */
#ifndef DOMI_HOUSE_DISPATCH_DISPATCH_H
#define DOMI_HOUSE_DISPATCH_DISPATCH_H

#include "house/message/manager.h"

/* Of a run's messages_per_run_max places, so many (an eighth of a shorter run) are kept for each
 * kind behind the one that is taken, when there are any, so that nothing in a house starves. A run
 * of fewer than 8 places keeps none, and begins with another kind each time. */
#define DOMI_RUN_KEPT 8u

/* Let a run handle at most `messages`, and keep as many places of it as fit. */
static inline void domi_manager_limit_runs(domi_manager *manager, uint32_t messages)
{
    /* A run of fewer than 64 keeps fewer, so that what each kind keeps is less than the run. */
    manager->messages_per_run_max = messages;
    manager->run_kept = messages / 8 < DOMI_RUN_KEPT ? messages / 8 : DOMI_RUN_KEPT;
}

/* Run `house`, which was just taken from its queue (READY), and settle it: READY again at the tail
 * of its queue, WAITING, or gone. Returns how many messages (and pieces of io) it handled. */
uint32_t domi_house_run(domi_manager *manager, domi_house *house);

/* Its two halves, which stand apart when the house is lent: a thief runs it, home settles it. */
uint32_t domi_house_run_lent(domi_manager *manager, domi_house *house);
void domi_house_settle(domi_manager *home, domi_house *house, uint32_t handled);

#endif
