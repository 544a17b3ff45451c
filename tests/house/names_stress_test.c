/* The registry of names on real threads: two put and remove, two find and walk, in a table so small
 * that every entry and every place is used again at once.
 *
 * An address contains the number of its name and that of the life under it, in the house and once
 * more in the lease: a reader of half of one life and half of another sees the difference. Writers
 * publish, before and after each step, which life of a name begins or ends, so a reader knows for
 * each find whether a miss was right, and whether the address found was registered while it
 * looked. */
#include "house/directory/name_table.h"

#include "base/random.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS (DOMT_TSAN ? 60000u : 1000000u)
#define STALLS (DOMT_TSAN ? 300u : 2000u)

#define WRITERS    2u
#define READERS    2u
#define STEADY     4u  /* number of names that are in the table all the time */
#define OWN        12u /* number of each writer's own names, which no other thread puts */
#define CONTESTED  4u  /* number of names that both writers put */
#define NAMES      (STEADY + WRITERS * OWN + CONTESTED)
#define CAPACITY   20u /* places of the table: so few that it refuses a name now and then */
#define NAME_BYTES (DOMI_NAME_MAX + 1)

/* For each name the numbers of its lives, which its writer counts from 1. All accesses are seq_cst,
 * so that these numbers are beyond doubt. */
static struct {
    _Atomic uint64_t begun;    /* number of the last life whose put was called */
    _Atomic uint64_t is_there; /* number of the last life whose put has returned */
    _Atomic uint64_t going;    /* number of the last life whose remove was called */
    _Atomic uint64_t gone;     /* number of the last life whose remove has returned */
    _Atomic uint32_t holders;
} books[NAMES];

static const uint64_t key[2] = {3, 4};
static domi_names names;
static char texts[NAMES][NAME_BYTES];
static _Atomic uint32_t writing; /* number of writers that still write */
static _Atomic uint64_t rounds_max;

typedef struct worker {
    pthread_t thread;
    domi_random random;
    uint32_t number;
    uint64_t wrong;
    uint64_t found;
    uint64_t missed;
    uint64_t done;
    _Atomic uint64_t round; /* rounds of this thread; relaxed, because it only shows progress */
    uint32_t visits[NAMES]; /* visits of each name in one walk over the table */
    uint32_t slots[NAMES];
    /* for each name the number of the life that this writer has put; 0: none */
    uint64_t lives[NAMES];
} worker;

static worker writers[WRITERS];
static worker readers[READERS];

/* Bit positions in a house's address: from one on the number of a name, from the other on that of
 * its life. */
#define NAME_BIT (sizeof(void *) == 8 ? 48 : 26)
#define LIFE_BIT (sizeof(void *) == 8 ? 6 : 0)

