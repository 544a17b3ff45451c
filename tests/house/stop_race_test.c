/* M9 between threads: one spawns for a home, another stops the newborn at once, home sorts.
 *
 * The house's own node carries the mount and then the stop; home must have read it before the
 * stopper writes it. Whatever the order, each newborn is mounted or not, and is gone in the end. */
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "house/message/pool.h"
#include "tests/support/house_world.h"
#include "tests/support/sanitizer.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define BIRTHS DOMT_SCALE(150000u, 20000u)

/* Each birth waits for a CPU on a busy machine, so after ENOUGH_NS these many births are enough. */
#define BIRTHS_MIN 1000u
#define ENOUGH_NS  UINT64_C(15000000000)

enum { HOME, SPAWNER, STOPPER, MANAGERS };

static domt_world world;
static _Atomic(domus_address *) newborn; /* handed from the spawner to the stopper */
static atomic_uint ended;
static unsigned births; /* actors that the spawner has spawned */
static unsigned mounts;
static unsigned stops;

static int on_mount(domus_stack *stack, void *self)
{
    mounts++;
    return 0;
}

static void on_stop(domus_stack *stack, void *self)
{
    stops++;
}

static const domus_behaviour mayfly = {.name = "mayfly", .on_mount = on_mount, .on_stop = on_stop};

static bool has_enough(uint64_t until_ns)
{
    return births == BIRTHS || (births >= BIRTHS_MIN && domt_monotonic_ns() >= until_ns);
}

static void *spawn_many(void *unused)
{
    static domus_address addresses[2];
    uint64_t until_ns = domt_monotonic_ns() + ENOUGH_NS;

    domi_manager_own(world.managers[SPAWNER]);
    for (; !has_enough(until_ns); births++) {
        domus_address *next = &addresses[births % 2];
        if (domi_house_spawn(world.managers[SPAWNER], world.managers[HOME], &mayfly, NULL, next) !=
            0)
            abort();
        while (atomic_load_explicit(&newborn, memory_order_acquire) != NULL)
            (void)sched_yield();
        atomic_store_explicit(&newborn, next, memory_order_release);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

/* Ends when the spawner has ended and its last newborn is stopped. */
static void *stop_many(void *unused)
{
    domi_manager_own(world.managers[STOPPER]);
    for (;;) {
        bool is_last = atomic_load(&ended) != 0; /* read first: what it left is seen then */
        domus_address *next = atomic_load_explicit(&newborn, memory_order_acquire);
        if (next == NULL && is_last)
            break;
        if (next == NULL) {
            (void)sched_yield();
            continue;
        }
        if (domi_house_stop(world.managers[STOPPER], *next) != 0)
            abort();
        atomic_store_explicit(&newborn, NULL, memory_order_release);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

DOMT_TEST(m9_stop_right_after_a_foreign_spawn_is_not_lost)
{
    pthread_t threads[2];

    domt_world_open(&world, MANAGERS);
    domi_manager *home = world.managers[HOME];
    ck_assert_int_eq(pthread_create(&threads[0], NULL, spawn_many, NULL), 0);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, stop_many, NULL), 0);
    while (atomic_load(&ended) < 2) {
        (void)domt_iterate(home);
        (void)sched_yield(); /* on few CPUs the other two need theirs for each birth */
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    domt_world_own(&world);
    domt_settle(&world);
    ck_assert_uint_eq(home->births.houses, 0);
    ck_assert_uint_ge(births, BIRTHS_MIN);
    ck_assert_uint_eq(mounts, stops);
    ck_assert_uint_eq(domi_counter_read(&home->counters.stops), births);
    domt_world_end(&world);
}

DOMT_SUITE(60)
