/* A kind of grains in a world whose homes a test steps, with counts of what its lives have done. */
#ifndef DOMT_GRAINS_H
#define DOMT_GRAINS_H

#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include "house/directory/grain.h"

#include <errno.h>

#define DOMT_GRAIN_MS    UINT64_C(1000000)
#define DOMT_HANDLED_MAX 64

/* Counts of what happened to the grains of the test, and settings of how they behave. */
typedef struct domt_grain_books {
    uint32_t made;    /* number of lives that have begun: of calls of `make` that returned 0 */
    uint32_t stopped; /* number of lives whose on_stop was called */
    uint32_t unmade;  /* number of calls of `unmake` */
    uint32_t living;  /* number of lives that have not ended */
    uint32_t most;    /* the most lives that there were at the same time */
    uint32_t handled; /* number of notices that lives have handled */
    /* numbers of the notices, in the order in which they came */
    uint32_t numbers[DOMT_HANDLED_MAX];
    uint32_t lives[DOMT_HANDLED_MAX]; /* number of the life that handled each notice, from 1 on */
    int make_result, mount_result;    /* results that `make` and on_mount shall return */
    /* 0, or the error with which on_mount fails after it has slept */
    int mount_later;
    char key[64];                 /* key of the grain whose on_mount was called last */
    uint32_t answers;             /* number of answers to asks that agents have got */
    int errors[DOMT_HANDLED_MAX]; /* errors of these answers, in the order in which they came */
    /* number of the life that sent each answer; valid if there is no error */
    uint32_t answered_by[DOMT_HANDLED_MAX];
} domt_grain_books;

extern domt_grain_books domt_books;
extern domt_world domt_grain_world;
extern domi_grains domt_all_grains;
extern domus_grains domt_carts;
extern domus_address domt_grain_agents[2]; /* the agents on home 0 and home 1, which send and ask */

/* Types of notices with a number: one that is counted, one that fails, one that is stashed until
 * the next number comes. Types of asks: one that is answered with the life's number, one that is
 * answered after 100 ms, and one that is kept. */
extern const domus_type domt_number, domt_failing, domt_aside, domt_which, domt_slow, domt_keeping;

extern const domus_behaviour domt_cart;

/* The kind of grains `domt_carts`: its lives are on home 1, with an idle time of 10 ms. */
extern domus_grain_kind domt_cart_kind;

/* Begin a world of two homes, and open the kind of grains. */
void domt_grains_begin_world(void);
/* End the world, and check that nothing is left in use and every life has ended. */
void domt_grains_end_world(void);

/* Let the world settle, or let so many ms of its time pass. */
static inline void domt_grains_settle_world(void)
{
    domt_settle_world(&domt_grain_world);
}

static inline void domt_grains_pass_ms(uint64_t ms)
{
    domt_pass_time(&domt_grain_world, ms * DOMT_GRAIN_MS);
}

/* Send to a grain or ask it as the agent of a home, in that agent's turn alone.
 * domt_grain_try_notice() returns the result of the send. */
void domt_grain_send_notice(uint32_t home, const char *key, const domus_type *type,
                            uint32_t number);
int domt_grain_try_notice(uint32_t home, const char *key, const domus_type *type, uint32_t number);
void domt_grain_ask_as_agent(uint32_t home, const char *key, const domus_type *type);

/* Returns the address of the life of this key that the kind's table holds now. */
domus_address domt_grain_address_of_life(const char *key);

/* Check that exactly the notices 0 to count - 1 were handled, in this order. */
void domt_grain_expect_notices_in_order(uint32_t count);

#endif
