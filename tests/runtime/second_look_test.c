/* A thread that is about to sleep looks for work a second time after it has announced its sleep.
 * The tests put something exactly between the two looks: in the ring, when the thread arms its wake
 * poll; in a handler that lasts; or in the release of a payload, which runs on that thread. */
#include "house/dispatch/phases.h"
#include "runtime/outside/detached.h"
#include "runtime/system/monitor.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include <errno.h>
#include <pthread.h>

/* --- a thread --------------------------------------------------------------------------------- */

static domt_stepped world;

static void order_drain_of_system(domt_stepped *stepped, uint32_t index)
{
    atomic_store(&stepped->system->orders, domi_orders_of_stop(DOMI_STOP_DRAIN));
}

static void name_thread_to_wake(domt_stepped *stepped, uint32_t index)
{
    atomic_store(&stepped->system->waking, index + 1);
}

static void let_long_time_pass(domt_stepped *stepped, uint32_t index)
{
    domt_stepped_advance_clock(stepped, 2000 * DOMT_MS); /* more time than any sleep lasts */
}

/* Check that thread 0, which is about to sleep, stays awake when `between` is called before its
 * second look. */
static void expect_thread_stays_awake(void (*between)(domt_stepped *stepped, uint32_t index))
{
    domt_stepped_init_default(&world, 2);
    world.on_poll = between;
    /* as after the wake poll has fired, so the thread arms it anew */
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
    expect_thread_stays_awake(order_drain_of_system);
}

DOMT_TEST(thread_does_not_sleep_when_a_victim_calls_it)
{
    expect_thread_stays_awake(name_thread_to_wake);
}

DOMT_TEST(thread_does_not_sleep_when_end_of_sleep_has_passed)
{
    expect_thread_stays_awake(let_long_time_pass);
}

static int outcome;
static uint64_t heard_ns;

static int record_outcome_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    outcome = answer->error;
    heard_ns = domus_now_ns(stack);
    return 0;
}

static const domus_type question = {.name = "question"};
static domus_address mute;

static int ask_mute_actor(domus_stack *stack, void *self)
{
    return domus_ask_within(stack, mute, &question, NULL, 300 * DOMT_MS, record_outcome_of_ask);
}

/* A time-out of an ask is on another timer wheel than timers are, and must limit a sleep, too. */
DOMT_TEST(thread_sleeps_no_longer_than_an_ask_may_last)
{
    static const domus_behaviour silent = {.name = "silent"};
    static const domus_behaviour asking = {.name = "asking", .on_mount = ask_mute_actor};
    domt_stepped_init_default(&world, 2);
    /* thread 1 never runs, so the ask is not answered */
    mute = domt_spawn(world.system, 1, &silent, NULL);
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

static void *wake_monitor_when_asleep(void *monitor_)
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

    domt_stepped_init_default(&world, 2);
    domi_monitor *monitor = &world.system->monitor;
    _Atomic uint32_t *parks[2] = {&domt_stepped_thread(&world, 0)->manager.park,
                                  &domt_stepped_thread(&world, 1)->manager.park};
    /* the monitor must stay awake as long as either thread is awake, because nobody would wake
     * it */
    for (int awake = 0; awake < 2; awake++) {
        atomic_store(parks[awake], DOMI_PARK_RUNNING);
        atomic_store(parks[1 - awake], DOMI_PARK_SLEEPING);
        atomic_store(&monitor->word, DOMI_MONITOR_AWAKE);
        domi_monitor_sleep_until_woken(world.system);
        ck_assert_uint_eq(atomic_load(&monitor->word), DOMI_MONITOR_AWAKE);
    }
    atomic_store(parks[0], DOMI_PARK_SLEEPING);
    atomic_store(parks[1], DOMI_PARK_SLEEPING);
    ck_assert_int_eq(pthread_create(&waker, NULL, wake_monitor_when_asleep, monitor), 0);
    /* no thread is awake, so the monitor sleeps until this test wakes it */
    domi_monitor_sleep_until_woken(world.system);
    ck_assert_int_eq(pthread_join(waker, NULL), 0);
    ck_assert_uint_eq(atomic_load(&monitor->word), DOMI_MONITOR_AWAKE);
    domt_stepped_fini(&world);
}

DOMT_TEST(monitor_that_sleeps_is_woken_before_a_state_actor_runs)
{
    static const domus_type poke = {.name = "poke"};
    static const domus_behaviour idle = {.name = "idle"};
    domt_stepped_init_default(&world, 1);
    domus_address actor = domt_spawn(world.system, 0, &idle, NULL);
    domt_stepped_iterate(&world, 0, false);
    atomic_store(&world.system->monitor.word, DOMI_MONITOR_ASLEEP);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(atomic_load(&world.system->monitor.word), DOMI_MONITOR_ASLEEP);
    domt_send_notice(world.system, actor, &poke, NULL);
    domt_stepped_iterate(&world, 0, false);
    ck_assert_uint_eq(atomic_load(&world.system->monitor.word), DOMI_MONITOR_AWAKE);
    domt_stepped_fini(&world);
}

