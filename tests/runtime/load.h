/* Loads: groups of actors that send messages without end. The tests of fairness run a load beside
 * the actors that they watch.
 *
 * Each message that an actor of a load handles is counted, and takes as long as the function
 * `domt_load_takes` says: on a virtual clock no other time passes. */
#ifndef DOMT_LOAD_H
#define DOMT_LOAD_H

#include "tests/runtime/running.h"

typedef enum domt_load {
    DOMT_LOAD_NONE,
    /* one actor sends notices without end to another one, whose mailbox is always full */
    DOMT_FLOOD_OF_NOTICES,
    /* one actor keeps many asks to another one under way, which are all answered */
    DOMT_FLOOD_OF_ASKS,
    DOMT_STATE_PING,    /* two state actors that answer each other without end, in phase 3 */
    DOMT_CHANNELS_PING, /* two channels actors that answer each other without end, in phase 2 */
    DOMT_CHANNELS_RING, /* 100 channels actors in a ring that pass messages on, in phase 2 */
    DOMT_STATE_SELF,    /* a state actor that sends messages to itself without end */
    DOMT_CHANNELS_SELF,
    DOMT_MANY_READY, /* a ring of DOMT_MANY state actors that pass on as many messages */
    /* the same ring, but each actor also waits for an answer, so none of them is high */
    DOMT_MANY_WAITING,
    DOMT_LOADS,
} domt_load;

#define DOMT_MANY (DOMT_SANITIZED ? 5000u : 100000u)

/* Number of messages that the one or two actors of a load pass on at the same time: more than a run
 * handles. */
#define DOMT_LOAD_BALLS 100u

#define DOMT_RING_LENGTH 100u

extern const char *const domt_load_names[DOMT_LOADS];

/* Number of messages that the actors of loads have handled. */
extern _Atomic uint64_t domt_load_handled;

/* Number of events that the flooded actor got from its own timer, which fires each 2 ms. */
extern _Atomic uint64_t domt_load_ticks;

/* Called for each handled message of a load, to let time pass on a virtual clock; NULL: a message
 * takes no time. */
extern void (*domt_load_takes)(void);

/* Behaviour of an actor that raises a barrier for ever, so an ask to it is never answered. */
extern const domus_behaviour domt_silent;

/* Spawn the actors of a load on thread 0, and let them begin. */
void domt_load_spawn_actors_and_begin(domus_system *system, domt_load load);

/* End the load: from now on its actors send no more messages. */
void domt_load_end(void);

/* Return how many houses of a load can be ready at the same time: houses of state actors, and
 * houses of channels actors. */
uint32_t domt_load_count_state_houses(domt_load load);
uint32_t domt_load_count_channels_houses(domt_load load);

#endif
