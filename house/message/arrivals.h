/* Links into the arrivals of a home: at once, or at the end of a batch of puts.
 *
 * A put publishes its message at once. But home learns of a house whose inbox was empty only when
 * the house is linked into home's arrivals. A link costs a compare-exchange on a cache line that
 * home reads again and again, and a load of home's park word. Within a batch of puts the links are
 * gathered in a chain for each home. When the batch ends, or DOMI_LINKS_MAX houses wait, each chain
 * is pushed by one compare-exchange and one load.
 *
 * A batch has to be short. A house in a chain has mail in its inbox, so no other thread links it,
 * and messages of other threads to it wait, too. No code of a user runs within a batch, so a batch
 * is over in a microsecond or two. Gathering over whole runs was built, and taken out again
 * (decisions/messages).
 *
 * A house in a chain has not been taken off the arrivals, so home neither sorts its inbox nor frees
 * it (contract: Lanes). */
#ifndef DOMI_HOUSE_MESSAGE_ARRIVALS_H
#define DOMI_HOUSE_MESSAGE_ARRIVALS_H

#include "house/message/manager.h"

/* Link `house`, whose inbox was empty, into its home's arrivals, now or at the end of the batch. A
 * runner of a pool, whose `gathering` is always true, puts an actor of a pool into the queues of
 * that pool instead, and gathers nothing. */
void domi_links_add_house_to_arrivals(domi_manager *manager, domi_house *house);

/* Begin and end a batch of puts; domi_links_end_batch() pushes all chains of houses. Batches do not
 * nest. Owner. */
void domi_links_begin_batch(domi_manager *manager);
void domi_links_end_batch(domi_manager *manager);

#endif