static uint32_t lease_by_hash_of_house(uint64_t house)
{
    return (uint32_t)((house * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static domus_address address_of_life(uint32_t n, uint64_t life)
{
    uint64_t house = (uint64_t)(n + 1) << NAME_BIT | life << LIFE_BIT;

    return (domus_address){(struct domi_house *)(uintptr_t)house, lease_by_hash_of_house(house)};
}

/* Returns the number of the life of name `n` that has this address; 0 if none has it. */
static uint64_t life_of_address(uint32_t n, domus_address address)
{
    uint64_t house = (uint64_t)(uintptr_t)address.house;

    if (house >> NAME_BIT != n + 1 || lease_by_hash_of_house(house) != address.lease)
        return 0;
    return (house & ((UINT64_C(1) << NAME_BIT) - 1)) >> LIFE_BIT;
}

/* Open the table with names of all lengths, each the beginning of the next, so that their words are
 * equal. */
static void open_names(void)
{
    ck_assert_int_eq(domi_names_init(&names, CAPACITY, key), 0);
    for (uint32_t n = 0; n < NAMES; n++) {
        memset(texts[n], 'x', 1 + n % 4 * 20);
        snprintf(texts[n] + n % 4 * 20, 4, "%u", n);
    }
    for (uint32_t n = 0; n < STEADY; n++) {
        uint32_t slot;
        ck_assert_int_eq(
            domi_names_register_address(&names, texts[n], address_of_life(n, 1), &slot), 0);
    }
}

/* --- writers --------------------------------------------------------------------------------- */

static bool put_name_of_life(worker *at, uint32_t n, uint64_t life, uint32_t *ret_slot)
{
    bool own = n < STEADY + WRITERS * OWN;

    if (own)
        atomic_store(&books[n].begun, life);
    int result = domi_names_register_address(&names, texts[n], address_of_life(n, life), ret_slot);
    at->wrong += result != 0 && result != -ENOSPC && (own || result != -EEXIST);
    if (result != 0)
        return false;
    if (own)
        atomic_store(&books[n].is_there, life);
    at->wrong += atomic_fetch_add(&books[n].holders, 1) != 0;
    at->done++;
    return true;
}

static void remove_name_of_life(worker *at, uint32_t n, uint64_t life, uint32_t slot)
{
    bool own = n < STEADY + WRITERS * OWN;

    atomic_fetch_sub(&books[n].holders, 1);
    if (own)
        atomic_store(&books[n].going, life);
    at->wrong += domi_names_remove_name(&names, slot, address_of_life(n, life)) != 0;
    if (own)
        atomic_store(&books[n].gone, life);
}

/* Put or remove one name, which is one of the writer's own or a contested one. */
static void put_or_remove_random_name(worker *at)
{
    uint64_t round = atomic_load_explicit(&at->round, memory_order_relaxed) + 1;
    uint32_t i = (uint32_t)domi_random_below(&at->random, OWN + CONTESTED);
    uint32_t n = i < OWN ? STEADY + at->number * OWN + i : STEADY + (WRITERS - 1) * OWN + i;
    uint64_t life = round * WRITERS + at->number; /* a number of a life that no other writer uses */

    if (at->lives[n] != 0) {
        remove_name_of_life(at, n, at->lives[n], at->slots[n]);
        at->lives[n] = 0;
    } else if (put_name_of_life(at, n, life, &at->slots[n])) {
        at->lives[n] = life;
    }
    atomic_store_explicit(&at->round, round, memory_order_relaxed);
}

static void *run_writer_thread(void *at_)
{
    worker *at = at_;

    for (uint64_t i = 0; i < atomic_load(&rounds_max); i++)
        put_or_remove_random_name(at);
    for (uint32_t n = 0; n < NAMES; n++) {
        if (at->lives[n] != 0)
            remove_name_of_life(at, n, at->lives[n], at->slots[n]);
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

/* --- readers --------------------------------------------------------------------------------- */

static void find_name_and_check_result(worker *at, uint32_t n)
{
    uint64_t gone = atomic_load(&books[n].gone);
    uint64_t is_there = atomic_load(&books[n].is_there);
    domus_address address;

    int result = domi_names_find_address(&names, texts[n], &address);
    uint64_t going = atomic_load(&books[n].going);
    uint64_t begun = atomic_load(&books[n].begun);
    if (result == 0) {
        uint64_t life = life_of_address(n, address);
        bool own = n >= STEADY && n < STEADY + WRITERS * OWN;
        at->wrong += life == 0 || (n < STEADY && life != 1);
        /* the life that was found was registered at some time during the find */
        at->wrong += own && (life <= gone || life > begun);
        at->found++;
    } else {
        at->wrong += result != -ENOENT || n < STEADY;
        at->wrong += is_there > going; /* a name that was there all the time must be found */
        at->missed++;
    }
}

static void count_visit(const char *text, domus_address address, void *at_)
{
    worker *at = at_;
    uint32_t n = 0;

    while (n < NAMES && strcmp(text, texts[n]) != 0)
        n++;
    if (n == NAMES || life_of_address(n, address) == 0)
        at->wrong++;
    else
        at->visits[n]++;
}

static void walk_names_and_check_result(worker *at)
{
    memset(at->visits, 0, sizeof at->visits);
    domi_names_visit_all(&names, count_visit, at);
    for (uint32_t n = 0; n < STEADY; n++)
        at->wrong += at->visits[n] != 1;
}

static void *run_reader_thread(void *at_)
{
    worker *at = at_;

    while (atomic_load(&writing) != 0) {
        for (uint32_t i = 0; i < 64; i++)
            find_name_and_check_result(at, (uint32_t)domi_random_below(&at->random, NAMES));
        walk_names_and_check_result(at);
        atomic_store_explicit(&at->round, ++at->done, memory_order_relaxed);
    }
    return NULL;
}

/* --- tests ----------------------------------------------------------------------------------- */

static void start_worker(worker *at, uint32_t number, void *(*run)(void *))
{
    *at = (worker){.number = number};
    domi_random_init(&at->random, number + (run == run_reader_thread ? 100 : 0));
    ck_assert_int_eq(pthread_create(&at->thread, NULL, run, at), 0);
}

DOMT_TEST(names_read_by_all_are_never_torn_foreign_stale_or_missed)
{
    open_names();
    atomic_store(&writing, WRITERS);
    atomic_store(&rounds_max, ROUNDS);
    for (uint32_t i = 0; i < READERS; i++)
        start_worker(&readers[i], i, run_reader_thread);
    for (uint32_t i = 0; i < WRITERS; i++)
        start_worker(&writers[i], i, run_writer_thread);
    for (uint32_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_join(writers[i].thread, NULL), 0);
    for (uint32_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_join(readers[i].thread, NULL), 0);

    for (uint32_t i = 0; i < WRITERS; i++) {
        ck_assert_uint_eq(writers[i].wrong, 0);
        ck_assert_uint_gt(writers[i].done, ROUNDS / 8);
    }
    for (uint32_t i = 0; i < READERS; i++) {
        ck_assert_uint_eq(readers[i].wrong, 0);
        ck_assert_uint_gt(readers[i].found, 0);
        ck_assert_uint_gt(readers[i].missed, 0);
    }
    ck_assert_uint_gt(domi_names_count_refused(&names), 0);
    ck_assert_uint_eq(domi_names_count(&names), STEADY);
    domi_names_fini(&names);
}

static _Atomic uint32_t stalled;

/* Wait a little: by pauses at first, then asleep, because the awaited thread may need this CPU. */
static void wait_a_little(uint32_t *turns)
{
    if (++*turns < 1000)
        domi_pause();
    else
        (void)usleep(50);
}

static void stall_in_signal_handler(int number)
{
    uint32_t turns = 0;

    atomic_store(&stalled, 1);
    while (atomic_load(&stalled) != 0)
        wait_a_little(&turns);
}

/* Stop a worker thread wherever it is by a signal; the word `stalled` lets it go on. */
static void stall_worker(worker *at)
{
    uint64_t round = atomic_load(&at->round);
    uint32_t turns = 0;

    /* wait for progress, or the thread would stop where it stopped before */
    while (atomic_load(&at->round) < round + 2)
        wait_a_little(&turns);
    ck_assert_int_eq(pthread_kill(at->thread, SIGUSR1), 0);
    while (atomic_load(&stalled) == 0)
        wait_a_little(&turns);
}

static void open_names_and_stall_signal(void)
{
    struct sigaction action = {.sa_handler = stall_in_signal_handler};

    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    open_names();
    atomic_store(&writing, 1);
}

/* A reader that waited for the writer would never return, because here the reader lets the writer
 * go on. */
DOMT_TEST(names_are_found_wherever_a_writer_stands_still)
{
    uint32_t stalls_in_lock = 0;
    worker reader = {.number = 0};

    open_names_and_stall_signal();
    atomic_store(&rounds_max, UINT64_MAX);
    start_worker(&writers[0], 0, run_writer_thread);
    for (uint32_t i = 0; i < STALLS; i++) {
        stall_worker(&writers[0]);
        stalls_in_lock += atomic_load(&names.lock.held) != 0;
        for (uint32_t n = 0; n < NAMES; n++)
            find_name_and_check_result(&reader, n);
        walk_names_and_check_result(&reader);
        atomic_store(&stalled, 0);
    }
    atomic_store(&rounds_max, 0);
    ck_assert_int_eq(pthread_join(writers[0].thread, NULL), 0);
    ck_assert_uint_eq(reader.wrong + writers[0].wrong, 0);
    ck_assert_uint_gt(reader.found, STALLS * STEADY);
    ck_assert_uint_gt(stalls_in_lock, 0);
    domi_names_fini(&names);
}

/* While the reader stands still, most of the memory that it has looked at is used for other
 * names. */
DOMT_TEST(names_are_whole_wherever_a_reader_stood_still)
{
    worker writer = {.number = 0};

    domi_random_init(&writer.random, 6);
    open_names_and_stall_signal();
    start_worker(&readers[0], 0, run_reader_thread);
    for (uint32_t i = 0; i < STALLS; i++) {
        stall_worker(&readers[0]);
        for (uint32_t j = 0; j < 100; j++)
            put_or_remove_random_name(&writer);
        atomic_store(&stalled, 0);
    }
    atomic_store(&writing, 0);
    ck_assert_int_eq(pthread_join(readers[0].thread, NULL), 0);
    ck_assert_uint_eq(readers[0].wrong + writer.wrong, 0);
    ck_assert_uint_gt(readers[0].found, STALLS);
    domi_names_fini(&names);
}

DOMT_SUITE(120)
