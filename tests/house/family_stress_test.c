/* Families on real threads: births on other homes, failures, restarts, stops, watches, links and
 * names at random, all at once.
 *
 * Members are sent beats and call a random verb at each; the addresses that they know come with the
 * beats, so every member acts on every other, and most addresses are stale after a while. One
 * sentinel on each thread is never stopped: it must be told once of the end of each actor that it
 * watches. At the end every mount has had its stop, after those of all its children, every watch
 * its event, and nothing is left. The seed is fixed; the schedule of the threads is not. */
#include "base/random.h"
#include "house/conversation/stack.h"
#include "house/directory/name_table.h"
#include "house/dispatch/dispatch.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "house/message/pool.h"
#include "tests/support/house_world.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/name.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define ROUNDS DOMT_SCALE(80000u, 3000u)

#define BOOK        24u
#define LIVING_MAX  1500u /* bound of the houses of one home: above it no actors are spawned */
#define DEPTH_MAX   5u
#define MEMBERS_MAX (1u << 22)
#define US          UINT64_C(1000)

/* One worker for each thread; no other thread uses its fields while the worker runs. */
typedef struct worker {
    domi_manager *manager;
    domi_random random;
    domus_address book[BOOK];
    domus_address sentinel;
    domus_watch last; /* the latest watch of this thread's sentinel */
    uint64_t mounts;
    uint64_t stops;
    uint64_t births;
    uint64_t watched; /* watches that the sentinel has begun: of ends, links and room */
    uint64_t heard;
    uint64_t taken_back;
    uint64_t disordered;
    uint32_t found; /* pieces of work that the last turn of this thread found */
    pthread_t thread;
} worker;

typedef struct member {
    worker *at;
    uint32_t number;
    uint32_t parent;
    uint32_t depth;
    bool alive; /* true between the member's on_mount and its on_stop */
} member;

static domt_world world;
static domi_names names;
static worker workers[DOMT_HOMES_MAX];
static uint32_t threads;
static pthread_barrier_t barrier;
/* number of mounted children of each member, by the member's number */
static _Atomic int children[MEMBERS_MAX];
static _Atomic uint32_t members;

static const domus_type beat = {.name = "beat", .size = sizeof(domus_address)};
static const domus_behaviour behaviours[4];
static const domus_behaviour sentinel;

static uint32_t random_below(worker *at, uint32_t n)
{
    return (uint32_t)domi_random_below(&at->random, n);
}

static domus_address choose_address(worker *at)
{
    return at->book[random_below(at, BOOK)];
}

/* Returns the state of a new member, with the next number, for the home where it will live. */
static member state_of_next_member(uint32_t home, uint32_t parent, uint32_t depth)
{
    uint32_t number = atomic_fetch_add_explicit(&members, 1, memory_order_relaxed);

    return (member){&workers[home], number % MEMBERS_MAX, parent, depth, false};
}

static void spawn_root(worker *at)
{
    uint32_t home = random_below(at, threads);
    const domus_spawn_options options = {.passivate_after_ns = 4000 * US};

    if (at->manager->births.houses >= LIVING_MAX)
        return;
    member state = state_of_next_member(home, 0, 0);
    if (domi_house_spawn_child(at->manager, NULL, world.managers[home],
                               &behaviours[random_below(at, 4)], &state, &options,
                               &at->book[random_below(at, BOOK)]) == 0)
        at->births++;
}

static void spawn_child(domus_stack *stack, const member *self)
{
    static const char *const some[] = {"ann", "bob", "cid", "dot"};
    worker *at = self->at;
    domus_spawn_options options = {.placement = DOMUS_ON_THREAD,
                                   .thread = random_below(at, threads)};

    if (at->manager->births.houses >= LIVING_MAX || self->depth == DEPTH_MAX)
        return;
    if (random_below(at, 8) == 0)
        options.name = some[random_below(at, 4)];
    if (random_below(at, 4) != 0)
        options.passivate_after_ns = 2000 * US;
    if (random_below(at, 4) == 0)
        options.mailbox_max = 1 + random_below(at, 3);
    options.pinned = random_below(at, 4) == 0;
    member state = state_of_next_member(options.thread, self->number, self->depth + 1);
    if (domus_spawn_with(stack, &behaviours[random_below(at, 4)], &state, &options,
                         &at->book[random_below(at, BOOK)]) == 0)
        at->births++;
}

static int fail_one_time_of_eight(domus_stack *stack, void *self, const domus_answer *answer)
{
    return random_below(((member *)self)->at, 8) == 0 ? answer->error : 0;
}

static void send_beat_to_random_actor(domus_stack *stack, worker *at)
{
    domus_address rumour = choose_address(at);

    if (domus_notice(stack, choose_address(at), &beat, &rumour) == -ESTALE &&
        random_below(at, 4) == 0)
        spawn_root(at);
}

