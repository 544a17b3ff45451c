/* A thread that goes to sleep looks for work a second time after it has announced its sleep. The
 * tests put something between the two looks without fail: by the ring, when a thread arms its wake
 * poll; by a handler that lasts; by a payload's release, which runs on the thread that is about to
 * sleep. */
#include "house/dispatch/phases.h"
#include "runtime/outside/detached.h"
#include "runtime/system/monitor.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include <errno.h>
#include <pthread.h>

/* --- a thread --------------------------------------------------------------------------------- */

static domt_stepped world;

static void want_more(domt_stepped *stepped, uint32_t index)
{
    atomic_store(&stepped->system->orders, domi_orders_of(DOMI_STOP_DRAIN));
}

static void call_thief(domt_stepped *stepped, uint32_t index)
{
    atomic_store(&stepped->system->waking, index + 1);
}

static void let_time_pass(domt_stepped *stepped, uint32_t index)
{
    domt_stepped_advance(stepped, 2000 * DOMT_MS); /* past the end of any sleep */
}

/* Check that thread 0 wants to sleep, but does not when `between` happens before the second
 * look. */
static void expect_awake(void (*between)(domt_stepped *stepped, uint32_t index))
{
    domt_stepped_begin(&world, 2);
    world.on_poll = between;
    /* the state after the wake poll has fired */
    domt_stepped_thread(&world, 0)->io.wake_armed = false;
    uint32_t polls = world.rings[0].polls;
    domt_stepped_iterate(&world, 0, true);
    ck_assert_uint_eq(world.rings[0].polls, polls + 1);
    ck_assert_uint_eq(world.rings[0].sleeps, 0);
    ck_assert_uint_eq(atomic_load(&domt_stepped_thread(&world, 0)->manager.park),
                      DOMI_PARK_RUNNING);
    world.on_poll = NULL;
    atomic_store(&world.system->orders, 0);
    atomic_store(&world.system->waking, 0);
    domt_stepped_iterate(&world, 0, true);
    ck_assert_uint_eq(world.rings[0].sleeps, 1);
    domt_stepped_fini(&world);
}

DOMT_TEST(thread_does_not_sleep_when_the_system_wants_something_new)
{
    expect_awake(want_more);
}

DOMT_TEST(thread_does_not_sleep_when_a_victim_calls_it)
{
    expect_awake(call_thief);
}

DOMT_TEST(thread_does_not_sleep_when_its_time_is_over_already)
{
    expect_awake(let_time_pass);
}

static int outcome;
static uint64_t heard_ns;

static int record_outcome(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcome = answer->error;
    heard_ns = domus_now_ns(stack);
    return 0;
}

static const domus_type question = {.name = "question"};
static domus_address mute;

static int ask_mute(domus_stack *stack, void *self)
{
    return domus_ask_within(stack, mute, &question, NULL, 300 * DOMT_MS, record_outcome);
}

/* Time-outs of asks stand on another wheel than timers. */
DOMT_TEST(thread_sleeps_no_longer_than_an_ask_may_last)
{
    static const domus_behaviour silent = {.name = "silent"};
    static const domus_behaviour asking = {.name = "asking", .on_mount = ask_mute};
    domt_stepped_begin(&world, 2);
    mute = domt_spawn(world.system, 1, &silent, NULL); /* thread 1 does not run */
    (void)domt_spawn(world.system, 0, &asking, NULL);
    uint64_t began_ns = domt_stepped_now_ns(&world);
    for (int i = 0; i < 8 && outcome == 0; i++)
        domt_stepped_iterate(&world, 0, true);
    ck_assert_int_eq(outcome, -ETIMEDOUT);
    ck_assert_uint_ge(heard_ns - began_ns, 300 * DOMT_MS);
    ck_assert_uint_lt(heard_ns - began_ns, 400 * DOMT_MS);
    domt_stepped_iterate(&world, 1, false);
    domt_stepped_fini(&world);
}

/* --- the monitor ------------------------------------------------------------------------------ */

static void *wake_monitor(void *monitor_)
{
    domi_monitor *monitor = monitor_;
    while (atomic_load(&monitor->word) != DOMI_MONITOR_ASLEEP)
        domt_pause_ns(DOMT_MS);
    domi_monitor_wake_if_resting(monitor);
    return NULL;
}

DOMT_TEST(monitor_does_not_sleep_when_a_thread_has_woken_since_it_looked)
{
    pthread_t waker;

    domt_stepped_begin(&world, 2);
    domi_monitor *monitor = &world.system->monitor;
    _Atomic uint32_t *parks[2] = {&domt_stepped_thread(&world, 0)->manager.park,
                                  &domt_stepped_thread(&world, 1)->manager.park};
    /* neither thread may sleep: no other thread would wake it */
    for (int awake = 0; awake < 2; awake++) {
        atomic_store(parks[awake], DOMI_PARK_RUNNING);
        atomic_store(parks[1 - awake], DOMI_PARK_SLEEPING);
        atomic_store(&monitor->word, DOMI_MONITOR_AWAKE);
        domi_monitor_rest(world.system);
        ck_assert_uint_eq(atomic_load(&monitor->word), DOMI_MONITOR_AWAKE);
    }
    atomic_store(parks[0], DOMI_PARK_SLEEPING);
    atomic_store(parks[1], DOMI_PARK_SLEEPING);
    ck_assert_int_eq(pthread_create(&waker, NULL, wake_monitor, monitor), 0);
    domi_monitor_rest(world.system); /* no thread is awake: the monitor sleeps until it is woken */
    ck_assert_int_eq(pthread_join(waker, NULL), 0);
    ck_assert_uint_eq(atomic_load(&monitor->word), DOMI_MONITOR_AWAKE);
    domt_stepped_fini(&world);
}

