/* The barrier and the rounds of a duel. It ends after ROUNDS or DURATION_NS. */
#include "tests/house/duel.h"

#include "house/message/manager.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS      (DOMT_SANITIZED ? 30000u : 300000u)
#define DURATION_NS UINT64_C(800000000)
#define LONG        15u /* times as many in the long form */

struct arena {
    const domt_duel *duel;
    int cpus[2]; /* -1: wherever it is */
    uint64_t rounds;
    uint64_t missed;
    bool over;
    alignas(DOMI_LINES) _Atomic uint32_t at[2 * DOMI_LINES / sizeof(uint32_t)];
};

/* Two lines apart. */
static _Atomic uint32_t *place(struct arena *arena, domt_side who)
{
    return &arena->at[who * (DOMI_LINES / sizeof(uint32_t))];
}

static void meet(struct arena *arena, domt_side who)
{
    /* release, acquire: each sees what the other did before it came. */
    uint32_t here = atomic_load_explicit(place(arena, who), memory_order_relaxed) + 1;
    atomic_store_explicit(place(arena, who), here, memory_order_release);
    for (uint32_t spins = 1;; spins++) {
        uint32_t there = atomic_load_explicit(place(arena, 1 - who), memory_order_acquire);
        if ((int32_t)(there - here) >= 0)
            return;
        if (spins % 1024 == 0)
            (void)sched_yield();
    }
}

/* Neither is always the first. */
static void hesitate(uint64_t round, domt_side who)
{
    for (uint64_t i = (round >> (4 * who)) % 16; i > 0; i--)
        atomic_signal_fence(memory_order_seq_cst);
}

static void pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void fight(struct arena *arena, domt_side who)
{
    const domt_duel *duel = arena->duel;
    uint64_t scale = getenv("DOMT_LONG") != NULL ? LONG : 1;
    uint64_t until_ns = domt_monotonic_ns() + DURATION_NS * scale;

    pin(arena->cpus[who]);
    for (uint64_t round = 1;; round++) {
        meet(arena, who);
        if (arena->over)
            return;
        hesitate(round, who);
        duel->act[who](duel->context);
        meet(arena, who);
        if (who == DOMT_RIGHT)
            continue;
        arena->missed += duel->both_missed(duel->context);
        arena->rounds = round;
        arena->over = round == ROUNDS * scale || domt_monotonic_ns() >= until_ns;
    }
}

static void *fight_right(void *arena)
{
    fight(arena, DOMT_RIGHT);
    return NULL;
}

/* The first two CPUs that this process may use. */
static void choose_cpus(int cpus[2])
{
    cpu_set_t set;
    int found = 0;

    cpus[DOMT_LEFT] = cpus[DOMT_RIGHT] = -1;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET((size_t)cpu, &set))
            cpus[found++] = cpu;
    }
}

uint64_t domt_duel_hold(const char *name, const domt_duel *duel)
{
    static struct arena arena;
    pthread_t right;

    memset(&arena, 0, sizeof arena);
    arena.duel = duel;
    choose_cpus(arena.cpus);
    ck_assert_int_eq(pthread_create(&right, NULL, fight_right, &arena), 0);
    fight(&arena, DOMT_LEFT);
    ck_assert_int_eq(pthread_join(right, NULL), 0);
    ck_assert_uint_gt(arena.rounds, 0);
    printf("%s: both missed %llu times in %llu rounds\n", name, (unsigned long long)arena.missed,
           (unsigned long long)arena.rounds);
    return arena.missed;
}
