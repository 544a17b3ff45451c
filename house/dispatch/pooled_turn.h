/* The turns of pooled actors, and what is due for them (message/pooled.h). */
#ifndef DOMI_HOUSE_DISPATCH_POOLED_TURN_H
#define DOMI_HOUSE_DISPATCH_POOLED_TURN_H

#include "house/message/pooled.h"

/* The rest after a turn. */
typedef enum domi_pooled_left {
    DOMI_POOLED_IDLE,  /* the actor has nothing to do; it is scheduled again by the next message */
    DOMI_POOLED_MORE,  /* the house has more to do, and stays scheduled: the caller puts it into a
                          queue */
    DOMI_POOLED_ENDED, /* nothing is left to do, and the actor's life is over */
} domi_pooled_left;

/* Give a scheduled house one turn: its mail is sorted, it is mounted if it is new, runs, and is
 * settled, until it has nothing to do, or has handled about `limits.messages_per_run_max` messages.
 * Called by the runner that has taken it out of a queue. */
domi_pooled_left domi_pooled_run(domi_manager *runner, domi_house *house);

/* Have an idle house for a moment, in which no runner uses it, to look into it. Returns false if it
 * is scheduled or runs. Any thread. */
bool domi_pooled_borrow(domi_house *house);
void domi_pooled_give_back(domi_pooled *pooled, domi_house *house);

/* Fire timers and time-outs that are due at `runner->now_ns`. An actor that is scheduled gets its
 * own in its next turn. Any runner, between two turns. Returns how many there were. */
uint32_t domi_pooled_fire(domi_manager *runner);

/* The time at which domi_pooled_fire() next has something to do; UINT64_MAX: never. Any thread. */
uint64_t domi_pooled_due_ns(domi_pooled *pooled);

/* Do the same for a runner that is about to sleep until that time. A thread that then arms an
 * earlier timer calls the runners (message/pooled.h). */
uint64_t domi_pooled_rest(domi_pooled *pooled);

/* Schedule the actors to which threads that are no runners of the pool have sent. Any thread. */
void domi_pooled_take_arrivals(domi_pooled *pooled);

#endif
