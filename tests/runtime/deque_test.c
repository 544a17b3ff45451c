/* The deque of Chase and Lev alone: the order in which items come out, growth and its failure, and
 * an owner that pushes and takes while thieves steal: no item is lost or comes twice.
 *
 * Most of these races are between the last few items, so the deque is short most of the time. An
 * item is a number, and has a counter of how often it was taken. */
#include "base/memory.h"
#include "base/random.h"
#include "runtime/policies/chase_lev.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

static void *make_item(uintptr_t number)
{
    return (void *)(number + 1); /* item 0 must not be NULL, which means no item */
}

static void make_deque(domi_chase_lev *deque)
{
    ck_assert_int_eq(domi_chase_lev_init(deque), 0);
}

static void push_numbers(domi_chase_lev *deque, uintptr_t first, uintptr_t end)
{
    for (uintptr_t i = first; i < end; i++)
        ck_assert(domi_chase_lev_push(deque, make_item(i)));
}

/* --- Chase and Lev: one thread ---------------------------------------------------------------- */

DOMT_TEST(the_owner_takes_the_newest_and_a_thief_steals_the_oldest)
{
    domi_chase_lev deque;

    make_deque(&deque);
    ck_assert(domi_chase_lev_is_empty(&deque));
    ck_assert_ptr_null(domi_chase_lev_take(&deque));
    ck_assert_ptr_null(domi_chase_lev_steal(&deque));
    for (int round = 0; round < 1000; round++) { /* go round the buffer many times */
        push_numbers(&deque, 0, 5);
        ck_assert_ptr_eq(domi_chase_lev_take(&deque), make_item(4));
        ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(0));
        ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(1));
        ck_assert_ptr_eq(domi_chase_lev_take(&deque), make_item(3));
        ck_assert(!domi_chase_lev_is_empty(&deque));
        ck_assert_ptr_eq(round % 2 == 0 ? domi_chase_lev_take(&deque)
                                        : domi_chase_lev_steal(&deque),
                         make_item(2));
        ck_assert(domi_chase_lev_is_empty(&deque));
        ck_assert_ptr_null(domi_chase_lev_take(&deque));
        ck_assert_ptr_null(domi_chase_lev_steal(&deque));
    }
    domi_chase_lev_fini(&deque);
}

DOMT_TEST(a_thief_gets_the_older_half_in_its_order)
{
    domi_chase_lev deque;
    domi_chase_lev own;

    make_deque(&deque);
    make_deque(&own);
    for (uint32_t items = 0; items <= 2 * DOMI_CHASE_LEV_START - 2; items++) {
        uint32_t half = (items + 1) / 2;
        uint32_t count = 0;
        push_numbers(&deque, 0, items);
        ck_assert_ptr_eq(domi_chase_lev_steal_half(&deque, &own, &count),
                         items == 0 ? NULL : make_item(0));
        ck_assert_uint_eq(count, half);
        for (uint32_t i = half; i-- > 1;)
            ck_assert_ptr_eq(domi_chase_lev_take(&own), make_item(i));
        ck_assert_ptr_null(domi_chase_lev_take(&own));
        for (uint32_t i = items; i-- > half;)
            ck_assert_ptr_eq(domi_chase_lev_take(&deque), make_item(i));
        ck_assert_ptr_null(domi_chase_lev_take(&deque));
    }
    domi_chase_lev_fini(&deque);
    domi_chase_lev_fini(&own);
}

DOMT_TEST(a_thief_steals_no_more_than_it_has_slots_for)
{
    domi_chase_lev deque;
    domi_chase_lev own;
    uint32_t count = 0;

    make_deque(&deque);
    make_deque(&own);
    push_numbers(&deque, 0, 10000);
    ck_assert_ptr_eq(domi_chase_lev_steal_half(&deque, &own, &count), make_item(0));
    ck_assert_uint_eq(count, DOMI_CHASE_LEV_START + 1);
    ck_assert_ptr_eq(domi_chase_lev_steal_half(&deque, &own, &count),
                     make_item(DOMI_CHASE_LEV_START + 1));
    ck_assert_uint_eq(count, 1); /* the rounds have lost no slot */
    for (uintptr_t i = 1; i <= DOMI_CHASE_LEV_START; i++)
        ck_assert_ptr_eq(domi_chase_lev_steal(&own), make_item(i));
    ck_assert_ptr_null(domi_chase_lev_steal(&own));
    ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(DOMI_CHASE_LEV_START + 2));
    domi_chase_lev_fini(&deque);
    domi_chase_lev_fini(&own);
}

