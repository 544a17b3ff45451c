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
    DOMI_PROMISE_PEER,  /* the answer to a request of a channel's peer (asks.h) */
    DOMI_PROMISE_BEGIN, /* the start of an ask that leaves in parts (owed.h) */
} domi_promise_kind;

/* promise.c draws these states and the moves between them. */
typedef enum domi_promise_state {
    DOMI_PROMISE_FREE,    /* not in use */
    DOMI_PROMISE_WAITING, /* a stack waits for this promise */
    DOMI_PROMISE_FAILED,  /* the stack still waits; the promise's node with the failure is in a
                             mailbox */
    DOMI_PROMISE_DONE,    /* the answer has come and was not shown to a handler yet */
    DOMI_PROMISE_DEAD,    /* nobody wants its answer, but its node is still in the mailbox, or is a
                             note (notes.h) */
    DOMI_PROMISE_STATES,
} domi_promise_state;

struct domi_promise {
    /* the node by which the promise is in the exception mailbox, or is a note */
    domi_node node;
    _Atomic uint32_t serial; /* grows when the promise ends, so that late answers are known */
    uint8_t state;           /* a domi_promise_state; only domi_promise_move() changes it */
    uint8_t kind;            /* a domi_promise_kind */
    bool queued;             /* true while the promise's node is in the exception mailbox */
    bool impatient : 1;      /* a receive that searches only the mail that waits already */
    bool noted : 1;          /* the promise's node is a note for home (notes.h) */
    bool timed : 1;          /* the time-out is on home's wheel, which a thief must not change */
    /* the promise is not an ask, so the count `asks` of its house leaves it out */
    bool uncounted : 1;
    /* the turn had named a function to go on with before this promise was made */
    bool second : 1;
    _Atomic(domus_stack *) stack;
    union {
        /* its tag is valid from the start, its error once the promise has failed on this side */
        domus_answer answer;
        /* fields for dumps, valid while the promise waits; the answer overwrites them */
        struct {
            int error; /* unused; covers `error` of `answer` */
            union {
                const domus_type *asked; /* the type of the ask that waits */
                /* the wait before this one in its list, if the promise is a flush */
                domi_promise *previous_flush;
            };
#if DOMI_POINTER_BITS == 64
            uint64_t since_ns; /* time at which the wait began */
            uint64_t kept;     /* unused; covers `tag` of `answer` */
#else
            const void *kept_payload; /* unused; covers `payload` of `answer` */
            uint64_t kept;            /* unused; covers `tag` of `answer` */
            uint64_t since_ns;        /* time at which the wait began */
#endif
            /* the sum of sent bytes at which the wait ends, if the promise is a flush */
            uint64_t sent_bytes;
        } wait;
    };
    domi_promise *next;     /* links in the stack's list `waiting` */
    domi_promise *previous; /* links the same list backwards */
    domi_wheel_node wheel;  /* node of the time-out on home's wheel `deadlines` */
    union {
        domus_address target; /* the actor that was asked, while the ask is under way */
        struct {              /* used by a receive alone */
            /* the messages that the receive accepts; a constant of the user */
            const domus_pattern *pattern;
            /* the next receive of the same house, in the order in which they began */
            domi_promise *next_receive;
        };
        void *work; /* the blocking work, an object of runtime */
        /* the promise of the whole ask, if this one is only for its start */
        domi_promise *whole;
        /* used only by a wait for bytes to leave; both belong to io */
        struct {
            void *sender;             /* the channel that sends them */
            domi_promise *next_flush; /* the next wait for the same channel */
        };
        /* the envelope of the answer's payload, once the promise is DONE; NULL: none */
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

/* Make the answer an error without type and payload. */
static inline void domi_promise_set_error(domi_promise *promise, int error)
{
    promise->answer.error = error;
    promise->answer.type = NULL;
    promise->answer.payload = NULL;
}

static inline bool domi_node_is_promise(const domi_node *node)
{
    return node->slab == DOMI_SLAB_PROMISE || node->slab == DOMI_SLAB_STACK_PROMISE;
}

/* The table of allowed moves, one byte for each state that is entered. promise.c draws it. */
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
_Noreturn void domi_promise_fail_move(const domi_promise *promise, domi_promise_state to);

/* Change the state of a promise, checked against the table. No other code changes the state. */
static inline void domi_promise_move(domi_promise *promise, domi_promise_state to)
{
    /* The compiler computes this where `to` is a constant. */
    uint32_t sources = DOMI_PROMISE_MOVES >> (to * 8) & 0xff;

    if (DOMI_UNLIKELY((sources >> promise->state & 1) == 0))
        domi_promise_fail_move(promise, to);
    promise->state = (uint8_t)to;
}

/* True if the stack still waits for the promise, so that an answer may complete it. */
static inline bool domi_promise_is_open(const domi_promise *promise)
{
    return promise->state == DOMI_PROMISE_WAITING || promise->state == DOMI_PROMISE_FAILED;
}

/* Make a promise of the pooled stack `stack`, which then waits for one more thing. Returns NULL if
 * there is no memory. */
domi_promise *domi_promise_new(domi_manager *manager, domus_stack *stack, domi_promise_kind kind);

/* Take `promise`, which was just made and is not an ask, out of the count `asks` of its house. Asks
 * are the frequent kind, so domi_promise_new() counts every promise without a test of its kind. */
void domi_promise_stop_counting(domi_promise *promise);

/* Arm the time-out of a promise: at `deadline_ns` it fails with -ETIMEDOUT; a sleep completes with
 * 0. */
void domi_promise_arm(domi_manager *manager, domi_promise *promise, uint64_t deadline_ns);

/* Let the promise fail with `error` (a sleep ends with 0). Its node is queued, and the conversation
 * is resumed in a turn of its own. The promise must be WAITING, so its failure is not queued
 * yet. */
void domi_promise_fail(domi_manager *manager, domi_promise *promise, int error);

/* Put a promise on home's wheel. Home only. */
void domi_promise_put_on_wheel(domi_manager *home, domi_promise *promise, uint64_t deadline_ns);

/* Take a receive out of its house's list of waiting receives. */
void domi_promise_remove_from_receives(domi_promise *promise);

/* Let the promise of a wheel's node fail, because its time is over. The wheel `deadlines` calls
 * this. Home only. */
void domi_promise_expire(domi_manager *manager, domi_wheel_node *node);

/* Do the same as domi_timer_postpone() and domi_timer_house(), for the time-out of a promise. */
void domi_promise_postpone(domi_manager *manager, domi_wheel_node *node);
domi_house *domi_promise_house(domi_wheel_node *node);

/* True if the time-out of a pooled actor's promise was postponed. The time itself says so, because
 * the runner of the house writes the other fields without the lock: a time on a pool's wheel is an
 * even number of nanoseconds unless it was postponed. Under the lock of the pool. */
bool domi_promise_is_late(const domi_promise *promise);

/* Carry out what a thief noted for this promise while the house was lent (notes.h). Home only. */
void domi_promise_carry_out_note(domi_manager *home, domi_promise *promise);

/* Finish a promise, whose stack then no longer waits for it. `message` (or NULL) is the envelope
 * that holds the answer's payload. domi_promise_release() has to follow when the answer was
 * shown. */
void domi_promise_finish(domi_manager *manager, domi_promise *promise, domi_envelope *message);

/* The slow half of domi_promise_close() (stack.h). */
void domi_promise_close_slow(domi_manager *manager, domi_promise *promise);

/* Take a promise back without an answer, because nobody wants its answer any more. */
void domi_promise_abandon(domi_manager *manager, domi_promise *promise);

/* Free a promise whose answer was shown, or that was abandoned. If its node is still in a mailbox,
 * or on its way home as a note (notes.h), the promise becomes DEAD, and is freed with that node. */
void domi_promise_release(domi_manager *manager, domi_promise *promise);

#endif
