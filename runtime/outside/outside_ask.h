/* Asks of foreign threads, which wait until their asks are answered. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_ASK_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_ASK_H

#include "house/conversation/promise.h"
#include "runtime/system/system.h"

/* An ask of a foreign thread that is under way; it lies on that thread's stack. Protected by
 * outside_mutex. */
struct domi_asking {
    domi_asking *next;     /* next ask in the outside's list of asks under way */
    domi_asking *previous; /* previous ask in the outside's list of asks under way */
    domi_promise *promise; /* promise that the answer of the ask completes */
    /* signalled when the answer has come, or the asking thread has to become the leader */
    pthread_cond_t woken;
    domus_outside_reply *reply; /* buffer in which the asking thread wants the answer; NULL: none */
    uint64_t until_ns;          /* time at which the asking thread stops waiting, in nanoseconds */
    /* result of the ask for the asking thread: 0, or a negative errno */
    int result;
    /* true: the asking thread sleeps on `woken`, so it may be woken to become the leader */
    bool sleeps;
    bool done; /* true: the answer has come, or the ask has failed */
};

/* The receiver of a foreign thread's ask: the actor at `address`, or a grain. */
typedef struct domi_asked {
    domus_address address;
    bool is_grain;
    domus_grains grains;
    const char *key;
} domi_asked;

/* Send an ask of a foreign thread and return at once. Called between domi_outside_enter() and
 * domi_outside_leave(). The call consumes what the payload owns in every case. After a return of 0
 * the caller has to call domi_asking_wait_for_answer(). */
int domi_asking_begin_ask_to_actor(domus_system *system, domi_asking *asking, domus_address to,
                                   const domus_type *type, const void *payload, uint64_t timeout_ns,
                                   domus_outside_reply *reply);

/* Send an ask and return at once, as domi_asking_begin_ask_to_actor() does, but to an actor or a
 * grain.
 */
int domi_asking_begin_ask_to_actor_or_grain(domus_system *system, domi_asking *asking,
                                            const domi_asked *asked, const domus_type *type,
                                            const void *payload, uint64_t timeout_ns,
                                            domus_outside_reply *reply);

/* Ask and wait for the answer, as domus_outside_ask() does, but an actor or a grain. Any thread. */
int domi_outside_ask_actor_or_grain(domus_system *system, const domi_asked *asked,
                                    const domus_type *type, const void *payload,
                                    uint64_t timeout_ns, domus_outside_reply *reply);

/* Wait for the answer of an ask that was sent. Called between domi_outside_enter() and
 * domi_outside_leave(); other foreign threads can enter meanwhile. Returns the result of the
 * ask. */
int domi_asking_wait_for_answer(domus_system *system, domi_asking *asking);

/* Fail all asks of foreign threads with -ESHUTDOWN, and wait until all asking threads have left. */
void domi_outside_fail_all_asks(domus_system *system);

#endif
