/* runtime/pools/: actors of pools do all that actors of threads do, beside these, and no policy
 * loses or doubles a message. */
#include "house/message/manager.h"
#include "tests/runtime/pooled.h"

#include <domus/supervise.h>

#include <errno.h>
#include <pthread.h>

/* --- streams ---------------------------------------------------------------------------------- */

#define SENDERS   6u
#define RECEIVERS 6u
#define CHUNK     50u
#define FAILS     997u /* a receiver fails at one of this many parcels, and is restarted */

typedef struct parcel {
    uint32_t sender, number;
} parcel;

typedef struct sender {
    uint32_t id;
    /* for each receiver, the number of the parcel that this sender sends next */
    uint32_t next[RECEIVERS];
} sender;

typedef struct receiver {
    uint32_t expected[SENDERS + 1];
    uint32_t parcels;
} receiver;

static const domus_type parcel_type = {.name = "parcel", .size = sizeof(parcel)};
static const domus_type go_type = {.name = "go"};
static domus_address receivers[RECEIVERS];
/* number of parcels in each stream; in the long form all streams together have 10^8 parcels, or
 * 10^6 */
static uint32_t numbers;
static _Atomic uint64_t received, out_of_order, restarted;

static int check_order_of_parcel(domus_stack *stack, void *self, const void *payload)
{
    receiver *mine = self;
    const parcel *got = payload;

    if (mine->expected[got->sender] != got->number)
        atomic_fetch_add(&out_of_order, 1);
    mine->expected[got->sender] = got->number + 1;
    atomic_fetch_add(&received, 1);
    return ++mine->parcels % FAILS == 0 ? -EIO : 0;
}

/* Restart a receiver with its old state: no parcel that waits is lost or handled twice. */
static int restart_receiver_with_old_state(domus_stack *stack, void *self, int error)
{
    atomic_fetch_add(&restarted, error == -EIO);
    return 0;
}

