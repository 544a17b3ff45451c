/* Promises: a promise is one thing that a conversation waits for. It stands for the answer of an
 * ask, the end of a sleep, a message that a receive takes, the end of blocking work, or bytes that
 * leave a channel.
 *
 * Each promise belongs to one stack and completes exactly once. Another thread that completes a
 * promise names it by its address and its serial. The serial changes when the promise completes, so
 * an answer with another serial is late. The memory of a promise stays a promise for ever, so a
 * late answer, or a walk over a chain of asks on another thread, may always read it. A failure on
 * the asker's side (an ask that never left, a time-out, a cancel) completes the promise by its own
 * node in the exception mailbox. The conversation is then resumed in a turn of its own, as an
 * answer would resume it. Only the thread that runs the house touches a promise, except for
 * `serial` and `stack`, which any thread may read. */
#ifndef DOMI_HOUSE_CONVERSATION_PROMISE_H
#define DOMI_HOUSE_CONVERSATION_PROMISE_H

#include "base/check.h"
#include "house/message/manager.h"

#include <domus/receive.h>

typedef struct domi_promise domi_promise;

typedef enum domi_promise_kind {
    DOMI_PROMISE_ASK,
    DOMI_PROMISE_SLEEP,
    DOMI_PROMISE_RECEIVE,
    DOMI_PROMISE_BLOCKING,
    DOMI_PROMISE_FLUSH,
    DOMI_PROMISE_PEER,  /* kind of promise: the answer to a request of a channel's peer (asks.h) */
    DOMI_PROMISE_BEGIN, /* kind of promise: the start of an ask that leaves in parts (owed.h) */
} domi_promise_kind;

/* The states of a promise. promise.c draws them and the moves between them. */
typedef enum domi_promise_state {
    DOMI_PROMISE_FREE,    /* the promise is not in use */
    DOMI_PROMISE_WAITING, /* a stack waits for this promise */
    /* the stack still waits; the promise's node, with the failure, is in the exception mailbox */
    DOMI_PROMISE_FAILED,
    DOMI_PROMISE_DONE, /* the answer to the promise has come and was not shown to a handler yet */
    /* nobody wants the promise's answer, but its node is still in the mailbox, or is a note
     * (notes.h) */
    DOMI_PROMISE_DEAD,
    DOMI_PROMISE_STATES,
} domi_promise_state;

