/* The deque of Chase and Lev (runtime/policies/chase_lev.h) by itself: the order of its items,
 * growth and its failure, and an owner that pushes and takes while thieves steal, so that no item
 * gets lost or comes twice. Most of these races are about the last few items, so the deque is short
 * most of the time.
 *
 * An item is a number, and has a count of how often it was taken. */
#include "base/memory.h"
#include "base/random.h"
#include "runtime/policies/chase_lev.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

static void *pointer_of_number(uintptr_t number)
{
    return (void *)(number + 1); /* number 0 must not become NULL, which stands for no item */
}

static void make_empty_deque(domi_chase_lev *deque)
{
    ck_assert_int_eq(domi_chase_lev_init(deque), 0);
}

static void push_numbers_to_deque(domi_chase_lev *deque, uintptr_t first, uintptr_t end)
{
    for (uintptr_t i = first; i < end; i++)
        ck_assert(domi_chase_lev_push_item(deque, pointer_of_number(i)));
}

/* --- Chase and Lev: one thread ---------------------------------------------------------------- */

DOMT_TEST(the_owner_takes_the_newest_and_a_thief_steals_the_oldest)
{
    domi_chase_lev deque;

    make_empty_deque(&deque);
    ck_assert(domi_chase_lev_is_empty(&deque));
    ck_assert_ptr_null(domi_chase_lev_take_newest_item(&deque));
    ck_assert_ptr_null(domi_chase_lev_steal_oldest_item(&deque));
    /* push and take so often that the deque goes round its buffer many times */
    for (int round = 0; round < 1000; round++) {
        push_numbers_to_deque(&deque, 0, 5);
        ck_assert_ptr_eq(domi_chase_lev_take_newest_item(&deque), pointer_of_number(4));
        ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque), pointer_of_number(0));
        ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque), pointer_of_number(1));
        ck_assert_ptr_eq(domi_chase_lev_take_newest_item(&deque), pointer_of_number(3));
        ck_assert(!domi_chase_lev_is_empty(&deque));
        ck_assert_ptr_eq(round % 2 == 0 ? domi_chase_lev_take_newest_item(&deque)
                                        : domi_chase_lev_steal_oldest_item(&deque),
                         pointer_of_number(2));
        ck_assert(domi_chase_lev_is_empty(&deque));
        ck_assert_ptr_null(domi_chase_lev_take_newest_item(&deque));
        ck_assert_ptr_null(domi_chase_lev_steal_oldest_item(&deque));
    }
    domi_chase_lev_fini(&deque);
}

DOMT_TEST(a_thief_gets_the_older_half_in_its_order)
{
    domi_chase_lev deque;
    domi_chase_lev own;

    make_empty_deque(&deque);
    make_empty_deque(&own);
    for (uint32_t items = 0; items <= 2 * DOMI_CHASE_LEV_START - 2; items++) {
        uint32_t half = (items + 1) / 2;
        uint32_t count = 0;
        push_numbers_to_deque(&deque, 0, items);
        ck_assert_ptr_eq(domi_chase_lev_steal_half_of_items(&deque, &own, &count),
                         items == 0 ? NULL : pointer_of_number(0));
        ck_assert_uint_eq(count, half);
        for (uint32_t i = half; i-- > 1;)
            ck_assert_ptr_eq(domi_chase_lev_take_newest_item(&own), pointer_of_number(i));
        ck_assert_ptr_null(domi_chase_lev_take_newest_item(&own));
        for (uint32_t i = items; i-- > half;)
            ck_assert_ptr_eq(domi_chase_lev_take_newest_item(&deque), pointer_of_number(i));
        ck_assert_ptr_null(domi_chase_lev_take_newest_item(&deque));
    }
    domi_chase_lev_fini(&deque);
    domi_chase_lev_fini(&own);
}