DOMT_TEST(monitor_that_sleeps_is_woken_before_a_state_actor_runs)
{
    static const domus_type poke = {.name = "poke"};
    static const domus_behaviour idle = {.name = "idle"};
    domt_stepped_begin(&world, 1);
    domus_address actor = domt_spawn(world.system, 0, &idle, NULL);
    domt_stepped_iterate(&world, 0, false);
    atomic_store(&world.system->monitor.word, DOMI_MONITOR_ASLEEP);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(atomic_load(&world.system->monitor.word), DOMI_MONITOR_ASLEEP);
    domt_notice(world.system, actor, &poke, NULL);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(atomic_load(&world.system->monitor.word), DOMI_MONITOR_AWAKE);
    domt_stepped_fini(&world);
}

/* --- a detached actor's thread ---------------------------------------------------------------- */

static domus_system *system_;
static _Atomic bool busy;
static const domus_type go = {.name = "go"};

static uint32_t wanted_step(void)
{
    return atomic_load(&system_->orders);
}

/* Last until the thread is told to stop; the thread has looked for that before this handler. */
static int last_until_stop(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&busy, true);
    for (int i = 0; i < 20000 && wanted_step() < DOMI_STOP_ACTORS; i++)
        domt_pause_ns(DOMT_MS / 2);
    return 0;
}

static const domus_behaviour lasting = {.name = "lasting",
                                        .on = (const domus_on[]){{&go, last_until_stop, 0}, {0}}};

/* The best of some rounds counts: without the second look each lasts a second, the cap of a
 * sleep. */
DOMT_TEST(detached_thread_does_not_sleep_when_it_is_to_stop)
{
    const domus_spawn_options options = {.detached = true};
    uint64_t best_ns = UINT64_MAX;

    for (int round = 0; round < 5 && best_ns >= 500 * DOMT_MS; round++) {
        domus_config config = domt_config(1);
        domus_address actor;
        system_ = domt_start(&config);
        atomic_store(&busy, false);
        ck_assert_int_eq(domus_outside_spawn_with(system_, &lasting, NULL, &options, &actor), 0);
        domt_notice(system_, actor, &go, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&busy));
        uint64_t began_ns = domt_now_ns();
        ck_assert_int_eq(domus_system_stop(system_), 0);
        uint64_t took_ns = domt_now_ns() - began_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
        domt_end(system_);
    }
    ck_assert_uint_lt(best_ns, 500 * DOMT_MS);
}

/* --- foreign threads that ask ----------------------------------------------------------------- */

static _Atomic bool let_answer, let_late, asked;
static _Atomic uint32_t releases;

/* Put the leader's own answer in a release, which runs on the thread that leads the waiting
 * ones. */
static void release_and_let_answer(void *payload)
{
    const domi_manager *outside = &system_->outside;
    atomic_fetch_add(&releases, 1);
    atomic_store(&let_answer, true);
    for (int i = 0; i < 20000 && !domi_manager_has_work(outside); i++)
        domt_pause_ns(DOMT_MS / 2);
}

static const domus_type slow = {.name = "slow"};
static const domus_type late = {.name = "late"};
static const domus_type done = {.name = "done"};
static const domus_type large = {.name = "large", .size = 64, .release = release_and_let_answer};

static int answer_slowly(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&asked, true);
    for (int i = 0; i < 20000 && !atomic_load(&let_answer); i++)
        domt_pause_ns(DOMT_MS / 2);
    return domus_reply(stack, &done, NULL);
}

static int answer_late(domus_stack *stack, void *self, const void *nothing)
{
    static const char bytes[64] = "large";
    for (int i = 0; i < 20000 && !atomic_load(&let_late); i++)
        domt_pause_ns(DOMT_MS / 2);
    return domus_reply(stack, &large, bytes);
}

static const domus_behaviour answering = {
    .name = "answering",
    .on = (const domus_on[]){{&slow, answer_slowly, 0}, {&late, answer_late, 0}, {0}}};

static domus_address slow_one;
static uint64_t leader_took_ns;

static void *lead_outside(void *unused)
{
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(domus_outside_ask(system_, slow_one, &slow, NULL, 30000 * DOMT_MS, NULL), 0);
    leader_took_ns = domt_now_ns() - began_ns;
    return NULL;
}

static bool leader_sleeps(void)
{
    return atomic_load(&asked) && atomic_load(&system_->outside.park) == DOMI_PARK_SLEEPING;
}

/* The leader is alone, and its turn takes an answer that came too late for another asker. Then it
 * wants to sleep, although its own answer has been put meanwhile. */
DOMT_TEST(leader_of_those_that_wait_does_not_sleep_on_its_own_answer)
{
    domus_config config = domt_config(2);
    pthread_t leader;

    system_ = domt_start(&config);
    slow_one = domt_spawn(system_, 0, &answering, NULL);
    domus_address other = domt_spawn(system_, 1, &answering, NULL);
    ck_assert_int_eq(pthread_create(&leader, NULL, lead_outside, NULL), 0);
    DOMT_WAIT_FOR(20, leader_sleeps());
    ck_assert_int_eq(domus_outside_ask(system_, other, &late, NULL, 10 * DOMT_MS, NULL),
                     -ETIMEDOUT);
    DOMT_WAIT_FOR(20, leader_sleeps());
    atomic_store(&let_late, true);
    ck_assert_int_eq(pthread_join(leader, NULL), 0);
    ck_assert_uint_eq(atomic_load(&releases), 1);
    ck_assert_uint_lt(leader_took_ns, 20000 * DOMT_MS);
    domt_end(system_);
}

DOMT_SUITE(60)
