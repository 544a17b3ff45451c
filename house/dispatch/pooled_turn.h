/* The turns of pooled actors, and their timers and time-outs (message/pooled.h). */
#ifndef DOMI_HOUSE_DISPATCH_POOLED_TURN_H
#define DOMI_HOUSE_DISPATCH_POOLED_TURN_H

#include "house/message/pooled.h"

/* The state of a pooled actor's house after a turn. */
typedef enum domi_pooled_left {
    /* a pooled actor's turn has left nothing to do; the next message schedules the actor again */
    DOMI_POOLED_IDLE,
    /* the house has more to do, and stays scheduled: the caller puts it into a queue */
    DOMI_POOLED_MORE,
    DOMI_POOLED_ENDED, /* nothing is left to do in the house, and the actor's life is over */
} domi_pooled_left;

/* Give a scheduled house one turn: its mail is sorted, it is mounted if it is new, runs, and is
 * settled, until it has nothing to do, or has handled about `limits.messages_per_run_max` messages.
 * The runner that has taken the house out of a queue calls it. */
domi_pooled_left domi_pooled_run_turn_of_house(domi_manager *runner, domi_house *house);

/* Take the house of an idle pooled actor for a moment, in order to look into it; no runner uses it
 * meanwhile. Returns false if the house is scheduled or runs. Any thread. */
bool domi_pooled_take_idle_house(domi_house *house);
void domi_pooled_give_idle_house_back(domi_pooled *pooled, domi_house *house);

/* Fire timers and time-outs of a pool that are due at `runner->now_ns`. A scheduled actor fires
 * its own in its next turn. Any runner, between two turns. Returns their number. */
uint32_t domi_pooled_fire_due_timers(domi_manager *runner);

/* Returns the time at which domi_pooled_fire_due_timers() next has a timer or time-out of the pool
 * to fire; UINT64_MAX: never. Any thread. */
uint64_t domi_pooled_next_due_ns(domi_pooled *pooled);

/* Returns the same time as domi_pooled_next_due_ns(), for a runner that is about to sleep until
 * then. A thread that then arms an earlier timer wakes a runner (message/pooled.h). */
uint64_t domi_pooled_next_due_ns_before_sleep(domi_pooled *pooled);

/* Schedule the actors to which threads outside the pool have sent. Any thread. */
void domi_pooled_schedule_arrivals(domi_pooled *pooled);

#endif