struct domi_promise {
    /* the promise's node, by which it is in the exception mailbox, or is a note */
    domi_node node;
    /* serial of the promise, which grows when it ends, so that late answers are known */
    _Atomic uint32_t serial;
    /* state of the promise, a domi_promise_state; only domi_promise_change_state() changes it */
    uint8_t state;
    uint8_t kind; /* what the promise stands for, a domi_promise_kind */
    bool queued;  /* whether the promise's node is in the exception mailbox */
    /* whether the promise is a receive that searches only the mail that waits already */
    bool impatient : 1;
    bool noted : 1; /* whether the promise's node is a note for home (notes.h) */
    /* whether the promise is on home's wheel of time-outs, which a thief must not change */
    bool timed : 1;
    /* whether the promise is not an ask, so that the count `asks` of its house leaves it out */
    bool uncounted : 1;
    /* whether the turn had named a function to go on with before this promise was made */
    bool second : 1;
    _Atomic(domus_stack *) stack;
    union {
        /* the promise's answer: its tag is valid from the start, its error once the promise has
         * failed on this side */
        domus_answer answer;
        /* fields for dumps, valid while the promise waits; the answer overwrites them */
        struct {
            int error; /* unused; lies over `error` of `answer` */
            union {
                const domus_type *asked; /* the type of the ask for which the promise waits */
                /* the promise before this one in the channel's list of flushes, if this one is a
                 * flush */
                domi_promise *previous_flush;
            };
#if DOMI_POINTER_BITS == 64
            uint64_t since_ns; /* time at which the wait for this promise began */
            uint64_t kept;     /* unused; lies over `tag` of `answer` */
#else
            const void *kept_payload; /* unused; lies over `payload` of `answer` */
            uint64_t kept;            /* unused; lies over `tag` of `answer` */
            uint64_t since_ns;        /* time at which the wait for this promise began */
#endif
            /* if the promise is a flush: the sum of the channel's sent bytes at which it
             * completes */
            uint64_t sent_bytes;
        } wait;
    };
    domi_promise *next;     /* the next promise in the stack's list `waiting` */
    domi_promise *previous; /* the promise before this one in the stack's list `waiting` */
    domi_wheel_node wheel;  /* node of the promise's time-out on home's wheel `deadlines` */
    union {
        domus_address target; /* the actor that has the ask, while the ask is under way */
        struct {              /* fields that only a receive uses */
            /* the pattern of the messages that the receive accepts; a constant of the user */
            const domus_pattern *pattern;
            /* the next waiting receive of the same house; the oldest comes first */
            domi_promise *next_receive;
        };
        void *work; /* the blocking work for which the promise waits, an object of runtime */
        /* the promise of the whole ask, if this one only waits for the ask's start */
        domi_promise *whole;
        /* fields of a flush, a wait for bytes to leave; both belong to io */
        struct {
            void *sender; /* the channel that sends the bytes */
            /* the next promise that waits for bytes of the same channel */
            domi_promise *next_flush;
        };
        /* the envelope that holds the answer's payload, once the promise is DONE; NULL: there is
         * none */
        domi_envelope *message;
    };
};

static_assert(DOMI_TAKES(sizeof(domi_promise), 128), "two cache lines");
static_assert(offsetof(domi_promise, wait.kept) == offsetof(domi_promise, answer.tag),
              "the tag stays");

static inline uint32_t domi_promise_serial(const domi_promise *promise)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&promise->serial,
                                memory_order_relaxed);
}

/* Make the answer of a promise an error, without type and payload. */
static inline void domi_promise_set_answer_to_error(domi_promise *promise, int error)
{
    promise->answer.error = error;
    promise->answer.type = NULL;
    promise->answer.payload = NULL;
}

static inline bool domi_node_is_promise(const domi_node *node)
{
    return node->slab == DOMI_SLAB_PROMISE || node->slab == DOMI_SLAB_STACK_PROMISE;
}

/* The table of allowed moves between the states of a promise, one byte for each state that is
 * entered. promise.c draws it. */
#define DOMI_PROMISE_MOVE(from, to) (UINT64_C(1) << ((to)*8 + (from)))
#define DOMI_PROMISE_MOVES                                                                         \
    (DOMI_PROMISE_MOVE(DOMI_PROMISE_FREE, DOMI_PROMISE_WAITING) |                                  \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_WAITING, DOMI_PROMISE_FAILED) |                                \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_WAITING, DOMI_PROMISE_DONE) |                                  \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_FAILED, DOMI_PROMISE_DONE) |                                   \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_WAITING, DOMI_PROMISE_DEAD) |                                  \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_FAILED, DOMI_PROMISE_DEAD) |                                   \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_DONE, DOMI_PROMISE_DEAD) |                                     \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_DEAD, DOMI_PROMISE_DEAD) |                                     \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_WAITING, DOMI_PROMISE_FREE) |                                  \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_DONE, DOMI_PROMISE_FREE) |                                     \
     DOMI_PROMISE_MOVE(DOMI_PROMISE_DEAD, DOMI_PROMISE_FREE))

/* Fail a check: the table does not allow the move from the state of `promise` to `to`. */
_Noreturn void domi_promise_fail_forbidden_move(const domi_promise *promise, domi_promise_state to);

/* Change the state of a promise, checked against the table of moves. No other code changes the
 * state. */
