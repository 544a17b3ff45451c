/* Parts of an ill service: its kind of illness, whether it was mended, and who does its work. */
#ifndef ILL_H
#define ILL_H

#include <domus/domus.h>

#define ILL_WORKERS 16

enum ill_kind { ILL_WELL, ILL_STALLS, ILL_GREEDY, ILL_HOT, ILL_NEAR };

extern struct ill_settings {
    uint32_t kind; /* enum ill_kind */
    bool mended;   /* the same work is done as the doctor advises */
} ill_settings;

/* A dispatcher has workers, and gives them work each 2 ms. Its first state: */
struct ill_dispatcher {
    domus_address workers[ILL_WORKERS];
    domus_address ledger;
    uint32_t count;   /* of the workers */
    uint32_t ticks;   /* 0 */
    uint32_t threads; /* dispatchers of the service, one on each thread */
    bool has_ledger;  /* one of its workers is the ledger */
};

extern const domus_behaviour ill_dispatcher;

#endif