static int on_rumour_do_random_act(domus_stack *stack, void *self_, const void *rumour)
{
    const member *self = self_;
    worker *at = self->at;
    domus_address who = choose_address(at);

    at->disordered += stack->manager != at->manager || !self->alive;
    at->book[random_below(at, BOOK)] = *(const domus_address *)rumour;
    switch (random_below(at, 24)) {
    case 0:
        return -EIO;
    case 1:
        (void)domus_escalate(stack, -EPERM);
        break;
    case 2:
        (void)domus_stop(stack, who);
        break;
    case 3:
        (void)domus_stop(stack, domus_self(stack));
        break;
    case 4:
        (void)domus_watch_actor(stack, who, NULL);
        break;
    case 5:
        (void)domus_link_actor(stack, who, NULL);
        break;
    case 6:
        (void)domus_watch_room(stack, who, NULL);
        break;
    case 7:
    case 8:
        return domus_ask(stack, who, &beat, rumour, fail_one_time_of_eight);
    default:
        if (random_below(at, 2) == 0)
            spawn_child(stack, self);
        else
            send_beat_to_random_actor(stack, at);
        break;
    }
    return 0;
}

static int on_mount_of_member(domus_stack *stack, void *self_)
{
    member *self = self_;

    self->at->disordered += self->alive;
    if (random_below(self->at, 16) == 0)
        return -EIO;
    self->alive = true;
    self->at->mounts++;
    atomic_fetch_add_explicit(&children[self->parent], 1, memory_order_relaxed);
    return 0;
}

static void on_stop_of_member(domus_stack *stack, void *self_)
{
    member *self = self_;

    self->at->disordered += !self->alive;
    self->at->disordered +=
        atomic_load_explicit(&children[self->number], memory_order_relaxed) != 0;
    self->alive = false;
    self->at->stops++;
    atomic_fetch_sub_explicit(&children[self->parent], 1, memory_order_relaxed);
}

/* --- sentinels ------------------------------------------------------------------------------- */

static int count_heard_event(domus_stack *stack, void *self, const void *down)
{
    ((member *)self)->at->heard++;
    return 0;
}

static int change_watches_at_random_on_beat(domus_stack *stack, void *self, const void *rumour)
{
    worker *at = ((member *)self)->at;
    domus_address who = *(const domus_address *)rumour;

    /* The watch is removed twice: the second handle is stale, whether or not the first removal
     * found its watch. */
    if (random_below(at, 2) == 0) {
        at->taken_back += domus_unwatch(stack, at->last) == 0;
        at->disordered += domus_unwatch(stack, at->last) == 0;
    }
    switch (random_below(at, 3)) {
    case 0:
        at->watched += domus_watch_actor(stack, who, &at->last) == 0;
        break;
    case 1:
        at->watched += domus_watch_room(stack, who, &at->last) == 0;
        break;
    default:
        at->watched += domus_link_actor(stack, who, &at->last) == 0;
        break;
    }
    return 0;
}

static int fail_if_linked_ended_with_eperm(domus_stack *stack, void *self, const void *down)
{
    return ((const domus_down *)down)->reason == -EPERM ? -EIO : 0;
}

#define MEMBER(name_, supervision_, rows_)                                                         \
    {                                                                                              \
        .name = name_, .state_size = sizeof(member), .on = rows_, .on_mount = on_mount_of_member,  \
        .on_stop = on_stop_of_member, .supervision = supervision_                                  \
    }

static const domus_on plain_rows[] = {{&beat, on_rumour_do_random_act, 0}, {0}};
static const domus_on framed_rows[] = {{&beat, on_rumour_do_random_act, 64},
                                       {&domus_down_type, fail_if_linked_ended_with_eperm, 0},
                                       {0}};
static const domus_rule rules[] = {{NULL, -EPERM, DOMUS_STOP}};
static const domus_supervision each = {
    .intensity = 10, .period_ns = 10000 * US, .otherwise = DOMUS_RESTART};
static const domus_supervision all = {
    .all_for_one = true, .rules = rules, .rules_count = 1, .otherwise = DOMUS_RESTART};
static const domus_supervision none = {.otherwise = DOMUS_RESUME};
static const domus_behaviour behaviours[4] = {
    MEMBER("plain", NULL, plain_rows), MEMBER("each", &each, framed_rows),
    MEMBER("all", &all, plain_rows), MEMBER("none", &none, framed_rows)};
static const domus_behaviour sentinel = {
    .name = "sentinel",
    .state_size = sizeof(member),
    .on = (const domus_on[]){{&beat, change_watches_at_random_on_beat, 0},
                             {&domus_down_type, count_heard_event, 0},
                             {&domus_room_type, count_heard_event, 0},
                             {0}}};

/* --- threads --------------------------------------------------------------------------------- */

static uint32_t run_one_iteration_of_home(worker *at)
{
    domi_manager *manager = at->manager;
    domi_queue *ready = &manager->schedule.ready[DOMUS_STATE];
    uint32_t found = domt_take_arrivals_and_timers(manager);

    for (uint32_t i = ready->count; i > 0; i--, found++) {
        (void)domi_house_run_and_settle(manager, domi_queue_take_house(ready));
        if (i % 16 == 0)
            found += domi_manager_take_arrivals(manager);
    }
    domi_pool_push_chains_to_owners(manager);
    return found;
}