DOMT_TEST(a_deque_grows_up_to_its_bound)
{
    domi_chase_lev deque;

    make_deque(&deque);
    for (uintptr_t i = 0; i < 100; i++) { /* the items do not begin at the first slot */
        push_numbers(&deque, i, i + 1);
        ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(i));
    }
    push_numbers(&deque, 0, DOMI_CHASE_LEV_MOST);
    ck_assert(!domi_chase_lev_push(&deque, make_item(0)));
    ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(0));
    ck_assert(domi_chase_lev_push(&deque, make_item(DOMI_CHASE_LEV_MOST)));
    for (uintptr_t i = 1; i < DOMI_CHASE_LEV_MOST / 2; i++)
        ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(i));
    for (uintptr_t i = DOMI_CHASE_LEV_MOST; i >= DOMI_CHASE_LEV_MOST / 2; i--)
        ck_assert_ptr_eq(domi_chase_lev_take(&deque), make_item(i));
    ck_assert(domi_chase_lev_is_empty(&deque));
    domi_chase_lev_fini(&deque);
}

DOMT_TEST(a_deque_without_memory_to_grow_loses_nothing)
{
    domi_chase_lev deque;

    domi_memory_fail_after(0, 0);
    ck_assert_int_lt(domi_chase_lev_init(&deque), 0);
    make_deque(&deque);
    push_numbers(&deque, 0, DOMI_CHASE_LEV_START);
    domi_memory_fail_after(0, 1);
    ck_assert(!domi_chase_lev_push(&deque, make_item(DOMI_CHASE_LEV_START)));
    ck_assert(!domi_chase_lev_push(&deque, make_item(DOMI_CHASE_LEV_START)));
    domi_memory_fail_after(-1, 0);
    push_numbers(&deque, DOMI_CHASE_LEV_START, 1000);
    for (uintptr_t i = 0; i < 500; i++)
        ck_assert_ptr_eq(domi_chase_lev_steal(&deque), make_item(i));
    for (uintptr_t i = 1000; i-- > 500;)
        ck_assert_ptr_eq(domi_chase_lev_take(&deque), make_item(i));
    ck_assert(domi_chase_lev_is_empty(&deque));
    domi_chase_lev_fini(&deque);
}

/* --- Chase and Lev: an owner and thieves ------------------------------------------------------ */

#define THIEVES_MOST 3

struct raid {
    domi_chase_lev deques[1 + THIEVES_MOST]; /* the deque of the owner, and one of each thief */
    uint32_t thieves;
    uint32_t burst; /* most items that the owner pushes at once */
    bool halves;    /* thieves steal half of a deque, also from each other; false: one item */
    uint32_t items;
    _Atomic uint8_t *taken; /* how often each item was taken */
    _Atomic uint32_t begun; /* number of thieves that have begun */
    _Atomic bool over;
};

static void *take_all(struct raid *raid, domi_chase_lev *deque, uint32_t most)
{
    void *taken = NULL;

    for (uint32_t i = 0; i < most && (taken = domi_chase_lev_take(deque)) != NULL; i++)
        atomic_fetch_add_explicit(&raid->taken[(uintptr_t)taken - 1], 1, memory_order_relaxed);
    return taken;
}

static void *steal_some(struct raid *raid, uint32_t number, uint32_t victim)
{
    domi_chase_lev *own = &raid->deques[number];
    uint32_t count = 1;
    void *stolen = raid->halves ? domi_chase_lev_steal_half(&raid->deques[victim], own, &count)
                                : domi_chase_lev_steal(&raid->deques[victim]);

    if (stolen != NULL)
        atomic_fetch_add_explicit(&raid->taken[(uintptr_t)stolen - 1], 1, memory_order_relaxed);
    return stolen;
}

typedef struct thief {
    struct raid *raid;
    uint32_t number;
    pthread_t thread;
} thief;