DOMT_TEST(a_thief_steals_no_more_than_it_has_slots_for)
{
    domi_chase_lev deque;
    domi_chase_lev own;
    uint32_t count = 0;

    make_empty_deque(&deque);
    make_empty_deque(&own);
    push_numbers_to_deque(&deque, 0, 10000);
    ck_assert_ptr_eq(domi_chase_lev_steal_half_of_items(&deque, &own, &count),
                     pointer_of_number(0));
    ck_assert_uint_eq(count, DOMI_CHASE_LEV_START + 1);
    ck_assert_ptr_eq(domi_chase_lev_steal_half_of_items(&deque, &own, &count),
                     pointer_of_number(DOMI_CHASE_LEV_START + 1));
    ck_assert_uint_eq(count, 1); /* the deque still has all its slots after these rounds */
    for (uintptr_t i = 1; i <= DOMI_CHASE_LEV_START; i++)
        ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&own), pointer_of_number(i));
    ck_assert_ptr_null(domi_chase_lev_steal_oldest_item(&own));
    ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque),
                     pointer_of_number(DOMI_CHASE_LEV_START + 2));
    domi_chase_lev_fini(&deque);
    domi_chase_lev_fini(&own);
}

DOMT_TEST(a_deque_grows_up_to_its_bound)
{
    domi_chase_lev deque;

    make_empty_deque(&deque);
    /* the 100 items that the grown buffer has to hold do not begin at its first slot */
    for (uintptr_t i = 0; i < 100; i++) {
        push_numbers_to_deque(&deque, i, i + 1);
        ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque), pointer_of_number(i));
    }
    push_numbers_to_deque(&deque, 0, DOMI_CHASE_LEV_MOST);
    ck_assert(!domi_chase_lev_push_item(&deque, pointer_of_number(0)));
    ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque), pointer_of_number(0));
    ck_assert(domi_chase_lev_push_item(&deque, pointer_of_number(DOMI_CHASE_LEV_MOST)));
    for (uintptr_t i = 1; i < DOMI_CHASE_LEV_MOST / 2; i++)
        ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque), pointer_of_number(i));
    for (uintptr_t i = DOMI_CHASE_LEV_MOST; i >= DOMI_CHASE_LEV_MOST / 2; i--)
        ck_assert_ptr_eq(domi_chase_lev_take_newest_item(&deque), pointer_of_number(i));
    ck_assert(domi_chase_lev_is_empty(&deque));
    domi_chase_lev_fini(&deque);
}

DOMT_TEST(a_deque_without_memory_to_grow_loses_nothing)
{
    domi_chase_lev deque;

    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_lt(domi_chase_lev_init(&deque), 0);
    make_empty_deque(&deque);
    push_numbers_to_deque(&deque, 0, DOMI_CHASE_LEV_START);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert(!domi_chase_lev_push_item(&deque, pointer_of_number(DOMI_CHASE_LEV_START)));
    ck_assert(!domi_chase_lev_push_item(&deque, pointer_of_number(DOMI_CHASE_LEV_START)));
    domi_memory_fail_allocation_after(-1, 0);
    push_numbers_to_deque(&deque, DOMI_CHASE_LEV_START, 1000);
    for (uintptr_t i = 0; i < 500; i++)
        ck_assert_ptr_eq(domi_chase_lev_steal_oldest_item(&deque), pointer_of_number(i));
    for (uintptr_t i = 1000; i-- > 500;)
        ck_assert_ptr_eq(domi_chase_lev_take_newest_item(&deque), pointer_of_number(i));
    ck_assert(domi_chase_lev_is_empty(&deque));
    domi_chase_lev_fini(&deque);
}

/* --- Chase and Lev: an owner and thieves ------------------------------------------------------ */

#define THIEVES_MOST 3

struct raid {
    /* the deque of the owner, and one deque for each thief */
    domi_chase_lev deques[1 + THIEVES_MOST];
    uint32_t thieves;
    uint32_t burst; /* most items that the owner pushes without taking one */
    /* true: thieves steal half of a deque at once, also from each other; false: one item */
    bool halves;
    uint32_t items;
    _Atomic uint8_t *taken; /* for each item, how many times it was taken */
    _Atomic uint32_t begun; /* number of thieves that have begun to steal */
    _Atomic bool over;
};

static void *take_items_from_own_deque(struct raid *raid, domi_chase_lev *deque, uint32_t most)
{
    void *taken = NULL;

    for (uint32_t i = 0; i < most && (taken = domi_chase_lev_take_newest_item(deque)) != NULL; i++)
        atomic_fetch_add_explicit(&raid->taken[(uintptr_t)taken - 1], 1, memory_order_relaxed);
    return taken;
}