/* Returns whether no thread has found work between two barriers of threads: then only timers are
 * under way. */
static bool have_all_threads_no_work(worker *at)
{
    uint32_t found = 0;

    (void)pthread_barrier_wait(&barrier);
    at->found = run_one_iteration_of_home(at);
    (void)pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < threads; i++)
        found += workers[i].found;
    return found == 0;
}

static void *run_worker(void *at_)
{
    worker *at = at_;

    domi_manager_become_owner(at->manager);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        domus_address rumour = choose_address(at);
        at->manager->now_ns += 100 * US;
        (void)domt_send_notice(at->manager, at->sentinel, &beat, &rumour);
        for (uint32_t j = random_below(at, 8); j > 0; j--) {
            rumour = choose_address(at);
            if (domt_send_notice(at->manager, choose_address(at), &beat, &rumour) == -ESTALE)
                spawn_root(at);
        }
        (void)run_one_iteration_of_home(at);
    }
    while (!have_all_threads_no_work(at))
        ;
    return NULL;
}

static void start_workers(uint32_t count, uint64_t seed)
{
    static const uint64_t key[2] = {3, 4};

    threads = count;
    memset(workers, 0, sizeof workers);
    domt_world_init(&world, count);
    world.config.scheduler.mailbox_max = 16;
    world.config.scheduler.conversations_max = 4;
    ck_assert_int_eq(domt_world_start(&world), 0);
    ck_assert_int_eq(domi_names_init(&names, 64, key), 0);
    (void)state_of_next_member(0, 0,
                               0); /* member 0 stands for the parent of actors that have none */
    for (uint32_t i = 0; i <= count; i++)
        world.managers[i]->directory.names = &names;
    for (uint32_t i = 0; i < count; i++) {
        const member state = {.at = &workers[i], .alive = true};
        workers[i].manager = world.managers[i];
        domi_random_init(&workers[i].random, seed + i);
        workers[i].sentinel = domt_spawn(workers[i].manager, workers[i].manager, &sentinel, &state);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < BOOK; j++)
            spawn_root(&workers[i]);
    }
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, count), 0);
}

static void stop_actor_without_parent(void *house_, void *manager)
{
    domi_house *house = house_;
    uint64_t life = atomic_load_explicit(&house->life, memory_order_relaxed);

    if ((life & DOMI_LIFE_CLOSED) == 0 && house->parent == NULL && house->behaviour != &sentinel)
        (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
}

static worker sum_of_worker_counts(void)
{
    worker sum = {.mounts = 0};

    for (uint32_t i = 0; i < threads; i++) {
        sum.mounts += workers[i].mounts;
        sum.stops += workers[i].stops;
        sum.births += workers[i].births;
        sum.watched += workers[i].watched;
        sum.heard += workers[i].heard;
        sum.taken_back += workers[i].taken_back;
        sum.disordered += workers[i].disordered;
    }
    return sum;
}

/* Check the sums of all counts after the threads have ended. */
static void check_sums_of_counts(void)
{
    uint64_t living = 0;

    for (uint32_t i = 0; i < threads; i++)
        domi_slots_visit_all(world.managers[i], stop_actor_without_parent, world.managers[i]);
    domt_settle_world(&world);
    for (uint32_t i = 0; i < threads; i++)
        living += world.managers[i]->births.houses;
    /* only the sentinels are left: no house is stuck while its actor ends */
    ck_assert_uint_eq(living, threads);

    worker sum = sum_of_worker_counts();
    ck_assert_uint_eq(sum.mounts, sum.stops);
    ck_assert_uint_eq(sum.disordered, 0);
    ck_assert_uint_eq(sum.watched, sum.heard + sum.taken_back);
    ck_assert_int_eq(atomic_load(&children[0]), 0);
    ck_assert_uint_eq(domi_names_count(&names), 0);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), 0);
    /* how many births there were depends on the machine, so this bound is low */
    ck_assert_uint_gt(sum.births, ROUNDS / 8);
    ck_assert_uint_lt(atomic_load(&members), MEMBERS_MAX);
    ck_assert_uint_gt(DOMT_SUM(&world, restarts), 0);
    ck_assert_uint_gt(DOMT_SUM(&world, escalations), 0);
    ck_assert_uint_gt(DOMT_SUM(&world, passivations), 0);
}

static void run_family_stress(uint32_t count, uint64_t seed, bool cut)
{
    start_workers(count, seed);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    domt_world_become_owner(&world);
    if (!cut)
        check_sums_of_counts();
    domt_world_end(&world);
    worker sum = sum_of_worker_counts();
    ck_assert_uint_eq(sum.mounts, sum.stops);
    pthread_barrier_destroy(&barrier);
    domi_names_fini(&names);
}

DOMT_TEST(two_threads_of_families_lose_no_actor)
{
    run_family_stress(2, 20, false);
}

DOMT_TEST(four_threads_of_families_lose_no_actor)
{
    run_family_stress(4, 40, false);
}

DOMT_TEST(families_that_live_end_with_the_world)
{
    run_family_stress(3, 30, true);
}

DOMT_SUITE(120)
