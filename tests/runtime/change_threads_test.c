/* runtime/control/change.c with real threads: those of the loop, detached ones and runners of a
 * pool take a change, and messages are neither lost nor counted wrongly meanwhile. */
#include "house/conversation/stack.h"
#include "runtime/system/system.h"
#include "tests/runtime/running.h"

#include <domus/pools.h>
#include <domus/stall.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define MS     DOMT_MS
#define SECOND (1000 * DOMT_MS)

static domus_system *system_;
static char error[512];

static domus_config now(void)
{
    domus_config config;

    domus_system_config_now(system_, &config);
    return config;
}

/* Hold that a change succeeds. Returns how many keys have changed. */
static int change(const domus_config *config)
{
    int result = domus_system_change(system_, config, error, sizeof error);

    ck_assert_msg(result >= 0, "%s: %s", strerror(-result), error);
    return result;
}

static const domus_type look_type = {.name = "look", .size = sizeof(uint64_t)};

/* Answer with what holds where the actor runs. */
static int on_look(domus_stack *stack, void *self, const void *payload)
{
    uint64_t sum = (uint64_t)stack->manager->config->scheduler.timers_max << 32 |
                   stack->manager->limits.messages_per_run_max;

    return domus_reply(stack, &look_type, &sum);
}

static const domus_behaviour looker = {.name = "looker",
                                       .on = (const domus_on[]){{&look_type, on_look, 0}, {0}}};

static uint64_t ask(domus_address actor)
{
    uint64_t none = 0, answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    ck_assert_int_eq(domus_outside_ask(system_, actor, &look_type, &none, 20 * SECOND, &reply), 0);
    return answer;
}

/* Actors of a thread, of a thread of their own and of a pool, and one that spins. */
DOMT_TEST(every_kind_of_thread_takes_a_change)
{
    static const domus_pool_config pool = {.name = "work", .runners = 2, .throughput = 5};
    domus_config config = domt_config(2);
    domus_address actors[3];

    config.pools = &pool;
    config.pool_count = 1;
    system_ = domt_start(&config);
    actors[0] = domt_spawn(system_, 1, &looker, NULL);
    const domus_spawn_options detached = {.detached = true};
    ck_assert_int_eq(domus_outside_spawn_with(system_, &looker, NULL, &detached, &actors[1]), 0);
    const domus_spawn_options pooled = {.pool = domus_outside_pool_find(system_, "work")};
    ck_assert_int_eq(domus_outside_spawn_with(system_, &looker, NULL, &pooled, &actors[2]), 0);
    for (uint32_t turn = 0; turn < 50; turn++) {
        config = now();
        config.scheduler.timers_max = 1000 + turn;
        config.scheduler.messages_per_run_max = 100 + turn;
        ck_assert_int_eq(change(&config), 2);
        for (uint32_t i = 0; i < 3; i++)
            DOMT_WAIT_FOR(10,
                          ask(actors[i]) == ((1000ull + turn) << 32 | (i == 2 ? 5 : 100 + turn)));
    }
    domt_end(system_);
}

static void *change_again_and_again(void *number_)
{
    uint32_t number = *(uint32_t *)number_;

    for (uint32_t i = 0; i < 500; i++) {
        domus_config config = now();
        config.scheduler.io_ratio = 1 + (i + number) % 100;
        config.memory.interval_ns = (1 + i % 90) * MS;
        config.stall.threshold_ns = (10 + i % 10) * SECOND;
        config.scheduler.idle.spin_ns = i % 2 == 0 ? DOMUS_SPIN_AUTO : 5000;
        config.channel.idle_timeout_ns = (1 + i % 9) * 100 * SECOND;
        config.profile.level = (domus_profile_level)(i % 3);
        (void)change(&config);
        if (i % 8 == 0)
            domt_pause_ns(MS);
    }
    return NULL;
}