static void *run_thief(void *context)
{
    const thief *self = context;
    struct raid *raid = self->raid;
    domi_random random;

    domi_random_init(&random, self->number);
    atomic_fetch_add(&raid->begun, 1);
    while (!atomic_load(&raid->over)) {
        uint32_t victim =
            raid->halves ? (uint32_t)domi_random_below(&random, raid->thieves + 1) : 0;
        if (victim != self->number)
            (void)steal_some(raid, self->number, victim);
        /* The rest of the items is left to other thieves. */
        take_all(raid, &raid->deques[self->number], (uint32_t)domi_random_below(&random, 3));
    }
    take_all(raid, &raid->deques[self->number], UINT32_MAX);
    return NULL;
}

static void run_owner(struct raid *raid)
{
    domi_chase_lev *own = &raid->deques[0];
    domi_random random;
    uint32_t next = 0;

    domi_random_init(&random, 99);
    while (next < raid->items) {
        for (uint64_t n = domi_random_below(&random, raid->burst) + 1; n > 0; n--)
            if (next < raid->items)
                next += domi_chase_lev_push(own, make_item(next));
        take_all(raid, own, (uint32_t)domi_random_below(&random, raid->burst) + 1);
        if (next % 4096 == 0)
            sched_yield(); /* with few CPUs, thieves must get a chance to run in between */
    }
    take_all(raid, own, UINT32_MAX);
}

static bool no_growth; /* allocations of the owner fail in the next raids */

/* Let an owner push all items and take what it gets, while thieves steal. */
static void check_raid_of(uint32_t items, uint32_t thieves, uint32_t burst, bool halves)
{
    static struct raid raid;
    thief crew[THIEVES_MOST];
    uint32_t wrong = 0;

    raid = (struct raid){.thieves = thieves, .burst = burst, .halves = halves};
    raid.items = items;
    raid.taken = calloc(raid.items, sizeof *raid.taken);
    ck_assert_ptr_nonnull(raid.taken);
    for (uint32_t i = 0; i <= thieves; i++)
        make_deque(&raid.deques[i]);
    for (uint32_t i = 0; i < thieves; i++) {
        crew[i] = (thief){.raid = &raid, .number = i + 1};
        ck_assert_int_eq(pthread_create(&crew[i].thread, NULL, run_thief, &crew[i]), 0);
    }
    while (atomic_load(&raid.begun) < thieves)
        sched_yield();
    domi_memory_fail_after(no_growth ? 0 : -1, 1);
    run_owner(&raid);
    domi_memory_fail_after(-1, 0);
    atomic_store(&raid.over, true);
    for (uint32_t i = 0; i < thieves; i++)
        pthread_join(crew[i].thread, NULL);
    for (uint32_t i = 0; i <= thieves; i++) {
        /* a thief may have stolen from another one that had ended */
        take_all(&raid, &raid.deques[i], UINT32_MAX);
        ck_assert(domi_chase_lev_is_empty(&raid.deques[i]));
        domi_chase_lev_fini(&raid.deques[i]);
    }
    for (uint32_t i = 0; i < raid.items; i++)
        wrong += raid.taken[i] != 1;
    ck_assert_uint_eq(wrong, 0);
    free(raid.taken);
}

static void check_raid(uint32_t thieves, uint32_t burst, bool halves)
{
    check_raid_of(domt_more_if_long(DOMT_SCALE(200000, 15000)), thieves, burst, halves);
}

DOMT_TEST(an_item_is_taken_once_by_the_owner_or_a_thief)
{
    for (uint32_t thieves = 1; thieves <= THIEVES_MOST; thieves++)
        for (uint32_t burst = 1; burst <= 3; burst++)
            check_raid(thieves, burst, false);
}

DOMT_TEST(an_item_is_taken_once_though_thieves_take_half)
{
    for (uint32_t thieves = 1; thieves <= THIEVES_MOST; thieves++)
        for (uint32_t burst = 2; burst <= 8; burst += 3)
            check_raid(thieves, burst, true);
}

DOMT_TEST(an_item_is_taken_once_while_the_deque_grows)
{
    for (uint32_t thieves = 1; thieves <= THIEVES_MOST; thieves++) {
        check_raid(thieves, 5000, false);
        check_raid(thieves, 5000, true);
    }
}

