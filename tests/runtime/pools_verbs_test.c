/* Verbs of pooled actors that reach beyond their runner: groups, operations that need a ring, and
 * reports of actors that do not end. And runtime/control/dump_pools.c: a dump describes the actors
 * of pools while their runners go on. */
#include "tests/runtime/pooled.h"
#include "tests/runtime/pools.h"
#include "tests/runtime/stalls.h"

#include <domus/connect.h>
#include <domus/datagram.h>
#include <domus/descriptor.h>
#include <domus/dump.h>
#include <domus/file.h>
#include <domus/group.h>
#include <domus/listen.h>
#include <domus/pool.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static const domus_type go_type = {.name = "go"};
static const domus_type number_type = {.name = "number", .size = sizeof(uint32_t)};

/* --- groups ----------------------------------------------------------------------------------- */

#define NUMBERS (uint32_t) DOMT_SCALE(2000, 400)
#define STEADY  100u /* more members than get a publication in one step of a shard */

static _Atomic uint64_t heard, wrong;
static _Atomic uint32_t joined, published, lives;

typedef struct member {
    uint32_t next; /* number of the publication that the member must get next */
} member;

static int join_group_in_mount(domus_stack *stack, void *self)
{
    domus_group group;
    ck_assert_int_eq(domus_group_open(stack, "all", &group), 0);
    ck_assert_int_eq(domus_group_join(stack, group), 0);
    atomic_fetch_add(&joined, 1);
    return 0;
}

static int check_number_of_publication(domus_stack *stack, void *self, const void *number)
{
    member *mine = self;
    if (*(const uint32_t *)number != mine->next++)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&heard, 1);
    return 0;
}

static const domus_behaviour steady = {
    .name = "steady",
    .state_size = sizeof(member),
    .on_mount = join_group_in_mount,
    .on = (const domus_on[]){{&number_type, check_number_of_publication, 0}, {0}}};

/* A member that gets some publications and then ends: by a stop, or by leaving the group first. */
static int handle_publication_and_end(domus_stack *stack, void *self, const void *number)
{
    domus_group group;
    if (*(const uint32_t *)number % 2 == 0 && domus_group_open(stack, "all", &group) == 0)
        (void)domus_group_leave(stack, group);
    return domus_stop(stack, domus_self(stack));
}

static const domus_behaviour fleeting = {
    .name = "fleeting",
    .state_size = sizeof(member),
    .on_mount = join_group_in_mount,
    .on = (const domus_on[]){{&number_type, handle_publication_and_end, 0}, {0}}};

/* Publish the next number, spawn a member that gets a few publications, and go on in another
 * turn. */
static int publish_next_and_spawn_member(domus_stack *stack, void *self, const void *nothing)
{
    uint32_t number = atomic_load(&published);
    domus_group group;
    domus_address address;

    ck_assert_int_eq(domus_group_open(stack, "all", &group), 0);
    int result = domus_publish(stack, group, &number_type, &number);
    if (result == 0) {
        atomic_store(&published, number + 1);
        if (domus_spawn(stack, &fleeting, NULL, &address) == 0)
            atomic_fetch_add(&lives, 1);
    }
    return number + 1 < NUMBERS ? domus_notice(stack, domus_self(stack), &go_type, NULL) : 0;
}

static const domus_behaviour publishing = {
    .name = "publishing",
    .on = (const domus_on[]){{&go_type, publish_next_and_spawn_member, 0}, {0}}};

/* Check that members on a thread and in a pool, some of which come and go, get the publications of
 * one actor in order, without a gap. */
static void run_groups_have_members_in_pools(const char *policy)
{
    domt_pooled_start_with_policy(policy, 2, 1);
    atomic_store(&heard, 0);
    atomic_store(&joined, 0);
    atomic_store(&published, 0);
    for (uint32_t i = 0; i < STEADY; i++)
        (void)domt_pooled_spawn(i % 4 == 0 ? NULL : domt_pooled.pool, &steady, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&joined) == STEADY);
    domus_address publisher = domt_pooled_spawn(domt_pooled.pool, &publishing, NULL);
    domt_send_notice(domt_pooled.system, publisher, &go_type, NULL);
    DOMT_WAIT_FOR(60, atomic_load(&heard) == (uint64_t)NUMBERS * STEADY);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&published), NUMBERS);
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(groups_have_members_in_pools)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++)
        run_groups_have_members_in_pools(domt_policies[i]->name);
}

/* --- what needs a ring ------------------------------------------------------------------------ */

static _Atomic uint32_t refused;

