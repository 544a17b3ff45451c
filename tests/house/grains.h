/* A kind of grains on a stepped world, for tests: what its lives did is counted here. */
#ifndef DOMT_GRAINS_H
#define DOMT_GRAINS_H

#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include "house/directory/grain.h"

#include <errno.h>

#define DOMT_GRAIN_MS    UINT64_C(1000000)
#define DOMT_HANDLED_MAX 64

/* Counts of what happened to the grains of the test, and how they are to behave. */
typedef struct domt_grain_books {
    uint32_t made;    /* lives that have begun: calls of `make` that have succeeded */
    uint32_t stopped; /* calls of on_stop */
    uint32_t unmade;  /* calls of `unmake` */
    uint32_t living;  /* of these, lives that have not ended */
    uint32_t most;    /* the most that lived at a time */
    uint32_t handled; /* notices */
    uint32_t numbers[DOMT_HANDLED_MAX]; /* of the notices, in the order in which they came */
    uint32_t lives[DOMT_HANDLED_MAX];   /* which life handled each, from 1 on */
    int make_result, mount_result;      /* what these return */
    int mount_later;                    /* on_mount waits for a sleep, and then fails with this */
    char key[64];                       /* what the last on_mount was told */
    uint32_t answers;                   /* of asks */
    int errors[DOMT_HANDLED_MAX];       /* their errors, in the order in which they came */
    uint32_t answered_by[DOMT_HANDLED_MAX]; /* which life, if there was no error */
} domt_grain_books;

extern domt_grain_books domt_books;
extern domt_world domt_grain_world;
extern domi_grains domt_all_grains;
extern domus_grains domt_carts;
extern domus_address domt_grain_agents[2]; /* on home 0 and 1 */

/* Notices with a number: one that is counted, one that fails, one that is put aside until the next
 * number comes. Asks: one that is answered with the life's number, one that is answered after 100
 * ms, one that is kept. */
extern const domus_type domt_number, domt_failing, domt_aside, domt_which, domt_slow, domt_keeping;

extern const domus_behaviour domt_cart;

/* The kind of `domt_carts`: on home 1, with an idle time of 10 ms. */
extern domus_grain_kind domt_cart_kind;

/* Begin a world with two homes, and open the kind. */
void domt_grains_begin(void);
/* End it, and hold that nothing is left in use and every life has ended. */
void domt_grains_end(void);

/* Let the world settle, or ms of its time pass. */
static inline void domt_grain_settle(void)
{
    domt_settle(&domt_grain_world);
}

static inline void domt_grain_pass(uint64_t ms)
{
    domt_pass(&domt_grain_world, ms * DOMT_GRAIN_MS);
}

/* Send or ask in the name of the agent of a home; nothing else is stepped. */
void domt_grain_send(uint32_t home, const char *key, const domus_type *type, uint32_t number);
int domt_grain_try(uint32_t home, const char *key, const domus_type *type, uint32_t number);
void domt_grain_ask(uint32_t home, const char *key, const domus_type *type);

/* The life that the kind's table leads to now. */
domus_address domt_grain_life(const char *key);

/* Hold that the notices 0, 1, 2 ... came, so many, in this order. */
void domt_grain_came_in_order(uint32_t count);

#endif