static inline void domi_promise_change_state(domi_promise *promise, domi_promise_state to)
{
    /* Computed when the code is compiled, if `to` is a constant. */
    uint32_t sources = DOMI_PROMISE_MOVES >> (to * 8) & 0xff;

    if (DOMI_UNLIKELY((sources >> promise->state & 1) == 0))
        domi_promise_fail_forbidden_move(promise, to);
    promise->state = (uint8_t)to;
}

/* True if the stack still waits for the promise, so that an answer may complete it. */
static inline bool domi_promise_is_awaited(const domi_promise *promise)
{
    return promise->state == DOMI_PROMISE_WAITING || promise->state == DOMI_PROMISE_FAILED;
}

/* Make a promise of the pooled stack `stack`, which then waits for one thing more. Returns NULL if
 * there is no memory. */
domi_promise *domi_promise_new(domi_manager *manager, domus_stack *stack, domi_promise_kind kind);

/* Take `promise`, which was just made and is not an ask, out of the count `asks` of its house. Asks
 * are the frequent kind, so domi_promise_new() counts every promise without a test of its kind. */
void domi_promise_take_out_of_ask_count(domi_promise *promise);

/* Arm the time-out of a promise: at `deadline_ns` it fails with -ETIMEDOUT; a sleep completes with
 * 0. */
void domi_promise_arm_deadline(domi_manager *manager, domi_promise *promise, uint64_t deadline_ns);

/* Let the promise fail with `error` (a sleep ends with 0). Its node is put into the exception
 * mailbox, and the conversation is resumed in a turn of its own. The promise must be WAITING, so
 * its failure is not queued yet. */
void domi_promise_fail(domi_manager *manager, domi_promise *promise, int error);

/* Put a promise on home's wheel of time-outs. Home only. */
void domi_promise_put_on_wheel(domi_manager *home, domi_promise *promise, uint64_t deadline_ns);

/* Take a receive out of its house's list of waiting receives. */
void domi_promise_remove_from_receives(domi_promise *promise);

/* Let the promise of a wheel's node fail, because its time is over. Called for the nodes that come
 * from home's wheel `deadlines`. Home only. */
void domi_promise_fail_at_deadline(domi_manager *manager, domi_wheel_node *node);

/* Postpone the time-out of a promise, and tell its house, as domi_timer_postpone_to_next_tick() and
 * domi_timer_house_of_wheel_node() do for a timer. */
void domi_promise_postpone_to_next_tick(domi_manager *manager, domi_wheel_node *node);
domi_house *domi_promise_house_of_wheel_node(domi_wheel_node *node);

/* True if the time-out of a pooled actor's promise was postponed. The time itself says so, because
 * the runner of the house writes the other fields without the lock: a time on a pool's wheel is an
 * even number of nanoseconds unless it was postponed. Under the lock of the pool. */
bool domi_promise_is_postponed(const domi_promise *promise);

/* Carry out what a thief noted for this promise while the house was lent (notes.h). Home only. */
void domi_promise_carry_out_note_of_thief(domi_manager *home, domi_promise *promise);

/* Finish a promise: its stack then no longer waits for it. `message` (or NULL) is the envelope that
 * holds the answer's payload. domi_promise_release() has to follow when the answer was shown. */
void domi_promise_finish(domi_manager *manager, domi_promise *promise, domi_envelope *message);

/* Finish and release a promise by the slow half of domi_promise_finish_and_release() (stack.h). */
void domi_promise_finish_and_release_slow(domi_manager *manager, domi_promise *promise);

/* Take a promise back without an answer, because nobody wants its answer any more. */
void domi_promise_abandon(domi_manager *manager, domi_promise *promise);

/* Free a promise whose answer was shown, or that was abandoned. If its node is still in a mailbox,
 * or on its way home as a note (notes.h), the promise becomes DEAD, and is freed with that node. */
void domi_promise_release(domi_manager *manager, domi_promise *promise);

#endif
