/* Asks of foreign threads, which wait for their answers. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_ASK_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_ASK_H

#include "house/conversation/promise.h"
#include "runtime/system/system.h"

/* An ask under way, on the stack of the foreign thread that asks. Protected by outside_mutex. */
struct domi_asking {
    domi_asking *next;     /* next ask in the list of waiting asks */
    domi_asking *previous; /* previous ask in the list of waiting asks */
    domi_promise *promise; /* promise that the answer completes */
    /* signalled when the answer has come, or the thread has to become the leader */
    pthread_cond_t woken;
    domus_outside_reply *reply; /* buffer of the caller for the answer */
    uint64_t until_ns;          /* time at which the thread stops waiting */
    int result;                 /* result of the ask: 0, or a negative errno */
    bool sleeps; /* the asking thread sleeps on `woken`, so it may become the leader */
    bool done;   /* the answer has come, or the ask has failed */
};

/* Receiver of a foreign thread's ask: the actor at `address`, or a grain. */
typedef struct domi_asked {
    domus_address address;
    bool is_grain;
    domus_grains grains;
    const char *key;
} domi_asked;

/* Send an ask and return at once. Called between domi_outside_enter() and domi_outside_leave().
 * The call consumes
 * what the payload owns in every case. After a return of 0 the caller has to call
 * domi_asking_wait(). */
int domi_asking_begin(domus_system *system, domi_asking *asking, domus_address to,
                      const domus_type *type, const void *payload, uint64_t timeout_ns,
                      domus_outside_reply *reply);

/* Do the same as domi_asking_begin(), also for grains. */
int domi_asking_begin_to(domus_system *system, domi_asking *asking, const domi_asked *asked,
                         const domus_type *type, const void *payload, uint64_t timeout_ns,
                         domus_outside_reply *reply);

/* Do the same as domus_outside_ask(), also for grains. Any thread. */
int domi_outside_ask(domus_system *system, const domi_asked *asked, const domus_type *type,
                     const void *payload, uint64_t timeout_ns, domus_outside_reply *reply);

/* Wait for the answer of an ask. Called between domi_outside_enter() and domi_outside_leave();
 * other foreign threads can enter meanwhile. Returns the result of the ask. */
int domi_asking_wait(domus_system *system, domi_asking *asking);

/* Fail all asks of foreign threads with -ESHUTDOWN, and wait until all asking threads have left. */
void domi_outside_close(domus_system *system);

#endif
