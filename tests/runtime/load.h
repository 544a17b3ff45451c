/* Loads: actors that work for ever, beside the witnesses of the tests of fairness.
 *
 * Each message that one of them handles is counted, and takes as long as `domt_load_takes` says: on
 * a virtual clock no other time passes. */
#ifndef DOMT_LOAD_H
#define DOMT_LOAD_H

#include "tests/runtime/running.h"

typedef enum domt_load {
    DOMT_LOAD_NONE,
    DOMT_FLOOD_OF_NOTICES, /* an actor that always sends to one whose mailbox is always full */
    DOMT_FLOOD_OF_ASKS,    /* a flood of asks, all of which are answered */
    DOMT_STATE_PING,       /* two actors that answer each other */
    DOMT_CHANNELS_PING,    /* two channels actors that answer each other, in phase 2 */
    DOMT_CHANNELS_RING,    /* 100 channels actors that pass a message on, in phase 2 */
    DOMT_STATE_SELF,       /* an actor that sends to itself */
    DOMT_CHANNELS_SELF,
    DOMT_MANY_READY, /* a ring of DOMT_MANY actors with as many balls */
    /* the same ring of actors that wait for an answer, so none of them is high */
    DOMT_MANY_WAITING,
    DOMT_LOADS,
} domt_load;

#define DOMT_MANY (DOMT_SANITIZED ? 5000u : 100000u)

/* Number of messages that two actors, or one with itself, send to and fro: more than a run
 * handles. */
#define DOMT_LOAD_BALLS 100u

#define DOMT_RING_LENGTH 100u

extern const char *const domt_load_names[DOMT_LOADS];

/* Number of messages that loads have handled. */
extern _Atomic uint64_t domt_load_handled;

/* The messages among domt_load_handled that the flooded actor got from its own timer, one each 2
 * ms. */
extern _Atomic uint64_t domt_load_ticks;

/* Called for each message to let time pass; NULL: a message takes no time. */
extern void (*domt_load_takes)(void);

/* An actor that takes no ask, so an actor that asks it waits for ever. */
extern const domus_behaviour domt_silent;

/* Spawn `load` on thread 0, and start it. */
void domt_load_begin(domus_system *system, domt_load load);

/* Let the load end: its actors do nothing more. */
void domt_load_end(void);

/* Returns how many houses of the load may be ready at the same time: of state actors, and of
 * channels actors. */
uint32_t domt_load_state_houses(domt_load load);
uint32_t domt_load_channels_houses(domt_load load);

#endif
