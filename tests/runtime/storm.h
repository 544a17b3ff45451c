/* The storm: a test whose actors call at random every verb that an actor may call, with payloads
 * that own memory.
 *
 * It is checked that each payload is released once, by the library or by the actor that took it,
 * that each ask is answered once, unless its conversation ended before, and that a message that a
 * handler is shown stays readable as long as promised. Each actor has its own random numbers, so in
 * a test kit one seed always gives the same run. storm.c has the counts, storm_deeds.c and
 * storm.c the actions, and storm_actors.c the actors. */
#ifndef DOMT_STORM_H
#define DOMT_STORM_H

#include "base/random.h"

#include <domus/domus.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DOMT_STORM_MS UINT64_C(1000000)

/* --- books: storm.c --------------------------------------------------------------------------- */

/* The first bytes of each payload of the storm, whatever its type. */
typedef struct domt_load {
    char *memory;   /* memory of the heap that the payload owns */
    uint64_t depth; /* how many more actions may follow from this payload */
} domt_load;

/* The counted actions of the storm; a test checks that each of them has happened. */
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
extern _Atomic int64_t domt_storm_budget; /* number of actions that actors may still begin */

/* The storm's types: two of notices, two of asks, two of replies, the event of timers,
 * publications, and a type that no actor handles. */
extern const domus_type domt_storm_note, domt_storm_letter, domt_storm_question, domt_storm_essay,
    domt_storm_answer, domt_storm_volume, domt_storm_alarm, domt_storm_news, domt_storm_unknown;

/* Begin a run of the storm with all counts at 0, and `budget` actions that may be begun. */
void domt_storm_begin(int64_t budget);

/* End a run of the storm. Returns "" if the counts agree, else a text that says what is wrong. If
 * `killed` is true, actors were ended in the middle of their work, so asks may be open. */
const char *domt_storm_end(bool killed);

/* Record that something has happened that must not happen; only the first record is kept. */
void domt_storm_record_wrong(const char *what);

static inline void domt_storm_count_deed(enum domt_deed deed, bool done)
{
    atomic_fetch_add_explicit(&domt_storm_did[deed], done, memory_order_relaxed);
}

/* Make a payload whose memory is new, large enough for each type of the storm. It is valid until
 * the thread's next call. */
void *domt_storm_new_payload(uint64_t depth);
void domt_storm_check_payload(
    const void *payload); /* checks that the memory of the payload is still valid */
/* frees the memory of a payload that an actor has taken */
void domt_storm_free_payload(domt_load load);

/* Return `result`, which a verb that got `payload` has returned; if the verb has failed, free the
 * payload, because the verb did not take it. */
int domt_storm_free_if_failed(int result, const void *payload);

/* Returns a new ticket for an ask, which is open until the ask is answered or its conversation has
 * ended; 0: there is no room for more tickets. */
uint32_t domt_ticket_open_for_ask(void);
void domt_ticket_close_as_answered(uint32_t ticket);
void domt_ticket_close_as_abandoned(uint32_t ticket);
void domt_ticket_close_as_not_asked(
    uint32_t ticket); /* gives back a ticket whose ask could not be made */

/* --- who there is: storm.c -------------------------------------------------------------------- */

#define DOMT_STORM_CROWD 24

void domt_storm_crowd_set(uint32_t place, domus_address address);
domus_address domt_storm_crowd_at(uint32_t place);

/* --- deeds: storm_deeds.c --------------------------------------------------------------------- */

#define DOMT_TALK_ASKS 6

/* The frame of a conversation of the storm. */
typedef struct domt_talk {
    /* tickets of the asks under way that the conversation can wait for together; 0: a free place */
    uint32_t tickets[DOMT_TALK_ASKS];
    /* ticket of the ask that the conversation waits for alone; 0: none */
    uint32_t single;
    /* true: the conversation waits for the answers to all its asks */
    bool all;
    /* payload of the ask that the conversation has to answer, while it is readable */
    const void *asked;
} domt_talk;

/* The state of an actor of the storm. */
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

/* One step of a conversation of the storm: what the conversation was shown, and what it has
 * taken. */
typedef struct domt_step {
    domus_stack *stack;
    domt_doer *self;
    domt_talk *talk; /* frame of the conversation; NULL: it has none, so it asks nobody */
    domus_resumed *then;
    /* the payload that the step was shown; NULL: none, or it is no longer valid */
    const void *shown;
    domt_shown_kind kind;
    bool received; /* true: the shown payload came by a receive */
    bool taken;
    domt_load own; /* the payload that the step has taken, until it is freed or sent on */
    uint64_t depth;
} domt_step;

uint64_t domt_draw_below(domt_step *step, uint64_t below);
domus_address domt_random_actor_of_crowd(domt_step *step);

uint64_t domt_random_time_ns(domt_step *step);

/* Returns a payload to send: the one that the step has taken, or a new one. */
const void *domt_payload_to_send(domt_step *step);

/* Count the action `deed` if the `result` of its verb says that it was done. */
void domt_storm_count_deed_if_done(enum domt_deed deed, int result);

/* Functions that do one random action each, which is not about messages (storm.c). */
void domt_use_timers_at_random(domt_step *step);
void domt_spawn_random_actor(domt_step *step);
void domt_use_names_or_watches_at_random(domt_step *step);
void domt_end_random_actor(domt_step *step);
void domt_use_conversations_at_random(domt_step *step);

/* Do some random actions in a step, and perhaps wait. Returns the result for the handler. */
int domt_do_random_actions_in_step(domt_step *step);

/* --- actors: storm_actors.c ------------------------------------------------------------------- */

extern const domus_behaviour domt_storm_wild, domt_storm_calm, domt_storm_boss, domt_storm_hermit;
/* handlers for actors of the storm whose state is a domt_doer */
extern const domus_on domt_storm_rows[];
extern const domus_process domt_storm_process;

/* Spawn an actor of some kind, from a foreign thread, and write its address to place `i` of the
 * crowd. Does nothing if the spawn fails. */
void domt_storm_spawn_root(domus_system *system, uint32_t i, uint64_t seed);

#endif