/* Send parcels to each receiver, or fewer if its mailbox is full, and go on in another turn. */
static int send_parcels_to_receivers(domus_stack *stack, void *self, const void *nothing)
{
    sender *mine = self;
    bool done = true;

    for (uint32_t i = 0; i < RECEIVERS; i++) {
        for (uint32_t j = 0; j < CHUNK && mine->next[i] < numbers; j++) {
            const parcel it = {mine->id, mine->next[i]};
            if (domus_notice(stack, receivers[i], &parcel_type, &it) != 0)
                break;
            mine->next[i]++;
        }
        done = done && mine->next[i] == numbers;
    }
    return done ? domus_stop(stack, domus_self(stack))
                : domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour receiving = {
    .name = "receiving",
    .state_size = sizeof(receiver),
    .on = (const domus_on[]){{&parcel_type, check_order_of_parcel, 0}, {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop,
    .on_restart = restart_receiver_with_old_state};

static const domus_supervision always = {.intensity = UINT32_MAX, .otherwise = DOMUS_RESTART};
static _Atomic uint32_t all_receive;

/* Spawn the receivers as children of this actor; every third one lives on a thread, and the others
 * in the pool. */
static int spawn_receivers(domus_stack *stack, void *self)
{
    for (uint32_t i = 0; i < RECEIVERS; i++) {
        const domus_spawn_options options = {.pool = i % 3 != 0 ? domt_pooled.pool : NULL,
                                             .placement = DOMUS_SPREAD};
        if (domus_spawn_with(stack, &receiving, NULL, &options, &receivers[i]) != 0)
            return -ENOMEM;
    }
    atomic_store(&all_receive, 1);
    return 0;
}

static const domus_behaviour parent_of_receivers = {
    .name = "parent", .on_mount = spawn_receivers, .supervision = &always};

static const domus_behaviour sending = {
    .name = "sending",
    .state_size = sizeof(sender),
    .on = (const domus_on[]){{&go_type, send_parcels_to_receivers, 0}, {0}},
    .on_mount = domt_count_mount,
    .on_stop = domt_count_stop};

static void *send_parcels_from_outside(void *nothing)
{
    uint32_t next[RECEIVERS] = {0};

    for (uint32_t left = RECEIVERS; left != 0;) {
        left = 0;
        for (uint32_t i = 0; i < RECEIVERS; i++) {
            const parcel it = {SENDERS, next[i]};
            if (next[i] < numbers &&
                domus_outside_notice(domt_pooled.system, receivers[i], &parcel_type, &it) == 0)
                next[i]++;
            left += next[i] < numbers;
        }
    }
    return NULL;
}

/* --- churn beside them ------------------------------------------------------------------------ */

#define LIVES domt_tenfold_if_tests_are_long(DOMT_SCALE(4000, 1000))

static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};
static _Atomic uint32_t lives, answered, expired;

static int reply_or_keep_ask(domus_stack *stack, void *self, const void *number)
{
    domus_kept kept;
    if (*(const uint32_t *)number % 16 == 7) /* one of 16 asks is never answered */
        return domus_keep(stack, &kept);
    return domus_reply(stack, &question_type, number);
}

static const domus_behaviour answering = {
    .name = "answering", .on = (const domus_on[]){{&question_type, reply_or_keep_ask, 0}, {0}}};
static domus_address oracle, breeder;
static const domus_type over_type = {.name = "over"};

static int end_short_life(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(answer->error == 0 ? &answered : &expired, 1);
    (void)domus_notice(stack, breeder, &over_type, NULL);
    return domus_stop(stack, domus_self(stack));
}

/* A short life: ask once when mounted, and end with the answer, or without it. */
static int begin_short_life_in_mount(domus_stack *stack, void *self)
{
    uint32_t number = atomic_fetch_add(&lives, 1);
    (void)domt_count_mount(stack, self);
    return domus_ask_within(stack, oracle, &question_type, &number, 5 * DOMT_MS, end_short_life);
}

static const domus_behaviour living = {
    .name = "living", .on_mount = begin_short_life_in_mount, .on_stop = domt_count_stop};

/* When a short life is over, begin the next one. */
static int begin_next_short_life(domus_stack *stack, void *self, const void *nothing)
{
    uint32_t *begun = self;
    domus_address next;
    return (*begun)++ < LIVES ? domus_spawn(stack, &living, NULL, &next) : 0;
}

static const domus_behaviour breeding = {
    .name = "breeding",
    .state_size = sizeof(uint32_t),
    .on = (const domus_on[]){{&over_type, begin_next_short_life, 0}, {0}}};

/* Send streams of parcels between actors of the pool, actors of threads, and a foreign thread, with
 * short lives and restarts beside them. Each stream must be complete and in order, and each mounted
 * actor must have been stopped. */
static void run_streams_are_whole_and_in_order(const char *policy, uint32_t runners)
{
    pthread_t outsider;

    atomic_store(&received, 0);
    atomic_store(&out_of_order, 0);
    atomic_store(&restarted, 0);
    atomic_store(&all_receive, 0);
    atomic_store(&lives, 0);
    atomic_store(&answered, 0);
    atomic_store(&expired, 0);
    domt_pooled_start_with_policy(policy, runners, 2);
    (void)domt_pooled_spawn(domt_pooled.pool, &parent_of_receivers, NULL);
    DOMT_WAIT_FOR(60, atomic_load(&all_receive) != 0);
    oracle = domt_pooled_spawn(domt_pooled.pool, &answering, NULL);
    ck_assert_int_eq(pthread_create(&outsider, NULL, send_parcels_from_outside, NULL), 0);
    for (uint32_t i = 0; i < SENDERS; i++) {
        const sender state = {.id = i};
        domt_send_notice(domt_pooled.system,
                         domt_pooled_spawn(i % 3 != 1 ? domt_pooled.pool : NULL, &sending, &state),
                         &go_type, NULL);
    }
    breeder = domt_pooled_spawn(domt_pooled.pool, &breeding, NULL);
    for (uint32_t i = 0; i < 8; i++)
        domt_send_notice(domt_pooled.system, breeder, &over_type, NULL);
    ck_assert_int_eq(pthread_join(outsider, NULL), 0);
    DOMT_WAIT_FOR(600, atomic_load(&received) == (uint64_t)numbers * RECEIVERS * (SENDERS + 1));
    DOMT_WAIT_FOR(60, atomic_load(&answered) + atomic_load(&expired) == LIVES);
    ck_assert_uint_eq(atomic_load(&out_of_order), 0);
    ck_assert_uint_eq(atomic_load(&restarted),
                      RECEIVERS * ((uint64_t)numbers * (SENDERS + 1) / FAILS));
    ck_assert_uint_ge(atomic_load(&expired), LIVES / 16);
    domt_end_system(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&domt_mounted), atomic_load(&domt_stopped));
}

DOMT_TEST(streams_are_whole_and_in_order)
{
    numbers =
        (uint32_t)(domt_tests_are_long() ? DOMT_SCALE(2400000, 24000) : DOMT_SCALE(5000, 1000));
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        run_streams_are_whole_and_in_order(domt_policies[i]->name, 1);
        run_streams_are_whole_and_in_order(domt_policies[i]->name, 2);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

static const domus_type tick_type = {.name = "tick"};
static const domus_type never_type = {.name = "never"};
static _Atomic uint32_t ticks, slept, cancelled;

static int count_tick(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int count_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(answer->error == 0 ? &slept : &cancelled, 1);
    return 0;
}

static int count_cancelled_timer(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&cancelled, 1);
    return 0;
}

static int arm_timers_of_clock_in_mount(domus_stack *stack, void *self)
{
    domus_timer timer;

    if (domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL) != 0 ||
        domus_after(stack, UINT64_MAX, &never_type, NULL, NULL) != 0 ||
        domus_after(stack, 5 * DOMT_MS, &tick_type, NULL, &timer) != 0 ||
        domus_timer_cancel(stack, timer) != 0)
        return -EPROTO;
    return domus_sleep(stack, 20 * DOMT_MS, count_end_of_sleep);
}

