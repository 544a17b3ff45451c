/* The parts of the conservation stress, a test which holds that no message gets lost or comes
 * twice: counts, budget, actors, outsiders, and a watchdog.
 *
 * Each event is counted in a row of the thread on which it happens, so threads share no memory by
 * counting. The beginning of a thing is counted before it is tried, and its end after it has ended,
 * so at any time at least as many have begun as ended. If a reader reads all ends first, then all
 * beginnings, and finds as many, there was a moment at which nothing was under way. At that moment
 * a handler that has counted an end may still be about to begin something. Therefore it is called a
 * silence only if after the reading all threads are seen asleep and the sums have not changed. The
 * watchdog and the end of the test sum up the rows. */
#ifndef DOMT_CONSERVE_H
#define DOMT_CONSERVE_H

#include "tests/runtime/running.h"

#include "base/random.h"

#include <pthread.h>

/* The counts of the conservation stress, with their texts. An ask or notice that is sent is "made",
 * and then "taken" by a handler, "dropped" (its type's release was called), "refused" by a full
 * mailbox, or "stale" (its receiver has ended). An ask is "unput" if it was dropped within the call
 * that made it. A count with "unmade" is of calls that failed. */
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

/* Add `by` to a count, in the row of the calling thread. */
void domt_add_to_count(enum domt_count what, uint64_t by);

static inline void domt_count_one(enum domt_count what)
{
    domt_add_to_count(what, 1);
}

/* Returns a count of the calling thread alone, without those of other threads. */
uint64_t domt_count_of_this_thread(enum domt_count what);

/* Set all counts and the budget to 0, before the threads of a system run. From now on a thread
 * takes the budget in blocks of `block` messages. */
void domt_reset_all_counts(int64_t block);

/* Sum up each count over all threads, as of now; the counts that begin something are read last. */
void domt_sums_read_counts(domt_sums *sums);

/* Returns whether for each kind of thing, such as asks, as many have ended as have begun. If not,
 * and if `ret_kind` is not NULL, it gets the name of that kind. */
bool domt_sums_are_balanced(const domt_sums *sums, const char **ret_kind);

/* Returns the name of a kind of which more have ended than have begun, so one has ended twice; NULL
 * if there is no such kind. */
const char *domt_sums_find_kind_ended_twice(const domt_sums *sums);

/* Returns a number that grows with each thing that is handled, without failed calls of outsiders.
 * If it stands still, an actor or a thread is stuck. */
uint64_t domt_sums_total_handled(const domt_sums *sums);

/* Returns how many messages were made: notices, asks, answers, and events of timers, as summed up
 * in `sums`. */
uint64_t domt_sums_messages_made(const domt_sums *sums);

/* Returns the text that names a count; NULL if `what` is beyond the last count. */
const char *domt_text_of_count(uint32_t what);

void domt_sums_print(const domt_sums *sums);

/* --- the budget ------------------------------------------------------------------------------- */

/* Add `messages` to the budget: the number of messages that actors may still send. */
void domt_budget_add_messages(int64_t messages);

/* Returns the part of the budget that no thread has taken yet; threads take it in blocks. */
int64_t domt_budget_messages_left(void);

/* Take one message from the budget. Returns whether the caller may send it. */
bool domt_budget_take_message(void);

/* --- actors (conserve_graph.c, conserve_asks.c) ----------------------------------------------- */

#define DOMT_NEIGHBOURS 6u

/* the payload of every notice, ask and answer of the conservation stress */
typedef struct domt_token {
    /* address of another actor that the receiver may send to, so that the graph changes */
    domus_address somebody;
    uint32_t to; /* the lease of the actor for which the token is meant */
    uint32_t unused;
} domt_token;

typedef struct domt_node {
    domi_random dice;
    /* address of an actor that answers and asks nobody, so a node may raise a barrier and ask it */
    domus_address oracle;
    domus_address neighbours[DOMT_NEIGHBOURS];
    domus_timer bell;                /* the last timer that the node has armed to ring once */
    domus_timer ticker;              /* the periodic timer of the node */
    domus_conversation conversation; /* a conversation of the node that it may cancel */
    domus_kept kept;                 /* an ask that the node has kept, to answer it later */
    uint32_t timers;                 /* number of armed timers of the node that ring once */
    uint32_t threads;                /* number of threads of the system */
    bool ticks;
    bool pinned;
} domt_node;

extern const domus_type domt_token_type, domt_letter_type, domt_question_type, domt_query_type,
    domt_answer_type;
extern const domus_behaviour domt_node_behaviour; /* behaviour of a node that is a state actor */
/* behaviour of a node that is a channels actor, with the same functions */
extern const domus_behaviour domt_gate_behaviour;
extern const domus_behaviour domt_oracle_behaviour;
/* behaviour of the actor that ends a silence by a timer */
extern const domus_behaviour domt_alarm_behaviour;

