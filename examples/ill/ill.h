/* Parts of a service that is ill on purpose: the kind of its illness, whether it was mended, and
 * its workers. */
#ifndef ILL_H
#define ILL_H

#include <domus/domus.h>

#define ILL_WORKERS 16

enum ill_kind { ILL_WELL, ILL_STALLS, ILL_GREEDY, ILL_HOT, ILL_NEAR };

extern struct ill_settings {
    uint32_t kind; /* enum ill_kind */
    bool mended;   /* the work is done in the way that the doctor advises */
} ill_settings;

/* A dispatcher spawns workers, and sends them work every 2 ms. Its initial state: */
struct ill_dispatcher {
    domus_address workers[ILL_WORKERS];
    domus_address ledger;
    uint32_t count;   /* number of workers */
    uint32_t ticks;   /* 0 */
    uint32_t threads; /* number of dispatchers, one on each thread */
    bool has_ledger;  /* one of its workers is the ledger */
};

extern const domus_behaviour ill_dispatcher;

#endif
