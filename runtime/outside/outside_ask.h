/* Asks of foreign threads, which wait for the answer. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_ASK_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_ASK_H

#include "house/conversation/promise.h"
#include "runtime/system/system.h"

/* An ask; on the stack of the thread that asks. Under outside_mutex. */
struct domi_asking {
    domi_asking *next;          /* the next ask that waits */
    domi_asking *previous;      /* the ask that waits before it */
    domi_promise *promise;      /* gets the answer */
    pthread_cond_t woken;       /* signalled when the answer is there, or the thread has to lead */
    domus_outside_reply *reply; /* the caller's; gets the answer */
    uint64_t until_ns;          /* the end of the wait */
    int result;                 /* 0, or a negative errno */
    bool sleeps; /* the asking thread sleeps on `woken`, so it may become the leader */
    bool done;   /* the answer is there, or the ask was ended */
};

/* The receiver of an ask of a foreign thread: the actor at `address`, or a grain. */
typedef struct domi_asked {
    domus_address address;
    bool is_grain;
    domus_grains grains;
    const char *key;
} domi_asked;

/* Send the ask and return. Called between enter and leave. Everything that the payload owns is
 * consumed in every case. If this returns 0, domi_asking_wait() has to follow. */
int domi_asking_begin(domus_system *system, domi_asking *asking, domus_address to,
                      const domus_type *type, const void *payload, uint64_t timeout_ns,
                      domus_outside_reply *reply);

/* Do the same as domi_asking_begin(), also for grains. */
int domi_asking_begin_by(domus_system *system, domi_asking *asking, const domi_asked *asked,
                         const domus_type *type, const void *payload, uint64_t timeout_ns,
                         domus_outside_reply *reply);

/* Do the same as domus_outside_ask(), also for grains. Any thread. */
int domi_outside_ask(domus_system *system, const domi_asked *asked, const domus_type *type,
                     const void *payload, uint64_t timeout_ns, domus_outside_reply *reply);

/* Wait for the answer. Called between enter and leave; other foreign threads can
 * enter meanwhile. */
int domi_asking_wait(domus_system *system, domi_asking *asking);

/* End all asks of foreign threads with -ESHUTDOWN. Returns when all of these threads have left. */
void domi_outside_close(domus_system *system);

#endif