static const domus_behaviour clocks = {
    .name = "clock",
    .on = (const domus_on[]){{&tick_type, count_tick, 0},
                             {&never_type, count_cancelled_timer, 0},
                             {0}},
    .on_mount = arm_timers_of_clock_in_mount};

static _Atomic uint32_t busy_ticks;

static int count_busy_tick(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&busy_ticks, 1);
    return 0;
}

/* Send a notice to this actor itself, for ever; timers must fire in between. */
static int notify_own_actor_for_ever(domus_stack *stack, void *self, const void *nothing)
{
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour busy_clocks = {
    .name = "busy",
    .on = (const domus_on[]){{&tick_type, count_busy_tick, 0},
                             {&never_type, count_cancelled_timer, 0},
                             {&go_type, notify_own_actor_for_ever, 0},
                             {0}},
    .on_mount = arm_timers_of_clock_in_mount};

static void run_timers_and_sleeps_of_actors_come_idle_or_busy(const char *policy, uint32_t runners)
{
    atomic_store(&ticks, 0);
    atomic_store(&slept, 0);
    domt_pooled_start_with_policy(policy, runners, 1);
    (void)domt_pooled_spawn(domt_pooled.pool, &clocks, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&slept) == 1 && atomic_load(&ticks) >= 8);
    domt_send_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &busy_clocks, NULL),
                     &go_type, NULL);
    atomic_store(&busy_ticks, 0);
    DOMT_WAIT_FOR(20, atomic_load(&slept) == 2 && atomic_load(&busy_ticks) >= 16);
    domt_end_system(domt_pooled.system);
    ck_assert_uint_eq(atomic_load(&cancelled), 0);
}

DOMT_TEST(timers_and_sleeps_of_actors_come_idle_or_busy)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        run_timers_and_sleeps_of_actors_come_idle_or_busy(domt_policies[i]->name, 1);
        run_timers_and_sleeps_of_actors_come_idle_or_busy(domt_policies[i]->name, 2);
    }
}

/* --- families --------------------------------------------------------------------------------- */

static _Atomic uint32_t births, bodies, strays;

typedef struct nest {
    uint32_t depth;
} nest;

static void count_end_of_actor(domus_stack *stack, void *self)
{
    atomic_fetch_add(&bodies, 1);
}

static int spawn_eight_children_in_mount(domus_stack *stack, void *self);

static const domus_behaviour nesting = {.name = "nest",
                                        .state_size = sizeof(nest),
                                        .on_mount = spawn_eight_children_in_mount,
                                        .on_stop = count_end_of_actor};

static int spawn_eight_children_in_mount(domus_stack *stack, void *self)
{
    nest *mine = self;
    const nest child = {mine->depth - 1};
    domus_address address;

    atomic_fetch_add(&births, 1);
    if (domus_self(stack).house->home->pooled == NULL)
        atomic_fetch_add(&strays, 1);
    for (uint32_t i = 0; i < 8 && mine->depth != 0; i++) {
        if (domus_spawn(stack, &nesting, &child, &address) != 0)
            return -ENOMEM;
    }
    return 0;
}

/* Let a tree of actors grow in the pool, in which each actor spawns eight children, and check that
 * a stop of the root ends all of them. */