/* Both threads change at the same time, and actors go on meanwhile. */
DOMT_TEST(thousand_changes_lose_no_message)
{
    domus_config config = domt_config(2);
    uint32_t numbers[2] = {0, 50};
    pthread_t threads[2];
    uint64_t asked = 0;

    system_ = domt_start(&config);
    domus_address actors[2] = {domt_spawn(system_, 0, &looker, NULL),
                               domt_spawn(system_, 1, &looker, NULL)};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, change_again_and_again, &numbers[i]), 0);
    for (; asked < 2000; asked++)
        (void)ask(actors[asked % 2]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    (void)ask(actors[0]);
    domt_end(system_);
}

static const domus_type note_type = {.name = "note"};
static _Atomic uint64_t waited;

/* Wait in a run, in which the limit of messages changes. */
static int wait_in_a_run(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type *const types[] = {&look_type, NULL};
    const domus_pattern pattern = {.types = types};
    domus_received got;

    atomic_fetch_add(&waited, 1);
    int result = domus_receive_now(stack, &pattern, 20 * SECOND, &got);
    return result == 0 ? domus_reply(stack, &look_type, got.payload) : result;
}

static const domus_behaviour waiting = {
    .name = "waiting", .on = (const domus_on[]){{&note_type, wait_in_a_run, 0}, {0}}};

/* Returns how many messages actors of a name have handled on threads of their own. */
static uint64_t messages_of(const char *name)
{
    domus_behaviour_profile profiles[64];
    uint32_t count = 0;

    ck_assert_int_ge(domus_outside_behaviours(system_, profiles, 64, &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(profiles[i].name, name) == 0)
            return profiles[i].messages;
    }
    return 0;
}

/* The messages of a run are counted by the limit with which it began. */
DOMT_TEST(change_within_a_run_does_not_disturb_its_count)
{
    const domus_spawn_options detached = {.detached = true};
    domus_config config = domt_config(1);
    domus_address actor;

    system_ = domt_start(&config);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &waiting, NULL, &detached, &actor), 0);
    domt_notice(system_, actor, &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&waited) == 1);
    ck_assert_int_eq(
        domus_system_change_key(system_, "scheduler.maxMessagesPerRun", "8", error, sizeof error),
        1);
    (void)ask(actor);
    DOMT_WAIT_FOR(10, messages_of("waiting") >= 1);
    ck_assert_uint_le(messages_of("waiting"), 2);
    domt_end(system_);
}

static _Atomic bool goes_on;

static int stand_still(domus_stack *stack, void *self, const void *payload)
{
    for (int i = 0; i < 20000 && atomic_load(&goes_on); i++)
        domt_pause_ns(MS);
    return 0;
}

static const domus_behaviour still = {.name = "still",
                                      .on = (const domus_on[]){{&note_type, stand_still, 0}, {0}}};

/* Returns whether there is a stall that goes on. */
static bool has_stall(void)
{
    static domus_stall stalls[DOMUS_STALLS_KEPT];
    uint32_t count = 0;

    ck_assert_int_eq(domus_stalls_read(system_, stalls, DOMUS_STALLS_KEPT, &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (!stalls[i].is_over)
            return true;
    }
    return false;
}

DOMT_TEST(stall_is_over_when_stalls_are_not_watched_any_more)
{
    domus_config config = domt_config(1);

    config.stall.threshold_ns = 10 * MS;
    system_ = domt_start(&config);
    atomic_store(&goes_on, true);
    domt_notice(system_, domt_spawn(system_, 0, &still, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, has_stall());
    ck_assert_int_eq(domus_system_change_key(system_, "stall.threshold", "0", error, sizeof error),
                     1);
    DOMT_WAIT_FOR(10, !has_stall());
    atomic_store(&goes_on, false);
    domt_end(system_);
}

/* Without a monitor nothing would be watched. */
DOMT_TEST(stalls_are_not_watched_if_nothing_was_at_the_start)
{
    domus_config config = domt_config(1);

    config.stall.threshold_ns = 0;
    config.profile.level = DOMUS_PROFILE_OFF;
    system_ = domt_start(&config);
    ck_assert_int_eq(
        domus_system_change_key(system_, "stall.threshold", "25ms", error, sizeof error), -EPERM);
    ck_assert_str_eq(error, "these keys count at a start: stall.threshold");
    domt_end(system_);
}

DOMT_SUITE(60)