static int end_turn_without_effect(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static const domus_behaviour channels = {.name = "channels", .kind = DOMUS_CHANNELS};

static int try_verbs_refused_in_pool(domus_stack *stack, void *self, const void *nothing)
{
    const domus_endpoint at = {.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}};
    domus_address address;
    domus_fd_watch watch;
    domus_buffer *buffer;

    ck_assert_int_eq(domus_connect(stack, "127.0.0.1:1", NULL, end_turn_without_effect),
                     -EOPNOTSUPP);
    ck_assert_int_eq(
        domus_file_open(stack, NULL, "/dev/null", DOMUS_FILE_READ, 0, end_turn_without_effect),
        -EOPNOTSUPP);
    ck_assert_int_eq(domus_listen(stack, &at, NULL, &address, NULL), -EOPNOTSUPP);
    ck_assert_int_eq(domus_datagram_open(stack, &at, NULL, &address, NULL), -EOPNOTSUPP);
    ck_assert_int_eq(domus_watch_fd(stack, 0, POLLIN, &watch), -EOPNOTSUPP);
    ck_assert_int_eq(domus_buffer_new(stack, 1, &buffer), -EOPNOTSUPP);
    ck_assert_int_eq(domus_spawn(stack, &channels, NULL, &address), -EOPNOTSUPP);
    ck_assert_int_eq(domus_pool_open(stack, "127.0.0.1:1",
                                     &(domus_pool_options){.behaviour = &domt_pool_narrow},
                                     &address),
                     -EOPNOTSUPP);
    atomic_fetch_add(&refused, 1);
    return 0;
}

static const domus_behaviour trying = {
    .name = "trying", .on = (const domus_on[]){{&go_type, try_verbs_refused_in_pool, 0}, {0}}};

DOMT_TEST(verbs_that_need_a_ring_are_refused_and_logged_once)
{
    const domus_pool_config work = {.name = "work", .runners = 1};
    domus_config config = domt_config_of_threads(1);

    config.pools = &work;
    config.pool_count = 1;
    atomic_store(&refused, 0);
    domt_pooled.system = domt_start_logging_system(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &trying, NULL);
    for (uint32_t i = 0; i < 5; i++)
        domt_send_notice(domt_pooled.system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&refused) == 5);
    ck_assert_uint_eq(domt_count_log_lines("no actor of a pool can have", "trying"), 1);
    ck_assert_int_eq(domus_outside_spawn_with(domt_pooled.system, &channels, NULL,
                                              &(domus_spawn_options){.pool = domt_pooled.pool},
                                              &address),
                     -EINVAL);
    domt_end_system(domt_pooled.system);
}

/* --- actors that are left --------------------------------------------------------------------- */

static _Atomic bool holds, is_held;

static int hold_runner_while_asked(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&is_held, true);
    while (atomic_load(&holds))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour holding = {
    .name = "holding", .on = (const domus_on[]){{&go_type, hold_runner_while_asked, 0}, {0}}};

DOMT_TEST(a_handler_that_does_not_return_is_told_with_its_pool)
{
    const domus_pool_config work = {.name = "work", .runners = 1};
    domus_config config = domt_config_of_threads(1);

    config.shutdown.actor_timeout_ns = 20 * DOMT_MS;
    atomic_store(&holds, true);
    domt_pooled_start_with_config(&config, &work);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &holding, NULL);
    domt_send_notice(domt_pooled.system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&is_held));
    ck_assert_int_eq(domus_system_stop(domt_pooled.system), -ETIMEDOUT);
    const char *left = domus_system_left(domt_pooled.system);
    ck_assert_msg(strstr(left, "pool work: a handler of holding has not returned") != NULL, "%s",
                  left);
    atomic_store(&holds, false);
    DOMT_WAIT_FOR(10, domus_system_stop(domt_pooled.system) != -ETIMEDOUT);
    domus_system_free(domt_pooled.system);
}

/* --- dumps ------------------------------------------------------------------------------------ */

static const domus_type begin_type = {.name = "begin"};
static const domus_type question_type = {.name = "question"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type ball_type = {.name = "ball"};
static domus_address silent_address;
static _Atomic uint32_t begun, balls;
static _Atomic bool computes;
static char text[1 << 16];

static int keep_ask_unanswered(domus_stack *stack, void *self, const void *nothing)
{
    domus_kept kept;
    atomic_fetch_add(&begun, 1);
    return domus_keep(stack, &kept);
}

static const domus_behaviour silent = {
    .name = "silent", .on = (const domus_on[]){{&question_type, keep_ask_unanswered, 0}, {0}}};

static int ignore_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int ask_silent_actor(domus_stack *stack, void *self, const void *nothing)
{
    return domus_ask_within(stack, silent_address, &question_type, NULL, 100000 * DOMT_MS,
                            ignore_answer);
}

static const domus_behaviour asking = {
    .name = "asking", .on = (const domus_on[]){{&begin_type, ask_silent_actor, 0}, {0}}};

static int stay_in_handler_until_told(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&computes))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour computing = {
    .name = "holding", .on = (const domus_on[]){{&begin_type, stay_in_handler_until_told, 0}, {0}}};

/* Dump an actor again and again until its dump contains `part`. */
static void expect_dump_contains(domus_address address, const char *part)
{
    int result = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        result = domus_dump_actor(domt_pooled.system, address, text, sizeof text);
        if (result == 0 && strstr(text, part) != NULL)
            return;
        domt_pause_ns(5 * DOMT_MS);
    }
    ck_abort_msg("no \"%s\" in (%d)\n%s", part, result, text);
}

