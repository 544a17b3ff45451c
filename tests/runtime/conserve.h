/* The parts of the conservation stress: counters, budget, actors, outsiders, and the watchdog.
 *
 * Whatever happens to a message is counted on a line of the thread where it happens, so the
 * counting shares nothing. A beginning is counted before it is tried, and an end after it has
 * ended. So begun >= ended holds for each kind at any time, and whoever reads all ends first and
 * then all beginnings, and finds them equal, knows a moment at which nothing was under way. A
 * handler that has counted an end and is about to begin something may still run then. So it is a
 * silence only if afterwards all threads are seen asleep and the sums are still the same. The lines
 * are summed by the watchdog and at the end. */
#ifndef DOMT_CONSERVE_H
#define DOMT_CONSERVE_H

#include "tests/runtime/running.h"

#include "base/random.h"

#include <pthread.h>

/* The counts. A put of an ask or notice is "made". It is "taken" if a handler got it, "dropped" if
 * its type's release was called, "refused" or "stale". An ask is "unput" if it was dropped within
 * the call that made it. A count with "unmade" is of calls that failed. */
#define DOMT_COUNTS(X)                                                                             \
    X(NOTICE_MADE, "notices made")                                                                 \
    X(NOTICE_TAKEN, "notices taken")                                                               \
    X(NOTICE_DROPPED, "notices dropped")                                                           \
    X(NOTICE_REFUSED, "notices refused")                                                           \
    X(NOTICE_STALE, "notices to who is gone")                                                      \
    X(LETTER_MADE, "outside: notices made")                                                        \
    X(LETTER_TAKEN, "outside: notices taken")                                                      \
    X(LETTER_DROPPED, "outside: notices dropped")                                                  \
    X(LETTER_REFUSED, "outside: notices refused")                                                  \
    X(LETTER_STALE, "outside: notices to who is gone")                                             \
    X(ASK_MADE, "asks made")                                                                       \
    X(ASK_UNMADE, "asks unmade")                                                                   \
    X(ASK_FORWARDED, "asks forwarded")                                                             \
    X(ASK_UNFORWARDED, "asks not forwarded")                                                       \
    X(ASK_TAKEN, "asks taken")                                                                     \
    X(ASK_DROPPED, "asks dropped")                                                                 \
    X(ASK_UNPUT, "asks unput")                                                                     \
    X(ASK_RESUMED, "asks resumed")                                                                 \
    X(ASK_ANSWERED, "asks resumed by a message")                                                   \
    X(ASK_REFUSED, "asks refused")                                                                 \
    X(QUERY_MADE, "outside: asks made")                                                            \
    X(QUERY_TAKEN, "outside: asks taken")                                                          \
    X(QUERY_DROPPED, "outside: asks dropped")                                                      \
    X(QUERY_UNPUT, "outside: asks unput")                                                          \
    X(QUERY_ENDED, "outside: asks ended")                                                          \
    X(QUERY_REFUSED, "outside: asks refused")                                                      \
    X(REPLY_MADE, "replies made")                                                                  \
    X(REPLY_UNMADE, "replies to who has cancelled")                                                \
    X(REPLY_TAKEN, "replies taken")                                                                \
    X(REPLY_DROPPED, "replies dropped")                                                            \
    X(TIMER_MADE, "timers armed")                                                                  \
    X(TIMER_UNMADE, "timers not armed")                                                            \
    X(TIMER_RUNG, "timers rung")                                                                   \
    X(TIMER_CANCELLED, "timers cancelled")                                                         \
    X(TIMER_BACK, "timers taken back by a stop")                                                   \
    X(TICKER_MADE, "tickers armed")                                                                \
    X(TICKER_UNMADE, "tickers not armed")                                                          \
    X(TICKER_CANCELLED, "tickers cancelled")                                                       \
    X(TICKER_BACK, "tickers taken back by a stop")                                                 \
    X(TICKER_RUNG, "ticks")                                                                        \
    X(JOB_MADE, "jobs begun")                                                                      \
    X(JOB_UNMADE, "jobs not begun")                                                                \
    X(JOB_ENDED, "jobs ended")                                                                     \
    X(RECEIVE_MADE, "receives begun")                                                              \
    X(RECEIVE_UNMADE, "receives not begun")                                                        \
    X(RECEIVE_TAKEN, "receives that took a notice")                                                \
    X(RECEIVE_FAILED, "receives that ended without")                                               \
    X(STASHED, "notices put aside")                                                                \
    X(BORN, "born")                                                                                \
    X(UNBORN, "... in vain")                                                                       \
    X(BORN_AGAIN, "... in a used slot")                                                            \
    X(BORN_ELSEWHERE, "... on another thread")                                                     \
    X(MOUNTED, "mounted")                                                                          \
    X(STOPPED, "stopped")                                                                          \
    X(STOP_STALE, "stops of who was gone")                                                         \
    X(BARRIERS, "asks in a barrier")                                                               \
    X(TIMED_OUT, "asks timed out")                                                                 \
    X(CANCELS, "conversations cancelled")                                                          \
    X(KEPT, "asks kept")                                                                           \
    X(FANNED, "fan-outs")                                                                          \
    X(FORWARDED, "notices forwarded")                                                              \
    X(GATE_RUN, "taken by channels actors")                                                        \
    X(PINNED_RUN, "taken by pinned actors")                                                        \
    X(LENT_RUN, "taken on a loan")                                                                 \
    X(LENT_SENT, "notices made on a loan")                                                         \
    X(LENT_ASKED, "asks made on a loan")                                                           \
    X(LENT_RESUMED, "asks resumed on a loan")                                                      \
    X(LENT_ARMED, "timers armed on a loan")                                                        \
    X(LENT_RUNG, "... and rung")                                                                   \
    X(LENT_CANCELLED, "timers cancelled on a loan")                                                \
    X(LENT_WITH_TIMERS, "taken on a loan with timers running")                                     \
    X(LENT_BORN, "born of who was lent")                                                           \
    X(LENT_STOPPED, "stopped while lent")                                                          \
    X(SILENCES, "silences in which all slept")                                                     \
    X(ALARMS, "silences ended by a timer")                                                         \
    X(ASTRAY, "handled by another than was meant")                                                 \
    X(STRAYED, "pinned, and run elsewhere")                                                        \
    X(ODD, "results that may not be")

