/* Asks whose payloads are counted when they are released; and an asker with three others, one on
 * each home. */
#ifndef DOMT_HOUSE_ASKING_H
#define DOMT_HOUSE_ASKING_H

#include "tests/support/house_world.h"

/* Releases for the types of a test, and how often each was called. */
extern unsigned domt_ask_releases, domt_reply_releases;
void domt_release_ask(void *payload);
void domt_release_reply(void *payload);

/* Make a world of three homes with a domt_agent on home 0, and an actor of `answering` on each. */
void domt_asking_open(domt_world *world, const domus_behaviour *answering, domus_address *ret_asker,
                      domus_address ret_others[3]);

/* End the world, and check that nothing is left of the asker's conversations. */
void domt_asking_close(domt_world *world, domus_address asker);

#endif