/* Each raid begins with the smallest buffer, so that thieves read many buffers that are
 * replaced. */
DOMT_TEST(an_item_is_taken_once_from_a_buffer_that_is_replaced)
{
    uint32_t raids = domt_more_if_long(DOMT_SCALE(100, 20));

    for (uint32_t i = 0; i < raids; i++)
        check_raid_of(10000, 1 + i % 2, 5000, i % 4 < 2);
}

/* The slot of each item that is stolen is used again at once. */
DOMT_TEST(an_item_is_taken_once_from_a_full_deque_that_cannot_grow)
{
    for (uint32_t thieves = 1; thieves <= 2; thieves++) {
        no_growth = true;
        check_raid(thieves, 1000, false);
        check_raid(thieves, 1000, true);
        no_growth = false;
    }
}

/* --- a push and a look before sleep ----------------------------------------------------------- */

/* Deques of a round, used one after another, because the threads drift apart meanwhile. */
#define CELLS 32u

struct duel {
    domi_chase_lev deques[CELLS];
    _Atomic uint32_t sleepers[CELLS];
    bool pusher_saw[CELLS];
    bool sleeper_saw[CELLS];
    _Atomic uint32_t arrived; /* how many times a thread has come to the barrier */
    uint32_t rounds;
};

/* Wait at the barrier for the other thread, for the `time`-th time. */
static void meet_at_barrier(struct duel *duel, uint32_t time)
{
    uint32_t looks = 0;

    atomic_fetch_add(&duel->arrived, 1);
    while (atomic_load(&duel->arrived) < 2 * time)
        if (++looks % 1000 == 0)
            sched_yield();
}

/* Do what a runner does that is about to sleep. */
static void *run_sleeper(void *context)
{
    struct duel *duel = context;

    for (uint32_t round = 0; round < duel->rounds; round++) {
        meet_at_barrier(duel, 2 * round + 1);
        for (uint32_t i = 0; i < CELLS; i++) {
            atomic_fetch_add_explicit(&duel->sleepers[i], 1, memory_order_seq_cst);
            duel->sleeper_saw[i] = !domi_chase_lev_is_empty(&duel->deques[i]);
        }
        meet_at_barrier(duel, 2 * round + 2);
    }
    return NULL;
}

/* Do what a runner does that puts a job and looks for a sleeping runner. Returns how often both
 * missed each other. */
static uint32_t run_pusher(struct duel *duel)
{
    uint32_t missed = 0;

    for (uint32_t round = 0; round < duel->rounds; round++) {
        for (uint32_t i = 0; i < CELLS; i++) {
            (void)domi_chase_lev_take(&duel->deques[i]);
            atomic_store(&duel->sleepers[i], 0);
        }
        meet_at_barrier(duel, 2 * round + 1);
        for (uint32_t i = 0; i < CELLS; i++) {
            (void)domi_chase_lev_push(&duel->deques[i], make_item(i));
            duel->pusher_saw[i] =
                atomic_load_explicit(&duel->sleepers[i], memory_order_seq_cst) != 0;
        }
        meet_at_barrier(duel, 2 * round + 2);
        for (uint32_t i = 0; i < CELLS; i++)
            missed += !duel->pusher_saw[i] && !duel->sleeper_saw[i];
    }
    return missed;
}

/* A weaker store in a push is seen here only when two CPUs are free (tests/house/litmus_test.c). */
DOMT_TEST(a_push_and_a_look_before_sleep_never_both_miss)
{
    static struct duel duel = {.rounds = DOMT_SCALE(30000, 3000)};
    pthread_t sleeper;

    for (uint32_t i = 0; i < CELLS; i++)
        make_deque(&duel.deques[i]);
    ck_assert_int_eq(pthread_create(&sleeper, NULL, run_sleeper, &duel), 0);
    uint32_t missed = run_pusher(&duel);
    pthread_join(sleeper, NULL);
    for (uint32_t i = 0; i < CELLS; i++)
        domi_chase_lev_fini(&duel.deques[i]);
    ck_assert_uint_eq(missed, 0);
}

DOMT_SUITE(120)
