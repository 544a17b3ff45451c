/* Asks whose payloads are counted when they are released; and an asker with three other actors, one
 * on each home. */
#ifndef DOMT_HOUSE_ASKING_H
#define DOMT_HOUSE_ASKING_H

#include "tests/support/house_world.h"

/* Release functions for the types of the asks and answers of a test, and counts of their calls. */
extern unsigned domt_ask_releases, domt_reply_releases;
void domt_count_release_of_ask(void *payload);
void domt_count_release_of_reply(void *payload);

/* A question is a domt_call: the actor that is asked runs its function. */
extern const domus_type domt_ask_question, domt_ask_done;

/* Make a world of three homes with a domt_agent on home 0, and an actor of `answering` on each
 * home. */
void domt_asking_open_world(domt_world *world, const domus_behaviour *answering,
                            domus_address *ret_asker, domus_address ret_others[3]);

/* Check that nothing is left of the conversations of the asker and the other actors, and end the
 * world. */
void domt_asking_end_world(domt_world *world, const domus_address *actors, uint32_t count);

/* Check that nothing is left of the conversations of an asker on home 0, and end the world. */
void domt_asking_close_world(domt_world *world, domus_address asker);

#endif
