/* runtime/testkit/runners.c: pools in a test kit, on its clock, in an order that follows from the
 * seed. runtime/testkit/who.c: each actor has one number, by its house and its lease, however many
 * actors there are, and also when memory runs out. */
#include "base/memory.h"
#include "runtime/testkit/who.h"
#include "tests/runtime/pooled.h"
#include "tests/support/suite.h"

#include <domus/pools.h>
#include <domus/testkit.h>

#include <stdlib.h>
#include <string.h>

/* --- pools ------------------------------------------------------------------------------------ */

#define MS     DOMT_MS
#define HOUR   (3600 * 1000 * MS)
#define ECHOES 5u
#define PASSES 40u

static const domus_type ball_type = {.name = "ball", .size = sizeof(uint32_t)};
static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};
static const domus_type tick_type = {.name = "tick"};

/* The pool, the actors and the counts of the kit that runs now. */
static struct {
    const domus_pool *pool;
    domus_address echoes[ECHOES];
    uint32_t passes, ticks, stops;
} now;

static int pass_ball_on(domus_stack *stack, void *self, const void *payload)
{
    uint32_t me = *(uint32_t *)self, left = *(const uint32_t *)payload;
    now.passes++;
    if (left == 0)
        return 0;
    left--;
    return domus_notice(stack, now.echoes[(me + 1) % ECHOES], &ball_type, &left);
}

static int reply_number_plus_one(domus_stack *stack, void *self, const void *number)
{
    uint32_t answer = *(const uint32_t *)number + 1;
    return domus_reply(stack, &question_type, &answer);
}

static int count_tick(domus_stack *stack, void *self, const void *nothing)
{
    now.ticks++;
    return 0;
}

static int arm_timer_in_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, HOUR, &tick_type, NULL, NULL);
}

static void count_stopped_echo(domus_stack *stack, void *self)
{
    now.stops++;
}

static const domus_behaviour echo = {
    .name = "echo",
    .state_size = sizeof(uint32_t),
    .on_mount = arm_timer_in_mount,
    .on_stop = count_stopped_echo,
    .on = (const domus_on[]){{&ball_type, pass_ball_on, 0},
                             {&question_type, reply_number_plus_one, 0},
                             {&tick_type, count_tick, 0},
                             {0}}};

static domus_testkit *make_kit_with_pool(const char *policy, uint64_t seed)
{
    const domus_pool_config work = {.name = "work", .runners = 3, .policy = policy, .spares = 2};
    domus_config config;
    domus_testkit *kit;
    char error[256];

    memset(&now, 0, sizeof now);
    domus_config_init(&config);
    config.pools = &work;
    config.pool_count = 1;
    ck_assert_int_eq(domus_testkit_new(&config, seed, error, sizeof error, &kit), 0);
    domus_system *system = domus_testkit_system(kit);
    now.pool = domus_outside_pool_find(system, "work");
    ck_assert_ptr_nonnull(now.pool);
    for (uint32_t i = 0; i < ECHOES; i++) {
        const domus_spawn_options options = {.pool = now.pool};
        ck_assert_int_eq(domus_outside_spawn_with(system, &echo, &i, &options, &now.echoes[i]), 0);
    }
    return kit;
}

/* Let some messages go round among the actors at the same time, while a probe, which lives on a
 * thread, asks one of them. */
static void play_balls_among_echoes(domus_testkit *kit)
{
    domus_probe *probe;
    const uint32_t question = 41;

    ck_assert_int_eq(domus_testkit_run(kit), 0);
    for (uint32_t i = 0; i < ECHOES; i++) {
        const uint32_t left = PASSES - 1;
        ck_assert_int_eq(
            domus_outside_notice(domus_testkit_system(kit), now.echoes[i], &ball_type, &left), 0);
    }
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_probe_ask(probe, now.echoes[0], &question_type, &question), 0);
    uint32_t answer = 0;
    ck_assert_int_eq(domus_probe_expect(probe, &question_type, MS, &answer), 0);
    ck_assert_uint_eq(answer, 42);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(now.passes, ECHOES * PASSES);
}

