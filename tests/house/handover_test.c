/* A house between threads. M9: one thread spawns for a home, another stops the newborn at once, and
 * home sorts. Also the memory orders by which a house is handed over, as ThreadSanitizer sees
 * them. */
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "house/message/arrivals.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/sanitizer.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define BIRTHS DOMT_SCALE(150000u, 20000u)

/* On a busy machine each birth waits for a CPU, so a test of births ends after ENOUGH_NS. */
#define BIRTHS_MIN 1000u
#define ENOUGH_NS  UINT64_C(15000000000)

enum { HOME, SPAWNER, STOPPER, MANAGERS };

static domt_world world;
/* address of the newest actor, which the spawner hands to the stopper */
static _Atomic(domus_address *) newborn;
static atomic_uint ended;
static unsigned births; /* actors that the spawner thread has spawned */
static unsigned mounts;
static unsigned stops;

static int on_mount_count_mount(domus_stack *stack, void *self)
{
    mounts++;
    return 0;
}

static void on_stop_count_stop(domus_stack *stack, void *self)
{
    stops++;
}

static const domus_behaviour mayfly = {
    .name = "mayfly", .on_mount = on_mount_count_mount, .on_stop = on_stop_count_stop};

static bool has_enough_births(uint64_t until_ns)
{
    return births == BIRTHS || (births >= BIRTHS_MIN && domt_monotonic_ns() >= until_ns);
}

static void *spawn_mayflies_until_enough(void *unused)
{
    static domus_address addresses[2];
    uint64_t until_ns = domt_monotonic_ns() + ENOUGH_NS;

    domi_manager_become_owner(world.managers[SPAWNER]);
    for (; !has_enough_births(until_ns); births++) {
        domus_address *next = &addresses[births % 2];
        if (domi_house_spawn_without_parent(world.managers[SPAWNER], world.managers[HOME], &mayfly,
                                            NULL, next) != 0)
            abort();
        while (atomic_load_explicit(&newborn, memory_order_acquire) != NULL)
            (void)sched_yield();
        atomic_store_explicit(&newborn, next, memory_order_release);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

/* Stop actors until the spawner thread has ended and its last newborn is stopped. */
static void *stop_each_newborn_actor(void *unused)
{
    domi_manager_become_owner(world.managers[STOPPER]);
    for (;;) {
        /* `ended` is read before `newborn`, so that the last newborn is seen */
        bool is_last = atomic_load(&ended) != 0;
        domus_address *next = atomic_load_explicit(&newborn, memory_order_acquire);
        if (next == NULL && is_last)
            break;
        if (next == NULL) {
            (void)sched_yield();
            continue;
        }
        if (domi_house_ask_to_stop(world.managers[STOPPER], *next) != 0)
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
    ck_assert_int_eq(pthread_create(&threads[0], NULL, spawn_mayflies_until_enough, NULL), 0);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, stop_each_newborn_actor, NULL), 0);
    while (atomic_load(&ended) < 2) {
        (void)domt_iterate_home(home);
        /* with few CPUs the spawner and the stopper need this CPU for each birth, so this thread
         * yields it */
        (void)sched_yield();
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    domt_world_become_owner(&world);
    domt_settle_world(&world);
    ck_assert_uint_eq(home->births.houses, 0);
    ck_assert_uint_ge(births, BIRTHS_MIN);
    ck_assert_uint_eq(mounts, stops);
    ck_assert_uint_eq(domi_counter_read(&home->counters.stops), births);
    domt_world_end(&world);
}

/* --- as ThreadSanitizer sees it --------------------------------------------------------------- */

/* late nodes that home turns over before it reads the house's life word */
#define LATE        20000u
#define ROUNDS      (DOMT_SANITIZED ? 300u : 40u)
#define HITS        20u
#define DURATION_NS UINT64_C(10000000000)

static domt_world world;
static domi_house *slot;
static domus_address born;
static _Atomic bool is_born;

static const domus_type late = {.name = "late"};

/* Put messages for an old life of the slot, as senders do that have read the lease before its end,
 * after home has sorted the inbox for the last time. */
static void put_mail_for_old_life(void)
{
    domi_manager *outside = domt_outside_manager(&world);
    domi_node *newest = NULL;

    for (uint32_t i = 0; i < LATE; i++) {
        domi_envelope *envelope = domi_envelope_new(outside, sizeof *envelope);
        ck_assert_ptr_nonnull(envelope);
        envelope->type = &late;
        envelope->sender = NULL;
        envelope->node.kind = DOMI_NOTICE;
        envelope->node.lease = UINT32_MAX; /* a lease that no life of this test's slot has */
        envelope->node.next = newest;
        newest = &envelope->node;
    }
    atomic_store(&slot->inbox, (uint64_t)LATE << 48 | (uintptr_t)newest);
    domi_links_add_house_to_arrivals(outside, slot);
}

/* Spawn an actor in the slot while home turns over the messages of the slot's inbox: they are for
 * the old life, and the mount of the new life comes to the inbox that home takes next time. */
static void *spawn_while_home_takes_inbox(void *unused)
{
    const domus_spawn_options pinned = {.pinned = true};

    domi_manager_become_owner(domt_outside_manager(&world));
    while (atomic_load_explicit(&slot->inbox, memory_order_relaxed) != 0)
        continue;
    ck_assert_int_eq(domi_house_spawn_child(domt_outside_manager(&world), NULL, world.managers[0],
                                            &domt_agent, NULL, &pinned, &born),
                     0);
    atomic_store_explicit(&is_born, true, memory_order_relaxed);
    return NULL;
}

/* Home reads the life word that another thread has published, without getting a message by it, and
 * then the marks that were written before. This tests the release of the publish and the acquire of
 * the sort. */
DOMT_TEST(home_that_sorts_late_mail_sees_the_whole_of_a_new_life)
{
    uint64_t until_ns = domt_monotonic_ns() + DURATION_NS;
    uint32_t hits = 0;
    uint32_t deaths = 0;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    /* this spawn fills the spawner's cache of slots */
    (void)domt_spawn(domt_outside_manager(&world), home, &domt_agent, NULL);
    domt_settle_world(&world);
    for (uint32_t round = 0; round < ROUNDS && hits < HITS && domt_monotonic_ns() < until_ns;
         round++) {
        pthread_t spawner;

        slot = domt_outside_manager(&world)->births.slots_of[0].free[0];
        if (slot == NULL)
            break;
        atomic_store(&is_born, false);
        put_mail_for_old_life();
        ck_assert_int_eq(pthread_create(&spawner, NULL, spawn_while_home_takes_inbox, NULL), 0);
        (void)domi_manager_take_arrivals(home);
        hits += atomic_load_explicit(&is_born, memory_order_relaxed);
        ck_assert_int_eq(pthread_join(spawner, NULL), 0);
        domt_world_become_owner(&world);
        deaths += LATE;
        ck_assert_ptr_eq(born.house, slot);
        domt_settle_world(&world);
        ck_assert_uint_ne(slot->marks & DOMI_MARK_PINNED, 0);
        ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), deaths);
    }
    ck_assert_uint_gt(deaths, 0);
    domt_end_clean_world(&world);
}

DOMT_SUITE(120)