static void run_a_tree_grows_in_the_pool_and_ends_with_its_root(const char *policy,
                                                                uint32_t runners)
{
    const nest root = {DOMT_SCALE(4, 3)};
    const uint32_t count = DOMT_SCALE(4681, 585);

    atomic_store(&births, 0);
    atomic_store(&bodies, 0);
    domt_pooled_start_with_policy(policy, runners, 1);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &nesting, &root);
    DOMT_WAIT_FOR(30, atomic_load(&births) == count);
    ck_assert_int_eq(domus_outside_stop(domt_pooled.system, address), 0);
    DOMT_WAIT_FOR(30, atomic_load(&bodies) == count);
    /* no child has left the pool: DOMUS_NEAR means the same pool */
    ck_assert_uint_eq(atomic_load(&strays), 0);
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(a_tree_grows_in_the_pool_and_ends_with_its_root)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        run_a_tree_grows_in_the_pool_and_ends_with_its_root(domt_policies[i]->name, 2);
    }
}

static _Atomic uint32_t mounts, failures;
static const domus_type fail_type = {.name = "fail"};

static int count_mount_of_child(domus_stack *stack, void *self)
{
    atomic_fetch_add(&mounts, 1);
    return 0;
}

static int fail_with_eproto(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&failures, 1);
    return -EPROTO;
}

static const domus_behaviour failing = {
    .name = "failing",
    .on = (const domus_on[]){{&fail_type, fail_with_eproto, 0}, {0}},
    .on_mount = count_mount_of_child};

static int spawn_failing_child_in_mount(domus_stack *stack, void *self)
{
    domus_spawn_options options = {.name = "child"};
    domus_address child;
    return domus_spawn_with(stack, &failing, NULL, &options, &child);
}

static void run_a_child_that_fails_is_restarted(const char *policy, uint32_t runners)
{
    static const domus_supervision restart = {.otherwise = DOMUS_RESTART, .intensity = 100};
    const domus_behaviour parent = {
        .name = "parent", .on_mount = spawn_failing_child_in_mount, .supervision = &restart};
    domus_address child;

    atomic_store(&mounts, 0);
    atomic_store(&failures, 0);
    domt_pooled_start_with_policy(policy, runners, 1);
    (void)domt_pooled_spawn(domt_pooled.pool, &parent, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&mounts) == 1);
    ck_assert_int_eq(domus_outside_find(domt_pooled.system, "child", &child), 0);
    for (uint32_t i = 1; i <= 20; i++) {
        domt_send_notice(domt_pooled.system, child, &fail_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&failures) == i && atomic_load(&mounts) == i + 1);
    }
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(a_child_that_fails_is_restarted)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        run_a_child_that_fails_is_restarted(domt_policies[i]->name, 2);
    }
}

/* --- routers ---------------------------------------------------------------------------------- */

static domus_address try_spawn_many_into_pool(uint32_t count, const domus_routing *routing,
                                              int wanted)
{
    const domus_spawn_options options = {.pool = domt_pooled.pool};
    domus_address address = {NULL, 0};
    ck_assert_int_eq(domus_outside_spawn_many(domt_pooled.system, &nesting, &(nest){0}, count,
                                              routing, &options, &address),
                     wanted);
    return address;
}

/* on_mount counts all routees, and also those that are outside of the pool. */
DOMT_TEST(routees_live_in_the_pool_that_the_options_name)
{
    const domus_behaviour channels = {.name = "channels", .kind = DOMUS_CHANNELS};
    const domus_routing near = {.route = DOMUS_ROUTE_NEAR};
    const domus_routing least = {.route = DOMUS_ROUTE_LEAST};
    domus_address address;

    atomic_store(&births, 0);
    atomic_store(&strays, 0);
    domt_pooled_start_with_policy("deques", 2, 2);
    (void)try_spawn_many_into_pool(4, NULL, 0);
    (void)try_spawn_many_into_pool(4, &least, 0);
    (void)try_spawn_many_into_pool(1, NULL, 0);
    (void)try_spawn_many_into_pool(4, &near, -EINVAL);
    (void)try_spawn_many_into_pool(DOMUS_PER_THREAD, NULL, -EINVAL);
    ck_assert_int_eq(domus_outside_spawn_many(domt_pooled.system, &channels, NULL, 2, NULL,
                                              &(domus_spawn_options){.pool = domt_pooled.pool},
                                              &address),
                     -EINVAL);
    DOMT_WAIT_FOR(10, atomic_load(&births) == 9);
    ck_assert_uint_eq(atomic_load(&strays), 0);
    domt_end_system(domt_pooled.system);
}

DOMT_SUITE(domt_tests_are_long() ? 2000 : 300)