#define DOMT_COUNT_NAME(name, text) DOMT_##name,
enum domt_count { DOMT_COUNTS(DOMT_COUNT_NAME) DOMT_COUNTS_MAX };

typedef struct domt_sums {
    uint64_t of[DOMT_COUNTS_MAX];
} domt_sums;

/* --- counters (conserve_sums.c) --------------------------------------------------------------- */

/* Add `by` to a count, on the calling thread's line. */
void domt_count_by(enum domt_count what, uint64_t by);

static inline void domt_count_one(enum domt_count what)
{
    domt_count_by(what, 1);
}

/* Returns a count of the calling thread alone. */
uint64_t domt_counted_here(enum domt_count what);

/* Reset all lines and the budget, before the system's threads run; threads will take the budget in
 * blocks of `block`. */
void domt_sums_reset(int64_t block);

/* Read the sums as they are now, the beginnings last. */
void domt_sums_read(domt_sums *sums);

/* Whether of each kind as many have ended as begun. If not and `ret_kind` is not NULL, it gets the
 * kind. */
bool domt_sums_balance(const domt_sums *sums, const char **ret_kind);

/* Returns a kind of which more have ended than begun, so that something came twice; NULL: none. */
const char *domt_sums_twice(const domt_sums *sums);

/* Returns how much was handled; failed calls of outsiders do not count. If this number stands
 * still, an actor or a thread is stuck. */
uint64_t domt_sums_moved(const domt_sums *sums);

/* Returns how many messages were made: notices, asks, answers, and events of timers. */
uint64_t domt_sums_messages(const domt_sums *sums);

/* Returns the name of a count; NULL beyond the last one. */
const char *domt_count_text(uint32_t what);

void domt_sums_print(const domt_sums *sums);

/* --- the budget ------------------------------------------------------------------------------- */

/* Allow so many more messages. */
void domt_budget_give(int64_t messages);

/* Returns the part of the budget that no thread has taken; threads take it in blocks. */
int64_t domt_budget_left(void);

/* Take one message from the budget. Returns whether it may be made. */
bool domt_budget_spend(void);

/* --- actors (conserve_graph.c, conserve_asks.c) ----------------------------------------------- */

#define DOMT_NEIGHBOURS 6u

typedef struct domt_token { /* the payload of every notice, question and answer */
    /* another actor that the receiver gets to know, so that the graph changes */
    domus_address somebody;
    uint32_t to; /* the lease of the actor that the token is meant for */
    uint32_t unused;
} domt_token;

typedef struct domt_node {
    domi_random dice;
    /* An actor that answers and asks nobody, so an actor that asks it may raise a barrier
     * meanwhile. */
    domus_address oracle;
    domus_address neighbours[DOMT_NEIGHBOURS];
    domus_timer bell;                /* a timer that is armed once */
    domus_timer ticker;              /* the periodic timer */
    domus_conversation conversation; /* a conversation that may be cancelled */
    domus_kept kept;                 /* an ask that is kept, to be answered later */
    uint32_t timers;                 /* number of armed timers that ring once */
    uint32_t threads;                /* number of threads of the system */
    bool ticks;
    bool pinned;
} domt_node;

