/* How long messages wait in the mailboxes of state actors, measured for one message at a time.
 *
 * No message is stamped when it is put, because that would cost each put something. Instead the
 * observer looks which house has just become ready, and notes the newest message there, which was
 * put since the last look. The wait of this message ends when as many messages were handled there
 * as were in front of it.
 *
 * While profile.level is histograms or spans, the observer of runs looks (run_observer.h). With
 * counters, a thread looks for a short time every 16th tick, until it has measured one message, and
 * not at all in between. The runner calls all of these functions. */
#ifndef DOMI_RUNTIME_LOOP_WAIT_OBSERVER_H
#define DOMI_RUNTIME_LOOP_WAIT_OBSERVER_H

#include "base/clock.h"
#include "house/message/manager.h"
#include "house/message/observer.h"

/* A message that was seen at its put, and waits. */
typedef struct domi_waiter {
    /* house of the actor that has the message; NULL: no message is followed */
    const domi_house *house;
    uint32_t lease; /* the lease of the actor that has the message */
    /* the most messages that are handled until this message is handled, itself included */
    uint32_t ahead;
    uint64_t since_ns;
} domi_waiter;

typedef struct domi_wait_observer {
    domi_observer functions; /* the functions that the manager calls; must be the first field */
    const domi_clock *clock;
    domi_waiter waiter;
    uint32_t ticks; /* number of ticks since the last measurement began */
    /* one wait was measured, and no other one is until the next measurement begins */
    bool is_done;
} domi_wait_observer;

/* Returns the observer of a manager that has a wait observer. */
static inline domi_wait_observer *domi_wait_observer_of(const domi_manager *manager)
{
    return (domi_wait_observer *)(void *)manager->observer;
}

/* Returns the state actor that has become ready last. */
static inline const domi_house *domi_wait_newest(const domi_manager *manager)
{
    return domi_queue_newest(&manager->schedule.ready[DOMUS_STATE]);
}

/* If another house than `newest` has become ready last, and no message is followed, follow the
 * newest message of that house. */
void domi_wait_follow_newest(domi_wait_observer *observer, const domi_manager *manager,
                             const domi_house *newest, uint64_t now_ns);

/* Look at the house of the followed message after its run, which began at `begin_ns`, as an actor
 * with this lease and number of a behaviour, and handled `handled` messages. Returns true if the
 * message was handled; then `*ret_ns` is how long it had waited. */
bool domi_wait_check_handled(domi_wait_observer *observer, domi_manager *manager, uint32_t lease,
                             uint32_t tally, uint32_t handled, uint64_t begin_ns, uint64_t *ret_ns);

/* Stop following a message if its house may never run on this thread again. */
void domi_wait_drop_lost(domi_wait_observer *observer);

/* Stop following a message of `house`, which was exposed and is back: the message may have been
 * handled elsewhere. Called by the owner of `manager`, or the thread that holds it. */
void domi_wait_forget_house(domi_manager *manager, const domi_house *house);

/* Make an observer that only measures waits. */
void domi_wait_observer_init(domi_wait_observer *observer, const domi_clock *clock);

/* Begin or end a measurement, at a tick of a thread whose level is counters. */
void domi_wait_observer_tick(domi_wait_observer *observer, domi_manager *manager);

#endif
