/* Links that wait for the end of a run.
 *
 * A put is published at once, but home learns of a house whose inbox was empty by its link into the
 * arrivals: a compare-exchange on a line that home reads again and again, and a look at home's park
 * word. Within a run these are gathered, a chain for each home, and each chain is pushed by one
 * compare-exchange and one look, when the run ends or DOMI_LINKS_MAX houses are in the chains.
 *
 * Only for homes that are busy. One that sleeps or spins has nothing else to do, and what remains
 * of the run may be long, so it is told at once. Outside of runs nothing is gathered: a thread that
 * parks, returns a loan or ends has no links left. Handlers of detached actors may block, so their
 * threads gather nothing.
 *
 * A house in a chain is nobody else's to link (its inbox is not empty) and nobody's to sort or to
 * free (it has not been taken off the arrivals), so the chain needs no more care than the arrivals.
 */
#ifndef DOMI_HOUSE_LINKS_H
#define DOMI_HOUSE_LINKS_H

#include "house/manager.h"

/* Link `house`, whose inbox was empty, into its home's arrivals, now or at the end of the run. */
void domi_links_add(domi_manager *manager, domi_house *house);

/* Push all chains. */
void domi_links_push(domi_manager *manager);

/* A run begins, and ends. */
static inline void domi_links_begin(domi_manager *manager)
{
    manager->links.gathering = manager->links.by_home != NULL;
}

static inline void domi_links_end(domi_manager *manager)
{
    manager->links.gathering = false;
    if (DOMI_UNLIKELY(manager->links.houses != 0))
        domi_links_push(manager);
}

#endif