extern const domus_type domt_token_type, domt_letter_type, domt_question_type, domt_query_type,
    domt_answer_type;
extern const domus_behaviour domt_node_behaviour; /* a state actor */
extern const domus_behaviour domt_gate_behaviour; /* the same functions as a channels actor */
extern const domus_behaviour domt_oracle_behaviour;
extern const domus_behaviour domt_alarm_behaviour; /* an actor that ends a silence by a timer */

/* An order to an alarm, sent as a notice from outside. */
typedef struct domt_alarm {
    domus_address members[DOMT_NEIGHBOURS];
    uint64_t delay_ns;
    int64_t budget;
    uint32_t notices;
} domt_alarm;

extern const domus_type domt_alarm_type;

/* Each actor that is mounted writes its address on a board, from which outsiders choose. An address
 * that they read may be mixed from two writes: then it is stale, or it is another actor's. */
#define DOMT_BOARD 64u

domus_address domt_board_read(uint64_t place);
void domt_board_clear(void);

/* Functions that one file of the actors offers to the other. */
domus_address domt_any(domt_node *self);
void domt_meet(domt_node *self, domus_address somebody);
bool domt_is_lent(const domus_stack *stack);
int domt_pass_on(domus_stack *stack, domt_node *self);
int domt_pass_by_notice(domus_stack *stack, domt_node *self);
int domt_pass_later(domus_stack *stack, domt_node *self);
int domt_pass_by_ask(domus_stack *stack, domt_node *self);
int domt_take_question(domus_stack *stack, void *self, const void *payload);
int domt_take_query(domus_stack *stack, void *self, const void *payload);
int domt_cancel_one(domus_stack *stack, domt_node *self);
void domt_answer_kept(domus_stack *stack, domt_node *self);

/* Count the result of a put of a notice, and return it. */
int domt_count_put(int result, bool outside);

/* --- outsiders (conserve_outside.c) ----------------------------------------------------------- */

/* A foreign thread that sends, spawns and stops, or that asks, as long as there is budget. */
typedef struct domt_outsider {
    domus_system *system;
    domi_random dice;
    domt_node state;     /* the initial state of the actors that it spawns */
    uint32_t population; /* the outsider spawns while fewer actors than this are alive */
    uint32_t crowd;      /* how many of 8 spawned actors go to thread 0 */
    uint32_t letters;    /* notices that it sends in a turn; 0: it only spawns */
    bool asks;
    pthread_mutex_t turn; /* held while the outsider reads and uses the budget */
    _Atomic bool done;    /* asks the thread to end */
    _Atomic bool ended;   /* the thread has ended, and can be joined */
    pthread_t thread;
} domt_outsider;

void domt_outsider_start(domt_outsider *outsider);

/* Ask the outsider to end. Returns true once it has ended and was joined. */
bool domt_outsider_end(domt_outsider *outsider);
void domt_outsider_spawn(domt_outsider *outsider);

/* Returns an address from the board. */
domus_address domt_board_any(domi_random *dice);

/* --- what has to hold (conserve_sums.c) ------------------------------------------------------- */

void domt_profile_add(domus_profile *sums, const domus_profile *more);

/* Check that two numbers are equal; if not, the sums are printed and the test fails. `name` is that
 * of the run. */
void domt_hold(const char *name, const domt_sums *sums, const char *what, uint64_t ours,
               uint64_t theirs);

/* Check that of no kind more have ended than begun, which must hold at any time. */
void domt_hold_begun(const char *name, const domt_sums *sums);

/* Check that all threads sleep and no message is under way. */
void domt_hold_silence(const char *name, const domus_system *system, const domt_sums *sums);

/* Check that the counters of the stopped system equal the test's counts. */
void domt_hold_profile(const char *name, domus_system *system, const domt_sums *sums);

/* --- the watchdog (conserve_sums.c) ----------------------------------------------------------- */

typedef struct domt_watchdog {
    const domus_system *system;
    const char *name; /* name of the run */
    uint64_t moved;
    uint64_t since_ns;
} domt_watchdog;

void domt_watchdog_init(domt_watchdog *dog, const domus_system *system, const char *name);

/* Look at the sums. If they have not moved for long, print what each thread has and waits for, and
 * abort. */
void domt_watchdog_look(domt_watchdog *dog, const domt_sums *sums, const char *waits_for);

void domt_watchdog_report(const domt_watchdog *dog, const domt_sums *sums, const char *waits_for);

/* Whether each thread sleeps in its ring when this looks at it. If so, all its counts are seen. */
bool domt_all_sleep(const domus_system *system);

#endif
