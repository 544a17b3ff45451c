/* Parts of a service that is ill on purpose: the kind of its illness, whether it was mended, and
 * its workers. */
#ifndef ILL_H
#define ILL_H

#include <domus/domus.h>

#define ILL_WORKERS 16

enum ill_kind { ILL_WELL, ILL_STALLS, ILL_GREEDY, ILL_HOT, ILL_NEAR };

extern struct ill_settings {
    uint32_t kind; /* the kind of the illness, one of enum ill_kind */
    bool mended;   /* whether the work is done in the way that the doctor advises */
} ill_settings;

/* The state with which a dispatcher begins. It spawns workers, and sends them work every 2 ms. */
struct ill_dispatcher {
    domus_address workers[ILL_WORKERS];
    domus_address ledger;
    uint32_t count;   /* number of the dispatcher's workers */
    uint32_t ticks;   /* 0 */
    uint32_t threads; /* number of threads, each of which has one dispatcher */
    bool has_ledger;  /* whether one of the dispatcher's workers is the ledger */
};

extern const domus_behaviour ill_dispatcher;

#endif