DOMT_TEST(pools_run_in_kits_on_their_clock)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        for (uint64_t seed = 1; seed <= DOMT_SCALE(50, 10); seed++) {
            domus_testkit *kit = make_kit_with_pool(domt_policies[i]->name, seed);
            play_balls_among_echoes(kit);
            ck_assert_uint_eq(now.ticks, 0);
            ck_assert_int_eq(domus_testkit_advance(kit, HOUR - MS), 0);
            ck_assert_uint_eq(now.ticks, 0);
            ck_assert_int_eq(domus_testkit_advance(kit, 10 * MS), 0);
            ck_assert_uint_eq(now.ticks, ECHOES);
            ck_assert_int_eq(domus_testkit_advance(kit, 10 * HOUR), 0);
            ck_assert_uint_eq(now.ticks, 11 * ECHOES);
            ck_assert_int_eq(domus_testkit_stop(kit), 0);
            ck_assert_uint_eq(now.stops, ECHOES);
            domus_testkit_free(kit);
        }
    }
}

static char *trace_of_play(const char *policy, uint64_t seed)
{
    domus_testkit *kit = make_kit_with_pool(policy, seed);

    play_balls_among_echoes(kit);
    char *trace = strdup(domus_testkit_trace(kit));
    ck_assert_ptr_nonnull(trace);
    ck_assert_ptr_nonnull(strstr(trace, "pool work runner "));
    domus_testkit_free(kit);
    return trace;
}

DOMT_TEST(one_seed_is_one_run_and_seeds_differ)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        char *before = NULL;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            char *once = trace_of_play(domt_policies[i]->name, seed);
            char *again = trace_of_play(domt_policies[i]->name, seed);
            ck_assert_str_eq(once, again);
            ck_assert(before == NULL || strcmp(before, once) != 0);
            free(before);
            free(again);
            before = once;
        }
        free(before);
    }
}

DOMT_TEST(kit_gives_turns_to_all_runners)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        domus_testkit *kit = make_kit_with_pool(domt_policies[i]->name, 7);
        domus_runner_profile one;
        play_balls_among_echoes(kit);
        for (uint32_t j = 0; j < 5; j++) {
            ck_assert_int_eq(domus_pool_profile(now.pool, j, &one, NULL), 0);
            /* runners 3 and 4 are spares, which do not begin in a kit */
            ck_assert(j < 3 ? one.turns != 0 : one.turns == 0);
        }
        domus_testkit_free(kit);
    }
}

/* --- numbers of actors ------------------------------------------------------------------------ */

/* number of houses; the first table has room for 128, so it has to grow three times */
#define HOUSES 1000u

/* Houses without actors, because only the place and the lease of a house are used here. */
static domi_house houses[HOUSES];
static domi_who *who;

static uint32_t number_of_actor_in_house(uint32_t house)
{
    return domi_who_find_or_give_number_of_actor(&who, &houses[house]);
}

static void set_lease_of_house(uint32_t house, uint32_t lease)
{
    atomic_store(&houses[house].life, (uint64_t)lease << 32);
}

DOMT_TEST(actor_numbers_follow_order_of_first_runs)
{
    for (uint32_t i = HOUSES; i-- > 0;) {
        ck_assert_uint_eq(number_of_actor_in_house(i), HOUSES - 1 - i);
        ck_assert_uint_eq(number_of_actor_in_house(HOUSES - 1), 0);
    }
    for (uint32_t i = 0; i < HOUSES; i++)
        ck_assert_uint_eq(number_of_actor_in_house(i), HOUSES - 1 - i);
    domi_memory_free(who);
}

/* An actor gets another number than the actor before it in the same house. */
DOMT_TEST(actors_of_one_house_are_told_apart)
{
    for (int twice = 0; twice < 2; twice++) {
        for (uint32_t lease = 0; lease < 500; lease++) {
            set_lease_of_house(7, lease);
            ck_assert_uint_eq(number_of_actor_in_house(7), lease);
        }
    }
    domi_memory_free(who);
}

/* An actor that got no number gets one as soon as there is memory, and no number is skipped. */
DOMT_TEST(actor_has_no_number_while_allocation_fails)
{
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_uint_eq(number_of_actor_in_house(0), DOMI_WHO_UNKNOWN);
    domi_memory_fail_allocation_after(-1, 0);
    for (uint32_t i = 0; i < 128; i++)
        ck_assert_uint_eq(number_of_actor_in_house(i), i);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_uint_eq(number_of_actor_in_house(128), DOMI_WHO_UNKNOWN);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(number_of_actor_in_house(128), 128);
    ck_assert_uint_eq(number_of_actor_in_house(0), 0);
    domi_memory_free(who);
}

DOMT_SUITE(60)