/* --- a detached actor's thread ---------------------------------------------------------------- */

static domus_system *system_;
static _Atomic bool busy;
static const domus_type go = {.name = "go"};

static domi_stop_step stop_step_of_system(void)
{
    return domi_orders_get_stop_step(atomic_load(&system_->orders));
}

/* A handler that lasts until the thread is told to stop, for which the thread has looked before.
 * The pause at its end lets the wake that belongs to the order come before the thread sleeps. */
static int stay_in_handler_until_stop(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&busy, true);
    for (int i = 0; i < 20000 && stop_step_of_system() < DOMI_STOP_ACTORS; i++)
        domt_pause_ns(DOMT_MS / 2);
    domt_pause_ns(20 * DOMT_MS);
    return 0;
}

static const domus_behaviour lasting = {
    .name = "lasting", .on = (const domus_on[]){{&go, stay_in_handler_until_stop, 0}, {0}}};

/* The best of some rounds counts. Without the second look each round would last a second, the cap
 * of a sleep. */
DOMT_TEST(detached_thread_does_not_sleep_when_it_is_to_stop)
{
    const domus_spawn_options options = {.detached = true};
    uint64_t best_ns = UINT64_MAX;

    for (int round = 0; round < 5 && best_ns >= 500 * DOMT_MS; round++) {
        domus_config config = domt_config_of_threads(1);
        domus_address actor;
        system_ = domt_start_system(&config);
        atomic_store(&busy, false);
        ck_assert_int_eq(domus_outside_spawn_with(system_, &lasting, NULL, &options, &actor), 0);
        domt_send_notice(system_, actor, &go, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&busy));
        uint64_t began_ns = domt_now_ns();
        ck_assert_int_eq(domus_system_stop(system_), 0);
        uint64_t took_ns = domt_now_ns() - began_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
        domt_end_system(system_);
    }
    ck_assert_uint_lt(best_ns, 500 * DOMT_MS);
}

/* --- foreign threads that ask ----------------------------------------------------------------- */

static _Atomic bool let_answer, let_late, asked;
static _Atomic uint32_t releases;

/* A release that puts the answer for which the leader waits. It runs on the thread that leads the
 * waiting askers. */
static void release_and_put_answer(void *payload)
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
static const domus_type large = {.name = "large", .size = 64, .release = release_and_put_answer};

static int reply_when_allowed(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&asked, true);
    for (int i = 0; i < 20000 && !atomic_load(&let_answer); i++)
        domt_pause_ns(DOMT_MS / 2);
    return domus_reply(stack, &done, NULL);
}

static int reply_large_when_allowed(domus_stack *stack, void *self, const void *nothing)
{
    static const char bytes[64] = "large";
    for (int i = 0; i < 20000 && !atomic_load(&let_late); i++)
        domt_pause_ns(DOMT_MS / 2);
    return domus_reply(stack, &large, bytes);
}

static const domus_behaviour answering = {
    .name = "answering",
    .on = (const domus_on[]){
        {&slow, reply_when_allowed, 0}, {&late, reply_large_when_allowed, 0}, {0}}};

static domus_address slow_one;
static uint64_t leader_took_ns;

static void *ask_as_leader_of_outside(void *unused)
{
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(domus_outside_ask(system_, slow_one, &slow, NULL, 30000 * DOMT_MS, NULL), 0);
    leader_took_ns = domt_now_ns() - began_ns;
    return NULL;
}

static bool is_leader_asleep(void)
{
    return atomic_load(&asked) && atomic_load(&system_->outside.park) == DOMI_PARK_SLEEPING;
}

/* The leader is the only asker that waits. In its turn it takes an answer that came too late for
 * another asker, and meanwhile its own answer is put; it must not sleep then. */
DOMT_TEST(leading_asker_does_not_sleep_when_its_answer_is_there)
{
    domus_config config = domt_config_of_threads(2);
    pthread_t leader;

    system_ = domt_start_system(&config);
    slow_one = domt_spawn(system_, 0, &answering, NULL);
    domus_address other = domt_spawn(system_, 1, &answering, NULL);
    ck_assert_int_eq(pthread_create(&leader, NULL, ask_as_leader_of_outside, NULL), 0);
    DOMT_WAIT_FOR(20, is_leader_asleep());
    ck_assert_int_eq(domus_outside_ask(system_, other, &late, NULL, 10 * DOMT_MS, NULL),
                     -ETIMEDOUT);
    DOMT_WAIT_FOR(20, is_leader_asleep());
    atomic_store(&let_late, true);
    ck_assert_int_eq(pthread_join(leader, NULL), 0);
    ck_assert_uint_eq(atomic_load(&releases), 1);
    ck_assert_uint_lt(leader_took_ns, 20000 * DOMT_MS);
    domt_end_system(system_);
}

DOMT_SUITE(60)