DOMT_TEST(dump_describes_actors_of_pools)
{
    domt_pooled_start_with_policy("deques", 2, 1);
    atomic_store(&begun, 0);
    atomic_store(&computes, true);
    silent_address = domt_pooled_spawn(domt_pooled.pool, &silent, NULL);
    domus_address asker = domt_pooled_spawn(domt_pooled.pool, &asking, NULL);
    domus_address holder = domt_pooled_spawn(domt_pooled.pool, &computing, NULL);
    domt_send_notice(domt_pooled.system, asker, &begin_type, NULL);
    domt_send_notice(domt_pooled.system, holder, &begin_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 2);

    expect_dump_contains(asker, "asking");
    expect_dump_contains(asker, "question");
    expect_dump_contains(silent_address, "silent");
    ck_assert_int_eq(domus_dump_actor(domt_pooled.system, holder, text, sizeof text), -ETIMEDOUT);
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, sizeof text), 0);
    ck_assert_msg(strstr(text, "is in a handler of holding") != NULL, "%s", text);
    ck_assert_msg(strstr(text, ": scheduled, or its handler runs") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "pool work: 3 actors\n") != NULL, "%s", text);
    /* If the text is too small, the pool's share of it has no room for all actors. */
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, 2 * DOMUS_DUMP_BYTES_MIN - 1), -EINVAL);
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, 2 * DOMUS_DUMP_BYTES_MIN), 0);

    atomic_store(&computes, false);
    expect_dump_contains(holder, "holding");
    ck_assert_int_eq(domus_outside_stop(domt_pooled.system, holder), 0);
    DOMT_WAIT_FOR(10, domus_dump_actor(domt_pooled.system, holder, text, sizeof text) == -ESTALE);
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(actors_that_full_pool_refuses_are_counted)
{
    domt_pooled_start_with_policy("rings", 1, 1);
    for (uint32_t i = 0; i < 100; i++)
        (void)domt_pooled_spawn(domt_pooled.pool, &silent, NULL);
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, 2 * DOMUS_DUMP_BYTES_MIN), 0);
    const char *at = strstr(text, "pool work: 100 actors, ");
    ck_assert_msg(at != NULL && strstr(at, " of them were left out\n") != NULL, "%s", text);
    ck_assert_uint_lt(strlen(text), 2 * DOMUS_DUMP_BYTES_MIN);
    domt_end_system(domt_pooled.system);
}

/* --- beside actors that run ------------------------------------------------------------------- */

typedef struct player {
    uint32_t id;
    domus_address child; /* the child that the player has spawned last */
} player;

#define PLAYERS 8u
static domus_address players[PLAYERS];

static int pass_ball_and_replace_child(domus_stack *stack, void *self, const void *nothing)
{
    player *mine = self;

    atomic_fetch_add(&balls, 1);
    if (mine->child.house != NULL)
        (void)domus_stop(stack, mine->child);
    if (domus_spawn(stack, &silent, NULL, &mine->child) != 0)
        return 0; /* the spawn fails when the system stops */
    return domus_notice(stack, players[(mine->id + 1) % PLAYERS], &ball_type, NULL);
}

static int ignore_tick(domus_stack *stack, void *self, const void *nothing)
{
    return 0;
}

static int arm_timer_of_player_in_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour playing = {
    .name = "playing",
    .state_size = sizeof(player),
    .on_mount = arm_timer_of_player_in_mount,
    .on = (const domus_on[]){
        {&ball_type, pass_ball_and_replace_child, 0}, {&tick_type, ignore_tick, 0}, {0}}};

DOMT_TEST(dumps_do_not_disturb_actors_that_run)
{
    domt_pooled_start_with_policy("rings", 2, 1);
    atomic_store(&balls, 0);
    for (uint32_t i = 0; i < PLAYERS; i++)
        players[i] = domt_pooled_spawn(domt_pooled.pool, &playing, &(player){i, {NULL, 0}});
    for (uint32_t i = 0; i < 3; i++)
        domt_send_notice(domt_pooled.system, players[i], &ball_type, NULL);
    uint64_t until_ns = domt_now_ns() + DOMT_SCALE(1000, 300) * DOMT_MS;
    uint32_t dumps = 0, before = 0;
    while (domt_now_ns() < until_ns || dumps < 10) {
        ck_assert_int_eq(domus_dump(domt_pooled.system, text, sizeof text), 0);
        ck_assert_ptr_nonnull(strstr(text, "pool work: "));
        int result =
            domus_dump_actor(domt_pooled.system, players[dumps % PLAYERS], text, sizeof text);
        ck_assert(result == 0 || result == -ETIMEDOUT);
        if (++dumps % 10 == 0) { /* check that the players have gone on while the dumps were made */
            DOMT_WAIT_FOR(10, atomic_load(&balls) > before);
            before = atomic_load(&balls);
        }
    }
    domt_end_system(domt_pooled.system);
}

DOMT_SUITE(120)