static void *steal_items_from_victim(struct raid *raid, uint32_t number, uint32_t victim)
{
    domi_chase_lev *own = &raid->deques[number];
    uint32_t count = 1;
    void *stolen = raid->halves
                       ? domi_chase_lev_steal_half_of_items(&raid->deques[victim], own, &count)
                       : domi_chase_lev_steal_oldest_item(&raid->deques[victim]);

    if (stolen != NULL)
        atomic_fetch_add_explicit(&raid->taken[(uintptr_t)stolen - 1], 1, memory_order_relaxed);
    return stolen;
}

typedef struct thief {
    struct raid *raid;
    uint32_t number;
    pthread_t thread;
} thief;

static void *run_stealing_thread(void *context)
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
            (void)steal_items_from_victim(raid, self->number, victim);
        /* the thief takes only a few of its items, so that other thieves can steal the rest */
        take_items_from_own_deque(raid, &raid->deques[self->number],
                                  (uint32_t)domi_random_below(&random, 3));
    }
    take_items_from_own_deque(raid, &raid->deques[self->number], UINT32_MAX);
    return NULL;
}

static void run_owning_thread(struct raid *raid)
{
    domi_chase_lev *own = &raid->deques[0];
    domi_random random;
    uint32_t next = 0;

    domi_random_init(&random, 99);
    while (next < raid->items) {
        for (uint64_t n = domi_random_below(&random, raid->burst) + 1; n > 0; n--)
            if (next < raid->items)
                next += domi_chase_lev_push_item(own, pointer_of_number(next));
        take_items_from_own_deque(raid, own, (uint32_t)domi_random_below(&random, raid->burst) + 1);
        if (next % 4096 == 0)
            sched_yield(); /* on a machine with few CPUs, let thieves run in between */
    }
    take_items_from_own_deque(raid, own, UINT32_MAX);
}

/* true: in the next raids, allocations of the owner fail, so its deque cannot grow */
static bool no_growth;

/* A raid: an owner pushes all items and takes what is left, while thieves steal. Check that each
 * item was taken once. */
static void run_raid_and_check_items(uint32_t items, uint32_t thieves, uint32_t burst, bool halves)
{
    static struct raid raid;
    thief crew[THIEVES_MOST];
    uint32_t wrong = 0;

    raid = (struct raid){.thieves = thieves, .burst = burst, .halves = halves};
    raid.items = items;
    raid.taken = calloc(raid.items, sizeof *raid.taken);
    ck_assert_ptr_nonnull(raid.taken);
    for (uint32_t i = 0; i <= thieves; i++)
        make_empty_deque(&raid.deques[i]);
    for (uint32_t i = 0; i < thieves; i++) {
        crew[i] = (thief){.raid = &raid, .number = i + 1};
        ck_assert_int_eq(pthread_create(&crew[i].thread, NULL, run_stealing_thread, &crew[i]), 0);
    }
    while (atomic_load(&raid.begun) < thieves)
        sched_yield();
    domi_memory_fail_allocation_after(no_growth ? 0 : -1, 1);
    run_owning_thread(&raid);
    domi_memory_fail_allocation_after(-1, 0);
    atomic_store(&raid.over, true);
    for (uint32_t i = 0; i < thieves; i++)
        pthread_join(crew[i].thread, NULL);
    for (uint32_t i = 0; i <= thieves; i++) {
        /* a thief that is still running may have stolen from a thief that had already ended */
        take_items_from_own_deque(&raid, &raid.deques[i], UINT32_MAX);
        ck_assert(domi_chase_lev_is_empty(&raid.deques[i]));
        domi_chase_lev_fini(&raid.deques[i]);
    }
    for (uint32_t i = 0; i < raid.items; i++)
        wrong += raid.taken[i] != 1;
    ck_assert_uint_eq(wrong, 0);
    free(raid.taken);
}

static void check_each_item_is_taken_once(uint32_t thieves, uint32_t burst, bool halves)
{
    run_raid_and_check_items(domt_tenfold_if_tests_are_long(DOMT_SCALE(200000, 15000)), thieves,
                             burst, halves);
}

DOMT_TEST(an_item_is_taken_once_by_the_owner_or_a_thief)
{
    for (uint32_t thieves = 1; thieves <= THIEVES_MOST; thieves++)
        for (uint32_t burst = 1; burst <= 3; burst++)
            check_each_item_is_taken_once(thieves, burst, false);
}

