/* Links that wait for the end of a batch.
 *
 * A put is published at once, but home learns of a house whose inbox was empty by its link into the
 * arrivals: a compare-exchange on a line that home reads again and again, and a look at home's park
 * word. Within a batch of puts these are gathered, a chain for each home, and each chain is pushed
 * by one compare-exchange and one look, when the batch ends or DOMI_LINKS_MAX houses wait.
 *
 * No code of a user runs within a batch, so it is over in a microsecond or two. That matters:
 * nobody else can link a house that is in a chain (its inbox is not empty), so what others send to
 * it waits as well. Gathering over whole runs was built, and taken out again
 * (decisions/batched-links).
 *
 * A house in a chain is nobody's to sort or to free (it has not been taken off the arrivals), so
 * the chain needs no more care than the arrivals. */
#ifndef DOMI_HOUSE_MESSAGE_ARRIVALS_H
#define DOMI_HOUSE_MESSAGE_ARRIVALS_H

#include "house/message/manager.h"

/* Link `house`, whose inbox was empty, into its home's arrivals, now or at the end of the batch. */
void domi_links_add(domi_manager *manager, domi_house *house);

/* A batch begins, and ends. Owner. */
void domi_links_begin(domi_manager *manager);
void domi_links_end(domi_manager *manager);

#endif
