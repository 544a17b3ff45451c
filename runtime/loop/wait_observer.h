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

/* The message that is followed: it was seen when it was put, and it waits. */
typedef struct domi_waiter {
    /* house of the actor in whose mailbox the followed message waits; NULL: no message is
     * followed */
    const domi_house *house;
    uint32_t lease; /* lease of the actor that has the followed message */
    /* at most so many messages are handled up to the followed message, which is counted itself */
    uint32_t ahead;
    uint64_t since_ns;
} domi_waiter;

typedef struct domi_wait_observer {
    domi_observer functions; /* functions that the manager calls; must be the first field */
    const domi_clock *clock;
    domi_waiter waiter;
    uint32_t ticks; /* number of ticks since the last measurement of a wait began */
    /* true: one wait was measured, and no other is before the next measurement begins */
    bool is_done;
} domi_wait_observer;

/* Returns the wait observer of a manager, which must have one. */
static inline domi_wait_observer *domi_wait_observer_of_manager(const domi_manager *manager)
{
    return (domi_wait_observer *)(void *)manager->observer;
}

/* Returns the house of the state actor that has become ready last. */
static inline const domi_house *domi_wait_newest_ready_house(const domi_manager *manager)
{
    return domi_queue_newest_house(&manager->schedule.ready[DOMUS_STATE]);
}

/* Follow the newest message of the house that has become ready last, unless that house is `newest`
 * or another message is followed already. */
void domi_wait_follow_newest_message(domi_wait_observer *observer, const domi_manager *manager,
                                     const domi_house *newest, uint64_t now_ns);

/* Look after a run at the house of the followed message. The run began at `begin_ns`, the actor
 * had this lease and this number of a behaviour, and `handled` messages were handled. Returns
 * true if the followed message was among these; then `*ret_ns` is how long it had waited. */
bool domi_wait_count_if_message_was_handled(domi_wait_observer *observer, domi_manager *manager,
                                            uint32_t lease, uint32_t tally, uint32_t handled,
                                            uint64_t begin_ns, uint64_t *ret_ns);

/* Stop following the message if its house may never run on this thread again. */
void domi_wait_stop_following_lost_message(domi_wait_observer *observer);

/* Stop following a message of `house`, which was exposed to thieves and is back: the message may
 * have been handled elsewhere. Called by the owner of `manager`, or the thread that holds it. */
void domi_wait_stop_following_in_house(domi_manager *manager, const domi_house *house);

/* Make an observer that measures only the waits of messages. */
void domi_wait_observer_init(domi_wait_observer *observer, const domi_clock *clock);

/* Begin or end the measurement of a wait, if it is time. Called at a tick of a thread whose
 * level is counters. */
void domi_wait_begin_or_end_measurement(domi_wait_observer *observer, domi_manager *manager);

#endif
