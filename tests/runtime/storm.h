/* The storm: actors whose payloads own memory do at random whatever an actor may do.
 *
 * Held whatever they do: each payload is released once, by the library or by the actor that took
 * it; each ask is answered once, unless its conversation ended before; what a handler is shown is
 * there while it may be looked at. Each actor draws from dice of its own, so in a test kit one seed
 * is one run. storm.c keeps the books, storm_deeds.c and storm_society.c have the verbs,
 * storm_actors.c has those who use them. */
#ifndef DOMT_STORM_H
#define DOMT_STORM_H

#include "base/random.h"

#include <domus/domus.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DOMT_STORM_MS UINT64_C(1000000)

/* --- books: storm.c --------------------------------------------------------------------------- */

/* The beginning of each payload of the storm. */
typedef struct domt_load {
    char *memory;   /* its own */
    uint64_t depth; /* how many deeds may still follow from it */
} domt_load;

/* The deeds of the storm: each must have been seen at least once. */
/* clang-format off: one line for each */
#define DOMT_STORM_DEEDS(X)                                                                        \
    X(NOTICE, "a notice")                                                                          \
    X(ASK, "an ask")                                                                               \
    X(ASK_SEVERAL, "one of several asks")                                                          \
    X(ALL, "a wait for all")                                                                       \
    X(FIRST, "a wait for the first")                                                               \
    X(SLEEP, "a sleep")                                                                            \
    X(RECEIVE, "a receive")                                                                        \
    X(RECEIVE_SEVERAL, "one of several receives")                                                  \
    X(BLOCKING, "blocking work")                                                                   \
    X(REPLY, "a reply")                                                                            \
    X(FAIL, "a failure")                                                                           \
    X(KEEP, "a kept ask")                                                                          \
    X(KEPT_REPLY, "a reply to a kept ask")                                                         \
    X(KEPT_FORWARD, "a kept ask that is forwarded")                                                \
    X(FORWARD, "a forward")                                                                        \
    X(STASH, "a stash")                                                                            \
    X(MESSAGE, "a message as an object")                                                           \
    X(TAKE, "a take")                                                                              \
    X(TAKE_SHARED, "a take that is refused")                                                       \
    X(TAKE_TWICE, "a second take")                                                                 \
    X(TAKE_ANSWER, "a take of one of all answers")                                                 \
    X(TAKE_ALL, "a take of all answers")                                                           \
    X(PASS_ON, "a payload that was taken and sent on")                                             \
    X(BARRIER, "a barrier")                                                                        \
    X(CANCEL, "a cancel")                                                                          \
    X(AFTER, "a timer")                                                                            \
    X(PERIODIC, "a periodic timer")                                                                \
    X(TIMER_CANCEL, "a timer that is cancelled")                                                   \
    X(JOIN, "a member")                                                                            \
    X(LEAVE, "a member's leave")                                                                   \
    X(PUBLISH, "a publication")                                                                    \
    X(NAME, "a name")                                                                              \
    X(WATCH, "a watch")                                                                            \
    X(LINK, "a link")                                                                              \
    X(ROOM, "a watch of room")                                                                     \
    X(SPAWN, "a child")                                                                            \
    X(ROUTER, "a router")                                                                          \
    X(PASSIVE, "a child that passivates")                                                          \
    X(PROCESS, "a process")                                                                        \
    X(PROCESS_TAKE, "a take by a process")                                                         \
    X(DETACHED, "a detached actor")                                                                \
    X(RECEIVE_NOW, "a receive that returns")                                                       \
    X(STOP, "a stop")                                                                              \
    X(STOP_AFTER, "a stop after mail")                                                             \
    X(BECOME, "another behaviour")                                                                 \
    X(ESCALATE, "an escalation")                                                                   \
    X(RESTART, "a restart")                                                                        \
    X(LETTERS, "a subscriber of letters")                                                          \
    X(OUTSIDE_ASK, "an answer to the outside")                                                     \
    X(ABANDON, "an ask whose conversation ended first")
/* clang-format on */

#define DOMT_STORM_NAME(name, text) DOMT_DID_##name,
enum domt_deed { DOMT_STORM_DEEDS(DOMT_STORM_NAME) DOMT_DEEDS };
#undef DOMT_STORM_NAME

extern _Atomic uint64_t domt_storm_did[DOMT_DEEDS];
extern _Atomic int64_t domt_storm_budget; /* of deeds; at 0 nothing more is begun */

/* Types of notices, asks, replies, events of timers and publications, and a type that
 * no actor knows. */
