/* The orders that park and put rely on, as two threads on two CPUs meet them (duel.h).
 *
 * First come bare shapes with the orders of the code, then the code itself. The same with release
 * and acquire only is counted: there both may miss, which is why the code does more. */
#include "house/message/mailbox.h"
#include "tests/house/duel.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <stdatomic.h>

/* --- bare shapes ------------------------------------------------------------------------------ */

struct words {
    alignas(DOMI_LINES) _Atomic uint32_t park;
    alignas(DOMI_LINES) _Atomic uint32_t list;
    alignas(DOMI_LINES) bool left_saw;
    alignas(DOMI_LINES) bool right_saw;
};

/* A round takes many, one after another: the threads drift past each other in it. */
#define CELLS 32u

struct shape {
    void (*halves[2])(struct words *words);
    struct words cells[CELLS];
};

static void act_left(void *context)
{
    struct shape *shape = context;

    for (uint32_t i = 0; i < CELLS; i++)
        shape->halves[DOMT_LEFT](&shape->cells[i]);
}

static void act_right(void *context)
{
    struct shape *shape = context;

    for (uint32_t i = 0; i < CELLS; i++)
        shape->halves[DOMT_RIGHT](&shape->cells[i]);
}

static uint32_t shape_both_missed(void *context)
{
    struct shape *shape = context;
    uint32_t missed = 0;

    for (uint32_t i = 0; i < CELLS; i++) {
        struct words *words = &shape->cells[i];
        missed += !words->left_saw && !words->right_saw;
        atomic_store_explicit(&words->park, 0, memory_order_relaxed);
        atomic_store_explicit(&words->list, 0, memory_order_relaxed);
    }
    return missed;
}

static uint64_t hold_shape(const char *name, void (*left)(struct words *words),
                           void (*right)(struct words *words))
{
    static struct shape shape;
    const domt_duel duel = {{act_left, act_right}, shape_both_missed, &shape};

    shape.halves[DOMT_LEFT] = left;
    shape.halves[DOMT_RIGHT] = right;
    return domt_duel_hold(name, &duel);
}

static void park_by_exchange(struct words *words)
{
    atomic_exchange_explicit(&words->park, DOMI_PARK_SLEEPING, memory_order_seq_cst);
    words->left_saw = atomic_load_explicit(&words->list, memory_order_seq_cst) != 0;
}

static void park_by_store(struct words *words)
{
    atomic_store_explicit(&words->park, DOMI_PARK_SLEEPING, memory_order_release);
    words->left_saw = atomic_load_explicit(&words->list, memory_order_acquire) != 0;
}

/* A link into the arrivals, a return of a loan, the name of who is woken to steal. */
static void put_by_exchange(struct words *words)
{
    uint32_t none = 0;

    (void)atomic_compare_exchange_strong_explicit(&words->list, &none, 1, memory_order_seq_cst,
                                                  memory_order_relaxed);
    words->right_saw = atomic_load_explicit(&words->park, memory_order_seq_cst) != 0;
}

/* A system publishes in this way what it wants of its threads. */
static void put_by_seq_cst_store(struct words *words)
{
    atomic_store_explicit(&words->list, 1, memory_order_seq_cst);
    words->right_saw = atomic_load_explicit(&words->park, memory_order_seq_cst) != 0;
}

static void put_by_store(struct words *words)
{
    atomic_store_explicit(&words->list, 1, memory_order_release);
    words->right_saw = atomic_load_explicit(&words->park, memory_order_acquire) != 0;
}

DOMT_TEST(exchange_to_sleep_and_put_never_both_miss)
{
    ck_assert_uint_eq(hold_shape("exchange, compare-exchange", park_by_exchange, put_by_exchange),
                      0);
}

DOMT_TEST(exchange_to_sleep_and_seq_cst_store_never_both_miss)
{
    ck_assert_uint_eq(hold_shape("exchange, seq_cst store", park_by_exchange, put_by_seq_cst_store),
                      0);
}

/* Allowed, and on x86 seen when two CPUs are free; on others and in a crowd perhaps not. */
DOMT_TEST(release_and_acquire_may_both_miss)
{
    (void)hold_shape("release, acquire", park_by_store, put_by_store);
}

/* --- the code --------------------------------------------------------------------------------- */

struct play {
    domt_world world;
    domi_manager *home;
    domus_address actor;
    uint64_t put;      /* by the right side; before that, in the second play, by the left */
    uint64_t received; /* in order */
    bool saw;
    uint32_t wakes; /* before the round */
    uint64_t lost;
};

static struct play stage;

static const domus_type number_type = {.name = "number", .size = sizeof(uint64_t)};

static int take_number(domus_stack *stack, void *self, const void *number)
{
    stage.lost += *(const uint64_t *)number != ++stage.received;
    return 0;
}

static const domus_behaviour counter = {
    .name = "counter",
    .on = (const domus_on[]){{&number_type, take_number, 0}, {NULL, NULL, 0}},
};

static void put_number(struct play *play)
{
    uint64_t number = play->put + 1;

    domi_manager_own(domt_outside(&play->world)); /* both sides put, but not at a time */
    play->put += domt_notice(domt_outside(&play->world), play->actor, &number_type, &number) == 0;
}

static void play_put(void *context)
{
    put_number(context);
}

static void play_open(void)
{
    domt_world_open(&stage.world, 1);
    stage.home = stage.world.managers[0];
    stage.actor = domt_spawn(domt_outside(&stage.world), stage.home, &counter, NULL);
    domt_settle(&stage.world);
}

static void play_end(void)
{
    ck_assert_uint_gt(stage.put, 0);
    ck_assert_uint_eq(stage.received, stage.put);
    ck_assert_uint_eq(stage.lost, 0);
    domt_world_end(&stage.world);
}

/* This side parks as fall_asleep() does. */
static void play_park(void *context)
{
    struct play *play = context;

    atomic_exchange_explicit(&play->home->park, DOMI_PARK_SLEEPING, memory_order_seq_cst);
    play->saw = domi_manager_has_work(play->home);
}

static uint32_t play_both_missed(void *context)
{
    struct play *play = context;
    bool missed = !play->saw && play->world.wakes[0] == play->wakes;

    play->wakes = play->world.wakes[0];
    atomic_exchange_explicit(&play->home->park, DOMI_PARK_RUNNING, memory_order_seq_cst);
    domt_settle(&play->world);
    return missed;
}

DOMT_TEST(thread_that_parks_and_sender_never_both_miss)
{
    const domt_duel duel = {{play_park, play_put}, play_both_missed, &stage};

    play_open();
    ck_assert_uint_eq(domt_duel_hold("park, put", &duel), 0);
    play_end();
}

static void play_sort(void *context)
{
    struct play *play = context;

    (void)domi_manager_take_arrivals(play->home);
}

/* One that was there before the round, and one that came while the first was taken. */
static uint32_t play_lost_one(void *context)
{
    struct play *play = context;

    domt_settle(&play->world);
    bool lost = play->received != play->put;
    put_number(play);
    return lost;
}

DOMT_TEST(put_while_the_inbox_is_taken_is_not_lost)
{
    const domt_duel duel = {{play_sort, play_put}, play_lost_one, &stage};

    play_open();
    put_number(&stage);
    ck_assert_uint_eq(domt_duel_hold("put, sort", &duel), 0);
    domt_settle(&stage.world);
    play_end();
}

DOMT_SUITE(120)
