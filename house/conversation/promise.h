/* Promises: what a conversation waits for. An ask's answer, the end of a sleep, a message that a
 * receive takes, blocking work.
 *
 * Each is of one stack and completes exactly once. What completes it from elsewhere names it by its
 * address and its serial, which changes when it is done: an answer that finds another serial is
 * late. Its memory stays a promise for ever, so who comes late, or walks a chain of asks from
 * another thread, may always look. What fails here (an ask that never left, a time-out, a cancel)
 * completes by the promise's own node, in the exception mailbox: on a turn of its own, as an answer
 * would. Only the thread that runs the house touches a promise, except `serial` and `stack`, which
 * anyone may read. */
#ifndef DOMI_HOUSE_CONVERSATION_PROMISE_H
#define DOMI_HOUSE_CONVERSATION_PROMISE_H

#include "house/message/manager.h"

#include <domus/receive.h>

typedef struct domi_promise domi_promise;

typedef enum domi_promise_kind {
    DOMI_PROMISE_ASK,
    DOMI_PROMISE_SLEEP,
    DOMI_PROMISE_RECEIVE,
    DOMI_PROMISE_BLOCKING,
} domi_promise_kind;

typedef enum domi_promise_state {
    DOMI_PROMISE_FREE, /* a stack's first one, not in use */
    DOMI_PROMISE_WAITING,
    DOMI_PROMISE_DONE, /* its answer is there, not shown yet */
    DOMI_PROMISE_DEAD, /* nobody wants it, but its node is in the mailbox, or a note */
} domi_promise_state;

struct domi_promise {
    domi_node node;
    _Atomic uint32_t serial;
    uint8_t state;
    uint8_t kind;
    bool queued;        /* its node is in the exception mailbox */
    bool impatient : 1; /* a receive that only looks at what is there */
    bool noted : 1;     /* its node is a note for home (notes.h) */
    bool timed : 1;     /* it is on home's wheel, which a thief may not look at */
    bool uncounted : 1; /* it is no ask, so the `asks` of its house do not include it */
    _Atomic(domus_stack *) stack;
    union {
        domus_answer answer; /* the tag from the start, the error when it fails here */
        struct {             /* while it waits, for those who look; gone when it is done */
            int error;
            const domus_type *asked; /* of an ask */
            uint64_t since_ns;
        } wait;
    };
    domi_promise *next; /* among those that its stack waits for */
    domi_promise *previous;
    domi_wheel_node wheel; /* its time-out, on home's second wheel */
    union {
        domus_address target; /* of an ask, while it is under way */
        struct {              /* of a receive */
            const domus_pattern *pattern;
            domi_promise *next_receive; /* of its house, in the order in which they began */
        };
        void *work;             /* of blocking work: runtime's */
        domi_envelope *message; /* what the answer came in, once done; NULL: none */
    };
};

static_assert(sizeof(domi_promise) == 128, "two cache lines");
static_assert(offsetof(domi_promise, wait.since_ns) == offsetof(domi_promise, answer.payload),
              "the tag stays");

static inline uint32_t domi_promise_serial(const domi_promise *promise)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&promise->serial,
                                memory_order_relaxed);
}

/* Its answer is an error, and shows nothing of what it waited for. */
static inline void domi_promise_error(domi_promise *promise, int error)
{
    promise->answer.error = error;
    promise->answer.type = NULL;
    promise->answer.payload = NULL;
}

static inline bool domi_node_is_promise(const domi_node *node)
{
    return node->slab == DOMI_SLAB_PROMISE || node->slab == DOMI_SLAB_STACK_PROMISE;
}

/* One more thing that `stack`, a pooled one, waits for. NULL without memory. */
domi_promise *domi_promise_new(domi_manager *manager, domus_stack *stack, domi_promise_kind kind);

/* `promise` was just made and is no ask: take it out of the `asks` of its house. Asks are the
 * frequent kind, so they are counted without a look at the kind. */
void domi_promise_uncount(domi_promise *promise);

/* Let it fail with -ETIMEDOUT (a sleep: end) at `deadline_ns`. */
void domi_promise_arm(domi_manager *manager, domi_promise *promise, uint64_t deadline_ns);

/* It fails with `error` (a sleep ends with 0), on a turn of its own. Not one that is queued. */
void domi_promise_fail(domi_manager *manager, domi_promise *promise, int error);

/* Its time is over; called by the second wheel. Home. */
void domi_promise_expire(domi_manager *manager, domi_wheel_node *node);

/* Home: what was noted while its house was away. */
void domi_promise_noted(domi_manager *home, domi_promise *promise);

/* It is done: no longer waited for; `message` (or NULL) is what the answer came in. */
void domi_promise_finish(domi_manager *manager, domi_promise *promise, domi_envelope *message);

/* It is done, and was not queued, and what came of it needs no keeping. */
void domi_promise_close(domi_manager *manager, domi_promise *promise);

/* Nobody wants it any more: take it back without an answer. */
void domi_promise_abandon(domi_manager *manager, domi_promise *promise);

/* Its answer was shown, or it was abandoned: free it, or let its node do so. */
void domi_promise_release(domi_manager *manager, domi_promise *promise);

#endif