extern const domus_type domt_storm_note, domt_storm_letter, domt_storm_question, domt_storm_essay,
    domt_storm_answer, domt_storm_volume, domt_storm_alarm, domt_storm_news, domt_storm_unknown;

/* Begin a run with empty books. */
void domt_storm_begin(int64_t budget);

/* End a run. Returns "" if the books balance, else what is wrong. With `killed`, actors were ended
 * as they were, and their asks with them. */
const char *domt_storm_end(bool killed);

/* Note something that must not happen. Only the first note is kept. */
void domt_storm_wrong(const char *what);

static inline void domt_did(enum domt_deed deed, bool done)
{
    atomic_fetch_add_explicit(&domt_storm_did[deed], done, memory_order_relaxed);
}

/* Make a payload of up to the largest type. It lies in thread-local memory and is valid until the
 * next one. */
void *domt_load_new(uint64_t depth);
void domt_load_look(const void *payload); /* it must be alive */
void domt_load_free(domt_load load);      /* it was taken */

/* `payload` was given to a verb that returned `result`: what was not taken is freed. */
int domt_load_gave(int result, const void *payload);

/* A ticket stands for an ask, from its making to its answer, or to the end of its conversation. 0:
 * there is no more room. */
uint32_t domt_ticket_new(void);
void domt_ticket_answer(uint32_t ticket);
void domt_ticket_abandon(uint32_t ticket);
void domt_ticket_undo(uint32_t ticket); /* it was not made */

/* --- who there is: storm.c -------------------------------------------------------------------- */

#define DOMT_STORM_CROWD 24

void domt_crowd_set(uint32_t place, domus_address address);
domus_address domt_crowd_at(uint32_t place);

/* --- deeds: storm_deeds.c --------------------------------------------------------------------- */

#define DOMT_TALK_ASKS 6

/* A conversation, in its frame. */
typedef struct domt_talk {
    uint32_t tickets[DOMT_TALK_ASKS]; /* of asks under way; 0: free */
    uint32_t single;                  /* of the one that is waited for by itself */
    bool all;                         /* it waits for all */
    const void *asked;                /* the ask that it answers, while that is there */
} domt_talk;

/* The state of an actor. */
typedef struct domt_doer {
    uint64_t seed;
    domi_random dice;
    domus_kept kept[3];
    domus_message *held[2];
    domus_timer timers[3];
    domus_conversation conversations[2];
    domus_watch watch;
} domt_doer;

typedef enum domt_shown_kind {
    DOMT_SHOWN_NOTHING,
    DOMT_SHOWN_NOTICE,
    DOMT_SHOWN_ASK,
    DOMT_SHOWN_REPLY,
    DOMT_SHOWN_EVENT,
} domt_shown_kind;

/* One step of a conversation. */
typedef struct domt_step {
    domus_stack *stack;
    domt_doer *self;
    domt_talk *talk; /* NULL: it has no frame, and asks nobody */
    domus_resumed *then;
    const void *shown; /* what was shown; NULL: nothing, or no longer valid */
    domt_shown_kind kind;
    bool received; /* it was received */
    bool taken;
    domt_load own; /* what was taken, until it is freed or sent on */
    uint64_t depth;
} domt_step;

uint64_t domt_dice(domt_step *step, uint64_t below);
domus_address domt_anyone(domt_step *step);

uint64_t domt_some_time(domt_step *step);

/* A payload to give: one that was taken, or a new one. */
const void *domt_something(domt_step *step);

/* Count a deed if the `result` of its verb says that it was done. */
void domt_did_if(enum domt_deed deed, int result);

/* Each of these does one deed; they are in storm_society.c. */
void domt_use_timers(domt_step *step);
void domt_spawn_somebody(domt_step *step);
void domt_look_around(domt_step *step);
void domt_end_somebody(domt_step *step);
void domt_converse(domt_step *step);

/* Do some deeds, and perhaps wait. Returns what the handler has to return. */
int domt_step_act(domt_step *step);

/* --- actors: storm_actors.c ------------------------------------------------------------------- */

extern const domus_behaviour domt_storm_wild, domt_storm_calm, domt_storm_boss, domt_storm_hermit;
extern const domus_on domt_storm_rows[]; /* of actors whose state is a domt_doer */
extern const domus_process domt_storm_process;

/* Let an actor of some kind begin at place `i` of the crowd, if there is memory. From outside. */
void domt_storm_spawn_root(domus_system *system, uint32_t i, uint64_t seed);

#endif