/* The message by which a test tells the alarm actor to end the next silence: after `delay_ns` the
 * actor gives the budget, and sends notices to the members. */
typedef struct domt_alarm {
    domus_address members[DOMT_NEIGHBOURS];
    uint64_t delay_ns;
    int64_t budget;
    uint32_t notices;
} domt_alarm;

extern const domus_type domt_alarm_type;

/* A board in shared memory: each node that is mounted writes its address there, and outsiders
 * choose from these addresses. An address may be read while it is written, so it may be stale or
 * that of another actor. */
#define DOMT_BOARD 64u

domus_address domt_board_read_address(uint64_t place);
void domt_board_clear(void);

/* Functions for nodes that conserve_graph.c and conserve_asks.c use of each other. A node passes a
 * token on by the way that the name of the function says. */
domus_address domt_any_neighbour(domt_node *self);
void domt_add_neighbour(domt_node *self, domus_address somebody);
bool domt_is_run_on_loan(const domus_stack *stack);
int domt_pass_token_on(domus_stack *stack, domt_node *self);
int domt_pass_token_by_notice(domus_stack *stack, domt_node *self);
int domt_pass_token_by_timer(domus_stack *stack, domt_node *self);
int domt_pass_token_by_ask(domus_stack *stack, domt_node *self);
int domt_on_question_respond(domus_stack *stack, void *self, const void *payload);
int domt_on_query_respond(domus_stack *stack, void *self, const void *payload);
int domt_cancel_kept_conversation(domus_stack *stack, domt_node *self);
void domt_answer_kept_ask(domus_stack *stack, domt_node *self);

/* Count the `result` of a call that has sent a notice, and return that result. */
int domt_count_notice_result(int result, bool outside);

/* --- outsiders (conserve_outside.c) ----------------------------------------------------------- */

/* A foreign thread of the conservation stress: as long as there is budget, it either sends, spawns
 * and stops, or it asks. */
typedef struct domt_outsider {
    domus_system *system;
    domi_random dice;
    domt_node state;     /* the initial state of the actors that the outsider spawns */
    uint32_t population; /* the outsider spawns actors while fewer than this number are alive */
    uint32_t crowd;      /* how many of 8 actors that the outsider spawns go to thread 0 */
    /* number of notices that the outsider sends in a turn; 0: it only spawns actors */
    uint32_t letters;
    bool asks;
    /* held during a turn of the outsider, in which it reads and uses the budget */
    pthread_mutex_t turn;
    _Atomic bool done;  /* true: the outsider's thread has to end */
    _Atomic bool ended; /* true: the outsider's thread has ended and can be joined */
    pthread_t thread;
} domt_outsider;

void domt_outsider_start_thread(domt_outsider *outsider);

/* Tell the outsider's thread to end, without waiting. Returns true once the thread has ended and
 * was joined. */
bool domt_outsider_end_thread(domt_outsider *outsider);
void domt_outsider_spawn_node(domt_outsider *outsider);

/* Returns an address from the board (domt_board_read_address()), mostly one that seems to be alive.
 */
domus_address domt_board_pick_address(domi_random *dice);

/* --- what has to hold (conserve_sums.c) ------------------------------------------------------- */

void domt_add_profile_to_sums(domus_profile *sums, const domus_profile *more);

/* Check that the test's count `ours` equals the system's count `theirs`; if not, print all sums and
 * fail the test. `name` is the name of the run, and `what` tells the two counts. */
void domt_check_counts_equal(const char *name, const domt_sums *sums, const char *what,
                             uint64_t ours, uint64_t theirs);

/* Check that of no kind of thing more have ended than have begun, which must hold at any time. */
void domt_check_none_ended_twice(const char *name, const domt_sums *sums);

/* Check the system in a silence: no timer is armed, no house is ready or shown to thieves, and
 * nothing that must not happen was counted. */
void domt_check_system_is_silent(const char *name, const domus_system *system,
                                 const domt_sums *sums);

/* Check that the counters of the stopped system agree with the counts of the test. */
void domt_check_profile_of_system(const char *name, domus_system *system, const domt_sums *sums);

/* --- the watchdog (conserve_sums.c) ----------------------------------------------------------- */

typedef struct domt_watchdog {
    const domus_system *system;
    const char *name; /* name of the run, for messages */
    uint64_t moved;
    uint64_t since_ns;
} domt_watchdog;

void domt_conserve_watchdog_init(domt_watchdog *dog, const domus_system *system, const char *name);

/* Compare the sums with those of the last call. If nothing has moved for long, print what each
 * thread holds and waits for, and abort. */
void domt_watchdog_check_progress(domt_watchdog *dog, const domt_sums *sums, const char *waits_for);

void domt_watchdog_print_state(const domt_watchdog *dog, const domt_sums *sums,
                               const char *waits_for);

/* Returns whether each thread of the system was asleep in its ring when this function looked at it.
 * If so, the caller sees all counts of these threads. */
bool domt_all_threads_sleep(const domus_system *system);

#endif
