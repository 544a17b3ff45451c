/* How long messages wait in the mailboxes of state actors, measured for one message at a time.
 *
 * Nobody stamps a message when it is put, because that would cost each put something. Whoever
 * observes looks which house has just become ready, and notes the newest message there: it was put
 * since the look before. It has waited when as many messages were handled there as were before it.
 *
 * While profile.level is histograms or spans, the observer of runs looks (run_observer.h). With
 * counters, a thread looks for a short time every 16th tick, until it has measured one message, and
 * not at all in between. The runner calls all of this. */
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
    uint32_t ahead; /* most messages that are handled up to this one, itself included */
    uint64_t since_ns;
} domi_waiter;

typedef struct domi_wait_observer {
    domi_observer functions; /* the functions that the manager calls; must be the first field */
    const domi_clock *clock;
    domi_waiter waiter;
    uint32_t ticks; /* number of ticks since the last measurement began */
    bool is_done;   /* one wait was measured, and none is looked at until the next begin */
} domi_wait_observer;

/* The observer of a manager that has one. */
static inline domi_wait_observer *domi_wait_observer_of(const domi_manager *manager)
{
    return (domi_wait_observer *)(void *)manager->observer;
}

/* Returns the state actor that has become ready last. */
static inline const domi_house *domi_wait_newest(const domi_manager *manager)
{
    return domi_queue_newest(&manager->schedule.ready[DOMUS_STATE]);
}

/* If another house has become ready since `newest` was the newest one, and no message is followed,
 * follow its newest message. */
void domi_wait_note(domi_wait_observer *observer, const domi_manager *manager,
                    const domi_house *newest, uint64_t now_ns);

/* The house of the waiter has run, from `begin_ns` on, as an actor with this lease and number of a
 * behaviour. Returns true if the message has been handled, and how long it had waited. */
bool domi_wait_look(domi_wait_observer *observer, domi_manager *manager, uint32_t lease,
                    uint32_t tally, uint32_t handled, uint64_t begin_ns, uint64_t *ret_ns);

/* Forget the waiter if its house may never run here again. */
void domi_wait_drop_lost(domi_wait_observer *observer);

/* The house was exposed, and is back: forget the waiter if that is its house, because its message
 * may have been handled elsewhere. The owner of `manager`, or who holds it. */
void domi_wait_forget(domi_manager *manager, const domi_house *house);

/* Make an observer that only measures waits. */
void domi_wait_observer_init(domi_wait_observer *observer, const domi_clock *clock);

/* Begin or end to measure, at a tick of a thread whose level is counters. */
void domi_wait_observer_tick(domi_wait_observer *observer, domi_manager *manager);

#endif