DOMT_TEST(an_item_is_taken_once_though_thieves_take_half)
{
    for (uint32_t thieves = 1; thieves <= THIEVES_MOST; thieves++)
        for (uint32_t burst = 2; burst <= 8; burst += 3)
            check_each_item_is_taken_once(thieves, burst, true);
}

DOMT_TEST(an_item_is_taken_once_while_the_deque_grows)
{
    for (uint32_t thieves = 1; thieves <= THIEVES_MOST; thieves++) {
        check_each_item_is_taken_once(thieves, 5000, false);
        check_each_item_is_taken_once(thieves, 5000, true);
    }
}

/* Each raid begins with the smallest buffer, so thieves often read a buffer that is being
 * replaced. */
DOMT_TEST(an_item_is_taken_once_from_a_buffer_that_is_replaced)
{
    uint32_t raids = domt_tenfold_if_tests_are_long(DOMT_SCALE(100, 20));

    for (uint32_t i = 0; i < raids; i++)
        run_raid_and_check_items(10000, 1 + i % 2, 5000, i % 4 < 2);
}

/* The deque is full, so the slot of a stolen item is used again at once. */
DOMT_TEST(an_item_is_taken_once_from_a_full_deque_that_cannot_grow)
{
    for (uint32_t thieves = 1; thieves <= 2; thieves++) {
        no_growth = true;
        check_each_item_is_taken_once(thieves, 1000, false);
        check_each_item_is_taken_once(thieves, 1000, true);
        no_growth = false;
    }
}

/* --- a push and a look before sleep ----------------------------------------------------------- */

/* Number of deques that the rounds use by turns, because the two threads may be some rounds
 * apart. */
#define CELLS 32u

struct duel {
    domi_chase_lev deques[CELLS];
    _Atomic uint32_t sleepers[CELLS];
    bool pusher_saw[CELLS];
    bool sleeper_saw[CELLS];
    _Atomic uint32_t arrived; /* number of times that either thread has come to the barrier */
    uint32_t rounds;
};

/* Wait at the barrier until both threads have come there `time` times. */
static void meet_at_barrier(struct duel *duel, uint32_t time)
{
    uint32_t looks = 0;

    atomic_fetch_add(&duel->arrived, 1);
    while (atomic_load(&duel->arrived) < 2 * time)
        if (++looks % 1000 == 0)
            sched_yield();
}

/* Do as a runner that is about to sleep: tell that it sleeps, and then look for a job. */
static void *run_runner_that_falls_asleep(void *context)
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

/* Do as a runner that puts a job: push it, and then look for a sleeping runner. Returns how often
 * both runners have missed each other. */
static uint32_t run_runner_that_pushes_job(struct duel *duel)
{
    uint32_t missed = 0;

    for (uint32_t round = 0; round < duel->rounds; round++) {
        for (uint32_t i = 0; i < CELLS; i++) {
            (void)domi_chase_lev_take_newest_item(&duel->deques[i]);
            atomic_store(&duel->sleepers[i], 0);
        }
        meet_at_barrier(duel, 2 * round + 1);
        for (uint32_t i = 0; i < CELLS; i++) {
            (void)domi_chase_lev_push_item(&duel->deques[i], pointer_of_number(i));
            duel->pusher_saw[i] =
                atomic_load_explicit(&duel->sleepers[i], memory_order_seq_cst) != 0;
        }
        meet_at_barrier(duel, 2 * round + 2);
        for (uint32_t i = 0; i < CELLS; i++)
            missed += !duel->pusher_saw[i] && !duel->sleeper_saw[i];
    }
    return missed;
}

/* If the store in a push were weaker, this test would see it only on a machine with two free CPUs
 * (tests/house/litmus_test.c). */
DOMT_TEST(pusher_and_runner_about_to_sleep_never_miss_each_other)
{
    static struct duel duel = {.rounds = DOMT_SCALE(30000, 3000)};
    pthread_t sleeper;

    for (uint32_t i = 0; i < CELLS; i++)
        make_empty_deque(&duel.deques[i]);
    ck_assert_int_eq(pthread_create(&sleeper, NULL, run_runner_that_falls_asleep, &duel), 0);
    uint32_t missed = run_runner_that_pushes_job(&duel);
    pthread_join(sleeper, NULL);
    for (uint32_t i = 0; i < CELLS; i++)
        domi_chase_lev_fini(&duel.deques[i]);
    ck_assert_uint_eq(missed, 0);
}

DOMT_SUITE(120)
